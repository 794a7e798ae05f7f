"""One call asked of a worker and judged: what was expected, what came, and how they differ."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from halfeven.conformance.configuration import Case
from halfeven.conformance.engine.call import CHANGED, Answer, Call, arguments_of, leaves
from halfeven.conformance.engine.clear import OPEN, Clarity, clearest
from halfeven.conformance.engine.compare import but_for, compare_codes, compare_reals
from halfeven.conformance.engine.evidence import Crash, Ended, Evidence, Fault, value_of
from halfeven.conformance.engine.exhaustive.patterns import Patterns
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.judge import Difference, answer_of, differences
from halfeven.conformance.engine.setting import evaluation_of
from halfeven.conformance.workers import Worker
from halfeven.reference.blocks import Array

__all__ = ["Trial", "Tries", "alike", "aside", "case_of", "operation_of", "pair", "pointed", "trial_of"]

_CALLS, _SECONDS = 200, 15.0
_REFUSED = 20  # calls that a refusal counts for: who is asked may have no other answers than those it gave
_ALWAYS = 40  # calls, however long they take: what is said shall not depend on the machine
_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class Trial:
    """A call that differs.

    Attributes:
        at: of the leaf that differs the element shown (a flat index).
        before: calls made before it, without which it does not differ.
        clear: what exact numbers say of the element shown.
    """

    call: Call
    expected: Answer
    actual: Answer
    difference: Difference
    at: int = 0
    before: tuple[Call, ...] = ()
    clear: Clarity = OPEN


def operation_of(call: Call) -> str:
    """The operation of a profile that a call is of; empty for a documented function."""
    head, colon, operation = call.formula.rpartition(":")
    return operation if colon and "/" not in head else ""


def case_of(e: Evidence, call: Call) -> Case:
    """The call of an operation as a case."""
    x, scale, *zero = (a.view() for a in call.positional)
    c = replace(
        e.setting.configuration,
        operation=operation_of(call),  # type: ignore[arg-type]
        shape=x.shape,
        block_size=call.named.get("block_size"),
    )
    return Case(c, x, scale, zero[0] if zero else np.zeros(scale.shape, np.int32))


def trial_of(e: Evidence, call: Call, actual: Answer, before: tuple[Call, ...] = ()) -> Trial | None:
    """The call and its answer, where that differs from the document's."""
    if actual.kind == "unsupported" or any(isinstance(a, Patterns) for a in call.positional):
        return None  # patterns of a sweep are no arrays that a script could show
    if not operation_of(call):
        claimed = formula_of(call.formula, e.item.offer.profile)
        expected = answer_of(claimed.function, arguments_of(call.named))
        difference = _changed(actual) or differences(expected, actual)
    else:
        case = case_of(e, call)
        with np.errstate(all="ignore"):
            expected = Answer("returned", np.asarray(evaluation_of(e.setting.profile, case)))
        difference = _changed(actual) or _of_operation(e, case, expected.value, actual)
    if not difference.differing:
        return None
    at = 0 if difference.comparison is None else int(difference.comparison.where[0])
    return pointed(e, Trial(call, expected, actual, difference, at, before))


def pointed(e: Evidence, t: Trial) -> Trial:
    """The same with the element of an operation's result that argues best for the document."""
    if not operation_of(t.call) or t.difference.comparison is None:
        return t
    case, where = case_of(e, t.call), t.difference.comparison.where
    expected, actual = t.expected.value, np.ascontiguousarray(t.actual.value)
    at, clear = clearest(e.setting.profile, case, where, expected, actual)
    return replace(t, at=at, clear=clear)


def _changed(actual: Answer) -> Difference | None:
    words = next((f for f in actual.faults if f.startswith(CHANGED)), None)
    return None if words is None else Difference(1, 1, words=words)


def _of_operation(e: Evidence, case: Case, expected: Array, actual: Answer) -> Difference:
    try:
        value = value_of(case, actual)
    except (Crash, Fault, Ended) as end:
        said = str(end).strip().splitlines()
        return Difference(1, 1, words=said[-1] if said else type(end).__name__)
    codes = case.configuration.operation == "quantize"
    signs = codes and e.item.check == "zero-sign" and expected.dtype == value.dtype
    compare = compare_codes if codes and not signs else compare_reals
    found = but_for(e.open_nans(case), compare, np.broadcast_to(expected, value.shape), value)
    if codes and not found.differing and not e.setting.holds(value.dtype):
        return Difference(1, 1, words=f"wrong dtype: {value.dtype} for codes", leaf="result")
    return Difference(found.points, found.differing, found.steps, found.unit, "", "result", found)


def pair(t: Trial) -> tuple[Any, Any] | None:
    """What was expected and what came at the element shown; None where no element is compared."""
    if t.difference.comparison is None:
        return None
    wanted, got = (np.asarray(dict(leaves(a.value))[t.difference.leaf]) for a in (t.expected, t.actual))
    if wanted.shape != got.shape:
        wanted = np.broadcast_to(wanted, got.shape)
    return wanted.ravel()[t.at], np.ascontiguousarray(got).ravel()[t.at]


def alike(one: Trial, other: Trial) -> bool:
    """Whether ``one`` shows the kind of difference that ``other`` does, and argues as well for the document."""
    return one.clear.rank <= other.clear.rank and _kind(one) == _kind(other)


def _kind(t: Trial) -> tuple[Any, ...]:
    found = pair(t)
    if found is None:
        words = "".join(c for c in t.difference.words.partition(": ")[0] if not c.isdigit())
        return t.actual.kind, t.actual.error[:1], t.expected.kind, t.difference.leaf, words
    far = t.difference.steps > 1 and t.difference.unit == "code steps"
    return t.difference.leaf, far, *(_class(v) for v in found)


def _class(value: Any) -> str:
    number = float(value)
    return "nan" if np.isnan(number) else "inf" if np.isinf(number) else "zero" if number == 0 else "number"


def aside(worker: Worker, make: Callable[[], _T]) -> _T:
    """What ``make`` gives; no device is asked another time for it: what a worker has no answer to stays as it was."""
    missing = getattr(worker, "missing", None)
    before = dict(missing or {})
    try:
        return make()
    finally:
        if missing is not None:
            missing.clear()
            missing.update(before)


Judge = Callable[[Evidence, Call, Answer, tuple[Call, ...]], Trial | None]


class Tries:
    """Asks a worker for trials, within bounds of calls and of time."""

    def __init__(self, e: Evidence, judge: Judge = trial_of, calls: int = _CALLS, seconds: float = _SECONDS) -> None:
        """``calls`` and ``seconds`` are all that it may ask and take; ``judge`` says what came of a call."""
        self.evidence, self._judge, self._left, self._end = e, judge, calls, time.monotonic() + seconds
        self._always = _ALWAYS

    @property
    def spent(self) -> bool:
        """Whether nothing more is asked."""
        return self._left <= 0 or (self._always <= 0 and time.monotonic() > self._end)

    def __call__(self, call: Call, before: tuple[Call, ...] = ()) -> Trial | None:
        """What comes of the call after those before, where it differs."""
        if self.spent:
            return None
        self._left -= 1 + len(before)
        self._always -= 1
        *_, actual = self.evidence.worker.answers([*before, call])
        self._left -= _REFUSED if actual.kind == "unsupported" else 0
        return self._judge(self.evidence, call, actual, before)
