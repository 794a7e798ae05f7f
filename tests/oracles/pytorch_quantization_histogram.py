"""``HistogramCalibrator`` value by value. Divergences are compared with logarithms of integers in fixed point.

ln n = k ln 2 + 2 atanh((m - 1) / (m + 1)) with n = 2^k m, its series summed in integers: the error is far below the
2^-100 at which two divergences count as one, and far above it are all that the calls have apart.
"""

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from math import inf, isfinite, isnan, nan
from operator import add, mul, sub, truediv
from typing import Any

from oracles import exact
from oracles.pytorch_quantization_e4m3 import scaled_strict
from oracles.pytorch_quantization_tensor_quant import (
    fake_modelopt,
    fake_tensor_quant,
    held,
    operate,
    pack,
)
from oracles.registry import derives
from oracles.soft import Array, soft

__all__ = ["TIE", "costs", "divergences"]

ONE = 1 << 200
TIE = Fraction(1, 2**100)


@derives("pytorch-quantization/histogram")
def histogram(batches: Sequence[Array], num_bins: int = 2048, skip_zeros: bool = False) -> tuple[Array, Array] | None:
    """Each value is dropped into its bin by its own quotient."""
    counts: list[int] | None = None
    edges: list[float] = []
    for batch in batches:
        values = held(batch)
        if not values:
            msg = "an empty batch"
            raise RuntimeError(msg)
        negative = not any(map(isnan, values)) and min(values) < 0
        xs = [soft(abs(v) if negative else v, "float32").value for v in values]
        xs = [x for x in xs if x != 0 or not skip_zeros]
        if not xs:
            msg = "a batch of zeros"
            raise RuntimeError(msg)
        top = nan if any(map(isnan, xs)) else max(xs) + 0.0
        if counts is None:
            if not isfinite(top):
                msg = f"maximum {top}"
                raise RuntimeError(msg)
            step = operate(truediv, top, float(num_bins), "float32")
            half = (num_bins + 1) // 2
            for i in range(num_bins + 1):
                real = Fraction(step) * i if i < half else Fraction(top) - Fraction(step) * (num_bins - i)
                edges.append(soft(real, "float32").value)
            counts = [0] * num_bins
        elif top > edges[-1]:
            width = operate(sub, edges[1], edges[0], "float32")
            bins = operate(truediv, top, width, "float32")
            if not isfinite(bins):
                msg = f"maximum {top} in bins of width {width}"
                raise OverflowError(msg)
            num_bins = -int(Fraction(bins) // -1)
            reach = Fraction(operate(add, top, width, "float32"))
            size = -int(Fraction(exact.round_to(reach / Fraction(width), exact.FORMATS["float64"])) // -1)
            edges = [soft(Fraction(width) * i, "float32").value for i in range(size)]
            counts += [0] * (num_bins - len(counts))
        _drop(xs, counts, edges[-1])
    if counts is None:
        return None
    return pack([float(c) for c in counts], (len(counts),), "float32"), pack(edges, (len(edges),), "float32")


def _drop(xs: list[float], counts: list[int], top: float) -> None:
    low, high = (0.0, top) if top > 0 else (-1.0, 1.0)
    for x in xs:
        if low <= x <= high:
            scaled = operate(mul, operate(sub, x, low, "float32"), float(len(counts)), "float32")
            place = int(operate(truediv, scaled, operate(sub, high, low, "float32"), "float32"))
            counts[min(place, len(counts) - 1)] += 1


@derives("pytorch-quantization/percentile_amax")
def percentile_amax(hist: Array, edges: Array, percentile: float = 99.99) -> Array:
    """Shares added up until they reach the mark; NaN is beyond every number, and beside itself."""
    if percentile < 0 or percentile > 100:
        msg = f"percentile={percentile}"
        raise ValueError(msg)
    counts = [int(h) for h in held(hist)]
    mark = operate(truediv, percentile, 100.0, "float64")
    total, reached, place = float(sum(counts)), 0.0, len(counts)
    for j, count in enumerate(counts):
        share = operate(truediv, float(count), total, "float64")
        reached = share if j == 0 else operate(add, reached, share, "float64")
        if isnan(reached) or reached >= mark:
            place = j
            break
    return pack([float(edges[place])], (), "float32")


def costs(
    hist: Array, edges: Array, num_bits: Any, unsigned: bool, stride: int, start_bin: int, modelopt: bool = False
) -> tuple[list[float], list[Fraction | None]]:
    """The centres, and for each candidate its sum of squares as a fraction; None where it is NaN."""
    e = held(edges)
    pairs = zip(e[1:], e[:-1], strict=True)
    centres = [operate(truediv, operate(add, b, a, "float32"), 2.0, "float32") for b, a in pairs]
    array = pack(centres, (len(centres),), "float32")
    whole = isinstance(num_bits, int) and num_bits >= 0
    if not whole and (modelopt or num_bits != (4, 3)) and range(start_bin, len(centres), stride):
        msg = f"num_bits={num_bits!r}"
        raise TypeError(msg)
    found: list[Fraction | None] = []
    for k in range(start_bin, len(centres), stride):
        amax = pack([centres[k]], (), "float32")
        if modelopt:
            shifted = [operate(sub, c, float(num_bits), "float32") for c in centres]
            moved = held(fake_modelopt(pack(shifted, array.shape, "float32"), amax, int(unsigned)))
            reals = [operate(add, v, float(num_bits), "float32") for v in moved]
        else:
            reals = held(fake_tensor_quant(array, amax, num_bits, unsigned) if whole else scaled_strict(array, amax))
        terms = []
        for real, centre, count in zip(reals, centres, held(hist), strict=True):
            off = operate(sub, real, centre, "float32")
            terms.append(operate(mul, operate(mul, off, off, "float32"), count, "float32"))
        found.append(None if any(map(isnan, terms)) else sum(map(Fraction, terms), Fraction(0)))
    if not found:
        msg = f"start_bin={start_bin}"
        raise ValueError(msg)
    return centres, found


def _cheapest(centres: list[float], found: list[Fraction | None], stride: int, start_bin: int) -> Array:
    best = 0
    for k, cost in enumerate(found):
        if (least := found[best]) is None:
            break
        if cost is None or cost < least:
            best = k
    return pack([centres[start_bin + stride * best]], (), "float32")


@derives("pytorch-quantization/mse_amax")
def mse_amax(
    hist: Array, edges: Array, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Array:
    """The first of the cheapest, the sums being fractions."""
    return _cheapest(*costs(hist, edges, num_bits, unsigned, stride, start_bin), stride, start_bin)


@derives("pytorch-quantization/mse_amax@modelopt-0.47")
def mse_amax_modelopt(
    hist: Array, edges: Array, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Array:
    """The same with the arguments a place further."""
    found = costs(hist, edges, num_bits, unsigned, stride, start_bin, modelopt=True)
    return _cheapest(*found, stride, start_bin)


@cache
def _ln(n: int) -> int:
    """Ln n in units of 2^-200, a little below."""
    if n == 2:
        return 2 * _atanh(Fraction(1, 3))
    k = n.bit_length() - 1
    m = Fraction(n, 1 << k)
    return k * _ln(2) + 2 * _atanh((m - 1) / (m + 1)) if k else 0


def _atanh(t: Fraction) -> int:
    power, square = ONE * t.numerator // t.denominator, t * t
    total, odd = 0, 1
    while power:
        total += power // odd
        power = power * square.numerator // square.denominator
        odd += 2
    return total


def divergences(hist: Array, num_bits: int, unsigned: bool, stride: int, start_bin: int) -> list[Fraction | float]:
    """D_i = (sum p ln p - sum p ln q) / P + ln Q - ln P with q = group sum / group size; infinity; NaN without data."""
    bins = [int(h) for h in held(hist)]
    bins[0] = bins[1]
    groups = 1 << (num_bits - 1 + unsigned)
    found: list[Fraction | float] = []
    for i in range(start_bin, len(bins) + 1, stride):
        whole, below = sum(bins), sum(bins[:i])
        if not whole or not below:
            found.append(nan)
            continue
        members: dict[int, list[int]] = {}
        for j in range(i):
            if bins[j]:
                members.setdefault(next(g for g in range(groups) if (g + 1) * i > j * groups), []).append(bins[j])
        total = Fraction(0)
        for j in range(i):
            p = bins[j] + (whole - below if j == i - 1 else 0)
            if p and not bins[j]:
                found.append(inf)
                break
            if p:
                group = members[next(g for g in range(groups) if (g + 1) * i > j * groups)]
                total += p * (_ln(p) - _ln(sum(group)) + _ln(len(group)))
        else:
            found.append((total / whole + _ln(below) - _ln(whole)) / ONE)
    return found


@derives("pytorch-quantization/entropy_amax")
def entropy_amax(
    hist: Array, edges: Array, num_bits: Any = 8, unsigned: bool = False, stride: int = 1, start_bin: int = 128
) -> Array:
    """The last NaN, else the last of those within 2^-100 of the least."""
    if type(num_bits) not in {int, bool}:
        msg = f"num_bits={num_bits!r}"
        raise TypeError(msg)
    found = divergences(hist, num_bits, unsigned, stride, start_bin)
    if not found:
        msg = f"start_bin={start_bin}"
        raise ValueError(msg)
    strange = [k for k, d in enumerate(found) if d != d]  # noqa: PLR0124 - NaN
    numbers = [d for d in found if isinstance(d, Fraction)]
    if strange:
        last = strange[-1]
    elif numbers:
        least = min(numbers)
        last = max(k for k, d in enumerate(found) if isinstance(d, Fraction) and d - least < TIE)
    else:
        last = len(found) - 1
    return pack([float(edges[last * stride + start_bin])], (), "float32")
