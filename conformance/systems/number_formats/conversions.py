"""What is required of casts between small floats, and of casts to and from small integers; the libraries' answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, documented, expected, measured, silent
from halfeven.conformance.systems.number_formats.casts.library import FINITE, TORCH
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS
from halfeven.reference.systems.number_formats.conversions import SMALL_INTEGERS

if TYPE_CHECKING:
    import torch

__all__ = ["ANSWERS"]

_CONVERT = "number-formats/convert"
_TO, _FROM = "number-formats/to_integer", "number-formats/from_integer"
_ML = "ml_dtypes: README, int2, int4, uint2 and uint4"
_BYTE = 8
_FP8 = "float8_e5m2"
_SMALL = tuple(name for name, f in FLOAT_FORMATS.items() if f.bits <= _BYTE)
_FLOATS = tuple(np.dtype(d) for d in ("float64", "float32", "float16", ml_dtypes.bfloat16))


def _policies(target: str) -> tuple[str, ...]:
    return ("saturate",) if target in FINITE else ("saturate", "special")


def _codes(source: str, *, nan: bool) -> Array:
    """The codes that are numbers, or those that are none: NaN."""
    f = FLOAT_FORMATS[source]
    codes = np.arange(2**f.bits, dtype=np.uint16)
    magnitude = codes & (2 ** (f.bits - (f.specials != "e8m0")) - 1)
    beyond = magnitude > f.max_code + (f.specials == "ieee")
    if f.specials == "fnuz":
        beyond = codes == 2 ** (f.bits - 1)
    kept: Array = codes[beyond if nan else ~beyond].astype(np.uint8)
    return kept


def _pairs(sources: tuple[str, ...] = _SMALL) -> Iterator[tuple[str, str]]:
    yield from ((source, target) for source in sources for target in FLOAT_FORMATS)


@documented(_CONVERT, "IEEE 754-2019: 5.4.2, convertFormat; OCP OFP8 1.0 and MX 1.0: conversion")
def every_code() -> Calls:
    """Every number of a small format becomes the nearest number of another one, ties to the even code; what overflows
    follows the policy."""
    for source, target in _pairs():
        # No document says what e8m0 makes of a number that is no power of two, zero or negative.
        if target != "float8_e8m0fnu":
            for overflow in _policies(target):
                codes = _codes(source, nan=False)
                yield {"codes": codes, "source": source, "target": target, "overflow": overflow}


@measured(_CONVERT, "ml_dtypes 0.6.0; no document says how a number becomes an E8M0")
def to_e8m0() -> Calls:
    """A positive number becomes the nearest power of two, midway the one with the even code; zero and negative numbers
    become NaN."""
    for source in FLOAT_FORMATS:
        for overflow in ("saturate", "special"):
            codes = np.arange(2**_BYTE, dtype=np.uint8)
            if source in _SMALL:
                codes = _codes(source, nan=False)
            yield {"codes": codes, "source": source, "target": "float8_e8m0fnu", "overflow": overflow}
    # Ties of the upper half of a bfloat16's exponents.
    codes = (np.arange(1, 255, dtype=np.uint16) << 7)[:, None] + np.array([0, 63, 64, 65], np.uint16)
    for overflow in ("saturate", "special"):
        yield {"codes": codes.ravel(), "source": "bfloat16", "target": "float8_e8m0fnu", "overflow": overflow}


@measured(_CONVERT, "ml_dtypes 0.6.0; OFP8 1.0 demands a NaN and leaves its code open")
def nan() -> Calls:
    """NaN becomes NaN of the other format under either policy: with the sign of its code where both have one, and of
    the mantissa bits of an IEEE format the first alone. The one code of an fnuz format has the sign."""
    for source, target in _pairs():
        codes = _codes(source, nan=True)
        if codes.size and target not in FINITE and target != source:
            for overflow in _policies(target):
                yield {"codes": codes, "source": source, "target": target, "overflow": overflow}


@expected(_CONVERT, "ml_dtypes: README, says that it is undefined")
def nan_without_code() -> Calls:
    """NaN is refused by a format that has no code for it."""
    for source, target in _pairs():
        codes = _codes(source, nan=True)
        if codes.size and target in FINITE:
            yield {"codes": codes, "source": source, "target": target, "overflow": "saturate"}


@expected(_CONVERT, "IEEE 754-2019: 5.5.1, copy")
def same_format() -> Calls:
    """A cast to the same format keeps every code, each NaN too."""
    for name in (*_SMALL, "bfloat16", "float16"):
        bits = FLOAT_FORMATS[name].bits
        codes = np.arange(0, 2**bits, 1 if bits <= _BYTE else 37).astype(np.uint8 if bits <= _BYTE else np.uint16)
        for overflow in _policies(name):
            yield {"codes": codes, "source": name, "target": name, "overflow": overflow}
    for dtype in (np.int16, np.int64):  # integers of another width hold the same codes
        yield {"codes": np.arange(64).astype(dtype), "source": _FP8, "target": _FP8, "overflow": "special"}


@expected(_CONVERT, "of any strict function: nothing is guessed", aspect="refusals")
def convert_refusals() -> Calls:
    """A code that the source does not have, a policy and a format that do not exist, codes that are no integers."""
    good = {"codes": np.array([0, 1], np.uint8), "source": "float8_e5m2", "target": "float8_e4m3fn"}
    for change in (
        {"overflow": "wrap"},
        {"source": "float8", "overflow": "saturate"},
        {"target": "float8", "overflow": "saturate"},
        {"target": "float4_e2m1fn", "overflow": "special"},
        {"source": "float4_e2m1fn", "codes": np.array([16], np.uint8), "overflow": "saturate"},
        {"codes": np.array([1.0], np.float32), "overflow": "saturate"},
    ):
        yield good | change


def _range(dtype: str) -> tuple[int, int]:
    info = ml_dtypes.iinfo(getattr(ml_dtypes, dtype))  # type: ignore[no-untyped-call]
    return int(info.min), int(info.max)


@expected(_TO, "numpy: ndarray.astype, which drops the fraction of a float")
def fraction_dropped() -> Calls:
    """A float whose integer part the dtype holds becomes that integer: the fraction is dropped, whatever its size."""
    for dtype in SMALL_INTEGERS:
        low, high = _range(dtype)
        for of in _FLOATS:
            whole = np.arange(low, high + 2).astype(of)
            # Halves, and the last number before each integer: one below the lowest is beyond the range.
            x = np.concatenate([whole[:-1], whole[:-1] + of.type(0.5), step(np.abs(whole[1:]), np.asarray(-1))])
            x = np.concatenate([x, -x[(x > 0) & (x < 1 - low)], np.array([-0.0, 1e-30], of)])
            yield {"x": x[(x > low - 1) & (x < high + 1)], "dtype": dtype}


@expected(_TO, "numpy: ndarray.astype; nothing is lost")
def integers_kept() -> Calls:
    """An integer of another dtype that the small one holds stays what it is."""
    for dtype in SMALL_INTEGERS:
        low, high = _range(dtype)
        for kind in (np.int8, np.int16, np.int32, np.int64):
            yield {"x": np.arange(low, high + 1).astype(kind), "dtype": dtype}
        for unsigned in (np.uint8, np.uint16, np.uint32):
            yield {"x": np.arange(high + 1).astype(unsigned), "dtype": dtype}


@measured(_TO, "ml_dtypes 0.6.0; no document says what becomes of it")
def beyond_the_range() -> Calls:
    """An integer, or the integer part of a float, that the small dtype does not hold keeps its low bits."""
    for dtype in SMALL_INTEGERS:
        for kind in (np.int8, np.int16, np.int32, np.int64):
            info = np.iinfo(kind)
            wide = np.array([info.min, info.min + 1, info.max - 1, info.max])
            yield {"x": np.concatenate([np.arange(-40, 41), wide]).astype(kind), "dtype": dtype}
        for unsigned in (np.uint8, np.uint16, np.uint32):
            top = int(np.iinfo(unsigned).max)
            yield {"x": np.array([*range(41), top - 1, top], unsigned), "dtype": dtype}
        for of in _FLOATS:
            far = [300.0, 1000.0, 2049.0, 65504.0, 2.0**24 + 2, 2.0**31 - 1, 2.0**31 - 128]
            x = np.array([*range(-40, 41), 8.75, -9.75, *far, *(-v for v in far), -(2.0**31)]).astype(of)
            finite = np.isfinite(x.astype(np.float64)) & (x.astype(np.float64) < 2.0**31)
            yield {"x": x[finite], "dtype": dtype}


@silent(_TO, "C: 6.3.1.4, a float that the integer type does not hold")
def beyond_int32() -> Calls:
    """What comes of infinities, NaN and numbers that no int32 holds."""
    for dtype in SMALL_INTEGERS:
        for of in _FLOATS:
            x = np.array([np.inf, -np.inf, np.nan, -np.nan, 2.0**31, -(2.0**31) - 4096, 2.0**63, 1e30, -1e30])
            with np.errstate(over="ignore"):
                yield {"x": x.astype(of), "dtype": dtype}
        yield {"x": np.array([2.0**31 + 1, 2.0**32 + 5, 2.0**53 - 1, -(2.0**31) - 1]), "dtype": dtype}


@documented(_FROM, _ML)
def every_byte() -> Calls:
    """A byte holds one integer in its low bits, in two's complement or unsigned; each is a number of every dtype."""
    for dtype in SMALL_INTEGERS:
        count = _range(dtype)[1] - _range(dtype)[0] + 1
        for to in ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64"):
            signed = np.arange(count, dtype=np.uint8)
            yield {"codes": signed, "dtype": dtype, "to": to}
        if dtype.startswith("u"):
            for to in ("uint8", "uint16", "uint32"):
                yield {"codes": np.arange(count, dtype=np.uint8), "dtype": dtype, "to": to}


@measured(_FROM, "ml_dtypes 0.6.0: README, says that an element is padded to a byte, and not with what")
def padding() -> Calls:
    """The bits of a byte above those of the integer are ignored."""
    for dtype in SMALL_INTEGERS:
        for to in ("float32", "int32"):
            yield {"codes": np.arange(256, dtype=np.uint8), "dtype": dtype, "to": to}


@expected((_TO, _FROM), "of any function of arrays")
def shapes(formula: str) -> Calls:
    """The result has the shape of the argument, empty ones too."""
    for shape in ((), (0,), (1,), (2, 0), (3, 2), (2, 3, 2)):
        a = np.arange(int(np.prod(shape))).reshape(shape) % 2
        if formula == _TO:
            yield {"x": a.astype(np.float32), "dtype": "int4"}
        else:
            yield {"codes": a.astype(np.uint8), "dtype": "uint4"}


@expected((_TO, _FROM), "of any strict function: nothing is guessed", aspect="refusals")
def integer_refusals(formula: str) -> Calls:
    """A dtype that is no small integer, and an array of another kind, are refused."""
    x, codes = np.array([1.0, 2.0], np.float32), np.array([0, 1], np.uint8)
    for dtype in ("int8", "int3", "float4_e2m1fn", ""):
        yield {"x": x, "dtype": dtype} if formula == _TO else {"codes": codes, "dtype": dtype}
    if formula == _TO:
        yield {"x": np.array([True, False]), "dtype": "int4"}
        return
    yield {"codes": x, "dtype": "int4"}
    yield {"codes": codes.astype(np.int32), "dtype": "int4"}
    yield {"codes": codes, "dtype": "int4", "to": "float8_e5m2"}


def _named(name: Any) -> Any:
    """The dtype of a format's name; None where there is none."""
    return np.float16 if name == "float16" else getattr(ml_dtypes, str(name), None)


def _convert_by_ml_dtypes(codes: torch.Tensor, source: Any, target: Any, overflow: str) -> torch.Tensor:
    import torch

    small, other, whole = _named(source), _named(target), codes.numpy()
    follows = "saturate" if target in FINITE else "special"
    unknown = small is None or other is None or overflow != follows or whole.dtype.kind not in "iu"
    if unknown or bool((whole >= 2 ** FLOAT_FORMATS[source].bits).any()):
        msg = f"source={source!r}, target={target!r}, overflow={overflow!r}: no cast has these formats and this policy"
        raise Unsupported(msg)
    held = whole.astype(np.uint8 if np.dtype(small).itemsize == 1 else np.uint16).view(small)
    if not np.can_cast(held.dtype, np.dtype(other), "unsafe"):
        msg = f"source={source!r}, target={target!r}: there is no cast from the one to the other"
        raise Unsupported(msg)
    cast = held.astype(other)
    return torch.from_numpy(cast.view(np.uint8 if cast.itemsize == 1 else np.uint16))


def _convert_by_torch(codes: torch.Tensor, source: Any, target: Any, overflow: str) -> torch.Tensor:
    import torch

    follows = "saturate" if target == "float8_e4m3fn" else "special"
    if source not in TORCH or target not in TORCH or overflow != follows or codes.dtype.is_floating_point:
        msg = f"source={source!r}, target={target!r}, overflow={overflow!r}: no cast has these formats and this policy"
        raise Unsupported(msg)
    return codes.to(torch.uint8).view(getattr(torch, source)).to(getattr(torch, target)).view(torch.uint8)


def _to_integer_by_ml_dtypes(x: torch.Tensor, dtype: str) -> torch.Tensor:
    import torch

    if dtype not in SMALL_INTEGERS or x.dtype == torch.bool:
        msg = f"x of {x.dtype}, dtype={dtype!r}: no cast of numbers has this dtype"
        raise Unsupported(msg)
    plain = x.detach()
    a = plain.view(torch.int16).numpy().view(ml_dtypes.bfloat16) if x.dtype == torch.bfloat16 else plain.numpy()
    return torch.from_numpy(a.astype(getattr(ml_dtypes, dtype)).astype(np.uint8 if dtype.startswith("u") else np.int8))


def _from_integer_by_ml_dtypes(codes: torch.Tensor, dtype: str, to: str = "float32") -> torch.Tensor:
    import torch

    kinds = ("float32", "float64", "float16", "bfloat16", "int8", "int16", "int32", "int64")
    if dtype not in SMALL_INTEGERS or codes.dtype != torch.uint8 or to not in (*kinds, "uint8", "uint16", "uint32"):
        msg = f"codes of {codes.dtype}, dtype={dtype!r}, to={to!r}: no cast has these dtypes"
        raise Unsupported(msg)
    held = codes.numpy().view(getattr(ml_dtypes, dtype))
    if to == "bfloat16":
        return torch.from_numpy(held.astype(ml_dtypes.bfloat16).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(held.astype(to))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "ml_dtypes": {_CONVERT: _convert_by_ml_dtypes, _TO: _to_integer_by_ml_dtypes, _FROM: _from_integer_by_ml_dtypes},
    "torch.float8": {_CONVERT: _convert_by_torch},
}
