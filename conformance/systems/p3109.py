"""IEEE P3109: what is required of its formats, the calls that decide it, and how gfloat answers."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.entry import Backends, Entry
from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, documented, expected, silent
from halfeven.reference.blocks import Array
from halfeven.reference.systems.p3109 import ROUNDINGS, SATURATIONS, STOCHASTIC, Format

__all__ = ["ANSWERS", "BACKENDS"]

BACKENDS: Backends = {
    "gfloat": Entry("p3109", "gfloat", "formats of P3109, in NumPy", extra="gfloat", imports="gfloat"),
}

_DECODE, _PROJECT = "p3109/Decode", "p3109/Project"
_REPORT = "IEEE P3109 interim report: "
_SIGNS = ((True, True), (True, False), (False, True), (False, False))
_BITS = 3


def _formats(*widths: int) -> Iterator[dict[str, Any]]:
    """Every precision, sign and domain of some widths."""
    for width in widths:
        for precision in range(1, width + 1):
            for signed, extended in _SIGNS:
                given: dict[str, Any] = {"width": width, "precision": precision, "signed": signed, "extended": extended}
                try:
                    Format(**given)
                except ValueError:
                    continue
                yield given


def _numbers(given: dict[str, Any]) -> Array:
    f = Format(**given)
    return f.numbers(np.arange(f.last + 1))


def _around(a: Array) -> Array:
    """Each value, and the next ones of its dtype on both sides."""
    return step(a[:, None], np.arange(-1, 2)).ravel()


def _asked(given: dict[str, Any], dtype: Any = np.float64) -> Array:
    """Every number, what is midway to the next, and what lies beyond the last, of either sign where there is one."""
    numbers = _numbers(given)
    last = numbers[-1]
    gap = last - (numbers[-2] if len(numbers) > 1 else 0)
    ties = np.append((numbers[1:] + numbers[:-1]) / 2, last + gap / 2)
    x = np.concatenate([_around(numbers[1:]), _around(ties), _around(ties / 2), [last + gap, 4 * last]])
    with np.errstate(over="ignore"):
        x = x.astype(dtype)
    return np.concatenate([x, -x]) if given["signed"] else x


@documented(_DECODE, _REPORT + "parameters of a format; Decode")
def every_code() -> Calls:
    """A code is the number of its exponent field and trailing significand; zero, NaN and, in an extended format, the
    infinities have one code each, and NaN that of the sign alone or, without a sign, the last."""
    for given in _formats(2, 3, 4, 5, 6, 8):
        yield {"codes": np.arange(2 ** given["width"], dtype=np.uint8), **given}
    for given in _formats(11, 16):
        codes = np.arange(0, 2 ** given["width"], 31)
        ends = np.array([0, 1, 2, 2 ** (given["width"] - 1), 2 ** given["width"] - 1])
        near = np.clip((ends[:, None] + np.arange(-2, 3)).ravel(), 0, 2 ** given["width"] - 1)
        yield {"codes": np.concatenate([codes, near]).astype(np.uint16), **given}


@silent(_DECODE, "parameters of a format: nothing of errors")
def refusals() -> Calls:
    """What comes of what is no format, or no code."""
    codes = np.arange(4, dtype=np.uint8)
    for width, precision in ((1, 1), (17, 12), (8, 0), (8, 8), (2, 1), (2, 2), (14, 1)):
        yield {"codes": codes, "width": width, "precision": precision}
    yield {"codes": codes, "width": 8, "precision": 9, "signed": False}
    for bad in (np.array([3, 16]), np.array([-1]), np.array([1.0]), 3):
        yield {"codes": bad, "width": 4, "precision": 2}
    yield {"codes": np.arange(16, dtype=np.uint8), "width": 4, "precision": 2}


def _roundings(names: tuple[str, ...]) -> Calls:
    for given in _formats(3, 4, 5, 8):
        for rounding in names:
            yield {"x": _asked(given), **given, "rounding": rounding}


@documented(_PROJECT, _REPORT + "RoundToPrecision")
def ties_to_even() -> Calls:
    """The nearest number is taken, of two the one with the even code."""
    yield from _roundings(("NearestTiesToEven",))


@documented(_PROJECT, _REPORT + "RoundToPrecision")
def other_roundings() -> Calls:
    """Ties go away from zero; or the number above, below, toward zero is taken; or that with the odd code, if any is
    inexact."""
    yield from _roundings(("NearestTiesToAway", "TowardZero", "TowardPositive", "TowardNegative", "ToOdd"))


@documented(_PROJECT, _REPORT + "RoundToPrecision, stochastic")
def stochastic() -> Calls:
    """The number above is taken where what is left of a step and the random number reach a step: what is left is cut
    to the bits of the random number (A), that with half a bit added to the latter (B), or rounded to them (C)."""
    for given in (*_formats(4), *_formats(8)):
        x = _asked(given)[::3]
        for rounding in STOCHASTIC:
            random = np.tile(np.arange(2**_BITS), len(x))
            yield {"x": np.repeat(x, 2**_BITS), **given, "rounding": rounding, "bits": _BITS, "random": random}
    # What is an ulp short of a step: a sum with the random number may round to one.
    given = {"width": 8, "precision": 4, "signed": True, "extended": True}
    least = _numbers(given)[1]
    for dtype, widths in ((np.float64, (1, 8)), (np.float32, (1, 4, 8)), (np.float16, (1, 4))):
        for bits in widths:
            halves = np.arange(1, 2 ** (bits + 1))  # of a step of the random numbers
            x = _around((least * halves / 2.0 ** (bits + 1)).astype(dtype))
            random = np.repeat((2 ** (bits + 1) - halves) // 2, 3).astype(np.uint8)
            for rounding in STOCHASTIC:
                yield {"x": x, **given, "rounding": rounding, "bits": bits, "random": random}
    for rounding in STOCHASTIC:
        x, random = np.array([1 + 2.0**-20, 1.0]), np.array([2**31 - 1] * 2, np.uint32)
        yield {"x": x, **given, "rounding": rounding, "bits": 31, "random": random}
        yield {"x": x[:0], **given, "rounding": rounding, "bits": 31, "random": random[:0]}
        # In the dtype of x the largest random number is a whole step, or with half a bit it is.
        x, random = np.array([1 + 2.0**-10, 1.0], np.float16), np.array([2**13 - 1] * 2, np.uint16)
        yield {"x": x, **given, "rounding": rounding, "bits": 13, "random": random}


@documented(_PROJECT, _REPORT + "RoundToPrecision, stochastic", aspect="stochastic-mean")
def stochastic_mean() -> Calls:
    """With each random number once, a number becomes one of its two neighbours, the upper one as often as what is left
    of a step says."""
    given = {"width": 6, "precision": 3, "signed": True, "extended": True}
    for bits in (1, 4, 8):
        x = np.array([1 + k / 64 for k in range(16)] + [-(2.0**-5) * (1 + k / 16) for k in range(16)])
        random = np.tile(np.arange(2**bits), len(x)).astype(np.uint8)
        for rounding in STOCHASTIC:
            yield {"x": np.repeat(x, 2**bits), **given, "rounding": rounding, "bits": bits, "random": random}


@documented(_PROJECT, _REPORT + "Saturate")
def saturation() -> Calls:
    """Beyond the last number SatFinite gives that number, for infinities too; SatPropagate keeps infinities; OvfInf
    gives infinity where the rounding does not stop at the last number."""
    for given in _formats(3, 5, 8):
        if not given["extended"]:
            continue
        last = _numbers(given)[-1]
        x = np.concatenate([_around(np.array([last, 1.5 * last, 2 * last])), [1e300, np.inf]])
        x = np.concatenate([x, -x]) if given["signed"] else x
        yield {"x": x, **{k: v for k, v in given.items() if k != "extended"}}
        for saturation in SATURATIONS:
            for rounding in ROUNDINGS:
                if rounding not in STOCHASTIC:
                    yield {"x": x, **given, "rounding": rounding, "saturation": saturation}


@documented(_PROJECT, _REPORT + "Encode")
def one_zero_and_one_nan() -> Calls:
    """NaN of either sign is the one NaN, and what becomes zero the one zero."""
    for given in _formats(3, 8):
        least = _numbers(given)[1]
        x = np.array([np.nan, -np.nan, 0.0, -0.0, least / 4, 5e-324] + ([-least / 4] if given["signed"] else []))
        for rounding in ("NearestTiesToEven", "TowardZero"):
            yield {"x": x, **given, "rounding": rounding}


@documented(_PROJECT, _REPORT + "Project")
def dtypes() -> Calls:
    """A number of any float dtype is rounded once, and its code has the bits of its width."""
    for dtype in (np.float32, np.float16, np.dtype(ml_dtypes.bfloat16)):
        for given in (*_formats(4), {"width": 8, "precision": 4, "signed": True, "extended": True}):
            x = _asked(given, dtype)
            yield {"x": x[np.isfinite(x.astype(np.float64))], **given}
    for width in (9, 12, 16):
        given = {"width": width, "precision": width - 4, "signed": True, "extended": True}
        yield {"x": _asked(given)[::97], **given}


@expected(_PROJECT, "Project")
def shapes() -> Calls:
    """The codes have the shape of the numbers, be it empty or without dimensions."""
    for shape in ((), (0,), (3, 0), (2, 3), (1, 2, 2)):
        x = np.arange(np.prod(shape), dtype=np.float64).reshape(shape) - 1.3
        yield {"x": x, "width": 8, "precision": 3}


@silent(_PROJECT, "Project: nothing of errors", aspect="refusals")
def refused() -> Calls:
    """What comes of what is no format, rounding or saturation, and of random numbers that do not go with them."""
    x = np.array([1.0, 2.0])
    eight = {"x": x, "width": 8, "precision": 3}
    draws = {"rounding": "StochasticA", "bits": 2, "random": np.array([0, 3])}
    for change in (
        {"precision": 8},
        {"x": np.array([1, 2])},
        {"x": 1.0},
        {"rounding": "half-even"},
        {"saturation": "saturate"},
        {"bits": 2},
        {"random": np.array([0, 3])},
        {**draws, "bits": 0},
        {**draws, "bits": 32},
        {**draws, "random": None},
        {**draws, "random": np.array([0.0, 1.0])},
        {**draws, "random": np.array([0, 4])},
        {**draws, "random": np.array([-1, 0])},
        {**draws, "random": np.array([0])},
    ):
        yield eight | change


@silent(_PROJECT, "Saturate")
def without_sign() -> Calls:
    """What a negative number is in a format that has none."""
    for saturation in SATURATIONS:
        least = 2.0**-33
        x = np.array([-1.0, -0.001, -least, -least / 4, -0.0, -np.inf, -1e300])
        yield {"x": x, "width": 8, "precision": 3, "signed": False, "saturation": saturation}


@silent(_PROJECT, "Saturate")
def without_infinity() -> Calls:
    """What an infinity is that a finite format is to keep, and what overflows in one."""
    for saturation in ("SatPropagate", "OvfInf"):
        x = np.array([np.inf, -np.inf, 1e300, -1e300])
        yield {"x": x, "width": 8, "precision": 3, "extended": False, "saturation": saturation}


_MODES = {
    "NearestTiesToEven": "TiesToEven",
    "NearestTiesToAway": "TiesToAway",
    "TowardZero": "TowardZero",
    "TowardPositive": "TowardPositive",
    "TowardNegative": "TowardNegative",
    "StochasticA": "StochasticFastest",
    "StochasticB": "StochasticFast",
    "StochasticC": "Stochastic",
}


def _info(width: int, precision: int, *, signed: bool, extended: bool) -> Any:
    from gfloat.formats import format_info_p3109
    from gfloat.types import Domain, Signedness

    return format_info_p3109(
        width,
        precision,
        Signedness.Signed if signed else Signedness.Unsigned,
        Domain.Extended if extended else Domain.Finite,
    )


def _decode(codes: Any, width: int, precision: int, *, signed: bool = True, extended: bool = True) -> Any:
    import gfloat

    return gfloat.decode_ndarray(_info(width, precision, signed=signed, extended=extended), codes.numpy())


def _project(
    x: Any,
    width: int,
    precision: int,
    *,
    signed: bool = True,
    extended: bool = True,
    rounding: str = "NearestTiesToEven",
    saturation: str = "SatFinite",
    bits: int = 0,
    random: Any = None,
) -> Any:
    import gfloat

    if rounding not in _MODES or saturation not in ("SatFinite", "OvfInf") or str(x.dtype) == "torch.bfloat16":
        msg = f"rounding={rounding!r}, saturation={saturation!r}, x of {x.dtype}: gfloat has no such projection"
        raise Unsupported(msg)
    info = _info(width, precision, signed=signed, extended=extended)
    mode = getattr(gfloat.RoundMode, _MODES[rounding])
    drawn = None if random is None else random.numpy().astype(np.int64)  # no document says of which width they are
    rounded = gfloat.round_ndarray(info, x.numpy(), mode, saturation == "SatFinite", drawn, bits)
    return gfloat.encode_ndarray(info, rounded).astype(np.uint8 if width <= 8 else np.uint16)  # noqa: PLR2004 - a byte


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {"gfloat": {_DECODE: _decode, _PROJECT: _project}}
