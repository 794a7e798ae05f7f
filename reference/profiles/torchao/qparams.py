"""torchao: how a scale and a zero point are chosen from the extremes of a block. x̂ = (q - zero_point) * scale."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.granularity import get_reduction_params
from halfeven.reference.profiles.torchao.storage import code_range, dtype_of, limits, machine_integers

__all__ = [
    "choose_qparams_affine",
    "choose_qparams_affine_0_18",
    "choose_qparams_affine_with_min_max",
    "choose_qparams_affine_with_min_max_0_18",
]

_BASIS = AsComputed(dtype="the input's; where a Python number takes part, float32 rounded to it")
_SOURCE = "torchao.quantization.quant_primitives"
_EQUATION = (
    r"s = \max(\epsilon, \tfrac{\max(-x_{min}, x_{max})}{(q_{max}-q_{min})/2})"
    r"\ \text{or}\ \max(\tfrac{x_{min}}{q_{min}}, \tfrac{x_{max}}{q_{max}})"
    r"\ \text{or}\ \tfrac{x_{max}-x_{min}}{q_{max}-q_{min}};\quad "
    r"z = \mathrm{clamp}(q_{min} - \lceil x_{min}/s \rfloor,\ q_{min},\ q_{max})"
)


@formula(
    "torchao.choose_qparams_affine_with_min_max",
    equation=_EQUATION,
    basis=_BASIS,
    source=f"{_SOURCE}.choose_qparams_affine_with_min_max, MappingType, ZeroPointDomain",
)
def choose_qparams_affine_with_min_max(
    min_val: Array,
    max_val: Array,
    mapping_type: str,
    block_size: BlockSize,  # noqa: ARG001 - in the signature only
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
) -> tuple[Array, Array | None]:
    """Scale and zero point of blocks whose extremes are known.

    Args:
        min_val: the least element of each block, float of any shape.
        max_val: the greatest, of the same dtype and shape.
        mapping_type: SYMMETRIC, SYMMETRIC_NO_CLIPPING_ERR or ASYMMETRIC.
        block_size: not read: the extremes are those of the blocks already.
        target_dtype: int1 to int8, uint1 to uint8, int16, int32, or a float8, whose range is the default grid.
        quant_min: the least code.
        quant_max: the greatest code. That it lies above ``quant_min`` is not asked (measured).
        eps: the least scale, in reals; absent, the machine epsilon of the input's dtype.
        scale_dtype: what the scale is rounded to at the end; absent, the input's.
        zero_point_dtype: what the zero point is converted to, toward zero and wrapping; absent, int32 for an
            asymmetric mapping in the INT domain, else the input's (measured).
        preserve_zero: whether 0 gets a code of its own: the extremes are then drawn out to 0.
        zero_point_domain: INT, FLOAT (a real, the value of the middle code) or NONE (no zero point).

    Returns:
        The scale, and the zero point or None, both of the shape of ``min_val``.

    Raises:
        ValueError: an unknown ``target_dtype``; a symmetric mapping with ``preserve_zero=False`` or in the FLOAT
            domain; or an integer zero point of NaN, for which no document has an integer.
        AssertionError: the grid leaves ``target_dtype``, dtypes of the extremes differ, or an unknown mapping.
        TypeError: ``min_val`` is not float.
        RuntimeError: float16 does not hold the ends of the grid (measured).
    """
    qmin, qmax = code_range(target_dtype, quant_min, quant_max)
    _check(mapping_type, min_val, max_val)
    dtype = min_val.dtype
    eps = float(_info(min_val).eps) if eps is None else eps
    with np.errstate(all="ignore"):
        zero = np.zeros((), dtype)
        low, high = (np.minimum(min_val, zero), np.maximum(max_val, zero)) if preserve_zero else (min_val, max_val)
        match mapping_type:
            case "SYMMETRIC":
                scale = _divide(np.maximum(-low, high), float(qmax - qmin) / 2)
            case "SYMMETRIC_NO_CLIPPING_ERR":
                smin, smax = _divide(low, float(qmin)), _divide(high, float(qmax))
                scale = np.where(smin > smax, smin, smax)
            case _:
                scale = _divide(high - low, float(qmax - qmin))
        scale = np.maximum(scale, np.asarray(eps, dtype))  # NaN stays
        point: Array | None = None
        if mapping_type != "ASYMMETRIC" and (not preserve_zero or zero_point_domain == "FLOAT"):
            msg = (
                f"preserve_zero={preserve_zero}, zero_point_domain={zero_point_domain!r} is not accepted with "
                f"mapping_type={mapping_type!r}: a symmetric mapping keeps zero, and has no zero point in reals"
            )
            raise ValueError(msg)
        if zero_point_domain == "INT" and mapping_type != "ASYMMETRIC":
            point = np.full(scale.shape, limits(qmin, int((qmax + qmin + 1) / 2), dtype)[1])
        elif zero_point_domain == "INT":
            first, last = limits(qmin, qmax, dtype)
            point = _wide(qmin, dtype) - np.rint(low / scale).astype(_wide(0, dtype).dtype)
            point = np.minimum(np.maximum(point.astype(dtype), first), last)
        elif zero_point_domain == "FLOAT":
            middle = scale.astype(_wide(0, dtype).dtype) * _wide((qmax + qmin + 1) / 2, dtype)
            point = low + middle.astype(dtype)
        own = "int32" if (mapping_type, zero_point_domain) == ("ASYMMETRIC", "INT") else dtype.name
        return scale.astype(dtype_of(scale_dtype or dtype)), _as(point, zero_point_dtype or own)


@formula("torchao.choose_qparams_affine", equation=_EQUATION, basis=_BASIS, source=f"{_SOURCE}.choose_qparams_affine")
def choose_qparams_affine(
    input: Array,  # noqa: A002 - the document's own word
    mapping_type: str,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    """Scale and zero point of each block of ``input``, from its least and its greatest element.

    Args:
        input: float of any shape.
        mapping_type: as in ``choose_qparams_affine_with_min_max``, like what is not said here.
        block_size: elements per block along each dimension.
        target_dtype: the dtype of the codes.
        quant_min: the least code.
        quant_max: the greatest code.
        eps: the least scale.
        scale_dtype: the scale's dtype.
        zero_point_dtype: the zero point's.
        preserve_zero: whether 0 gets a code of its own.
        zero_point_domain: INT, FLOAT or NONE.
        keepdim: one entry per block along every dimension; otherwise a dimension that is one block is dropped,
            unless its block is 1.

    Raises:
        AssertionError: also where ``block_size`` does not fit.
        IndexError: a block is empty.
        RuntimeError: also where ``keepdim`` meets an entry of the block below 1 (measured).
        ValueError, TypeError: as for the extremes.
    """
    code_range(target_dtype, quant_min, quant_max)
    whole, reduced = get_reduction_params(block_size, input.shape)
    if any(whole[d] == 0 for d in reduced):
        msg = f"input of shape {input.shape} is not accepted: a block of {block_size} is empty and has no extremes"
        raise IndexError(msg)
    low, high = (f(input.reshape(whole), axis=reduced, keepdims=keepdim) for f in (np.min, np.max))
    scale, zero_point = choose_qparams_affine_with_min_max(
        low, high, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, zero_point_domain,
    )  # fmt: skip
    if keepdim:
        if any(b < 1 for b in block_size):
            msg = f"block_size={block_size} is not accepted with keepdim=True: give entries of 1 or more"
            raise RuntimeError(msg)
        kept = tuple(n // b for n, b in zip(input.shape, block_size, strict=True))
        return scale.reshape(kept), None if zero_point is None else zero_point.reshape(kept)
    return scale, zero_point


@formula(
    "torchao.choose_qparams_affine_with_min_max@0.18",
    equation=_EQUATION,
    basis=_BASIS,
    source="torchao 0.18.0, measured on the CPU",
)
def choose_qparams_affine_with_min_max_0_18(
    min_val: Array,
    max_val: Array,
    mapping_type: str,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
) -> tuple[Array, Array | None]:
    """As documented, but ``eps`` is the least normal number where absent, and a NaN zero point the least int32."""
    eps = float(_info(min_val).smallest_normal) if eps is None else eps
    scale, point = choose_qparams_affine_with_min_max(
        min_val, max_val, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, min_val.dtype.name, preserve_zero, zero_point_domain,
    )  # fmt: skip
    if zero_point_dtype is None and mapping_type == "ASYMMETRIC" and zero_point_domain == "INT":
        zero_point_dtype = "int32"
    return scale, _machine(point, zero_point_dtype)


@formula(
    "torchao.choose_qparams_affine@0.18",
    equation=_EQUATION,
    basis=_BASIS,
    source="torchao 0.18.0, measured on the CPU: choose_qparams_affine, _choose_qparams_affine_tinygemm (FLOAT) and "
    "_choose_qparams_affine_dont_preserve_zero",
)
def choose_qparams_affine_0_18(
    input: Array,  # noqa: A002 - the document's own word
    mapping_type: str,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = "int32",
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    """As documented, but for the defaults of ``eps`` and ``zero_point_dtype``, NaN, and blocks of one element.

    Blocks of 1 along every dimension reduce the whole tensor to a single entry (measured).

    Raises:
        AssertionError: also for a symmetric mapping with ``preserve_zero=False`` or in the FLOAT domain.
        RuntimeError: also for blocks of 1 of an empty tensor, or of several elements with ``keepdim``.
    """
    if mapping_type != "ASYMMETRIC" and (not preserve_zero or zero_point_domain == "FLOAT"):
        msg = f"mapping_type={mapping_type!r} is not accepted without a zero that is kept: give 'ASYMMETRIC'"
        raise AssertionError(msg)
    if block_size and all(b == 1 for b in block_size) and len(block_size) == input.ndim:
        if input.size == 0 or (keepdim and input.size > 1):
            msg = f"block_size={block_size} is not accepted for shape {input.shape}: no dimension is reduced"
            raise RuntimeError(msg)
        if not keepdim:
            input, block_size = input.reshape(-1), (input.size,)  # noqa: A001 - as above
            input, block_size = (input[0], ()) if input.size == 1 else (input, block_size)  # noqa: A001 - as above
    eps = float(_info(input).smallest_normal) if eps is None else eps
    scale, point = choose_qparams_affine(
        input, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, input.dtype.name, preserve_zero, zero_point_domain, keepdim,
    )  # fmt: skip
    if zero_point_dtype is None and mapping_type == "ASYMMETRIC" and zero_point_domain == "INT":
        zero_point_dtype = "int32"
    return scale, _machine(point, zero_point_dtype)


def _check(mapping_type: str, min_val: Array, max_val: Array) -> None:
    accepted = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")
    if mapping_type not in accepted:
        msg = f"mapping_type={mapping_type!r} is not accepted: give one of {', '.join(accepted)}"
        raise AssertionError(msg)
    if min_val.dtype != max_val.dtype:
        msg = f"min_val of {min_val.dtype} and max_val of {max_val.dtype} are not accepted: give them one dtype"
        raise AssertionError(msg)


def _wide(number: float, dtype: "np.dtype[Any]") -> Array:
    """A Python number as torch takes it into the arithmetic: in float32 beside the 16-bit types."""
    return np.asarray(number, np.promote_types(dtype, np.float32))


def _divide(x: Array, number: float) -> Array:
    """``x`` over a Python number, the quotient rounded to ``x``'s dtype."""
    return np.asarray(x.astype(_wide(0, x.dtype).dtype) / _wide(number, x.dtype)).astype(x.dtype)


def _as(point: Array | None, dtype: str) -> Array | None:
    if point is None or dtype_of(dtype).kind not in "iu":
        return None if point is None else point.astype(dtype_of(dtype))
    if np.isnan(point).any():
        msg = f"NaN among the zero points is not accepted: no {dtype} stands for it"
        raise ValueError(msg)
    return machine_integers(point, dtype)


def _machine(point: Array | None, dtype: str | None) -> Array | None:
    if point is None or dtype is None:
        return point
    return machine_integers(point, dtype) if dtype_of(dtype).kind in "iu" else point.astype(dtype_of(dtype))


def _info(x: Array) -> Any:
    if x.dtype.name not in ("float64", "float32", "float16", "bfloat16"):
        msg = f"dtype {x.dtype} is not accepted: give float64, float32, float16 or bfloat16"
        raise TypeError(msg)
    return ml_dtypes.finfo(x.dtype)  # type: ignore[no-untyped-call]
