"""The steps of a model, each with its bits: scale, reciprocal, quotient, rounded, sum, code, real."""

from dataclasses import replace

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.explaining.given import Given, by_profile, parameters
from halfeven.conformance.explaining.numbers import bits
from halfeven.reference.blocks import Array
from halfeven.reference.choices import Coding
from halfeven.reference.model import codes_of, compute_dtype, quotients, rounded_of
from halfeven.reference.profile import Profile
from halfeven.reference.steps import held, inverse

__all__ = ["is_tie", "steps"]

_SIGNS = {"q-z": 1, "q+o": -1, "none": 0}
_FAR = 2.0**40  # beyond every grid, and nothing that a conversion changes


def steps(profile: Profile, given: Given) -> dict[str, Array]:
    """The values on the way of ``given`` under a profile's model, by name and in order; each has one element."""
    if given.operation == "dequantize":
        return {"real": by_profile(profile, given)}
    found = _to_code(profile, given)
    if given.operation == "fake_quantize":
        found["real"] = by_profile(profile, given)
    return found


def is_tie(quotient: Array) -> bool:
    """Whether a quotient lies halfway between two integers."""
    wide = np.asarray(quotient, np.float64).reshape(())
    return bool(np.isfinite(wide) and abs(wide - np.trunc(wide)) == 0.5)  # noqa: PLR2004 - a half


def _to_code(profile: Profile, given: Given) -> dict[str, Array]:
    m = profile.model
    parameter, zero = parameters(profile, given)
    s = np.asarray(profile.model_scale(parameter, given.grid))
    t = compute_dtype(m, DTYPES[given.dtype], s.dtype, given.grid)
    z = np.asarray(zero * _SIGNS[m.sign], np.float64)
    lo, hi = (np.asarray(float(end)) for end in (given.grid.qmin, given.grid.qmax))
    x = given.x * given.x.dtype.type(0) if parameter <= profile.smallest else given.x
    found: dict[str, Array] = {}
    far = np.asarray(_FAR)
    with np.errstate(all="ignore"):
        kept = held(s, m.held).astype(t if m.division == "divide" else s.dtype)
        if m.division == "multiply-by-q-per-real":
            found["codes per real"] = kept
        elif kept.dtype != given.scale.dtype or bits(kept) != bits(given.scale):
            found["scale"] = kept
        if m.division in {"reciprocal", "low-reciprocal"}:
            found["1/s"] = inverse(held(s, m.held), m.inverse, t)
        v = found["quotient"] = quotients(m, x, s, z, lo, hi, t)
        r = found["rounded"] = rounded_of(m, v, z, lo, hi)
        added = m.division in Coding.choices()["division"] and m.zero_point == "after-rounding" and bool(z)
        if added and abs(r) < _FAR:
            free = replace(m, clamp="after", overflow="saturate")
            found["sum"] = codes_of(free, r, z, -far, far)
        found["code"] = codes_of(m, r, z, lo, hi)
    return {name: np.asarray(value).reshape(1) for name, value in found.items()}
