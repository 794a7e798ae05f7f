"""AIMET's LPBQ block by block: the integer scale is the one whose multiple of the channel's scale is nearest."""

import builtins
from collections.abc import Iterable
from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.registry import derives
from oracles.soft import Soft, array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []


@derives("aimet/lpbq_scale")
def lpbq_scale(
    min: Array,  # noqa: A002
    max: Array,  # noqa: A002
    bitwidth: int,
    decompressed_bw: int,
    block_grouping: Any = None,
) -> dict[str, Array]:
    """Group by group."""
    shape = min.shape
    grouping = [1] * len(shape) if block_grouping is None else list(block_grouping)
    bad = len(grouping) != len(shape) or any(b > 0 and c % b for c, b in zip(shape, grouping, strict=True))
    if bad or decompressed_bw < bitwidth:
        msg = f"block_grouping={block_grouping}, decompressed_bw={decompressed_bw} is not accepted"
        raise RuntimeError(msg)
    sizes = [c if b == -1 else b for c, b in zip(shape, grouping, strict=True)]
    outer = tuple(c // b for c, b in zip(shape, sizes, strict=True))
    members: list[list[int]] = [[] for _ in range(prod(outer))]
    for flat, place in enumerate(product(*map(range, shape))):
        group = 0
        for j, b, c in zip(place, sizes, outer, strict=True):
            group = group * c + j // b
        members[group].append(flat)
    most = 2 ** (decompressed_bw - bitwidth)
    raw = [_raw(low, high, 2**bitwidth - 1) for low, high in zip(softs(min), softs(max), strict=True)]
    channel, integer, scale = [], [0.0] * len(raw), [soft(0.0, "float32")] * len(raw)
    for flats in members:
        largest = builtins.max(raw[i].value for i in flats)
        c = soft(Fraction(largest) / most, "float32")
        channel.append(c)
        for i in flats:
            ratio = raw[i] / c
            # Of the candidates 1 to K the one with the smallest distance; of two, the even one.
            k = sorted({1, most, *(j for j in range(int(ratio.value), int(ratio.value) + 2) if 1 <= j <= most)})
            integer[i] = float(_nearest(Fraction(ratio.value), k))
            scale[i] = Soft(integer[i], c.form) * c
    return {
        "scale": array(scale, shape, np.float32),
        "per_channel_scale": array(channel, outer, np.float32),
        "per_block_int_scale": array(integer, shape, np.float32),
    }


@derives("aimet/lpbq_scaled")
def lpbq_scaled(factor: float, **given: Any) -> dict[str, Array]:
    """The same integers of a longer unit, block by block."""
    found = lpbq_scale(**given)
    f = soft(factor, "float32")
    channel = [c * f for c in softs(found["per_channel_scale"])]
    kept, groups = found["per_block_int_scale"], found["per_channel_scale"].shape
    scale = [k * channel[_group(i, kept.shape, groups)] for i, k in enumerate(softs(kept))]
    return {
        "scale": array(scale, kept.shape, np.float32),
        "per_channel_scale": array(channel, groups, np.float32),
        "per_block_int_scale": kept,
    }


@derives("aimet/lpbq_scaled@2.42")
def lpbq_scaled_2_42(factor: float, **given: Any) -> dict[str, Array]:
    """Of each longer scale the nearest integer beside the old unit."""
    found = lpbq_scale(**given)
    f, most = soft(factor, "float32"), 2 ** (given["decompressed_bw"] - given["bitwidth"])
    channel, shape = softs(found["per_channel_scale"]), found["scale"].shape
    scale = [s * f for s in softs(found["scale"])]
    ratios = [s / channel[_group(i, shape, found["per_channel_scale"].shape)] for i, s in enumerate(scale)]
    integers = [float(_nearest(Fraction(r.value), range(1, most + 1))) for r in ratios]
    return {
        "scale": array(scale, shape, np.float32),
        "per_channel_scale": found["per_channel_scale"],
        "per_block_int_scale": array(integers, shape, np.float32),
    }


def _group(flat: int, blocks: tuple[int, ...], groups: tuple[int, ...]) -> int:
    """The group of a block, both counted in order."""
    place = np.unravel_index(flat, blocks)
    held = tuple(int(j) * g // n for j, n, g in zip(place, blocks, groups, strict=True))
    return int(np.ravel_multi_index(held, groups))


def _nearest(value: Fraction, integers: Iterable[int]) -> int:
    return builtins.min(integers, key=lambda j: (abs(value - j), j % 2))


def _raw(low: Soft, high: Soft, steps: int) -> Soft:
    r = abs((high - low) / soft(float(steps), "float32"))
    least = soft(2.0**-23 if steps < 2**23 / 100 else 0.01 / steps, "float32")
    return r if r.value > least.value else least
