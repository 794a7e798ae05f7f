"""All pairs of an input and a scale that a 16-bit dtype has."""

from collections.abc import Iterator

import numpy as np

from halfeven.conformance.configuration import DTYPES, Case
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.exhaustive.expected import every_pattern
from halfeven.conformance.engine.exhaustive.parameters import line_scales, sets
from halfeven.conformance.engine.exhaustive.patterns import Patterns, layout
from halfeven.conformance.engine.exhaustive.runs import Runs
from halfeven.conformance.engine.exhaustive.sweep import Chunk, call_of, case_of, sweep, swept_words
from halfeven.reference.blocks import Array

__all__ = ["all_pairs", "subnormal_pairs"]

_LINES = 256  # scales of one call
_ZEROS = 2  # zero points: zero, and an odd one


def all_pairs(e: Evidence) -> None:
    """Every normal scale with every number and both infinities; subnormal inputs are asked, and not judged here."""
    _pairs(e, subnormal=False)


def subnormal_pairs(e: Evidence) -> None:
    """Every subnormal scale with every number and both infinities."""
    _pairs(e, subnormal=True)
    e.seen.append(f"{e.differing:,} of {e.points:,} pairs differ from the formula evaluated with subnormals kept")


def _pairs(e: Evidence, *, subnormal: bool) -> None:
    dtype = e.setting.configuration.dtype
    scales = line_scales(dtype, subnormal=subnormal).astype(e.setting.scale_dtype)
    zeros = [*dict.fromkeys(zero for _, zero in sets(e.setting))][:_ZEROS]
    for zero in zeros:
        inputs = len(scales) * layout(dtype).total
        found = sweep(e, inputs * len(zeros), _chunks(e, scales, zero, subnormal=subnormal))
        if found is None:
            return
        kind = "subnormal" if subnormal else "normal"
        what = f"all inputs of {dtype} with each of its {len(scales):,} positive {kind} scales, zero point {zero}"
        e.covered.append(swept_words(what, found))


def _chunks(e: Evidence, scales: Array, zero: int, *, subnormal: bool) -> Iterator[Chunk]:
    for at in range(0, len(scales), _LINES):
        yield _chunk(e, scales[at : at + _LINES], zero, subnormal=subnormal)


def _chunk(e: Evidence, scales: Array, zero: int, *, subnormal: bool) -> Chunk:
    dtype = e.setting.configuration.dtype
    of = layout(dtype)

    def expected() -> Runs:
        found = every_pattern(e.setting, scales, zero)
        return found if subnormal else _without_subnormals(found, of.total, of.sign, of.normal, len(scales))

    def case(places: Array) -> Case:
        return case_of(e, of.of(DTYPES[dtype], places % of.total), scales[int(places[0] // of.total)], zero)

    return Chunk(
        name=f"zero point {zero}, scales from {float(scales[0]).hex()}",
        count=len(scales) * of.total,
        call=lambda: call_of(e, Patterns(dtype, 0, of.total, of.total), scales, zero),
        expected=expected,
        line=lambda places: places // of.total,
        case=case,
    )


def _without_subnormals(runs: Runs, total: int, sign: int, normal: int, lines: int) -> Runs:
    """The same runs, where of subnormal inputs nothing is expected."""
    edges = np.array([0, 1, normal, sign, sign + 1, sign + normal])
    cuts = (np.arange(lines)[:, None] * total + edges).ravel()
    ends = np.union1d(runs.ends, cuts[1:])
    starts = np.concatenate([[0], ends[:-1]])
    inside = starts % sign
    old = np.searchsorted(runs.ends, starts, "right")
    known = np.ones(len(runs.ends), bool) if runs.judged is None else runs.judged
    return Runs(runs.values[old], ends, known[old] & ((inside == 0) | (inside >= normal)))
