"""The fingerprint of a documented function: which points of its formula's behaviour give the answers seen.

The calls are those of the formula's requirements. Those are asked first that tell most of the points apart that remain,
until no call tells any of them apart.
"""

import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from itertools import islice
from typing import Any

import numpy as np

from halfeven.conformance.engine.call import Answer, Call, leaves, sent
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.fingerprints.asking import LARGEST, Asking
from halfeven.conformance.fingerprints.beyond import variants
from halfeven.conformance.fingerprints.cubes import Cube, Tree, everything, holds, merged, points, size
from halfeven.conformance.fingerprints.residual import residual
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED, Fingerprint, Nearest, Witnessed
from halfeven.conformance.requirement import Arguments
from halfeven.conformance.systems import call_sets
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["PROVED", "fingerprint_of_formula", "program"]

#: Of a choice that changes nothing in the program that is carried out.
PROVED = "with the other choices as they are the program does not depend on it, whatever the input"
_POINTS = 40  # by which calls are chosen
_CALLS = 160  # that are looked at in one round
_AT_ONCE = 6  # calls chosen in it
_LEAVES = 4096  # of a call that is asked while there are smaller ones
_ALL = 256  # points that are all looked at
_SHOWN = 120  # letters of an argument or an answer
_VARIANTS = 300  # calls of another kind that are looked at
_FIRST = 12  # calls, of which one at least has to be answered
_ROUNDS = 3  # of points drawn anew, before every call is looked at


@dataclass(eq=False)
class _Probe:
    """A call of the formula, and what each point gives for it."""

    arguments: Arguments
    tree: Tree
    known: dict[Any, Answer] = field(default_factory=dict)


@dataclass(eq=False)
class _Seen:
    """What came of a call, and which of the answers that points give it is."""

    probe: _Probe
    answer: Answer
    same: dict[Any, bool] = field(default_factory=dict)

    def agrees(self, key: Any) -> bool:
        """Whether a point's answer is the one seen."""
        if key not in self.same:
            self.same[key] = not differences(self.probe.known[key], self.answer).differing
        return self.same[key]


def fingerprint_of_formula(formula: str, asking: Asking, name: str) -> Fingerprint:
    """The points of a formula's behaviour that give what an implementation answers.

    Args:
        formula: the id of a formula with a behaviour; a version's stands for its document's.
        asking: what answers calls of the formula.
        name: of the implementation.

    Raises:
        ValueError: the formula has no behaviour.
    """
    symbol = FORMULAS[formula].id.partition("@")[0]
    family = FORMULAS.versions(symbol)
    documented = family[0]
    if documented.behaviour is None:
        msg = f"formula={formula!r} is not accepted: there is nothing to choose in it"
        raise ValueError(msg)
    search = _Search(documented, [f for f in family if isinstance(f.behaviour, type(documented.behaviour))], asking)
    search.ask_all()
    while search.ask_beyond():
        pass
    return _told(search, family, name)


class _Search:
    """The points that remain, and what was asked so far."""

    def __init__(self, documented: Formula, versions: Sequence[Formula], asking: Asking) -> None:
        self.formula, self.asking = documented, asking
        assert documented.behaviour is not None, "asked before"
        self.own: Behaviour = documented.behaviour
        self.kind = type(self.own)
        self.known: list[Behaviour] = [f.behaviour for f in versions if f.behaviour is not None]
        self.cubes: list[Cube] = [everything(self.kind)]
        self.left = list(_probes(documented.id))
        self.seen: list[_Seen] = []
        self.against: list[_Seen] = []
        self.decided: dict[str, tuple[_Seen, Any]] = {}
        self.answered: bool | None = None  # not asked yet

    def ask_all(self) -> None:
        """Ask until no call tells apart what remains."""
        draws = 0
        while self.left and self.answered is not False and not self.asking.spent and size(self.cubes) > 1:
            chosen = self._chosen(draws)
            if not chosen:
                if draws < _ROUNDS and size(self.cubes) > _ALL:
                    draws += 1
                    continue
                chosen = self._telling()
            if not chosen:
                return
            self._ask(chosen)
        if not self.seen and self.left and self.answered is not False:  # nothing to choose: one call all the same
            self._ask(self.left[:1])

    def _is_answered(self) -> bool:
        """Whether a call is, of the first that the document answers; of a function of other arguments none is."""
        own = partial(self.formula.transcription, self.own)
        first = islice((p for p in self.left if answer_of(own, p.arguments).kind == "returned"), _FIRST)
        return any(a.kind == "returned" for p in first for a in self.asking.answers([self._call(p)]))

    def _call(self, probe: _Probe) -> Call:
        given = {k: sent(v) for k, v in probe.arguments.items()}
        return Call(self.formula.id, (), given, reason="splits what remains")

    def ask_beyond(self) -> bool:
        """Ask something of another kind, where the points that remain are not one program and do not give the same."""
        if not self.answered or self.asking.spent or not 1 < size(self.cubes) <= _ALL:
            return False
        some = self._some(0)
        if len({self.program(p) for p in some}) == 1:
            return False
        own = [p.arguments for p in _probes(self.formula.id)]
        for arguments in variants(own, _VARIANTS, self.asking.calls):
            probe = _probe(self.formula, arguments)
            keys = {probe.tree.at(point) for point in some}
            if len(keys) > 1 and any(probe.known[k].kind == "returned" for k in keys):
                before = size(self.cubes)
                self._ask([probe])
                return size(self.cubes) < before
        return False

    def program(self, point: Behaviour) -> str:
        """What the transcription carries out at a point."""
        return program(self.formula.id, point)

    def _ask(self, chosen: Sequence[_Probe]) -> None:
        answers = self.asking.answers([self._call(p) for p in chosen])
        if not self.answered:
            self.answered = any(a.kind == "returned" for a in answers) or self._is_answered()
            if not self.answered:
                return
        self.left = [p for p in self.left if all(p is not c for c in chosen)]
        for probe, answer in zip(chosen, answers, strict=False):  # fewer where no more may be asked
            if answer.kind in {"returned", "raised"}:
                self._take(_Seen(probe, answer))

    def _take(self, seen: _Seen) -> None:
        before = _values(self.cubes)
        kept = [p for cube in self.cubes for p, key in seen.probe.tree.leaves(cube) if seen.agrees(key)]
        if not kept:  # of an error that no point makes the note is all there is to say
            if seen.answer.kind == "returned":
                self.against.append(seen)
            return
        self.seen.append(seen)
        self.cubes = merged(kept)
        after = _values(self.cubes)
        for name, values in before.items():
            if len(values) > 1 == len(after[name]):
                other = next(v for v in values if v not in after[name])
                self.decided[name] = seen, other

    def _chosen(self, draw: int) -> list[_Probe]:
        """The calls that tell most of some points apart, each something that those before it do not."""
        some = self._some(draw)
        if len(some) < 2:  # noqa: PLR2004 - nothing to tell apart
            return []
        looked = self.left
        if len(looked) > _CALLS:
            drawn = np.random.default_rng([draw, len(self.seen)]).choice(len(looked), _CALLS, replace=False)
            looked = [looked[i] for i in sorted(drawn)]
        small = [p for p in looked if self._leaves(p, some[0]) <= _LEAVES] or sorted(
            looked, key=lambda p: self._leaves(p, some[0])
        )[:1]
        keys = {id(p): [p.tree.at(point) for point in some] for p in small}
        labels: list[tuple[Any, ...]] = [()] * len(some)
        found: list[_Probe] = []
        while small and len(found) < _AT_ONCE and len(set(labels)) < len(some):
            best = max(small, key=lambda p: len({(*a, k) for a, k in zip(labels, keys[id(p)], strict=True)}))
            refined = [(*a, k) for a, k in zip(labels, keys[id(best)], strict=True)]
            if len(set(refined)) == len(set(labels)):
                break
            labels = refined
            found.append(best)
            small.remove(best)
        return found

    def _telling(self) -> list[_Probe]:
        """The first calls that tell any of the points that remain apart: every point is looked at."""
        return list(islice((p for p in self.left if self._tells(p)), _AT_ONCE))

    def _tells(self, probe: _Probe) -> bool:
        first = object()
        for cube in self.cubes:
            for _, key in probe.tree.leaves(cube):
                if first is not key and not isinstance(first, type(key)):
                    first = key
                elif key != first:
                    return True
        return False

    def _leaves(self, probe: _Probe, point: Behaviour) -> int:
        """About how many answers a call has."""
        values, number = _values(self.cubes), 1
        for name in probe.tree.reads(point):
            number *= len(values[name])
        return number

    def _some(self, draw: int) -> list[Behaviour]:
        """Points that remain: all, where they are few; else the known ones, their neighbours, and some drawn."""
        if size(self.cubes) <= _POINTS:
            return list(points(self.cubes, self.kind))
        found = [p for p in self.known if self._remains(p)]
        generator = np.random.default_rng(draw)
        near = [n for p in found for n in p.neighbours() if self._remains(n)]
        found += [near[i] for i in generator.permutation(len(near))[: _POINTS // 2]]
        while len(found) < _POINTS:
            cube = self.cubes[generator.integers(len(self.cubes))]
            found.append(self.kind(**{name: v[generator.integers(len(v))] for name, v in cube.items()}))
        return list(dict.fromkeys(found))

    def _remains(self, point: Behaviour) -> bool:
        return any(holds(cube, point) for cube in self.cubes)


def _values(cubes: Iterable[Cube]) -> dict[str, tuple[Any, ...]]:
    found: dict[str, dict[Any, None]] = {}
    for cube in cubes:
        for name, values in cube.items():
            found.setdefault(name, {}).update(dict.fromkeys(values))
    return {name: tuple(values) for name, values in found.items()}


@cache
def program(symbol: str, point: Behaviour) -> str:
    """What the transcription of a formula carries out at a point: equal texts are one function."""
    transcription = FORMULAS[symbol].transcription
    return residual(transcription, {next(iter(inspect.signature(transcription).parameters)): point})


@cache
def _probes(symbol: str) -> tuple[_Probe, ...]:
    """The calls of a formula that are short enough, each with what its points give."""
    formula = FORMULAS[symbol]
    made = [a for (name, _), c in call_sets().items() if name == symbol for a in c.build()]
    return tuple(_probe(formula, a) for a in made if _elements(a) <= LARGEST)


def _probe(formula: Formula, arguments: Arguments) -> _Probe:
    known: dict[Any, Answer] = {}

    def evaluate(point: Behaviour) -> Any:
        answer = answer_of(partial(formula.transcription, point), arguments)
        key = _key(answer)
        known.setdefault(key, answer)
        return key

    kind: Any = type(formula.behaviour)
    return _Probe(arguments, Tree(kind, evaluate), known)


def _key(answer: Answer) -> Any:
    """The same for two answers that are judged to be the same; any NaN is any NaN."""
    if answer.kind != "returned":
        return answer.kind, answer.error[:1]
    return tuple((name, *_bits(value)) for name, value in leaves(answer.value))


def _bits(value: Any) -> tuple[Any, ...]:
    if not isinstance(value, np.ndarray | np.generic):
        return type(value).__name__, repr(value)
    a = np.asarray(value)
    if a.dtype.kind in "fcV":
        with np.errstate(all="ignore"):
            a = np.where(a != a, np.asarray(np.nan).astype(a.dtype), a)  # noqa: PLR0124 - NaN
    return a.dtype.name, a.shape, a.tobytes()


def _elements(value: Any) -> int:
    match value:
        case np.ndarray():
            return int(value.size)
        case Mapping():
            return sum(map(_elements, value.values()))
        case tuple() | list():
            return sum(map(_elements, value))
    return 0


def _told(search: _Search, family: Sequence[Formula], name: str) -> Fingerprint:
    own, words = search.own, search.kind.choices()
    values = _values(search.cubes)
    asked = [*search.seen, *search.against]
    agreeing = tuple(f.id for f in family if asked and all(_gives(f, s) for s in asked))
    nearest = _nearest(search, asked)
    decided = {n: v[0] for n, v in values.items() if len(v) == 1}
    proofs = _proofs(search)
    return Fingerprint(
        name=name,
        about=f"as {search.formula.id}",
        fields={n: decided.get(n, INDISTINGUISHABLE if n in proofs else UNDECIDED) for n in words},
        alternatives={n: v for n, v in values.items() if len(v) > 1},
        witnesses={n: _witnessed(search, n, *search.decided[n]) for n in decided if n in search.decided},
        proofs=proofs,
        profiles=agreeing,
        nearest=nearest,
        calls=search.asking.calls,
        refused=search.asking.notes(),
        words={n: words[n][v] for n, v in decided.items() if v != getattr(own, n)},
    )


def _proofs(search: _Search) -> dict[str, str]:
    """The choices that change nothing in the program that is carried out, whatever the input."""
    if not 1 < size(search.cubes) <= _ALL:
        return {}
    remaining = list(points(search.cubes, search.kind))
    proofs: dict[str, str] = {}
    for name, values in _values(search.cubes).items():
        apart = (
            p
            for p in remaining
            for v in values
            if (q := replace(p, **{name: v})) in remaining and q != p and search.program(q) != search.program(p)
        )
        alike = {frozenset((n, getattr(p, n)) for n in p.choices() if n != name) for p in remaining}
        if len(values) > 1 and len(alike) * len(values) == len(remaining) and next(apart, None) is None:
            proofs[name] = PROVED
    return proofs


def _gives(formula: Formula, seen: _Seen) -> bool:
    return not differences(answer_of(formula.function, seen.probe.arguments), seen.answer).differing


def _nearest(search: _Search, asked: Sequence[_Seen]) -> Nearest | None:
    """The point that gives most values: of those known and those that remain, and from there step by step."""
    if not asked:
        return None
    best = max([*search._some(0), *search.known], key=lambda p: _share(p, asked))  # noqa: SLF001 - of this module
    while search.against:
        near = max(best.neighbours(), key=lambda p: _share(p, asked))
        if _share(near, asked) <= _share(best, asked):
            break
        best = near
    named = next((f.id for f in FORMULAS.versions(search.formula.id) if f.behaviour == best), "")
    return Nearest(search.own.against(best) or "as the document says", _share(best, asked), named)


def _share(point: Behaviour, asked: Sequence[_Seen]) -> float:
    compared = [differences(s.probe.known[s.probe.tree.at(point)], s.answer) for s in asked]
    every = sum(c.points for c in compared)
    return 1 - sum(c.differing for c in compared) / every if every else 0.0


def _witnessed(search: _Search, name: str, seen: _Seen, other: Any) -> Witnessed:
    """What decided a choice; what another value gives, where the call shows it by itself."""
    given = ", ".join(f"{k}={_short(v)}" for k, v in seen.probe.arguments.items())
    point = next(iter(search._some(0)))  # noqa: SLF001 - of this module
    instead = seen.probe.known[seen.probe.tree.at(replace(point, **{name: other}))]
    if seen.agrees(_key(instead)):  # another choice decided with it
        return Witnessed(given, _said(seen.answer))
    return Witnessed(given, _said(seen.answer), _said(instead), str(other))


def _said(answer: Answer) -> str:
    return f"raises {answer.error[0]}" if answer.kind == "raised" else _short(answer.value)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        few = value.ravel()[:8].tolist()
        value = f"{value.dtype}[{', '.join(map(str, few))}{', ...' if value.size > len(few) else ''}]"
    elif isinstance(value, tuple | list):
        value = f"({', '.join(map(_short, value))})"
    said = value if isinstance(value, str) else repr(value)
    return said if len(said) <= _SHOWN else f"{said[:_SHOWN]} ..."
