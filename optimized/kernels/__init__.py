"""The implementations of the operators: loads the compiled kernels, and says which path runs.

``_cpu.so`` stands next to this file where there was a compiler. It depends on no version of Python, and on
torch's stable interface only. Without it ``chunked`` gives the same bits in torch operations.

The environment variable HALFEVEN_KERNELS forces a path: ``avx2``, ``avx512``, ``neon``, ``baseline`` (what every
processor of the kind has) or ``torch``. By default the best there is runs. On CUDA torch operations run, unless it is
``cuda``: then kernels that no GPU has run yet.
"""

import ctypes
import functools
import logging
import os
from pathlib import Path
from typing import Any

import torch

from halfeven.optimized.kernels.cuda import launcher

__all__ = ["available", "choose", "load", "past_caches", "path"]

_LIBRARY = Path(__file__).with_name("_cpu.so")
_VARIABLE = "HALFEVEN_KERNELS"
_ISAS = ("baseline", "avx2", "avx512", "neon")  # by the number that the library knows them by
_TORCH, _CUDA = "torch", "cuda"


@functools.cache
def load() -> None:
    """Load the compiled kernels and register them for the CPU. To be called once the operators are defined.

    Without the library, it is logged once that torch operations run instead.

    Raises:
        ValueError: HALFEVEN_KERNELS is none of the paths.
        RuntimeError: it names a path that is not there.
    """
    wanted = os.environ.get(_VARIABLE, "")
    if wanted not in ("", _TORCH, _CUDA, *_ISAS):
        msg = f"{_VARIABLE}={wanted!r} is not accepted: set one of {', '.join((*_ISAS, _TORCH, _CUDA))}, or nothing"
        raise ValueError(msg)
    library, why = _loaded()
    if wanted in _ISAS:
        choose(wanted)
    elif library is None and wanted != _TORCH:
        logging.getLogger("halfeven").warning("halfeven's kernels of the CPU run in torch operations, slower: %s", why)


def path(device: str = "cpu") -> str:
    """Which implementation runs on a kind of device.

    On the CPU "C++ " and the instruction set, or "torch, chunked: " and why; on CUDA "CUDA C++", or "torch: " and why;
    on others "torch: " and that they have no kernels.
    """
    kind = torch.device(device).type
    if kind == "cuda":
        why = launcher.why_not()
        return f"torch: {why}" if why else "CUDA C++"
    if kind != "cpu":
        return f"torch: there are no kernels for {kind}"
    library, why = _loaded()
    return f"torch, chunked: {why}" if library is None else f"C++ {_ISAS[library.halfeven_isa(-1)]}"


def available() -> tuple[str, ...]:
    """The instruction sets that ``choose`` takes, none without compiled kernels."""
    library, _ = _loaded()
    if library is None:
        return ()
    before = library.halfeven_isa(-1)
    found = tuple(name for number, name in enumerate(_ISAS) if library.halfeven_isa(number) == number)
    library.halfeven_isa(before)
    return found


def choose(isa: str) -> None:
    """Run the kernels of another instruction set from now on, in all threads: for tests.

    Raises:
        RuntimeError: it is not there.
    """
    library, why = _loaded()
    if library is None or isa not in available():
        msg = f"kernels={isa!r} is not accepted: " + (why or f"this processor has {', '.join(available())}")
        raise RuntimeError(msg)
    library.halfeven_isa(_ISAS.index(isa))


def past_caches(size: int = 0) -> int:
    """The bytes of operands and result from which a result is written past the caches; 0 without compiled kernels.

    They are those of the processor's largest cache, 64 MiB at most, and 32 MiB where the system does not tell. Where
    ``size`` is positive, it is that from now on: for tests.
    """
    library, _ = _loaded()
    return 0 if library is None else int(library.halfeven_cache_bytes(size))


@functools.cache
def _loaded() -> tuple[ctypes.CDLL | None, str]:
    """The library, or None and why not."""
    if os.environ.get(_VARIABLE) == _TORCH:
        return None, f"{_VARIABLE}={_TORCH}"
    if not _LIBRARY.exists():
        return None, (
            "no kernels were compiled when halfeven was installed, since there was no torch yet, no C++ compiler, "
            "or HALFEVEN_NO_KERNELS=1 (pip install -v says which)"
        )
    try:
        ops: Any = torch.ops
        ops.load_library(str(_LIBRARY))
        library = ctypes.CDLL(str(_LIBRARY))
    except OSError as error:
        return None, f"the compiled kernels do not load: {error}"
    library.halfeven_isa.argtypes = (ctypes.c_int,)
    library.halfeven_isa.restype = ctypes.c_int
    library.halfeven_cache_bytes.argtypes = (ctypes.c_int64,)
    library.halfeven_cache_bytes.restype = ctypes.c_int64
    return library, ""
