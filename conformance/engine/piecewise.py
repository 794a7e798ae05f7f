"""An explanation piece by piece where none gives all answers: of each grid by itself, there of each granularity."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from halfeven.conformance.engine.explain import Explanation, Part, explain
from halfeven.conformance.engine.fitting.elements import Elements, Observed, elements_of
from halfeven.conformance.engine.fitting.fit import Work
from halfeven.conformance.engine.region import Region
from halfeven.reference import Grid
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile

__all__ = ["is_whole", "piecewise"]

_Key = TypeVar("_Key")
#: Where, what gives all answers there, if anything does, and these.
_Found = tuple[tuple[Region, ...], Explanation | None, Sequence[Observed]]


def is_whole(found: Explanation) -> bool:
    """Whether it gives all answers."""
    return bool(found.parts) and all(p.model is not None for p in found.parts)


def piecewise(profile: Profile, answers: Sequence[Observed], whole: Explanation, work: Work) -> Explanation | None:
    """What gives all answers of some grids, or of some granularities on them: an implementation may know 8 bits alone.

    A part without words stands for the pieces of which nothing is known but what is of the ``whole``.

    Returns:
        None where nothing gives all answers of any piece.
    """
    by_grid = _by(answers, lambda a: a.case.configuration.grid)
    known: list[_Piece] = []
    lost: dict[tuple[Region, ...], list[Grid]] = {}
    for grid, some in by_grid.items():
        alone = whole if len(by_grid) == 1 else None
        for where, of, few in _of_grid(profile, some, known, alone, work):
            if of is None:
                lost.setdefault(where, []).append(grid)
                continue
            groups = elements_of(profile, few)
            for p in of.parts:
                _add(known, _Piece(replace(p, where=(*where, *p.where)), [grid], [(groups, p.mask)]))
    if not known:
        return None
    every = len(by_grid)
    parts = [replace(k.part, where=(*_grids(k.grids, every), *k.part.where)) for k in known]
    parts += [Part((*_grids(grids, every), *where), None, "", {}, "", 0.0) for where, grids in lost.items()]
    return Explanation(tuple(parts), 1.0, whole.nearest)


def _of_grid(
    profile: Profile,
    answers: Sequence[Observed],
    known: Sequence["_Piece"],
    alone: Explanation | None,
    work: Work,
) -> Sequence[_Found]:
    """What is done on one grid: what is known of others, else one thing, else one of each granularity.

    ``alone`` is the explanation of the grid where there is no other.
    """
    if pieces := _as_elsewhere(profile, answers, known):
        return pieces
    models = list(dict.fromkeys(k.part.model for k in known if k.part.model is not None))
    found = alone
    if alone is None:
        with work.half() as budget:  # the other half is for its granularities, and for the grids that follow
            found = explain(profile, answers, budget, models)
    if found is not None and is_whole(found):
        return [((), found, answers)]
    pieces = [*_of_granularities(profile, answers, work, models)]
    return pieces if any(of is not None for _, of, _ in pieces) else [((), None, answers)]


def _as_elsewhere(profile: Profile, answers: Sequence[Observed], known: Sequence["_Piece"]) -> list[_Found]:
    """Of each granularity what is known of it on another grid; nothing unless that gives all of these answers."""
    found: list[_Found] = []
    for granularity, some in _by(answers, lambda a: a.case.configuration.granularity).items():
        where, groups = (Region("granularity", (granularity,)),), elements_of(profile, some)
        parts = (k.part for k in known if k.part.where == where)
        part = next((p for p in parts if p.given(groups).all()), None)
        if part is None:
            return []
        everywhere = np.ones(sum(map(len, groups)), bool)
        found.append((where, Explanation((replace(part, where=(), mask=everywhere),), 1.0), some))
    return found


def _of_granularities(
    profile: Profile, answers: Sequence[Observed], work: Work, models: Sequence[EvaluationModel]
) -> Iterator[_Found]:
    """Of each granularity its region, what gives all its answers, if anything does, and these."""
    pieces = _by(answers, lambda a: a.case.configuration.granularity)
    for granularity, some in pieces.items() if len(pieces) > 1 else ():
        found = explain(profile, some, work, models)
        one = found is not None and is_whole(found) and len(found.parts) == 1  # in few calls a region may be chance
        yield (Region("granularity", (granularity,)),), found if one else None, some


def _by(answers: Sequence[Observed], key: Callable[[Observed], _Key]) -> dict[_Key, list[Observed]]:
    found: dict[_Key, list[Observed]] = {}
    for a in answers:
        found.setdefault(key(a), []).append(a)
    return found


def _grids(grids: Sequence[Grid], every: int) -> tuple[Region, ...]:
    """The region of some grids; none where they are all that there are."""
    return (Region("grids", tuple(grids)),) if len({*grids}) < every else ()


@dataclass(eq=False)
class _Piece:
    """A part, the grids that it is true of, and of each the answers and which of them it gives."""

    part: Part
    grids: list[Grid]
    given: list[tuple[Sequence[Elements], Array | None]]

    def gives(self, of: "_Piece") -> bool:
        """Whether the part gives the answers of another one too."""
        return all(mask is not None and bool(self.part.given(groups)[mask].all()) for groups, mask in of.given)


def _add(known: list[_Piece], new: _Piece) -> None:
    """Take a piece in: into one that is the same on other grids, if one of the two gives the answers of both."""
    for k in known:
        alike = (
            k.part.where == new.part.where
            and k.part.reading == new.part.reading
            and bool(k.part.words) == bool(new.part.words)
        )
        if alike and (k.part.model == new.part.model or k.gives(new) or new.gives(k)):
            k.part = k.part if k.gives(new) else new.part
            k.grids += new.grids
            k.given += new.given
            return
    known.append(new)
