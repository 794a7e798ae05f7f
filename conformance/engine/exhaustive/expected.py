"""What the reference gives for every float of a dtype, as runs: their ends are found by bisection.

Along the patterns of one binade and one sign the reference is monotone, or steps once. Each of its operations (the
division or product by a positive scale, a rounding to an integer, a sum with the zero point, the limits, the product
that makes reals again) is monotone, and rounding to a dtype is; so is what is made of them. A cast to integers sends
what is out of range to the minimum: beyond 2^30 codes, where every value was limited before, so that there, in one
binade, the values step once. So where both ends of a stretch of a binade have one value, all of the stretch has it.

Codes that wrap are not monotone: there every input is evaluated.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.engine.exhaustive.patterns import layout
from halfeven.conformance.engine.exhaustive.runs import Runs
from halfeven.conformance.engine.setting import Setting, evaluation_of
from halfeven.reference.blocks import Array

__all__ = ["Parameters", "evaluated", "every_pattern", "is_monotone"]

#: A scale and a zero point for each line, as the profile's documents have them before they become its parameters.
Parameters = tuple[Array, int]
_AT_ONCE = 1 << 22  # inputs that are evaluated together


def is_monotone(setting: Setting) -> bool:
    """Whether the argument above holds."""
    return setting.profile.model.overflow == "saturate"


def evaluated(setting: Setting, scales: Array, zero: int, patterns: Array, lines: Array) -> Array:
    """The reference's answer to each pattern, with the scale of its line."""
    x = layout(setting.configuration.dtype).of(DTYPES[setting.configuration.dtype], patterns)
    found = []
    for at in range(0, max(x.size, 1), _AT_ONCE):
        some = slice(at, at + _AT_ONCE)
        case = setting.case(x[some], scales[lines[some]], np.full(x[some].shape, zero, np.int64))
        found.append(evaluation_of(setting.profile, case))
    return np.concatenate(found)


def every_pattern(setting: Setting, scales: Array, zero: int) -> Runs:
    """The reference along all patterns of the dtype, once for each scale, one line after the other.

    Nothing is expected of NaN here.
    """
    of = layout(setting.configuration.dtype)
    evaluate = partial(evaluated, setting, scales, zero)
    find = _bisected if is_monotone(setting) else _one_by_one
    lines, starts = find(evaluate, len(scales), setting.configuration.dtype)
    places = lines * of.total + starts
    nan = starts & (of.sign - 1) > of.infinity
    values = evaluate(starts, lines)
    ends = np.append(places[1:], len(scales) * of.total)
    return _joined(Runs(values, ends, ~nan))


def _bisected(evaluate: Callable[[Array, Array], Array], lines: int, dtype: str) -> tuple[Array, Array]:
    """Where runs begin: the line and the pattern."""
    of = layout(dtype)
    binade = np.arange(0, of.infinity, 1 << of.mantissa, dtype=np.int64)
    low = np.concatenate([binade, binade + of.sign])
    ends = np.array([of.infinity, of.infinity + 1, of.infinity + of.sign, of.infinity + of.sign + 1])
    found = [_crossed(lines, np.concatenate([low, ends]))]
    line, lo = _crossed(lines, low)
    hi = lo + (1 << of.mantissa) - 1
    below, above = _keys(evaluate(lo, line)), _keys(evaluate(hi, line))
    while True:
        step = below != above
        line, lo, hi, below, above = (a[step] for a in (line, lo, hi, below, above))
        next_ = hi - lo == 1
        found.append((line[next_], hi[next_]))
        line, lo, hi, below, above = (a[~next_] for a in (line, lo, hi, below, above))
        if not line.size:
            break
        middle = (lo + hi) // 2
        between = _keys(evaluate(middle, line))
        line = np.concatenate([line, line])
        lo, hi = np.concatenate([lo, middle]), np.concatenate([middle, hi])
        below, above = np.concatenate([below, between]), np.concatenate([between, above])
    line, pattern = (np.concatenate(part) for part in zip(*found, strict=True))
    order = np.argsort(line * of.total + pattern)
    return line[order], pattern[order]


def _one_by_one(evaluate: Callable[[Array, Array], Array], lines: int, dtype: str) -> tuple[Array, Array]:
    """The same where nothing is known of what lies between two inputs."""
    of = layout(dtype)
    found = []
    for line in range(lines):
        before: Array | None = None
        for at in range(0, of.total, _AT_ONCE):
            patterns = np.arange(at, min(at + _AT_ONCE, of.total), dtype=np.int64)
            nan = patterns & (of.sign - 1) > of.infinity
            keys = np.where(nan, -1, _keys(evaluate(patterns, np.full(patterns.shape, line))))
            first = np.ones(1, bool) if before is None else before != keys[:1]
            edge = patterns & (of.sign - 1) == of.infinity + 1  # NaN begins there, whatever it gives
            starts = patterns[np.concatenate([first, keys[1:] != keys[:-1]]) | edge]
            found.append((np.full(starts.shape, line), starts))
            before = keys[-1:]
    return np.concatenate([line for line, _ in found]), np.concatenate([starts for _, starts in found])


def _crossed(lines: int, patterns: Array) -> tuple[Array, Array]:
    return np.repeat(np.arange(lines), len(patterns)), np.tile(patterns, lines)


def _keys(values: Array) -> Array:
    """Integers that are equal where the values are: their bits."""
    return np.ascontiguousarray(values).view(f"i{values.dtype.itemsize}").astype(np.int64)


def _joined(runs: Runs) -> Runs:
    """Neighbours of one value as one run."""
    assert runs.judged is not None, "every line has NaNs"
    keys = _keys(runs.values)
    last = np.append((keys[1:] != keys[:-1]) | (runs.judged[1:] != runs.judged[:-1]), True)
    return Runs(runs.values[last], runs.ends[last], runs.judged[last])
