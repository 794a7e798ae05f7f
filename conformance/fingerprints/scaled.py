"""What a function that chooses scales does: how one is made, its least amount, zeros, what is no number, and codes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.fingerprints.coded import Beside, beside_scales
from halfeven.conformance.fingerprints.kinds import same
from halfeven.conformance.fingerprints.reading import Answered, Reading, decided, witnessed
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED, Witnessed
from halfeven.conformance.fingerprints.scaling import (
    AMOUNTS,
    DIVISIONS,
    DIVISORS,
    OF,
    PER_REAL,
    POWERS,
    TENSOR,
    Made,
    Scaling,
    is_power,
    made_scales,
    nearest_scales,
    ordinary,
    same_power,
    scale_of,
    splitting,
)
from halfeven.conformance.fingerprints.units import LEAST, MOST, NO_OTHER, Units, units
from halfeven.reference.blocks import Array

__all__ = ["reading_of_scale", "splitting_of_scale"]

_TENSOR = "the tensor"
_DIGITS = 3  # of an amount that is not among those that people write
_SORTS = ("least", "large", "zero", "infinity", "nan")
#: Ways that are one with a power of two.
_EXACT = {
    "divide": ("divide", "reciprocal"),
    "codes-per-real": ("codes-per-real", "times-inverse", "inverse"),
}
_IS_EXACT = "where each step is a normal number, a product with a power of two, or with its inverse, is exact"
_CHANGES = "where a quotient is a normal number, they change the power of two at the same magnitudes"
#: What scales are made of that is never below 0.
_NOT_NEGATIVE = frozenset(
    {"the largest magnitude", "greatest - least", "greatest - least, 0 between them", "the greatest, 0 at least"}
)
_NATURAL = "as any other"
_Option = Callable[[Units], Array]


def reading_of_scale(seen: Sequence[Answered], dtype: str) -> Reading | None:
    """What a choice of scales does, choice by choice; None where none is known that gives those of ordinary size.

    Args:
        seen: the calls, of one dtype, and what came.
        dtype: of the data.
    """
    forms = {tuple(a.size for a in s.answer) for s in seen}
    if len(forms) != 1:
        return None
    [sizes] = forms
    found = {which: made for which in range(len(sizes)) if (made := made_scales(seen, which, dtype))}
    if not found:
        return _nearest(seen, len(sizes), dtype)
    values = [row for which in found for row in _rows(found, which, seen, dtype)]
    # Of several arrays that can be scales it is the one that leaves least of all the others; then the larger one.
    lost = min(row.lost for row in values)
    values = [row for row in values if row.lost == lost]
    most = max(row.made.came[0].size for row in values)
    values = [row for row in values if row.made.came[0].size == most]
    fields, left = decided(row.values for row in values)
    first = values[0].made
    witnesses = {name: w for name in _told(fields) if (w := _witnessed(first, dtype, name))}
    share = 1 - (lost - values[0].beside.given) / _every(seen)
    found_all = _of_powers(Reading(fields, left, witnesses, share, near=values[0].beside.near), first)
    return _one_power(found_all, [row.made.scaling for row in values])


def _nearest(seen: Sequence[Answered], arrays: int, dtype: str) -> Reading | None:
    """Where no way gives all scales of ordinary size: nothing is decided, and which gives most is said."""
    found = {which: [made] for which in range(arrays) if (made := nearest_scales(seen, which, dtype)) is not None}
    rows = [row for which in found for row in _rows(found, which, seen, dtype)]
    if not rows:
        return None
    own = min(rows, key=lambda row: row.lost - row.beside.given)
    near = {name: some[0] for name, some in own.values.items() if some[0] != UNDECIDED}
    share = 1 - (own.lost - own.beside.given) / _every(seen)
    return Reading(dict.fromkeys(own.values, UNDECIDED), {}, share=share, near={**near, **own.beside.near})


def _every(seen: Sequence[Answered]) -> int:
    return sum(a.size for s in seen for a in s.answer)


@dataclass(frozen=True, eq=False)
class _Row:
    """A way to make scales, the values of its choices, how many numbers it does not give, and what is beside."""

    made: Made
    values: Mapping[str, tuple[Any, ...]]
    lost: int
    beside: Beside


def _rows(found: Mapping[int, Sequence[Made]], which: int, seen: Sequence[Answered], dtype: str) -> Iterator[_Row]:
    """Where one of the arrays has the scales: each way."""
    # One of the tensor stands by itself beside another of the tensor: it has to be explained.
    rest = {w: made for w, made in found.items() if w != which and found[which][0].scaling.over != _TENSOR}
    tensors = {w: [m.scaling for m in made if m.scaling.over == _TENSOR] for w, made in rest.items()}
    divisors = [s.divisor / TENSOR for some in tensors.values() for s in some]
    for way in found[which]:
        own, missed = _values(way, dtype)
        if way.scaling.within != NO_OTHER:
            own["divisor"] = tuple(dict.fromkeys(divisors)) or (UNDECIDED,)
        beside = beside_scales(way, seen, which, dtype, {w for w, some in tensors.items() if some})
        yield _Row(way, {**own, **beside.fields}, way.missed + missed + beside.lost, beside)


def _told(fields: Mapping[str, Any]) -> list[str]:
    """The choices that are decided."""
    return [name for name, value in fields.items() if value != UNDECIDED]


def _one_power(found: Reading, ways: Sequence[Scaling]) -> Reading:
    """The same; where all ways that remain change a power of two at the same numbers, they are one function."""
    powers = {same_power(s) for s in ways}
    told = [name for name in ("divisor", "held", "compute") if name in found.alternatives]
    if len(powers) > 1 or None in powers or not told:
        return found
    return replace(
        found,
        fields={**found.fields, **dict.fromkeys(told, INDISTINGUISHABLE)},
        proofs={**found.proofs, **dict.fromkeys(told, _CHANGES)},
    )


def _of_powers(found: Reading, made: Made) -> Reading:
    """The same; where a power of two divides, or is divided, no way to do it is told from another."""
    s, name = made.scaling, "division"
    if found.fields[name] not in _EXACT or not is_power(s.divisor) or found.fields["divisor"] != s.divisor:
        return found
    return replace(
        found,
        fields={**found.fields, name: INDISTINGUISHABLE},
        alternatives={**found.alternatives, name: _EXACT[s.division]},
        witnesses={n: w for n, w in found.witnesses.items() if n != name},
        proofs={**found.proofs, name: _IS_EXACT},
    )


def splitting_of_scale(seen: Sequence[Answered], dtype: str, turn: int) -> Array | None:
    """Data that tell apart the ways that remain to make a scale; None where there is one alone, or none was found."""
    sizes = [a.size for a in seen[0].answer]
    if {tuple(a.size for a in s.answer) for s in seen} != {tuple(sizes)}:
        return None
    for which in sorted(range(len(sizes)), key=lambda w: -sizes[w]):
        made = made_scales(seen, which, dtype)
        if len(made) > 1 and (told := splitting(made, dtype, turn)) is not None:
            return told
    return None


def _values(made: Made, dtype: str) -> tuple[dict[str, tuple[Any, ...]], int]:
    """The values of each choice that give what came, and how many scales none gives."""
    found, lost = made.scaling.chosen(), 0
    for sort in _SORTS:
        kept, missed = _kept(made, sort, dtype, (sort,))
        if sort == "least" and len(kept) > 1:
            # First those that give zeros too, if they are no exception, and of these those that people write.
            zeros = _kept(made, sort, dtype, (sort, "zero"), kept)[0]
            written = {repr(a) for a in AMOUNTS}
            kept.sort(key=lambda n: (n not in zeros, n != "none" and n.partition(" ")[0] not in written))
            if "none" in kept:  # an amount that was read off a scale explains a floor, and there is none
                kept = [n for n in kept if n == "none" or n.partition(" ")[0] in written]
            kept = kept[:1] if _one_least(made, dtype, kept) else kept
        found[sort] = tuple(kept) or (UNDECIDED,)
        lost += 0 if kept else missed
    return found, lost


def _kept(
    made: Made, sort: str, dtype: str, sorts: Sequence[str], some: Sequence[str] | None = None
) -> tuple[list[str], int]:
    """The values of a choice that give the scales of some sorts, and how many the best does not give.

    Where no scale of them came, that is of no value a confirmation.
    """
    at = [np.any([_sort(u, one, made.scaling.within) for one in sorts], axis=0) for u in made.calls]
    came = np.concatenate([c[i] for i, c in zip(at, made.came, strict=True)])
    kept: list[str] = []
    missed = came.size
    if not came.size:
        return kept, 0
    for name, option in _options(made, sort, dtype, came):
        if some is None or name in some:
            given = np.concatenate([option(u)[i] for i, u in zip(at, made.calls, strict=True)])
            wrong = int((~same(given, came)).sum())
            missed = min(missed, wrong)
            if not wrong:
                kept.append(name)
                if name == "left out" or (name == _NATURAL and sort != "large"):
                    break  # a number that is no exception
    return kept, missed


def _one_least(made: Made, dtype: str, names: Sequence[str]) -> bool:
    """Whether least amounts are one function of magnitudes above 0: if they give one scale for the least of them.

    A way that never falls, or never rises, gives of any magnitude the greater, or the less, of its scale without a
    least amount and of that one.
    """
    s = made.scaling
    if s.of not in _NOT_NEGATIVE or s.divisor <= 0 or s.within != NO_OTHER or any(" added " in n for n in names):
        return False
    tiny: Any = ml_dtypes.finfo(DTYPES[dtype])  # type: ignore[no-untyped-call]
    u = units(np.array([[float(tiny.smallest_subnormal), 0.0]]), 2)
    options = dict(_options(made, "least", dtype, u.amax))
    given = [options[n](u) for n in names]
    return all(bool(same(given[0], g).all()) for g in given)


def _sort(u: Units, sort: str, within: str) -> Array:
    """Which parts are of a sort."""
    nan = u.lost(within)
    usual = ~nan & ~u.infinite
    sorts: dict[str, Array] = {
        "least": usual & (u.amax > 0) & (u.amax < LEAST),
        "large": usual & (u.amax > MOST),
        "zero": usual & (u.amax == 0),
        "infinity": ~nan & u.infinite,
        "nan": nan & ~u.infinite,
    }
    return sorts[sort]


def _options(made: Made, sort: str, dtype: str, came: Array) -> Iterator[tuple[str, _Option]]:
    """The values of a choice, each with the scales that it gives."""

    def plainly(u: Units) -> Array:
        return scale_of(made.scaling, u, dtype)

    if sort == "least" and made.scaling.added:
        yield f"{made.scaling.added!r} added to the scale", plainly
        return
    if sort == "least":
        yield "none", plainly
        yield from _least(made, dtype)
        return
    natural = {"nan": "left out"}.get(sort, _NATURAL)
    if sort != "zero":
        yield natural, plainly
    if sort == "large":
        most = float(np.finfo(np.float32).max)
        yield "infinity where twice the number is", lambda u: np.where(2 * u.amax > most, np.inf, plainly(u))
        yield "saturate", lambda u: np.minimum(plainly(u), float(np.finfo(np.float16).max))
    numbers = np.unique(came)
    if numbers.size == 1:
        name = {"nan": "propagates" if np.isnan(numbers[0]) else ""}.get(sort) or f"{float(numbers[0])!r}"
        yield name, lambda u: np.full(u.amax.shape, numbers[0])
    elif sort == "zero":
        yield natural, plainly


def _least(made: Made, dtype: str) -> Iterator[tuple[str, _Option]]:
    """The least amounts that people write, and one that is read off the least scale."""
    s, found = made.scaling, {}

    def on_magnitude(amount: float, *, added: bool) -> _Option:
        def least(a: Array) -> Array:
            e = a.dtype.type(amount)
            return np.asarray(a + e if added else np.maximum(a, e))

        return lambda u: scale_of(s, u, dtype, least=least)

    def on_scale(amount: float) -> _Option:
        return lambda u: np.maximum(scale_of(s, u, dtype), float(np.float32(amount)))

    for amount in _amounts(made):
        found[f"{amount!r} of the magnitude"] = on_magnitude(amount, added=False)
        found[f"{amount!r} added to the magnitude"] = on_magnitude(amount, added=True)
        if s.division not in PER_REAL:
            found[f"{amount!r} of the scale"] = on_scale(amount)
    yield from found.items()


def _amounts(made: Made) -> list[float]:
    """Those that people write, and those that the scale of the least magnitudes may be of."""
    smallest = min(
        (
            (float(a), float(c))
            for u, came in zip(made.calls, made.came, strict=True)
            for a, c in zip(u.amax, came, strict=True)
            if a > 0 and np.isfinite(c) and c > 0
        ),
        default=(0.0, 0.0),
    )[1]
    read = [smallest, abs(made.scaling.divisor) * smallest, abs(made.scaling.divisor) / smallest] if smallest else []
    simple = [float(f"{r:.{_DIGITS}g}") for r in read if 0 < r < LEAST]
    return list(dict.fromkeys([*AMOUNTS, *simple]))


_OTHERS: Mapping[str, tuple[Any, ...]] = {
    "of": tuple(OF),
    "divisor": DIVISORS,
    "division": DIVISIONS,
    "compute": ("float32", "float64"),
    "held": ("as computed", "float16", "bfloat16", "float8_e4m3fn", *POWERS),
}


def _witnessed(made: Made, dtype: str, name: str) -> Witnessed | None:
    """A part of which another value of a choice makes another scale."""
    if name not in _OTHERS and name != "least":
        return None
    for other in _OTHERS.get(name, ("none",)):
        if other == getattr(made.scaling, name, None):
            continue
        changed = made.scaling if name == "least" else replace(made.scaling, **{name: other})
        for u, came in zip(made.calls, made.came, strict=True):
            at = _sort(u, "least", changed.within) if name == "least" else ordinary(u, changed.of, changed.within)
            instead = scale_of(changed, u, dtype)[at]
            if (w := witnessed(u.amax[at], came[at], instead, other, what="largest magnitude")) is not None:
                return w
    return None
