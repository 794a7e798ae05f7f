"""torchao: how a scale and a zero point are chosen from the extremes of a block. x̂ = (q - zero_point) * scale."""

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.torchao.granularity import get_reduction_params
from halfeven.reference.systems.torchao.storage import code_range, dtype_of, is_float8, limits, machine_integers

__all__ = [
    "AS_0_11",
    "AS_0_17",
    "Choosing",
    "ChoosingByBlock",
    "choose_qparams_affine",
    "choose_qparams_affine_with_min_max",
]


@dataclass(frozen=True)
class Choosing(Behaviour):
    """What implementations do differently where they choose parameters for given extremes."""

    eps: str = choice({
        "machine": "takes the machine epsilon of the input's dtype as the least scale",
        "smallest-normal": "takes the least normal number of the input's dtype as the least scale",
        "float32": "takes the machine epsilon of float32 as the least scale of every dtype",
        "none": "has no least scale of its own",
    })  # fmt: skip
    division: str = choice({
        "divide": "divides the range by the steps of the grid",
        "reciprocal": "multiplies the range by the rounded reciprocal of the steps of the grid",
    })  # fmt: skip
    steps: str = choice({
        "between": "counts the steps between the codes of the grid",
        "codes": "counts the codes of the grid for its steps",
    })  # fmt: skip
    symmetric: str = choice({
        "half-steps": "puts the larger magnitude at half the steps of the grid",
        "greatest": "puts the larger magnitude at quant_max",
    })  # fmt: skip
    quotient: str = choice({
        "divide": "divides the least element by the scale for the zero point",
        "reciprocal": "multiplies the least element by the rounded reciprocal of the scale for the zero point",
    })  # fmt: skip
    rounding: str = roundings("the zero point")
    middle: str = choice({
        "grid": "takes the middle of the grid as the zero point of a symmetric mapping",
        "zero": "takes 0 as the zero point of a symmetric mapping",
    })  # fmt: skip
    nan: str = choice({
        "refused": "refuses an integer zero point of NaN",
        "least": "converts a zero point of NaN to the least integer",
    })  # fmt: skip
    asymmetric_dtype: str = choice({
        "int32": "gives an asymmetric zero point as int32 where no dtype is asked for",
        "input": "gives an asymmetric zero point in the input's dtype where none is asked for",
    })  # fmt: skip
    refusal: str = choice({
        "ValueError": "refuses a symmetric mapping without a zero that is kept by a ValueError",
        "AssertionError": "refuses a symmetric mapping without a zero that is kept by an AssertionError",
    })  # fmt: skip


@dataclass(frozen=True)
class ChoosingByBlock(Choosing):
    """And what they do differently where they find the extremes of the blocks."""

    default_dtype: str | None = choice({
        None: "takes None for the dtype of the zero point where it is not given",
        "int32": "takes int32 for the dtype of an integer zero point where it is not given",
    })  # fmt: skip
    keepdim: str = choice({
        "blocks": "keeps one entry per block along each dimension with keepdim",
        "reduction": "keeps the shape of the reduction with keepdim, in which a dimension in blocks is two",
        "absent": "has no keepdim",
    })  # fmt: skip
    blocks_of_one: str = choice({
        "each": "gives each element a scale of its own where every block is one element",
        "all": "gives the whole tensor one scale where every block is one element",
    })  # fmt: skip
    float8: str = choice({
        "any": "maps to a float8 in any way",
        "symmetric": "refuses to map to a float8 but symmetrically",
    })  # fmt: skip


AS_0_11 = ChoosingByBlock(nan="least", keepdim="absent", blocks_of_one="all", float8="symmetric")
_AS_0_15 = ChoosingByBlock(
    nan="least", refusal="AssertionError", default_dtype="int32", keepdim="reduction", blocks_of_one="all"
)
AS_0_17 = replace(_AS_0_15, keepdim="blocks")
_AS_0_18 = replace(AS_0_17, eps="smallest-normal")

_BASIS = AsComputed(dtype="the input's; where a Python number takes part, float32 rounded to it")
_SOURCE = "torchao.quantization.quant_primitives"
_MEASURED = "torchao 0.18.0, measured on the CPU"
_BY_DOMAIN = (
    "choose_qparams_affine, _choose_qparams_affine_tinygemm (FLOAT) and _choose_qparams_affine_dont_preserve_zero"
)
_EQUATION = (
    r"s = \max(\epsilon, \tfrac{\max(-x_{min}, x_{max})}{(q_{max}-q_{min})/2})"
    r"\ \text{or}\ \max(\tfrac{x_{min}}{q_{min}}, \tfrac{x_{max}}{q_{max}})"
    r"\ \text{or}\ \tfrac{x_{max}-x_{min}}{q_{max}-q_{min}};\quad "
    r"z = \mathrm{clamp}(q_{min} - \lceil x_{min}/s \rfloor,\ q_{min},\ q_{max})"
)
_MAPPINGS = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")
_NOT_GIVEN = "default"


@formula(
    "torchao/choose_qparams_affine_with_min_max",
    equation=_EQUATION,
    basis=_BASIS,
    source=f"{_SOURCE}.choose_qparams_affine_with_min_max, MappingType, ZeroPointDomain",
    behaviour=Choosing(),
    versions={
        "0.18": (Choosing(eps="smallest-normal", nan="least"), _MEASURED),
        "0.17": (Choosing(nan="least"), "torchao 0.17.0, measured on the CPU; 0.15.0 is the same"),
    },
)
def choose_qparams_affine_with_min_max(
    b: Choosing,
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
        zero_point_dtype: what the zero point is converted to, toward zero and wrapping; None stands for int32 with an
            asymmetric mapping in the INT domain, else for the input's (measured).
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
    _check_extremes(mapping_type, min_val, max_val)
    if mapping_type != "ASYMMETRIC" and (not preserve_zero or zero_point_domain == "FLOAT"):
        _refuse_without_zero(b, mapping_type, preserve_zero, zero_point_domain)
    dtype = min_val.dtype
    zero = np.zeros((), dtype)
    with np.errstate(all="ignore"):
        low, high = (np.minimum(min_val, zero), np.maximum(max_val, zero)) if preserve_zero else (min_val, max_val)
        scale = _scale(b, mapping_type, low, high, qmin, qmax)
        least = _least_scale(b, dtype)
        if eps is not None or least is not None:
            scale = np.maximum(scale, np.asarray(least if eps is None else eps, dtype))  # NaN stays
        point, own = None, dtype.name
        if zero_point_domain == "FLOAT":
            middle = _with_number(scale) * np.float32((qmax + qmin + 1) / 2)
            point = low + middle.astype(dtype)
        elif zero_point_domain == "INT" and mapping_type == "ASYMMETRIC":
            first, last = limits(qmin, qmax, dtype)
            quotient = low / scale if b.quotient == "divide" else low * (np.ones((), dtype) / scale)
            point = np.minimum(np.maximum(first - ROUNDINGS[b.rounding](quotient), first), last)
            own = "int32" if b.asymmetric_dtype == "int32" else own
        elif zero_point_domain == "INT":
            middle_code = int((qmax + qmin + 1) / 2) if b.middle == "grid" else 0
            point = np.full(scale.shape, limits(qmin, middle_code, dtype)[1])
        return scale.astype(dtype_of(scale_dtype or dtype)), _as(b, point, zero_point_dtype or own)


@formula(
    "torchao/choose_qparams_affine",
    equation=_EQUATION,
    basis=_BASIS,
    source=f"{_SOURCE}.choose_qparams_affine",
    behaviour=ChoosingByBlock(),
    versions={
        "0.18": (_AS_0_18, f"{_MEASURED}: {_BY_DOMAIN}"),
        "0.11": (AS_0_11, "torchao 0.11.0, measured on the CPU"),
        "0.17": (AS_0_17, f"torchao 0.17.0, measured on the CPU: {_BY_DOMAIN}"),
        "0.15": (_AS_0_15, "torchao 0.15.0, measured on the CPU"),
        "pt2e-0.18": (
            replace(AS_0_11, asymmetric_dtype="input"),
            f"{_MEASURED}: torchao.quantization.pt2e, which keeps a copy of an earlier release",
        ),
    },
)
def choose_qparams_affine(
    b: ChoosingByBlock,
    input: Array,  # noqa: A002 - the document's own word
    mapping_type: str,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = _NOT_GIVEN,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    """Scale and zero point of each block of ``input``, from its least and its greatest element.

    Arguments and errors that are not said here are as in ``choose_qparams_affine_with_min_max``.

    Args:
        input: float of any shape.
        mapping_type: as there, and so on.
        block_size: elements per block along each dimension.
        target_dtype: the dtype of the codes.
        quant_min: the least code.
        quant_max: the greatest code.
        eps: the least scale.
        scale_dtype: the scale's dtype.
        zero_point_dtype: the zero point's, or None; where it is not given the document takes None.
        preserve_zero: whether 0 gets a code of its own.
        zero_point_domain: INT, FLOAT or NONE.
        keepdim: one entry per block along every dimension; otherwise a dimension that is one block is dropped,
            unless its block is 1.

    Raises:
        AssertionError: also where ``block_size`` does not fit.
        IndexError: a block is empty.
        RuntimeError: also where the entries that ``keepdim`` asks for are not as many as the blocks (measured).
        ZeroDivisionError: ``keepdim`` meets a block of 0 (measured).
    """
    if keepdim and b.keepdim == "absent":
        msg = "keepdim=True is not accepted: give False, or nothing"
        raise TypeError(msg)
    if b.float8 == "symmetric" and is_float8(target_dtype) and mapping_type != "SYMMETRIC":
        msg = f"mapping_type={mapping_type!r} is not accepted with {target_dtype}: give 'SYMMETRIC'"
        raise AssertionError(msg)
    whole, reduced = get_reduction_params(block_size, input.shape)
    empty: type[Exception] = IndexError
    if b.blocks_of_one == "all" and not reduced:  # a list of no dimensions stands for every one of them
        reduced, empty = tuple(range(len(whole))), RuntimeError
    if any(whole[d] == 0 for d in reduced):
        msg = f"input of shape {input.shape} is not accepted: a block of {block_size} is empty and has no extremes"
        raise empty(msg)
    if zero_point_dtype == _NOT_GIVEN:
        zero_point_dtype = None if zero_point_domain == "FLOAT" else b.default_dtype
    low, high = (f(input.reshape(whole), axis=reduced, keepdims=keepdim) for f in (np.min, np.max))
    scale, zero_point = choose_qparams_affine_with_min_max(
        b, low, high, mapping_type, block_size, target_dtype, quant_min, quant_max, eps, scale_dtype,
        zero_point_dtype, preserve_zero, zero_point_domain,
    )  # fmt: skip
    if not keepdim or b.keepdim == "reduction":
        return scale, zero_point
    kept = _entries(input.shape, block_size, scale.size)
    return scale.reshape(kept), None if zero_point is None else zero_point.reshape(kept)


def _entries(shape: Shape, block_size: BlockSize, size: int) -> Shape:
    """The blocks along each dimension, which have to be ``size`` in all; a -1 stands for what is left (measured)."""
    if 0 in block_size:
        msg = f"block_size={block_size} is not accepted with keepdim=True: give no entry of 0"
        raise ZeroDivisionError(msg)
    kept = tuple(n // b for n, b in zip(shape, block_size, strict=True))
    rest = int(np.prod([k for k in kept if k != -1], dtype=int))
    if kept.count(-1) == 1 and rest > 0:
        kept = tuple(size // rest if k == -1 else k for k in kept)
    if any(k < 0 for k in kept) or np.prod(kept, dtype=int) != size:
        msg = f"block_size={block_size} is not accepted with keepdim=True: shape {shape} has {size} blocks"
        raise RuntimeError(msg)
    return kept


def _scale(b: Choosing, mapping_type: str, low: Array, high: Array, qmin: float, qmax: float) -> Array:
    """The scale of a mapping, before it is limited."""
    steps = qmax - qmin if b.steps == "between" else qmax - qmin + 1
    match mapping_type:
        case "SYMMETRIC":
            return _over(b, np.maximum(-low, high), steps / 2 if b.symmetric == "half-steps" else qmax)
        case "SYMMETRIC_NO_CLIPPING_ERR":
            smin, smax = _over(b, low, qmin), _over(b, high, qmax)
            return np.where(smin > smax, smin, smax)
        case _:
            return _over(b, high - low, steps)


def _over(b: Choosing, x: Array, number: float) -> Array:
    """``x`` over a Python number, the quotient rounded to ``x``'s dtype."""
    wide = _with_number(x)
    divisor = np.asarray(number, wide.dtype)
    quotient = wide / divisor if b.division == "divide" else wide * (np.ones((), wide.dtype) / divisor)
    return np.asarray(quotient).astype(x.dtype)


def _with_number(x: Array) -> Array:
    """``x`` as torch takes it into arithmetic with a Python number: the 16-bit types in float32."""
    return x.astype(np.promote_types(x.dtype, np.float32))


def _least_scale(b: Choosing, dtype: "np.dtype[Any]") -> float | None:
    if dtype.name not in ("float64", "float32", "float16", "bfloat16"):
        msg = f"dtype {dtype} is not accepted: give float64, float32, float16 or bfloat16"
        raise TypeError(msg)
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    values = {"machine": float(info.eps), "smallest-normal": float(info.smallest_normal), "float32": 2.0**-23}
    return values.get(b.eps)


def _check_extremes(mapping_type: str, min_val: Array, max_val: Array) -> None:
    if mapping_type not in _MAPPINGS:
        msg = f"mapping_type={mapping_type!r} is not accepted: give one of {', '.join(_MAPPINGS)}"
        raise AssertionError(msg)
    if min_val.dtype != max_val.dtype:
        msg = f"min_val of {min_val.dtype} and max_val of {max_val.dtype} are not accepted: give them one dtype"
        raise AssertionError(msg)


def _refuse_without_zero(b: Choosing, mapping_type: str, preserve_zero: bool, domain: str) -> None:
    msg = (
        f"preserve_zero={preserve_zero}, zero_point_domain={domain!r} is not accepted with "
        f"mapping_type={mapping_type!r}: a symmetric mapping keeps zero, and has no zero point in reals"
    )
    raise ValueError(msg) if b.refusal == "ValueError" else AssertionError(msg)


def _as(b: Choosing, point: Array | None, dtype: str) -> Array | None:
    if point is None or dtype_of(dtype).kind not in "iu":
        return None if point is None else point.astype(dtype_of(dtype))
    if b.nan == "refused" and np.isnan(point).any():
        msg = f"NaN among the zero points is not accepted: no {dtype} stands for it"
        raise ValueError(msg)
    return machine_integers(point, dtype)
