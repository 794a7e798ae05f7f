"""compressed-tensors: powers of two for the scales of MX, and the nearest E2M1 number. Real per code."""

from dataclasses import dataclass
from typing import Literal

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import Real, formula
from halfeven.reference.minifloat import FLOAT_FORMATS, cast

__all__ = ["CastToFp4", "MxScales", "PowerOfTwo", "cast_to_fp4", "generate_mx_scales", "round_to_power_2"]

_MX = "compressed_tensors.quantization.utils.mxfp_utils"
_UNSIGNED = {"float16": np.uint16, "bfloat16": np.uint16, "float32": np.uint32, "float64": np.uint64}
_E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])


@dataclass(frozen=True)
class PowerOfTwo(Behaviour):
    """The choice of a power of two for a number."""

    threshold: str = choice(
        {
            "element": "takes the next power of two where an element would be rounded up to it",
            "down": "takes the power of two below",
            "nearest": "takes the next power of two from its half on",
            "up": "takes the power of two above",
        }
    )


@dataclass(frozen=True)
class MxScales(PowerOfTwo):
    """The choices in making a scale of it."""

    mantissa: str = choice(
        {
            "one": "takes elements of 8 bits to have one bit of mantissa",
            "three": "takes elements of 8 bits to have their three bits of mantissa",
        }
    )


@dataclass(frozen=True)
class CastToFp4(Behaviour):
    """The choices in rounding to E2M1."""

    ties: str = choice(
        {
            "even": "rounds ties to the even code",
            "away": "rounds ties away from zero",
            "to-zero": "rounds ties toward zero",
        }
    )
    zero: str = choice(
        {
            "of-numbers": "gives -0.0 for small negative numbers, and 0.0 for -0.0",
            "sign": "keeps the sign of every number",
            "plus": "gives 0.0 for small negative numbers too",
        }
    )


@formula(
    "compressed-tensors/round_to_power_2",
    equation=r"2^{e + [m \ge 2 - 2^{-k-1}]},\quad |x| = m \cdot 2^e,\ 1 \le m < 2",
    basis=Real(),
    source=f"{_MX}.round_to_power_2",
    behaviour=PowerOfTwo(),
)
def round_to_power_2(b: PowerOfTwo, x: Array, elem_mantissa: int = 1) -> Array:
    """The power of two below ``x``, or the next where an element of k mantissa bits would be rounded up to it.

    The bits of the exponent after half a unit of the element is added to the bits of ``x``, whatever they mean: what
    is subnormal becomes 0 or the smallest normal number, the sign stays, NaN becomes an infinity (measured).

    Args:
        x: float16, bfloat16, float32 or float64 of any shape.
        elem_mantissa: k, from 0 to one less than the mantissa bits of ``x``.

    Raises:
        TypeError: ``x`` is not float16, bfloat16, float32 or float64.
        ValueError: ``elem_mantissa`` is as many as the mantissa bits of ``x``, or more.
    """
    if x.dtype.name not in _UNSIGNED:
        msg = f"x of dtype {x.dtype} is not accepted: give {', '.join(_UNSIGNED)}"
        raise TypeError(msg)
    bits = np.ascontiguousarray(x).view(_UNSIGNED[x.dtype.name])
    mantissa = int(ml_dtypes.finfo(x.dtype).nmant)  # type: ignore[no-untyped-call]
    with np.errstate(over="ignore"):
        half = 1 << (mantissa - elem_mantissa - 1)
        added = {"element": half, "down": 0, "nearest": 1 << (mantissa - 1), "up": (1 << mantissa) - 1}[b.threshold]
        val_to_add = np.asarray(added, bits.dtype)
        mantissa_mask = np.asarray((1 << mantissa) - 1, bits.dtype)
        power: Array = ((bits + val_to_add) & ~mantissa_mask).view(x.dtype)
    return power.reshape(x.shape)


@formula(
    "compressed-tensors/generate_mx_scales",
    equation=r"127 + \lfloor \log_2 p \rfloor - \lfloor \log_2 \max \rfloor",
    basis=Real(),
    source=f"{_MX}.generate_mx_scales",
    behaviour=MxScales(),
)
def generate_mx_scales(b: MxScales, x: Array, num_bits: int = 4) -> Array:
    """The biased E8M0 exponents of groups whose largest magnitude is ``x``, as floats of its dtype, not yet limited.

    p is ``round_to_power_2(x)``; the last term is 2, 2, 8 for elements of 4, 6, 8 bits. 0 gives -inf, infinity and
    NaN inf, a negative number NaN.

    Args:
        x: largest magnitudes, in reals; float16, bfloat16, float32 or float64 of any shape.
        num_bits: width of the elements: 4, 6 or 8.

    Raises:
        KeyError: another ``num_bits``.
        TypeError: ``x`` is not float16, bfloat16, float32 or float64.
    """
    if num_bits not in (4, 6, 8):
        msg = f"num_bits={num_bits} is not accepted: give 4, 6 or 8"
        raise KeyError(msg)
    offset = {4: 2, 6: 2, 8: 8}[num_bits]
    mantissa = {4: 1, 6: 3, 8: 1 if b.mantissa == "one" else 3}[num_bits]
    scale_power_2 = round_to_power_2(b, x, mantissa)
    _, exponent = np.frexp(scale_power_2)  # of a fraction in [0.5, 1)
    biased = 127.0 + (exponent - 1) - offset
    biased = np.where(scale_power_2 == 0, -np.inf, np.where(np.isinf(scale_power_2), np.inf, biased))
    return np.where(scale_power_2 < 0, np.nan, biased).astype(x.dtype)


@formula(
    "compressed-tensors/cast_to_fp4",
    equation=r"\mathrm{sign}(x) \cdot \arg\min_{v \in \{0, 0.5, 1, 1.5, 2, 3, 4, 6\}} | |x| - v |",
    basis=Real(),
    source="compressed_tensors.quantization.quant_args.FP4_E2M1_DATA.cast_to_fp4",
    behaviour=CastToFp4(),
)
def cast_to_fp4(b: CastToFp4, x: Array) -> Array:
    """The nearest E2M1 value in ``x.dtype``; a tie goes to the even code, what is beyond 6 to 6, NaN stays.

    A small negative number gives -0.0, and -0.0 gives 0.0 (measured).

    Args:
        x: float16, bfloat16, float32 or float64 of any shape.

    Raises:
        TypeError: ``x`` is of another dtype.
    """
    magnitude = np.abs(x)
    known = np.where(np.isnan(magnitude), np.zeros((), x.dtype), magnitude)
    if b.ties == "even":
        nearest = cast(known, FLOAT_FORMATS["float4_e2m1fn"], overflow="saturate")
    else:
        side: Literal["left", "right"] = "right" if b.ties == "away" else "left"
        nearest = _E2M1[np.searchsorted((_E2M1[1:] + _E2M1[:-1]) / 2, known.astype(np.float64), side)]
    negative = np.signbit(x) if b.zero == "sign" else x < 0
    signed = np.where(negative, -nearest, nearest)
    signed = signed + np.zeros((), x.dtype) if b.zero == "plus" else signed
    return np.where(np.isnan(x), x, signed).astype(x.dtype)
