"""One value to explain, and what a profile, a model or a formula makes of it."""

from dataclasses import dataclass

import numpy as np

from halfeven.conformance.configuration import DTYPES, code_dtype
from halfeven.reference import Grid
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import Formula
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import OPERATIONS, Operation, Profile
from halfeven.reference.systems import PROFILES

__all__ = ["TEXTBOOK", "Given", "by_formula", "by_profile", "codes", "parameters"]

#: What a value is explained by where nothing is claimed.
TEXTBOOK = Profile(
    "the textbook",
    "clamp(half_even(x / s) + z, qmin, qmax), and (q - z) * s",
    "the affine equation, every operation rounded in the input's dtype",
    EvaluationModel(),
    dtypes=tuple(DTYPES),
    bits=(1, 32),
)


@dataclass(frozen=True, eq=False)
class Given:
    """A value and its parameters, in the terms of x̂ = (q - z) * s.

    Attributes:
        x: the real, an array of one element; of dequantize the code, an integer of one.
        scale: real per code, a float of no dimension.
        zero: the zero point.
        dtype: the float dtype of the reals.
        amax: what a profile that documents amax is handed, where that is known; else scale * qmax.
    """

    operation: Operation
    x: Array
    scale: Array
    zero: int
    grid: Grid
    dtype: str
    amax: Array | None = None

    def __post_init__(self) -> None:
        """Refuse what is no operation."""
        if self.operation not in OPERATIONS:
            msg = f"operation={self.operation!r} is not accepted: give one of {', '.join(OPERATIONS)}"
            raise ValueError(msg)


def parameters(profile: Profile, given: Given) -> tuple[Array, Array]:
    """The two parameters as the profile documents them: the scale or amax, the zero point or its negative, the offset.

    A scale in another dtype than the profile's is rounded to it.
    """
    own = profile.scale_dtype == "input" or given.dtype == "float64"
    t = given.scale.dtype if profile.name == TEXTBOOK.name else DTYPES[given.dtype if own else "float32"]
    s = given.scale.astype(t)
    if profile.parameters[0] == "amax":
        s = (s * np.asarray(given.grid.qmax, t)).astype(t) if given.amax is None else given.amax.astype(t)
    if profile.parameters[1:] == ("offset",):
        return s, np.asarray(-given.zero, np.float64 if given.dtype == "float64" else np.float32) + 0
    return s, np.asarray(given.zero if len(profile.parameters) > 1 else 0, np.int32)


def by_profile(profile: Profile, given: Given) -> Array:
    """What a profile makes of a value: one element.

    Raises:
        ValueError, TypeError: the profile's model is not defined for it.
    """
    scale, zero = parameters(profile, given)
    x = codes(profile, given) if given.operation == "dequantize" else given.x
    match given.operation:
        case "quantize":
            return profile.quantize(x, scale, zero, given.grid)
        case "dequantize":
            return profile.dequantize(x, scale, zero, given.grid, DTYPES[given.dtype])
        case "fake_quantize":
            return profile.fake_quantize(x, scale, zero, given.grid)


def codes(profile: Profile, given: Given) -> Array:
    """The code to dequantize, held as the profile holds codes."""
    return given.x.astype(DTYPES[given.dtype] if profile.codes == "input" else code_dtype(given.grid))


def by_formula(formula: Formula, given: Given) -> Array:
    """What a formula that quantizes on a grid makes of a value: one element.

    Raises:
        Exception: whatever the formula raises where it does not take such a value.
    """
    affine = formula.affine
    if affine is None or affine.operation != given.operation:
        msg = f"formula={formula.id!r} is not accepted: it is no {given.operation} on a grid"
        raise ValueError(msg)
    profile = PROFILES[affine.profile]
    scale, zero = parameters(profile, given)
    x = codes(profile, given) if given.operation == "dequantize" else given.x
    for block, s, z in ((None, scale, zero), ((1,), scale.reshape(1), zero.reshape(1))):
        try:
            named = affine.arguments(x, s, z, given.grid, block, DTYPES[given.dtype])
        except ValueError:
            if block is not None:
                raise
            continue
        return np.asarray(affine.result(formula.function(**named))).reshape(1)
    raise AssertionError
