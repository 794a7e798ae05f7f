"""compressed-tensors: ``quantize``, ``dequantize``, ``fake_quantize`` with integer codes, and how scales are made."""

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.grid import Grid
from halfeven.reference.minifloat import FLOAT_FORMATS, cast
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile

__all__ = [
    "COMPRESSED_TENSORS",
    "calculate_qparams",
    "calculate_range",
    "cast_to_fp4",
    "dequantize",
    "fake_quantize",
    "generate_gparam",
    "generate_mx_scales",
    "quantize",
    "round_to_power_2",
]

_FORWARD = "compressed_tensors.quantization.lifecycle.forward"
_HELPERS = "compressed_tensors.quantization.utils.helpers"
_MX = "compressed_tensors.quantization.utils.mxfp_utils"


@formula(
    "compressed_tensors.quantize",
    equation=r"q = \lceil \mathrm{clamp}(x / s + z,\ q_{min},\ q_{max}) \rfloor",
    basis=AsComputed(dtype="input"),
    source=f"{_FORWARD}.quantize",
)
def quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x`` as floats of its dtype: the zero point is added to the quotient, then limited, then rounded.

    Arguments and errors as in ``Profile.quantize``.
    """
    t = x.dtype
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        z = per_element(zero_point, x.shape, block_size).astype(t)
        qmin, qmax = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        scaled = x / s + z
        return np.rint(np.where(scaled < qmin, qmin, np.where(scaled > qmax, qmax, scaled)))


@formula(
    "compressed_tensors.dequantize",
    equation=r"\hat x = (q - z) * s",
    basis=AsComputed(dtype="the scale's"),
    source=f"{_FORWARD}.dequantize",
)
def dequantize(
    q: Array,
    scale: Array,
    zero_point: Array,
    _grid: Grid,
    dtype: "np.dtype[np.generic]",
    block_size: BlockSize | None = None,
) -> Array:
    """Reals of the codes ``q`` in ``dtype``, which is the scale's.

    Arguments and errors as in ``Profile.dequantize``.
    """
    with np.errstate(all="ignore"):
        s = per_element(scale, q.shape, block_size).astype(dtype)
        z = per_element(zero_point, q.shape, block_size).astype(dtype)
        reals: Array = (q.astype(dtype) - z) * s
    return reals


def fake_quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """``x`` on the grid: the codes stay floats, and are dequantized."""
    return dequantize(quantize(x, scale, zero_point, grid, block_size), scale, zero_point, grid, x.dtype, block_size)


COMPRESSED_TENSORS = Profile(
    name="compressed-tensors",
    title="round(clamp(x / s + zero_point, qmin, qmax)); (q - zero_point) * s",
    source="compressed-tensors: compressed_tensors.quantization, QuantizationArgs of type int",
    model=EvaluationModel(zero_point="before-rounding", clamp="before-rounding"),
    dtypes=("float32", "float64", "float16", "bfloat16"),
    scale_dtype="input",
    codes="input",
    bits=(1, 16),
    grids=tuple(
        Grid(-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in (8, 4, 16, 1, 2, 3, 5, 6, 7, 9, 10, 11, 12, 13, 14, 15)
    ),
    numpy={
        "quantize": "np.rint(np.clip(x / scale + np.float32(zero_point), qmin, qmax))",
        "dequantize": "(np.float32(q) - np.float32(zero_point)) * scale",
        "fake_quantize": (
            "(np.rint(np.clip(x / scale + np.float32(zero_point), qmin, qmax)) - np.float32(zero_point)) * scale"
        ),
    },
    transcriptions={"quantize": quantize, "dequantize": dequantize, "fake_quantize": fake_quantize},
)

FP8_E4M3_MAX, FP6_E2M3_MAX, FP4_E2M1_MAX = 448.0, 7.5, 6.0


@formula(
    "compressed_tensors.calculate_range",
    equation=r"q_{min} = -2^{b-1},\ q_{max} = 2^{b-1} - 1;\ \text{float: } \pm 448, \pm 7.5, \pm 6",
    basis=AsComputed(dtype="float32"),
    source=f"{_HELPERS}.calculate_range",
)
def calculate_range(type: str, num_bits: int) -> tuple[Array, Array]:  # noqa: A002 - the document's own word
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
            q_max, q_min = bit_range / 2 - 1, -bit_range / 2
        case "float":
            if num_bits not in (4, 6, 8):
                msg = f"num_bits={num_bits} is not accepted for type='float': give 4, 6 or 8"
                raise NotImplementedError(msg)
            q_max = {8: FP8_E4M3_MAX, 6: FP6_E2M3_MAX, 4: FP4_E2M1_MAX}[num_bits]
            q_min = -q_max
        case _:
            msg = f"type={type!r} is not accepted: give int or float"
            raise ValueError(msg)
    return np.asarray(q_min, np.float32), np.asarray(q_max, np.float32)


@formula(
    "compressed_tensors.calculate_qparams",
    equation=r"s = \max(|m|, |M|) / ((q_{max} - q_{min}) / 2),\ z = 0;\quad "
    r"s = (M - m) / (q_{max} - q_{min}),\ z = \lceil \mathrm{clamp}(q_{min} - m / s) \rfloor",
    basis=AsComputed(dtype="that of the minimum and maximum"),
    source=f"{_HELPERS}.calculate_qparams",
)
def calculate_qparams(
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
    bit_min, bit_max = calculate_range(type, num_bits)
    t = min_vals.dtype
    zero, two = np.zeros((), t), np.asarray(2, t)
    with np.errstate(all="ignore"):
        bit_range = (bit_max - bit_min).astype(t)
        min_vals, max_vals = np.minimum(min_vals, zero), np.maximum(max_vals, zero)
        mx = type == "float" and num_bits in (4, 6, 8) and group_size == 32 and scale_dtype == "uint8"  # noqa: PLR2004
        # 1. The scale and the zero point.
        if symmetric:
            max_val_pos = np.maximum(np.abs(min_vals), np.abs(max_vals))
            scales = generate_mx_scales(max_val_pos, num_bits) if mx else max_val_pos / (bit_range / two)
            zero_points = np.zeros(scales.shape, t)
        else:
            if type == "float" and num_bits in (4, 6):
                msg = f"symmetric=False is not accepted for a float of num_bits={num_bits}"
                raise NotImplementedError(msg)
            scales = (max_vals - min_vals) / bit_range
            zero_points = np.clip(bit_min.astype(t) - min_vals / scales, bit_min.astype(t), bit_max.astype(t))
        # 2. The global scale. 3. The dtype of the scale. 4. The exponent becomes a power of two.
        if global_scale is not None:
            scales = global_scale * scales
        if scale_dtype is not None:
            scales = _round_to_dtype(scales, scale_dtype).astype(scales.dtype)
        if mx:
            scales = np.ldexp(np.float32(1), scales.astype(np.int32) - 127).astype(scales.dtype)
        # 5. No scale is zero.
        eps = {"float8_e4m3fn": 0.125, "uint8": 1.0}.get(named := scale_dtype or scales.dtype.name)
        eps = float(ml_dtypes.finfo(named).eps) if eps is None else eps  # type: ignore[no-untyped-call]
        scales = np.where(scales == 0, np.asarray(eps, scales.dtype), scales)
        # 6. The dtype of the zero point.
        zp_dtype = "float8_e4m3fn" if type == "float" else _INTEGERS[(num_bits > 8) + (num_bits > 16)]  # noqa: PLR2004
        zero_points = _round_to_dtype(zero_points, zp_dtype)
    return np.atleast_1d(scales), np.atleast_1d(zero_points)


def _round_to_dtype(tensor: Array, dtype: str) -> Array:
    """Limited to the range of ``dtype``, then rounded to it; NaN becomes the integer 0 (measured)."""
    if dtype.startswith(("float", "bfloat")):
        to = np.dtype(getattr(ml_dtypes, dtype, dtype))
        largest = np.asarray(float(ml_dtypes.finfo(to).max)).astype(tensor.dtype)  # type: ignore[no-untyped-call]
        return np.clip(tensor, -largest, largest).astype(to)
    info = np.iinfo(dtype)
    limited = np.clip(tensor.astype(np.float64), info.min, info.max)
    return np.nan_to_num(np.rint(limited), nan=0).astype(dtype)


@formula(
    "compressed_tensors.generate_gparam",
    equation=r"g = 448 \cdot 6 / \max(|m|, |M|)",
    basis=Real(),
    source=f"{_HELPERS}.generate_gparam",
)
def generate_gparam(updated_min_val: Array, updated_max_val: Array) -> Array:
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
    with np.errstate(all="ignore"):
        global_scale = np.asarray(FP8_E4M3_MAX * FP4_E2M1_MAX, t) / max_val_pos
    held: Array = np.where(np.isfinite(global_scale), global_scale, np.ones((), t)).astype(np.float32)
    return held.reshape([1])


@formula(
    "compressed_tensors.generate_gparam@0.20",
    equation=r"g = (448 \cdot 6) * (1 / \max(|m|, |M|))",
    basis=AsComputed(dtype="that of the minimum and maximum"),
    source="compressed-tensors 0.20.0, measured: torch divides a number by a tensor with its reciprocal",
)
def generate_gparam_0_20(updated_min_val: Array, updated_max_val: Array) -> Array:
    """448 * 6 times the rounded reciprocal of the magnitude: about one result in four is another."""
    t = updated_min_val.dtype
    max_val_pos = _largest(updated_min_val, updated_max_val)
    with np.errstate(all="ignore"):
        global_scale = np.asarray(FP8_E4M3_MAX * FP4_E2M1_MAX, t) * (np.ones((), t) / max_val_pos)
    held: Array = np.where(np.isfinite(global_scale), global_scale, np.ones((), t)).astype(np.float32)
    return held.reshape([1])


def _largest(minimum: Array, maximum: Array) -> Array:
    """max(|m|, |M|) of an interval that holds 0, and no less than the smallest normal number; NaN passes."""
    if np.broadcast(minimum, maximum).size != 1:
        msg = (
            f"updated_min_val of shape {minimum.shape} and maximum of {maximum.shape} are not accepted: one number each"
        )
        raise RuntimeError(msg)
    zero = np.zeros((), minimum.dtype)
    largest = np.maximum(np.abs(np.minimum(minimum, zero)), np.abs(np.maximum(maximum, zero)))
    tiny = float(ml_dtypes.finfo(minimum.dtype).smallest_normal)  # type: ignore[no-untyped-call]
    normal: Array = np.maximum(largest, np.asarray(tiny, minimum.dtype))
    return normal


_INTEGERS = ("int8", "int16", "int32")
_UNSIGNED = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}


@formula(
    "compressed_tensors.round_to_power_2",
    equation=r"2^{e + [m \ge 2 - 2^{-k-1}]},\quad |x| = m \cdot 2^e,\ 1 \le m < 2",
    basis=Real(),
    source=f"{_MX}.round_to_power_2",
)
def round_to_power_2(x: Array, elem_mantissa: int = 1) -> Array:
    """The power of two below ``x``, or the next where an element of k mantissa bits would be rounded up to it.

    The bits of the exponent after half a unit of the element is added to the bits of ``x``, whatever they mean: what
    is subnormal becomes 0 or the smallest normal number, the sign stays, NaN becomes an infinity (measured).

    Args:
        x: float16, bfloat16, float32 or float64 of any shape.
        elem_mantissa: k, from 0 to one less than the mantissa bits of ``x``.

    Raises:
        TypeError: ``x`` is not float16, bfloat16, float32 or float64.
        ValueError: ``elem_mantissa`` is as many as the mantissa bits of ``x``, or more.
    """
    if x.dtype.name not in _UNSIGNED:
        msg = f"x of dtype {x.dtype} is not accepted: give {', '.join(_UNSIGNED)}"
        raise TypeError(msg)
    bits = np.ascontiguousarray(x).view(_UNSIGNED[x.dtype.name])
    mantissa = int(ml_dtypes.finfo(x.dtype).nmant)  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        val_to_add = np.asarray(1 << (mantissa - elem_mantissa - 1), bits.dtype)
        mantissa_mask = np.asarray((1 << mantissa) - 1, bits.dtype)
        power: Array = ((bits + val_to_add) & ~mantissa_mask).view(x.dtype)
    return power.reshape(x.shape)


@formula(
    "compressed_tensors.generate_mx_scales",
    equation=r"127 + \lfloor \log_2 p \rfloor - \lfloor \log_2 \max \rfloor",
    basis=Real(),
    source=f"{_MX}.generate_mx_scales",
)
def generate_mx_scales(x: Array, num_bits: int = 4) -> Array:
    """The biased E8M0 exponents of groups whose largest magnitude is ``x``, as floats of its dtype, not yet limited.

    p is ``round_to_power_2(x)``; the last term is 2, 2, 8 for elements of 4, 6, 8 bits. 0 gives -inf, infinity and
    NaN inf, a negative number NaN.

    Args:
        x: largest magnitudes, in reals; float16, bfloat16, float32 or float64 of any shape.
        num_bits: width of the elements: 4, 6 or 8.

    Raises:
        KeyError: another ``num_bits``.
        TypeError: ``x`` is not float16, bfloat16, float32 or float64.
    """
    if num_bits not in (4, 6, 8):
        msg = f"num_bits={num_bits} is not accepted: give 4, 6 or 8"
        raise KeyError(msg)
    offset = {4: 2, 6: 2, 8: 8}[num_bits]
    scale_power_2 = round_to_power_2(x, 3 if num_bits == 6 else 1).astype(np.float64)  # noqa: PLR2004 - E2M3
    _, exponent = np.frexp(scale_power_2)  # of a fraction in [0.5, 1)
    biased = 127.0 + (exponent - 1) - offset
    biased = np.where(scale_power_2 == 0, -np.inf, np.where(np.isinf(scale_power_2), np.inf, biased))
    return np.where(scale_power_2 < 0, np.nan, biased).astype(x.dtype)


@formula(
    "compressed_tensors.cast_to_fp4",
    equation=r"\mathrm{sign}(x) \cdot \arg\min_{v \in \{0, 0.5, 1, 1.5, 2, 3, 4, 6\}} | |x| - v |",
    basis=Real(),
    source="compressed_tensors.quantization.quant_args.FP4_E2M1_DATA.cast_to_fp4",
)
def cast_to_fp4(x: Array) -> Array:
    """The nearest E2M1 value in ``x.dtype``; a tie goes to the even code, what is beyond 6 to 6, NaN stays.

    A small negative number gives -0.0, and -0.0 gives 0.0 (measured).

    Args:
        x: float16, bfloat16, float32 or float64 of any shape.

    Raises:
        TypeError: ``x`` is of another dtype.
    """
    magnitude = np.abs(x)
    known = np.where(np.isnan(magnitude), np.zeros((), x.dtype), magnitude)
    nearest = cast(known, FLOAT_FORMATS["float4_e2m1fn"], overflow="saturate")
    signed = np.where(x < 0, -nearest, nearest)
    return np.where(np.isnan(x), x, signed).astype(x.dtype)
