"""Calls of AIMET's LPBQ: groups whose ratios stand at and beside ties, and every way to group."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

F32 = np.dtype(np.float32)


def _blocks(scale: Array, bitwidth: int) -> dict[str, Any]:
    """The range of a symmetric quantizer of these scales."""
    half = np.float32(2 ** (bitwidth - 1))
    return {"min": -half * scale, "max": (half - np.float32(1)) * scale, "bitwidth": bitwidth}


@calls("aimet.lpbq_scale", "ties")
def ties() -> Iterator[Arguments]:
    """Ratios of k + 1/2 to the channel's scale and their neighbours, for every k; the largest scale sets the unit."""
    for bitwidth, wide in ((4, 8), (4, 5), (8, 12), (2, 8), (1, 3)):
        most = 2 ** (wide - bitwidth)
        for unit in (1, 0.1, 3e-5):
            at = (np.arange(0, most) + 0.5) * unit
            near = np.stack([np.nextafter(at.astype(F32), F32.type(s)) for s in (0, 1e9)] + [at.astype(F32)])
            scale = np.concatenate([near.ravel(), np.array([most * unit, unit / 100])]).astype(F32)
            yield {**_blocks(scale, bitwidth), "decompressed_bw": wide, "block_grouping": (-1,)}


@calls("aimet.lpbq_scale", "groups")
def groups() -> Iterator[Arguments]:
    """Every grouping of (2, 4, 6) scales that differ; no grouping; one bitwidth for both; rank 1."""
    scale = ((np.arange(48) * 11 % 48 + 1) / 16).astype(F32).reshape(2, 4, 6)
    for grouping in ((1, 1, -1), (1, -1, 1), (-1, 4, 3), (2, 2, 2), (1, 1, 1), (-1, -1, -1), (1, 2, 6), None):
        yield {**_blocks(scale, 4), "decompressed_bw": 8, "block_grouping": grouping}
    yield {**_blocks(scale, 4), "decompressed_bw": 4, "block_grouping": (1, 1, -1)}
    yield {**_blocks(scale[0, 0], 4), "decompressed_bw": 8, "block_grouping": (3,)}


@calls("aimet.lpbq_scale", "smallest")
def smallest() -> Iterator[Arguments]:
    """Ranges that are empty, swapped, or below the smallest scale."""
    low, high = np.array([0, 1, -1e-9, -1, 0.5], F32), np.array([0, -2, 1e-9, 1, 2], F32)
    for bitwidth in (4, 8, 16):
        given = {"min": low, "max": high, "bitwidth": bitwidth, "decompressed_bw": bitwidth + 4}
        yield {**given, "block_grouping": (-1,)}
        yield {**given, "block_grouping": None}


@calls("aimet.lpbq_scale", "refusals")
def refusals() -> Iterator[Arguments]:
    """A narrower decompressed bitwidth, groupings of another length and that do not divide."""
    given = _blocks(np.ones((2, 4), F32), 4)
    yield {**given, "decompressed_bw": 3, "block_grouping": (1, -1)}
    yield {**given, "decompressed_bw": 8, "block_grouping": (1,)}
    yield {**given, "decompressed_bw": 8, "block_grouping": (1, 3)}


@calls("aimet.lpbq_scaled", "factors")
def factors() -> Iterator[Arguments]:
    """Longer and shorter units, for integers of every size, groups and none."""
    scale = np.array([[16, 3, 8, 1], [0.9, 1.3, 0.2, 1.6]], F32) / F32.type(10)
    for factor in (2.0, 0.5, 3.0, 0.1):
        for grouping in ((1, -1), (1, 2), (2, 1), None):
            yield {**_blocks(scale, 4), "decompressed_bw": 8, "factor": factor, "block_grouping": grouping}
