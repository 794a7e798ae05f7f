"""torchao: float8 with a scale per block. Real per code: x̂ = q * scale."""

from dataclasses import dataclass
from math import isqrt

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, FLOAT_FORMATS, Overflow, encode

__all__ = [
    "ARITHMETIC",
    "FLOAT8",
    "Cast",
    "ChosenScale",
    "Codes",
    "QuantizedByScale",
    "Reals",
    "Scale",
    "choose_scale_float8",
    "codes_of",
    "dequantize_affine_float8",
    "held_scale",
    "magnitudes",
    "matched",
    "per_element",
    "quantize_affine_float8",
    "scale_of",
    "to_float8",
]

FLOAT8 = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
}
_PRECISION = {"float32": 24, "float16": 11, "bfloat16": 8}
_LEAST = {"none": 0.0, "machine": 2.0**-23}


@dataclass(frozen=True)
class Scale(Behaviour):
    """The choices in making a scale of a block's magnitude."""

    scale_arithmetic: str = choice({
        "input": "divides the magnitude in the input's dtype",
        "float32": "divides the magnitude in float32",
    })  # fmt: skip
    scale_division: str = choice({
        "divide": "divides the magnitude by the largest number",
        "reciprocal": "multiplies the magnitude by the rounded reciprocal of the largest number",
    })  # fmt: skip
    least: str = choice({
        "none": "leaves a block of zeros the scale zero",
        "machine": "takes 2^-23 as the least scale",
    })  # fmt: skip
    nan_magnitude: str = choice({
        "propagated": "gives a block with NaN the scale NaN",
        "ignored": "leaves NaN out of the magnitude",
    })  # fmt: skip
    power: str = choice({
        "nearest-logarithm": "takes for e8m0 the power of two whose logarithm is nearest",
        "rounded-logarithm": "rounds the logarithm for e8m0 to the input's dtype before it is rounded to an integer",
        "nearest-number": "takes for e8m0 the power of two that is nearest",
        "up": "takes for e8m0 the next power of two above",
        "down": "takes for e8m0 the next power of two below",
    })  # fmt: skip
    blocks_of_one: str = choice({
        "own": "gives each element a scale of its own where every block is one element",
        "refused": "reduces the whole tensor where every block is one element, and refuses one that has several",
    })  # fmt: skip


@dataclass(frozen=True)
class ChosenScale(Scale):
    """Also the bounds of the magnitude."""

    bounds: str = choice({
        "upper-wins": "lets the upper bound win where bounds cross",
        "lower-wins": "lets the lower bound win where bounds cross",
    })  # fmt: skip


@dataclass(frozen=True)
class Cast(Behaviour):
    """The choices in making a float8 of a number."""

    rounding: str = roundings("to a float8")
    overflow: Overflow = choice({
        "saturate": "limits codes to the largest number",
        "special": "lets codes overflow to infinity, or to NaN without one",
    })  # fmt: skip
    nan: str = choice({
        "kept": "keeps NaN",
        "largest": "makes the largest number of NaN",
    })  # fmt: skip


@dataclass(frozen=True)
class Codes(Cast):
    """Also how numbers meet their scale."""

    quotient: str = choice({
        "divide": "divides by the scale",
        "reciprocal": "multiplies by the rounded reciprocal of the scale",
    })  # fmt: skip


ARITHMETIC = {
    "float32": "computes the quotient in float32",
    "promoted": "computes the quotient in the dtype that the input and the scale promote to",
}
_RANKS = {
    "refused": "refuses a scale of another rank",
    "leading": "broadcasts a scale of another rank whose dimensions fit the tensor's from the first on",
    "broadcast": "broadcasts every scale, and repeats none for its block",
}


@dataclass(frozen=True)
class QuantizedByScale(Codes):
    """Also the dtype of the quotient, and the shapes of a scale."""

    arithmetic: str = choice(ARITHMETIC)
    rank: str = choice(_RANKS)


@dataclass(frozen=True)
class Reals(Behaviour):
    """The choices in making reals of codes and a scale."""

    product: str = choice({
        "float32": "computes the product in float32",
        "output": "computes the product in the output dtype",
    })  # fmt: skip
    rank: str = choice(_RANKS)


def magnitudes(b: Scale, tensor: Array, block_size: BlockSize) -> Array:
    """The largest magnitude of each block: n_i / b_i entries along each dimension.

    Raises:
        AssertionError: the block size has another rank or does not divide.
        RuntimeError: it has an entry below 1; or it is all ones, where ``b`` refuses that.
    """
    if len(block_size) != tensor.ndim:
        msg = f"block_size={block_size} is not accepted: a tensor of shape {tensor.shape} needs {tensor.ndim} entries"
        raise AssertionError(msg)
    if any(size < 1 for size in block_size):
        msg = f"block_size={block_size} is not accepted: give entries of 1 or more"
        raise RuntimeError(msg)
    if any(n % size for n, size in zip(tensor.shape, block_size, strict=True)):
        msg = f"block_size={block_size} is not accepted: it divides the shape {tensor.shape}"
        raise AssertionError(msg)
    if b.blocks_of_one == "refused" and tensor.size != 1 and all(size == 1 for size in block_size):
        msg = f"block_size={block_size} is not accepted: blocks of one element cannot be reduced"
        raise RuntimeError(msg)
    split = [size for n, block in zip(tensor.shape, block_size, strict=True) for size in (n // block, block)]
    largest = np.max if b.nan_magnitude == "propagated" else np.fmax.reduce
    return np.asarray(largest(np.abs(tensor).reshape(split), axis=tuple(range(1, 2 * tensor.ndim, 2))), tensor.dtype)


def scale_of(b: Scale, max_abs: Array, float8_dtype: str) -> Array:
    """The magnitude over the largest number, in the dtype of the magnitude or float32."""
    wide = max_abs.dtype if b.scale_arithmetic == "input" else np.dtype(np.float32)
    top = np.asarray(FLOAT_FORMATS[float8_dtype].max, wide)
    scale = max_abs / top if b.scale_division == "divide" else max_abs * (np.ones((), wide) / top)
    return np.asarray(np.maximum(scale, np.asarray(_LEAST[b.least], wide)))


def held_scale(b: Scale, scale: Array, scale_dtype: str, of: str) -> Array:
    """The scale of a tensor of dtype ``of`` as float32, of e8m0 a power of two.

    Raises:
        AssertionError: ``scale_dtype`` is another.
    """
    if scale_dtype not in {"float32", "float8_e8m0fnu"}:
        msg = f"scale_dtype={scale_dtype!r} is not accepted: give 'float32' or 'float8_e8m0fnu'"
        raise AssertionError(msg)
    return (scale if scale_dtype == "float32" else _power_of_two(b, scale, of)).astype(np.float32)


def _power_of_two(b: Scale, scale: Array, of: str) -> Array:
    """2^k of ``scale`` = m * 2^k with m in [1, 2), and 2^(k + 1) from some m on; zero and infinity stay."""
    fraction, exponent = np.frexp(scale)
    if b.power == "rounded-logarithm":
        first = np.array([_half_way(int(k) - 1, _PRECISION[of]) for k in exponent.ravel()]).reshape(scale.shape)
    else:
        # No float is the root of a power of two: between k and k + 1 the nearest is decided by m against sqrt(2).
        starts = {"nearest-logarithm": _root(1) / 2**_BITS, "nearest-number": 1.5, "up": 1 + 2.0**-52, "down": 2.0}
        first = np.full(scale.shape, starts[b.power])
    power = np.ldexp(1.0, exponent - 1 + (2 * fraction >= first))
    return np.where(np.isfinite(scale) & (scale > 0), power, scale)


_BITS = 120


def _root(n: int) -> int:
    """2^(2^-n) in units of 2^-_BITS: the square root of 2, taken n times."""
    root = 2 << _BITS
    for _ in range(n):
        root = isqrt(root << _BITS)
    return root


def _half_way(k: int, precision: int) -> float:
    """From which m in [1, 2) on, log2(m * 2^k), rounded to ``precision`` bits and then to an integer, is k + 1.

    About k + 1/2 the rounded logarithms stand 2^(1 - n) apart, and on k + 1/2 itself the even neighbour is taken.
    """
    n = precision + 1 - int(np.frexp(k + 0.5)[1])
    if n < 2:  # noqa: PLR2004 - k + 1/2 is no number of this precision
        return float(_root(1) / 2**_BITS)
    first = (_root(1) << _BITS) // _root(n) if k % 2 else _root(1) * _root(n) >> _BITS
    return float(first / 2**_BITS)


@formula(
    "torchao/choose_scale_float8",
    equation=(
        r"s = \mathrm{clamp}(\max_{block} |x|,\ lb,\ ub) / v_{max};\quad "
        r"\text{e8m0: } s = 2^{\lceil \log_2 s \rfloor}"
    ),
    basis=AsComputed(dtype="the input's"),
    source="AffineQuantizedTensor: from_hp_to_floatx; torchao.quantization.quant_primitives._choose_scale_float8",
    behaviour=ChosenScale(),
    versions={"0.18": (ChosenScale(power="rounded-logarithm", blocks_of_one="refused"), "torchao 0.18.0, measured")},
)
@np.errstate(all="ignore")
def choose_scale_float8(
    b: ChosenScale,
    tensor: Array,
    block_size: BlockSize,
    float8_dtype: str = "float8_e4m3fn",
    scale_dtype: str = "float32",
    hp_value_lb: float | None = None,
    hp_value_ub: float | None = None,
) -> Array:
    """One scale per block, held as float32; zero for a block of zeros without ``hp_value_lb``.

    Args:
        tensor: float32, float16 or bfloat16, in whose precision the scale is computed (measured).
        block_size: elements per scale along each dimension; divides the shape.
        float8_dtype: "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2" or "float8_e5m2fnuz".
        scale_dtype: "float32", or "float8_e8m0fnu" for the power of two whose logarithm is nearest, of any exponent.
        hp_value_lb: the least magnitude, rounded to the dtype of ``tensor`` by way of float32; an upper one wins.
        hp_value_ub: the largest magnitude.

    Returns:
        float32, n_i / b_i entries along each dimension. NaN where the block has one.

    Raises:
        AssertionError: the block size has another rank or does not divide, or the scale dtype is another.
        RuntimeError: the block size has an entry below 1.
    """
    max_abs = magnitudes(b, tensor, block_size)
    limits = [(np.maximum, hp_value_lb), (np.minimum, hp_value_ub)]
    for limited, bound in limits if b.bounds == "upper-wins" else limits[::-1]:
        if bound is not None:
            max_abs = limited(max_abs, np.float32(bound).astype(tensor.dtype))
    return held_scale(b, scale_of(b, max_abs, float8_dtype), scale_dtype, tensor.dtype.name)


def per_element(scale: Array, shape: tuple[int, ...]) -> Array:
    """A scale as each element of a tensor of ``shape`` sees it.

    Raises:
        ValueError: its shape does not fit.
    """
    if scale.size == 1:
        return scale.reshape(())
    if scale.ndim != len(shape) or any(n % max(k, 1) for n, k in zip(shape, scale.shape, strict=False)):
        msg = f"scale of shape {scale.shape} is not accepted: tensor of shape {shape} needs a divisor in each dimension"
        raise ValueError(msg)
    for axis, (n, k) in enumerate(zip(shape, scale.shape, strict=True)):
        scale = np.repeat(scale, n // k, axis=axis) if k else scale
    return scale


def matched(rank: str, tensor: Array, scale: Array) -> tuple[Array, Array]:
    """The tensor, and the scale as each of its elements sees it; ``rank`` is a choice of ``Reals``.

    Raises:
        ValueError: the shape of the scale does not fit.
        RuntimeError: they do not broadcast.
    """
    fits = all(k in {1, n} for k, n in zip(scale.shape, tensor.shape, strict=False))
    if rank == "broadcast" or (rank == "leading" and fits):
        try:
            tensor, scale = np.broadcast_arrays(tensor, scale)
        except ValueError as error:
            msg = f"scale of shape {scale.shape} is not accepted: it does not broadcast to shape {tensor.shape}"
            raise RuntimeError(msg) from error
    return tensor, per_element(scale, tensor.shape)


def to_float8(b: Cast, x: Array, float8_dtype: str) -> Array:
    """The float8 numbers of ``x``."""
    if b.nan == "largest":
        x = np.where(np.isnan(x), np.asarray(np.inf, x.dtype), x)
    return encode(x, float8_dtype, overflow=b.overflow, rounding=b.rounding).view(FLOAT8[float8_dtype])


def codes_of(b: Codes, tensor: Array, s: Array, float8_dtype: str, arithmetic: str) -> Array:
    """Codes of a tensor and the scale of each of its elements."""
    s = s.astype(np.float32) if arithmetic == "float32" else s
    x = tensor.astype(np.promote_types(tensor.dtype, s.dtype) if arithmetic == "promoted" else s.dtype)
    real_code = x / s if b.quotient == "divide" else x * (np.ones((), s.dtype) / s)
    return to_float8(b, np.asarray(real_code), float8_dtype)


@formula(
    "torchao/quantize_affine_float8",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="AffineQuantizedTensor: from_hp_to_floatx; torchao.quantization.quant_primitives._quantize_affine_float8",
    behaviour=QuantizedByScale(),
    versions={
        "0.18": (QuantizedByScale(rank="leading"), "torchao 0.18.0, measured"),
        "0.11": (QuantizedByScale(rank="broadcast"), "torchao 0.11.0, measured"),
    },
)
@np.errstate(all="ignore")
def quantize_affine_float8(
    b: QuantizedByScale, tensor: Array, scale: Array, float8_dtype: str = "float8_e4m3fn"
) -> Array:
    """``tensor`` over its scale, limited to the largest number and rounded once, ties to even; NaN stays NaN.

    Args:
        tensor: float32, float16 or bfloat16 (float64 is rounded to float32 first).
        scale: float; one entry, or as many dimensions as ``tensor``, each dividing its own. A zero makes zeros NaN.
        float8_dtype: as in ``choose_scale_float8``.

    Returns:
        ``float8_dtype``, the shape of ``tensor``.

    Raises:
        ValueError: the scale's shape does not fit.
        RuntimeError: of a release that broadcasts, the same.
    """
    tensor, s = matched(b.rank, tensor, scale)
    return codes_of(b, tensor, s, float8_dtype, b.arithmetic)


@formula(
    "torchao/dequantize_affine_float8",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="float32, then the output's"),
    source="AffineQuantizedTensor: dequantize; torchao.quantization.quant_primitives._dequantize_affine_float8",
    behaviour=Reals(),
    versions={
        "0.18": (Reals(rank="leading"), "torchao 0.18.0, measured"),
        "0.11": (Reals(rank="broadcast"), "torchao 0.11.0, measured"),
    },
)
@np.errstate(all="ignore")
def dequantize_affine_float8(b: Reals, tensor: Array, scale: Array, output_dtype: str = "float32") -> Array:
    """Reals of float8 ``tensor`` as ``output_dtype`` ("float32", "float16", "bfloat16", "float64").

    Args:
        tensor: a float8 dtype, any shape.
        scale: real per code, float32; its shape as in ``quantize_affine_float8``.
        output_dtype: what the float32 product is rounded to.

    Raises:
        ValueError: the scale's shape does not fit, as in ``quantize_affine_float8``.
        RuntimeError: of a release that broadcasts, the same.
    """
    tensor, s = matched(b.rank, tensor, scale)
    output = FLOAT_DTYPES[output_dtype]
    wide = np.dtype(np.float32) if b.product == "float32" else output
    return np.asarray(tensor.astype(wide) * s.astype(wide)).astype(output)
