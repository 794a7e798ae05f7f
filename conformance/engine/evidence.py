"""The evidence of one item of the plan: what was asked of a worker, what came, and where that differs."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from halfeven.conformance.backends.offer import keywords
from halfeven.conformance.configuration import DTYPES, Array, Case
from halfeven.conformance.engine.call import CHANGED, PLAIN, Answer, Call, CallShape, arguments_of, breaches, sent
from halfeven.conformance.engine.compare import Gap, but_for, compare_codes, compare_reals
from halfeven.conformance.engine.fitting.elements import flat
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.judge import Difference, Sums, differences
from halfeven.conformance.engine.memory import POISONS, Strided
from halfeven.conformance.engine.setting import Setting, evaluation_of, speaks
from halfeven.conformance.engine.tier import TIERS, Volume
from halfeven.conformance.requirement import Arguments
from halfeven.conformance.workers import Worker
from halfeven.reference.systems import PROFILES

__all__ = ["Crash", "Ended", "Evidence", "Fault", "Finding", "Judged", "value_of"]

_BATCH = 256
_T = TypeVar("_T")


class Fault(Exception):  # noqa: N818 - it names what the backend did
    """The backend broke the contract of a call: wrong shape, wrong dtype, mutated input, stale output."""


class Crash(Exception):  # noqa: N818 - it carries the backend's own error
    """The backend raised; the message is the traceback."""


class Ended(Exception):  # noqa: N818 - it says how
    """The backend's process ended before it had answered, or was not asked any more; the message says how."""


@dataclass(frozen=True, eq=False)
class Judged:
    """A call that was compared with the reference.

    Attributes:
        case: of an operation, its configuration and arrays.
        call: of a documented function, or of an operation in another shape than the plain one.
    """

    expected: Answer
    actual: Answer
    case: Case | None = None
    call: Call | None = None

    @property
    def shape(self) -> CallShape:
        """How the call was made."""
        return PLAIN if self.call is None else self.call.shape

    @property
    def arguments(self) -> Arguments:
        """Those of a documented function, as NumPy's arrays."""
        return {} if self.call is None else arguments_of(self.call.named)


@dataclass(frozen=True, eq=False)
class Finding:
    """A call whose answer differs: from the reference, or (``own``) from another call of the same backend."""

    compared: Judged
    difference: Difference
    own: bool = False


@dataclass(eq=False)
class Evidence:
    """What one item came to.

    Attributes:
        compared: everything that was compared with the reference, for the search of a cause.
        made: how many calls were made.
        refused: why calls were not offered by the backend.
        raised: the errors of calls that raised, but for those that are findings.
        changed: what calls changed of the process that they ran in.
        findings: the calls that differ; after a search by Hypothesis the last one is the smallest.
        seen: what the backend did where the document is silent.
        sums: what was judged by a bound, because the order of a sum is open.
        folder: where a check that takes long keeps what it has; None where it keeps nothing.
        covered: of such a check, what was asked, in words.
        spoilt: the first calls whose answers are none that a call may give, or that changed the process.
        history: all calls, in order.
    """

    item: Item
    worker: Worker
    made: int = 0
    points: int = 0
    differing: int = 0
    steps: int = 0
    unit: str = ""
    compared: list[Judged] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    raised: dict[str, None] = field(default_factory=dict)
    changed: dict[str, None] = field(default_factory=dict)
    spoilt: list[tuple[Call, Answer]] = field(default_factory=list)
    history: list[Call] = field(default_factory=list)
    minimal_last: bool = False
    sums: Sums = field(default_factory=Sums)
    folder: Path | None = None
    covered: list[str] = field(default_factory=list)
    _known: dict[str, Any] = field(default_factory=dict, repr=False)

    def once(self, name: str, find: Callable[[], _T]) -> _T:
        """What ``find`` gives, found once all the evidence is there."""
        if name not in self._known:
            self._known[name] = find()
        found: _T = self._known[name]
        return found

    @property
    def erring(self) -> list[Finding]:
        """The calls that raise as the document does not."""
        return [f for f in self.findings if f.compared.actual.kind == "raised"]

    def admit(self) -> None:
        """Charge errors alone: all other answers follow another reading that the document admits."""
        self.findings = self.erring
        self.differing = sum(f.difference.differing for f in self.findings)
        self.steps = 0

    @cached_property
    def setting(self) -> Setting:
        """The configuration of an item of an operation, in the profile claimed.

        Raises:
            ValueError: the item is of a documented function.
        """
        if self.item.configuration is None:
            msg = f"item={self.item.id!r} is not accepted: it has no configuration"
            raise ValueError(msg)
        return Setting(PROFILES[self.item.offer.profile], self.item.configuration)

    @property
    def volume(self) -> Volume:
        """How much to try."""
        return TIERS[self.item.tier]

    def expect(self, cases: Iterable[Case], *, signs: bool = False) -> list[Array | None]:
        """The answers to calls of an operation, compared with the reference; with ``signs`` the signs of zeros too."""
        found = []
        for some in _batches(cases):
            for case, actual in zip(some, self.ask(some), strict=True):
                if actual is not None:
                    self.compare(case, evaluation_of(self.setting.profile, case), actual, signs=signs)
                found.append(actual)
        return found

    def ask(self, cases: Sequence[Case]) -> list[Array | None]:
        """The answers to calls of an operation; None where one is not offered.

        Raises:
            Crash, Fault, Ended: what came is no answer.
        """
        found = []
        for some in _batches(cases):
            calls = [self.call(c) for c in some]
            for case, call, answer in zip(some, calls, self.answers(calls), strict=True):
                if answer.kind == "unsupported":
                    self.refused.append(answer.message)
                found.append(None if answer.kind == "unsupported" else self._value(case, call, answer))
        return found

    def call(self, case: Case) -> Call:
        """The call of a case, in the generic convention of operations."""
        c = case.configuration
        arrays = (case.x, case.scale, case.zero)[: 1 + len(self.setting.profile.parameters)]
        name = f"{self.item.offer.profile}:{c.operation}"
        return Call(name, tuple(map(sent, arrays)), keywords(self.item.offer, c), PLAIN, self.item.requirement.text)

    def expect_calls(self, pairs: Iterable[tuple[Call, Answer]]) -> None:
        """Compare the answers to calls of any formula with those expected.

        A gradient mode in which every call raises is one that is not offered; of a function, a layout likewise.

        Raises:
            Crash, Fault, Ended: what came of a call of an operation is no answer.
        """
        raised: list[tuple[Call, Answer, Answer]] = []
        taken: set[tuple[str, str]] = set()
        crashes: list[Crash] = []
        for some in _batches(pairs, 64):
            for (call, expected), actual in zip(some, self.answers([c for c, _ in some]), strict=True):
                if actual.kind == "unsupported":
                    self.refused.append(actual.message)
                elif actual.kind == "raised" and self._holds_open_nans(call):
                    self.refused.append(f"NaN: raises {actual.error[0]}, and the document is silent on it")
                elif actual.kind == "raised" and expected.kind != "raised" and _levels(call):
                    raised.append((call, expected, actual))
                else:
                    taken |= {*_levels(call)}
                    self._judged_on(call, expected, actual, crashes)
        for call, expected, actual in raised:
            if left := [level for level in _levels(call) if level not in taken]:
                self.refused.append(f"{' '.join(left[0])}: raises {actual.error[0]} in every call")
            else:
                self._judged_on(call, expected, actual, crashes)
        self.raised |= dict.fromkeys(str(c).strip().splitlines()[-1] for c in crashes)
        if crashes and not self.findings:
            raise crashes[0]

    def compare(
        self,
        case: Case,
        expected: Array,
        actual: Array,
        *,
        own: bool = False,
        signs: bool = False,
        call: Call | None = None,
    ) -> None:
        """Count what differs between two arrays, codes or reals by the case's operation."""
        codes = case.configuration.operation == "quantize" and not (signs and expected.dtype == actual.dtype)
        expected = np.broadcast_to(expected, actual.shape)
        found = but_for(self.open_nans(case), compare_codes if codes else compare_reals, expected, actual)
        self.points += found.points
        self.unit = self.unit or found.unit
        asked = Judged(Answer("returned", expected), Answer("returned", actual), case, call)
        if not own:
            self.compared.append(asked)
        if found.differing:
            if not own and self._never_written(actual, found, call or self.call(case)):
                msg = f"stale output: {found.differing} of {actual.size} elements were never written"
                self.spoilt.append((call or self.call(case), Answer("returned", actual, faults=(msg,))))
                raise Fault(msg)
            self.differing += found.differing
            self._measure(case, expected, actual, found)
            difference = Difference(found.points, found.differing, found.steps, found.unit, "", "result", found)
            self.findings.append(Finding(asked, difference, own))

    def open_nans(self, case: Case) -> Array | None:
        """Where the input is NaN, of which the document is silent; None where there is none, or NaN is asked about.

        A trial is of numbers: NaN is open there, whatever the document says.
        """
        operation = case.configuration.operation
        aspect = self.item.requirement.aspect
        if operation == "dequantize" or aspect == "nan" or not (nans := np.isnan(case.x)).any():
            return None
        spoken = aspect != "trial" and speaks(self.setting.profile.name, operation, "nan")
        return None if spoken else np.asarray(nans)

    def answers(self, calls: Sequence[Call]) -> Sequence[Answer]:
        """What came of the calls; what they changed of the process is kept."""
        found = self.worker.answers(calls)
        self.made += len(calls)
        self.history += calls
        told = [(c, a) for c, a in zip(calls, found, strict=True) if any(f.startswith(CHANGED) for f in a.faults)]
        self.spoilt += told[:1] if not self.changed else []
        self.changed |= dict.fromkeys(f for answer in found for f in answer.faults if f.startswith(CHANGED))
        return found

    def _value(self, case: Case, call: Call, answer: Answer) -> Array:
        try:
            return value_of(case, answer)
        except (Crash, Fault, Ended):
            self.spoilt.append((call, answer))
            raise

    def _judged_on(self, call: Call, expected: Answer, actual: Answer, crashes: list[Crash]) -> None:
        """Judge, and go on where the call raised: what the others do is to be seen too."""
        try:
            self._judged(call, expected, actual)
        except Crash as crash:
            crashes.append(crash)

    def _judged(self, call: Call, expected: Answer, actual: Answer) -> None:
        if _of_operation(call):
            case = self._case_of(call)
            self.compare(case, expected.value, self._value(case, call, actual), call=call)
            return
        if actual.kind == "ended":
            self.spoilt.append((call, actual))
            raise Ended(actual.message)
        difference = differences(expected, actual)
        asked = Judged(expected, actual, None, call)
        self.compared.append(asked)
        self.points += difference.points
        self.sums += difference.sums
        if difference.differing:
            self.differing += difference.differing
            # In ulps where a real differs, else in code steps.
            if difference.unit == "ulp" != self.unit:
                self.steps, self.unit = 0, "ulp"
            self.unit = self.unit or difference.unit
            if difference.unit == self.unit:
                self.steps = max(self.steps, difference.steps)
            self.findings.append(Finding(asked, difference))

    def _holds_open_nans(self, call: Call) -> bool:
        return _of_operation(call) and self.open_nans(self._case_of(call)) is not None

    def _case_of(self, call: Call) -> Case:
        x, scale, *zero = (a.view() for a in call.positional)
        c = replace(self.setting.configuration, shape=x.shape, block_size=call.named.get("block_size"))
        return Case(c, x, scale, zero[0] if zero else np.zeros(scale.shape, np.int32))

    def _never_written(self, actual: Array, found: Gap, call: Call) -> bool:
        """Whether everything that differs is poison, and other poison when the call is repeated."""
        differing = np.ascontiguousarray(actual).ravel()[found.where].view(np.uint8)
        if not any((differing == poison).all() for poison in POISONS):
            return False
        [again] = self.worker.answers([replace(call, shape=replace(call.shape, repeats=2))])
        return any(fault.startswith("not deterministic") for fault in again.faults)

    def _measure(self, case: Case, expected: Array, actual: Array, found: Gap) -> None:
        """The largest difference so far; of reals on a grid in code steps, as soon as one is on another code."""
        steps, unit = found.steps, found.unit
        if case.configuration.operation == "fake_quantize":
            elements, w = flat(case), found.where
            scale = self.setting.profile.real_per_code(elements.scale[w], case.configuration.grid)
            with np.errstate(all="ignore"):
                codes = np.abs(expected.ravel()[w].astype(np.float64) - actual.ravel()[w]) / scale
            codes = codes[np.isfinite(codes)]
            if codes.size and codes.max() > 0.5:  # noqa: PLR2004 - half a code
                steps, unit = int(np.rint(codes.max())), "code steps"
        if unit != self.unit and unit == "code steps":
            self.steps = 0
        if unit in {self.unit, "code steps"}:
            self.steps, self.unit = max(self.steps, steps), unit


def _of_operation(call: Call) -> bool:
    return ":" in call.formula.partition("/")[0]


def _levels(call: Call) -> list[tuple[str, str]]:
    """The ways of calling that a backend need not offer, as far as this call is made so."""
    shape = call.shape
    moded = shape.mode != PLAIN.mode and (shape.mode != "requires_grad" or _differentiable(call))
    found = [("mode", shape.mode)] if moded else []
    return found + ([("layout", shape.layout)] if shape.layout != PLAIN.layout and not _of_operation(call) else [])


def _differentiable(call: Call) -> bool:
    """Whether an argument can require a gradient."""
    arrays = (a for a in (*call.positional, *call.named.values()) if isinstance(a, Strided))
    return any(a.memory.dtype.name.startswith(("float", "bfloat")) for a in arrays)


def value_of(case: Case, answer: Answer) -> Array:
    """The array that came of a call of an operation.

    Raises:
        Crash, Fault, Ended: what came is none, or not one that the operation can give.
    """
    if answer.kind == "ended":
        raise Ended(answer.message)
    if answer.kind == "raised":
        raise Crash(answer.traceback or ": ".join([answer.error[0], answer.message]))
    if spoilt := breaches(answer):
        raise Fault(spoilt[0])
    c, value = case.configuration, answer.value
    if not isinstance(value, np.ndarray | np.generic):
        msg = f"wrong result: {type(value).__name__} is not accepted: return a torch tensor or a NumPy array"
        raise Fault(msg)
    value = np.asarray(value)
    if value.shape != case.x.shape:
        msg = f"wrong shape: {value.shape} for an input of {case.x.shape}"
        raise Fault(msg)
    if c.operation != "quantize" and value.dtype != DTYPES[c.dtype]:
        msg = f"wrong dtype: {value.dtype} for the result of {c.operation} in {c.dtype}"
        raise Fault(msg)
    if value.dtype.kind not in "iuf" and value.dtype not in DTYPES.values():
        msg = f"wrong dtype: {value.dtype} for codes, which are integers or floats"
        raise Fault(msg)
    return value


def _batches(items: Iterable[_T], size: int = _BATCH) -> Iterator[list[_T]]:
    left = iter(items)
    while some := list(islice(left, size)):
        yield some
