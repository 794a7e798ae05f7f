"""The same in C, where there is a compiler."""

import ctypes
import platform
import shutil
import subprocess
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

from wild_kernels import F32, Array, Kernel
from wild_kernels.quantizers import ADDED, AWAY, RECIPROCAL, UP

__all__ = ["COMPILED", "compiler", "flags"]


def compiler() -> str | None:
    """A compiler for x86 with fused multiplications, if one is here."""
    return shutil.which("gcc") if platform.machine() == "x86_64" and "fma" in flags() else None


def flags() -> str:
    """What the processor can do, in its words."""
    info = Path("/proc/cpuinfo")
    return info.read_text(encoding="utf-8") if info.exists() else ""


@cache
def _library() -> ctypes.CDLL:
    out = Path(mkdtemp()) / "kernels.so"
    source = Path(__file__).with_name("kernels.c")
    gcc = compiler()
    assert gcc is not None
    command = [
        gcc,
        "-O2",
        "-mfma",
        "-mavx2",
        "-ffp-contract=fast",
        "-shared",
        "-fPIC",
        str(source),
        "-o",
        str(out),
        "-lm",
    ]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(out))


def _called(name: str):
    def function(x: Array, s, z: int, lo: int, hi: int) -> Array:
        x, q = np.ascontiguousarray(x, F32), np.empty(x.shape, np.int32)
        given = (x.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(x.size), ctypes.c_float(s), z, lo, hi)
        _library()[name](*given, q.ctypes.data_as(ctypes.c_void_p))
        return q

    return function


def _kernel(name, does):
    return Kernel(name, _called(name), does)


_ENDS = {"nan": ...}  # fminf and fmaxf take the number
COMPILED = [
    _kernel("c_lrintf", _ENDS),
    _kernel("c_roundf", AWAY | _ENDS),
    _kernel("c_floor_contracted", RECIPROCAL | UP | _ENDS | {"half": {"fused"}}),
    _kernel("c_fused", RECIPROCAL | _ENDS | {"zero_point": {"fused"}}),
    _kernel("c_double", _ENDS | {"compute": {"float64"}}),
    _kernel("c_half_double", UP | _ENDS),
    _kernel("c_truncated", {"rounding": {"toward-zero"}, "integer": {"int32"}}),
    _kernel("c_away_int", AWAY | ADDED | {"integer": {"int32"}}),
]
