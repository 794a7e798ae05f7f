"""AIMET: LPBQ, low-power blockwise quantization: block scales that are integer multiples of one scale per channel."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.aimet.encodings import LeastScale, min_scale

__all__ = ["lpbq_scale", "lpbq_scaled"]


@dataclass(frozen=True)
class BlockScales(LeastScale):
    """The choices in making the scales of blocks multiples of one per group."""

    # Of positive multiples, of which ties up are ties away from zero.
    rounding: str = choice({
        "half-even": "rounds the multiple, ties to even",
        "half-away": "rounds the multiple, ties up",
        "half-to-zero": "rounds the multiple, ties down",
        "toward-zero": "rounds the multiple down",
        "ceil": "rounds the multiple up",
    })  # fmt: skip
    division: str = choice({
        "divide": "divides a block's scale by its group's",
        "reciprocal": "multiplies a block's scale by the rounded reciprocal of its group's",
    })  # fmt: skip
    smallest: str = choice({"one": "takes 1 for the least multiple", "zero": "takes 0 for the least multiple"})


@dataclass(frozen=True)
class Scaled(Behaviour):
    """The choice of what a factor scales."""

    scales: str = choice({
        "group": "scales the scale of a group, and so those of its blocks",
        "block": "scales the scales of blocks, leaves their group's, and finds the multiples anew",
    })  # fmt: skip


@formula(
    "aimet/lpbq_scale",
    equation=(
        r"s = k \cdot c,\quad k = \mathrm{clamp}(\lceil r / c \rfloor, 1, K),\quad c = \max_{group} r / K,"
        r"\quad K = 2^{decompressed\_bw - bitwidth},\quad r = \max(|max - min| / (2^{bitwidth} - 1), r_{min})"
    ),
    basis=AsComputed(dtype="float32"),
    source="aimet-torch 2.42: GroupedBlockQuantizeDequantize, measured",
    behaviour=BlockScales(),
)
def lpbq_scale(
    b: BlockScales,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    bitwidth: int,
    decompressed_bw: int,
    block_grouping: tuple[int, ...] | None = None,
) -> dict[str, Array]:
    """The scales of a symmetric grouped quantizer, float32.

    Args:
        min: in reals, float32, one entry per block.
        max: likewise, of the same shape.
        bitwidth: width of the codes.
        decompressed_bw: width of the codes in terms of the scale of their group, ``bitwidth`` or more.
        block_grouping: blocks of a group along each dimension, -1 all of them; by default 1.

    Returns:
        ``scale`` (real per code) and ``per_block_int_scale`` (whole numbers) of the shape of ``min``, and
        ``per_channel_scale``, one entry per group.

    Raises:
        RuntimeError: ``decompressed_bw`` below ``bitwidth``; a grouping of other length, or that does not divide.
    """
    if decompressed_bw < bitwidth:
        msg = f"decompressed_bw={decompressed_bw} is not accepted: give {bitwidth}, the bitwidth, or more"
        raise RuntimeError(msg)
    n = 2**bitwidth - 1
    smallest = np.float32(min_scale(b, n))
    raw = np.maximum(np.abs((max - min) / np.float32(n)), smallest)
    grouping = _concrete(raw.shape, block_grouping)
    groups = [size for c, k in zip(raw.shape, grouping, strict=True) for size in (c // k, k)]
    largest = raw.reshape(groups).max(axis=tuple(range(1, len(groups), 2)))
    k_max = np.float32(2 ** (decompressed_bw - bitwidth))
    per_channel = largest / k_max
    shared = _shared(per_channel, grouping)
    multiple = raw * (np.float32(1) / shared) if b.division == "reciprocal" else raw / shared
    k, least = ROUNDINGS[b.rounding](multiple), np.float32(b.smallest == "one")
    k = np.where(k < least, least, np.where(k > k_max, k_max, k))
    return {"scale": k * shared, "per_channel_scale": per_channel, "per_block_int_scale": k}


@formula(
    "aimet/lpbq_scaled",
    equation=r"c' = |f| c,\quad k' = k,\quad s' = k' c'",
    basis=AsComputed(dtype="float32"),
    source="GroupedBlockQuantizeDequantize: a scale is its integer times that of its group; a product of a tensor",
    behaviour=Scaled(),
    versions={"2.42": (Scaled("block"), "aimet-torch 2.42, measured")},
)
def lpbq_scaled(
    b: Scaled,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    bitwidth: int,
    decompressed_bw: int,
    factor: float,
    block_grouping: tuple[int, ...] | None = None,
) -> dict[str, Array]:
    """The scales of the encoding of what a grouped quantizer returned, times ``factor``, a number above zero.

    The rest as in ``lpbq_scale``.
    """
    found = lpbq_scale(BlockScales(), min, max, bitwidth, decompressed_bw, block_grouping)
    per_channel, k = found["per_channel_scale"], found["per_block_int_scale"]
    grouping, size = _concrete(k.shape, block_grouping), np.float32(factor)
    if b.scales == "group":
        per_channel = per_channel * size
        scale = k * _shared(per_channel, grouping)
    else:
        scale = found["scale"] * size
        k_max = np.float32(2 ** (decompressed_bw - bitwidth))
        k = np.clip(np.rint(scale / _shared(per_channel, grouping)), np.float32(1), k_max)
    return {"scale": scale, "per_channel_scale": per_channel, "per_block_int_scale": k}


def _shared(per_channel: Array, grouping: Shape) -> Array:
    """One entry per block."""
    for axis, size in enumerate(grouping):
        per_channel = np.repeat(per_channel, size, axis)
    return per_channel


def _concrete(shape: Shape, block_grouping: tuple[int, ...] | None) -> Shape:
    grouping = block_grouping if block_grouping is not None else (1,) * len(shape)
    if len(grouping) != len(shape) or any(c % b for c, b in zip(shape, grouping, strict=True)):
        msg = f"block_grouping={block_grouping} is not accepted for min of shape {shape}: give what divides it"
        raise RuntimeError(msg)
    return tuple(c if b == -1 else b for c, b in zip(shape, grouping, strict=True))
