"""Where answers may be made in another way: regions of calls, of places in a tensor, and of values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import ml_dtypes
import numpy as np

from halfeven.conformance.engine.call import PLAIN
from halfeven.conformance.engine.company import TRAITS, traits_of
from halfeven.conformance.engine.fitting.elements import Elements, Observed
from halfeven.conformance.engine.region import SHAPES, Facts, Region
from halfeven.reference import Grid
from halfeven.reference.blocks import Array

__all__ = ["Where", "facts_of", "wheres"]

_LANES = (2, 4, 8, 16, 32, 64)
_TAILS = range(2, 65)
_REMAINDERS = (*_LANES, 128, 256)
_ENDS = (1, 2, 4, 8, 16)
_POWERS = (7, 8, 15, 16, 23, 24, 31, 32, 63, 64)
_KINDS = (
    "nan",
    "infinite",
    "negative",
    "zero",
    "negative zero",
    "odd",
    "zero points",
    "least zero point",
    "negative zero points",
    "subnormal",
    "subnormal scales",
    "one",
    "powers",
)
_PLACES = tuple(2**k for k in range(5, 25))


@dataclass(frozen=True, eq=False)
class Where:
    """A region, and which of the elements are in it."""

    region: Region
    mask: Array

    def split(self, some: Array) -> float:
        """How far elements are split otherwise than chance would split them: bits for each of them."""
        within, share = (float(a.mean()) for a in (self.mask[some], self.mask))
        sides = ((within, share), (1 - within, 1 - share))
        return sum(seen * float(np.log2(seen / usual)) for seen, usual in sides if seen)


def facts_of(groups: Sequence[Elements], answers: Sequence[Observed]) -> Facts:
    """What decides in which regions elements are, over all groups in order; ``answers`` are what they come from."""
    whole = {name: np.concatenate([getattr(g, name) for g in groups]) for name in ("call", "place", "size", "last")}
    real = {
        name: np.concatenate([getattr(g, name).astype(np.float64) for g in groups])
        for name in ("x", "scale", "zero", "lo", "hi")
    }
    return Facts(
        shapes=[a.shape for a in answers],
        ranks=[a.case.x.ndim if a.place is None else a.shape.rank for a in answers],
        granularities=[a.case.configuration.granularity for a in answers],
        traits=[
            a.traits if a.place is not None else traits_of(a.case.configuration.operation, a.case.x) for a in answers
        ],
        tiny=np.concatenate([np.full(len(g), float(_smallest(g))) for g in groups]),
        **whole,
        **real,
    )


def wheres(facts: Facts, failing: Array) -> Iterator[Where]:
    """The regions that hold some of the elements and not all of them, those of calls first.

    Args:
        facts: of the elements; masks are over all of them, in order.
        failing: elements that the likeliest model does not give; some regions are guessed from them.
    """
    for region in dict.fromkeys(chain(_calls(facts, failing), _places(facts, failing), _values(facts, failing))):
        mask = region.mask(facts)
        if mask.any() and not mask.all():
            yield Where(region, mask)


def _smallest(g: Elements) -> float:
    """The smallest normal number of what is quantized; of codes there are none below it."""
    t = g.x.dtype if g.operation != "dequantize" else g.real
    return float(ml_dtypes.finfo(t).smallest_normal)  # type: ignore[no-untyped-call]


def _calls(facts: Facts, failing: Array) -> Iterator[Region]:
    differing = {*np.unique(facts.call[failing]).tolist()}
    for name in SHAPES:
        levels = [getattr(s, name) for s in facts.shapes] if name != "rank" else list(facts.ranks)
        some = dict.fromkeys(levels[i] for i in sorted(differing))
        several = [tuple(some), tuple(dict.fromkeys(level for level in levels if level != getattr(PLAIN, name)))]
        yield from (Region(name, of) for of in [*several, *((level,) for level in some)] if of and None not in of)
    yield from (Region("rank", (rank,)) for rank in dict.fromkeys(facts.ranks) if rank is not None)
    own = tuple(dict.fromkeys(facts.granularities))
    failed = tuple(g for g in own if any(facts.granularities[i] == g for i in differing))
    yield from (Region("granularity", (g,)) for g in own)
    yield from (Region("granularity", of) for of in [failed] if len(of) > 1)
    sizes = np.unique(facts.size)
    yield from _limits("size", facts.size, failing, sizes[:: max(1, len(sizes) // 16)].tolist())
    yield from (Region("remainder", (k,)) for k in _REMAINDERS)
    yield Region("unsigned")
    ends = np.stack([facts.lo, facts.hi])
    yield from (Region("grids", (Grid(int(lo), int(hi)),)) for lo, hi in np.unique(ends, axis=1).T.tolist())
    yield from (Region("codes", (int(steps) + 1,)) for steps in np.unique(facts.hi - facts.lo)[1:].tolist())


def _places(facts: Facts, failing: Array) -> Iterator[Region]:
    yield from (Region("tail", (k,)) for k in _TAILS)
    yield from (Region("row tail", (k,)) for k in _TAILS)
    yield from (Region(kind) for kind in ("last block", "later blocks", "last row"))
    yield from (Region("end", (k,)) for k in _ENDS)
    for k in _LANES:
        lanes = np.unique(facts.place[failing] % k)
        if lanes.size < k:
            yield Region("lanes", (k, *lanes.tolist()))
    yield from _limits("from", facts.place, failing, list(_PLACES))


def _limits(kind: str, numbers: Array, failing: Array, usual: Sequence[int]) -> Iterator[Region]:
    """Regions from a limit on: as what fails says, were it inside or outside, and as is usual."""
    said = [int(numbers[failing].min()), int(numbers[failing].max()) + 1] if failing.any() else []
    below = sorted((n for n in usual if said and n <= said[0]), reverse=True)
    yield from (Region(kind, (int(n), -1)) for n in dict.fromkeys([*said, *below, *usual]))


def _values(facts: Facts, failing: Array) -> Iterator[Region]:
    yield from (Region("quotient", (power,)) for power in _POWERS)
    if None not in facts.traits:
        yield from (Region("whole", (trait,)) for trait in TRAITS)
    yield from map(Region, _KINDS)
    for kind, numbers in (("quotients", facts.quotient), ("scales", facts.magnitude), ("reals", facts.real)):
        said = numbers[failing & np.isfinite(numbers)]
        if said.size:  # what fails is inside, or outside
            yield from (Region(kind, (least.item(), -1)) for least in (said.min(), np.nextafter(said.max(), np.inf)))
