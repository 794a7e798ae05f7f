"""Casts to small floats: of libraries, of bits that are cut or added to, through other formats, in Python and C."""

import math

import ml_dtypes
import numpy as np
import torch

from halfeven.conformance.fingerprints.casting import BY_PLACE, STOCHASTIC
from kind_kernels import BF16, F16, F32, Kernel

__all__ = ["CASTS"]

_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], F32)


def torch_e5m2(x):
    return x.to(torch.float8_e5m2)


def torch_bfloat16(x):
    return x.bfloat16()


def half(x):
    return x.astype(F16)


def e4m3_ml(x):
    return x.astype(ml_dtypes.float8_e4m3fn)


def e4m3_clipped(x):
    return np.clip(x, F32(-448), F32(448)).astype(ml_dtypes.float8_e4m3fn)


def e4m3_bits(x):
    return x.astype(ml_dtypes.float8_e4m3fn).view(np.uint8)


def e4m3_through_half(x):
    return x.astype(F16).astype(ml_dtypes.float8_e4m3fn)


def e4m3_through_bfloat(x):
    return x.bfloat16().to(torch.float8_e4m3fn)


def e5m2_through_half(x):
    return x.astype(F16).astype(ml_dtypes.float8_e5m2)


def e5m2_cut_off(x):
    return (x.astype(F16).view(np.uint16) >> 8).astype(np.uint8)


def e5m2_added(x):
    """A half and the lowest bit that is kept are added to the bits of a float16."""
    bits = x.astype(F16).view(np.uint16).astype(np.uint32)
    nan = (bits & 0x7FFF) > 0x7C00
    found = (bits + 0x7F + ((bits >> 8) & 1)) >> 8
    return np.where(nan, bits >> 8 | 2, found).astype(np.uint8)


def bfloat_half_up(x):
    """Adds 0x8000: ties go away from zero."""
    return ((x.view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(F32)


def bfloat_magic(x):
    bits = x.view(np.uint32)
    found = (bits + np.uint32(0x7FFF) + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)
    return np.where(np.isnan(x), F32(np.nan), found.view(F32))


def bfloat_cut(x):
    return (x.view(np.uint32) >> 16).astype(np.uint16)


def tf32_cut(x):
    return (x.view(np.uint32) & np.uint32(0xFFFFE000)).view(F32)


def tf32_away(x):
    """cvt.rna.tf32.f32."""
    found = ((x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)).view(F32)
    return np.where(np.isfinite(x), found, x)


def tf32_even(x):
    bits = x.view(np.uint32)
    found = ((bits + np.uint32(0xFFF) + ((bits >> 13) & 1)) & np.uint32(0xFFFFE000)).view(F32)
    return np.where(np.isfinite(x), found, x)


def e2m1_away(x):
    """By thresholds, ties away from zero."""
    a = np.abs(np.nan_to_num(x, posinf=6, neginf=-6))
    code = np.searchsorted((_E2M1[1:] + _E2M1[:-1]) / 2, a, side="right")
    return np.copysign(_E2M1[code], x)


def e2m1_to_zero(x):
    """Ties toward zero: ``>`` at every threshold."""
    a = np.abs(np.nan_to_num(x, posinf=6, neginf=-6))
    code = np.searchsorted((_E2M1[1:] + _E2M1[:-1]) / 2, a, side="left")
    return np.sign(np.nan_to_num(x)) * _E2M1[code]


def e2m1_codes(x):
    return np.clip(x, -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8)


def e2m1_packed(x):
    codes = np.clip(np.nan_to_num(x), -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).reshape(-1, 2)
    return codes[:, 0] | (codes[:, 1] << 4)


def e2m1_packed_high_first(x):
    codes = np.clip(np.nan_to_num(x), -6, 6).astype(ml_dtypes.float4_e2m1fn).view(np.uint8).reshape(-1, 2)
    return codes[:, 1] | (codes[:, 0] << 4)


def e8m0_up(x):
    """ceil(log2(x)) as a power of two."""
    with np.errstate(all="ignore"):
        a = np.abs(x).astype(np.float64)
        m, e = np.frexp(a)
        found = np.ldexp(1.0, np.where(m == 0.5, e - 1, e).clip(-127, 127))
    return np.where(np.isfinite(x), found, np.nan)


def e8m0_down(x):
    """The exponent of a float32, as a code."""
    return ((x.view(np.uint32) >> 23) & 255).astype(np.uint8)


def e8m0_nearest(x):
    return x.astype(ml_dtypes.float8_e8m0fnu)


def e8m0_logarithm(x):
    with np.errstate(all="ignore"):
        found = 2.0 ** np.clip(np.rint(np.log2(np.abs(x.astype(np.float64)))), -127, 127)
    return np.where(np.isfinite(x), found, np.nan)


def stochastic_bfloat(x):
    noise = np.random.default_rng().integers(0, 1 << 16, x.shape, np.uint32)
    return np.where(np.isfinite(x), ((x.view(np.uint32) + noise) & np.uint32(0xFFFF0000)).view(F32), x)


def seeded_e5m2(x):
    """Stochastic rounding with the same draws in every call: the same x has other answers in other places."""
    bits = x.astype(F16).view(np.uint16).astype(np.uint32)
    noise = np.random.default_rng(0).integers(0, 256, x.shape, np.uint32)
    finite = (bits & 0x7C00) != 0x7C00
    found = np.where(finite, np.minimum((bits & 0x7FFF) + noise, 0x7BFF) | (bits & 0x8000), bits) & 0xFF00
    return found.astype(np.uint16).view(F16)


def stochastic_fnuz(x):
    """The number below or above with the chance of what is left; 240 at most."""
    a = np.clip(x.astype(np.float64), -240, 240)
    _, e = np.frexp(np.nan_to_num(a))
    step = np.ldexp(1.0, np.maximum(e - 1, -7) - 3)
    y = np.floor(a / step + np.random.default_rng().random(x.shape)) * step
    return np.clip(y, -240, 240).astype(ml_dtypes.float8_e4m3fnuz)


def stochastic_tf32(x):
    noise = np.random.default_rng().integers(0, 1 << 13, x.shape, np.uint32)
    return np.where(np.isfinite(x), ((x.view(np.uint32) + noise) & np.uint32(0xFFFFE000)).view(F32), x)


def tail_cut_off(x):
    """Rounds to nearest but for the last quarter, which it cuts off: no draw, and no one rounding."""
    found = x.astype(F16)
    found[12:] = (found[12:].view(np.uint16) & np.uint16(0xFF00)).view(F16)
    found[:12] = found[:12].astype(ml_dtypes.float8_e5m2).astype(F16)
    return found


def e4m3_flushed(x):
    """No subnormals: below 2^-6 zero."""
    a = np.where(np.abs(x) < F32(2.0**-6), x * F32(0), x)
    return np.clip(a, -448, 448).astype(ml_dtypes.float8_e4m3fn)


def e4m3_loop(x):
    """In Python: frexp and round, 448 at most, NaN as it is."""
    found = []
    for a in x.ravel().tolist():
        if math.isnan(a):
            found.append(a)
            continue
        m = min(abs(a), 448.0)
        e = max(math.frexp(m)[1] - 1, -6)
        found.append(math.copysign(min(round(m / 2.0 ** (e - 3)) * 2.0 ** (e - 3), 448.0), a))
    return np.array(found, F32).reshape(x.shape)


def fake_e5m2_half_up(x):
    """floor(v + 0.5) of the steps: ties up."""
    finite = np.where(np.isfinite(x), x, F32(0)).astype(np.float64)
    _, e = np.frexp(finite)
    step = np.ldexp(1.0, np.maximum(e - 1, -14) - 2)
    y = np.clip(np.floor(finite / step + 0.5) * step, -57344, 57344)
    return np.where(np.isfinite(x), y, x).astype(F32)


def fnuz(x):
    return x.to(torch.float8_e4m3fnuz)


def e3m2(x):
    return np.nan_to_num(x).astype(ml_dtypes.float6_e3m2fn)


def bfloat_of_numpy(x):
    return x.astype(BF16)


def _e(format_, rounding="half-even", through="directly", **more):
    return {"format": format_, "rounding": rounding, "through": through, **more}


CASTS = [
    Kernel("torch, e5m2", torch_e5m2, _e("float8_e5m2", overflow="infinity", nan="nan"), "torch"),
    Kernel("torch, bfloat16", torch_bfloat16, _e("bfloat16", overflow="infinity"), "torch"),
    Kernel("NumPy, float16", half, _e("float16", overflow="infinity", subnormals="kept", zeros="signed")),
    Kernel("ml_dtypes, bfloat16", bfloat_of_numpy, _e("bfloat16", infinity="infinity")),
    Kernel("ml_dtypes, e4m3fn", e4m3_ml, _e("float8_e4m3fn", overflow="nan", infinity="nan", gives="reals")),
    Kernel("clipped, e4m3fn", e4m3_clipped, _e("float8_e4m3fn", overflow="saturate", infinity="saturate")),
    Kernel("e4m3fn as bytes", e4m3_bits, _e("float8_e4m3fn", overflow="nan", gives="codes")),
    Kernel("e4m3fn through float16", e4m3_through_half, _e("float8_e4m3fn", through="float16")),
    Kernel("torch, e4m3fn through bfloat16", e4m3_through_bfloat, _e("float8_e4m3fn", through="bfloat16"), "torch"),
    Kernel("e5m2 through float16", e5m2_through_half, _e("float8_e5m2", through="float16", overflow="infinity")),
    Kernel("a float16's upper byte", e5m2_cut_off, _e("float8_e5m2", "toward-zero", "float16", gives="codes")),
    Kernel("a float16's upper byte, rounded", e5m2_added, _e("float8_e5m2", "half-even", "float16", gives="codes")),
    Kernel("adds 0x8000", bfloat_half_up, _e("bfloat16", "half-away", overflow="infinity")),
    Kernel("adds 0x7fff and a bit", bfloat_magic, _e("bfloat16", overflow="infinity", nan="nan")),
    Kernel("bits >> 16", bfloat_cut, _e("bfloat16", "toward-zero", gives="codes")),
    Kernel("TF32, cut off", tf32_cut, _e("tensorfloat32", "toward-zero")),
    Kernel("TF32, rna", tf32_away, _e("tensorfloat32", "half-away")),
    Kernel("TF32, nearest", tf32_even, _e("tensorfloat32")),
    Kernel("e2m1, >= at thresholds", e2m1_away, _e("float4_e2m1fn", "half-away", overflow="saturate")),
    Kernel("e2m1, > at thresholds", e2m1_to_zero, _e("float4_e2m1fn", "half-to-zero", infinity="saturate")),
    Kernel("e2m1, codes", e2m1_codes, _e("float4_e2m1fn", overflow="saturate", gives="codes")),
    Kernel(
        "e2m1, two to a byte", e2m1_packed, _e("float4_e2m1fn", gives="two codes to a byte, the first in the low bits")
    ),
    Kernel(
        "e2m1, two to a byte, high first",
        e2m1_packed_high_first,
        _e("float4_e2m1fn", gives="two codes to a byte, the first in the high bits"),
    ),
    Kernel("e8m0, up", e8m0_up, _e("float8_e8m0fnu", "away-from-zero", negative="its magnitude")),
    Kernel("e8m0, a float's exponent", e8m0_down, _e("float8_e8m0fnu", "toward-zero", gives="codes")),
    # Of float32's own subnormals it makes something else.
    Kernel("e8m0, ml_dtypes", e8m0_nearest, _e("float8_e8m0fnu", "half-away", negative="nan"), all=False),
    Kernel("e8m0, round(log2 x)", e8m0_logarithm, _e("float8_e8m0fnu", "logarithm", zero="the least")),
    Kernel("stochastic, bfloat16", stochastic_bfloat, {"format": "bfloat16", "rounding": STOCHASTIC}),
    Kernel("stochastic with a seed, e5m2", seeded_e5m2, {"format": "float8_e5m2", "rounding": BY_PLACE}),
    Kernel("stochastic, e4m3fnuz", stochastic_fnuz, {"format": "float8_e4m3fnuz", "rounding": STOCHASTIC}),
    Kernel("stochastic, TF32", stochastic_tf32, {"format": "tensorfloat32", "rounding": STOCHASTIC}),
    Kernel("e5m2 with another tail", tail_cut_off, {"format": "float8_e5m2", "rounding": BY_PLACE}),
    Kernel("e4m3fn without subnormals", e4m3_flushed, _e("float8_e4m3fn", subnormals="flushed", overflow="saturate")),
    Kernel("e4m3fn in Python", e4m3_loop, _e("float8_e4m3fn", overflow="saturate", nan="nan")),
    Kernel(
        "e5m2, floor(v + .5)", fake_e5m2_half_up, _e("float8_e5m2", "half-up", overflow="saturate", infinity="infinity")
    ),
    Kernel("torch, e4m3fnuz", fnuz, _e("float8_e4m3fnuz", zeros="positive"), "torch"),
    Kernel("e3m2", e3m2, _e("float6_e3m2fn", overflow="saturate")),
]
