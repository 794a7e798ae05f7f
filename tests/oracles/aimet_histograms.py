"""AIMET's histogram, percentile and SQNR analyzers, value by value in floats of one rounding."""

from collections.abc import Callable
from fractions import Fraction
from itertools import accumulate, product
from math import ceil, inf, isfinite, prod
from typing import NamedTuple

from oracles.aimet_analyzers import members
from oracles.aimet_encodings import between, least_scale
from oracles.exact import FORMATS, round_integer, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, soft, softs

__all__: list[str] = []

Shape = tuple[int, ...]
Blocks = Shape | None
Batches = tuple[Array, ...]
_F32 = FORMATS["float32"]


def _f(value: float | Fraction) -> Soft:
    return soft(value if isinstance(value, Fraction) else float(value), "float32")


class _Kept(NamedTuple):
    counts: list[int]
    edges: list[Soft]
    low: Soft
    high: Soft


def _max(a: Soft, b: Soft) -> Soft:
    return a if a.value > b.value else b


def _min(a: Soft, b: Soft) -> Soft:
    return a if a.value < b.value else b


def _range(values: list[Soft]) -> tuple[Soft, Soft]:
    finite = sorted((v for v in values if isfinite(v.value)), key=lambda v: v.value)
    if not finite:
        raise RuntimeError
    return finite[0], finite[-1]


def _edges(low: Soft, high: Soft, bins: int) -> list[Soft]:
    if low.value == high.value:
        half = Soft(0.5, low.form)
        low, high = low - half, high + half
    low, high = low.to(_F32), high.to(_F32)
    step = (high - low) / _f(bins)
    edges = [_f(i) * step + low for i in range(bins + 1)]
    if not (isfinite(edges[0].value) and isfinite(edges[-1].value)):
        raise RuntimeError
    return edges


def _step(end: Soft) -> Soft:
    """How far the next float32 above ``end`` is: the least power of two that moves it."""
    step = Fraction(1, 2**149)
    while (end + _f(step)).value == end.value:
        step *= 2
    return _f(Fraction((end + _f(step)).value) - Fraction(end.value))


def _count(values: list[Soft], low: Soft, high: Soft, bins: int) -> list[int]:
    counts = [0] * bins
    for v in values:
        narrow = v.to(_F32)
        if low.value <= narrow.value <= high.value:
            if low.value == high.value:  # between its neighbours
                place = _step(-low) * _f(bins) / (_step(-low) + _step(high))
            else:
                place = (narrow - low) * _f(bins) / (high - low)
            counts[min(int(place.value), bins - 1) if isfinite(place.value) else 0] += 1
        counts[0] += v.value < low.to(v.form).value
        counts[-1] += v.value > high.to(v.form).value
    return counts


def _moved(kept: _Kept, low: Soft, high: Soft) -> list[int]:
    """The old counts in the new bins: what lies before the end of the bin where an old one starts, and the rest."""
    bins = len(kept.counts)
    width, old = (high - low) / _f(bins), kept.edges[1] - kept.edges[0]
    counts = [0] * bins

    def where(x: Soft) -> int:
        return min(int(((x - low) / width).value), bins - 1)

    for count, start in zip(kept.counts, kept.edges, strict=False):
        first = where(start)
        share = ((low + width * _f(first + 1)) - start) / old * _f(count)
        part = min(int(share.rint().value), count)
        counts[first] += part
        counts[where(start + width)] += count - part
    return counts


def _histograms(
    batches: Batches, shape: Shape, bins: int, limit: float | None, block_size: Blocks, *, mixed: bool
) -> list[_Kept]:
    rows = [members(x, shape, block_size) for x in batches]
    if mixed and any(x.dtype.name == "float64" for x in batches[1:]):
        raise RuntimeError
    if bins <= 0:
        raise ValueError
    if not batches or (limit is not None and limit < 1):
        raise RuntimeError
    found = []
    for k in range(prod(shape)):
        low, high = _range(rows[0][k])
        edges = _edges(low, high, bins)
        kept = _Kept(_count(rows[0][k], edges[0], edges[-1], bins), edges, low, high)
        growth = (edges[-1] - edges[0]) * _f(inf if limit is None else limit) / _f(2)
        ends = edges[0] - growth, edges[-1] + growth
        for x, row in zip(batches[1:], rows[1:], strict=True):
            part = x.size // prod(shape)
            values = softs(x)[k * part : (k + 1) * part] if mixed else row[k]
            low, high = (e.to(_F32) for e in _range(row[k]))
            low, high = _min(_max(low, ends[0]), kept.edges[0]), _min(_max(high, kept.edges[-1]), ends[1])
            same = (low.value, high.value) == (kept.low.value, kept.high.value)
            old = kept.counts if same else _moved(kept, low, high)
            counts = [a + b for a, b in zip(old, _count(values, low, high, bins), strict=True)]
            kept = _Kept(counts, _edges(low, high, bins), low, high)
        found.append(kept)
    return found


def _packed(found: list[_Kept]) -> dict[str, Array]:
    dtypes = {form: DTYPES[name] for name, form in FORMATS.items() if name in DTYPES}
    rows, bins = len(found), len(found[0].counts)
    return {
        "counts": array((float(c) for h in found for c in h.counts), (rows, bins), "float32"),
        "edges": array((e for h in found for e in h.edges), (rows, bins + 1), "float32"),
        "min": array((h.low for h in found), (rows,), dtypes[found[0].low.form]),
        "max": array((h.high for h in found), (rows,), dtypes[found[0].high.form]),
    }


@derives("aimet/histogram")
def histogram(
    batches: Batches, shape: Shape, num_bins: int, growth_limit: float | None = None, block_size: Blocks = None
) -> dict[str, Array]:
    """Parameter by parameter, batch by batch."""
    return _packed(_histograms(batches, shape, num_bins, growth_limit, block_size, mixed=False))


@derives("aimet/histogram@2.42")
def histogram_2_42(
    batches: Batches, shape: Shape, num_bins: int, growth_limit: float | None = None, block_size: Blocks = None
) -> dict[str, Array]:
    """The same, with the library's mixture of parameters."""
    return _packed(_histograms(batches, shape, num_bins, growth_limit, block_size, mixed=True))


def _percentile_ends(kept: _Kept, n: int, symmetric: bool, percentile: float, *, divides: bool) -> tuple[Soft, Soft]:
    sums = [_f(s) for s in accumulate(kept.counts)]
    low, high = kept.edges[0], kept.edges[-1]
    if percentile < 100:
        above = sums[-1] * _f(percentile) / _f(100)
        below = sums[-1] * _f(1 - percentile / 100)
        low, high = (
            next(e for e, s in zip(kept.edges, sums, strict=False) if s.value >= wanted.value)
            for wanted in (below, above)
        )
    zero, least = _f(0), least_scale(n)
    low, high = _min(low, zero), _max(high, zero)
    negative, positive = n - n // 2, n // 2
    if ((high - low) / _f(n)).value < _f(least).value:
        if symmetric:
            low -= _f(least * negative)
        high += _f(least * (positive if symmetric else n))
    if not symmetric:
        return low, high
    delta = -low / _f(negative)
    if positive or divides:
        widest = high / _f(positive)
        delta = widest if widest.nan else _max(widest, delta)
    return _f(-negative) * delta, _f(positive) * delta


def _percentile(
    batches: Batches, n: int, symmetric: bool, shape: Shape, bins: int, p: float, block_size: Blocks, old: bool
) -> tuple[Array, Array]:
    if n <= 0 or not 50 <= p <= 100:
        raise ValueError
    found = _histograms(batches, shape, bins, None, block_size, mixed=old)
    packed = _packed(found)
    ends = [_percentile_ends(h, n, symmetric, p, divides=old) for h in found]
    low, high = (
        array((e[i].to(form) for e in ends), shape, packed[name].dtype)
        for i, name, form in ((0, "min", found[0].low.form), (1, "max", found[0].high.form))
    )
    return low, high


@derives("aimet/percentile_encodings")
def percentile_encodings(
    batches: Batches,
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    num_bins: int = 2048,
    percentile: float = 100.0,
    block_size: Blocks = None,
) -> tuple[Array, Array]:
    """By a walk along the summed counts."""
    return _percentile(batches, num_steps, symmetric, shape, num_bins, percentile, block_size, old=False)


@derives("aimet/percentile_encodings@2.42")
def percentile_encodings_2_42(
    batches: Batches,
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    num_bins: int = 2048,
    percentile: float = 100.0,
    block_size: Blocks = None,
) -> tuple[Array, Array]:
    """The same, of the library's histogram and with its division by zero steps."""
    return _percentile(batches, num_steps, symmetric, shape, num_bins, percentile, block_size, old=True)


def _cost(kept: _Kept, delta: Soft, offset: Soft, n: int, gamma: float, name: str) -> float:
    t = FORMATS[name]
    width = kept.edges[1] - kept.edges[0]
    middle, width = (kept.edges[0] + width / _f(2)).to(t), width.to(t)
    total = Fraction(0)
    for i, count in enumerate(kept.counts):
        x = middle + width * soft(float(i), name)
        code = (x / delta - offset).rint()
        real = (between(code, soft(0.0, name), soft(float(n), name)) + offset) * delta
        error = (real - x) * (real - x) * soft(float(count), name)
        if not 0 <= code.value <= n:
            error *= soft(gamma, name)
        total += Fraction(error.value)
    return round_to(total, FORMATS["float64"])


def _symmetric(low: Soft, high: Soft, n: int, deltas: int, _offsets: int) -> list[tuple[Soft, Soft]]:
    widest = _f(2) * _max(high, -low).to(_F32) / _f(n)
    least = _f(least_scale(n))
    return [(_max(widest * _f(k) / _f(deltas - 1), least), _f(n // 2 - n)) for k in range(1, deltas + 1)]


def _asymmetric(low: Soft, high: Soft, n: int, deltas: int, offsets: int) -> list[tuple[Soft, Soft]]:
    name = "float64" if low.form == FORMATS["float64"] else "float32"
    t = FORMATS[name]
    widest = (high - low).to(_F32) / _f(n)
    seen = (low.to(t) / widest.to(t)).rint()
    left = widest.to(t) * seen
    right = left + (widest * _f(n)).to(t)
    parts = min(n + 2, offsets) - 2
    step = n / parts
    evenly = [round_integer(Fraction(i * n, parts) - n, "half-even") for i in range(ceil((step + n) / step))]
    found = []
    for k, place in product(range(1, deltas + 1), [soft(float(e), name) for e in evenly] + [seen]):
        narrow = widest * _f(k) / _f(deltas - 1)
        start = narrow.to(t) * place
        lower, upper = _max(start, left), _min(start + (narrow * _f(n)).to(t), right)
        delta = _max((upper - lower) / soft(float(n), name), _f(least_scale(n)).to(t))
        found.append((delta, (lower / delta).rint()))
    return found


def _sqnr(
    batches: Batches,
    n: int,
    symmetric: bool,
    shape: Shape,
    bins: int,
    asymmetric_delta_candidates: int = 17,
    symmetric_delta_candidates: int = 101,
    offset_candidates: int = 21,
    gamma: float = 3.0,
    histogram_growth_limit: float | None = None,
    block_size: Blocks = None,
    *,
    old: bool,
) -> tuple[Array, Array]:
    found = _histograms(batches, shape, bins, histogram_growth_limit, block_size, mixed=old)
    if n <= 0:
        raise ValueError
    packed = _packed(found)
    ends: tuple[list[Soft], list[Soft]] = ([], [])
    pick: Callable[[Soft, Soft, int, int, int], list[tuple[Soft, Soft]]] = _symmetric if symmetric else _asymmetric
    deltas = symmetric_delta_candidates if symmetric else asymmetric_delta_candidates
    for kept in found:
        form = kept.low.form
        wide = FORMATS["float64"] if form == FORMATS["float64"] else _F32
        zero = Soft(0.0, form)
        low, high = _min(kept.low, zero), _max(kept.high, zero)
        span = soft(least_scale(n) * n, "float64" if wide != _F32 else "float32")
        high = _max(high, (low.to(wide) + span).to(form))
        candidates = pick(low, high, n, deltas, offset_candidates)
        name = "float32" if candidates[0][0].form == _F32 else "float64"
        delta, offset = min(candidates, key=lambda c: _cost(kept, c[0], c[1], n, gamma, name))
        ends[0].append((offset * delta).to(form))
        ends[1].append((offset * delta + soft(float(n), name) * delta).to(kept.high.form))
    return array(ends[0], shape, packed["min"].dtype), array(ends[1], shape, packed["max"].dtype)


@derives("aimet/sqnr_encodings")
def sqnr_encodings(
    batches: Batches, num_steps: int, symmetric: bool, shape: Shape, num_bins: int = 2048, **settings: object
) -> tuple[Array, Array]:
    """Every candidate's error, its sum in fractions."""
    return _sqnr(batches, num_steps, symmetric, shape, num_bins, **settings, old=False)  # type: ignore[arg-type]


@derives("aimet/sqnr_encodings@2.42")
def sqnr_encodings_2_42(
    batches: Batches, num_steps: int, symmetric: bool, shape: Shape, num_bins: int = 2048, **settings: object
) -> tuple[Array, Array]:
    """The same, of the library's histogram."""
    return _sqnr(batches, num_steps, symmetric, shape, num_bins, **settings, old=True)  # type: ignore[arg-type]
