"""Quantizers as people write them, each with what its fingerprint has to say."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE

F32 = np.float32


@dataclass(frozen=True)
class Kernel:
    function: Callable[..., Any]
    fields: dict[str, str]
    operation: str = "quantize"
    array: str = "numpy"
    #: Values that no input tells apart, with the other choices as they are.
    one_function: dict[str, tuple[str, ...]] = field(default_factory=dict)


def textbook(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale) + zero_point, qmin, qmax)


def by_torch(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, qmin, qmax)


def half_up(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.floor(x / scale + F32(0.5)) + zero_point, qmin, qmax)


def half_away(x, scale, zero_point, *, qmin, qmax):
    v = x * (F32(1) / scale)
    return np.clip(np.trunc(v + np.copysign(F32(0.5), v)) + zero_point, qmin, qmax)


def double_inverse(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x.astype(np.float64) * (1 / np.float64(scale))) + zero_point, qmin, qmax)


def zero_point_first(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale + zero_point.astype(F32)), qmin, qmax)


def scale_in_half(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale.astype(np.float16).astype(F32)) + zero_point, qmin, qmax)


def truncating(x, scale, zero_point, *, qmin, qmax):
    with np.errstate(all="ignore"):
        return np.clip(np.trunc(x / scale) + zero_point, qmin, qmax)


def put_back(x, scale, zero_point, *, qmin, qmax):
    return ((torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax)) - zero_point) * scale


def distributed(q, scale, zero_point):
    return q.astype(F32) * scale - zero_point.astype(F32) * scale


_PLAIN = {"sign": "q-z", "overflow": "saturate", "zero_point": "after-rounding"}
KERNELS = [
    Kernel(textbook, {**_PLAIN, "division": "divide", "rounding": "half-even"}),
    Kernel(by_torch, {**_PLAIN, "division": "reciprocal", "rounding": "half-even"}, array="torch"),
    Kernel(half_up, {**_PLAIN, "division": "divide", "rounding": "half-up"}),
    Kernel(half_away, {**_PLAIN, "division": "reciprocal", "rounding": "half-away"}),
    Kernel(double_inverse, {**_PLAIN, "division": "reciprocal", "compute": "float64", "inverse": "compute"}),
    # A quotient is rounded before anything is added to it: only a product and a sum can be rounded as one.
    Kernel(
        zero_point_first,
        {"division": "divide", "zero_point": INDISTINGUISHABLE, "rounding": "half-even"},
        one_function={"zero_point": ("before-rounding", "fused")},
    ),
    Kernel(scale_in_half, {**_PLAIN, "division": "divide", "held": "float16"}),
    Kernel(truncating, {**_PLAIN, "rounding": "toward-zero"}),
    Kernel(put_back, {**_PLAIN, "division": "divide", "form": "product"}, "fake_quantize", "torch"),
    Kernel(distributed, {"sign": "q-z", "form": "distributed"}, "dequantize"),
]


def narrow(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale) + zero_point, -qmax, qmax)


def small_calls(x, scale, zero_point, *, qmin, qmax):
    v = x / scale if x.size > 500 else x * (F32(1) / scale)
    return np.clip(np.rint(v) + zero_point, qmin, qmax)


def by_stride(x, scale, zero_point, *, qmin, qmax):
    v = x / scale if x.flags.c_contiguous else x * (F32(1) / scale)
    return np.clip(np.rint(v) + zero_point, qmin, qmax)


def in_a_band(x, scale, zero_point, *, qmin, qmax):
    v = x / scale
    up = np.trunc(v + np.copysign(F32(0.5), v))
    return np.clip(np.where((np.abs(v) >= 20) & (np.abs(v) < 40), up, np.rint(v)) + zero_point, qmin, qmax)
