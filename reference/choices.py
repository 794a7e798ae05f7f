"""The choices that the calls of affine formulas tell apart: behaviours smaller than the evaluation model, and in it."""

from dataclasses import dataclass

from halfeven.reference.behaviour import Behaviour, choice

__all__ = ["Coding", "Converting", "Decoding", "Faking", "Signed", "Storing", "Subtracting"]


@dataclass(frozen=True)
class Signed(Behaviour):
    """The choice in undoing a zero point."""

    # x̂ = (q - z) * s, (q + o) * s, or q * s, so that a code of -0.0 stays.
    sign: str = choice(
        {
            "q-z": "subtracts the zero point from the code",
            "q+o": "adds the offset to the code",
            "none": "has no zero point",
        }
    )


@dataclass(frozen=True)
class Coding(Signed):
    """The choices in making codes of reals."""

    # 1/s is rounded, and so is the product.
    division: str = choice(
        {
            "divide": "divides by s",
            "reciprocal": "multiplies by 1/s",
            "multiply-by-q-per-real": "multiplies by s, the codes per real",
        }
    )
    rounding: str = choice(
        {
            "half-even": "rounds ties to even",
            "half-away": "rounds ties away from zero",
            "half-up": "rounds ties up",
            "half-down": "rounds ties down",
            "half-to-zero": "rounds ties toward zero",
            "toward-zero": "truncates toward zero",
            "floor": "rounds down",
            "ceil": "rounds up",
        }
    )
    zero_point: str = choice(
        {
            "after-rounding": "adds the zero point after rounding",
            "before-rounding": "adds the zero point before rounding",
            "fused": "multiplies and adds the zero point in one rounding",
        }
    )
    # Codes wrap modulo their number.
    overflow: str = choice(
        {
            "saturate": "saturates codes beyond the grid",
            "wrap": "wraps codes beyond the grid",
        }
    )
    nan: str = choice(
        {
            "propagate": "passes NaN on",
            "zero": "gives code 0 for NaN",
            "zero-point": "gives the zero point for NaN",
            "qmin": "gives qmin for NaN",
            "qmax": "gives qmax for NaN",
        }
    )


@dataclass(frozen=True)
class Converting(Coding):
    """And with zero points that the arithmetic may not hold."""

    # A conversion makes the minimum of NaN and of what is out of range, as x86 does; a sum after it wraps.
    integer: str = choice(
        {
            "none": "adds the zero point in floating point",
            "exact": "adds the zero point as integers without bound",
            "int32": "converts to int32 before adding the zero point",
            "int64": "converts to int64 before adding the zero point",
            "int64-sum": "converts to int64 after adding the zero point",
        }
    )


@dataclass(frozen=True)
class Storing(Converting):
    """And with ends of the grid that the arithmetic may not hold."""

    # What int32 does not hold becomes its minimum, as x86 converts it; on a grid that is not within int32 it stays.
    ends: str = choice(
        {
            "kept": "keeps to an end of the grid that the arithmetic rounds outward",
            "rounded": "converts to int32 an end of the grid that the arithmetic rounds outward",
        }
    )


@dataclass(frozen=True)
class Subtracting(Signed):
    """The choices in undoing such zero points."""

    # Exactly, then rounded once to the dtype of the product; int32 wraps, and there NaN is the minimum.
    subtract: str = choice(
        {
            "float": "subtracts the zero point in floating point",
            "exact": "subtracts the zero point exactly",
            "int32": "subtracts the zero point in int32",
        }
    )


@dataclass(frozen=True)
class Decoding(Subtracting):
    """And in multiplying where the dtypes of scale and reals are not one."""

    # Other than in the output's dtype, fake quantization puts back codes in the input's dtype, not the computed one.
    product: str = choice(
        {
            "output": "multiplies in the output's dtype",
            "promoted": "multiplies in the promotion of the output's and the scale's dtype",
            "narrowed": "rounds codes and scale to the input's dtype before it multiplies",
        }
    )


@dataclass(frozen=True)
class Faking(Subtracting, Converting):
    """The choices in making codes and at once their reals."""
