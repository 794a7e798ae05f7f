"""Kernels that dequantize, and kernels that do both at once."""

import numpy as np
import torch

from halfeven.reference.rounding import fused_multiply_add
from wild_kernels import BF16, BYTE, F16, F32, F64, INT8, Kernel
from wild_kernels.quantizers import ADDED, AWAY, HALF, RECIPROCAL, UP, UPWARD, away, clip, tensorflow

__all__ = ["DECODERS", "FAKES"]


def textbook(q, s, z, lo, hi):
    return (q.astype(F32) - F32(z)) * s


def distributed(q, s, z, lo, hi):
    return q.astype(F32) * s - F32(z) * s


def fused(q, s, z, lo, hi):
    return fused_multiply_add(q.astype(F32), np.asarray(s), np.asarray(-F32(z) * s))


def in_double(q, s, z, lo, hi):
    return (q * F64(s) - z * F64(s)).astype(F32)


def scale_half(q, s, z, lo, hi):
    return (q.astype(F32) - F32(z)) * F32(F16(s))


def half_product(q, s, z, lo, hi):
    return ((q - z).astype(F16) * F16(s)).astype(F32)


def bfloat_product(q, s, z, lo, hi):
    return ((q - z).astype(BF16) * BF16(s)).astype(F32)


def int8_difference(q, s, z, lo, hi):
    return (q.astype(np.int8) - np.int8(z)).astype(F32) * s


def uint8_difference(q, s, z, lo, hi):
    return (torch.from_numpy(q.astype(np.uint8)) - torch.tensor(z, dtype=torch.uint8)).numpy().astype(F32) * s


def over_inverse(q, s, z, lo, hi):
    return (q.astype(F32) - F32(z)) / (F32(1) / s)


def openvino(q, s, z, lo, hi):
    low, high = (F32(lo) - F32(z)) * s, (F32(hi) - F32(z)) * s
    return (q.astype(F32) - F32(lo)) / F32(hi - lo) * (high - low) + low


def from_low(q, s, z, lo, hi):
    return (q.astype(F32) - F32(lo)) * s + (F32(lo) - F32(z)) * s


def fake_textbook(x, s, z, lo, hi):
    return (clip(np.rint(x / s) + F32(z), lo, hi) - F32(z)) * s


def fake_reciprocal(x, s, z, lo, hi):
    return (clip(np.rint(x * (F32(1) / s)) + F32(z), lo, hi) - F32(z)) * s


def fake_over_inverse(x, s, z, lo, hi):
    inverse = F32(1) / s
    return (clip(np.rint(x * inverse) + F32(z), lo, hi) - F32(z)) / inverse


def fake_tensorflow(x, s, z, lo, hi):
    return (tensorflow(x, s, z, lo, hi) - F32(lo)) * s + (F32(lo) - F32(z)) * s


def fake_openvino(x, s, z, lo, hi):
    low, high, n = (F32(lo) - F32(z)) * s, (F32(hi) - F32(z)) * s, F32(hi - lo)
    x = np.minimum(np.maximum(x, low), high)
    return np.rint((x - low) / (high - low) * n) / n * (high - low) + low


def fake_away(x, s, z, lo, hi):
    q = away(fused_multiply_add(x, np.asarray(F32(1) / s), np.asarray(float(z))))
    q = np.where(q < lo, F32(lo), np.where(q > hi, F32(hi), q))
    return (q - F32(z)) * s


def fake_torch(x, s, z, lo, hi):
    return torch.fake_quantize_per_tensor_affine(torch.from_numpy(x.copy()), float(s), z, lo, hi).numpy()


def fake_half_scale(x, s, z, lo, hi):
    s = F32(F16(s))
    return (clip(np.floor(x / s + HALF) + F32(z), lo, hi) - F32(z)) * s


def fake_bfloat(x, s, z, lo, hi):
    wide = x.astype(F32)
    return ((clip(np.rint(wide / F32(s)) + F32(z), lo, hi) - F32(z)) * F32(s)).astype(BF16)


def fake_distributed(x, s, z, lo, hi):
    return clip(np.rint(x / s) + F32(z), lo, hi) * s - F32(z) * s


def _decoder(name, function, does=None, **more):
    return Kernel(name, function, does or {}, operation="dequantize", **more)


def _fake(name, function, does=None, **more):
    return Kernel(name, function, does or {}, operation="fake_quantize", **more)


_DOUBLE = {"product": {"float64"}}
DECODERS = [
    _decoder("(q - z) * s", textbook, one=False),
    _decoder("q * s - z * s", distributed, {"form": {"distributed"}}, one=False),
    _decoder("fma(q, s, -z * s)", fused, {"form": {"fused"}}),
    _decoder("q * s - z * s in double", in_double, {"form": {"distributed"}} | _DOUBLE),
    _decoder("scale in float16, dequantized", scale_half, {"held": {"float16"}}),
    _decoder("product in float16", half_product, {"product": {"float16"}, "held": ...}),
    _decoder("product in bfloat16", bfloat_product, {"product": {"bfloat16"}, "held": ...}),
    _decoder("int8 - int8", int8_difference, {"subtract": {"int8"}}, grids=(INT8,)),
    _decoder("uint8 - uint8", uint8_difference, {"subtract": {"uint8"}}, grids=(BYTE,)),
    _decoder("(q - z) / (1 / s)", over_inverse, {"form": {"inverse"}}),
    _decoder("OpenVINO, back", openvino, {"form": {"levels"}}),
    _decoder("(q - qmin) * s + lo", from_low, {"form": {"low"}}),
]
FAKES = [
    _fake("fake textbook", fake_textbook),
    _fake("fake x * (1 / s)", fake_reciprocal, RECIPROCAL, one=False),
    _fake("round(x * inv) / inv", fake_over_inverse, RECIPROCAL | {"form": {"inverse"}}),
    _fake("TensorFlow, fake", fake_tensorflow, {"division": {"low-reciprocal"}, "form": {"low"}} | UPWARD | ADDED),
    _fake("OpenVINO, fake", fake_openvino, {"division": {"range"}, "form": {"levels"}}),
    _fake("tt-metal, fake", fake_away, RECIPROCAL | AWAY | {"zero_point": {"fused"}}),
    _fake("torch.fake_quantize", fake_torch, RECIPROCAL | {"nan": {"qmin"}, "subtract": ...}),
    _fake("float16 scale, fake", fake_half_scale, {"held": {"float16"}} | UP | ADDED),
    _fake("bfloat16, fake", fake_bfloat, {"compute": {"float32", "promoted", "widened"}}, dtype="bfloat16"),
    _fake("q * s - z * s, fake", fake_distributed, {"form": {"distributed"}}),
]
