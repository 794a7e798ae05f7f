"""torch: the choose_qparams of ``torch.ops.quantized_decomposed``. Its document has no equations: all is measured.

The scale is real per code; zero points are codes.
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS

__all__ = [
    "ChosenScale",
    "ChosenScaleAndZeroPoint",
    "SymmetricQparams",
    "TokenQparams",
    "TokenScale",
    "choose_qparams",
    "choose_qparams_per_token",
    "choose_qparams_per_token_asymmetric",
    "choose_qparams_symmetric",
]

_FLOATS = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_CODES = ("uint8", "int8", "uint16", "int16", "int32", "float8_e5m2", "float8_e4m3fn")
_SOURCE = "torch 2.13.0, torch.ops.quantized_decomposed, measured"


_DIVISION = {
    "divide": "divides by the number of steps",
    "reciprocal": "multiplies by the rounded reciprocal of the number of steps",
}


@dataclass(frozen=True)
class ChosenScale(Behaviour):
    """The choices in choosing a scale of a tensor."""

    division: str = choice(_DIVISION)
    rounded: str = choice(
        {
            "input": "rounds the scale to the input's dtype before eps takes part",
            "float32": "keeps the scale in float32",
        }
    )
    eps: str = choice(
        {
            "least": "takes eps for the least scale",
            "added": "adds eps to the scale",
            "unused": "limits no scale",
        }
    )


@dataclass(frozen=True)
class SymmetricQparams(ChosenScale):
    """The choices in choosing it symmetrically."""

    steps: str = choice(
        {
            "half": "maps the largest magnitude to half the steps of the grid",
            "upper-end": "maps the largest magnitude to qmax",
        }
    )
    zero_point: str = choice(
        {
            "by-dtype": "gives uint8 the zero point 128",
            "middle": "gives uint8 the middle of its ends as its zero point",
            "zero": "gives every dtype the zero point 0",
        }
    )


@dataclass(frozen=True)
class ChosenScaleAndZeroPoint(ChosenScale):
    """The choices in choosing a scale and a zero point."""

    range: str = choice(
        {
            "with-zero": "widens the range to hold zero",
            "own": "takes the range as it is",
        }
    )
    steps: str = choice(
        {
            "intervals": "takes qmax - qmin for the steps of the grid",
            "codes": "takes qmax - qmin + 1 for the steps of the grid",
        }
    )
    rounding: str = roundings("the quotient of the minimum and the scale")
    quotient: str = choice(
        {
            "int32": "casts the rounded quotient to int32, and lets qmin less it wrap",
            "unbounded": "subtracts the rounded quotient from qmin without bound, and takes qmin for NaN",
        }
    )
    zero_point: str = choice(
        {
            "grid": "limits the zero point to the grid",
            "free": "does not limit the zero point to the grid",
        }
    )


@dataclass(frozen=True)
class TokenScale(Behaviour):
    """The choices in choosing a symmetric scale per token."""

    division: str = choice(_DIVISION)
    steps: float = choice(
        {
            127.0: "maps the largest magnitude to 127",
            127.5: "maps the largest magnitude to 127.5, half the steps of the grid",
        }
    )
    least: str = choice(
        {
            "magnitude": "takes 1e-5 for the least magnitude",
            "scale": "takes 1e-5 for the least scale",
        }
    )
    float16: str = choice(
        {
            "float32": "computes float16 in float32, and returns that",
            "input": "computes float16 in float16",
        }
    )


@dataclass(frozen=True)
class TokenQparams(Behaviour):
    """The choices in choosing a scale and a zero point per token."""

    range: str = choice(
        {
            "with-zero": "widens the range to hold zero",
            "own": "takes the range as it is",
        }
    )
    division: str = choice(_DIVISION)
    computed: str = choice(
        {
            "input": "rounds every operation to the input's dtype",
            "float32": "computes in float32, and rounds to the input's dtype nowhere",
        }
    )
    eps: str = choice(
        {
            "least": "takes 2^-23 for the least scale",
            "unused": "limits no scale",
        }
    )
    end: str = choice(
        {
            "larger-error": "takes the zero point from the end of the range with the larger error",
            "minimum": "takes the zero point from the minimum",
            "maximum": "takes the zero point from the maximum",
        }
    )
    rounding: str = roundings("the zero point")
    nan: str = choice(
        {
            "int64": "gives a zero point of NaN the least int64",
            "zero": "gives a zero point of NaN 0",
        }
    )


def _accept(x: Array, qmin: int, qmax: int, dtype: str) -> None:
    if x.dtype not in _FLOATS or dtype not in _CODES:
        msg = (
            f"input of {x.dtype.name}, dtype={dtype!r} are not accepted: give a float of at most 32 bits, and {_CODES}"
        )
        raise AssertionError(msg)
    if not qmin <= 0 <= qmax or qmin >= qmax:
        msg = f"qmin={qmin}, qmax={qmax} are not accepted: zero lies between them"
        raise AssertionError(msg)
    if not x.size:
        msg = f"input of shape {x.shape} is not accepted: give at least one element"
        raise RuntimeError(msg)


@formula(
    "torch/quantized_decomposed.choose_qparams",
    equation=(
        r"s = \max(\frac{\max(x, 0) - \min(x, 0)}{q_{max} - q_{min}}, \epsilon),"
        r"\quad z = \mathrm{clamp}(q_{min} - \mathrm{round}(\min(x, 0) / s), q_{min}, q_{max})"
    ),
    basis=AsComputed(dtype="the input's for range and quotient; float32 from eps on"),
    source=_SOURCE + ": choose_qparams.tensor",
    behaviour=ChosenScaleAndZeroPoint(),
)
def choose_qparams(
    b: ChosenScaleAndZeroPoint,
    input: Array,  # noqa: A002 - the library's own word
    qmin: int,
    qmax: int,
    eps: float,
    dtype: str,
) -> tuple[Array, Array]:
    """One scale, float64 of a float32, and one zero point, of shape (1,).

    The rounded quotient is an int32, -2^31 where it does not fit, and qmin minus it wraps.

    Args:
        input: float32, float16 or bfloat16, any shape.
        qmin: the lowest code, at most 0.
        qmax: the highest code, at least 0.
        eps: the smallest scale, in reals.
        dtype: of the codes; it does not limit qmin and qmax.

    Raises:
        AssertionError: a dtype that is not accepted, or ends without zero between them.
        RuntimeError: no element.
    """
    _accept(input, qmin, qmax, dtype)
    with np.errstate(all="ignore"):
        low, high = np.min(input), np.max(input)
        if b.range == "with-zero":
            low, high = np.minimum(low, np.zeros((), input.dtype)), np.maximum(high, np.zeros((), input.dtype))
        scale = _scale(b, np.asarray(high - low), qmax - qmin + (b.steps == "codes"), eps)
        r = ROUNDINGS[b.rounding](low.astype(np.float32) / scale).astype(np.float64)
        if b.quotient == "int32":
            int32 = np.where(np.abs(r) < 2.0**31, r, -(2.0**31))
            zero_point = (qmin - int32 + 2.0**31) % 2.0**32 - 2.0**31
        else:
            zero_point = np.where(np.isnan(r), qmin, qmin - r)
        zero_point = np.clip(zero_point, qmin, qmax) if b.zero_point == "grid" else zero_point
        return scale.astype(np.float64).reshape(1), zero_point.astype(np.int64).reshape(1)


@formula(
    "torch/quantized_decomposed.choose_qparams_symmetric",
    equation=r"s = \max(\frac{\max |x|}{(q_{max} - q_{min}) / 2}, \epsilon)",
    basis=AsComputed(dtype="the input's for the quotient; float32 from eps on"),
    source=_SOURCE + ": choose_qparams_symmetric.tensor",
    behaviour=SymmetricQparams(),
)
def choose_qparams_symmetric(
    b: SymmetricQparams,
    input: Array,  # noqa: A002 - the library's own word
    qmin: int,
    qmax: int,
    eps: float,
    dtype: str,
) -> tuple[Array, Array]:
    """One scale and one zero point, 128 for uint8, else 0. Arguments, results and errors as in ``choose_qparams``."""
    _accept(input, qmin, qmax, dtype)
    with np.errstate(all="ignore"):
        amax = np.asarray(np.max(np.abs(input)))
        scale = _scale(b, amax, qmax if b.steps == "upper-end" else (qmax - qmin) / 2, eps)
    of_uint8 = {"by-dtype": 128, "middle": (qmin + qmax) // 2, "zero": 0}[b.zero_point]
    return scale.astype(np.float64).reshape(1), np.asarray([of_uint8 if dtype == "uint8" else 0])


def _scale(b: ChosenScale, width: Array, steps: float, eps: float) -> Array:
    """The scale of a range or a magnitude, in the input's dtype, as float32."""
    scale, least = _over(b.division, width, np.float32(steps)), np.float32(eps)
    scale = scale.astype(width.dtype) if b.rounded == "input" else scale
    limited = {"least": np.maximum(scale, least), "added": scale + least, "unused": scale}
    return np.asarray(limited[b.eps])


def _over(division: str, width: Array, steps: Any) -> Array:
    return np.asarray(width / steps if division == "divide" else width * (1 / steps))


@formula(
    "torch/quantized_decomposed.choose_qparams_per_token",
    equation=r"s = \max(\max |x|, 10^{-5}) / 127,\quad z = 0",
    basis=AsComputed(dtype="the input's; float32 for float16"),
    source=_SOURCE + ": choose_qparams_per_token",
    behaviour=TokenScale(),
)
def choose_qparams_per_token(
    b: TokenScale,
    input: Array,  # noqa: A002 - the library's own word
    dtype: str,
) -> tuple[Array, Array]:
    """One scale and one zero point, 0, for every vector along the last dimension, which both keep with length 1.

    Args:
        input: float32, float16, bfloat16 or float64, any shape.
        dtype: "int8".

    Returns:
        Both of the input's dtype, or of float32 for float16.

    Raises:
        Exception: another ``dtype``.
        IndexError: the last dimension has no element.
    """
    if input.ndim and input.shape[-1] == 0:
        msg = f"input of shape {input.shape} is not accepted: its last dimension is empty"
        raise IndexError(msg)
    if dtype != "int8":
        msg = f"dtype={dtype!r} is not accepted: give 'int8'"
        raise Exception(msg)  # noqa: TRY002 - the library's own type
    with np.errstate(all="ignore"):
        held = np.dtype(np.float32) if input.dtype == np.float16 and b.float16 == "float32" else input.dtype
        least = np.asarray(1e-5).astype(held)
        amax = np.maximum(np.max(np.abs(input), axis=-1, keepdims=True), least)  # no scale is limited by this alone
        scales = _over(b.division, amax, np.asarray(b.steps, np.promote_types(held, np.float32))).astype(held)
        scales = np.maximum(scales, least) if b.least == "scale" else scales
    return scales, np.zeros(scales.shape, held)


@formula(
    "torch/quantized_decomposed.choose_qparams_per_token_asymmetric",
    equation=(
        r"s = \max(\frac{M - m}{255}, 2^{-23}),\quad z = \mathrm{round}(\mathrm{clamp}(-128 - m / s, -128, 127))"
        r"\ \text{if}\ (-128 + m / s) + (127 + M / s) > 0,"
        r"\ \text{else}\ \mathrm{round}(\mathrm{clamp}(127 - M / s, -128, 127))"
    ),
    basis=AsComputed(dtype="the input's"),
    source=_SOURCE + ": choose_qparams_per_token_asymmetric",
    behaviour=TokenQparams(),
)
def choose_qparams_per_token_asymmetric(
    b: TokenQparams,
    input: Array,  # noqa: A002 - the library's own word
    dtype: str,  # noqa: ARG001 - the library does not look at it
) -> tuple[Array, Array]:
    """One scale and one zero point for every vector along the last dimension, which both keep with length 1.

    m and M are the minimum and the maximum, widened to hold zero. The zero point of NaN is -2^63.

    Args:
        input: float32, float16 or bfloat16, any shape.
        dtype: any; the codes are those of int8.

    Returns:
        scale: float64 that holds a number of the input's dtype; zero point: int64.

    Raises:
        IndexError: the last dimension has no element.
    """
    if input.ndim and input.shape[-1] == 0:
        msg = f"input of shape {input.shape} is not accepted: its last dimension is empty"
        raise IndexError(msg)
    t = input.dtype if b.computed == "input" else np.dtype(np.float32)

    def rounded(v: Array) -> Array:
        return np.asarray(v, t)

    with np.errstate(all="ignore"):
        x = input.astype(np.float32)
        low, high = np.min(x, axis=-1, keepdims=True), np.max(x, axis=-1, keepdims=True)
        if b.range == "with-zero":
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        scale = rounded(_over(b.division, rounded(high - low), np.float32(255)))
        scale = np.maximum(scale, rounded(np.asarray(2.0**-23))) if b.eps == "least" else scale
        descaled_min, descaled_max = rounded(low / scale), rounded(high / scale)
        min_error, max_error = rounded(-128 + descaled_min), rounded(127 + descaled_max)
        from_min, from_max = rounded(-128 - descaled_min), rounded(127 - descaled_max)
        larger = np.where(rounded(min_error + max_error) > 0, from_min, from_max)
        zero_point = {"larger-error": larger, "minimum": from_min, "maximum": from_max}[b.end]
        zero_point = ROUNDINGS[b.rounding](np.clip(zero_point, np.float32(-128), np.float32(127)))
        nan = -(2.0**63) if b.nan == "int64" else 0.0
        codes = np.where(np.isnan(zero_point), nan, zero_point).astype(np.int64)
    return scale.astype(np.float64), codes
