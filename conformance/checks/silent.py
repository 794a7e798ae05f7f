"""Where documents are mostly silent: NaN, the sign of zero, subnormals. A profile may speak; then it is judged."""

from typing import Any

import numpy as np

from halfeven.conformance.bits import signed_bits, step
from halfeven.conformance.checks.values import cases
from halfeven.conformance.inputs import parameters
from halfeven.conformance.trial import Trial

__all__ = ["nan", "subnormals", "zero_sign"]

_VECTOR = 33


def nan(trial: Trial) -> None:
    """What NaN of either sign becomes, alone in a vector and next to numbers."""
    payload = np.array([np.nan, -np.nan, 1.0, -1.0]).astype(trial.dtype)
    pattern = np.tile(payload, _VECTOR)[None]
    for case in cases(trial, np.array([0.5]), trial.zeros, lambda s, _z: np.repeat(pattern, len(s), axis=0)):
        with trial.offered():
            actual = trial.expect(case)
            z = int(np.ravel(case.zero)[0])
            kinds = sorted({_code(v) for v in actual[np.isnan(case.x)].ravel()})
            trial.seen.append(f"NaN gives {', '.join(kinds)} ({trial.profile.parameters[-1]} {z})")


def zero_sign(trial: Trial) -> None:
    """The sign of a zero result, for zeros of either sign and for values that round to zero."""
    tiny = step(np.zeros(2, trial.dtype), np.array([1, -1]))
    x = np.concatenate([np.array([0.0, -0.0, 0.25, -0.25]).astype(trial.dtype), tiny])
    names = ("0.0", "-0.0", "0.25", "-0.25", "least", "-least")
    for case in cases(trial, np.array([1.0]), trial.zeros[:1], lambda s, _z: np.repeat(x[None], len(s), axis=0)):
        actual = np.ravel(trial.expect(case, signs=True))
        if actual.dtype.kind in "iu":
            trial.seen.append("integers have no sign of zero")
            continue
        negative = signed_bits(np.ascontiguousarray(actual)) < 0
        signed = [name for name, minus, value in zip(names, negative, actual, strict=True) if minus and value == 0]
        trial.seen.append(f"-0.0 for x = {', '.join(signed)}" if signed else "+0.0 for every x")


def subnormals(trial: Trial) -> None:
    """Subnormal scales and inputs: around the first codes, and where 1 / scale overflows."""
    scales = parameters.subnormal_scales(trial.scale_dtype)
    codes = np.array([-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0])
    for case in cases(trial, scales, trial.zeros[:1], lambda s, _z: (s[:, None] * codes).astype(trial.dtype)):
        trial.expect(case)
    trial.seen.append(
        f"{trial.differing} of {trial.points} points differ from the formula evaluated with subnormals kept"
    )


def _code(value: Any) -> str:
    number = float(value)
    return "NaN" if np.isnan(number) else f"{number:g}"
