"""A trial: one check of one backend in one configuration, and the evidence that it gathers."""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import hypothesis
import hypothesis.errors
import numpy as np
from hypothesis.configuration import set_hypothesis_home_dir, storage_directory
from hypothesis.strategies import SearchStrategy

from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.call import Caller, Fault
from halfeven.conformance.compare import Comparison, compare_codes, compare_reals
from halfeven.conformance.configuration import DTYPES, Case, Configuration, code_dtype
from halfeven.conformance.explain import Answer, evaluation_of, flat
from halfeven.conformance.inputs.strategies import blocks_of
from halfeven.conformance.requirement import Requirement
from halfeven.reference.blocks import Array, parameter_shape
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES

Tier = Literal["quick", "standard"]

__all__ = ["TIERS", "Finding", "Tier", "Trial", "Volume"]


@dataclass(frozen=True)
class Volume:
    """How much a tier tries: scales per parameter list, and configurations that Hypothesis draws."""

    scales: int
    examples: int


TIERS: dict[Tier, Volume] = {"quick": Volume(24, 25), "standard": Volume(256, 250)}


@dataclass(frozen=True, eq=False)
class Finding:
    """A call whose answer differs: from the reference, or (``own``) from another call of the same backend."""

    case: Case
    expected: Array
    actual: Array
    comparison: Comparison
    own: bool = False


class _Differs(Exception):  # noqa: N818 - tells Hypothesis that a configuration shows a difference
    pass


@dataclass(eq=False)
class Trial:
    """The evidence of one check.

    Attributes:
        answers: everything that was compared with the reference, for the search over models.
        refused: why calls were not offered by the backend.
        findings: the calls that differ; after a search by Hypothesis the last one is the smallest.
        seen: what the backend did where the document is silent.
    """

    backend: Backend
    requirement: Requirement
    check: str
    configuration: Configuration
    tier: Tier
    seed: int
    points: int = 0
    differing: int = 0
    steps: int = 0
    unit: str = ""
    answers: list[Answer] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    minimal_last: bool = False

    def __post_init__(self) -> None:  # noqa: D105
        self.caller = Caller(self.backend)

    @property
    def profile(self) -> Profile:
        """The profile that the backend claims."""
        return PROFILES[self.backend.profile]

    @property
    def dtype(self) -> np.dtype[Any]:
        """The float dtype of the configuration."""
        return DTYPES[self.configuration.dtype]

    @property
    def code_dtype(self) -> np.dtype[Any]:
        """The dtype in which the profile holds codes: the input's own, or the smallest integer type."""
        return self.dtype if self.profile.codes == "input" else code_dtype(self.configuration.grid)

    @property
    def zeros(self) -> list[int]:
        """An even and an odd zero point of the grid; 0 alone where the profile has none."""
        if len(self.profile.parameters) == 1:
            return [0]
        grid = self.configuration.grid
        found = [z for z in (0, 3) if z in grid] or [grid.qmin, grid.qmax]
        return sorted(set(found))

    @property
    def scale_dtype(self) -> np.dtype[Any]:
        """The dtype in which the profile hands over scales."""
        input_ = self.profile.scale_dtype == "input" or self.configuration.dtype == "float64"
        return self.dtype if input_ else DTYPES["float32"]

    @property
    def volume(self) -> Volume:
        """How much to try."""
        return TIERS[self.tier]

    def case(self, x: Array, scale: Any, zero: Any, **changes: Any) -> Case:
        """A case from ``scale`` (real per code) and ``zero`` (x̂ = (q - z) * s), turned into documented parameters."""
        x = np.asarray(x)
        c = replace(self.configuration, shape=x.shape, **changes)
        parameters = self.profile.parameters
        s, z = np.asarray(scale, self.scale_dtype), np.asarray(zero)
        if parameters[0] == "amax":
            s = (s * np.asarray(c.grid.qmax, s.dtype)).astype(s.dtype)
            x = np.abs(x) if c.grid.qmin >= 0 else x
        if parameters[1:] == ("offset",):
            z = (-z).astype(DTYPES["float64" if c.dtype == "float64" else "float32"]) + 0
        else:
            z = z.astype(np.int32) if len(parameters) > 1 else np.zeros_like(z, np.int32)
        return Case(c, x, np.asarray(s), np.asarray(z))

    def plain(self, values: Array) -> Case:
        """Codes for dequantize, or inputs, with scale 1 and zero point 0 in the plainest blocks of the granularity."""
        c = self.configuration
        x = values.astype(self.code_dtype if c.operation == "dequantize" else self.dtype)
        blocks = blocks_of(c.granularity, x.shape)
        shape = () if blocks is None else parameter_shape(x.shape, blocks)
        return self.case(x, np.ones(shape), np.zeros(shape, np.int64), block_size=blocks)

    @contextlib.contextmanager
    def offered(self) -> Iterator[None]:
        """Go on where the backend does not offer one call: what it does offer is tried, and what differed stays."""
        try:
            yield
        except Unsupported as reason:
            self.refused.append(str(reason))

    def ask(self, case: Case) -> Array:
        """The backend's answer."""
        return self.caller(case)

    def expect(self, case: Case, *, signs: bool = False) -> Array:
        """The backend's answer, compared with the reference; with ``signs`` the signs of zero codes too."""
        actual = self.ask(case)
        self.answers.append(Answer(case, actual))
        return self.compare(case, evaluation_of(self.profile, case), actual, signs=signs)

    def compare(self, case: Case, expected: Array, actual: Array, *, own: bool = False, signs: bool = False) -> Array:
        """Count what differs between two arrays, codes or reals by the case's operation."""
        codes = case.configuration.operation == "quantize" and not (signs and expected.dtype == actual.dtype)
        comparison = (compare_codes if codes else compare_reals)(np.broadcast_to(expected, actual.shape), actual)
        self.points += comparison.points
        self.unit = self.unit or comparison.unit
        if comparison.differing:
            if not own and self._never_written(case, actual, comparison):
                msg = f"stale output: {comparison.differing} of {actual.size} elements were never written"
                raise Fault(msg)
            self.differing += comparison.differing
            self._measure(case, np.broadcast_to(expected, actual.shape), actual, comparison)
            self.findings.append(Finding(case, np.array(expected), np.array(actual), comparison, own))
        return actual

    def _never_written(self, case: Case, actual: Array, comparison: Comparison) -> bool:
        """Whether everything that differs is the poison of its call, and follows it when the poison changes."""
        w, poison = comparison.where, self.caller.poison
        if not _is(poison, np.ascontiguousarray(actual).ravel()[w]):
            return False
        again = self.caller(case)
        return self.caller.poison != poison and _is(self.caller.poison, np.ascontiguousarray(again).ravel()[w])

    def _measure(self, case: Case, expected: Array, actual: Array, comparison: Comparison) -> None:
        """The largest difference so far; of reals on a grid in code steps, as soon as one is on another code."""
        steps, unit = comparison.steps, comparison.unit
        if case.configuration.operation == "fake_quantize":
            elements, w = flat(case), comparison.where
            scale = self.profile.real_per_code(elements.scale[w], case.configuration.grid)
            with np.errstate(all="ignore"):
                codes = np.abs(expected.ravel()[w].astype(np.float64) - actual.ravel()[w]) / scale
            codes = codes[np.isfinite(codes)]
            if codes.size and codes.max() > 0.5:  # noqa: PLR2004 - half a code
                steps, unit = int(np.rint(codes.max())), "code steps"
        if unit != self.unit and unit == "code steps":
            self.steps = 0
        if unit in {self.unit, "code steps"}:
            self.steps, self.unit = max(self.steps, steps), unit

    def explore(self, strategy: SearchStrategy[Any], body: Callable[[Any], None]) -> None:
        """Run ``body`` on configurations that Hypothesis draws, and shrink the first that differs."""
        first: tuple[int, int, int, str] | None = None

        def attempt(drawn: Any) -> None:
            nonlocal first
            before = self.differing
            try:
                body(drawn)
            except Unsupported as reason:
                self.refused.append(str(reason))
                hypothesis.reject()
            if self.differing > before:
                # What follows is the same difference, shrunk: it counts once.
                first = first or (self.points, self.differing, self.steps, self.unit)
                raise _Differs

        settings = hypothesis.settings(
            max_examples=self.volume.examples,
            database=None,
            deadline=None,
            derandomize=False,
            phases=(hypothesis.Phase.generate, hypothesis.Phase.shrink),
            suppress_health_check=list(hypothesis.HealthCheck),
            report_multiple_bugs=False,
            verbosity=hypothesis.Verbosity.quiet,
        )
        run = hypothesis.seed(self.seed)(settings(hypothesis.given(strategy)(attempt)))
        try:
            with _nothing_kept():
                run()
        except _Differs:
            self.minimal_last = True
            if first is not None:
                self.points, self.differing, self.steps, self.unit = first
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


def _is(byte: int, values: Array) -> bool:
    return bool(values.size) and bool((np.ascontiguousarray(values).view(np.uint8) == byte).all())
