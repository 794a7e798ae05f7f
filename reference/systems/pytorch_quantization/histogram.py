"""pytorch-quantization: ``HistogramCalibrator``, torch's histogram: collecting; amax by percentile, mse, entropy."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.sums import Open, least_of, one_of
from halfeven.reference.systems.pytorch_quantization.e4m3 import SCALED_E4M3, scaled_e4m3
from halfeven.reference.systems.pytorch_quantization.tensor_quant import MODELOPT, TENSOR_QUANT, fake_tensor_quant

__all__ = ["entropy_amax", "histogram", "mse_amax", "percentile_amax"]


@dataclass(frozen=True)
class Collected(Behaviour):
    """The choices in collecting a histogram."""

    magnitude: str = choice({
        "where-negative": "takes magnitudes of a batch whose least value is negative, which NaN hides",
        "always": "takes magnitudes of every batch",
    })  # fmt: skip
    place: str = choice({
        "times-bins": "finds a value's bin by its product with the bins over the last edge",
        "over-width": "finds a value's bin by its quotient by the width",
    })  # fmt: skip
    edges: str = choice({
        "both-ends": "computes the first edges from both ends to the middle",
        "upwards": "computes the first edges from zero upwards",
    })  # fmt: skip
    zeros: str = choice({
        "as-asked": "leaves out zeros where skip_zeros asks for it",
        "counted": "counts zeros whatever skip_zeros says",
    })  # fmt: skip
    above_zeros: str = choice({
        "refused": "refuses a value above a first batch of zeros, whose bins have no width",
        "dropped": "leaves out a value above a first batch of zeros",
    })  # fmt: skip


@dataclass(frozen=True)
class Percentile(Behaviour):
    """The choices in finding a percentile."""

    reached: str = choice({
        "at": "takes the bin at which the summed shares reach the percentile",
        "above": "takes the bin at which the summed shares exceed the percentile",
    })  # fmt: skip
    edge: str = choice({"left": "takes the left edge of a bin", "right": "takes the right edge of a bin"})
    shares: str = choice({"float64": "adds up shares in float64", "float32": "adds up shares in float32"})


@dataclass(frozen=True)
class LeastError(Behaviour):
    """The choices in finding the amax of least error."""

    equal: str = choice({"first": "takes the first of equal errors", "last": "takes the last of equal errors"})
    error: str = choice({"squared": "sums squared errors", "absolute": "sums absolute errors"})
    centres: str = choice({"middle": "stands for a bin by its centre", "left": "stands for a bin by its left edge"})
    handed: str = choice({
        "named": "quantizes in num_bits and unsigned as they are named",
        "shifted": "hands over num_bits as bias and unsigned as width, so that centres become amax + num_bits",
    })  # fmt: skip


@dataclass(frozen=True)
class LeastDivergence(Behaviour):
    """The choices in finding the amax of least divergence."""

    equal: str = choice(
        {"last": "takes the last of equal divergences", "first": "takes the first of equal divergences"}
    )
    first_bin: str = choice(
        {"second": "replaces the count of the first bin by the second one's", "own": "keeps the count of the first bin"}
    )
    beyond: str = choice({
        "added": "adds all counts beyond to the last bin",
        "left-out": "leaves out all counts beyond the last bin",
    })  # fmt: skip
    empty: str = choice({
        "left-out": "leaves empty bins out of the mean of a group",
        "counted": "counts empty bins in the mean of a group",
    })  # fmt: skip


_F32 = np.float32
Bits = int | tuple[int, int]


def _open_error(b: LeastError, *, stride: int, start_bin: int, **given: Any) -> dict[str, Open]:
    """The candidates whose errors some order of addition makes the least."""
    centres, errors = _errors(b, stride=stride, start_bin=start_bin, **given)
    found = np.stack(errors).astype(_F32)
    kept = least_of(found, found.sum(axis=1, dtype=np.float64), _F32)
    return {"result": one_of([[float(centres[start_bin + stride * i]) for i in kept]], ())} if kept else {}


@formula(
    "pytorch-quantization/histogram",
    equation=r"h_j = \#\{x : \lfloor |x| * n / e_n \rfloor = j\},\quad e_i = \Delta i,\quad "
    r"\Delta = e_n / n,\quad n \leftarrow \lceil \max |x| / \Delta \rceil \text{ where } \max |x| > e_n",
    basis=AsComputed(dtype="float32, every operation rounded; an edge is its real value rounded once"),
    source="ScaledQuantDescriptor: calib_method; pytorch_quantization.calib.HistogramCalibrator: measured",
    behaviour=Collected(),
)
def histogram(
    b: Collected, batches: Sequence[Array], num_bins: int = 2048, skip_zeros: bool = False
) -> tuple[Array, Array] | None:
    """Counts and edges, float32, after all ``batches``; None of no batch.

    The first batch sets the width, ``max / num_bins``; a larger value adds bins of it. Magnitudes are taken of a batch
    with a negative value. torch's arange may put a grown edge an ulp next to its real value.

    Args:
        batches: floats of any shapes, in reals, taken to float32.
        num_bins: bins of the first batch; afterwards as many as there are.
        skip_zeros: whether zeros are not counted.

    Returns:
        (bins,) and (bins + 1,).

    Raises:
        RuntimeError: a batch is empty, or has only zeros with ``skip_zeros``; or the first one has NaN or an infinity.
        OverflowError: a value above 0 after a first batch of zeros, or an infinity in a later batch.
    """
    counts: Array | None = None
    edges = np.zeros(0, _F32)
    for batch in batches:
        if batch.size == 0:
            msg = f"batches with one of shape {batch.shape} is not accepted: an empty one has no maximum"
            raise RuntimeError(msg)
        negative = batch.min() < 0 or b.magnitude == "always"
        x = (np.abs(batch) if negative else batch).astype(_F32)
        x = x[x != 0] if skip_zeros and b.zeros == "as-asked" else x
        if x.size == 0:
            msg = f"batches with {batch} is not accepted with skip_zeros=True: give a value other than 0"
            raise RuntimeError(msg)
        top = x.max() + _F32(0)  # zeros of both signs have the maximum 0.0
        if counts is None:
            if not np.isfinite(top):
                msg = f"batches with the maximum {top} in the first is not accepted: give finite values first"
                raise RuntimeError(msg)
            counts, edges = _counts(b, x, num_bins, top), _first_edges(b, top, num_bins)
            continue
        if top > edges[-1] and (edges[-1] > 0 or b.above_zeros == "refused"):
            width = edges[1]  # the first is 0
            with np.errstate(all="ignore"):
                bins = top / width
            if not np.isfinite(bins):
                msg = f"batches with the maximum {top} is not accepted: bins of width {width} never reach it"
                raise OverflowError(msg)
            num_bins = math.ceil(bins)
            edges = (np.arange(float(top + width) / float(width)) * np.float64(width)).astype(_F32)
        more = _counts(b, x, num_bins, edges[-1])
        more[: counts.size] += counts
        counts = more
    return None if counts is None else (counts, edges)


def _first_edges(b: Collected, top: Array, num_bins: int) -> Array:
    """From both ends to the middle, as torch's linspace."""
    i = np.arange(num_bins + 1)
    step = np.float64(top / _F32(num_bins))
    return np.where(
        (i < (num_bins + 1) // 2) | (b.edges == "upwards"), step * i, np.float64(top) - step * (num_bins - i)
    ).astype(_F32)


def _counts(b: Collected, x: Array, num_bins: int, top: Array) -> Array:
    """Per bin of [0, top]; the last one holds its end. Where top is 0 torch takes [-1, 1] for the range."""
    low, high = (_F32(0), top) if top > 0 else (_F32(-1), _F32(1))
    inside = x[(x >= low) & (x <= high)]
    from_low, width, bins = inside - low, high - low, _F32(num_bins)
    place = (from_low / (width / bins) if b.place == "over-width" else from_low * bins / width).astype(np.int64)
    return np.bincount(np.minimum(place, num_bins - 1), minlength=num_bins).astype(_F32)


@formula(
    "pytorch-quantization/percentile_amax",
    equation=r"\mathrm{amax} = e_i,\quad i = \min \{i : \sum_{j \le i} h_j / \sum h \ge p / 100\}",
    basis=AsComputed(dtype="float64, the shares added up in order"),
    source="pytorch_quantization.calib.HistogramCalibrator.compute_amax, percentile: measured",
    behaviour=Percentile(),
)
def percentile_amax(b: Percentile, hist: Array, edges: Array, percentile: float = 99.99) -> Array:
    """The left edge of the bin in which the shares reach ``percentile``; the last edge where they do not. 0-d float32.

    Args:
        hist: counts, (bins,); cut to integers.
        edges: of the bins, float32, (bins + 1,), in reals.
        percentile: in per cent.

    Raises:
        ValueError: ``percentile`` is outside [0, 100].
    """
    if percentile < 0 or percentile > 100:  # noqa: PLR2004 - per cent
        msg = f"percentile={percentile} is not accepted: give one in [0, 100]"
        raise ValueError(msg)
    with np.errstate(all="ignore"):
        h = hist.astype(np.int64)
        shares = np.cumsum((h / h.sum()).astype(b.shares))
    found = int(np.searchsorted(shares, percentile / 100, side="left" if b.reached == "at" else "right"))
    return np.asarray(edges[min(found + (b.edge == "right"), edges.size - 1)], _F32)


@formula(
    "pytorch-quantization/mse_amax",
    equation=r"\mathrm{amax} = c_k,\quad k = \arg\min_k \frac{1}{n} \sum_j (\hat c_j(c_k) - c_j)^2 * h_j,\quad "
    r"c_j = (e_{j+1} + e_j) / 2",
    basis=AsComputed(dtype="float32 for each term; their sum is the real one, rounded to float64"),
    source="pytorch_quantization.calib.HistogramCalibrator.compute_amax, mse: measured",
    behaviour=LeastError(),
    versions={
        "modelopt-0.47": (
            LeastError(handed="shifted"),
            "nvidia-modelopt 0.47, HistogramCalibrator.compute_amax, mse: measured",
        )
    },
    open=_open_error,
)
def mse_amax(
    b: LeastError,
    hist: Array,
    edges: Array,
    num_bits: Bits = 8,
    unsigned: bool = False,
    stride: int = 1,
    start_bin: int = 128,
) -> Array:
    """The centre at which fake quantizing all centres costs least, the first of equal ones. 0-d float32.

    Candidates whose sums another order of addition puts in another place are both right
    (``halfeven.reference.sums.least_of``).

    Args:
        hist: counts, float32, (bins,).
        edges: of the bins, float32, (bins + 1,), in reals.
        num_bits: width of the codes, or (4, 3) for float8_e4m3fn.
        unsigned: the codes start at 0; not read of float8.
        stride: every so many centres are tried.
        start_bin: the first centre that is tried.

    Raises:
        ValueError: no centre from ``start_bin`` on, or ``num_bits`` is 0.
        TypeError: ``num_bits`` is neither an integer of 0 or more nor (4, 3).
    """
    centres, errors = _errors(b, hist, edges, num_bits, unsigned, stride, start_bin)
    costs = [math.fsum(terms.tolist()) for terms in errors]
    if not costs:
        msg = f"start_bin={start_bin} is not accepted: there are {centres.size} bins"
        raise ValueError(msg)
    return np.asarray(centres[start_bin + stride * _least(costs, last=b.equal == "last")])


def _errors(
    b: LeastError, hist: Array, edges: Array, num_bits: Bits, unsigned: bool, stride: int, start_bin: int
) -> tuple[Array, list[Array]]:
    """The centres, and what each adds to the error of every candidate."""
    centres = (edges[1:] + edges[:-1]) / _F32(2) if b.centres == "middle" else edges[:-1]
    errors = []
    for k in range(start_bin, centres.size, stride):
        off = _quantized(b, centres, centres[k], num_bits, unsigned) - centres
        errors.append((np.square(off) if b.error == "squared" else np.abs(off)) * hist)
    return centres, errors


def _quantized(b: LeastError, centres: Array, amax: Array, num_bits: Bits, unsigned: bool) -> Array:
    if isinstance(num_bits, int) and num_bits >= 0:
        if b.handed == "shifted":
            bias = _F32(num_bits)
            return np.asarray(fake_tensor_quant(MODELOPT, centres - bias, amax, int(unsigned)) + bias)
        return fake_tensor_quant(TENSOR_QUANT, centres, amax, num_bits, unsigned)
    if num_bits == (4, 3) and b.handed == "named":
        return scaled_e4m3(SCALED_E4M3, centres, amax)
    msg = f"num_bits={num_bits!r} is not accepted: give a positive integer or (4, 3)"
    raise TypeError(msg)


def _least(costs: list[float], *, last: bool) -> int:
    """The place of the first of the least costs, or of the last; NaN is less than any."""
    return len(costs) - 1 - int(np.argmin(costs[::-1])) if last else int(np.argmin(costs))


@formula(
    "pytorch-quantization/entropy_amax",
    equation=r"\mathrm{amax} = e_i,\quad i = \arg\min_i \sum_j \frac{p_j}{P} \log \frac{p_j / P}{q_j / Q},\quad "
    r"q_j = \mathrm{mean} \{h_k > 0 : \lfloor k N / i \rfloor = \lfloor j N / i \rfloor\},\quad N = 2^{b-1+u}",
    basis=Real(),
    source="pytorch_quantization.calib.HistogramCalibrator.compute_amax, entropy: measured",
    behaviour=LeastDivergence(),
)
def entropy_amax(
    b: LeastDivergence,
    hist: Array,
    edges: Array,
    num_bits: Any = 8,
    unsigned: bool = False,
    stride: int = 1,
    start_bin: int = 128,
) -> Array:
    """The edge up to which 2**(num_bits - 1 + unsigned) groups lose least, the last of equal ones. 0-d float32.

    Computed in float64; divergences that differ by less than 2**-40 of their terms' sum are not told apart for sure.

    Args:
        hist: counts, (bins,); cut to integers.
        edges: of the bins, float32, (bins + 1,), in reals.
        num_bits: width of the codes.
        unsigned: twice as many groups.
        stride: every so many edges are tried.
        start_bin: the first edge that is tried.

    Raises:
        ValueError: ``start_bin`` is beyond the last edge.
        TypeError: ``num_bits`` is no integer.
    """
    if not isinstance(num_bits, int):
        msg = f"num_bits={num_bits!r} is not accepted: give an integer"
        raise TypeError(msg)
    bins = hist.astype(np.int64)
    if b.first_bin == "second":
        bins[0] = bins[1]
    groups = 1 << (num_bits - 1 + unsigned)
    found = []
    for i in range(start_bin, bins.size + 1, stride):
        q = np.zeros(i)
        group = np.arange(i) * groups // i
        for g in range(groups):
            held = (group == g) & (bins[:i] != 0)
            if held.any():
                q[held] = bins[:i][held if b.empty == "left-out" else group == g].mean()
        p = bins[:i].astype(np.float64)
        p[-1] += bins[i:].sum() if b.beyond == "added" else 0
        found.append(_divergence(p, q))
    if not found:
        msg = f"start_bin={start_bin} is not accepted: there are {bins.size} bins"
        raise ValueError(msg)
    return np.asarray(edges[_least(found, last=b.equal == "last") * stride + start_bin], _F32)


def _divergence(p: Array, q: Array) -> float:
    """Of two shares that are brought to the sum 1; NaN where q has no sum, infinity where only p is there."""
    with np.errstate(all="ignore"):
        p, q = p / p.sum(), q / q.sum()
        there = p > 0
        return math.fsum((p[there] * np.log(p[there] / q[there])).tolist())
