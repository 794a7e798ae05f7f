"""AIMET: float quantization, ``FloatQuantizeDequantize``: a cast to a narrow float format, scaled and saturating."""

import numpy as np

from halfeven.reference.blocks import Array, BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.minifloat import FLOAT_FORMATS, FloatFormat, Overflow, cast
from halfeven.reference.profiles.aimet.affine import aligned_blocks

__all__ = [
    "float_cast",
    "float_cast_2_42",
    "float_quantize_dequantize",
    "float_quantize_dequantize_2_42",
    "float_scale",
]

_SOURCE = "aimet_torch.quantization.float.FloatQuantizeDequantize"
# (exponent_bits, mantissa_bits, finite, unsigned_zero) of the formats that torch has, and of the one more with a name.
_NAMED = {
    (5, 10, False, False): "float16",
    (8, 7, False, False): "bfloat16",
    (4, 3, True, False): "float8_e4m3fn",
    (4, 3, True, True): "float8_e4m3fnuz",
    (5, 2, False, False): "float8_e5m2",
    (5, 2, True, True): "float8_e5m2fnuz",
    (2, 1, True, False): "float4_e2m1fn",
}
_TORCH = tuple(name for name in _NAMED.values() if name != "float4_e2m1fn")


def _format(
    exponent_bits: int | None, mantissa_bits: int | None, finite: bool, unsigned_zero: bool, dtype: str | None
) -> FloatFormat:
    """The format of either way to name it; of two widths alone the IEEE one, bias 2^(exponent_bits - 1) - 1."""
    if dtype is not None:
        if exponent_bits is not None or mantissa_bits is not None or dtype not in _TORCH:
            bits = f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}"
            msg = f"dtype={dtype!r}, {bits} is not accepted: give one of {', '.join(_TORCH)}, and no bits"
            raise ValueError(msg)
        return FLOAT_FORMATS[dtype]
    if exponent_bits is None or mantissa_bits is None:
        msg = f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits} is not accepted: give both, or dtype"
        raise ValueError(msg)
    _refuse_widths(exponent_bits, mantissa_bits)
    named = _NAMED.get((exponent_bits, mantissa_bits, finite, unsigned_zero))
    if named is not None:
        return FLOAT_FORMATS[named]
    if finite or unsigned_zero:
        format_ = f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}"
        msg = f"finite={finite}, unsigned_zero={unsigned_zero} is not accepted for {format_}: give False and False"
        raise RuntimeError(msg)
    name = f"float_e{exponent_bits}m{mantissa_bits}"
    return FloatFormat(name, exponent_bits, mantissa_bits, 2 ** (exponent_bits - 1) - 1, "ieee")


def _refuse_widths(exponent_bits: int, mantissa_bits: int) -> None:
    if exponent_bits < 2 or mantissa_bits < 1:  # noqa: PLR2004 - one bit holds no exponent of a normal number
        msg = f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits} is not accepted: give 2 and 1, or more"
        raise ValueError(msg)


@formula(
    "aimet.float_scale",
    equation=r"scale = |maxval| / max",
    basis=AsComputed(dtype="float32"),
    source=_SOURCE + ": maxval (the quotient: measured, but for the last bits)",
)
def float_scale(
    maxval: Array,
    exponent_bits: int | None = None,
    mantissa_bits: int | None = None,
    finite: bool = False,
    unsigned_zero: bool = False,
    dtype: str | None = None,
) -> Array:
    """The scale, float32, at which ``maxval`` becomes the format's largest number.

    aimet-torch 2.42 raises two to a difference of float32 logarithms: for ``maxval`` from 2^-15 to 2^15, and all
    formats but bfloat16, within 2e-6 of this, relatively, and seldom exact.

    Args:
        maxval: in reals, float32 of any shape; its sign is not read.
        exponent_bits: as in ``float_quantize_dequantize``, and so the rest.
        mantissa_bits: width of the mantissa.
        finite: no infinities.
        unsigned_zero: no -0.
        dtype: the format's name.

    Raises:
        ValueError, RuntimeError: no such format.
    """
    f = _format(exponent_bits, mantissa_bits, finite, unsigned_zero, dtype)
    with np.errstate(all="ignore"):
        return (np.abs(maxval).astype(np.float64) / f.max).astype(np.float32)


@formula(
    "aimet.float_cast",
    equation=(
        r"out = \lceil x_c / s \rfloor * s,\quad x_c = \mathrm{clamp}(x, -max, max),"
        r"\quad s = 2^{\lfloor \log_2 |x_c| + bias \rfloor - mantissa - bias},"
        r"\quad max = (2 - 2^{-mantissa}) * 2^{\lfloor (2^{exponent} - 1) / 2 \rfloor}"
    ),
    basis=Real(),
    source=_SOURCE + ": equations for exponent and mantissa bits",
)
def float_cast(tensor: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """``tensor`` with ``mantissa_bits`` after its leading bit, limited to max; zeros and NaN stay.

    The bias is an integer, and so the floor leaves it: s is the unit of the last bit kept, however small x is.

    Args:
        tensor: float32 of any shape; the result has both.
        exponent_bits: width of the exponent, 2 or more, which sets max alone.
        mantissa_bits: width of the mantissa, 1 or more.

    Raises:
        ValueError: a narrower width.
    """
    _refuse_widths(exponent_bits, mantissa_bits)
    largest = np.ldexp(np.float32(2 - np.ldexp(1.0, -mantissa_bits)), (2**exponent_bits - 1) // 2)
    clamped = np.where(tensor < -largest, -largest, np.where(tensor > largest, largest, tensor))
    _, exponent = np.frexp(clamped)  # x_c = fraction * 2^exponent with fraction in [1/2, 1)
    unit = exponent - 1 - mantissa_bits
    out: Array = np.ldexp(np.rint(np.ldexp(clamped, -unit)), unit).astype(tensor.dtype)
    return out


@formula(
    "aimet.float_cast@2.42",
    equation=r"s = 2^{\max(\lfloor \log_2 |x_c| + bias \rfloor, 1) - mantissa - bias},\quad bias = 2^{exponent - 1}",
    basis=Real(),
    source="aimet-torch 2.42, measured",
)
def float_cast_2_42(tensor: Array, exponent_bits: int, mantissa_bits: int) -> Array:
    """``float_cast``, but the unit has a least one: IEEE's for the formats that torch has, half of that for others."""
    return _cast(tensor, _measured(_format(exponent_bits, mantissa_bits, False, False, None)))


@formula(
    "aimet.float_quantize_dequantize",
    equation=r"out = \mathrm{cast}(\mathrm{clamp}(x / scale, -max, max)) * scale",
    basis=AsComputed(dtype="quotient and product in the tensor's"),
    source=_SOURCE + " (saturation, scale and dtype: measured)",
)
def float_quantize_dequantize(
    tensor: Array,
    scale: Array,
    exponent_bits: int | None = None,
    mantissa_bits: int | None = None,
    finite: bool = False,
    unsigned_zero: bool = False,
    dtype: str | None = None,
    block_size: BlockSize | None = None,
) -> Array:
    """``tensor`` on the format's numbers times ``scale``, in its shape and dtype.

    Args:
        tensor: float32, float64, float16 or bfloat16.
        scale: real per number, float32; broadcasts to ``tensor``, or has one entry per block.
        exponent_bits: width of the exponent, 2 or more, with ``mantissa_bits``.
        mantissa_bits: width of the mantissa, 1 or more, with ``exponent_bits``.
        finite: the format has no infinities.
        unsigned_zero: the format has no -0.
        dtype: one of torch's in place of the widths: float16, bfloat16, float8_e4m3fn, float8_e4m3fnuz, float8_e5m2 or
            float8_e5m2fnuz; the two flags are then not read.
        block_size: elements per block, as in ``quantize``.

    Raises:
        ValueError: both or neither way to name the format, a narrower width, or no such dtype.
        RuntimeError: a finite or unsigned-zero format that torch lacks; shapes or blocks that do not fit.
        IndexError: ``scale`` has more dimensions than ``tensor`` (with ``block_size``).
    """
    f = _format(exponent_bits, mantissa_bits, finite, unsigned_zero, dtype)
    aligned, _, blocks = aligned_blocks(tensor.shape, scale, scale, block_size)
    s = per_element(aligned, tensor.shape, blocks)
    wide = np.promote_types(scale.dtype, tensor.dtype) if tensor.dtype == np.float64 else scale.dtype
    with np.errstate(all="ignore"):
        y = (tensor.astype(wide) / s.astype(wide)).astype(tensor.dtype)
        out: Array = (_cast(y, f).astype(wide) * s.astype(wide)).astype(tensor.dtype)
    return out


@formula(
    "aimet.float_quantize_dequantize@2.42",
    equation=r"out = \mathrm{cast}(\mathrm{clamp}(x / scale, -max, max)) * scale",
    basis=AsComputed(dtype="the one that torch promotes tensor and scale to"),
    source="aimet-torch 2.42, measured",
)
def float_quantize_dequantize_2_42(
    tensor: Array,
    scale: Array,
    exponent_bits: int | None = None,
    mantissa_bits: int | None = None,
    finite: bool = False,
    unsigned_zero: bool = False,
    dtype: str | None = None,
    block_size: BlockSize | None = None,
) -> Array:
    """``float_quantize_dequantize``, but in the promoted dtype, and one more binade below in formats that torch lacks.

    Shapes are not checked. From float64 the cast to one of torch's formats rounds to float32 first. A float16 tensor is
    refused where the format's largest number is beyond float16, and a bfloat16 one, whose own rounding of the largest
    float16 is beyond that, overflows to infinity.
    """
    f = _format(exponent_bits, mantissa_bits, finite, unsigned_zero, dtype)
    x, s = tensor, scale
    if block_size:
        own = tensor.shape[tensor.ndim - scale.ndim :]
        sizes = [n // c if b == -1 else b for n, c, b in zip(own, scale.shape, block_size, strict=True)]
        x = tensor.reshape(-1, *(size for c, b in zip(scale.shape, sizes, strict=True) for size in (c, b)))
        s = scale.reshape([size for c in scale.shape for size in (c, 1)])
    wide = np.dtype(np.float64 if tensor.dtype == np.float64 else np.float32)
    t = tensor.dtype if scale.ndim == 0 < tensor.ndim else wide
    if t == np.float16 and f.max > float(np.finfo(np.float16).max):
        msg = f"tensor of dtype float16 is not accepted for {f.name}, which goes to {f.max}: give a wider dtype"
        raise RuntimeError(msg)
    with np.errstate(all="ignore"):
        y = (x.astype(wide) / s.astype(wide)).astype(t)
        largest = np.asarray(f.max, t)  # which t rounds
        y = np.where(y < -largest, -largest, np.where(y > largest, largest, y))
        if f.name in _TORCH and t == np.float64:
            y = y.astype(np.float32)
        near = _cast(y, _measured(f), overflow="special" if f.name in _TORCH else "saturate")
        out: Array = (near.astype(wide) * s.astype(wide)).astype(t)
    return out.reshape(tensor.shape) if block_size else out


def _measured(f: FloatFormat) -> FloatFormat:
    """The format as the library casts to it: one that torch lacks has the same largest number and a bias one higher."""
    if f.name in _NAMED.values():
        return f
    return FloatFormat(f.name, f.exponent_bits, f.mantissa_bits, 2 ** (f.exponent_bits - 1), "finite")


def _cast(y: Array, f: FloatFormat, overflow: Overflow = "saturate") -> Array:
    """The nearest of the format's numbers, ties to the even one; NaN stays."""
    is_nan = np.isnan(y)
    wide = np.float64 if y.dtype == np.float64 else np.float32  # holds every number of the format
    near = cast(np.where(is_nan, np.asarray(0, y.dtype), y).astype(wide), f, overflow=overflow).astype(y.dtype)
    return np.where(is_nan, y, near)
