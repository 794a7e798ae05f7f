"""The fingerprint of an operation: the evaluation models that give what it answers, asked where they differ."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import cycle, product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.fingerprints.apart import ask_apart, ask_besides, ask_tails
from halfeven.conformance.fingerprints.asking import Asking
from halfeven.conformance.fingerprints.cubes import size
from halfeven.conformance.fingerprints.elsewhere import ask_elsewhere
from halfeven.conformance.fingerprints.models import Asked, Given, Spent, Stages, agreeing, of_model
from halfeven.conformance.fingerprints.result import Fingerprint
from halfeven.conformance.fingerprints.search import Search, Seen, all_models, scouting, splitting
from halfeven.conformance.fingerprints.subject import Subject, differ, oddity, own_grid, own_zero
from halfeven.conformance.fingerprints.told import told
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Operation

__all__ = ["fingerprint_of_operation"]

_EXACT = 0.25  # of which every quotient, product and inverse is exact
_SHORT = 237 / 2**14  # in 8 bits, and its inverse is rounded down by far in float32 and in float64: ties are lost
_SCALES = (
    0.1,
    1 / 3,
    0.0123,
    1 / 127,
    0.7,
    3.0,
    _SHORT,
    1.0000001,
    1 / 255,
    0.05,
    1e-3,
    1.9999999,
    2.0**-7,
    1e-5,
    123.456,
)
_RARE = (2.0**-126, 2.0**-130, 3e33)  # whose inverse is at the end of what float32 holds, or beyond it
_QUIET = 4  # pairs of parameters, one after the other, that split nothing
_LEAST = 6  # pairs that are asked however little remains
_MODELS = 5  # whose boundaries go into one call
# Of so few digits that a number of 16 bits may be just beside a tie: there 1/s tells, of large quotients above all.
_DECIMAL = (0.3, 0.7, 0.6, 0.9, 0.15, 0.35, 0.013, 0.03, 0.07, 0.05, 0.012, 0.11, 0.45, 0.021, 0.18, 0.017)
_PAIRS = 48
_SHORTEST = 2  # bytes of a dtype
_MORE = 12  # calls beside ties
_BESIDE = tuple(product((3, 5, 7), (0, 1, 2, 5, 12, 39)))  # codes, and which of the ties above 1


def fingerprint_of_operation(
    asking: Asking, name: str, operation: Operation, dtype: str, grid: Grid | None = None
) -> Fingerprint:
    """The models that give what an operation answers.

    Args:
        asking: what answers; its profile takes a scale and a zero point.
        name: of the implementation.
        operation: quantize, dequantize or fake_quantize.
        dtype: of the reals.
        grid: the codes; without it -128 to 127 and, where the codes are not in there, 0 to 255.
    """
    real = DTYPES[dtype]
    wide = np.dtype(np.float64 if dtype == "float64" else np.float32)
    subject, search = _first_that_stands(_tried(asking, operation, (real, wide), grid))
    if subject.asked.grid != subject.handed or subject.handed != (grid or Grid(-128, 127)):
        said = f", with qmin {subject.handed.qmin} and qmax {subject.handed.qmax}" if grid is None else ""
        asking.note(f"its codes are those of {subject.asked.grid}{said}")
    if subject.beyond:
        asking.note(f"takes amax for the real of {subject.handed.qmax + subject.beyond}, which is beyond its codes")
    if subject.fixed is not None:
        asking.note(f"takes no zero point, or makes nothing of it: it has {subject.fixed}, and no other was asked")
    if not subject.odd:
        ask_elsewhere(subject, search)
    return replace(told(subject, search, name), rounded=subject.rounded)


def _first_that_stands(tried: Iterator[tuple[Subject, Search]]) -> tuple[Subject, Search]:
    """The first with models that give all answers, asked on; none such, the first of all, asked on."""
    begun: list[tuple[Subject, Search]] = []
    for subject, search in tried:
        begun.append((subject, search))
        if subject.odd:
            return subject, search
        if search.seen and not search.against:
            _ask_on(subject, search)
            if not (search.against and subject.takes_amax):  # then s may be qmax / amax, or amax / qmax
                return subject, search
    subject, search = begun[0]
    if not search.asked_on:
        _ask_on(subject, search)
    return subject, search


def _tried(
    asking: Asking, operation: Operation, dtypes: "tuple[np.dtype[Any], np.dtype[Any]]", grid: Grid | None
) -> Iterator[tuple[Subject, Search]]:
    """The grids that it may have, each with the models that give the first answers."""
    for handed in [Grid(-128, 127), Grid(0, 255)] if grid is None else [grid]:
        asked = Asked(operation, dtypes[0], handed, dtypes[1])
        subject = Subject(asking, asked, handed, _zeros(handed), given=grid is not None)
        for one in _of_amax(subject) if subject.takes_amax else [subject]:
            seen = list(_scout(one))
            one.odd = oddity(seen)
            if one.odd:
                found = Search(one.asked)
                found.seen += seen
                yield one, found
                return
            yield from _kept_to(one, seen)


def _of_amax(subject: Subject) -> Iterator[Subject]:
    """What an amax may be, the real of qmax or of one code more, and what is made of it: qmax / amax or its inverse."""
    for beyond, per_real in product((0, 1), (True, False)):
        yield replace(subject, beyond=beyond, asked=replace(subject.asked, per_real=per_real))


def _zeros(grid: Grid) -> list[int]:
    middle = (grid.qmin + grid.qmax + 1) // 2
    return [z for z in dict.fromkeys([3, middle, 0, grid.qmin + 1, 8, grid.qmax, 1, -1]) if z in grid]


def _scout(subject: Subject) -> Iterator[Seen]:
    """The first calls: where all arithmetic is exact, where it is not, and with a zero point."""
    base = 0 if 0 in subject.asked.grid else subject.asked.grid.qmin
    pairs = dict.fromkeys([(_EXACT, base), (_SCALES[0], base), (_SCALES[0], (subject.zeros or [base])[0])])
    for scale, zero in pairs:
        if (seen := subject.seen(scouting(subject.asked, scale, zero))) is not None:
            yield seen


def _kept_to(scouts: Subject, seen: Sequence[Seen]) -> Iterator[tuple[Subject, Search]]:
    """The first calls held against all models: with the grid as it was told, then with the one that codes keep to."""
    fixed = own_zero(seen)
    for own in filter(None, (scouts.handed, own_grid(seen, scouts.handed))):
        asked = replace(scouts.asked, grid=own)
        zeros = _zeros(own) if fixed is None else []
        subject = replace(scouts, asked=asked, zeros=[z for z in zeros if z in scouts.zeros or own != scouts.handed])
        subject.fixed = fixed
        search = Search(asked)
        meant = [
            replace(s, given=replace(s.given, asked=asked, zero=s.given.zero if fixed is None else fixed)) for s in seen
        ]
        subject.pairs = [(float(s.given.scale), int(s.given.zero)) for s in meant]
        if subject.uneven:  # then no one model gives it all
            search.seen += meant
        else:
            search.take(*meant)
        yield subject, search
        if asked.operation == "fake_quantize" and search.against:  # a gradient may be passed from here to there
            search = Search(asked, all_models(asked, "difference"))
            search.take(*meant)
            yield replace(subject), search


def _ask_on(subject: Subject, search: Search) -> None:
    """Ask with one pair of parameters after the other, until several in a row split nothing."""
    search.asked_on = True
    quiet = asked = 0
    for turn in range(_PAIRS):
        if search.late or subject.asking.spent or quiet >= _QUIET or (not search.seen and turn > 1):
            break
        scale, zero = _pair(turn, subject.zeros)
        if subject.takes_amax and scale in _RARE:  # documents have least amounts of their own
            continue
        models = search.drawn(_MODELS, turn)
        given = splitting(models, subject.asked, scale, zero)
        if asked >= _LEAST and not subject.uneven and not _splits(search, models[0], given):
            quiet += 1
            continue
        seen = subject.seen(given)
        asked += 1
        if seen is None:
            continue
        before = size(search.cubes)
        if subject.uneven:
            search.seen.append(seen)
            quiet += asked > _LEAST
            continue
        search.take(seen)
        quiet = quiet + 1 if size(search.cubes) == before and asked > _LEAST else 0
    if search.seen and not subject.uneven:
        _ask_coarse(subject, search)
        _ask_beside_ties(subject, search)
        ask_apart(subject, search)
        ask_besides(subject, search)
    elif search.seen:
        ask_tails(subject, search)
    if search.seen:
        _ask_again(subject, search.seen[0])


def _ask_again(subject: Subject, first: Seen) -> None:
    """The first call once more, after all others."""
    last = subject.seen(first.given)
    if last is not None and differ(last.value, first.value).any():
        subject.asking.note("depends on the calls before: the first one, made again, gave another answer")


def _ask_coarse(subject: Subject, search: Search) -> None:
    """Of 16 bits: ask with zero points at the ends of the grid, of short scales with those that split what remains."""
    asked = subject.asked
    if asked.dtype.itemsize <= _SHORTEST and asked.operation != "dequantize":
        ends = [z for z in (asked.grid.qmax, asked.grid.qmin + 1) if z in subject.zeros]
        _ask_splitting(subject, search, product(_DECIMAL, ends), _PAIRS)


def _ask_beside_ties(subject: Subject, search: Search) -> None:
    """Of reals of 16 bits: ask with scales that split what remains, those first whose multiple is just beside a tie.

    There a product that is rounded to float32 first is rounded to another number of 16 bits than one that is not.
    """
    asked = subject.asked
    if asked.dtype.itemsize <= _SHORTEST and asked.operation != "quantize":
        half = 2.0 ** -(int(ml_dtypes.finfo(asked.dtype).nmant) + 1)  # type: ignore[no-untyped-call]
        beside = [(1 + (2 * nth + 1) * half) / code for code, nth in _BESIDE]
        scales = (*beside, *_DECIMAL, *(10 * s for s in _DECIMAL))
        zeros = cycle([0, *subject.zeros[:1]])
        _ask_splitting(subject, search, zip(scales, zeros, strict=False), _MORE)


def _ask_splitting(subject: Subject, search: Search, pairs: Iterable[tuple[float, int]], most: int) -> None:
    """Ask with those pairs of scale and zero point that split what remains, with so many at the most."""
    last = subject.asking.calls + most
    for turn, (scale, zero) in enumerate(() if subject.takes_amax else pairs):
        if subject.asking.calls >= last or subject.asking.spent or search.late or search.against:
            return
        models = search.drawn(_MODELS, turn)
        given = splitting(models, subject.asked, scale, zero)
        if _splits(search, models[0], given) and (seen := subject.seen(given)) is not None:
            search.take(seen)


def _pair(turn: int, zeros: Sequence[int]) -> tuple[float, int]:
    """Scales that people type, a few that are rare, then drawn ones; zero points by turns."""
    known = (*_SCALES[1:6], _EXACT, *_SCALES[6:], *_RARE)
    drawn = float(np.exp2(np.random.default_rng(turn).uniform(-9, 4)))
    return known[turn] if turn < len(known) else drawn, zeros[turn % len(zeros)] if zeros else 0


def _splits(search: Search, model: EvaluationModel, given: Given) -> bool:
    """Whether some model that remains gives another answer than this one; none is followed where none gives all."""
    if search.against:
        return False
    try:
        return size(agreeing(Stages(given, search.work), search.cubes, of_model(model, given))) < size(search.cubes)
    except Spent:
        search.late = True
        return False
