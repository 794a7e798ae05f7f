"""The arithmetic of histograms: the range of each row, its bins, and the elements that fall into them."""

import math
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from halfeven.optimized.aimet.encoding_analyzer import base

__all__ = ["counted", "even_edges", "finite_range", "in_rows", "rebinned"]

_PIECE = 2**18  # elements that stay in a cache
_ON_DEVICE = 2**26  # elements at a time where there is no such cache


def in_rows(x: Tensor, blocks: Sequence[int]) -> Tensor:
    """The elements of each parameter in a row."""
    counts = [n // b if n else 0 for n, b in zip(x.shape, blocks, strict=True)]
    if math.prod(counts) == 1:
        return x.reshape(1, -1)
    split = x.reshape([n for pair in zip(counts, blocks, strict=True) for n in pair])
    return split.permute(*range(0, split.dim(), 2), *range(1, split.dim(), 2)).reshape(math.prod(counts), -1)


def finite_range(x: Tensor, blocks: Sequence[int]) -> tuple[Tensor, Tensor, bool]:
    """The least and the greatest finite value, in a row; and whether all are finite.

    Raises:
        RuntimeError: there is none for a parameter.
    """
    if x.numel():
        low, high = base.ends(x, blocks, (-1,))
        finite = bool((low.isfinite() & high.isfinite()).all())
        if not finite:
            kept = x.isfinite()
            low, _ = base.ends(torch.where(kept, x, torch.inf), blocks, (-1,))
            _, high = base.ends(torch.where(kept, x, -torch.inf), blocks, (-1,))
        if finite or bool((low <= high).all()):
            return low, high, finite
    msg = f"input_tensor of shape {tuple(x.shape)} is not accepted: give a finite value for every parameter"
    raise RuntimeError(msg)


def even_edges(low: Tensor, high: Tensor, num_bins: int) -> Tensor:
    """Even edges in float32; the last is not the maximum itself, but the sum that leads to it.

    Raises:
        RuntimeError: they are not finite.
    """
    alone = low == high
    start, end = torch.where(alone, low - 0.5, low).float(), torch.where(alone, high + 0.5, high).float()
    step = (end - start) / base.constant(num_bins, start)
    bins = torch.arange(num_bins + 1, device=low.device).float()
    edges = bins * step[:, None] + start[:, None]
    if not bool(edges.isfinite().all()):
        worst = int((~edges.isfinite().all(1)).nonzero()[0])
        msg = (
            f"a batch from {low[worst].item()} to {high[worst].item()} is not accepted: "
            f"give a range whose bins are finite in float32"
        )
        raise RuntimeError(msg)
    return edges


def counted(rows: Tensor, low: Tensor, high: Tensor, num_bins: int, finite: bool = False) -> Tensor:
    """Counts of [low, high] per row, float32; what lies outside, compared in the dtype of ``rows``, is at the ends."""
    # Next to a value so large that half a unit vanishes stand the two float32 next to it.
    infinity = torch.full_like(low, torch.inf)
    start = torch.where(low == high, low.nextafter(-infinity), low)
    span = torch.where(low == high, high.nextafter(infinity), high) - start
    narrow = low.to(rows.dtype), high.to(rows.dtype)
    exact = rows.dtype != torch.float64 and bool(((narrow[0] == low) & (narrow[1] == high)).all())
    overflows = bool((span * num_bins).isinf().any())
    counts = torch.empty(len(rows), num_bins, device=rows.device)
    for i, pieces in _pieces(rows, num_bins):
        start_, span_, low_, high_, left, right = (t[i, None] for t in (start, span, low, high, *narrow))
        n = len(start_)
        found = torch.zeros(n, num_bins, dtype=torch.int64, device=rows.device)
        for x in pieces:
            v = x.float()
            place = (v - start_).mul_(num_bins).div_(span_)
            if overflows:  # beyond float32: the first bin
                place.masked_fill_((place == torch.inf) & (v <= high_), 0.0)
            bins = place.clamp_(0, num_bins - 1).to(torch.int32)
            if n > 1:
                bins += torch.arange(0, n * num_bins, num_bins, dtype=torch.int32, device=rows.device)[:, None]
            if not finite:
                bins.masked_fill_(v.isnan(), n * num_bins)
            found += bins.flatten().bincount(minlength=n * num_bins + 1)[:-1].view(n, num_bins)
            if not exact:
                found[:, 0] += (x < left).sum(1) - (v < low_).sum(1)
                found[:, -1] += (x > right).sum(1) - (v > high_).sum(1)
        counts[i] = found.float()
    return counts


def _pieces(rows: Tensor, num_bins: int) -> Iterator[tuple[slice, list[Tensor]]]:
    """Groups of rows, each with its elements in pieces that stay in the cache."""
    most = _PIECE if rows.device.type == "cpu" else _ON_DEVICE
    height = max(most // max(rows.shape[1], num_bins), 1)
    for i in range(0, len(rows), height):
        length = max(most // height, 1)
        yield slice(i, i + height), [rows[i : i + height, j : j + length] for j in range(0, rows.shape[1], length)]


def rebinned(counts: Tensor, edges: Tensor, low: Tensor, high: Tensor) -> Tensor:
    """The counts in even bins from ``low`` to ``high``: those of a cut bin in proportion, half to even."""
    low, high, num_bins = low[:, None], high[:, None], counts.shape[1]
    width, old_width = (high - low) / base.constant(num_bins, low), edges[:, 1:2] - edges[:, :1]
    starts = edges[:, :-1]
    bins = ((starts - low) / width).int().clamp_(0, num_bins - 1)
    ends = low + width * (bins + 1)
    part = torch.minimum(((ends - starts) / old_width * counts).round_(), counts)
    part = torch.where(old_width == 0, counts, part)  # a bin without a width is not cut
    next_bins = ((starts + width - low) / width).int().clamp_(0, num_bins - 1)
    row = torch.arange(0, counts.numel(), num_bins, device=low.device)[:, None]
    moved = torch.zeros_like(counts).flatten()
    moved.index_add_(0, (row + bins).flatten(), part.flatten())
    moved.index_add_(0, (row + next_bins).flatten(), (counts - part).flatten())
    return moved.view_as(counts)
