"""Calls beyond the table: Hypothesis draws them, the same for the same seed, and shrinks the first that differs."""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

import hypothesis
import hypothesis.errors
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.strategies import SearchStrategy

from halfeven.conformance.engine.drawn import drawn, drawn_call
from halfeven.conformance.engine.evidence import Evidence, Fault
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.operation_calls import Asked, subject
from halfeven.conformance.systems import judged_sets

__all__ = ["beyond", "explore"]


class _Differs(Exception):  # noqa: N818 - tells Hypothesis that a call shows a difference
    pass


def beyond(e: Evidence, examples: int | None = None, seed: int | None = None) -> None:
    """Draw calls of the formula or operation that an item is about, in any call shape: by default as its tier says.

    Where something differs already, there is no need.
    """
    item, seed = e.item, e.item.seed if seed is None else seed
    if not (examples := e.volume.examples if examples is None else examples) or e.findings:
        return
    if item.configuration is None:
        formula, numpy = item.requirement.formula, item.offer.array == "numpy"
        reference = formula_of(formula, item.offer.profile).function
        strategy = drawn_call(formula, judged_sets(formula), negative=numpy, function=reference)
    else:
        c = item.configuration
        strategy = drawn(item.offer, subject(item.offer.profile, c.operation, c.dtype, c.grid, seed))
    explore(e, strategy, examples, seed)


def explore(e: Evidence, strategy: SearchStrategy[Asked], examples: int, seed: int) -> None:
    """Ask ``examples`` calls of ``strategy``; where one differs, smaller ones until the smallest that does is found.

    Raises:
        Crash, Fault, Ended: as ``Evidence.expect_calls``; or the same call differed once and not again.
    """
    first: tuple[int, int, int, str] | None = None

    def attempt(asked: Asked) -> None:
        nonlocal first
        before, refused = e.differing, len(e.refused)
        e.expect_calls([(asked.call, asked.expected)])
        if e.differing > before:
            # What follows is the same difference, shrunk: it counts once.
            first = first or (e.points, e.differing, e.steps, e.unit)
            raise _Differs
        if len(e.refused) > refused:
            hypothesis.reject()

    settings = hypothesis.settings(
        max_examples=examples,
        database=None,
        deadline=None,
        derandomize=False,
        phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
    )
    run = hypothesis.seed(seed)(settings(hypothesis.given(strategy)(attempt)))
    try:
        with _nothing_kept():
            run()
    except _Differs:
        e.minimal_last = True
        if first is not None:
            e.points, e.differing, e.steps, e.unit = first
    except hypothesis.errors.Unsatisfiable:
        pass  # nothing that was drawn is offered by the backend
    except hypothesis.errors.Flaky:
        msg = "not deterministic: the same call differed once and not again"
        raise Fault(msg) from None


@contextlib.contextmanager
def _nothing_kept() -> Iterator[None]:
    """Let Hypothesis keep nothing on disk, where it would make ``.hypothesis`` in the current folder.

    It caches what it reads of the modules around it, and goes on where it cannot. A temporary folder would stay behind
    when a backend ends the process. Afterwards its home is where it was, for one's own tests in this process.
    """
    home: Any = storage_directory(intent_to_write=False)
    set_hypothesis_home_dir(os.devnull)
    try:
        yield
    finally:
        set_hypothesis_home_dir(getattr(home, "path", home))  # the oldest releases that serve give the path itself
