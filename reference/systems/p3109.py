"""IEEE P3109: floats of any width, precision, sign and domain, and how numbers are projected to them.

A format is what its four parameters say: there is one NaN and one zero, and an extended format has infinities.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import Real, formula
from halfeven.reference.minifloat import FLOAT_DTYPES

__all__ = ["ROUNDINGS", "SATURATIONS", "STOCHASTIC", "Format", "Projection", "decode", "project"]

STOCHASTIC = ("StochasticA", "StochasticB", "StochasticC")
ROUNDINGS = (
    "NearestTiesToEven",
    "NearestTiesToAway",
    "TowardZero",
    "TowardPositive",
    "TowardNegative",
    "ToOdd",
    *STOCHASTIC,
)
SATURATIONS = ("SatFinite", "SatPropagate", "OvfInf")
_WIDTHS = range(2, 17)
_BYTE = 8
_LARGEST_BIAS = 1022  # of those that a float64 holds, one that leaves room for the mantissa's bits
_MOST_BITS = 31


@dataclass(frozen=True)
class Format:
    """A format of P3109.

    Attributes:
        width: bits of a code, 2 to 16.
        precision: bits of a significand, the leading one among them: 1 to ``width``, below it where there is a sign.
        signed: whether it has negative numbers; NaN is then the code of the sign alone, else the last code.
        extended: whether it has infinities, the last codes of each sign but NaN.

    Raises:
        ValueError: there is no such format, or no float64 holds its numbers.
    """

    width: int
    precision: int
    signed: bool = True
    extended: bool = True

    def __post_init__(self) -> None:
        """Refuse what is no format."""
        if self.width not in _WIDTHS:
            msg = f"width={self.width!r} is not accepted: give {_WIDTHS[0]} to {_WIDTHS[-1]}"
            raise ValueError(msg)
        if not 1 <= self.precision <= self.width - self.signed:
            msg = f"precision={self.precision!r} is not accepted: give 1 to {self.width - self.signed}"
            raise ValueError(msg)
        if self.bias > _LARGEST_BIAS:
            msg = f"precision={self.precision} is not accepted: no float64 holds an exponent of {self.bias}"
            raise ValueError(msg)
        if self.last < 1:
            msg = f"width={self.width} is not accepted: NaN and infinities leave no number but zero"
            raise ValueError(msg)

    @property
    def bias(self) -> int:
        """What the exponent field stands above the exponent."""
        return 1 << (self.width - self.precision - self.signed)

    @property
    def nan(self) -> int:
        """The code of NaN."""
        return 1 << (self.width - 1) if self.signed else (1 << self.width) - 1

    @property
    def last(self) -> int:
        """The code of the largest finite number."""
        return (1 << (self.width - self.signed)) - 1 - (not self.signed) - self.extended

    def numbers(self, magnitude: Array) -> Array:
        """The numbers of the codes from 0 to ``last``, float64."""
        field, below = magnitude >> (self.precision - 1), magnitude & (2 ** (self.precision - 1) - 1)
        significand = np.where(field > 0, below + 2 ** (self.precision - 1), below)
        numbers: Array = np.ldexp(
            significand.astype(np.float64), np.maximum(field, 1) - self.bias - (self.precision - 1)
        )
        return numbers


@dataclass(frozen=True)
class Projection(Behaviour):
    """The choices in projecting a number to a format."""

    parity: str = choice({
        "code": "takes for even what has an even code",
        "significand": "takes for even what has an even significand, of one bit none but zero",
    })  # fmt: skip
    overflow: str = choice({
        "rounding": "overflows where a number would round beyond the largest one",
        "beyond-largest": "overflows above the largest number, however near to it",
    })  # fmt: skip
    directed: str = choice({
        "largest": "gives the largest number where a directed rounding may not pass it",
        "infinity": "gives infinity for all that overflows",
    })  # fmt: skip
    # A sum of a float64 below 1/2 and of 1/2 may round to 1.
    sum: str = choice({
        "exact": "compares what is left of a step and the random number exactly",
        "rounded": "rounds the sum of what is left of a step and the random number to float64",
    })  # fmt: skip
    infinity: str = choice({
        "as-said": "keeps infinities or not as the saturation says",
        "saturated": "saturates infinities under SatPropagate too",
    })  # fmt: skip


_SOURCE = "IEEE P3109 interim report: "
_PARAMETERS = "parameters of a format; "


@formula(
    "p3109/Decode",
    equation=(
        r"x = (-1)^S \cdot 2^{E - B} \cdot (1 + 2^{1-P} T)\ \text{ if } E > 0,"
        r"\quad (-1)^S \cdot 2^{1 - B} \cdot 2^{1-P} T\ \text{ if } E = 0"
    ),
    basis=Real(),
    source=_SOURCE + _PARAMETERS + "Decode",
)
def decode(codes: Array, width: int, precision: int, *, signed: bool = True, extended: bool = True) -> Array:
    """Numbers of ``codes``, exact.

    Args:
        codes: any shape; an integer dtype.
        width, precision, signed, extended: those of ``Format``.

    Returns:
        The numbers in the shape of ``codes``, float64.

    Raises:
        TypeError: ``codes`` is not an integer array.
        ValueError: there is no such format, or a code is outside [0, 2^width).
    """
    f = Format(width, precision, signed, extended)
    if not isinstance(codes, np.ndarray | np.generic) or codes.dtype.kind not in "iu":
        msg = f"codes of dtype {getattr(codes, 'dtype', type(codes).__name__)} are not accepted: give integers"
        raise TypeError(msg)
    whole = np.asarray(codes).astype(np.int64)
    if (outside := (whole < 0) | (whole >= 2**width)).any():
        msg = f"codes={whole[outside].flat[0]} is not accepted: the format has the codes 0 to {2**width - 1}"
        raise ValueError(msg)
    negative = whole > f.nan if signed else np.zeros(whole.shape, np.bool_)
    magnitude = np.where(negative, whole - f.nan, whole)
    numbers = np.where(magnitude > f.last, np.inf, f.numbers(np.minimum(magnitude, f.last)))
    numbers = np.where(negative, -numbers, numbers)
    found: Array = np.where(whole == f.nan, np.nan, numbers)
    return found


@formula(
    "p3109/Project",
    equation=(
        r"c = \mathrm{Encode}\bigl(\mathrm{Saturate}(\mathrm{RoundToPrecision}(x))\bigr),\quad "
        r"S = |x| \cdot 2^{-E},\ E = \max(\lfloor\log_2 |x|\rfloor,\ 1 - B) - P + 1"
    ),
    basis=Real(),
    source=_SOURCE + "Project, RoundToPrecision, Saturate, Encode",
    behaviour=Projection(),
    versions={
        "gfloat-0.5": (Projection(sum="rounded"), "gfloat 0.5.2: round_ndarray and encode_ndarray, measured"),
    },
)
def project(
    b: Projection,
    x: Array,
    width: int,
    precision: int,
    *,
    signed: bool = True,
    extended: bool = True,
    rounding: str = "NearestTiesToEven",
    saturation: str = "SatFinite",
    bits: int = 0,
    random: Array | None = None,
) -> Array:
    """Codes of ``x``: rounded once to the precision, then saturated, then encoded.

    What is negative in a format without sign is taken for beyond its least number, zero; an infinity that a finite
    format is to keep is NaN.

    Args:
        x: any shape; float64, float32, float16 or bfloat16.
        width, precision, signed, extended: those of ``Format``.
        rounding: one of ``ROUNDINGS``.
        saturation: SatFinite gives the largest number for all beyond it, SatPropagate keeps infinities, OvfInf
            gives infinity where the rounding does not keep from it.
        bits: of the random numbers of a stochastic rounding, 1 to 31; else 0.
        random: those numbers, one for each element of ``x``, an integer array of its shape, 0 to 2^bits - 1.

    Returns:
        The codes in the shape of ``x``: uint8, or uint16 for more than 8 bits.

    Raises:
        TypeError: ``x`` is not an array of these dtypes, or ``random`` not one of integers.
        ValueError: there is no such format, rounding, saturation, or the random numbers do not go with them.
    """
    f = Format(width, precision, signed, extended)
    _check(x, rounding, saturation, bits, random)
    with np.errstate(all="ignore"):
        real = np.asarray(x).astype(np.float64)  # exact
    negative, magnitude = np.signbit(real), np.abs(real)
    finite = np.where(np.isfinite(magnitude), magnitude, 0.0)

    # RoundToPrecision, in codes: they go on through the binades.
    lowest = 1 - f.bias
    exponent = np.where(finite == 0, lowest, np.maximum(np.frexp(finite)[1] - 1, lowest))
    significand = np.ldexp(finite, precision - 1 - exponent)
    below = np.floor(significand)
    code = below.astype(np.int64) + ((exponent - lowest) << (precision - 1))
    odd = (code if b.parity == "code" else below.astype(np.int64)) % 2 == 1
    rest = significand - below
    drawn = np.zeros((), np.int64) if random is None else random.astype(np.int64)
    if b.sum == "rounded" and rounding in ("StochasticA", "StochasticB"):
        code += _passes_one(rest, drawn, rounding, bits, x.dtype)
    else:
        code += _away(rest, odd, negative, rounding, bits, drawn)

    # Saturate.
    too_large = np.isinf(real) | (code > f.last)
    if b.overflow == "beyond-largest":
        too_large |= finite > float(f.numbers(np.asarray(f.last)))
    beyond = _keeps(b, rounding, saturation, negative, np.isinf(real))
    below_zero = negative & (not signed) & ((code > 0) | too_large)
    code = np.where(too_large, f.last, code)
    code = np.where(below_zero, 0, code)

    # Encode.
    if signed:
        code = np.where(negative & (code > 0), code + f.nan, code)
    infinity = np.where(negative & signed, f.nan, 0) + f.last + 1 if extended else np.asarray(f.nan)
    code = np.where(too_large & ~below_zero & ~beyond, infinity, code)
    code = np.where(below_zero & ~beyond, f.nan, code)
    code = np.where(np.isnan(real), f.nan, code)
    codes: Array = code.astype(np.uint8 if width <= _BYTE else np.uint16)
    return codes


def _away(rest: Array, odd: Array, negative: Array, rounding: str, bits: int, random: Array) -> Array:
    """RoundAway: whether a magnitude goes to the number above it; ``rest`` of a step is left, the code below odd."""
    scaled = rest * 2**bits  # exact
    up: Array
    match rounding:
        case "NearestTiesToEven":
            up = (rest > 0.5) | ((rest == 0.5) & odd)  # noqa: PLR2004 - half a step
        case "NearestTiesToAway":
            up = rest >= 0.5  # noqa: PLR2004 - half a step
        case "TowardPositive":
            up = (rest > 0) & ~negative
        case "TowardNegative":
            up = (rest > 0) & negative
        case "ToOdd":
            up = (rest > 0) & ~odd
        case "StochasticA":
            up = np.floor(scaled) + random >= 2**bits
        case "StochasticB":
            up = np.floor(2 * scaled) + (2 * random + 1) >= 2 ** (bits + 1)
        case "StochasticC":
            up = np.rint(scaled) + random >= 2**bits
        case _:  # TowardZero
            up = np.zeros(rest.shape, np.bool_)
    return up


def _passes_one(rest: Array, random: Array, rounding: str, bits: int, dtype: np.dtype[Any]) -> Array:
    """The same of a stochastic rounding, by a sum in float64 of a random number in the dtype of x."""
    half = rounding == "StochasticB"
    with np.errstate(all="ignore"):
        drawn = (2 * random + 1 if half else random).astype(dtype) * dtype.type(2.0 ** -(bits + half))
    up: Array = rest + drawn >= 1
    return up


def _keeps(b: Projection, rounding: str, saturation: str, negative: Array, infinite: Array) -> Array:
    """Whether what lies beyond the last number becomes that number."""
    match saturation:
        case "SatFinite":
            return np.ones(negative.shape, np.bool_)
        case "SatPropagate":
            return ~infinite | (b.infinity == "saturated")
    stops = {"TowardZero": True, "TowardNegative": ~negative, "TowardPositive": negative}
    kept: Array = ~infinite & (stops.get(rounding, False) if b.directed == "largest" else False)
    return kept


def _check(x: Array, rounding: str, saturation: str, bits: int, random: Array | None) -> None:
    if not isinstance(x, np.ndarray | np.generic) or x.dtype not in FLOAT_DTYPES.values():
        msg = f"x of dtype {getattr(x, 'dtype', type(x).__name__)} is not accepted: give one of {tuple(FLOAT_DTYPES)}"
        raise TypeError(msg)
    for name, value, accepted in (("rounding", rounding, ROUNDINGS), ("saturation", saturation, SATURATIONS)):
        if value not in accepted:
            msg = f"{name}={value!r} is not accepted: give one of {', '.join(accepted)}"
            raise ValueError(msg)
    if rounding not in STOCHASTIC:
        if bits or random is not None:
            msg = f"bits={bits} is not accepted: {rounding} takes no random numbers"
            raise ValueError(msg)
        return
    if not 1 <= bits <= _MOST_BITS:
        msg = f"bits={bits} is not accepted: {rounding} takes 1 to {_MOST_BITS}"
        raise ValueError(msg)
    if not isinstance(random, np.ndarray | np.generic) or random.dtype.kind not in "iu":
        msg = f"random={random!r} is not accepted: give an array of integers"
        raise TypeError(msg)
    if random.shape != x.shape or (random.size and not 0 <= int(random.min()) <= int(random.max()) < 2**bits):
        msg = f"random is not accepted: give integers 0 to {2**bits - 1}, as many as x has elements"
        raise ValueError(msg)
