"""torch's observers and choose_qparams, number by number: exact fractions, each rounded where torch rounds."""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from math import inf, isfinite, isnan, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.exact import round_integer
from oracles.registry import derives
from oracles.soft import Soft, array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

_F = "float32"
_BITS = {"qint8": 8, "int8": 8, "quint8": 8, "uint8": 8, "qint32": 32, "int32": 32, "int16": 16, "uint16": 16}
_FOUR = ("quint4x2", "float8_e5m2", "float8_e4m3fn")


def _fail(error: type[Exception], text: str) -> None:
    raise error(text)


def _ends(dtype: str, qscheme: str, reduce_range: bool, low: int | None, high: int | None) -> tuple[int, int]:
    if dtype not in (*_BITS, *_FOUR):
        _fail(AssertionError, f"dtype={dtype}")
    bits = _BITS.get(dtype, 4)
    if low is not None and high is not None:
        if low > 0 or high < 0 or low == high:
            _fail(AssertionError, f"{low}, {high}")
        if dtype in ("qint8", "int8") and high - low + 1 > 1 << 8:
            _fail(AssertionError, f"{low}, {high}")
        ends = (low >> 1, high >> 1) if reduce_range else (low, high)
    else:
        used = bits - 1 if reduce_range and bits == 8 else bits
        unsigned = (dtype.startswith(("q", "u")) and dtype not in ("qint8", "qint32")) or bits == 4
        start = 0 if unsigned else -(1 << (used - 1))
        ends = start, start + (1 << used) - 1
    if reduce_range and (dtype, qscheme[-9:]) == ("quint8", "symmetric"):
        _fail(NotImplementedError, "a symmetric quint8")
    return ends


def _lists(min_val: Array, max_val: Array) -> Iterator[tuple[Soft, Soft]]:
    lows, highs = softs(min_val), softs(max_val)
    if any(a.value > b.value for a, b in zip(lows, highs, strict=True)):
        _fail(AssertionError, "min_val above max_val")
    yield from zip(lows, highs, strict=True)


def _nothing(min_val: Array, max_val: Array) -> bool:
    if min_val.size and max_val.size:
        return min_val.shape == () and (float(min_val), float(max_val)) == (inf, -inf)
    return True


def _larger(a: Soft, b: Soft) -> Soft:
    return a if a.nan else b if b.nan else max(a, b, key=lambda v: v.value)


def _pairs(
    min_val: Array, max_val: Array, one: Callable[[Soft, Soft], tuple[Soft, Soft | int]], *, symmetric: bool
) -> tuple[Array, Array]:
    found = [one(a, b) for a, b in _lists(min_val, max_val)]
    scales = array([s for s, _ in found], (len(found),), np.float32)
    zeros = [z for _, z in found]
    if any(isinstance(z, Soft) for z in zeros):
        return scales, array(zeros, (len(found),), np.float32)
    return scales, np.array(zeros, np.int64 if symmetric else np.int32)


def _float_zero(low: Soft, high: Soft, n: Soft, eps: float) -> tuple[Soft, Soft]:
    s = (high - low) / n
    s = s if s.value > soft(eps, _F).value else soft(1.0, _F)
    return s, -low / s


def _symmetric_zero(dtype: str) -> int:
    return 1 << 15 if dtype == "uint16" else 128 if dtype in ("quint8", "uint8") else 0


@derives("torch/MinMaxObserver.calculate_qparams")
def _(
    min_val: Array,
    max_val: Array,
    *,
    dtype: str = "quint8",
    qscheme: str = "per_tensor_affine",
    reduce_range: bool = False,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float = 2.0**-23,
) -> tuple[Array, Array]:
    low_code, high_code = _ends(dtype, qscheme, reduce_range, quant_min, quant_max)
    if _nothing(min_val, max_val):
        return np.array([1], np.float32), np.array([0])
    n = soft(Fraction(high_code - low_code), _F)

    def one(low: Soft, high: Soft) -> tuple[Soft, Soft | int]:
        if qscheme.endswith("float_qparams"):
            return _float_zero(low, high, n, eps)
        if low.value == high.value:
            return soft(1.0, _F), 0
        if qscheme.endswith("symmetric"):
            amax = _larger(abs(low), high)
            if not isfinite(amax.value):
                return amax, _symmetric_zero(dtype)
            # Twice the magnitude over the number of steps, over the rationals.
            return soft(2 * Fraction(amax.value) / Fraction(n.value), _F), _symmetric_zero(dtype)
        s = (high - low) / n
        quotient = (low / s).value
        steps = round_integer(Fraction(quotient), "half-even") if isfinite(quotient) else 0
        return s, sorted((-(1 << 31), low_code - steps, (1 << 31) - 1))[1]

    return _pairs(min_val, max_val, one, symmetric=qscheme.endswith("symmetric"))


def _wrapped_zero(low_code: int, high_code: int, quotient: Soft) -> int:
    """``low_code`` less the rounded quotient as an int32, in an int32, limited to the grid."""
    half = 1 << 31
    steps = round_integer(Fraction(quotient.value), "half-even") if isfinite(quotient.value) else -half
    steps = steps if abs(steps) < half else -half
    wrapped = (low_code - steps + half) % (2 * half) - half
    return sorted((low_code, wrapped, high_code))[1]


@derives("torch/MinMaxObserver.calculate_qparams@2.13")
def _(
    min_val: Array,
    max_val: Array,
    *,
    dtype: str = "quint8",
    qscheme: str = "per_tensor_affine",
    reduce_range: bool = False,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float = 2.0**-23,
) -> tuple[Array, Array]:
    low_code, high_code = _ends(dtype, qscheme, reduce_range, quant_min, quant_max)
    if _nothing(min_val, max_val):
        return np.array([1], np.float32), np.array([0])
    n, least, zero = soft(Fraction(high_code - low_code), _F), soft(eps, _F), soft(0.0, _F)

    def one(low: Soft, high: Soft) -> tuple[Soft, Soft | int]:
        if qscheme.endswith("float_qparams"):
            return _float_zero(low, high, n, eps)
        below, above = -_larger(-low, zero), _larger(high, zero)
        if qscheme.endswith("symmetric"):
            z = _symmetric_zero(dtype)
            if z == 128 and quant_min is not None and quant_max is not None:
                z = (low_code + high_code) >> 1
            return _larger(_larger(-below, above) / (n / soft(2.0, _F)), least), z
        s = _larger((above - below) / n, least)
        return s, _wrapped_zero(low_code, high_code, below / s)

    return _pairs(min_val, max_val, one, symmetric=qscheme.endswith("symmetric"))


def _extremes(values: Sequence[float]) -> tuple[float, float]:
    if any(isnan(v) for v in values):
        return nan, nan
    ordered = sorted(values)
    return ordered[0], ordered[-1]


def _floats(batch: Array) -> list[float]:
    return [soft(v.value, _F).value for v in softs(batch)]


@derives("torch/MinMaxObserver")
def _(batches: Sequence[Array]) -> tuple[Array, Array]:
    seen = [v for batch in batches for v in _floats(batch)]
    low, high = _extremes(seen) if seen else (inf, -inf)
    return array([low], (), np.float32), array([high], (), np.float32)


@derives("torch/PerChannelMinMaxObserver")
def _(batches: Sequence[Array], ch_axis: int = 0) -> tuple[Array, Array]:
    seen: dict[int, list[float]] = {}
    count = None
    for batch in batches:
        if batch.size == 0:
            continue
        if batch.ndim <= 1 or ch_axis not in range(-batch.ndim, batch.ndim):
            _fail(IndexError, f"ch_axis={ch_axis}")
        if count not in (None, count := batch.shape[ch_axis]):
            _fail(RuntimeError, "channels")
        for place, v in zip(np.ndindex(batch.shape), _floats(batch), strict=True):
            seen.setdefault(place[ch_axis], []).append(v)
    ends = [_extremes(seen[c]) for c in sorted(seen)]
    return tuple(array([e[i] for e in ends], (len(ends),), np.float32) for i in (0, 1))  # type: ignore[return-value]


def _averaged(batches: Sequence[Array], step: Callable[[Soft, Soft], Soft]) -> tuple[Array, Array]:
    state = [soft(inf, _F), soft(-inf, _F)]
    for batch in batches:
        if batch.size:
            ends = [soft(v, _F) for v in _extremes(_floats(batch))]
            unset = [v.value for v in state] == [inf, -inf]
            state = ends if unset else [step(old, new) for old, new in zip(state, ends, strict=True)]
    return array(state[:1], (), np.float32), array(state[1:], (), np.float32)


@derives("torch/MovingAverageMinMaxObserver")
def _(batches: Sequence[Array], averaging_constant: float = 0.01) -> tuple[Array, Array]:
    c, rest = soft(averaging_constant, _F), soft(1 - averaging_constant, _F)
    return _averaged(batches, lambda old, new: rest * old + c * new)


@derives("torch/MovingAverageMinMaxObserver@2.13")
def _(batches: Sequence[Array], averaging_constant: float = 0.01) -> tuple[Array, Array]:
    c = soft(averaging_constant, _F)
    return _averaged(batches, lambda old, new: old + c * (new - old))
