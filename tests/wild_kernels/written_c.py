"""Kernels of C as their authors hand them over, through ctypes, where there is a compiler for x86 with AVX2."""

import ctypes
import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import numpy as np

from wild_kernels import F32
from wild_kernels.compiled import compiler, flags
from wild_kernels.written import AWAY, RECIPROCAL, UP, Written

__all__ = ["WRITTEN"]

_OPTIONS = ("-O2", "-mavx2", "-mfma", "-mf16c", "-ffp-contract=off", "-shared", "-fPIC")


@cache
def _library() -> ctypes.CDLL:
    out, gcc = Path(mkdtemp()) / "written.so", compiler()
    assert gcc is not None
    source = Path(__file__).with_name("written.c")
    subprocess.run([gcc, *_OPTIONS, str(source), "-o", str(out), "-lm"], check=True)
    return ctypes.CDLL(str(out))


def _address(a: Any) -> ctypes.c_void_p:
    return a.ctypes.data_as(ctypes.c_void_p)


def _coder(name: str) -> Callable[..., Any]:
    def quantize(x, scale, zero_point, *, qmin, qmax):
        x = np.ascontiguousarray(x, F32)
        q = np.empty(x.shape, np.int32)
        _library()[name](
            _address(x), ctypes.c_long(x.size), ctypes.c_float(scale), int(zero_point), qmin, qmax, _address(q)
        )
        return q

    return quantize


def _faker(name: str) -> Callable[..., Any]:
    def fake_quantize(x, scale, zero_point, *, qmin, qmax):
        x = np.ascontiguousarray(x, F32)
        y = np.empty(x.shape, F32)
        _library()[name](
            _address(x), ctypes.c_long(x.size), ctypes.c_float(scale), int(zero_point), qmin, qmax, _address(y)
        )
        return y

    return fake_quantize


def _decoder(name: str) -> Callable[..., Any]:
    def dequantize(q, scale, zero_point):
        q = np.ascontiguousarray(q, np.int32)
        x = np.empty(q.shape, F32)
        _library()[name](_address(q), ctypes.c_long(q.size), ctypes.c_float(scale), int(zero_point), _address(x))
        return x

    return dequantize


def _kernel(name, does=None, **more):
    return Written(name.removeprefix("w_"), _coder(name), {"nan": ...} | (does or {}), **more)


_INT = {"integer": {"int32"}}
_ADDED = {"half": {"added"}}
_OTHER = {"division": {"another factor"}}
_FIRST = {"clamp": {"before-rounding"}, "integer": ...}
WRITTEN = [
    _kernel("w_lrintf", {"integer": {"int64-int32"}}),
    _kernel("w_lroundf", AWAY | {"integer": {"int64-int32"}}),
    _kernel("w_lroundf_long", AWAY | {"integer": {"int64"}}),
    _kernel("w_fmaf", RECIPROCAL | {"zero_point": {"fused"}, "clamp": {"before-zero-point"}, "integer": ...}),
    _kernel("w_fmaf_half", RECIPROCAL | UP | {"half": {"fused"}}),
    _kernel("w_half_cast", {"rounding": {"half-truncated"}} | _ADDED | _INT),
    _kernel("w_half_signed", AWAY | _ADDED | _INT),
    _kernel("w_half_double", UP | _INT),
    _kernel("w_int8", {"overflow": ..., "integer": ...}),
    _kernel("w_uint8", AWAY | _INT),
    _kernel("w_double", {"compute": {"float64"}} | _INT),
    _kernel("w_clamp_first", _FIRST),
    _kernel("w_fminmax", RECIPROCAL | AWAY),
    _kernel("w_magic", RECIPROCAL | _FIRST | {"half": ...}),
    _kernel("w_nearbyint_double", RECIPROCAL | {"compute": {"float64"}, "inverse": {"compute"}}),
    _kernel(
        "w_three",
        RECIPROCAL | AWAY | _ADDED | _INT | {"held": {"float16"}, "inverse": {"float16"}},
    ),
    _kernel("w_avx2", _INT),
    _kernel("w_avx2_tail", RECIPROCAL | _INT, where=("the last n mod 8", AWAY)),
    _kernel("w_avx2_fma", RECIPROCAL | {"zero_point": {"fused"}, "integer": ...}),
    _kernel("w_sse_clamp", RECIPROCAL | _FIRST),
    _kernel("w_sse_packs", {"integer": {"int32-exact"}}),
    _kernel("w_sse_truncates", RECIPROCAL | AWAY | _ADDED | _INT),
    _kernel("w_rcpss", _OTHER),
    _kernel("w_rcpss_newton", _OTHER),
    _kernel("w_sse_floor", UP | _ADDED),
    *([_kernel("w_avx512", RECIPROCAL | _INT)] if "avx512f" in flags() else []),
    _kernel("w_aligned", RECIPROCAL, where=("the last n mod 8", {"division": {"divide"}})),
    # Where a copy begins is not known: 16 bytes are all that NumPy promises.
    _kernel("w_misaligned", RECIPROCAL, named=False),
    _kernel("w_misaligned_16", RECIPROCAL, where=("arrays that begin 1", {"division": {"divide"}})),
    Written("back", _decoder("w_back"), {"subtract": ...}, "dequantize"),
    Written("back, fma", _decoder("w_back_fma"), {"form": {"fused"}}, "dequantize"),
    Written("back, double", _decoder("w_back_double"), {"subtract": ...}, "dequantize"),
    # A scale of float32 and a product of float16: there is no such choice.
    Written("back, rounded to half", _decoder("w_back_half"), {}, "dequantize", named=False),
    Written("fake in C", _faker("w_fake"), {"nan": ...}, "fake_quantize"),
    Written("fake in C, int", _faker("w_fake_int"), {"nan": ...} | RECIPROCAL | AWAY | _INT, "fake_quantize"),
]
