"""AIMET: float quantization, ``FloatQuantizeDequantize``: a cast to a narrow float format, scaled, and its gradient."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.minifloat import FLOAT_FORMATS, FloatFormat, Overflow, cast
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.aimet.blocks import aligned_blocks

__all__ = ["float_cast", "float_gradient", "float_quantize_dequantize", "float_scale"]


@dataclass(frozen=True)
class FloatScale(Behaviour):
    """The choices in making the scale of a largest value."""

    quotient: str = choice({
        "divide": "divides by the format's largest number",
        "reciprocal": "multiplies by the rounded reciprocal of the format's largest number",
    })  # fmt: skip
    magnitude: str = choice(
        {"absolute": "takes the magnitude of maxval", "signed": "gives a negative maxval a negative scale"}
    )


@dataclass(frozen=True)
class FloatCast(Behaviour):
    """The choices in rounding to so many bits."""

    least: str = choice({
        "none": "keeps all mantissa bits of a number however small",
        "ieee": "rounds small numbers to IEEE's least unit of the widths",
        "torch": "rounds small numbers to a least unit: IEEE's for the formats that torch has, else half of that",
    })  # fmt: skip
    rounding: str = roundings("the mantissa")
    overflow: str = choice({
        "saturate": "gives the largest number for what is beyond it",
        "infinity": "gives infinity for what is beyond the largest number",
    })  # fmt: skip


@dataclass(frozen=True)
class FloatValues(Behaviour):
    """The choices in quantizing to a float format."""

    subnormals: str = choice({
        "ieee": "gives a format that torch lacks the numbers of the IEEE format of its widths",
        "one-binade-more": "gives a format that torch lacks one more binade below",
    })  # fmt: skip
    dtype: str = choice({
        "input": "rounds quotient and product to the input's dtype",
        "promoted": "rounds quotient and product to the dtype that torch promotes input and scale to",
    })  # fmt: skip
    bounds: str = choice({
        "exact": "limits to the format's largest number whatever the input's dtype",
        "rounded": "limits to the largest number as the arithmetic's dtype rounds it, which float16 must hold",
    })  # fmt: skip
    float64: str = choice({
        "once": "rounds float64 to the format once",
        "by-float32": "rounds float64 to float32 on its way to one of torch's formats",
    })  # fmt: skip
    shapes: str = choice({
        "checked": "refuses scales and blocks that do not fit",
        "broadcast": "broadcasts scales and blocks that do not fit, if they can be",
    })  # fmt: skip
    division: str = choice(
        {"divide": "divides by the scale", "reciprocal": "multiplies by the rounded reciprocal of the scale"}
    )


@dataclass(frozen=True)
class FloatGradient(Behaviour):
    """The choices in the gradient of float quantization."""

    straight: str = choice({
        "exact": "passes the gradient on as it is",
        "rounded": "rounds the gradient times the scale to the format on its way",
    })  # fmt: skip
    largest: str = choice({
        "inside": "lets a gradient through at the largest number",
        "outside": "stops the gradient at the largest number",
    })  # fmt: skip
    beyond: str = choice({
        "zero": "stops the gradient beyond the largest number",
        "passed": "lets a gradient through beyond the largest number",
    })  # fmt: skip


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
_MEASURED = "aimet-torch 2.42, measured"
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
    "aimet/float_scale",
    equation=r"scale = |maxval| / max",
    basis=AsComputed(dtype="float32"),
    source=_SOURCE + ": maxval (the quotient: measured, but for the last bits)",
    behaviour=FloatScale(),
)
def float_scale(
    b: FloatScale,
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
        size = np.abs(maxval) if b.magnitude == "absolute" else maxval
        if b.quotient == "reciprocal":
            return np.asarray(size * np.float32(1 / f.max))
        return (size.astype(np.float64) / f.max).astype(np.float32)


@formula(
    "aimet/float_cast",
    equation=(
        r"out = \lceil x_c / s \rfloor * s,\quad x_c = \mathrm{clamp}(x, -max, max),"
        r"\quad s = 2^{\lfloor \log_2 |x_c| + bias \rfloor - mantissa - bias},"
        r"\quad max = (2 - 2^{-mantissa}) * 2^{\lfloor (2^{exponent} - 1) / 2 \rfloor}"
    ),
    basis=Real(),
    source=_SOURCE + ": equations for exponent and mantissa bits",
    behaviour=FloatCast(),
    versions={"2.42": (FloatCast(least="torch"), _MEASURED)},
)
def float_cast(b: FloatCast, tensor: Array, exponent_bits: int, mantissa_bits: int) -> Array:
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
    bias = 2 ** (exponent_bits - 1) - 1  # (2^exponent - 1) / 2, rounded down
    largest = np.ldexp(np.float32(2 - np.ldexp(1.0, -mantissa_bits)), bias)
    clamped = np.where(tensor < -largest, -largest, np.where(tensor > largest, largest, tensor))
    _, exponent = np.frexp(clamped)  # x_c = fraction * 2^exponent with fraction in [1/2, 1)
    unit = exponent - 1 - mantissa_bits
    if b.least != "none":
        more = b.least == "torch" and (exponent_bits, mantissa_bits, False, False) not in _NAMED
        unit = np.maximum(unit, 1 - bias - more - mantissa_bits)
    out: Array = np.ldexp(ROUNDINGS[b.rounding](np.ldexp(clamped, -unit)), unit)
    if b.overflow == "infinity":
        out = np.where(np.abs(tensor) > largest, np.copysign(np.inf, tensor), out)
    return out


@formula(
    "aimet/float_quantize_dequantize",
    equation=r"out = \mathrm{cast}(\mathrm{clamp}(x / scale, -max, max)) * scale",
    basis=AsComputed(dtype="quotient and product in the tensor's"),
    source=_SOURCE + " (saturation, scale and dtype: measured)",
    behaviour=FloatValues(),
    versions={
        "2.42": (
            FloatValues(
                "one-binade-more", dtype="promoted", bounds="rounded", float64="by-float32", shapes="broadcast"
            ),
            _MEASURED,
        )
    },
)
def float_quantize_dequantize(
    b: FloatValues,
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
        RuntimeError: a finite or unsigned-zero format that torch lacks; shapes or blocks that do not fit; float16 where
            the bounds are rounded and the format's largest number is beyond it (2.42).
        IndexError: ``scale`` has more dimensions than ``tensor`` (with ``block_size``).
    """
    f = _format(exponent_bits, mantissa_bits, finite, unsigned_zero, dtype)
    x, s = _laid_out(b, tensor, scale, block_size)
    wide = np.promote_types(tensor.dtype, np.float32)
    own = b.dtype == "input" or scale.ndim == 0 < tensor.ndim
    t = tensor.dtype if own else wide
    torchs = f.name in _TORCH
    if b.bounds == "rounded" and t == np.float16 and f.max > float(np.finfo(np.float16).max):
        msg = f"tensor of dtype float16 is not accepted for {f.name}, which goes to {f.max}: give a wider dtype"
        raise RuntimeError(msg)
    with np.errstate(all="ignore"):
        y = x * (wide.type(1) / s) if b.division == "reciprocal" else x / s
        y = y.astype(t)
        if b.bounds == "rounded":
            largest = np.asarray(f.max, t)
            y = np.where(y < -largest, -largest, np.where(y > largest, largest, y))
        if b.float64 == "by-float32" and torchs:
            y = y.astype(np.float32)
        numbers = f if b.subnormals == "ieee" else _one_binade_more(f)
        near = _cast(y, numbers, "special" if b.bounds == "rounded" and torchs else "saturate")
        out: Array = (near.astype(wide) * s).astype(t)
    return out.reshape(tensor.shape) if block_size else out


def _laid_out(b: FloatValues, tensor: Array, scale: Array, block_size: BlockSize | None) -> tuple[Array, Array]:
    """Tensor and scale in shapes that broadcast."""
    if b.shapes == "checked":
        aligned, _, blocks = aligned_blocks(tensor.shape, scale, scale, block_size)
        return tensor, per_element(aligned, tensor.shape, blocks)
    if not block_size:
        return tensor, scale
    own = tensor.shape[tensor.ndim - scale.ndim :]
    sizes = [n // c if k == -1 else k for n, c, k in zip(own, scale.shape, block_size, strict=True)]
    split = tensor.reshape(-1, *(size for c, k in zip(scale.shape, sizes, strict=True) for size in (c, k)))
    return split, scale.reshape([size for c in scale.shape for size in (c, 1)])


def _one_binade_more(f: FloatFormat) -> FloatFormat:
    """The format as the library casts to it: one that torch lacks has the same largest number and a bias one higher."""
    if f.name in _NAMED.values():
        return f
    return FloatFormat(f.name, f.exponent_bits, f.mantissa_bits, 2 ** (f.exponent_bits - 1), "finite")


def _cast(y: Array, f: FloatFormat, overflow: Overflow) -> Array:
    """The nearest of the format's numbers, ties to the even one; NaN stays."""
    is_nan = np.isnan(y)
    near = cast(np.where(is_nan, np.asarray(0, y.dtype), y).astype(np.float64), f, overflow=overflow).astype(y.dtype)
    return np.where(is_nan, y, near)


@formula(
    "aimet/float_gradient",
    equation=r"\partial x = \begin{cases} g & |x / scale| \le max \\ 0 & else \end{cases}",
    basis=AsComputed(dtype="the tensor's"),
    source="class FloatQuantizeDequantize: the derivative of the equations, as affine.quantize_dequantize has it",
    behaviour=FloatGradient(),
    versions={"2.42": (FloatGradient(straight="rounded"), _MEASURED)},
)
def float_gradient(b: FloatGradient, tensor: Array, scale: Array, gradient: Array, dtype: str) -> Array:
    """Gradient of ``float_quantize_dequantize`` with respect to ``tensor``, straight through the rounding.

    Args:
        tensor: as in ``float_quantize_dequantize``, and so the errors.
        scale: real per number, float32; broadcasts to ``tensor``.
        gradient: of the result, of the shape and dtype of ``tensor``.
        dtype: the format's name.
    """
    float_quantize_dequantize(FloatValues(), tensor, scale, dtype=dtype)  # its errors
    f, zero = FLOAT_FORMATS[dtype], np.asarray(0, gradient.dtype)
    with np.errstate(all="ignore"):
        y = np.abs(tensor / scale).astype(tensor.dtype)
        inside = (y < f.max if b.largest == "outside" else y <= f.max) | ((y > f.max) & (b.beyond == "passed"))
        if b.straight == "exact":
            return np.where(inside, gradient, zero)
        narrow = cast((gradient * scale).astype(gradient.dtype), f, overflow="special")
        found: Array = (np.where(inside, narrow, zero) / scale).astype(gradient.dtype)
        return found
