"""What lets a statement about some inputs hold for all: codes rise with the input, and powers of two cancel."""

import numpy as np

from halfeven.conformance.bits import ordered, unordered
from halfeven.conformance.configuration import Array
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.exhaustive.parameters import scale_of
from halfeven.conformance.engine.exhaustive.scales import deciding
from halfeven.conformance.engine.exhaustive.sweep import case_of

__all__ = ["monotone", "powers_of_two"]

_SCALES = 64
_INPUTS = 1 << 20
_CAST = 2.0**30  # codes
_EXPONENTS = range(-96, 97, 3)  # no input, scale, quotient or real comes near the end of the dtype


def monotone(e: Evidence) -> None:
    """Two million inputs from -infinity to infinity, in order: no code is below the one before."""
    zero = _zero(e)
    top = int(ordered(np.asarray(np.inf, e.setting.dtype)))
    generator = np.random.default_rng([e.item.seed, _INPUTS])
    for scale in _drawn(e):
        index = np.sort(generator.integers(-top, top, _INPUTS, endpoint=True))
        # Half of them where the codes are: the others are far beyond them, or next to zero.
        span = float(scale) * (e.setting.grid.num_steps + 2)
        near = generator.uniform(-span, span, _INPUTS).astype(e.setting.dtype)
        x = np.sort(np.concatenate([unordered(index, e.setting.dtype), near]))
        if e.setting.profile.model.integer.startswith("int"):  # a cast makes the minimum of what is out of range
            x = x[np.abs(x) < _CAST * scale]
        if e.setting.profile.parameters[0] == "amax" and e.setting.grid.qmin >= 0:
            x = np.sort(np.abs(x))
        case = case_of(e, x, scale, zero)
        [given] = e.ask([case])
        if given is None:
            return
        values = np.ravel(given) + np.zeros((), given.dtype)  # the sign of a zero has no order
        rising = np.maximum.accumulate(values)
        e.compare(case, rising.reshape(given.shape), values.reshape(given.shape), own=True)
    e.covered.append(f"monotone: {_SCALES} scales, {2 * _INPUTS:,} inputs in order for each, zero point {zero}")


def powers_of_two(e: Evidence) -> None:
    """The codes of (x, s) are those of (x * 2^k, s * 2^k), where neither overflows nor underflows."""
    zero = _zero(e)
    reals = e.setting.configuration.operation == "fake_quantize"
    for scale in _drawn(e):
        x = deciding(e.setting, scale.reshape(1), zero)[0][0]
        powers = [np.exp2(np.asarray(k, e.setting.dtype)) for k in (0, *_EXPONENTS)]
        cases = [case_of(e, x * p, scale * p, zero) for p in powers]
        first, *others = e.ask(cases)
        for case, power, given in zip(cases[1:], powers[1:], others, strict=True):
            if first is not None and given is not None:
                e.compare(case, np.asarray(first * power) if reals else first, given, own=True)
    e.covered.append(f"powers of two: {_SCALES} scales, {len(_EXPONENTS)} exponents, all boundaries, zero point {zero}")


def _zero(e: Evidence) -> int:
    return min(max(0, e.setting.grid.qmin), e.setting.grid.qmax)


def _drawn(e: Evidence) -> list[Array]:
    """Scales of drawn significands, and those next to a power of two."""
    generator = np.random.default_rng([e.item.seed, _SCALES])
    inner = generator.integers(1 << 23, 1 << 24, _SCALES - 3)
    found = scale_of(np.concatenate([[1 << 23, (1 << 23) + 1, (1 << 24) - 1], inner]))
    return [*found.astype(e.setting.scale_dtype)]
