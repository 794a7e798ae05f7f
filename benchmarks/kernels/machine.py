"""The machine and the software, in plain words: no names of hosts, users or folders."""

import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from halfeven.optimized import kernels
from kernels.implementations import Implementation

__all__ = ["machine", "slug"]

_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_FLAGS = ("avx2", "fma", "avx512f", "avx512_bf16", "amx_int8", "asimd", "sve")


def machine(implementations: tuple[Implementation, ...]) -> dict[str, Any]:
    """CPU model, cores, caches, instruction sets, path of the kernels, versions of torch and of every peer."""
    cpu = _cpu()
    flags = set((cpu.get("flags") or cpu.get("Features", "")).split())
    family = f", family {cpu['cpu family']}, model {cpu['model']}" if "cpu family" in cpu else ""
    return {
        "cpu": cpu.get("model name", platform.machine()) + family,
        "cores": cpu.get("cores", "unknown"),
        "caches": _caches(),
        "instructions": [f for f in _FLAGS if f in flags],
        "virtual": "hypervisor" in flags,
        "memory_gib": _memory(),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch_capability": torch.backends.cpu.get_cpu_capability(),
        "kernels": kernels.path(),
        "versions": {one.distribution: _version(one.distribution) for one in implementations},
    }


def slug(found: dict[str, Any]) -> str:
    """The processor as the name of a folder.

    >>> slug({"cpu": "AMD EPYC, family 25, model 1"})
    'amd-epyc-family-25-model-1'
    """
    return re.sub(r"[^a-z0-9]+", "-", found["cpu"].lower()).strip("-")


def _cpu() -> dict[str, str]:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    lines = [line.partition(":") for line in text.splitlines()]
    found = {key.strip(): value.strip() for key, _, value in reversed(lines)}
    return found | {"cores": str(sum(key.strip() == "processor" for key, _, _ in lines))}


def _caches() -> list[str]:
    found = []
    for folder in sorted(_CACHES.glob("index*")):
        level, kind, size = ((folder / name).read_text(encoding="utf-8").strip() for name in ("level", "type", "size"))
        if kind != "Instruction":
            found.append(f"L{level} {size}")
    return found


def _memory() -> int | None:
    try:
        line = Path("/proc/meminfo").read_text(encoding="utf-8").split()
    except OSError:
        return None
    return round(int(line[1]) / 2**20)


def _version(distribution: str) -> str:
    try:
        return torch.__version__ if distribution == "torch" else metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return "not installed"
