"""Hypothesis strategies for property tests of quantizers: grids, scales, shapes, blocks, layouts, boundary values.

What is drawn shrinks towards the plain case: few elements, one scale of 1, no zero point, contiguous. ``quantizations``
puts it all together:

    >>> from hypothesis import given, settings
    >>> @settings(max_examples=5, database=None)
    ... @given(quantizations())
    ... def test_mine(q):
    ...     with np.errstate(all="ignore"):  # some quotients overflow
    ...         codes = np.rint(q.x / q.scale_of_each) + q.zero_point_of_each
    ...     assert codes.shape == q.x.shape
    >>> test_mine()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil, prod
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

from halfeven.conformance.configuration import DTYPES, Granularity
from halfeven.conformance.engine.shapes import AXES, laid_out, possible
from halfeven.conformance.inputs import boundaries, parameters
from halfeven.reference import Grid
from halfeven.reference.blocks import Array, BlockSize, Shape, parameter_shape, per_element

__all__ = [
    "Quantization",
    "blocks",
    "boundary_values",
    "grids",
    "layouts",
    "quantizations",
    "scales",
    "shapes",
    "zero_points",
]

_BITS = (8, 4, 16, 2, 3, 1, 5, 6, 7, 10, 12)
_SIDES = (1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 63, 64, 65, 127, 129, 255, 257)
_EVERY: tuple[Granularity, ...] = ("tensor", "channel", "token", "group", "block")
_GROUPS = (1, 2, 3, 8, 16, 32, 64, 128)
_EACH = 8  # elements, each of which is drawn by itself


def grids(bits: Sequence[int] = _BITS) -> st.SearchStrategy[Grid]:
    """Grids of integer codes: signed, unsigned and narrow ones.

    >>> all(g.bits <= 4 for g in [grids([2, 4]).example() for _ in range(3)])  # doctest: +SKIP
    True
    """
    signs = [(True, False), (False, False), (True, True)]
    pairs = st.tuples(st.sampled_from(list(bits)), st.sampled_from(signs))
    fitting = pairs.filter(lambda p: p[0] > 1 or not p[1][1])
    return fitting.map(lambda p: Grid.from_bitwidth(p[0], signed=p[1][0], narrow=p[1][1]))


@lru_cache(maxsize=256)
def scales(dtype: str = "float32", grid: Grid = Grid(-128, 127)) -> st.SearchStrategy[float]:  # noqa: B008 - frozen
    """Positive normal scales that ``dtype`` has, at which the grid is finite: of every exponent, and any significand.

    Powers of two, at which every boundary is a true tie, and values that people type come often.
    """
    kind = DTYPES[dtype]
    typed = [float(s) for s in parameters.scales(kind, kind, grid, 12, 0)]
    info = ml_dtypes.finfo(kind)  # type: ignore[no-untyped-call]
    low = int(np.log2(float(info.smallest_normal))) + 2
    high = max(int(np.log2(float(info.max))) - grid.bits - 2, low + 1)
    exponents = st.integers(max(low, -12), min(high, 4)) | st.integers(low, high)
    powers = exponents.map(lambda e: float(2.0**e))
    any_ = st.tuples(powers, st.integers(0, 2**23 - 1)).map(
        lambda p: float(np.asarray(p[0] * (1 + p[1] / 2**23), kind))
    )
    return st.sampled_from(sorted(typed, key=lambda s: s != 1)) | powers | any_


def zero_points(grid: Grid) -> st.SearchStrategy[int]:
    """Zero points inside the grid: 0 or the end nearest to it first, the ends, odd ones, and any.

    >>> zero_points(Grid(0, 0)).example()  # doctest: +SKIP
    0
    """
    usual = {min(max(z, grid.qmin), grid.qmax) for z in (0, 1, 3, -5, grid.qmin, grid.qmax)}
    return st.sampled_from(sorted(usual, key=abs)) | st.integers(grid.qmin, grid.qmax)


def shapes(min_rank: int = 0, max_rank: int = 5, most: int = 1 << 14) -> st.SearchStrategy[Shape]:
    """Shapes of at most ``most`` elements: sides next to powers of two, long vectors with any tail, empty ones."""

    def limited(sides: list[int]) -> Shape:
        found: list[int] = []
        for n in sides:
            found.append(n if prod(found) * n <= most else 1)
        return tuple(found)

    # Several sides of few are drawn so often that a tensor of one element, or of none, stays rare.
    usual = st.integers(min_rank, max_rank).flatmap(
        lambda n: st.lists(st.sampled_from(_SIDES), min_size=n, max_size=n).map(limited)
    )
    found: list[st.SearchStrategy[Shape]] = [usual] if max_rank else [st.just(())]
    if min_rank <= 1 <= max_rank:
        found += [st.integers(2, most).map(lambda n: (n,))] * 2
    if min_rank <= 2 <= max_rank:  # noqa: PLR2004
        found += [st.tuples(st.integers(2, 40), st.integers(2, max(most // 40, 2)))]
    empty = [shape for shape in ((0,), (0, 3), (3, 0)) if min_rank <= len(shape) <= max_rank]
    if not empty:
        return st.one_of(*found)
    rarely = st.integers(0, 24).map(lambda n: n == 24)  # noqa: PLR2004
    return rarely.flatmap(lambda none: st.sampled_from(empty) if none else st.one_of(*found))


def blocks(
    shape: Shape, granularities: Sequence[Granularity] = _EVERY, *, partial: bool = False
) -> st.SearchStrategy[BlockSize | None]:
    """Block sizes for a shape, None for one scale: channels of any axis, tokens, groups, blocks; degenerate ones too.

    Args:
        shape: the tensor's.
        granularities: what may share a scale.
        partial: whether the last block of a dimension may be short, or longer than the dimension.
    """
    whole = tuple(max(n, 1) for n in shape)
    found: list[st.SearchStrategy[BlockSize | None]] = [st.none()] if "tensor" in granularities or not shape else []
    axes = range(len(shape))
    if "channel" in granularities and shape:
        found.append(st.sampled_from([(*whole[:d], 1, *whole[d + 1 :]) for d in axes]))
    if "token" in granularities and shape:
        found.append(st.just((*(1 for _ in axes[1:]), whole[-1])))
    if "group" in granularities and shape:
        sizes = [g for g in _GROUPS if partial or whole[-1] % g == 0]
        found.append(st.sampled_from([(*(1 for _ in axes[1:]), g) for g in sizes]))
    if "block" in granularities and shape:
        found.append(st.tuples(*(st.sampled_from(_parts(n, partial=partial)) for n in whole)))
    return st.one_of(*found)


def _parts(n: int, *, partial: bool) -> list[int]:
    return sorted({n, 1, *(ceil(n / p) for p in (2, 3) if partial or n % p == 0)}, reverse=True)


def layouts(rank: int, *, negative: bool = False) -> st.SearchStrategy[str]:
    """Names of memory layouts for an array of ``rank`` dimensions, for ``laid_out``; contiguous first.

    Args:
        rank: how many dimensions.
        negative: whether strides may be negative, as NumPy's can and torch's cannot.
    """
    names = [name for (name,) in AXES["layout"] if possible({"rank": rank, "layout": name})]
    return st.sampled_from([name for name in names if negative or name != "reversed"])


def boundary_values(
    scale: float, zero_point: int, grid: Grid, dtype: str = "float32", size: int = 1
) -> st.SearchStrategy[Array]:
    """Vectors of ``size`` inputs at which implementations part, for one scale and zero point (x̂ = (q − z) · s).

    Floats at every code boundary and up to three ulps away, middles of codes, values at both ends of the grid and
    beyond, values at which an integer conversion overflows, zeros and infinities.
    """
    table = _hard(scale, zero_point, grid, DTYPES[dtype])
    if size <= _EACH:
        places = st.lists(st.integers(0, len(table) - 1), min_size=size, max_size=size)
        return places.map(lambda p: table[np.array(p, np.int64)])
    starts = st.tuples(st.integers(0, len(table) - 1), st.sampled_from([1, 7, 61]))
    return starts.map(lambda p: table[(p[0] + p[1] * np.arange(size)) % len(table)])


@lru_cache(maxsize=256)
def _hard(scale: float, zero_point: int, grid: Grid, dtype: np.dtype[Any]) -> Array:
    s, z = np.array([scale]), np.array([zero_point])
    near = boundaries.boundaries(s, z, grid, dtype)[0]
    others = np.concatenate([near, boundaries.edges(s, z, grid, dtype)[0], boundaries.huge(s, dtype)[0]])
    codes = boundaries.boundary_codes(grid, zero_point)
    with np.errstate(all="ignore"):
        ties = ((codes - zero_point - 0.5) * scale).astype(dtype)
    mixed = np.stack([others, np.resize(ties, others.size)], axis=1).reshape(-1)  # every second one is the nearest
    return np.concatenate([np.zeros(1, dtype), mixed])


@dataclass(frozen=True, eq=False)
class Quantization:
    """All that a call of a quantizer needs.

    Attributes:
        x: the input, in some memory layout.
        scale, zero_point: 0-d, or with one entry per block; of ``x``'s dtype, and int32.
        grid: the codes.
        block_size: elements per block along each dimension; None for one scale.
        layout: how ``x`` lies in memory.
    """

    x: Array
    scale: Array
    zero_point: Array
    grid: Grid
    block_size: BlockSize | None
    layout: str

    @property
    def scale_of_each(self) -> Array:
        """The scale that each element has; it broadcasts to ``x``."""
        return per_element(self.scale, self.x.shape, self.block_size)

    @property
    def zero_point_of_each(self) -> Array:
        """The zero point that each element has, likewise."""
        return per_element(self.zero_point, self.x.shape, self.block_size)


@st.composite
def quantizations(
    draw: st.DrawFn,
    dtype: str = "float32",
    grid: Grid | None = None,
    granularities: Sequence[Granularity] = _EVERY,
    *,
    partial: bool = False,
    negative: bool = False,
    most: int = 1 << 12,
) -> Quantization:
    """Everything together: a shape, blocks, parameters for each, boundary values of these, and a layout.

    Args:
        draw: Hypothesis' own.
        dtype: of the input and the scales.
        grid: the codes; by default any.
        granularities: what may share a scale.
        partial: whether the last block of a dimension may be short.
        negative: whether strides may be negative.
        most: elements.
    """
    codes = draw(grids()) if grid is None else grid
    shape = draw(shapes(0 if "tensor" in granularities else 1, most=most))
    block_size = draw(blocks(shape, granularities, partial=partial))
    count = () if block_size is None else parameter_shape(shape, block_size)
    # A few parameters take turns, and so do the values of each.
    pairs = draw(st.lists(st.tuples(scales(dtype, codes), zero_points(codes)), min_size=1, max_size=4))
    turn = np.arange(prod(count)).reshape(count) % len(pairs)
    kind = DTYPES[dtype]
    scale = np.asarray(np.array([s for s, _ in pairs])[turn], kind)
    zero = np.asarray(np.array([z for _, z in pairs])[turn], np.int32)
    rows = [draw(boundary_values(s, z, codes, dtype, prod(shape))) for s, z in pairs]
    which = np.broadcast_to(per_element(turn, shape, block_size), shape)
    x = np.take_along_axis(np.stack(rows), which.reshape(1, -1), axis=0).reshape(shape)
    layout = draw(layouts(len(shape), negative=negative)) if x.size > 1 else "contiguous"
    return Quantization(laid_out(x, layout, draw(st.integers(0, 15))).view(), scale, zero, codes, block_size, layout)
