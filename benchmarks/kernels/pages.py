"""Whether the C library keeps the pages of freed memory. Fresh pages cost several times what a kernel does."""

import ctypes
import gc

__all__ = ["keep"]

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # of mallopt, in glibc's malloc.h
_ALWAYS, _USUAL = 1 << 30, 32 << 20  # 32 MiB: what glibc's own threshold grows to as a process runs


def keep(kept: bool) -> bool:
    """Keep freed pages for the next result, or return large ones to the system, as is usual; whether that works."""
    gc.collect()
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    size = _ALWAYS if kept else _USUAL
    done = mallopt is not None and mallopt(_MMAP_THRESHOLD, size) == 1 and mallopt(_TRIM_THRESHOLD, 2 * size - 1) == 1
    if done and not kept:
        ctypes.CDLL(None).malloc_trim(0)
    return done
