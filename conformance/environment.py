"""The environment of a run: what a bit may depend on. No names of machines or users."""

import ctypes
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import metadata
from typing import Any

import numpy as np

__all__ = [
    "FLUSHED",
    "THREADS",
    "environment",
    "flushed",
    "flushes_to_zero",
    "restore",
    "rounds_to_nearest",
    "subnormals_kept",
]

#: The threads of torch during a check: calls are small, and several processes share the cores.
THREADS = 1
#: What is said where flush-to-zero was on before anything was asked.
FLUSHED = (
    "flush-to-zero is on in this process, as a library that was built with fast math leaves it when it is loaded: "
    "what is checked runs with it, and what it is held against without"
)
_FLUSHED = ContextVar("flushed", default=False)
_ONE = np.array([1.0, 1.0, -1.0, -1.0], np.float32)
_TIES = np.array([1, 3, -1, -3], np.float32) * np.float32(2.0**-24)
_ROUNDED = np.array([1.0, 1 + 2.0**-22, -1.0, -1 - 2.0**-22], np.float32)
_LEAST_NORMAL, _HALF = np.array([2.0**-126], np.float32), np.array([0.5], np.float32)

_DISTRIBUTIONS = ("halfeven", "numpy", "ml_dtypes", "torch", "hypothesis", "pytest")


def environment(workers: int = 0) -> dict[str, Any]:
    """Versions, CPU capability, threads per process, flush-to-zero and accelerator."""
    import torch  # noqa: PLC0415 - who plans and judges does without it

    versions = {name: _version(name) for name in _DISTRIBUTIONS}
    return {
        "python": platform.python_version(),
        **versions,
        "system": f"{platform.system()} {platform.machine()}",
        "byte_order": sys.byteorder,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": THREADS,
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "workers": workers,
        "flush_to_zero": flushes_to_zero(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


@contextmanager
def subnormals_kept() -> Iterator[None]:
    """Flush-to-zero is off in this thread while it lasts, and then as it was before; ``flushed`` says which.

    Example:
        >>> with subnormals_kept():
        ...     flushes_to_zero()
        False
    """
    if not flushes_to_zero():
        yield
        return
    import torch  # noqa: PLC0415 - as above

    token = _FLUSHED.set(True)
    torch.set_flush_denormal(False)
    try:
        yield
    finally:
        torch.set_flush_denormal(True)
        _FLUSHED.reset(token)


def flushed() -> bool:
    """Whether flush-to-zero is on, or was when ``subnormals_kept`` switched it off."""
    return _FLUSHED.get() or flushes_to_zero()


def flushes_to_zero() -> bool:
    """Whether a subnormal product is flushed to zero in this thread."""
    return bool(_LEAST_NORMAL * _HALF == 0)


def rounds_to_nearest() -> bool:
    """Whether this thread rounds to nearest, ties to even, as the reference takes for granted."""
    return bool((_ONE + _TIES == _ROUNDED).all())


def restore() -> str:
    """Put right how this thread computes, which a backend may have changed; what it was, in words, or nothing.

    The reference must not lose its subnormals, nor its rounding, to what a backend has switched on.
    """
    if flushes_to_zero():
        import torch  # noqa: PLC0415 - as above; it was there for what has switched this on

        torch.set_flush_denormal(False)
        return "flush-to-zero was on"
    if not rounds_to_nearest():
        ctypes.CDLL(None).fesetround(0)  # to nearest, on every platform that has the function
        return "the rounding mode was another"
    return ""
