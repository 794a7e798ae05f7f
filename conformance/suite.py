"""The public entry points: ``check`` for one function, ``conformance_suite`` for one's own test file."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from halfeven.conformance.backends.axes import along, extended, split
from halfeven.conformance.backends.documented import of_formula
from halfeven.conformance.backends.protocol import ArrayKind, adapt
from halfeven.conformance.bar import counted
from halfeven.conformance.claim import says_something, unused_waivers
from halfeven.conformance.configuration import grid_of
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.demonstrate import demonstrated
from halfeven.conformance.engine.exhaustive.parameters import shard_of
from halfeven.conformance.engine.item import UNDOCUMENTED, Item
from halfeven.conformance.engine.kept import Sample
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered, run
from halfeven.conformance.engine.tier import TIERS, Tier
from halfeven.conformance.environment import FLUSHED, subnormals_kept
from halfeven.conformance.report.groups import worst
from halfeven.conformance.report.model import CONFORMING, OutcomeName, Result, Witness
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.share import EACH, requirement_share, share, unmet
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid
from halfeven.reference.profile import Operation
from halfeven.reference.systems import PROFILES

__all__ = ["Verdict", "check", "conformance_suite", "failure"]


@dataclass(frozen=True)
class Verdict:
    """What ``check`` returns; prints as a short report.

    Attributes:
        backend: the name of what was checked.
        results: one per requirement, check and configuration.
        require: how much must have been checked for it to conform.
        lacks: the requirements that the backend declares not to offer.
        notes: what else is to be known, such as a flush-to-zero that was on.
    """

    backend: str
    results: tuple[Result, ...]
    require: str = EACH
    lacks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def conforms(self) -> bool:
        """Whether as much was checked as is required, some of it documented, and nothing differs from the profile."""
        ran = [r for r in self.results if r.outcome != "not run"]
        return self._is_enough and all(r.outcome in CONFORMING for r in ran)

    @property
    def share(self) -> float:
        """The checks that ran, of those planned: a check that the backend refuses is missing."""
        return share(self.results)

    @property
    def _is_enough(self) -> bool:
        return says_something(self.results) and not unmet(self.results, self.require, self.lacks)

    @property
    def outcome(self) -> OutcomeName:
        """In a word or two: crashed, differs, budgeted, as measured, exact, or not run.

        Single results may be ``explained``. It is ``exact`` only where documents, or any user, ask for all that was
        compared.

        It is not run too where too little was to say that the backend conforms.
        """
        found = worst(r.outcome for r in self.results)
        if found in CONFORMING and not self._is_enough:
            return "not run"
        return "differs" if found == "explained" else found

    @property
    def witness(self) -> Witness | None:
        """A witness of a difference, or None; the one that is printed, if that has one."""
        from halfeven.conformance.report.groups import Group  # noqa: PLC0415 - as below

        if not self.results:
            return None
        found = [Group((), self.results).shown, *self.results]
        return next((r.witness for r in found if r.witness is not None), None)

    @property
    def points(self) -> int:
        """The number of values compared."""
        return sum(r.points for r in self.results)

    def __bool__(self) -> bool:  # noqa: D105
        return self.conforms

    def __str__(self) -> str:  # noqa: D105
        from halfeven.conformance.report.terminal import short  # noqa: PLC0415 - printing needs the report, checking not

        return "\n".join([short(self.results, self.require, self.lacks), *(f"note: {n}" for n in self.notes)])


@subnormals_kept()
def check(
    fn: Any,
    profile: str | None = None,
    operation: Operation | None = None,
    tier: Tier = "quick",
    *,
    formula: str | None = None,
    array: ArrayKind | None = None,
    grids: Sequence[str | Grid] = (),
    seed: int = 0,
    require: str = EACH,
    first: bool = False,
    device: str = "",
    compiled: bool = False,
    strict: bool = False,
    shard: str = "",
) -> Verdict:
    """Check ``fn`` against ``profile``, in this process.

    ``fn(x, scale, zero_point, *, qmin, qmax)`` for quantize, which is the default, and fake_quantize,
    ``fn(q, scale, zero_point)`` for dequantize; with a ``block_size`` keyword it is checked beyond per tensor. A class
    or object with several operations, or a ``Backend``, is checked in all of them. With ``formula``, the id of a
    documented function, ``fn`` is called with that function's arguments by keyword, and held to the requirements that
    speak of it.

    It conforms where nothing differs and enough was checked: with ``require="each"`` each requirement at least once,
    with ``"all"`` every check, with ``"any"`` any of them, with a share such as ``"90%"`` that many of the checks.

    Arrays are torch tensors, or with ``array="numpy"`` NumPy's. ``grids``, such as ``("int8", "-7:7")`` or
    ``Grid(-7, 7)``, are those that it is made for, where that is not every one of the profile.

    With ``first`` it ends at the first check that differs. On a terminal a bar shows how far it is.

    With ``tier="exhaustive"`` all inputs are asked too, as docs/exhaustive.md says; ``shard`` is then the part of all
    scales, such as ``"1/1"`` for the whole.

    With ``device``, such as ``"cuda"``, it gets tensors that are there; with ``compiled`` it is called under
    ``torch.compile``.

    What a document leaves open is reported, and what a release was measured to do is ``as measured``; with ``strict``
    both are judged as what a document says is: they are ``exact``, or differ.

    Raises:
        TypeError: ``fn`` is no function, class or object with an operation, or does not take the formula's arguments.
        ValueError: an unknown profile, operation, formula, tier, shard or array kind; the message says what is
            accepted.
    """
    if tier not in TIERS:
        msg = f"tier={tier!r} is not accepted: give one of {', '.join(TIERS)}"
        raise ValueError(msg)
    if seed < 0:
        msg = f"seed={seed} is not accepted: give 0 or more"
        raise ValueError(msg)
    require = requirement_share(require)
    shard_of(shard or "1/1")
    if formula is None:
        backend = adapt(fn, profile=profile, operation=operation or "quantize", array=array)
    elif operation is not None:
        msg = f"operation={operation!r} is not accepted with formula={formula!r}: give one or the other"
        raise ValueError(msg)
    else:
        backend = of_formula(fn, formula, profile, array)
    if grids:
        backend = replace(backend, grids=tuple(g if isinstance(g, Grid) else grid_of(g) for g in grids))
    backend = along(backend, split(extended("", device, compiled=compiled))[1], tried=False)
    worker = Inside(backend)
    results: list[Result] = []
    samples: list[Sample] = []
    cut = False
    for item in counted(plan(worker.offer, tier, seed, shard, strict=strict), backend.name):
        found = answered(item, worker)
        results.append(found.result)
        samples += [found.sample] if found.sample is not None else []
        if cut := first and found.result.outcome not in {*CONFORMING, "not run"}:
            break
    results, _ = concluded(results, samples, {worker.offer.name: worker})
    results += [] if cut else unused_waivers(backend.name, backend.profile, backend.waivers, results)
    notes = (FLUSHED,) if worker.flushes else ()
    return Verdict(backend.name, tuple(demonstrated(results)), require, tuple(backend.lacks), notes)


def conformance_suite(
    source: Any,
    *,
    profile: str | None = None,
    tier: Tier = "quick",
    seed: int = 0,
    require: str = EACH,
    strict: bool = False,
) -> type:
    """A test class with one test per item, for one's own test file; its name must begin with Test.

    A check that the backend refuses is skipped, with the reason; with ``require="all"`` it fails. No test sees more
    than its own check, so a share is for ``check`` and for ``halfeven run`` to judge.

    Raises:
        TypeError, ValueError: as ``check``.
    """
    import pytest  # noqa: PLC0415 - only who writes a test file needs it

    whole = requirement_share(require) == "all"
    backend = adapt(source, profile=profile)
    worker = Inside(backend)
    items = plan(worker.offer, tier, seed, strict=strict)
    shown: set[str] = set()

    class Suite:
        """Every requirement of the profile, against one backend."""

        @pytest.mark.parametrize("item", items, ids=[item.id for item in items])
        def test_conformance(self, item: Item) -> None:
            result = run(item, worker)
            if result.outcome == "not run":
                if whole and item.check != UNDOCUMENTED and item.requirement.id not in backend.lacks:
                    pytest.fail(f"{result.name} was refused: {printable(result.detail)}", pytrace=False)
                pytest.skip(printable(result.detail))
            if result.outcome not in CONFORMING:
                again = result.cause in shown
                shown.add(result.cause)  # one script for each cause
                pytest.fail(failure(result if again else demonstrated([result])[0]), pytrace=False)

    Suite.__name__ = Suite.__qualname__ = f"Test{backend.name}"
    return Suite


def failure(result: Result) -> str:
    """The message of a failed item: what differs, the witness, and the script that shows it."""
    lines = [f"{result.backend} {result.outcome} from profile {result.profile}: {result.requirement}"]
    if result.outcome == "crashed":
        return printable("\n".join([f"{result.backend} crashed: {result.requirement}", result.detail]))
    if result.differing:
        from halfeven.conformance.report.groups import largest  # noqa: PLC0415 - printing needs the report
        from halfeven.conformance.report.words import count, steps  # noqa: PLC0415 - as above

        far = f", by up to {steps(largest([result]))}" if result.steps else ""
        lines.append(f"{result.differing:,} of {count(result.points, 'value')} differ{far}")
    lines += [result.cause] if result.cause else []  # of a run of many checks it is said at the end
    if (w := result.witness) is not None:
        zero = PROFILES[result.profile].parameters[1:]
        parameters = f", scale = {w.scale}" + (f", {zero[0]} = {w.zero}" if zero else "") if w.scale else ""
        lines += [
            f"x = {w.x}{parameters}" if w.scale else w.x,
            f"expected {w.expected}, got {w.actual}",
            f"x / scale = {w.quotient}; distance to the nearest tie {w.to_tie}" if w.quotient else w.where,
        ]
        lines += [w.nearer] if w.nearer else []
        lines += ["", w.script] if w.reproduced else []
    return printable("\n".join(lines))
