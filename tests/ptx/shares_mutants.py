"""Mutants of what reductions have in common, and grids so small that blocks go on from one share to the next."""

import pytest

from halfeven.optimized.kernels.cuda import backward, reduce, shares

__all__ = ["OF_SHARES", "few_blocks"]

_SHARES = "cuda/shares.h"
#: The file, what was there, and what is in its place.
OF_SHARES = (
    (_SHARES, "share < job.shares; share", "share <= job.shares; share"),
    (_SHARES, ": row * job.shares + share", ": row + share"),
    (_SHARES, "1) && row < all)", "1))"),
    (_SHARES, "half = lanes / 2;", "half = lanes / 4;"),
    (_SHARES, "half > 0; half /= 2", "half > 1; half /= 2"),
    (_SHARES, "if (lane < half)", "if (lane <= half)"),
    (_SHARES, "own[half * step]", "own[half]"),
    (_SHARES, "    __syncthreads();\n", ""),
    (_SHARES, "__syncthreads();  // nothing", "// nothing"),
    (_SHARES, "k += blockDim.y", "k += 2 * blockDim.y"),
    (_SHARES, "if (i < entries)", "if (true)"),
    (_SHARES, "out_of(job, kept) + c * job.out_step);", "out_of(job, kept));"),
)


def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two blocks for everything."""
    monkeypatch.setattr(shares, "_BLOCKS", 2)
    for module in (backward, reduce):
        monkeypatch.setattr(module, "_cuts", module._cuts.__wrapped__)
