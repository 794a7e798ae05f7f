"""Small float formats: a number to its code with one rounding, a code to its number exactly. Real per code.

A code is sign | exponent field | mantissa field, in the low bits of a uint8 or uint16.
"""

from dataclasses import dataclass
from typing import Any, Literal, get_args

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import Array
from halfeven.reference.rounding import ROUNDINGS

Specials = Literal["ieee", "fn", "fnuz", "finite", "e8m0"]
Overflow = Literal["saturate", "special"]

__all__ = [
    "FLOAT_DTYPES",
    "FLOAT_FORMATS",
    "FloatFormat",
    "Named",
    "Overflow",
    "Specials",
    "cast",
    "decode",
    "encode",
    "floatx",
    "format_of",
]

FLOAT_DTYPES: dict[str, "np.dtype[Any]"] = {
    **{name: np.dtype(name) for name in ("float64", "float32", "float16")},
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
}
_LARGEST_BITS = 16


@dataclass(frozen=True)
class FloatFormat:
    """A float format of at most 16 bits, all of whose numbers a float64 holds.

    Attributes:
        name: what it is called.
        exponent_bits: width of the exponent field, at least 1.
        mantissa_bits: width of the mantissa field.
        bias: what the exponent field stands above the exponent; field 0 holds the subnormals, of exponent 1 - bias.
        specials: "ieee": the last exponent field is infinity and NaN; "fn": the code of all ones is NaN, no infinity;
            "fnuz": the code of -0 is NaN, no infinity and no -0; "finite": none of them; "e8m0": powers of two
            without sign, zero or subnormals (field f is 2^(f - bias)), all ones is NaN.

    Raises:
        TypeError: a width or the bias is no int.
        ValueError: there is no such format.
    """

    name: str
    exponent_bits: int
    mantissa_bits: int
    bias: int
    specials: Specials

    def __post_init__(self) -> None:
        """Refuse what is no format."""
        for name in ("exponent_bits", "mantissa_bits", "bias"):
            if type(value := getattr(self, name)) is not int:
                msg = f"{name}={value!r} is not accepted: give an int"
                raise TypeError(msg)
        if self.specials not in get_args(Specials):
            msg = f"specials={self.specials!r} is not accepted: give one of {get_args(Specials)}"
            raise ValueError(msg)
        e, m = self.exponent_bits, self.mantissa_bits
        if e < 1 or m < 0 or self.bits > _LARGEST_BITS:
            msg = f"exponent_bits={e}, mantissa_bits={m} is not accepted: at least 1 and 0, {_LARGEST_BITS} bits in all"
            raise ValueError(msg)
        if (self.specials == "ieee" and m == 0) or (self.specials == "e8m0" and m > 0):
            msg = f"mantissa_bits={m} is not accepted: specials={self.specials!r} needs {'none' if m else 'one'}"
            raise ValueError(msg)
        if self.max_code < (self.specials != "e8m0"):
            msg = f"exponent_bits={e}, mantissa_bits={m} is not accepted: specials={self.specials!r} leaves no number"
            raise ValueError(msg)
        if self.lowest_exponent - m < -1074 or (self.max_code >> m) - self.bias > 1023:  # noqa: PLR2004 - the ends of float64
            msg = f"bias={self.bias} is not accepted: a float64 must hold every number of the format"
            raise ValueError(msg)

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return (self.specials != "e8m0") + self.exponent_bits + self.mantissa_bits

    @property
    def max_code(self) -> int:
        """The code of the largest finite number."""
        match self.specials:
            case "ieee":
                return (((1 << self.exponent_bits) - 1) << self.mantissa_bits) - 1
            case "fn" | "e8m0":
                return (1 << (self.exponent_bits + self.mantissa_bits)) - 2
            case "fnuz" | "finite":
                return (1 << (self.exponent_bits + self.mantissa_bits)) - 1

    @property
    def nan_code(self) -> int | None:
        """The code of NaN: of IEEE formats the quiet one without payload; without the sign bit. None without NaN."""
        match self.specials:
            case "ieee":
                return self.max_code + 1 + (1 << (self.mantissa_bits - 1))
            case "fn" | "fnuz" | "e8m0":
                return self.max_code + 1
        return None

    @property
    def max(self) -> float:
        """The largest finite number."""
        return float(_numbers(np.asarray(self.max_code), self))

    @property
    def smallest_normal(self) -> float:
        """The smallest positive number with all its mantissa bits."""
        return float(np.ldexp(1.0, self.lowest_exponent))

    @property
    def smallest(self) -> float:
        """The smallest positive number: a subnormal, where there are mantissa bits."""
        return float(_numbers(np.asarray(0 if self.specials == "e8m0" else 1), self))

    @property
    def lowest_exponent(self) -> int:
        """The exponent of the smallest normal number."""
        return -self.bias if self.specials == "e8m0" else 1 - self.bias


def _of(name: str, exponent_bits: int, mantissa_bits: int, bias: int, specials: Specials) -> tuple[str, FloatFormat]:
    return name, FloatFormat(name, exponent_bits, mantissa_bits, bias, specials)


FLOAT_FORMATS: dict[str, FloatFormat] = dict(
    (
        _of("float8_e4m3fn", 4, 3, 7, "fn"),
        _of("float8_e4m3", 4, 3, 7, "ieee"),
        _of("float8_e4m3b11fnuz", 4, 3, 11, "fnuz"),
        _of("float8_e4m3fnuz", 4, 3, 8, "fnuz"),
        _of("float8_e3m4", 3, 4, 3, "ieee"),
        _of("float8_e5m2", 5, 2, 15, "ieee"),
        _of("float8_e5m2fnuz", 5, 2, 16, "fnuz"),
        _of("float8_e8m0fnu", 8, 0, 127, "e8m0"),
        _of("float6_e3m2fn", 3, 2, 3, "finite"),
        _of("float6_e2m3fn", 2, 3, 1, "finite"),
        _of("float4_e2m1fn", 2, 1, 1, "finite"),
        _of("bfloat16", 8, 7, 127, "ieee"),
        _of("float16", 5, 10, 15, "ieee"),
    )
)

Named = FloatFormat | str | tuple[int, int, int, Specials]


def floatx(exponent_bits: int, mantissa_bits: int) -> FloatFormat:
    """The finite format of these widths with bias 2^(exponent_bits - 1) - 1; errors as in ``FloatFormat``."""
    name = f"float{1 + exponent_bits + mantissa_bits}_e{exponent_bits}m{mantissa_bits}"
    return FloatFormat(name, exponent_bits, mantissa_bits, 2 ** (exponent_bits - 1) - 1, "finite")


def format_of(format: Named) -> FloatFormat:  # noqa: A002 - the documents' own word
    """The format that a name of ``FLOAT_FORMATS`` or a tuple (exponent_bits, mantissa_bits, bias, specials) means.

    Raises:
        TypeError: it is none of these types, or the tuple's numbers are no ints.
        ValueError: there is no such format.
    """
    given: Any = format  # whatever a caller without types hands over
    match given:
        case FloatFormat():
            return given
        case str() if given in FLOAT_FORMATS:
            return FLOAT_FORMATS[given]
        case str():
            msg = f"format={format!r} is not accepted: give one of {tuple(FLOAT_FORMATS)}"
            raise ValueError(msg)
        case (e, m, bias, specials):
            try:
                return FloatFormat(f"e{e}m{m}, bias {bias}, {specials}", e, m, bias, specials)
            except (TypeError, ValueError) as error:
                msg = f"format={format!r}: {error}"
                raise type(error)(msg) from None
    msg = f"format={format!r} is not accepted: give a name or (exponent_bits, mantissa_bits, bias, specials)"
    raise TypeError(msg)


def encode(
    x: Array,
    format: Named,  # noqa: A002 - the documents' own word
    *,
    overflow: Overflow,
    rounding: str = "half-even",
) -> Array:
    """Codes of ``x``: the nearest number of ``format``, one rounding, ties to the even code.

    What rounds beyond the largest number, and an infinity, becomes the largest number ("saturate"), or an infinity and
    without one NaN ("special"). The sign of a zero is kept where the format has -0, and so is that of NaN, whose code
    is otherwise one (measured). e8m0 has neither zero nor sign: zero, negative numbers and -inf give NaN under either
    policy, and a positive number too small gives 2^-bias, the nearest (no document says: measured on ml_dtypes).

    Args:
        x: any shape; float64, float32, float16 or bfloat16.
        format: a ``FloatFormat``, a name of ``FLOAT_FORMATS``, or (exponent_bits, mantissa_bits, bias, specials).
        overflow: "saturate" or "special"; a finite format has only the former.
        rounding: a name of ``ROUNDINGS``, for implementations that follow another rule.

    Returns:
        The codes in the shape of ``x``: uint8, or uint16 for more than 8 bits.

    Raises:
        TypeError: ``x`` is not an array of these dtypes, or ``format`` is none of these types.
        ValueError: no such format, policy or rounding; or ``x`` holds NaN and the format does not.
    """
    f = format_of(format)
    if rounding not in ROUNDINGS:
        msg = f"rounding={rounding!r} is not accepted: give one of {', '.join(ROUNDINGS)}"
        raise ValueError(msg)
    if not isinstance(x, np.ndarray | np.generic) or x.dtype not in FLOAT_DTYPES.values():
        msg = f"x of dtype {getattr(x, 'dtype', type(x).__name__)} is not accepted: give one of {tuple(FLOAT_DTYPES)}"
        raise TypeError(msg)
    if overflow not in (accepted := ("saturate",) if f.specials == "finite" else get_args(Overflow)):
        msg = f"overflow={overflow!r} is not accepted: {f.name} takes one of {accepted}"
        raise ValueError(msg)
    with np.errstate(all="ignore"):
        real = np.asarray(x).astype(np.float64)  # exact
    is_nan, negative, magnitude = np.isnan(real), np.signbit(real), np.abs(real)
    if f.nan_code is None and is_nan.any():
        msg = f"x={float(real[is_nan][0])} is not accepted: {f.name} has no NaN"
        raise ValueError(msg)

    # The code of the number below, in steps of 2^(exponent - mantissa_bits), and what is left of a step: both exact.
    finite = np.where(np.isfinite(magnitude), magnitude, 0.0)
    fraction, exponent = np.frexp(finite)
    exponent = np.where(fraction == 0, f.lowest_exponent, np.maximum(exponent - 1, f.lowest_exponent))
    steps = np.ldexp(finite, f.mantissa_bits - exponent)
    below = np.floor(steps)
    code = below.astype(np.int64) + ((exponent - f.lowest_exponent) << f.mantissa_bits) - (f.specials == "e8m0")
    code += _upwards(steps - below, code % 2 == 1, negative, rounding)

    too_large = (code > f.max_code) | np.isinf(magnitude)
    beyond = f.max_code if overflow == "saturate" else f.max_code + 1  # the code after the last: infinity, or else NaN
    code = np.where(too_large, beyond, code)
    if f.nan_code is not None:
        code = np.where(is_nan, f.nan_code, code)
    match f.specials:
        case "e8m0":
            code = np.where(negative | (real == 0), f.max_code + 1, np.maximum(code, 0))
        case "fnuz":
            code = np.where(negative & (code != 0) & (code <= f.max_code), code | (1 << (f.bits - 1)), code)
        case "ieee" | "fn" | "finite":
            code = np.where(negative, code | (1 << (f.bits - 1)), code)
    codes: Array = code.astype(np.uint8 if f.bits <= 8 else np.uint16)  # noqa: PLR2004 - bits of a uint8
    return codes


def decode(codes: Array, format: Named, dtype: str = "float32") -> Array:  # noqa: A002 - the documents' own word
    """Numbers of ``codes``, exact.

    Args:
        codes: any shape; any integer dtype, the bits above the format's are zero.
        format: as in ``encode``.
        dtype: "float64", "float32", "float16" or "bfloat16"; it must hold every number of the format.

    Returns:
        The numbers in the shape of ``codes``, as ``dtype``.

    Raises:
        TypeError: ``codes`` is not an integer array, or ``format`` is of no accepted type.
        ValueError: no such format or dtype, a dtype that is too narrow, or a code outside [0, 2^bits).
    """
    f = format_of(format)
    if not isinstance(codes, np.ndarray | np.generic) or codes.dtype.kind not in "iu":
        msg = f"codes of dtype {getattr(codes, 'dtype', type(codes).__name__)} are not accepted: give integers"
        raise TypeError(msg)
    if dtype not in FLOAT_DTYPES:
        msg = f"dtype={dtype!r} is not accepted: give one of {tuple(FLOAT_DTYPES)}"
        raise ValueError(msg)
    info = ml_dtypes.finfo(FLOAT_DTYPES[dtype])  # type: ignore[no-untyped-call]
    if f.mantissa_bits > info.nmant or f.max > float(info.max) or f.smallest < float(info.smallest_subnormal):
        msg = f"dtype={dtype!r} is not accepted: it does not hold every number of {f.name}"
        raise ValueError(msg)
    whole = np.asarray(codes)
    if (outside := (whole < 0) | (whole >= 2**f.bits)).any():
        msg = f"codes={whole[outside].flat[0]} is not accepted: {f.name} has the codes 0 to {2**f.bits - 1}"
        raise ValueError(msg)
    with np.errstate(all="ignore"):
        numbers: Array = _numbers(whole.astype(np.int64), f).astype(FLOAT_DTYPES[dtype])
    return numbers


def _upwards(rest: Array, odd: Array, negative: Array, rounding: str) -> Array:
    """Whether a magnitude goes to the number above it: ``rest`` of a step is left, the code below is ``odd``."""
    match rounding:
        case "toward-zero":
            return np.zeros(rest.shape, np.bool_)
        case "floor":
            return (rest > 0) & negative
        case "ceil":
            return (rest > 0) & ~negative
    ties = {"half-even": odd, "half-away": True, "half-to-zero": False, "half-up": ~negative, "half-down": negative}
    up: Array = (rest > 0.5) | ((rest == 0.5) & ties[rounding])  # noqa: PLR2004 - half a step
    return up


def cast(x: Array, format: Named, *, overflow: Overflow) -> Array:  # noqa: A002 - the documents' own word
    """``x`` rounded to ``format``, in its own dtype, which must hold every number of the format.

    Arguments and errors as in ``encode`` and ``decode``.
    """
    return decode(encode(x, format, overflow=overflow), format, x.dtype.name)


def _numbers(code: Array, f: FloatFormat) -> Array:
    """The numbers of int64 codes, as float64."""
    field = (code >> f.mantissa_bits) & (2**f.exponent_bits - 1)
    mantissa = code & (2**f.mantissa_bits - 1)
    if f.specials == "e8m0":
        return np.where(code > f.max_code, np.nan, np.ldexp(1.0, field - f.bias))
    significand = np.where(field > 0, 2**f.mantissa_bits + mantissa, mantissa)
    real = np.ldexp(significand, np.maximum(field, 1) - f.bias - f.mantissa_bits)
    negative = code >> (f.bits - 1) == 1
    magnitude = code & (2 ** (f.bits - 1) - 1)
    match f.specials:
        case "ieee":
            real = np.where(magnitude == f.max_code + 1, np.inf, np.where(magnitude > f.max_code, np.nan, real))
        case "fn":
            real = np.where(magnitude > f.max_code, np.nan, real)
        case "fnuz":
            real = np.where(negative & (magnitude == 0), np.nan, real)
    signed: Array = np.where(negative, -real, real)
    return signed
