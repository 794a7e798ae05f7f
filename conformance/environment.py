"""The environment of a run: what a bit may depend on. No names of machines or users."""

import os
import platform
import sys
from importlib import metadata
from typing import Any

import torch

__all__ = ["environment"]

_DISTRIBUTIONS = ("halfeven", "numpy", "ml_dtypes", "torch", "hypothesis", "pytest")


def environment(workers: int = 0) -> dict[str, Any]:
    """Versions, CPU capability, threads per process (see ``run``), flush-to-zero and accelerator."""
    versions = {name: _version(name) for name in _DISTRIBUTIONS}
    return {
        "python": platform.python_version(),
        **versions,
        "system": f"{platform.system()} {platform.machine()}",
        "byte_order": sys.byteorder,
        "cpu_capability": torch.backends.cpu.get_cpu_capability(),
        "threads": 1,
        "cpus": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        "workers": workers,
        "flush_to_zero": _flushes(),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }


def _version(name: str) -> str:
    try:
        return torch.__version__ if name == "torch" else metadata.version(name)
    except metadata.PackageNotFoundError:
        return "not installed"


def _flushes() -> bool:
    """Whether a subnormal product is flushed to zero in this process."""
    least_normal = torch.tensor(2.0**-126)
    return bool((least_normal * 0.5 == 0).item())
