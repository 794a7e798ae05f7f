"""torchao: float8 with a scale per block. Real per code: x̂ = q * scale."""

from math import isqrt

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, FLOAT_FORMATS, encode
from halfeven.reference.profiles.profile import Array

__all__ = [
    "choose_scale_float8",
    "choose_scale_float8_0_18",
    "dequantize_affine_float8",
    "dequantize_affine_float8_0_18",
    "from_hp_to_floatx",
    "from_hp_to_floatx_static",
    "quantize_affine_float8",
    "quantize_affine_float8_0_18",
]

_FLOAT8 = {
    name: np.dtype(getattr(ml_dtypes, name))
    for name in ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
}
_PRECISION = {"float32": 24, "float16": 11, "bfloat16": 8}


def _amax(tensor: Array, block_size: BlockSize) -> Array:
    """The largest magnitude of each block, NaN where it has one: n_i / b_i entries along each dimension."""
    if len(block_size) != tensor.ndim:
        msg = f"block_size={block_size} is not accepted: a tensor of shape {tensor.shape} needs {tensor.ndim} entries"
        raise AssertionError(msg)
    if any(b < 1 for b in block_size):
        msg = f"block_size={block_size} is not accepted: give entries of 1 or more"
        raise RuntimeError(msg)
    if any(n % b for n, b in zip(tensor.shape, block_size, strict=True)):
        msg = f"block_size={block_size} is not accepted: it divides the shape {tensor.shape}"
        raise AssertionError(msg)
    split = [size for n, b in zip(tensor.shape, block_size, strict=True) for size in (n // b, b)]
    largest: Array = np.abs(tensor).reshape(split).max(axis=tuple(range(1, 2 * tensor.ndim, 2)))
    return np.asarray(largest, tensor.dtype)


def _scale(
    tensor: Array, block_size: BlockSize, float8_dtype: str, hp_value_lb: float | None, hp_value_ub: float | None
) -> Array:
    max_abs = _amax(tensor, block_size)
    if hp_value_lb is not None:
        max_abs = np.maximum(max_abs, np.float32(hp_value_lb).astype(tensor.dtype))
    if hp_value_ub is not None:
        max_abs = np.minimum(max_abs, np.float32(hp_value_ub).astype(tensor.dtype))
    scale: Array = max_abs / np.asarray(FLOAT_FORMATS[float8_dtype].max, tensor.dtype)
    return scale


def _power_of_two(scale: Array, first: Array) -> Array:
    """2^k of ``scale`` = m * 2^k with m in [1, 2), and 2^(k + 1) from m = ``first`` on; zero and infinity stay."""
    fraction, exponent = np.frexp(scale.astype(np.float64))
    power = np.ldexp(1.0, exponent - 1 + (2 * fraction >= first))
    return np.where(np.isfinite(scale) & (scale > 0), power, scale.astype(np.float64))


def _check_scale_dtype(scale_dtype: str) -> None:
    if scale_dtype not in {"float32", "float8_e8m0fnu"}:
        msg = f"scale_dtype={scale_dtype!r} is not accepted: give 'float32' or 'float8_e8m0fnu'"
        raise AssertionError(msg)


@formula(
    "torchao.choose_scale_float8",
    equation=(
        r"s = \mathrm{clamp}(\max_{block} |x|,\ lb,\ ub) / v_{max};\quad "
        r"\text{e8m0: } s = 2^{\lceil \log_2 s \rfloor}"
    ),
    basis=AsComputed(dtype="the input's"),
    source="AffineQuantizedTensor: from_hp_to_floatx; torchao.quantization.quant_primitives._choose_scale_float8",
)
@np.errstate(all="ignore")
def choose_scale_float8(
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
    scale = _scale(tensor, block_size, float8_dtype, hp_value_lb, hp_value_ub)
    _check_scale_dtype(scale_dtype)
    if scale_dtype == "float8_e8m0fnu":
        # No float is the root of a power of two: between k and k + 1 the nearest is decided by m against sqrt(2).
        scale = _power_of_two(scale, np.full(scale.shape, _root(1) / 2**_BITS))
    return scale.astype(np.float32)


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
    "torchao.choose_scale_float8@0.18",
    equation=r"\text{e8m0: } s = 2^{\lceil \mathrm{fl}(\log_2 s) \rfloor}",
    basis=AsComputed(dtype="the input's, the logarithm too"),
    source="torchao 0.18.0, measured",
)
@np.errstate(all="ignore")
def choose_scale_float8_0_18(
    tensor: Array,
    block_size: BlockSize,
    float8_dtype: str = "float8_e4m3fn",
    scale_dtype: str = "float32",
    hp_value_lb: float | None = None,
    hp_value_ub: float | None = None,
) -> Array:
    """As documented, but the logarithm of an e8m0 scale is rounded to the dtype of ``tensor`` before it is rounded.

    And a block size of ones alone reduces the whole tensor, which fits the shape of a single element only.

    Raises:
        RuntimeError: the block size is all ones, and ``tensor`` has not one element.
    """
    scale = _scale(tensor, block_size, float8_dtype, hp_value_lb, hp_value_ub)
    if tensor.size != 1 and all(b == 1 for b in block_size):
        msg = f"block_size={block_size} is not accepted: blocks of one element cannot be reduced"
        raise RuntimeError(msg)
    _check_scale_dtype(scale_dtype)
    if scale_dtype == "float8_e8m0fnu":
        exponents = np.frexp(scale.astype(np.float64))[1] - 1
        precision = _PRECISION[tensor.dtype.name]
        first = np.array([_half_way(int(k), precision) for k in exponents.ravel()]).reshape(scale.shape)
        scale = _power_of_two(scale, first)
    return scale.astype(np.float32)


def _per_element(scale: Array, shape: tuple[int, ...], name: str) -> Array:
    if scale.size == 1:
        return scale.reshape(())
    if scale.ndim != len(shape) or any(n % max(k, 1) for n, k in zip(shape, scale.shape, strict=False)):
        msg = f"scale of shape {scale.shape} is not accepted: {name} of shape {shape} needs a divisor in each dimension"
        raise ValueError(msg)
    for axis, (n, k) in enumerate(zip(shape, scale.shape, strict=True)):
        scale = np.repeat(scale, n // k, axis=axis) if k else scale
    return scale


def _broadcast(tensor: Array, scale: Array) -> tuple[Array, Array]:
    fits = all(k in {1, n} for k, n in zip(scale.shape, tensor.shape, strict=False))
    if not fits or scale.ndim == tensor.ndim or scale.size == 1:
        return tensor, scale
    try:
        shape = np.broadcast_shapes(tensor.shape, scale.shape)
    except ValueError as error:
        msg = f"scale of shape {scale.shape} is not accepted: it does not broadcast to shape {tensor.shape}"
        raise RuntimeError(msg) from error
    return np.broadcast_to(tensor, shape), np.broadcast_to(scale, shape)


@formula(
    "torchao.quantize_affine_float8",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="AffineQuantizedTensor: from_hp_to_floatx; torchao.quantization.quant_primitives._quantize_affine_float8",
)
@np.errstate(all="ignore")
def quantize_affine_float8(tensor: Array, scale: Array, float8_dtype: str = "float8_e4m3fn") -> Array:
    """``tensor`` over its scale, limited to the largest number and rounded once, ties to even; NaN stays NaN.

    Args:
        tensor: float32, float16 or bfloat16 (float64 is rounded to float32 first).
        scale: float32; one entry, or as many dimensions as ``tensor``, each dividing its own. A zero makes zeros NaN.
        float8_dtype: as in ``choose_scale_float8``.

    Returns:
        ``float8_dtype``, the shape of ``tensor``.

    Raises:
        ValueError: the scale's shape does not fit.
    """
    s = _per_element(scale, tensor.shape, "tensor").astype(np.float32)
    return encode(tensor.astype(np.float32) / s, float8_dtype, overflow="saturate").view(_FLOAT8[float8_dtype])


@formula(
    "torchao.quantize_affine_float8@0.18",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="torchao 0.18.0, measured",
)
@np.errstate(all="ignore")
def quantize_affine_float8_0_18(tensor: Array, scale: Array, float8_dtype: str = "float8_e4m3fn") -> Array:
    """As documented, but a scale of another rank is broadcast where its dimensions fit the tensor's from the first on.

    Raises:
        RuntimeError: they fit, and do not broadcast, for that begins with the last.
    """
    return quantize_affine_float8(*_broadcast(tensor, scale), float8_dtype)


@formula(
    "torchao.dequantize_affine_float8",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="float32, then the output's"),
    source="AffineQuantizedTensor: dequantize; torchao.quantization.quant_primitives._dequantize_affine_float8",
)
@np.errstate(all="ignore")
def dequantize_affine_float8(tensor: Array, scale: Array, output_dtype: str = "float32") -> Array:
    """Reals of float8 ``tensor`` as ``output_dtype`` ("float32", "float16", "bfloat16", "float64").

    Args:
        tensor: a float8 dtype, any shape.
        scale: real per code, float32; its shape as in ``quantize_affine_float8``.
        output_dtype: what the float32 product is rounded to.

    Raises:
        ValueError: the scale's shape does not fit, as in ``quantize_affine_float8``.
    """
    s = _per_element(scale, tensor.shape, "tensor").astype(np.float32)
    reals: Array = (tensor.astype(np.float32) * s).astype(FLOAT_DTYPES[output_dtype])
    return reals


@formula(
    "torchao.dequantize_affine_float8@0.18",
    equation=r"\hat x = q * s",
    basis=AsComputed(dtype="float32, then the output's"),
    source="torchao 0.18.0, measured",
)
@np.errstate(all="ignore")
def dequantize_affine_float8_0_18(tensor: Array, scale: Array, output_dtype: str = "float32") -> Array:
    """As documented, but for scales of another rank, as in ``quantize_affine_float8@0.18``."""
    return dequantize_affine_float8(*_broadcast(tensor, scale), output_dtype)


def _check_float8(target_dtype: str) -> None:
    if target_dtype not in _FLOAT8:
        msg = f"target_dtype={target_dtype!r} is not accepted: give one of {tuple(_FLOAT8)}"
        raise NotImplementedError(msg)


@formula(
    "torchao.from_hp_to_floatx",
    equation=r"s = \max_{block} |x| / v_{max},\quad q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="the input's for the scale, float32 for the codes"),
    source="AffineQuantizedTensor: from_hp_to_floatx",
)
@np.errstate(all="ignore")
def from_hp_to_floatx(
    input_float: Array, block_size: BlockSize, target_dtype: str, scale_dtype: str | None = None
) -> dict[str, Array]:
    """The ``data`` (float8) and the ``scale`` (float32, n_i / b_i) of ``input_float``.

    Args:
        input_float: float32, float16 or bfloat16.
        block_size: elements per scale along each dimension; divides the shape.
        target_dtype: "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2" or "float8_e5m2fnuz".
        scale_dtype: as in ``choose_scale_float8``; without one float32.

    Raises:
        NotImplementedError: ``target_dtype`` is no float8 dtype.
        AssertionError, RuntimeError: as in ``choose_scale_float8``.
    """
    _check_float8(target_dtype)
    scale = choose_scale_float8(input_float, block_size, target_dtype, scale_dtype or "float32")
    return {"data": quantize_affine_float8(input_float, scale, target_dtype), "scale": scale}


@formula(
    "torchao.from_hp_to_floatx_static",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="AffineQuantizedTensor: from_hp_to_floatx_static",
)
@np.errstate(all="ignore")
def from_hp_to_floatx_static(
    input_float: Array, scale: Array, block_size: BlockSize, target_dtype: str
) -> dict[str, Array]:
    """The ``data`` (float8) of ``input_float`` under a given ``scale``, one entry per block, and that scale.

    Args:
        input_float: float32, float16 or bfloat16.
        scale: real per code, float32, n_i / b_i entries along each dimension.
        block_size: elements per scale, one entry per dimension.
        target_dtype: "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2" or "float8_e5m2fnuz".

    Raises:
        NotImplementedError: ``target_dtype`` is no float8 dtype.
        ValueError: ``scale`` has another shape, or ``block_size`` another length than the shape of ``input_float``.
    """
    _check_float8(target_dtype)
    needed = tuple(n // b for n, b in zip(input_float.shape, block_size, strict=True))
    if scale.shape != needed:
        msg = f"scale of shape {scale.shape} is not accepted: blocks of {block_size} need {needed}"
        raise ValueError(msg)
    return {"data": quantize_affine_float8(input_float, scale, target_dtype), "scale": scale}
