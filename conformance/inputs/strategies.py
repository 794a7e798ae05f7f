"""Hypothesis strategies for configurations: shapes, blocks and zero points. Values are built, never drawn."""

from dataclasses import dataclass

from hypothesis import strategies as st

from halfeven.conformance.configuration import Granularity
from halfeven.reference import blocks
from halfeven.reference.blocks import BlockSize, Shape

__all__ = ["Placement", "blocks_of", "placements", "shapes"]

_SIZES = (1, 2, 3, 4, 5, 7, 8, 11, 13, 17)
_LARGEST = 2048


@dataclass(frozen=True)
class Placement:
    """A shape, the blocks that share parameters in it, and a number that varies the zero points."""

    shape: Shape
    block_size: BlockSize
    zero: int


def shapes(min_rank: int = 0, max_rank: int = 5) -> st.SearchStrategy[Shape]:
    """Shapes with many prime sizes, of at most 2048 elements; the smallest first. Empty ones are the check result's."""
    ranks = st.integers(min_rank, max_rank)  # drawn by themselves, so that no rank is rare
    return ranks.flatmap(lambda n: st.lists(st.sampled_from(_SIZES), min_size=n, max_size=n)).map(_limited)


def blocks_of(granularity: Granularity, shape: Shape) -> BlockSize | None:
    """The plainest blocks of a granularity: the first axis, the last vector, one group, one block; None per tensor."""
    match granularity:
        case "tensor":
            return None
        case "channel":
            return blocks.per_channel(shape, 0)
        case "token":
            return blocks.per_token(shape)
        case "group":
            return blocks.per_group(shape, max(shape[-1], 1))
        case "block":
            return blocks.per_tensor(shape)


@st.composite
def placements(draw: st.DrawFn, granularity: Granularity, *, partial: bool = False) -> Placement:
    """A shape and blocks of one granularity; with ``partial`` the last block of a dimension may be short."""
    shape = draw(shapes(min_rank=0 if granularity == "tensor" else 1))
    match granularity:
        case "tensor":
            block = blocks.per_tensor(shape)
        case "channel":
            axis = draw(st.integers(-len(shape), len(shape) - 1))
            block = blocks.per_channel(shape, axis)
        case "token":
            block = blocks.per_token(shape)
        case "group":
            axis = draw(st.integers(-len(shape), len(shape) - 1))
            size = draw(st.sampled_from(_sizes(shape[axis], partial=partial)))
            block = blocks.per_group(shape, size, axis)
        case "block":
            block = tuple(draw(st.sampled_from(_sizes(n, partial=partial))) for n in shape)
    return Placement(shape, block, draw(st.integers(0, 40)))


def _sizes(n: int, *, partial: bool) -> list[int]:
    """The block sizes for a dimension of ``n`` elements: its divisors, or any up to it."""
    return [b for b in range(1, max(n, 1) + 1) if partial or n % b == 0]


def _limited(sizes: list[int]) -> Shape:
    kept: list[int] = []
    total = 1
    for n in sizes:
        kept.append(n if total * n <= _LARGEST else 1)
        total *= kept[-1]
    return tuple(kept)
