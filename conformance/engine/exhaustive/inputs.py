"""All 2^32 inputs of float32 for some parameters, and every NaN."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from halfeven.conformance.configuration import DTYPES, Array, Case
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.exhaustive.expected import every_pattern
from halfeven.conformance.engine.exhaustive.parameters import sets
from halfeven.conformance.engine.exhaustive.patterns import PIECE, Layout, Patterns, layout
from halfeven.conformance.engine.exhaustive.runs import Runs
from halfeven.conformance.engine.exhaustive.sweep import Chunk, call_of, case_of, sample, sweep, swept_words

__all__ = ["all_inputs", "every_nan"]

_CHUNK = 1 << 24  # inputs of one call: what an interrupted run loses at most
_SAID = 4
_SAMPLED = 1024  # changes of the answer that are asked about once more, where some inputs differ


def all_inputs(e: Evidence) -> None:
    """Every number of float32 and both infinities with each set of parameters; NaNs are asked, and not judged here."""
    chosen = [_Line(e, np.asarray(s, e.setting.scale_dtype), z) for s, z in sets(e.setting)]
    inputs = sum(line.end for line in chosen)
    for line in chosen:
        found = sweep(e, inputs, line.numbers())
        if found is None:
            return
        e.covered.append(swept_words(f"all inputs for {line}", found))
        if found.differing:
            sample(e, [line.around()])


def every_nan(e: Evidence) -> None:
    """Every NaN of float32, of either sign, with each set of parameters."""
    chosen = [_Line(e, np.asarray(s, e.setting.scale_dtype), z) for s, z in sets(e.setting)]
    for line in chosen:
        found = sweep(e, len(chosen) << line.of.mantissa + 1, line.nans(), keep=True)
        if found is None:
            return
        e.covered.append(swept_words(f"every NaN for {line}", found))
        given = {float(v) for runs in found.actual for v in runs.part(1, runs.size - 1).values}
        said = ", ".join(sorted({"NaN" if np.isnan(v) else f"{v:g}" for v in given})[:_SAID])
        e.seen.append(f"every NaN gives {said} ({line})")


@dataclass(frozen=True)
class _Line:
    """All patterns of a dtype, with one scale and one zero point."""

    e: Evidence
    scale: Array
    zero: int

    def __str__(self) -> str:
        """The parameters."""
        named = self.e.setting.profile.parameters[1:]
        zero = -self.zero if named == ("offset",) else self.zero
        return ", ".join([f"scale {float(self.scale):.9g}", *(f"{name} {zero}" for name in named)])

    @property
    def of(self) -> Layout:
        """How the dtype's patterns lie."""
        return layout(self.e.setting.configuration.dtype)

    @property
    def end(self) -> int:
        """The patterns: half of them where the document has no negative inputs."""
        setting = self.e.setting
        return self.of.sign if setting.profile.parameters[0] == "amax" and setting.grid.qmin >= 0 else self.of.total

    @cached_property
    def expected(self) -> Runs:
        """What the reference gives."""
        return every_pattern(self.e.setting, self.scale.reshape(1), self.zero)

    def numbers(self) -> Iterator[Chunk]:
        """All patterns in turn."""
        for first in range(0, self.end, _CHUNK):
            yield self._chunk(first, _CHUNK, partial(self._part, first))

    def nans(self) -> Iterator[Chunk]:
        """The NaNs of each sign, in calls that begin with a number that stands for none."""
        count = 1 << self.of.mantissa
        for first in (self.of.infinity, self.of.infinity + self.of.sign):
            if first < self.end:
                yield self._chunk(first, count, partial(self._nan, first, count))

    def _part(self, first: int) -> Runs:
        return self.expected.part(first, _CHUNK)

    def _nan(self, first: int, count: int) -> Runs:
        value = self.expected.at(np.array([first + 1]))
        return Runs(np.repeat(value, 2), np.array([1, count]), np.array([False, True]))

    def around(self) -> Case:
        """The inputs at both sides of where the reference's answer changes."""
        edges = self.expected.ends[:-1]
        edges = edges[:: -(-len(edges) // _SAMPLED)]
        patterns = np.unique(edges[:, None] + np.arange(-2, 2))
        return self._case(patterns[(patterns >= 0) & (patterns < self.end)])

    def _chunk(self, first: int, count: int, expected: Callable[[], Runs]) -> Chunk:
        inputs = Patterns(self.e.setting.configuration.dtype, first, count, min(PIECE, count))
        return Chunk(
            name=f"{self}, from {first:#010x}",
            count=count,
            call=lambda: call_of(self.e, inputs, self.scale, self.zero),
            expected=expected,
            line=np.zeros_like,
            case=lambda places: self._case(places + first),
        )

    def _case(self, patterns: Array) -> Case:
        return case_of(self.e, self.of.of(DTYPES[self.e.setting.configuration.dtype], patterns), self.scale, self.zero)
