"""AIMET's calibration by the least and the greatest value, element by element."""

from fractions import Fraction
from itertools import product
from math import prod

from oracles.aimet_encodings import (
    at_least,
    bitwidth_grid,
    least_scale,
    scale_and_offset,
)
from oracles.exact import FORMATS
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, soft, softs

__all__ = ["members"]

Blocks = tuple[int, ...] | None


def members(x: Array, shape: tuple[int, ...], block_size: Blocks, *, strict: bool = True) -> list[list[Soft]]:
    """For every parameter of ``shape``, in order, the elements that share it: found by walking over the elements."""
    lead = x.ndim - len(shape)
    if block_size is not None and (lead < 0 or len(block_size) > len(shape)):
        raise ValueError
    if lead < 0:
        raise RuntimeError
    sizes = []
    for d, count in enumerate(shape):
        length = x.shape[lead + d]
        place = d - len(shape) + len(block_size) if block_size is not None else -1
        if block_size is None:
            size = 1 if count == length else length
        elif place >= 0 and block_size[place] != -1:
            size = block_size[place]
        else:  # a dimension without an entry is shared as a whole, or not at all
            size = length // count if place >= 0 or count == 1 else 1
        sizes.append(size)
    fits = all(s * c == n for s, c, n in zip(sizes, shape, x.shape[lead:], strict=True))
    walked = x.shape
    if (
        not fits
        and not strict
        and 0 not in shape
        and x.size % prod(s * c for s, c in zip(sizes, shape, strict=True)) == 0
    ):
        # Memory order, as if the last dimensions were those that the blocks make.
        inner = tuple(s * c for s, c in zip(sizes, shape, strict=True))
        walked, lead, fits = (x.size // prod(inner), *inner), 1, True
    if not fits:
        raise RuntimeError
    found: dict[tuple[int, ...], list[Soft]] = {at: [] for at in product(*(range(c) for c in shape))}
    walk = product(*(range(n) for n in walked))
    for at, value in zip(walk, softs(x), strict=True):
        found[tuple(j // s for j, s in zip(at[lead:], sizes, strict=True))].append(value)
    return list(found.values())


def _extremes(values: list[Soft]) -> tuple[Soft, Soft]:
    """The least and the greatest, with zero; NaN where there is one."""
    for v in values:
        if v.nan:
            return v, v
    zero = Soft(0.0, values[0].form)
    low, high = values[0], values[0]
    for v in values:
        low, high = (v if v.value < low.value else low), (v if v.value > high.value else high)
    return (zero if low.value > 0 else low), (zero if high.value < 0 else high)


def _larger(a: Soft, b: Soft) -> Soft:
    """NaN before any number."""
    return a if a.nan or a.value > b.value else b


def _end(low: Soft, high: Soft, n: int, symmetric: bool, dtype: str, *, divides: bool) -> tuple[Soft, Soft]:
    own = FORMATS[dtype]
    name = "float64" if dtype == "float64" else "float32"
    wide = FORMATS[name]
    least = least_scale(n)
    per_step = ((high - low).to(wide) / soft(float(n), name)).to(own)
    spread = soft(least, "float32") if per_step.value < soft(least, dtype).value else soft(0.0, "float32")
    below, above = n - n // 2, n // 2
    low, high = low.to(wide), high.to(wide)

    def steps(count: int) -> Soft:
        return (soft(float(count), "float32") * spread).to(wide)

    if not symmetric:
        high += steps(n)
    else:
        low, high = low - steps(below), high + steps(above)
        delta = -low / soft(float(below), name)
        if above or divides:
            delta = _larger(high / soft(float(2 if n == 3 else above), name), delta)
        low, high = soft(float(-below), name) * delta, soft(float(above), name) * delta
    # The largest number of the format, from its definition.
    largest = float(Fraction(2) ** own.emax * (2 - Fraction(1, 2 ** (own.precision - 1))))
    low, high = at_least(low, Soft(-largest, wide)), -at_least(-high, Soft(-largest, wide))
    return low.to(own), high.to(own)


def _minmax(
    batches: tuple[Array, ...], num_steps: int, symmetric: bool, shape: tuple[int, ...], block_size: Blocks, old: bool
) -> tuple[Array, Array]:
    for x in batches:
        if x.dtype.name not in DTYPES:
            raise TypeError
        if x.size == 0:
            raise IndexError
    if num_steps <= 0:
        raise ValueError
    if not batches:
        raise RuntimeError
    dtype = batches[0].dtype.name
    together: list[list[Soft]] = [[] for _ in range(prod(shape))]
    for x in batches:
        for kept, new in zip(together, members(x, shape, block_size, strict=not old), strict=True):
            kept.extend(new)
    ends = [_end(*_extremes(values), num_steps, symmetric, dtype, divides=old) for values in together]
    low, high = ([e[i] for e in ends] for i in (0, 1))
    return array(low, shape, DTYPES[dtype]), array(high, shape, DTYPES[dtype])


@derives("aimet/minmax_encodings")
def minmax_encodings(
    batches: tuple[Array, ...], num_steps: int, symmetric: bool, shape: tuple[int, ...], block_size: Blocks = None
) -> tuple[Array, Array]:
    """All batches are one."""
    return _minmax(batches, num_steps, symmetric, shape, block_size, old=False)


@derives("aimet/minmax_encodings@2.42")
def minmax_encodings_2_42(
    batches: tuple[Array, ...], num_steps: int, symmetric: bool, shape: tuple[int, ...], block_size: Blocks = None
) -> tuple[Array, Array]:
    """All batches are one, with the library's division by zero steps and its blocks."""
    return _minmax(batches, num_steps, symmetric, shape, block_size, old=True)


def _calibrated(
    batches: tuple[Array, ...], bitwidth: int, symmetric: bool, shape: tuple[int, ...], block_size: Blocks, old: bool
) -> dict[str, Array]:
    qmin, qmax = bitwidth_grid(bitwidth, symmetric)
    seen = tuple(x for x in batches if x.size)
    if not seen or (block_size is not None and len(block_size) < len(shape)):
        raise RuntimeError
    if any(x.dtype.name not in DTYPES for x in seen):
        raise TypeError
    for x in seen:
        members(x, shape, block_size)  # what shares a parameter must fit here, in the library too
    ends = _minmax(seen, qmax - qmin, symmetric, shape, block_size, old=old)
    low, high = (array((v.to(FORMATS["float32"]) for v in softs(end)), shape, "float32") for end in ends)
    scale, offset = scale_and_offset(low, high, qmin, qmax, symmetric)
    return {"min": low, "max": high, "scale": scale, "offset": offset}


@derives("aimet/compute_encodings")
def compute_encodings(
    batches: tuple[Array, ...], bitwidth: int, symmetric: bool, shape: tuple[int, ...], block_size: Blocks = None
) -> dict[str, Array]:
    """What is kept of the range, and what follows from it."""
    return _calibrated(batches, bitwidth, symmetric, shape, block_size, old=False)


@derives("aimet/compute_encodings@2.42")
def compute_encodings_2_42(
    batches: tuple[Array, ...], bitwidth: int, symmetric: bool, shape: tuple[int, ...], block_size: Blocks = None
) -> dict[str, Array]:
    """The same, by the library's range."""
    return _calibrated(batches, bitwidth, symmetric, shape, block_size, old=True)


@derives("aimet/is_initialized")
def is_initialized(steps: tuple[str, ...]) -> bool:
    """A table of what each step gives, added up."""
    gives = {
        **{f"{kind} {name}": {name} for kind in ("assign", "fill", "range") for name in ("min", "max")},
        **{both: {"min", "max"} for both in ("range", "calibrate")},
        **{none: set[str]() for none in ("calibrate nothing", "calibrate and fail")},
    }
    if not gives.keys() >= set(steps):
        raise ValueError
    return len({name for step in steps for name in gives[step]}) == len({"min", "max"})
