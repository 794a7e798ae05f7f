"""Where documents are mostly silent: NaN, the sign of zero, subnormals. A profile may speak; then it is judged."""

from typing import Any

import numpy as np

from halfeven.conformance.bits import signed_bits, step
from halfeven.conformance.engine.checks.values import cases
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.inputs import parameters

__all__ = ["nan", "subnormals", "zero_sign"]

_VECTOR = 33


def nan(e: Evidence) -> None:
    """What NaN of either sign becomes, alone in a vector and next to numbers."""
    payload = np.array([np.nan, -np.nan, 1.0, -1.0]).astype(e.setting.dtype)
    pattern = np.tile(payload, _VECTOR)[None]
    asked = list(cases(e, np.array([0.5]), e.setting.zeros, lambda s, _z: np.repeat(pattern, len(s), axis=0)))
    for case, actual in zip(asked, e.expect(asked), strict=True):
        if actual is not None:
            z = int(np.ravel(case.zero)[0])
            kinds = sorted({_code(v) for v in actual[np.isnan(case.x)].ravel()})
            e.seen.append(f"NaN gives {', '.join(kinds)} ({e.setting.profile.parameters[-1]} {z})")


def zero_sign(e: Evidence) -> None:
    """The sign of a zero result, for zeros of either sign and for values that round to zero."""
    tiny = step(np.zeros(2, e.setting.dtype), np.array([1, -1]))
    x = np.concatenate([np.array([0.0, -0.0, 0.25, -0.25]).astype(e.setting.dtype), tiny])
    names = ("0.0", "-0.0", "0.25", "-0.25", "least", "-least")
    asked = cases(e, np.array([1.0]), e.setting.zeros[:1], lambda s, _z: np.repeat(x[None], len(s), axis=0))
    for given in e.expect(asked, signs=True):
        if given is None:
            continue
        actual = np.ravel(given)
        if actual.dtype.kind in "iu":
            e.seen.append("integers have no sign of zero")
            continue
        negative = signed_bits(np.ascontiguousarray(actual)) < 0
        signed = [name for name, minus, value in zip(names, negative, actual, strict=True) if minus and value == 0]
        e.seen.append(f"-0.0 for x = {', '.join(signed)}" if signed else "+0.0 for every x")


def subnormals(e: Evidence) -> None:
    """Subnormal scales and inputs: around the first codes, and where 1 / scale overflows."""
    scales = parameters.subnormal_scales(e.setting.scale_dtype)
    codes = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0])
    e.expect(cases(e, scales, e.setting.zeros[:1], lambda s, _z: (s[:, None] * codes).astype(e.setting.dtype)))
    e.seen.append(f"{e.differing} of {e.points} points differ from the formula evaluated with subnormals kept")


def _code(value: Any) -> str:
    number = float(value)
    return "NaN" if np.isnan(number) else f"{number:g}"
