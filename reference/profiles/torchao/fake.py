"""torchao: fake quantization in the three zero-point domains, and the mask of what lies on the grid."""

import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.equations import (
    clamp,
    float_code,
    float_real,
    int_code,
    int_code_by_reciprocal,
    int_real,
    middle,
    none_code,
    none_code_by_reciprocal,
    none_product,
    none_real,
)
from halfeven.reference.profiles.torchao.granularity import per_element, some
from halfeven.reference.profiles.torchao.storage import check_reals, code_range, is_float8, limits, machine_integers

__all__ = [
    "fake_quantize_affine",
    "fake_quantize_affine_0_11",
    "fake_quantize_affine_0_18",
    "fake_quantize_affine_cachemask",
    "fake_quantize_affine_cachemask_0_11",
    "fake_quantize_affine_cachemask_0_18",
]

_SOURCE = "torchao.quantization.quant_primitives"
_EQUATION = r"\hat x = \mathrm{dequantize}(\mathrm{quantize}(x))"
_BASIS = AsComputed(dtype="quantize's for the code, the input's for its real")
_MEASURED = "torchao 0.18.0, measured on the CPU"


@formula(
    "torchao.quant_primitives.fake_quantize_affine",
    equation=_EQUATION,
    basis=_BASIS,
    source=f"{_SOURCE}.fake_quantize_affine (_fake_quantize_affine in 0.18)",
)
def fake_quantize_affine(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    quant_dtype: npt.DTypeLike,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> Array:
    """``input`` on the grid, in its own dtype: quantized and dequantized without a cast between; NaN stays NaN.

    Args:
        input: float32, float16 or bfloat16 of any shape.
        block_size: elements per block along each dimension.
        scale: real per code.
        zero_point: in codes (INT), in reals (FLOAT) or None (NONE).
        quant_dtype: the dtype whose range is the grid where none is given.
        quant_min: the least code.
        quant_max: the greatest code.
        zero_point_domain: INT, FLOAT or NONE.

    Raises:
        ValueError: the domain is another, or NONE meets a zero point, or there are no codes of ``quant_dtype``.
        AssertionError, RuntimeError, TypeError: as ``torchao.quant_primitives.quantize_affine``.
    """
    _check_domain(zero_point_domain, zero_point)
    qmin, qmax = code_range(quant_dtype, quant_min, quant_max)
    s, z = _parameters(input, block_size, scale, zero_point, zero_point_domain)
    with np.errstate(all="ignore"):
        q = _code(input, s, z, middle(qmin, qmax), zero_point_domain, quant_dtype)
        q = clamp(q, *limits(qmin, qmax, q.dtype))
        return _real(q, s, z, middle(qmin, qmax), zero_point_domain, input.dtype)


@formula(
    "torchao.fake_quantize_affine_cachemask",
    equation=rf"{_EQUATION};\quad m = (q_{{min}} \le \lceil x / s \rfloor + z \le q_{{max}})",
    basis=_BASIS,
    source=f"{_SOURCE}.fake_quantize_affine_cachemask: the mask of outliers",
)
def fake_quantize_affine_cachemask(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    quant_dtype: npt.DTypeLike,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> tuple[Array, Array]:
    """``fake_quantize_affine``, and a mask of its shape: False where the code, not yet limited, leaves the grid.

    Of NaN no code lies on the grid. Arguments and errors as in ``fake_quantize_affine``.
    """
    _check_domain(zero_point_domain, zero_point)
    qmin, qmax = code_range(quant_dtype, quant_min, quant_max)
    s, z = _parameters(input, block_size, scale, zero_point, zero_point_domain)
    with np.errstate(all="ignore"):
        q = _code(input, s, z, middle(qmin, qmax), zero_point_domain, quant_dtype)
        low, high = limits(qmin, qmax, q.dtype)
        real = _real(clamp(q, low, high), s, z, middle(qmin, qmax), zero_point_domain, input.dtype)
        return real, (q >= low) & (q <= high)


@formula("torchao.quant_primitives.fake_quantize_affine@0.18", equation=_EQUATION, basis=_BASIS, source=_MEASURED)
def fake_quantize_affine_0_18(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    quant_dtype: npt.DTypeLike,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> Array:
    """As documented, but by the reciprocal of the scale, rounded to its dtype, in the INT and NONE domains."""
    _check_domain(zero_point_domain, zero_point)
    qmin, qmax = code_range(quant_dtype, quant_min, quant_max)
    s, z = _parameters(input, block_size, scale, zero_point, zero_point_domain)
    with np.errstate(all="ignore"):
        q = _code_by_reciprocal(input, s, z, middle(qmin, qmax), zero_point_domain)
        q = clamp(q, *limits(qmin, qmax, q.dtype))
        return _real(q, s, z, middle(qmin, qmax), zero_point_domain, input.dtype)


@formula("torchao.fake_quantize_affine_cachemask@0.18", equation=_EQUATION, basis=_BASIS, source=_MEASURED)
def fake_quantize_affine_cachemask_0_18(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    quant_dtype: npt.DTypeLike,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> tuple[Array, Array]:
    """``fake_quantize_affine@0.18``, and a mask of the codes already limited: True but for NaN.

    Raises:
        TypeError: also where ``quant_min`` or ``quant_max`` is absent.
        AssertionError: also where the NONE domain meets a zero point.
        ValueError: the domain is another, or there are no codes of ``quant_dtype``.
    """
    if zero_point_domain == "NONE" and zero_point is not None:
        msg = f"zero_point of shape {zero_point.shape} is not accepted in the NONE domain: give None"
        raise AssertionError(msg)
    real = fake_quantize_affine_0_18(
        input, block_size, scale, zero_point, quant_dtype, quant_min, quant_max, zero_point_domain
    )
    if quant_min is None or quant_max is None:
        msg = f"quant_min={quant_min}, quant_max={quant_max} is not accepted: the mask asks for both"
        raise TypeError(msg)
    s, z = _parameters(input, block_size, scale, zero_point, zero_point_domain)
    with np.errstate(all="ignore"):
        q = _code_by_reciprocal(input, s, z, middle(quant_min, quant_max), zero_point_domain)
        low, high = limits(quant_min, quant_max, q.dtype)
        q = clamp(q, low, high)
        return real, (q >= low) & (q <= high)


@formula(
    "torchao.quant_primitives.fake_quantize_affine@0.11",
    equation=_EQUATION,
    basis=AsComputed(dtype="as 0.18, but int32 for the difference of the codes"),
    source="torchao 0.11.0, measured",
)
def fake_quantize_affine_0_11(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    quant_dtype: npt.DTypeLike,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> Array:
    """As 0.18, but INT codes become int32, NaN its least integer, before the zero point is subtracted, which wraps.

    And in the NONE domain the code of a float8 is the product itself, not rounded, as documented.
    """
    if zero_point_domain == "FLOAT" or (zero_point_domain != "INT" and not is_float8(quant_dtype)):
        return fake_quantize_affine_0_18(
            input, block_size, scale, zero_point, quant_dtype, quant_min, quant_max, zero_point_domain
        )
    _check_domain(zero_point_domain, zero_point)
    qmin, qmax = code_range(quant_dtype, quant_min, quant_max)
    s, z = _parameters(input, block_size, scale, zero_point, zero_point_domain)
    with np.errstate(all="ignore"):
        q = none_product(input, s) if zero_point_domain == "NONE" else int_code_by_reciprocal(input, s, z)
        q = clamp(q, *limits(qmin, qmax, q.dtype))
        if zero_point_domain == "NONE":
            return none_real(q, s, input.dtype)
        return int_real(machine_integers(q, "int32") - machine_integers(z, "int32"), s, None, input.dtype)


@formula(
    "torchao.fake_quantize_affine_cachemask@0.11",
    equation=_EQUATION,
    basis=AsComputed(dtype="as 0.18, but int32 for the difference of the codes"),
    source="torchao 0.11.0, measured",
)
def fake_quantize_affine_cachemask_0_11(
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    quant_dtype: npt.DTypeLike,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> tuple[Array, Array]:
    """``fake_quantize_affine@0.11``, and the mask of 0.18, whose errors these are too."""
    given = (input, block_size, scale, zero_point, quant_dtype, quant_min, quant_max, zero_point_domain)
    _, mask = fake_quantize_affine_cachemask_0_18(*given)
    return fake_quantize_affine_0_11(*given), mask


def _check_domain(domain: str | None, zero_point: Array | None) -> None:
    if domain not in ("INT", "FLOAT", "NONE"):
        msg = f"zero_point_domain={domain!r} is not accepted: give 'INT', 'FLOAT' or 'NONE'"
        raise ValueError(msg)
    if domain == "NONE" and zero_point is not None:
        msg = f"zero_point of shape {zero_point.shape} is not accepted in the NONE domain: give None"
        raise ValueError(msg)


def _parameters(
    x: Array, block_size: BlockSize, scale: Array, zero_point: Array | None, domain: str | None
) -> tuple[Array, Array]:
    """Scale and zero point as every element sees them; in the NONE domain the zero point is not read."""
    check_reals(x)
    s = per_element("scale", scale, x.shape, block_size)
    if domain == "NONE":
        return s, s
    return s, per_element("zero_point", some(zero_point), x.shape, block_size)


def _code(x: Array, s: Array, z: Array, mid: float, domain: str | None, dtype: npt.DTypeLike) -> Array:
    match domain:
        case "INT":
            return int_code(x, s, z)
        case "FLOAT":
            return float_code(x, s, z, mid)
        case _:
            return none_code(x, s) if is_float8(dtype) else np.rint(none_code(x, s))


def _code_by_reciprocal(x: Array, s: Array, z: Array, mid: float, domain: str | None) -> Array:
    match domain:
        case "INT":
            return int_code_by_reciprocal(x, s, z)
        case "NONE":
            return none_code_by_reciprocal(x, s)
        case _:
            return float_code(x, s, z, mid)


def _real(q: Array, s: Array, z: Array, mid: float, domain: str | None, dtype: npt.DTypeLike) -> Array:
    match domain:
        case "INT":
            return int_real(q, s, z, dtype)
        case "FLOAT":
            return float_real(q, s, z, mid, dtype)
        case _:
            return none_real(q, s, dtype)
