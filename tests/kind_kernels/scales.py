"""Choices of scales: for a tensor, rows and blocks, of magnitudes and of ranges, rounded, and with their codes."""

import ml_dtypes
import numpy as np
import torch

from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED
from kind_kernels import BF16, F16, F32, F64, Kernel

__all__ = ["BLOCKS", "SCALES"]

AMAX, ROW, TENSOR = "the largest magnitude", "each row", "the tensor"
RANGE, RANGE_0 = "greatest - least", "greatest - least, 0 between them"


def rows(x):
    return np.abs(x).max(axis=1, keepdims=True)


def tensor(x):
    return np.abs(x).max()


def by_127(x):
    return tensor(x) / F32(127)


def by_127_rows(x):
    return rows(x) / F32(127)


def by_127_columns(x):
    return np.abs(x).max(axis=0) / F32(127)


def inverse_127(x):
    return rows(x) * F32(1 / 127)


def in_double(x):
    return float(tensor(x)) / 127


def at_least_1e8(x):
    return np.maximum(tensor(x), F32(1e-8)) / F32(127)


def torch_clamped(x):
    return x.abs().amax(dim=1, keepdim=True).clamp(min=1e-5) / 127


def scale_clamped(x):
    return (x.abs().amax(dim=-1) / 127.0).clamp(min=torch.finfo(torch.float32).eps)


def added(x):
    return (rows(x) + F32(1e-8)) / F32(127)


def by_128(x):
    return rows(x) / F32(128)


def half_steps(x):
    return rows(x) / F32(127.5)


def twice_by_255(x):
    return F32(2) * rows(x) / F32(255)


def by_7(x):
    return rows(x) / F32(7)


def by_113(x):
    return rows(x) / F32(113)


def to_half(x):
    return (rows(x) / F32(127)).astype(F16)


def to_bfloat(x):
    return (rows(x) / F32(127)).astype(BF16)


def one_where_zero(x):
    a = rows(x)
    return np.where(a == 0, F32(1), a / F32(127))


def codes_per_real(x):
    return F32(127) / rows(x)


def inverse_of_scale(x):
    return F32(1) / (rows(x) / F32(127))


def torch_fp8(x):
    return x.abs().max() / 448.0


def te_fp8(x):
    return 448.0 / x.abs().max()


def by_57344(x):
    return rows(x) / F32(57344)


def min_max(x):
    low, high = x.min(axis=1), x.max(axis=1)
    scale = (high - low) / F32(255)
    return scale, np.clip(np.rint(-low / scale), 0, 255).astype(np.int32)


def min_max_codes(x):
    scale, zero = (a[:, None] for a in min_max(x))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), scale, zero


def min_max_half_added(x):
    scale, zero = (a[:, None] for a in min_max(x))
    codes = np.floor(x / scale + (zero.astype(F32) + F32(0.5)))
    return np.clip(codes, 0, 255).astype(np.uint8), scale, zero


def min_max_zero(x):
    low, high = min(x.min(), F32(0)), max(x.max(), F32(0))
    scale = max((high - low) / F32(255), np.finfo(F32).eps)
    return scale, np.clip(F32(-128) - np.rint(low / scale), -128, 127).astype(np.int32)


def min_max_alone(x):
    return (x.max(axis=1) - x.min(axis=1)) / F32(15)


def min_max_offset(x):
    low, high = x.min(axis=1), x.max(axis=1)
    return (high - low) / F32(15), low


def offset_first(x):
    return min_max_offset(x)[::-1]


def offset_of_the_tensor_first(x):
    low, high = x.min(), x.max()
    return low, (high - low) / F32(15)


def columns_with_codes(x):
    scale = by_127_columns(x)
    return scale, np.clip(np.rint(x / scale), -128, 127)


def by_inverse(x):
    """Codes of a reciprocal of the scale, which is infinite where that is subnormal: 0 times it is NaN."""
    s = x.abs().amax(-1, keepdim=True) / 127
    return (x * (1 / s)).round().clamp(-128, 127).to(torch.int8), s


def per_token(x):
    """As for each token: torch takes 127.0 / a for 127 times the reciprocal."""
    a = x.abs().amax(-1, keepdim=True)
    return torch.round(x * (127.0 / a)).clamp(-128, 127).to(torch.int8), a / 127


def with_magnitude(x):
    a = np.abs(x).max(axis=-1, keepdims=True)
    return np.clip(np.rint(x * (F32(127) / a)), -127, 127), a


def power_up(x):
    a = rows(x).astype(F64)
    return np.where(a > 0, 2.0 ** np.ceil(np.log2(np.where(a > 0, a, 1) / 127)), 1.0).astype(F32)


def scale_added(x):
    return rows(x) / F32(127) + F32(1e-6)


def greatest_255(x):
    return np.maximum(x.max(axis=1), F32(0)) / F32(255)


def observer(x):
    return ((x.amax() - x.amin()) / 255).clamp(min=1e-8)


def constant_zero_point(x):
    scale = rows(x) / F32(127)
    return scale, np.zeros(scale.shape, np.int32)


def finite_alone(x):
    if not np.isfinite(x).all():
        message = "x is not finite"
        raise ValueError(message)
    return by_127_rows(x)


def _s(over, divisor, of=AMAX, division="divide", **more):
    return {"over": over, "of": of, "divisor": divisor, "division": division, **more}


#: 1 / 127 is a float but for 2^-28 of it: no data were found that tell a product from the quotient, once rounded.
_UNTOLD = {"divide", UNDECIDED}
_EVEN = {"codes": "integers", "code_rounding": "half-even"}
_OF_MAGNITUDE = ("x * (127 / the magnitude)", "x * (127 * (1 / the magnitude))")
_EPS = "1.1920928955078125e-07 of the scale"

_SHIFTED = {"zero_point": "round(-least / s)", "code_offset": "the zero point", "code_limits": (0, 255)}

SCALES = [
    Kernel("amax / 127", by_127, _s(TENSOR, 127.0, least="none", held="as computed", zero="0.0")),
    Kernel("amax / 127 of rows", by_127_rows, _s(ROW, 127.0, least="none", nan="propagates")),
    Kernel("amax / 127 of columns", by_127_columns, _s("each column", 127.0, least="none")),
    Kernel("amax * (1 / 127)", inverse_127, _s(ROW, 127.0, division="reciprocal")),
    Kernel("amax / 127 in double", in_double, _s(TENSOR, 127.0, compute="float64")),
    Kernel("max(amax, 1e-8) / 127", at_least_1e8, _s(TENSOR, 127.0, least="1e-08 of the magnitude")),
    Kernel("torch, amax.clamp(1e-5)", torch_clamped, _s(ROW, 127.0, least="1e-05 of the magnitude"), "torch"),
    Kernel("torch, scale.clamp(eps)", scale_clamped, _s(ROW, 127.0, least=_EPS), "torch"),
    Kernel("(amax + 1e-8) / 127", added, _s(ROW, 127.0, least="1e-08 added to the magnitude")),
    Kernel("amax / 128", by_128, _s(ROW, 128.0, division=INDISTINGUISHABLE)),
    Kernel("amax / 127.5", half_steps, _s(ROW, 127.5)),
    Kernel("2 * amax / 255", twice_by_255, _s(ROW, 127.5)),
    Kernel("amax / 7", by_7, _s(ROW, 7.0)),
    Kernel("amax / 113", by_113, _s(ROW, 113.0)),
    Kernel("float16 scale", to_half, _s(ROW, 127.0, division=_UNTOLD, held="float16")),
    Kernel("bfloat16 scale", to_bfloat, _s(ROW, 127.0, division=_UNTOLD, held="bfloat16")),
    Kernel("1 where zero", one_where_zero, _s(ROW, 127.0, zero="1.0", least="none")),
    Kernel("127 / amax", codes_per_real, _s(ROW, 127.0, division="codes-per-real")),
    Kernel("1 / (amax / 127)", inverse_of_scale, _s(ROW, 127.0, division="inverse")),
    Kernel("torch, amax / 448", torch_fp8, _s(TENSOR, 448.0), "torch"),
    Kernel("torch, 448 / amax", te_fp8, _s(TENSOR, 448.0, division="times-inverse"), "torch"),
    Kernel("amax / 57344", by_57344, _s(ROW, 57344.0)),
    Kernel("min/max, uint8", min_max, _s(ROW, 255.0, RANGE, zero_point="round(-least / s)", qmin=0)),
    Kernel(
        "min/max with 0, int8",
        min_max_zero,
        _s(TENSOR, 255.0, RANGE_0, least=_EPS, qmin=-128),
    ),
    Kernel("min/max alone, uint4", min_max_alone, _s(ROW, 15.0, RANGE)),
    Kernel("min/max, uint8 with codes", min_max_codes, _s(ROW, 255.0, RANGE, code_rounding="half-even", **_SHIFTED)),
    Kernel(
        "min/max, a half added",
        min_max_half_added,
        _s(ROW, 255.0, RANGE, code_rounding="half-up, added with the offset", **_SHIFTED),
    ),
    Kernel("min/max and the least", min_max_offset, _s(ROW, 15.0, RANGE, zero_point="the least")),
    Kernel("the least and min/max", offset_first, _s(ROW, 15.0, RANGE, zero_point="the least")),
    Kernel("the least and min/max of all", offset_of_the_tensor_first, _s(TENSOR, 15.0, RANGE, zero_point="the least")),
    Kernel(
        "columns with codes",
        columns_with_codes,
        _s("each column", 127.0, codes="integers", code_quotient="x / s"),
    ),
    Kernel("codes by 1 / s", by_inverse, _s(ROW, 127.0, **_EVEN, code_quotient="x * (1 / s)"), "torch"),
    Kernel("codes by 127.0 / amax", per_token, _s(ROW, 127.0, **_EVEN, code_quotient=_OF_MAGNITUDE[1]), "torch"),
    Kernel(
        "codes by 127 / amax",
        with_magnitude,
        _s(ROW, 1.0, division="not distinguishable", **_EVEN, code_quotient=_OF_MAGNITUDE[0]),
    ),
    Kernel("power of two", power_up, _s(ROW, 127.0, division=_UNTOLD, held="power of two, up", zero="1.0")),
    Kernel("amax / 127 + 1e-6", scale_added, _s(ROW, 127.0, least="1e-06 added to the scale")),
    Kernel("max(x, 0) / 255", greatest_255, _s(ROW, 255.0, "the greatest, 0 at least")),
    Kernel("torch, min/max observer", observer, _s(TENSOR, 255.0, RANGE, least="1e-08 of the scale"), "torch"),
    Kernel("refuses what is no number", finite_alone, _s(ROW, 127.0, zero="0.0", infinity=UNDECIDED, nan=UNDECIDED)),
    Kernel("zero point 0", constant_zero_point, _s(ROW, 127.0, zero_point="0 always")),
]


def blocks(x, n=32):
    return x.reshape(-1, n)


def block_amax(x, n=32):
    return np.abs(blocks(x, n)).max(axis=1)


def block_127(x):
    return block_amax(x) / F32(127)


def block_448(x):
    return block_amax(x, 128) / F32(448)


def block_448_inverse(x):
    return F32(448) / np.maximum(block_amax(x, 128), F32(1e-12))


def block_127_5(x):
    return block_amax(x, 32) / F32(127.5)


def group_min_max(x):
    b = blocks(x, 32)
    return (b.max(1) - b.min(1)) / F32(15), b.min(1)


def nvfp4(x):
    whole = tensor(x) / F32(6 * 448)
    return (block_amax(x, 16) / F32(6) / whole).astype(ml_dtypes.float8_e4m3fn), whole


def nvfp4_torch(x):
    """As vLLM: codes per real of the tensor, times the block's."""
    whole = (448.0 * 6.0) / x.abs().max()
    return (whole * (x.reshape(-1, 16).abs().amax(1) / 6.0)).clamp(max=448.0).to(torch.float8_e4m3fn)


def nvfp4_blocks(x):
    return np.clip(block_amax(x, 16) / F32(6), 0, 448).astype(ml_dtypes.float8_e4m3fn)


def q8_0(x):
    b = blocks(x)
    d = np.abs(b).max(axis=1, keepdims=True) / F32(127)
    inverse = np.where(d != 0, F32(1) / np.where(d != 0, d, F32(1)), F32(0))
    v = b * inverse
    return d.astype(F16), np.trunc(v + np.copysign(F32(0.5), v)).astype(np.int64)


def q4_0(x):
    b = blocks(x)
    at = np.abs(b).argmax(axis=1)[:, None]
    d = np.take_along_axis(b, at, 1) / F32(-8)
    inverse = np.where(d != 0, F32(1) / np.where(d != 0, d, F32(1)), F32(0))
    q = np.minimum(15, np.nan_to_num(np.trunc(b * inverse + F32(8.5)), posinf=0, neginf=0)).astype(np.uint8)
    return d.astype(F16), q[:, :16] | (q[:, 16:] << 4)


def mx_down(x):
    """The exponent of amax less 2, as a code."""
    a = block_amax(x)
    e = (a.view(np.uint32) >> 23).astype(np.int64)
    return np.where(np.isfinite(a), np.maximum(e - 2, 0), 255).astype(np.uint8)


def mx_up(x):
    a = np.maximum(block_amax(x).astype(F64), 2.0**-126)
    return 2.0 ** np.clip(np.ceil(np.log2(a / 6)), -127, 127)


def mx_nearest(x):
    a = block_amax(x).astype(F64)
    return 2.0 ** np.clip(np.rint(np.log2(np.maximum(a / 448, 2.0**-200))), -127, 127)


def nearest_of_a_quarter(x):
    """amax / 4 as the nearest power of two, which is amax / 3 rounded down."""
    fraction, exponent = np.frexp(block_amax(x).astype(F64) / 4)
    return np.where(np.isfinite(fraction), np.ldexp(1.0, exponent - 1 + (fraction >= 0.75)), np.nan)


def mx_even(x):
    """As torchao's EVEN: half a bit of e2m1 is added to amax, then its exponent is taken."""
    a = block_amax(x)
    bits = (a.view(np.int32) + (1 << 21)) & 0x7F800000
    e = np.maximum((bits >> 23) - 2, 0)
    return np.where(np.isfinite(a), np.exp2(e - 127.0), np.nan)


def int8_codes(x):
    b = blocks(x, 64)
    s = np.maximum(np.abs(b).max(1, keepdims=True), F32(1e-5)) / F32(127)
    return s, np.clip(np.rint(b / s), -128, 127)


def fp8_codes(x):
    b = blocks(x, 128)
    s = np.maximum(np.abs(b).max(1, keepdims=True), F32(1e-4)) / F32(448)
    return s, (b / s).astype(ml_dtypes.float8_e4m3fn)


def _b(n, divisor, of=AMAX, **more):
    return {"over": f"blocks of {n}" if n != 64 else ROW, "of": of, "divisor": divisor, **more}


_E12 = "1e-12 of the magnitude"
_DIVIDED = {"code_quotient": "x / s", "code_rounding": "half-even"}
_HALVES = "two to a byte, the first half in the low bits"
_UNROUNDED = {"codes": "integers", "code_quotient": "x * (1 / s)", "code_scale": "before it is"}
_Q8_0 = {**_UNROUNDED, "code_rounding": "half-away"}
_Q4_0 = {**_UNROUNDED, "code_rounding": "half-up, added with the offset", "code_offset": 8.0, "code_places": _HALVES}

BLOCKS = [
    Kernel("amax / 127, 32", block_127, _b(32, 127.0, least="none")),
    Kernel("amax / 448, 128", block_448, _b(128, 448.0)),
    Kernel(
        "448 / max(amax, 1e-12)",
        block_448_inverse,
        _b(128, 448.0, division="codes-per-real", least=_E12),
    ),
    Kernel("amax / 127.5, 32", block_127_5, _b(32, 127.5)),
    Kernel("min/max of groups", group_min_max, _b(32, 15.0, RANGE, zero_point="the least")),
    Kernel("NVFP4", nvfp4, _b(16, 6.0, held="float8_e4m3fn, not saturating", within="divided by the tensor's")),
    Kernel("torch, NVFP4", nvfp4_torch, _b(16, UNDECIDED, held="float8_e4m3fn"), "torch"),
    Kernel("NVFP4 without the tensor's", nvfp4_blocks, _b(16, 6.0, held="float8_e4m3fn", within="no other")),
    Kernel(
        "ggml, Q8_0",
        q8_0,
        _b(32, 127.0, held="float16", **_Q8_0),
    ),
    Kernel(
        "ggml, Q4_0",
        q4_0,
        _b(32, -8.0, "the number of the largest magnitude", held="float16", **_Q4_0),
    ),
    Kernel("MX, down", mx_down, _b(32, 4.0, held="power of two, down", gives="the code of a float8_e8m0fnu")),
    Kernel("MX, up", mx_up, _b(32, 6.0, compute={INDISTINGUISHABLE, UNDECIDED}, held="power of two, up")),
    Kernel("MX, nearest", mx_nearest, _b(32, 448.0, held="power of two, nearest logarithm")),
    Kernel("a quarter, nearest", nearest_of_a_quarter, _b(32, UNDECIDED, held=UNDECIDED, division=UNDECIDED)),
    Kernel("MX, even", mx_even, _b(32, 4.0, held="power of two, rounded as e2m1")),
    Kernel("int8 with codes", int8_codes, _b(64, 127.0, codes="integers", **_DIVIDED)),
    Kernel("e4m3fn with codes", fp8_codes, _b(128, 448.0, codes="float8_e4m3fn")),
]
