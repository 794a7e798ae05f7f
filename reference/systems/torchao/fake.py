"""torchao: fake quantization in the three zero-point domains, and the mask of what lies on the grid."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.systems.torchao import affine, domains
from halfeven.reference.systems.torchao.granularity import per_element, some
from halfeven.reference.systems.torchao.storage import check_reals, code_range, limits

__all__ = ["fake_quantize_affine", "fake_quantize_affine_cachemask"]


@dataclass(frozen=True)
class Fake(Behaviour):
    """What implementations do differently in fake quantization."""

    division: str = choice(
        {value: f"{words}, but for zero points in reals" for value, words in affine.DIVISION.items()}
    )
    float_division: str = choice(
        {value: f"{words} where zero points are reals" for value, words in affine.DIVISION.items()}
    )
    rounding: str = roundings("the quotient")
    compute: str = choice(affine.COMPUTE)
    zero_point: str = choice(affine.ZERO_POINT)
    empty_zero_point: str = choice(affine.EMPTY_ZERO_POINT)
    subtraction: str = choice(affine.SUBTRACTION)
    product: str = choice(affine.PRODUCT)
    middle: str = choice(domains.MIDDLE)
    float8: str = choice(domains.FLOAT8)
    refusal: str = choice({
        "ValueError": "refuses a zero point in the NONE domain by a ValueError",
        "AssertionError": "refuses a zero point in the NONE domain by an AssertionError",
    })  # fmt: skip


@dataclass(frozen=True)
class Mask(Fake):
    """And in its mask."""

    mask: str = choice({
        "codes": "asks of the codes as they are whether they lie on the grid",
        "limited": "asks of the codes already limited whether they lie on the grid, which all but NaN do",
    })  # fmt: skip
    ends: str = choice({
        "inside": "counts the ends of the grid as on it",
        "outside": "counts the ends of the grid as outside",
    })  # fmt: skip
    whole_dtype: str = choice({
        "accepted": "takes the grid of the dtype where none is given",
        "refused": "refuses a grid that is not given",
    })  # fmt: skip


def _arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    given = affine.affine_arguments(x, scale, zero, grid, block_size)
    return {"quant_dtype": given.pop("output_dtype")} | given


_SOURCE = "torchao.quantization.quant_primitives"
_EQUATION = r"\hat x = \mathrm{dequantize}(\mathrm{quantize}(x))"
_BASIS = AsComputed(dtype="quantize's for the code, the input's for its real")
_0_18, _0_11 = "torchao 0.18.0, measured on the CPU", "torchao 0.11.0, measured"


@formula(
    "torchao/fake_quantize_affine",
    equation=_EQUATION,
    basis=_BASIS,
    source=f"{_SOURCE}.fake_quantize_affine (_fake_quantize_affine in 0.18)",
    behaviour=Fake(),
    versions={
        "0.18": (Fake(division="reciprocal", float8="rounded", empty_zero_point="refused"), _0_18),
        "0.11": (Fake(division="reciprocal", subtraction="int32", empty_zero_point="refused"), _0_11),
    },
    affine=AffineView("torchao", "fake_quantize", _arguments),
)
def fake_quantize_affine(
    b: Fake,
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
        AssertionError, RuntimeError, TypeError: as ``quantize_affine``.
    """
    given = (input, block_size, scale, zero_point, quant_dtype, quant_min, quant_max, zero_point_domain)
    return _real_and_code(b, *given)[0]


@formula(
    "torchao/fake_quantize_affine_cachemask",
    equation=rf"{_EQUATION};\quad m = (q_{{min}} \le \lceil x / s \rfloor + z \le q_{{max}})",
    basis=_BASIS,
    source=f"{_SOURCE}.fake_quantize_affine_cachemask: the mask of outliers",
    behaviour=Mask(),
    versions={
        "0.18": (
            Mask(
                division="reciprocal", float8="rounded", empty_zero_point="refused", mask="limited",
                whole_dtype="refused", refusal="AssertionError",
            ),
            _0_18,
        ),
        "0.11": (
            Mask(
                division="reciprocal", subtraction="int32", empty_zero_point="refused", mask="limited",
                whole_dtype="refused", refusal="AssertionError",
            ),
            _0_11,
        ),
    },
)  # fmt: skip
def fake_quantize_affine_cachemask(
    b: Mask,
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
    given = (input, block_size, scale, zero_point, quant_dtype, quant_min, quant_max, zero_point_domain)
    real, q = _real_and_code(b, *given)
    if b.whole_dtype == "refused" and (quant_min is None or quant_max is None):
        msg = f"quant_min={quant_min}, quant_max={quant_max} is not accepted: the mask asks for both"
        raise TypeError(msg)
    low, high = limits(*code_range(quant_dtype, quant_min, quant_max), q.dtype)
    if b.mask == "limited":
        q = affine.clamp(q, low, high)
    return real, (q >= low) & (q <= high) if b.ends == "inside" else (q > low) & (q < high)


def _real_and_code(
    b: Fake,
    x: Array,
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    dtype: npt.DTypeLike,
    quant_min: int | None,
    quant_max: int | None,
    domain: str | None,
) -> tuple[Array, Array]:
    """The reals, and the codes that they are of before these are limited to the grid."""
    if domain not in ("INT", "FLOAT", "NONE"):
        msg = f"zero_point_domain={domain!r} is not accepted: give 'INT', 'FLOAT' or 'NONE'"
        raise ValueError(msg)
    if domain == "NONE" and zero_point is not None:
        msg = f"zero_point of shape {zero_point.shape} is not accepted in the NONE domain: give None"
        raise ValueError(msg) if b.refusal == "ValueError" else AssertionError(msg)
    qmin, qmax = code_range(dtype, quant_min, quant_max)
    check_reals(x)
    s = per_element("scale", scale, x.shape, block_size)
    with np.errstate(all="ignore"):
        if domain == "NONE":
            code = domains.none_code(b, x, s, dtype)
            q = affine.clamp(code, *limits(qmin, qmax, code.dtype))
            return domains.none_real(b, q, s, x.dtype), code
        z = per_element("zero_point", some(b.empty_zero_point, zero_point), x.shape, block_size)
        if domain == "INT":
            code = affine.int_code(b, x, s, z)
            q = affine.clamp(code, *limits(qmin, qmax, code.dtype))
            return affine.int_real(b, q, s, z, x.dtype), code
        code = domains.float_code(b, x, s, z, qmin, qmax, b.float_division)
        q = affine.clamp(code, *limits(qmin, qmax, code.dtype))
        return domains.float_real(b, q, s, z, qmin, qmax, x.dtype), code
