"""AIMET's LPBQ, scales of blocks that are multiples of one per group: requirements, calls, answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from halfeven.conformance.requirement import Calls, expected, measured
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

F32 = np.dtype(np.float32)


def _blocks(scale: Array, bitwidth: int) -> dict[str, Any]:
    """The range of a symmetric quantizer of these scales."""
    half = np.float32(2 ** (bitwidth - 1))
    return {"min": -half * scale, "max": (half - np.float32(1)) * scale, "bitwidth": bitwidth}


@measured("aimet/lpbq_scale", "aimet-torch 2.42: GroupedBlockQuantizeDequantize", aspect="integer-multiples")
def ties() -> Calls:
    """A block's scale is an integer from 1 to K times the channel's, the nearest to the block's own, ties to the even
    one; the channel's is the group's largest scale over K = 2^(decompressed_bw - bitwidth)."""
    # Ratios of k + 1/2 to the channel's scale and their neighbours, for every k; the largest scale sets the unit.
    for bitwidth, wide in ((4, 8), (4, 5), (8, 12), (2, 8), (1, 3)):
        most = 2 ** (wide - bitwidth)
        for unit in (1, 0.1, 3e-5):
            at = (np.arange(0, most) + 0.5) * unit
            near = np.stack([np.nextafter(at.astype(F32), F32.type(s)) for s in (0, 1e9)] + [at.astype(F32)])
            scale = np.concatenate([near.ravel(), np.array([most * unit, unit / 100])]).astype(F32)
            yield {**_blocks(scale, bitwidth), "decompressed_bw": wide, "block_grouping": (-1,)}


@measured("aimet/lpbq_scale", "aimet-torch 2.42: GroupedBlockQuantizeDequantize, parameter block_grouping")
def groups() -> Calls:
    """The group is so many neighbouring blocks along each dimension; -1 is all of them, and without a grouping every
    block is its own group."""
    # Every grouping of (2, 4, 6) scales that differ; no grouping; one bitwidth for both; rank 1.
    scale = ((np.arange(48) * 11 % 48 + 1) / 16).astype(F32).reshape(2, 4, 6)
    for grouping in ((1, 1, -1), (1, -1, 1), (-1, 4, 3), (2, 2, 2), (1, 1, 1), (-1, -1, -1), (1, 2, 6), None):
        yield {**_blocks(scale, 4), "decompressed_bw": 8, "block_grouping": grouping}
    yield {**_blocks(scale, 4), "decompressed_bw": 4, "block_grouping": (1, 1, -1)}
    yield {**_blocks(scale[0, 0], 4), "decompressed_bw": 8, "block_grouping": (3,)}


@measured("aimet/lpbq_scale", "aimet-torch 2.42: GroupedBlockQuantizeDequantize")
def smallest() -> Calls:
    """A block's own scale is the size of its range over the number of steps, swapped ends or not, and at least the
    smallest scale."""
    # Ranges that are empty, swapped, or below the smallest scale.
    low, high = np.array([0, 1, -1e-9, -1, 0.5], F32), np.array([0, -2, 1e-9, 1, 2], F32)
    for bitwidth in (4, 8, 16):
        given = {"min": low, "max": high, "bitwidth": bitwidth, "decompressed_bw": bitwidth + 4}
        yield {**given, "block_grouping": (-1,)}
        yield {**given, "block_grouping": None}


@measured("aimet/lpbq_scale", "aimet-torch 2.42: GroupedBlockQuantizeDequantize")
def least_scale() -> Calls:
    """Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's machine epsilon."""
    low, high = np.array([-1e-9, -1e-4, 0], F32), np.array([1e-9, 1e-4, 0], F32)
    for bitwidth in (16, 17, 20):
        yield {"min": low, "max": high, "bitwidth": bitwidth, "decompressed_bw": bitwidth + 2, "block_grouping": (-1,)}


@measured("aimet/lpbq_scale", "aimet-torch 2.42: GroupedBlockQuantizeDequantize")
def refusals() -> Calls:
    """Refused are a decompressed bitwidth below the bitwidth, and groupings that do not divide the blocks or have
    another length."""
    given = _blocks(np.ones((2, 4), F32), 4)
    yield {**given, "decompressed_bw": 3, "block_grouping": (1, -1)}
    yield {**given, "decompressed_bw": 8, "block_grouping": (1,)}
    yield {**given, "decompressed_bw": 8, "block_grouping": (1, 3)}


@expected(
    "aimet/lpbq_scaled",
    "QuantizedTensorBase holds the encoding of its values; aimet-torch 2.42 multiplies the blocks' scales alone",
)
def factors() -> Calls:
    """Times a number, a grouped tensor's scales are the same integers of its groups' scales times the number, so that
    its export means the same reals."""
    # Longer and shorter units, for integers of every size, groups and none.
    scale = np.array([[16, 3, 8, 1], [0.9, 1.3, 0.2, 1.6]], F32) / F32.type(10)
    for factor in (2.0, 0.5, 3.0, 0.1):
        for grouping in ((1, -1), (1, 2), (2, 1), None):
            yield {**_blocks(scale, 4), "decompressed_bw": 8, "factor": factor, "block_grouping": grouping}
    for bitwidth, wide in ((4, 6), (2, 8)):
        yield {**_blocks(scale, bitwidth), "decompressed_bw": wide, "factor": 3.0, "block_grouping": (1, -1)}


def lpbq_scale(
    min: Tensor,  # noqa: A002 - the document's names
    max: Tensor,  # noqa: A002
    bitwidth: int,
    decompressed_bw: int,
    block_grouping: tuple[int, ...] | None = None,
) -> dict[str, Tensor]:
    """The encoding of ``GroupedBlockQuantizeDequantize``."""
    import torch
    from aimet_torch.quantization import affine

    shape = tuple(min.shape)
    quantizer = affine.GroupedBlockQuantizeDequantize(
        shape, bitwidth, True, decompressed_bw, block_size=(-1,) * len(shape), block_grouping=block_grouping
    )
    quantizer.min, quantizer.max = torch.nn.Parameter(min), torch.nn.Parameter(max)
    encoding = quantizer.get_encodings()
    names = ("scale", "per_channel_scale", "per_block_int_scale")
    return {name: getattr(encoding, name).detach() for name in names}


def lpbq_scaled(
    min: Tensor,  # noqa: A002
    max: Tensor,  # noqa: A002
    bitwidth: int,
    decompressed_bw: int,
    factor: float,
    block_grouping: tuple[int, ...] | None = None,
) -> dict[str, Tensor]:
    """The encoding of what ``GroupedBlockQuantizeDequantize`` returns, times a number."""
    import torch
    from aimet_torch.quantization import affine

    shape = tuple(min.shape)
    quantizer = affine.GroupedBlockQuantizeDequantize(
        shape, bitwidth, True, decompressed_bw, block_size=(-1,) * len(shape), block_grouping=block_grouping
    )
    quantizer.min, quantizer.max = torch.nn.Parameter(min), torch.nn.Parameter(max)
    encoding = (quantizer(torch.zeros(shape)) * factor).encoding
    names = ("scale", "per_channel_scale", "per_block_int_scale")
    return {name: getattr(encoding, name).detach() for name in names}


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {"aimet/lpbq_scale": lpbq_scale, "aimet/lpbq_scaled": lpbq_scaled},
}
