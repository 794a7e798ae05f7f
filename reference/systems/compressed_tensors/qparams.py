"""compressed-tensors: the range of codes, and scales and zero points from observed extremes. Real per code."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.compressed_tensors.floats import MxScales, generate_mx_scales

__all__ = [
    "CodeRange",
    "GlobalScale",
    "Qparams",
    "calculate_qparams",
    "calculate_range",
    "generate_gparam",
]

_HELPERS = "compressed_tensors.quantization.utils.helpers"
FP8_E4M3_MAX, FP6_E2M3_MAX, FP4_E2M1_MAX = 448.0, 7.5, 6.0
_INTEGERS = ("int8", "int16", "int32")


@dataclass(frozen=True)
class CodeRange(Behaviour):
    """The choices in the ends of a range of codes."""

    lowest: str = choice(
        {
            "kept": "takes -2^(b-1) for the lowest code",
            "left-out": "takes 1 - 2^(b-1) for the lowest code",
        }
    )
    float8: float = choice(
        {
            448.0: "takes 448 for the largest float of 8 bits",
            240.0: "takes 240 for the largest float of 8 bits",
        }
    )


@dataclass(frozen=True)
class Qparams(Behaviour):
    """The choices in making scales and zero points of extremes."""

    range: str = choice(
        {
            "with-zero": "widens the range to hold zero",
            "own": "takes the range as it is",
        }
    )
    symmetric: str = choice(
        {
            "half-steps": "maps the larger magnitude to half the steps of the grid",
            "upper-end": "maps the larger magnitude to the highest code",
        }
    )
    steps: str = choice(
        {
            "intervals": "takes the highest code less the lowest for the steps of the grid",
            "codes": "takes the number of codes for the steps of the grid",
        }
    )
    division: str = choice(
        {
            "divide": "divides by the steps",
            "reciprocal": "multiplies by the rounded reciprocal of the steps",
        }
    )
    global_scale: str = choice(
        {
            "before": "multiplies by the global scale before the scale is rounded to its dtype",
            "after": "multiplies by the global scale after the scale was rounded to its dtype",
        }
    )
    zero_scale: str = choice(
        {
            "eps": "takes epsilon for a scale of 0",
            "least": "takes epsilon for the least scale",
            "one": "takes 1 for a scale of 0",
        }
    )
    rounding: str = roundings("the zero point")


@dataclass(frozen=True)
class GlobalScale(Behaviour):
    """The choices in making a global scale."""

    division: str = choice(
        {
            "divide": "divides 448 * 6 by the magnitude",
            "reciprocal": "multiplies 448 * 6 by the rounded reciprocal of the magnitude, as torch divides a number",
        }
    )
    no_number: str = choice(
        {
            "one": "takes 1 where the equation gives no finite number",
            "kept": "keeps infinity and NaN",
        }
    )


@formula(
    "compressed-tensors/calculate_range",
    equation=r"q_{min} = -2^{b-1},\ q_{max} = 2^{b-1} - 1;\ \text{float: } \pm 448, \pm 7.5, \pm 6",
    basis=AsComputed(dtype="float32"),
    source=f"{_HELPERS}.calculate_range",
    behaviour=CodeRange(),
)
def calculate_range(
    b: CodeRange,
    type: str,  # noqa: A002 - the document's own word
    num_bits: int,
) -> tuple[Array, Array]:
    """The lowest and the highest code of ``type``, int or float, 0-d float32; no width is refused (measured).

    Args:
        type: int or float.
        num_bits: width of the codes: any of type int, 4, 6 or 8 of type float.

    Raises:
        ValueError: ``num_bits`` is no int, or ``type`` is unknown.
        NotImplementedError: a float of other than 4, 6 or 8 bits.
    """
    if int(num_bits) != num_bits:
        msg = f"num_bits={num_bits!r} is not accepted: give an int"
        raise ValueError(msg)  # as the library's validation does
    match type:
        case "int":
            bit_range = float(np.ldexp(1.0, num_bits))
            q_max, q_min = bit_range / 2 - 1, -bit_range / 2 + (b.lowest == "left-out")
        case "float":
            if num_bits not in (4, 6, 8):
                msg = f"num_bits={num_bits} is not accepted for type='float': give 4, 6 or 8"
                raise NotImplementedError(msg)
            q_max = {8: b.float8, 6: FP6_E2M3_MAX, 4: FP4_E2M1_MAX}[num_bits]
            q_min = -q_max
        case _:
            msg = f"type={type!r} is not accepted: give int or float"
            raise ValueError(msg)
    return np.asarray(q_min, np.float32), np.asarray(q_max, np.float32)


@formula(
    "compressed-tensors/calculate_qparams",
    equation=r"s = \max(|m|, |M|) / ((q_{max} - q_{min}) / 2),\ z = 0;\quad "
    r"s = (M - m) / (q_{max} - q_{min}),\ z = \lceil \mathrm{clamp}(q_{min} - m / s) \rfloor",
    basis=AsComputed(dtype="that of the minimum and maximum"),
    source=f"{_HELPERS}.calculate_qparams",
    behaviour=Qparams(),
)
def calculate_qparams(
    b: Qparams,
    min_vals: Array,
    max_vals: Array,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002 - the document's own word
    symmetric: bool = True,
    group_size: int | None = None,
    scale_dtype: str | None = None,
    global_scale: Array | None = None,
) -> tuple[Array, Array]:
    """Scales and zero points of observed minima and maxima; the arguments after those are of ``QuantizationArgs``.

    Args:
        min_vals: float16, bfloat16, float32 or float64 of any shape; a positive one counts as 0.
        max_vals: of the same dtype, broadcastable; a negative one counts as 0.
        num_bits: width of the codes.
        type: int or float.
        symmetric: the zero point is 0.
        group_size: with 32, type float and scale_dtype uint8 the scales are MX powers of two.
        scale_dtype: what the scale is rounded to (float8_e4m3fn, float16, bfloat16, uint8), in its own dtype again.
        global_scale: float32 of shape (1,), multiplied into the scale before that.

    Returns:
        Scales, of the dtype of the minima, or float32 with a global scale; zero points, of int8 (int16 above 8 bits,
        int32 above 16) or, of type float, of float8_e4m3fn. At least one dimension each.

    Raises:
        ValueError: ``num_bits``, ``type`` or ``group_size`` is not accepted.
        NotImplementedError: a float of a width it does not have, or one of 4 or 6 bits that is not symmetric.
    """
    if group_size is not None and (group_size < -1 or group_size == 0):
        msg = f"group_size={group_size} is not accepted: give a positive one, or -1"
        raise ValueError(msg)
    bit_min, bit_max = calculate_range(CodeRange(), type, num_bits)
    t = min_vals.dtype
    zero, two = np.zeros((), t), np.asarray(2, t)
    with np.errstate(all="ignore"):
        bit_range = (bit_max - bit_min + (b.steps == "codes")).astype(t)
        if b.range == "with-zero":
            min_vals, max_vals = np.minimum(min_vals, zero), np.maximum(max_vals, zero)
        mx = type == "float" and group_size == 32 and scale_dtype == "uint8"  # noqa: PLR2004
        # 1. The scale and the zero point.
        if symmetric:
            max_val_pos = np.maximum(np.abs(min_vals), np.abs(max_vals))
            half = bit_max.astype(t) if b.symmetric == "upper-end" else bit_range / two
            scales = generate_mx_scales(MxScales(), max_val_pos, num_bits) if mx else _over(b, max_val_pos, half)
            zero_points = np.zeros(scales.shape, t)
        else:
            if type == "float" and num_bits in (4, 6):
                msg = f"symmetric=False is not accepted for a float of num_bits={num_bits}"
                raise NotImplementedError(msg)
            scales = _over(b, max_vals - min_vals, bit_range)
            zero_points = np.clip(bit_min.astype(t) - min_vals / scales, bit_min, bit_max)
        # 2. The global scale. 3. The dtype of the scale. 4. The exponent becomes a power of two.
        if global_scale is not None and b.global_scale == "before":
            scales = global_scale * scales
        if scale_dtype is not None:
            scales = _round_to_dtype(scales, scale_dtype).astype(scales.dtype)
        if global_scale is not None and b.global_scale == "after":
            scales = global_scale * scales
        if mx:
            scales = np.ldexp(np.float32(1), scales.astype(np.int32) - 127).astype(scales.dtype)
        # 5. No scale is zero.
        named = scale_dtype or scales.dtype.name
        eps = 1.0 if named == "uint8" else float(ml_dtypes.finfo(named).eps)  # type: ignore[no-untyped-call]
        floor = np.asarray(1 if b.zero_scale == "one" else eps, scales.dtype)
        scales = np.maximum(scales, floor) if b.zero_scale == "least" else np.where(scales == 0, floor, scales)
        # 6. The dtype of the zero point.
        zp_dtype = "float8_e4m3fn" if type == "float" else _INTEGERS[(num_bits > 8) + (num_bits > 16)]  # noqa: PLR2004
        zero_points = _round_to_dtype(zero_points, zp_dtype, b.rounding)
    return np.atleast_1d(scales), np.atleast_1d(zero_points)


def _over(b: Qparams, width: Array, steps: Array) -> Array:
    return np.asarray(width / steps if b.division == "divide" else width * (np.ones((), width.dtype) / steps))


def _round_to_dtype(tensor: Array, dtype: str, rounding: str = "half-even") -> Array:
    """Limited to the range of ``dtype``, then rounded to it; NaN becomes the integer 0 (measured)."""
    if dtype.startswith(("float", "bfloat")):
        to = np.dtype(getattr(ml_dtypes, dtype, dtype))
        largest = np.asarray(float(ml_dtypes.finfo(to).max)).astype(tensor.dtype)  # type: ignore[no-untyped-call]
        return np.clip(tensor, -largest, largest).astype(to)
    info = np.iinfo(dtype)
    limited = np.clip(tensor.astype(np.float64), info.min, info.max)
    return np.nan_to_num(ROUNDINGS[rounding](limited), nan=0).astype(dtype)


@formula(
    "compressed-tensors/generate_gparam",
    equation=r"g = 448 \cdot 6 / \max(|m|, |M|)",
    basis=Real(),
    source=f"{_HELPERS}.generate_gparam",
    behaviour=GlobalScale(),
    versions={"0.20": (GlobalScale(division="reciprocal"), "compressed-tensors 0.20.0, measured")},
)
def generate_gparam(b: GlobalScale, updated_min_val: Array, updated_max_val: Array) -> Array:
    """The global scale of a whole tensor, float32 of shape (1,); 1 where the equation gives no finite number.

    Args:
        updated_min_val: the least value, in reals; one number of float16, bfloat16, float32 or float64, in which the
            quotient is rounded. A positive one counts as 0.
        updated_max_val: the greatest value, of the same dtype; a negative one counts as 0.

    Raises:
        RuntimeError: they are more than one number.
    """
    t = updated_min_val.dtype
    max_val_pos = _largest(updated_min_val, updated_max_val)
    largest = np.asarray(FP8_E4M3_MAX * FP4_E2M1_MAX, t)
    with np.errstate(all="ignore"):
        divided = largest / max_val_pos if b.division == "divide" else largest * (np.ones((), t) / max_val_pos)
    finite = np.isfinite(divided) | (b.no_number == "kept")
    held: Array = np.where(finite, divided, np.ones((), t)).astype(np.float32)
    return held.reshape([1])


def _largest(minimum: Array, maximum: Array) -> Array:
    """max(|m|, |M|) of an interval that holds 0; NaN passes. A subnormal one gives an infinite quotient, as 0 does."""
    if np.broadcast(minimum, maximum).size != 1:
        msg = (
            f"updated_min_val of shape {minimum.shape} and maximum of {maximum.shape} are not accepted: one number each"
        )
        raise RuntimeError(msg)
    zero = np.zeros_like(minimum)
    return np.asarray(np.maximum(np.abs(np.minimum(minimum, zero)), np.abs(np.maximum(maximum, zero))))
