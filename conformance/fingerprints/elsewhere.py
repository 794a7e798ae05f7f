"""Calls of other sizes, layouts and grids: what was found holds there too, or it depends on the region."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import product

import numpy as np

from halfeven.conformance.engine.call import PLAIN, CallShape
from halfeven.conformance.fingerprints.asking import LARGEST
from halfeven.conformance.fingerprints.models import Asked, Given, Spent, Stages, agreeing, of_model
from halfeven.conformance.fingerprints.search import Search, Seen, scouting, splitting
from halfeven.conformance.fingerprints.subject import Subject, differ, own_grid
from halfeven.reference import Grid

__all__ = ["ask_elsewhere", "plainest", "remains", "with_special"]

_SCALES = (0.1, 1 / 3, 0.7)  # whose ties few bits hold, and whose inverse is rounded up and down
_SIZES = (
    *(1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 64, 65, 100, 127, 128, 129),
    *(255, 256, 257, 500, 511, 513, 1000, 1024, 1025, 2048, 2049, 4096),
)
_LAID = 512
_LAYOUTS = (
    CallShape(layout="stepped"),
    CallShape(layout="reversed"),
    CallShape(offset=1),
    CallShape(layout="transposed", rank=2),
    CallShape(layout="padded rows", rank=2),
    CallShape(rank=2),
)
_ENOUGH = 16  # calls that are answered otherwise
_OTHER = {Grid(-128, 127): Grid(0, 255), Grid(0, 255): Grid(-128, 127)}


def ask_elsewhere(subject: Subject, search: Search) -> None:
    """Ask where implementations take another path; answers that no model of those that remain gives are kept apart."""
    if not search.seen or search.against or search.late or subject.uneven:
        return
    known: dict[bool, set[int]] = {True: {s.value.size for s in search.seen}, False: set()}
    for given, shape in _calls(subject, search):
        if subject.asking.spent or search.late or len(subject.elsewhere) > _ENOUGH:
            break
        alike = _asked(subject, search, given, shape)
        if alike is not None and shape == PLAIN:
            known[alike].add(given.x.size)
    _ask_between(subject, search, known)
    if subject.elsewhere:
        for given in with_special(plainest(subject, search)):
            if not (subject.asking.spent or search.late):
                _asked(subject, search, given)


def plainest(subject: Subject, search: Search) -> Given:
    """The usual scale and zero point, and inputs at which codes change, those first that are nearest to a tie."""
    return _telling(search, subject.asked, _SCALES[0], (subject.zeros or [subject.fixed or 0])[0])


def _asked(subject: Subject, search: Search, given: Given, shape: CallShape = PLAIN) -> bool | None:
    """Ask, and keep what came; whether a model that remains gives it, None where nothing came that tells."""
    seen = subject.seen(given, shape)
    if seen is None:
        return None
    if seen.given.asked.grid != search.asked.grid and own_grid([seen], seen.given.asked.grid) is not None:
        return None  # it has no such codes: that tells of none of its choices
    alike = remains(search, seen)
    (search.seen if alike else subject.elsewhere).append(seen)
    return alike


def _ask_between(subject: Subject, search: Search, known: Mapping[bool, set[int]]) -> None:
    """Where all calls of some size and more are answered otherwise than all smaller ones: from which size on."""
    alike, otherwise = known[True], known[False]
    if not alike or not otherwise:
        return
    below = max(otherwise) >= max(alike)  # whether it is the larger calls that are answered otherwise
    low = max((n for n in alike if n < min(otherwise)), default=0) if below else max(otherwise)
    high = min(otherwise) if below else min(n for n in alike if n > low)
    given = plainest(subject, search)
    while high - low > 1 and not subject.asking.spent:
        middle = (low + high) // 2
        found = _asked(subject, search, replace(given, x=np.resize(given.x, middle)))
        low, high = (middle, high) if found is below else (low, middle)


def with_special(given: Given) -> Iterator[Given]:
    """The inputs in calls that somebody may look at as a whole, each small and large: of finite numbers alone, too."""
    if given.asked.operation == "dequantize":
        return
    x = given.x[np.isfinite(given.x.astype(np.float64))]
    numbers = [x, x[x != 0]] if (x == 0).any() else [x]
    ends = [(some, some[-1:]) for some in numbers]
    ends += [(x, np.array([one], x.dtype)) for one in (np.nan, np.inf, -np.inf)]
    for (some, end), size in product(ends, (_LAID, LARGEST - 1)):
        if some.size:
            yield replace(given, x=np.append(np.resize(some, size - 1), end))


def remains(search: Search, seen: Seen) -> bool:
    """Whether a model that remains gives the answer; those that do not are dropped."""
    known = np.flatnonzero(~np.isnan(seen.given.x.astype(np.float64)))
    seen = seen.at(known)
    if not differ(of_model(search.first(), seen.given), seen.value).any():
        return True
    try:
        kept = agreeing(Stages(seen.given, search.work), search.cubes, seen.value)
    except Spent:
        search.late = True
        return True
    search.cubes = kept or search.cubes
    return bool(kept)


def _calls(subject: Subject, search: Search) -> Iterator[tuple[Given, CallShape]]:
    zeros = subject.zeros or [subject.fixed or 0]
    asked = subject.asked
    telling = [_telling(search, asked, s, zeros[turn % len(zeros)]) for turn, s in enumerate(_SCALES)]
    for turn, n in enumerate(_SIZES):
        given = telling[turn % len(telling)]
        yield replace(given, x=np.resize(np.roll(given.x, -8 * turn), n)), PLAIN
    for turn, shape in enumerate(_LAYOUTS):
        if shape.layout == "reversed" and subject.asking.worker.offer.array == "torch":
            continue  # torch has no negative strides
        given = telling[turn % len(telling)]
        yield replace(given, x=np.resize(given.x, _LAID)), shape
    other = _OTHER.get(asked.grid)
    plain = subject.handed == asked.grid and subject.fixed is None and not subject.takes_amax
    if other is not None and not subject.given and plain:
        for s in _SCALES:
            yield scouting(replace(asked, grid=other), s, subject.zeros[0] if subject.zeros else 0), PLAIN


def _telling(search: Search, asked: Asked, scale: float, zero: int) -> Given:
    """Inputs at which codes change, those first that are nearest to a tie."""
    given = splitting([search.first()], asked, scale, zero)
    with np.errstate(all="ignore"):
        quotient = given.x.astype(np.float64) / given.step
        off = np.nan_to_num(np.abs(np.abs(quotient - np.trunc(quotient)) - 0.5), nan=1.0)
    return replace(given, x=given.x[np.argsort(off, kind="stable")])
