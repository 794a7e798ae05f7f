"""Two backends, the same calls: where their answers differ, the first input that shows it, and the cause."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from math import prod

import numpy as np

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.bar import counted
from halfeven.conformance.engine.call import PLAIN, Answer, Call, CallShape, arguments_of, leaves
from halfeven.conformance.engine.compare import compare_codes, compare_reals
from halfeven.conformance.engine.explain import Part as Cause
from halfeven.conformance.engine.explain import explain
from halfeven.conformance.engine.fitting.elements import Observed, flat
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.judge import Difference, differences
from halfeven.conformance.engine.memory import Strided
from halfeven.conformance.engine.pair_calls import Both, Part, calls_of, case_of, parts
from halfeven.conformance.engine.points import nearest_point
from halfeven.conformance.engine.region import of_shapes
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.engine.witness import hexadecimal
from halfeven.conformance.report.pair import Compared, Comparison, Shown, Side
from halfeven.conformance.workers import Worker
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES

__all__ = ["compare"]

_BATCH = 32
_KEPT = 1 << 22  # elements of the calls from which a cause is found
_LARGEST = 1 << 16  # of one of them
_FAILING = 64  # calls that differ, of which the smallest is shown
_WORDS = 160


def compare(
    a: Worker,
    b: Worker,
    tier: Tier = "quick",
    seed: int = 0,
    formulas: Sequence[str] = (),
    pythons: tuple[str, str] = ("", ""),
) -> Comparison:
    """Ask both the same, and compare what comes.

    Args:
        a: one of the two.
        b: the other.
        tier: how much is asked.
        seed: of what is drawn.
        formulas: ids of documented functions, for these alone; by default the operations too.
        pythons: the interpreters, which are named where both are of one release.
    """
    names = _names(a.offer, b.offer, pythons)
    shared, left = parts(replace(a.offer, name=names[0]), replace(b.offer, name=names[1]), tier, formulas)
    found: list[Compared] = []
    ended = ""
    for part in counted(shared, f"{names[0]} and {names[1]}", lines=True):
        asking = _Asking(part, a, b, names, tier, seed)
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a warning is no answer, even where pytest makes errors of them
            found.append(asking.compared())
        if ended := asking.ended:
            break
    named = ("", "") if a.offer.version != b.offer.version else pythons  # where the release does not tell them apart
    one, other = (_side(w, n, p) for w, n, p in zip((a, b), names, named, strict=True))
    return Comparison(one, other, tier, seed, tuple(found), tuple(left), ended)


def _names(a: Offer, b: Offer, pythons: tuple[str, str]) -> tuple[str, str]:
    """What the two are called: by their versions, or first and second, where their names are the same."""
    if a.name != b.name:
        return a.name, b.name
    if a.version != b.version:
        return f"{a.name} {a.version}", f"{b.name} {b.version}"
    if pythons[0] != pythons[1]:
        return f"{a.name} of {pythons[0] or 'this Python'}", f"{b.name} of {pythons[1] or 'this Python'}"
    return f"{a.name} (first)", f"{b.name} (second)"


def _side(worker: Worker, name: str, python: str) -> Side:
    o = worker.offer
    return Side(name, o.profile, o.library, o.version, o.device, worker.path(), python)


@dataclass(frozen=True, eq=False)
class _Pair:
    """A call, and what came of it."""

    asked: Both
    a: Answer
    b: Answer
    difference: Difference


class _Asking:
    """One part being compared."""

    def __init__(self, part: Part, a: Worker, b: Worker, names: tuple[str, str], tier: Tier, seed: int) -> None:
        self._part, self._a, self._b, self._names = part, a, b, names
        self._tier: Tier = tier
        self._seed = seed
        self.ended = ""
        self._left: dict[str, int] = {}
        self._kept: list[_Pair] = []
        self._failing: list[_Pair] = []
        self._shapes: tuple[list[CallShape], list[CallShape]] = ([], [])
        self._elements = self._calls = self._values = self._differing = self._steps = 0
        self._unit = ""

    def compared(self) -> Compared:
        """Ask everything; what it came to."""
        every = calls_of(self._part, self._a.offer, self._b.offer, self._tier, self._seed)
        late: list[tuple[Both, Answer, Answer]] = []
        taken: tuple[set[str], set[str]] = set(), set()
        for some in _batches(every):
            answers = [
                w.answers([getattr(both, side) for both in some]) for w, side in ((self._a, "a"), (self._b, "b"))
            ]
            for both, a, b in zip(some, *answers, strict=True):
                if self._is_left(a, b):
                    if self.ended:
                        return self._result()
                    continue
                for answer, modes in zip((a, b), taken, strict=True):
                    if answer.kind == "returned":
                        modes.add(both.a.shape.mode)
                if (a.kind == "raised") != (b.kind == "raised") and both.a.shape.mode != PLAIN.mode:
                    late.append((both, a, b))
                else:
                    self._take(both, a, b)
        for both, a, b in late:
            mode = both.a.shape.mode
            refusing = next((n for n, m in zip(self._names, taken, strict=True) if mode not in m), "")
            if refusing:  # a way of calling that raises every time is one that is not offered
                self._leave(f"{refusing} raises in every call in mode {mode}")
            else:
                self._take(both, a, b)
        return self._result()

    def _is_left(self, a: Answer, b: Answer) -> bool:
        """Whether a call is not to be compared; the reason is noted."""
        ends = [(n, x.message) for n, x in zip(self._names, (a, b), strict=True) if x.kind == "ended"]
        lost = [f"{n}: {said}" for n, said in ends if said.startswith(("not asked", "timed out"))]
        if lost:
            self.ended = lost[0]
            return True
        if len(ends) == 2:  # noqa: PLR2004 - both
            self._leave(f"end both: {a.message}" if a.message == b.message else f"end both: {a.message}, {b.message}")
            return True
        refusing = [(n, x) for n, x in zip(self._names, (a, b), strict=True) if x.kind == "unsupported"]
        if refusing:
            said = {" ".join(x.message.split())[:_WORDS] for _, x in refusing}
            self._leave(f"not offered by {' and '.join(n for n, _ in refusing)}: {', '.join(sorted(said))}")
        return bool(refusing)

    def _leave(self, why: str) -> None:
        self._left[why] = self._left.get(why, 0) + 1

    def _take(self, both: Both, a: Answer, b: Answer) -> None:
        found = self._difference(a, b)
        self._calls += 1
        self._values += found.points
        pair = _Pair(both, a, b, found)
        self._shapes[not found.differing].append(both.a.shape)
        size = sum(prod(v.shape) for v in (*both.a.positional, *both.a.named.values()) if isinstance(v, Strided))
        if found.differing:
            self._differing += found.differing
            self._steps, self._unit = max(self._steps, found.steps), self._unit or found.unit
            self._failing.append(pair)
            if len(self._failing) > _FAILING:
                self._failing.remove(max(self._failing, key=lambda p: p.difference.points))
        if size <= _LARGEST and self._elements + size <= _KEPT:
            self._elements += size
            self._kept.append(pair)

    def _difference(self, a: Answer, b: Answer) -> Difference:
        one, other = self._names
        for name, answer in ((one, a), (other, b)):
            if answer.kind == "ended":  # the other one has answered
                return Difference(1, 1, words=f"the process of {name} ends: {answer.message}")
        if set(a.faults) != set(b.faults):
            guilty, fault = (other, b.faults) if set(b.faults) - set(a.faults) else (one, a.faults)
            return Difference(1, 1, words=f"{guilty}: {fault[0]}")
        if a.kind == b.kind == "raised":
            same = a.error[0] in b.error or b.error[0] in a.error
            return Difference(1) if same else Difference(1, 1, words=f"{other} raises {b.error[0]}, {one} {a.error[0]}")
        if self._part.operation is not None and a.kind == b.kind == "returned":
            x, y = a.value, b.value
            if isinstance(x, np.ndarray) and isinstance(y, np.ndarray) and x.shape == y.shape:
                if self._part.operation == "quantize" and x.dtype != y.dtype:
                    found = compare_codes(x, y)
                    return Difference(found.points, found.differing, found.steps, found.unit, "", "result", found)
                if x.dtype == y.dtype:
                    found = (compare_codes if self._part.operation == "quantize" else compare_reals)(x, y)
                    return Difference(found.points, found.differing, found.steps, found.unit, "", "result", found)
        found_ = differences(replace(a, faults=()), replace(b, faults=()))
        said = found_.words.replace("where the document", f"where {one}")
        return replace(
            found_, words=f"{other} {said}" if said.startswith(("raises", "returns")) else f"of {other}, {said}"
        )

    def _result(self) -> Compared:
        counts = (self._calls, self._values, self._differing, self._steps, self._unit)
        if not self._failing:
            return Compared(str(self._part), *counts, left=self._left)
        smallest = min(self._failing, key=lambda p: p.difference.points)
        return Compared(str(self._part), *counts, self._cause(smallest), self._shown(smallest), self._left)

    def _cause(self, smallest: _Pair) -> str:
        if self._part.operation is None:
            words = self._by_behaviour()
        else:  # a fault or an error is no arithmetic
            words = self._by_model() if all(p.difference.comparison for p in self._failing) else ""
        where = self._region()
        if words:
            return words
        first = smallest.difference.words
        return (
            "; ".join(w for w in (where, self._alone(), first) if w) or "no known arithmetic gives the answers of both"
        )

    def _by_behaviour(self) -> str:
        """Of a documented function the nearest behaviour of each, and the choices in which these differ."""
        formula = formula_of(self._part.formula, self._a.offer.profile)
        arguments = [arguments_of(p.asked.a.named) for p in self._kept]
        points = [
            nearest_point(formula, list(zip(arguments, (getattr(p, side) for p in self._kept), strict=True)))
            for side in ("a", "b")
        ]
        one, other = points
        if one is not None and other is not None:
            return one.against(other) and f"{self._names[1]} {one.against(other)}".replace(
                "where the document", f"where {self._names[0]}"
            )
        for name, point in zip(self._names, points, strict=True):
            if point is not None and formula.behaviour is not None:
                does = formula.behaviour.against(point) or f"computes as {formula.id}"
                unknown = next(n for n in self._names if n != name)
                return f"{name} {does}; nothing known gives the answers of {unknown}"
        return ""

    def _by_model(self) -> str:
        """Of an operation the model of one of them, and what the other does where it differs from that."""
        one, other = self._names
        for first, second, (name, against) in (("a", "b", (other, one)), ("b", "a", (one, other))):
            model = self._model(first)
            if model is None:
                continue
            found = self._explained(second, model)
            if found is not None and found.words:
                return f"{name} {found.words}".replace("where the document", f"where {against}")
        known = [(n, m) for n, m in zip(self._names, map(self._model, ("a", "b")), strict=True) if m is not None]
        if known:
            name, _ = known[0]
            unknown = next(n for n in self._names if n != name)
            offer = self._a.offer if name == one else self._b.offer
            first_words = f"{name} computes as {offer.profile}" if known[0][1] == self._profile.model else ""
            where = self._region()
            said = f"no known arithmetic gives the answers of {unknown}"
            return "; ".join(w for w in (first_words, where, self._alone(), said) if w)
        return ""

    def _region(self) -> str:
        """The calls in which the two differ, where their shapes tell it."""
        region = of_shapes(*self._shapes)
        return f"differs only with {region.words}" if region is not None else ""

    def _alone(self) -> str:
        """The one zero point or the one value at which an operation differs."""
        if self._part.operation is None or self._differing > sum(p.difference.differing for p in self._failing):
            return ""
        zeros, values = set(), set()
        for pair in self._failing:
            if pair.difference.comparison is None:
                return ""
            where = pair.difference.comparison.where
            zeros |= {*np.ravel(flat(case_of(self._part, pair.asked.a)).zero)[where].tolist()}
            values |= {*np.ravel(pair.a.value)[where].tolist()}
        said = [f"zero point {min(zeros)}"] if len(zeros) == 1 and len(self._failing) > 1 else []
        said += [f"where {self._names[0]} gives {min(values)}"] if len(values) == 1 and self._differing > 1 else []
        return f"differs only with {', '.join(said)}" if said else ""

    @property
    def _profile(self) -> Profile:
        return PROFILES[self._a.offer.profile]

    def _model(self, side: str) -> EvaluationModel | None:
        """The model that gives all the answers of one: its profile's, or one that is known by name."""
        answers = self._answered(side)
        if not answers:
            return None
        own = self._profile.model
        found = self._explained(side, own)
        return found.model if found is not None and found.profile else None

    def _explained(self, side: str, model: EvaluationModel) -> Cause | None:
        """The one model that gives all the answers of one, against ``model``."""
        answers = self._answered(side)
        found = explain(replace(self._profile, model=model), answers) if answers else None
        return found.parts[0] if found is not None and len(found.parts) == 1 else None

    def _answered(self, side: str) -> list[Observed]:
        return [self._one(p, side) for p in self._kept if getattr(p, side).kind == "returned"]

    def _one(self, pair: _Pair, side: str) -> Observed:
        return Observed(case_of(self._part, pair.asked.a), np.asarray(getattr(pair, side).value))

    def _shown(self, pair: _Pair) -> Shown:
        call, found = pair.asked.a, pair.difference.comparison
        where = f"{call.reason}; {call.shape}" if call.shape != PLAIN else call.reason
        if self._part.operation is None or found is None:
            one, other, document = (_said(x, pair.difference.leaf) for x in (pair.a, pair.b, pair.asked.expected))
            return Shown(_listed(call), "", "", one, other, document, f"{where}: {pair.difference.words}")
        elements = flat(case_of(self._part, call))
        with np.errstate(all="ignore"):
            index = int(
                min(found.where[:4096], key=lambda i: _simplicity(elements.x[i], elements.scale[i], elements.zero[i]))
            )
        given = [hexadecimal(v[index]) for v in (elements.x, elements.scale, elements.zero)]
        values = [np.ravel(x.value)[index] for x in (pair.a, pair.b)]
        expected, shape = pair.asked.expected, call.positional[0].shape
        one, other = (hexadecimal(v) for v in values)
        theirs = "" if expected is None else hexadecimal(np.ravel(np.broadcast_to(expected.value, shape))[index])
        place = [int(i) for i in np.unravel_index(index, shape)]
        x, scale, zero = given
        return Shown(x, scale, zero, one, other, theirs, f"element {place} of shape {shape}; {where}")


def _simplicity(x: object, scale: object, zero: object) -> tuple[float, int]:
    """Points with a small quotient and a small zero point are the easiest to follow."""
    number, by = float(x), float(scale)  # type: ignore[arg-type]
    ratio = abs(number / by) if by else abs(number)
    return (ratio if np.isfinite(ratio) else np.inf) + abs(float(zero)), len(repr(number))  # type: ignore[arg-type]


def _listed(call: Call) -> str:
    """The arguments of a documented function."""
    given = arguments_of(call.named)
    return ", ".join(f"{name}={_short(value)}" for name, value in given.items())


def _said(answer: Answer | None, leaf: str) -> str:
    if answer is None:
        return ""
    if answer.kind != "returned":
        return answer.error[0] if answer.error else answer.message
    values = dict(leaves(answer.value))
    return _short(values.get(leaf, answer.value))


def _short(value: object) -> str:
    text = (
        f"{value.tolist()} {value.dtype}" if isinstance(value, np.ndarray) and value.dtype.kind != "V" else repr(value)
    )
    return text if len(text) <= _WORDS else f"{text[:_WORDS]} ..."


def _batches(every: Iterator[Both]) -> Iterator[list[Both]]:
    while some := list(islice(every, _BATCH)):
        yield some
