"""torchao: quantize and dequantize in the INT zero-point domain. Real per code, x̂ = (q - zero_point) * scale.

Scales and zero points have one entry per block, in any shape of that many. What the other domains share with this one
stands here too.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.reference.affine import held
from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.readings import Readings
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.torchao.granularity import per_element, some
from halfeven.reference.systems.torchao.storage import (
    check_codes,
    check_reals,
    code_range,
    dtype_of,
    is_float8,
    is_signed_below_8,
    limits,
    machine_integers,
)

__all__ = [
    "BEYOND",
    "COMPUTE",
    "DIVISION",
    "EMPTY_ZERO_POINT",
    "PRODUCT",
    "SUBTRACTION",
    "TORCHAO",
    "TORCHAO_0_18",
    "ZERO_POINT",
    "Codes",
    "Reals",
    "add",
    "affine_arguments",
    "clamp",
    "dequantize_affine",
    "int_code",
    "int_real",
    "kept",
    "multiply",
    "quantize_affine",
    "quotient",
    "stored",
    "subtract",
]

Words = Mapping[Any, str]

DIVISION: Words = {
    "divide": "divides by the scale",
    "reciprocal": "multiplies by the reciprocal of the scale, rounded to its dtype",
}  # fmt: skip
COMPUTE: Words = {
    "promoted": "computes codes in the dtype to which input and scale promote",
    "input": "computes codes in the input's dtype",
}  # fmt: skip
ZERO_POINT: Words = {
    "after-rounding": "adds the zero point to the rounded quotient",
    "before-rounding": "adds the zero point to the quotient, which it then rounds",
}  # fmt: skip
EMPTY_ZERO_POINT: Words = {
    "accepted": "takes a zero point without entries for an empty tensor",
    "refused": "takes a zero point without entries for none",
}  # fmt: skip
SUBTRACTION: Words = {
    "float": "subtracts the zero point in the dtype of the reals",
    "int32": "subtracts the zero point in int32, where the difference wraps",
}  # fmt: skip
PRODUCT: Words = {
    "promoted": "multiplies in the dtype to which reals and scale promote",
    "output": "rounds the scale to the dtype of the reals before it multiplies",
}  # fmt: skip
BEYOND: Words = {
    "kept": "keeps the value of codes beyond the grid",
    "limited": "limits codes to the grid before it dequantizes them",
}  # fmt: skip


@dataclass(frozen=True)
class Codes(Behaviour):
    """What implementations do differently where they make codes, in any domain."""

    division: str = choice(DIVISION)
    rounding: str = roundings("the quotient")
    compute: str = choice(COMPUTE)
    nan: str = choice({
        "refused": "refuses NaN among integer codes",
        "least": "converts NaN to the least int32, of which narrower codes have the lowest bits",
    })  # fmt: skip
    ends: str = choice({
        "kept": "keeps to an end of the grid that the arithmetic rounds outward",
        "wrapped": "converts an end of the grid that the arithmetic rounds past the integers, which wraps",
    })  # fmt: skip
    signed: str = choice({
        "held": "holds signed codes below 8 bits in int8",
        "refused": "refuses signed codes below 8 bits",
    })  # fmt: skip


@dataclass(frozen=True)
class IntCodes(Codes):
    """And in the INT domain."""

    zero_point: str = choice(ZERO_POINT)
    empty_zero_point: str = choice(EMPTY_ZERO_POINT)


@dataclass(frozen=True)
class Reals(Behaviour):
    """What implementations do differently where they make reals of codes, in any domain."""

    product: str = choice(PRODUCT)
    beyond: str = choice(BEYOND)


@dataclass(frozen=True)
class IntReals(Reals):
    """And in the INT domain."""

    subtraction: str = choice(SUBTRACTION)


def quotient(division: str, x: Array, s: Array) -> Array:
    """The input over the scale."""
    if division == "reciprocal":
        return multiply(x, np.ones((), s.dtype) / s)
    return np.asarray(x.astype(_common(x, s)) / s)


def int_code(b: Any, x: Array, s: Array, z: Array) -> Array:
    """INT: a code as a float, not yet limited to the grid. Every array has one entry per element."""
    v = quotient(b.division, x, s if b.compute == "promoted" else s.astype(x.dtype))
    rounded = ROUNDINGS[b.rounding]
    return add(rounded(v), z) if b.zero_point == "after-rounding" else rounded(add(v, z))


def int_real(b: Any, q: Array, s: Array, z: Array | None, dtype: "np.dtype[Any]") -> Array:
    """INT: code less zero point, in the output's dtype, times the scale."""
    if b.subtraction == "int32":
        q, z = machine_integers(q, "int32"), None if z is None else machine_integers(z, "int32")
        steps = (q if z is None else q - z).astype(dtype)
    else:
        steps = q.astype(dtype) if z is None else q.astype(dtype) - z.astype(dtype)
    return multiply(steps, s if b.product == "promoted" else s.astype(dtype)).astype(dtype)


def clamp(q: Array, low: Array, high: Array) -> Array:
    """``q`` limited to the grid; NaN stays."""
    return np.where(q < low, low, np.where(q > high, high, q))


def stored(b: Codes, q: Array, dtype: npt.DTypeLike, qmin: float, qmax: float) -> Array:
    """Codes held as floats, limited to the grid, in the dtype asked for.

    Raises:
        ValueError: a code is NaN; what an integer type makes of it no document says.
        NotImplementedError: the codes are signed and below 8 bits, and that is not offered.
    """
    q = clamp(q, *limits(qmin, qmax, q.dtype))
    if b.signed == "refused" and is_signed_below_8(dtype):
        msg = f"output_dtype={dtype!r} is not accepted: give int8 with quant_min and quant_max"
        raise NotImplementedError(msg)
    if is_float8(dtype):
        return q.astype(dtype_of(dtype))
    if b.nan == "refused" and np.isnan(q).any():
        msg = "NaN among the codes is not accepted: no integer stands for it"
        raise ValueError(msg)
    return machine_integers(np.clip(q.astype(np.float64), qmin, qmax) if b.ends == "kept" else q, dtype)


def kept(b: Reals, q: Array, qmin: float, qmax: float) -> Array:
    """The codes that are dequantized."""
    return q if b.beyond == "kept" else np.clip(q.astype(np.float64), qmin, qmax)


def add(x: Array, y: Array) -> Array:
    """The sum, in the dtype to which two promote."""
    return np.asarray(x + y.astype(_common(x, y)))


def subtract(x: Array, y: Array) -> Array:
    """The difference, likewise."""
    return np.asarray(x.astype(_common(x, y)) - y)


def multiply(x: Array, y: Array) -> Array:
    """The product, likewise."""
    return np.asarray(x.astype(_common(x, y)) * y)


def _common(x: Array, y: Array) -> "np.dtype[Any]":
    """The dtype to which two promote: an integer to the other's float, two 16-bit floats to float32."""
    first, *rest = {p.dtype for p in (x, y) if p.dtype.kind not in "iu"}
    if not rest:
        return first
    return np.promote_types(np.promote_types(first, np.float32), rest[0])


_MODEL = EvaluationModel(compute="promoted", product="promoted")

TORCHAO = Profile(
    name="torchao",
    title="clamp(round(x / s) + zero_point, qmin, qmax); (q - zero_point) * s",
    source="torchao: torchao.quantization.quant_primitives, ZeroPointDomain.INT",
    model=_MODEL,
    dtypes=("float32", "float16", "bfloat16"),
    bits=(1, 32),
    within=Grid.from_dtype(np.int32),
    readings=Readings(
        "the document says what quantizing adds, and not in which arithmetic dequantizing subtracts the zero point",
        (replace(_MODEL, subtract="int32"),),
    ),
)

TORCHAO_0_18 = replace(
    TORCHAO,
    name="torchao@0.18",
    title="clamp(round(x * (1 / s)) + zero_point, qmin, qmax); (q - zero_point) * s",
    source="torchao 0.18.0, measured on the CPU",
    model=replace(_MODEL, division="reciprocal", ends="rounded"),
    readings=None,
)


_SOURCE = "torchao.quantization.quant_primitives"
_HELD = ("int8", "uint8", "int16", "int32")


def _whole(block_size: BlockSize | None, shape: Shape) -> BlockSize:
    """The blocks, of which one of a whole dimension says its length."""
    whole = tuple(min(n, b) if n else b for n, b in zip(shape, block_size or shape, strict=True))
    if any(b and n % b for n, b in zip(shape, whole, strict=True)):
        msg = f"block_size={block_size} of shape {shape} is not accepted: the function cuts no short blocks"
        raise ValueError(msg)
    return whole


def affine_arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    """The arguments of ``quantize_affine`` for a tensor on a grid.

    Raises:
        ValueError: there is no parameter: releases take a zero point without entries for none at all; or a block is
            short.
    """
    if not zero.size:
        msg = f"zero_point of shape {zero.shape} is not accepted: give one per block, and no empty one"
        raise ValueError(msg)
    blocks = _whole(block_size, x.shape)
    ends = {"output_dtype": held(grid, _HELD), "quant_min": grid.qmin, "quant_max": grid.qmax}
    return {"input": x, "block_size": blocks, "scale": scale, "zero_point": zero} | ends


def _dequantize_arguments(
    q: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, dtype: "np.dtype[Any]"
) -> dict[str, Any]:
    blocks, codes = _whole(block_size, q.shape), held(grid, _HELD)
    dtypes = {"input_dtype": codes, "output_dtype": dtype.name}
    return {"input": q.astype(codes), "block_size": blocks, "scale": scale, "zero_point": zero} | dtypes


@formula(
    "torchao/quantize_affine",
    equation=r"q = \mathrm{clamp}(\lceil x / s \rfloor + z,\ q_{min},\ q_{max})",
    basis=AsComputed(dtype="the one that the input and the scale promote to"),
    source=f"{_SOURCE}.quantize_affine; AffineQuantizedTensor.from_hp_to_intx_static, ZeroPointDomain.INT",
    behaviour=IntCodes(),
    versions={
        "0.18": (
            IntCodes(division="reciprocal", nan="least", ends="wrapped", signed="refused", empty_zero_point="refused"),
            "torchao 0.18.0, measured on the CPU",
        )
    },
    affine=AffineView("torchao", "quantize", affine_arguments),
)
def quantize_affine(
    b: IntCodes,
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    output_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
) -> Array:
    """Integer codes of ``input``; those of fewer than 8 bits lie in 8.

    Args:
        input: float32, float16 or bfloat16 of any shape.
        block_size: elements per block along each dimension; the whole shape is per tensor.
        scale: real per code.
        zero_point: the code of 0; a float is added as it is, and the sum cut to an integer (measured).
        output_dtype: int1 to int8, uint1 to uint8, int16 or int32, whose range is the grid where none is given.
        quant_min: the least code.
        quant_max: the greatest code.

    Raises:
        ValueError: there are no codes of ``output_dtype``, or a code is NaN, for which no document has an integer.
        AssertionError: the grid leaves that dtype's range, ``input`` has another dtype, or the blocks do not fit.
        RuntimeError: a parameter has not one entry per block, or float16 does not hold the grid's ends (measured).
        TypeError: there is no zero point.
    """
    qmin, qmax = code_range(output_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = per_element("zero_point", some(b.empty_zero_point, zero_point), input.shape, block_size)
    with np.errstate(all="ignore"):
        return stored(b, int_code(b, input, s, z), output_dtype, qmin, qmax)


@formula(
    "torchao/dequantize_affine",
    equation=r"\hat x = (q - z) * s",
    basis=AsComputed(dtype="the output's for the difference, its promotion with the scale's for the product"),
    source=f"{_SOURCE}.dequantize_affine; AffineQuantizedTensor.dequantize, ZeroPointDomain.INT",
    behaviour=IntReals(),
    versions={
        "0.11": (
            IntReals(subtraction="int32"),
            "torchao 0.11.0, measured; torchao.quantization.pt2e of 0.18.0 still computes so",
        )
    },
    affine=AffineView("torchao", "dequantize", _dequantize_arguments),
)
def dequantize_affine(
    b: IntReals,
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    input_dtype: npt.DTypeLike,
    quant_min: float | None = None,
    quant_max: float | None = None,
    *,
    output_dtype: npt.DTypeLike = "float32",
) -> Array:
    """Reals of integer codes; those of 32 bits become bfloat16 by way of float32, which rounds twice (measured).

    Args:
        input: codes, of ``input_dtype``; of any integer dtype where that is unsigned and below 8 bits (measured).
        block_size: elements per block along each dimension.
        scale: real per code.
        zero_point: the code of 0; absent, none is subtracted (measured).
        input_dtype: the dtype of the codes.
        quant_min: the least code; checked, and codes beyond it keep their value (measured).
        quant_max: the greatest code, likewise.
        output_dtype: float32, float16 or bfloat16.

    Raises:
        AssertionError: the codes have another dtype, the grid leaves it, ``output_dtype`` is another, or the blocks
            do not fit.
        ValueError: there are no codes of ``input_dtype``.
        RuntimeError: a parameter has not one entry per block.
    """
    check_codes(input, input_dtype, output_dtype)
    q = kept(b, input, *code_range(input_dtype, quant_min, quant_max))
    s = per_element("scale", scale, input.shape, block_size)
    z = None if zero_point is None else per_element("zero_point", zero_point, input.shape, block_size)
    with np.errstate(all="ignore"):
        return int_real(b, q, s, z, dtype_of(output_dtype))
