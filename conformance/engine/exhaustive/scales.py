"""Every scale of float32: for each significand, at each boundary between two codes, the two inputs that decide.

The codes of one scale rise with the input, and do not change where input and scale are multiplied by a power of two;
both are checks of their own (``lemmas``). So an implementation that gives, for each of the 2^23 significands, the lower
code up to the last input that has it, and the upper one from the next on, gives every code of every pair.
"""

from collections.abc import Callable, Iterator
from functools import cache, partial

import numpy as np

from halfeven.conformance.configuration import Array
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.exhaustive.parameters import DEFAULT, scale_of, shard_of, significands
from halfeven.conformance.engine.exhaustive.runs import Runs
from halfeven.conformance.engine.exhaustive.sweep import Chunk, call_of, case_of, sweep, swept_words
from halfeven.conformance.engine.setting import Setting, evaluation_of

__all__ = ["deciding", "every_scale"]

_LINES = 1 << 9  # scales of one call: what is evaluated together stays in a core's cache
_WIDEST = 64  # floats from the middle between two codes to where the code changes, at most


def every_scale(e: Evidence) -> None:
    """The inputs that decide each boundary, for every significand of the shard."""
    if e.setting.profile.parameters[0] == "amax":
        e.refused.append("every scale: the document's parameter is not the scale")
        return
    part = shard_of(e.item.shard) if e.item.shard else DEFAULT
    scales = scale_of(significands(part))
    zero = min(max(0, e.setting.grid.qmin), e.setting.grid.qmax)
    width = 2 * e.setting.grid.num_steps
    found = sweep(e, len(scales) * width, _chunks(e, scales, zero))
    if found is not None:
        whole = f"{len(scales):,} of {1 << 23:,} significands of the scale (shard {part[0]}/{part[1]})"
        each = f"the two inputs at each of {e.setting.grid.num_steps} boundaries, zero point {zero}"
        e.covered.append(swept_words(f"{whole}, {each}", found))


def deciding(setting: Setting, scales: Array, zero: int) -> tuple[Array, Array]:
    """For each scale and each boundary of the grid the last input of the lower code and the first of the upper one.

    Args:
        setting: its profile's codes rise with the input.
        scales: real per code, 1-d, normal floats of float32, as the setting's inputs are.
        zero: the zero point.

    Returns:
        The inputs, of shape (scales, 2 * boundaries), rising along each row; and what the reference gives for them.

    Raises:
        ValueError: the code does not change near the middle between two codes.
    """
    grid = setting.grid
    middles = np.arange(grid.qmin, grid.qmax) + 0.5 - zero
    nearest = (middles * scales[:, None].astype(np.float64)).astype(setting.dtype).view(np.int32)
    upward = np.where(middles > 0, 1, -1).astype(np.int32)  # of patterns, as the floats rise
    evaluate = partial(_evaluated, setting, scales, zero)
    lower = evaluate((nearest - upward).view(setting.dtype))
    upper = evaluate(nearest.view(setting.dtype))
    above = lower == upper  # the code changes above the nearest: but for few, at the next
    at = nearest + np.where(above, upward, 0)
    lower = np.where(above, upper, lower)
    upper = np.where(above, evaluate(at.view(setting.dtype)), upper)
    if (lower == upper).any():
        at, lower, upper = _further(evaluate, nearest, upward)
    shape = (len(scales), 2 * len(middles))
    x = np.stack([at - upward, at], axis=-1).view(setting.dtype)
    return x.reshape(shape), np.stack([lower, upper], axis=-1).reshape(shape)


def _further(evaluate: Callable[[Array], Array], nearest: Array, upward: Array) -> tuple[Array, Array, Array]:
    """The same where the code changes further from the middle: the pattern above the change, and both codes."""
    reach = 2
    while reach <= _WIDEST:
        around = nearest + upward * np.arange(-reach, reach + 1, dtype=np.int32)[:, None, None]
        values = np.stack([evaluate(x.view(np.float32)) for x in around])
        changed = values[1:] != values[:-1]
        if (changed.sum(axis=0) == 1).all():
            at = changed.argmax(axis=0)[None]
            found = [np.take_along_axis(a, at + n, axis=0)[0] for a, n in ((around, 1), (values, 0), (values, 1))]
            return found[0], found[1], found[2]
        reach *= 2
    msg = f"the reference does not change its code once within {_WIDEST} floats of the middle of two codes"
    raise ValueError(msg)


def _evaluated(setting: Setting, scales: Array, zero: int, x: Array) -> Array:
    spread = scales.reshape(-1, 1)
    return evaluation_of(setting.profile, setting.case(x, spread, np.full(spread.shape, zero)))


def _chunks(e: Evidence, scales: Array, zero: int) -> Iterator[Chunk]:
    for at in range(0, len(scales), _LINES):
        yield _chunk(e, scales[at : at + _LINES], zero)


def _chunk(e: Evidence, scales: Array, zero: int) -> Chunk:
    width = 2 * e.setting.grid.num_steps
    made = cache(partial(deciding, e.setting, scales, zero))

    def expected() -> Runs:
        values = made()[1].ravel()
        return Runs(values, np.arange(1, values.size + 1))

    return Chunk(
        name=f"scales from {float(scales[0]).hex()}",
        count=len(scales) * width,
        call=lambda: call_of(e, made()[0], scales, zero),
        expected=expected,
        line=lambda places: places // width,
        case=lambda places: case_of(e, made()[0].ravel()[places], scales[int(places[0] // width)], zero),
    )
