"""torch: what the observers observe, and their scale and zero point.

The scale is real per code; zero points are codes.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS

__all__ = [
    "AveragedRange",
    "ObservedRange",
    "ObserverQparams",
    "calculate_qparams",
    "min_max",
    "moving_average_min_max",
    "per_channel_min_max",
    "quant_range",
]

_EIGHT_SIGNED, _EIGHT_UNSIGNED, _THIRTY_TWO = ("qint8", "int8"), ("quint8", "uint8"), ("qint32", "int32")
_OTHERS = ("int16", "uint16", "quint4x2", "float8_e5m2", "float8_e4m3fn")
_SOURCE = "torch.ao.quantization.observer.MinMaxObserver: equations of s and z"
_EQUATION = (
    r"s = \frac{2 \max(|x_{min}|, x_{max})}{Q_{max} - Q_{min}},\ z \in \{0, 128\}\quad\text{or}\quad "
    r"s = \frac{x_{max} - x_{min}}{Q_{max} - Q_{min}},\ z = Q_{min} - \mathrm{round}(x_{min} / s)"
)


def quant_range(
    dtype: str, qscheme: str, *, reduce_range: bool, quant_min: int | None, quant_max: int | None
) -> tuple[int, int]:
    """The codes of an observer: both ends given, or those of ``dtype``; ``reduce_range`` halves them.

    Raises:
        AssertionError: no such dtype; given ends without zero between them, in no order, or beyond 8 bits.
        NotImplementedError: a symmetric quint8 is reduced.
    """
    if dtype not in (*_EIGHT_SIGNED, *_EIGHT_UNSIGNED, *_THIRTY_TWO, *_OTHERS):
        msg = f"dtype={dtype!r} is not accepted: give quint8, qint8 or another integer dtype"
        raise AssertionError(msg)
    if quant_min is not None and quant_max is not None:
        if not quant_min <= 0 <= quant_max or quant_min >= quant_max:
            msg = f"quant_min={quant_min}, quant_max={quant_max} are not accepted: zero lies between them"
            raise AssertionError(msg)
        if dtype in _EIGHT_SIGNED and quant_max - quant_min > 255:  # noqa: PLR2004 - 8 bits
            msg = f"quant_min={quant_min}, quant_max={quant_max} are not accepted for {dtype}: give at most 256 codes"
            raise AssertionError(msg)
        ends = (quant_min // 2, quant_max // 2) if reduce_range else (quant_min, quant_max)
    elif dtype in _EIGHT_SIGNED:
        ends = (-64, 63) if reduce_range else (-128, 127)
    elif dtype in _EIGHT_UNSIGNED:
        ends = (0, 127) if reduce_range else (0, 255)
    elif dtype in _THIRTY_TWO:
        ends = (-(2**31), 2**31 - 1)
    else:
        ends = {"int16": (-(2**15), 2**15 - 1), "uint16": (0, 2**16 - 1)}.get(dtype, (0, 15))
    if reduce_range and dtype == "quint8" and qscheme.endswith("symmetric"):
        msg = "reduce_range=True is not accepted for a symmetric quint8"
        raise NotImplementedError(msg)
    return ends


def _ordered(min_val: Array, max_val: Array) -> None:
    if np.any(min_val > max_val):
        msg = f"min_val={min_val.tolist()} is not accepted above max_val={max_val.tolist()}"
        raise AssertionError(msg)


def _unobserved(min_val: Array, max_val: Array) -> bool:
    nothing = min_val.size == 0 or max_val.size == 0
    return nothing or (min_val.ndim == 0 and bool(min_val == np.inf) and bool(max_val == -np.inf))


@dataclass(frozen=True)
class ObserverQparams(Behaviour):
    """The choices in making a scale and a zero point of what was observed."""

    range: str = choice(
        {
            "own": "takes the range as it is",
            "with-zero": "widens the range to hold zero",
        }
    )
    equal_ends: str = choice(
        {
            "one": "gives equal ends the scale 1 and the zero point 0",
            "equation": "makes no exception of equal ends",
        }
    )
    symmetric: str = choice(
        {
            "half-steps": "maps the larger magnitude to half the steps of the grid",
            "upper-end": "maps the larger magnitude to Qmax",
        }
    )
    steps: str = choice(
        {
            "intervals": "takes Qmax - Qmin for the steps of the grid",
            "codes": "takes Qmax - Qmin + 1 for the steps of the grid",
        }
    )
    division: str = choice(
        {
            "divide": "divides the range by the steps",
            "reciprocal": "multiplies the range by the rounded reciprocal of the steps",
        }
    )
    eps: str = choice(
        {
            "unused": "limits no scale",
            "least": "takes eps for the least scale",
            "added": "adds eps to the scale",
        }
    )
    rounding: str = roundings("the quotient of the minimum and the scale")
    quotient: str = choice(
        {
            "unbounded": "subtracts the rounded quotient from Qmin without bound",
            "int32": "casts the rounded quotient to int32, and lets Qmin less it wrap",
        }
    )
    zero_point: str = choice(
        {
            "free": "does not limit the zero point to the grid",
            "grid": "limits the zero point to the grid",
        }
    )
    symmetric_zero_point: str = choice(
        {
            "by-dtype": "gives a symmetric quint8 or uint8 the zero point 128",
            "middle": "gives a symmetric quint8 or uint8 with given ends the middle of them as its zero point",
            "zero": "gives every symmetric dtype the zero point 0",
        }
    )
    float_scale: str = choice(
        {
            "above-eps": "takes 1 for a scale of at most eps, where zero points are floats",
            "from-eps": "takes 1 for a scale below eps, where zero points are floats",
        }
    )


@formula(
    "torch/MinMaxObserver.calculate_qparams",
    equation=_EQUATION,
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
    behaviour=ObserverQparams(),
    versions={
        "2.13": (
            ObserverQparams(
                range="with-zero",
                equal_ends="equation",
                eps="least",
                quotient="int32",
                zero_point="grid",
                symmetric_zero_point="middle",
            ),
            "torch 2.13.0, MinMaxObserver and PerChannelMinMaxObserver, measured",
        )
    },
)
def calculate_qparams(
    b: ObserverQparams,
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
    """Scale and zero point from a minimum and a maximum; 1 and 0 where they are equal.

    Measured: zero points of symmetric dtypes other than qint8 and quint8; per_channel_affine_float_qparams, whose zero
    point is a float; 1 and 0 before anything was observed, or of NaN the zero point Qmin.

    Args:
        min_val: float32, a scalar or a list with one entry per channel.
        max_val: as ``min_val``.
        dtype: of the codes, as torch names it, such as "quint8".
        qscheme: as torch names it, such as "per_channel_symmetric".
        reduce_range: leaves out one bit of the range.
        quant_min: the lowest code, with ``quant_max``.
        quant_max: the highest code, with ``quant_min``.
        eps: a float zero point needs a scale above it (measured); not in the document's equations.

    Returns:
        scale: float32, and zero point: int32, limited to it (measured), int64 where symmetric or nothing was observed
            (measured), or float32 for per_channel_affine_float_qparams; of at least one
        dimension.

    Raises:
        AssertionError: ``min_val`` above ``max_val``; or as in ``quant_range``.
        NotImplementedError: as in ``quant_range``.
    """
    q_min, q_max = quant_range(dtype, qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max)
    if _unobserved(min_val, max_val):
        return np.ones(1, np.float32), np.zeros(1, np.int64)
    _ordered(min_val, max_val)
    x_min, x_max = np.atleast_1d(min_val), np.atleast_1d(max_val)
    with np.errstate(all="ignore"):
        n = np.float32(q_max - q_min) + np.float32(b.steps == "codes")
        if qscheme == "per_channel_affine_float_qparams":
            s = _over(b, x_max - x_min, n)
            least = np.float32(eps)
            s = np.where(s > least if b.float_scale == "above-eps" else s >= least, s, np.float32(1))
            return s, -x_min / s
        low, high = x_min, x_max
        if b.range == "with-zero":
            low, high = np.minimum(low, np.float32(0)), np.maximum(high, np.float32(0))
        if qscheme.endswith("symmetric"):
            # 2 max / n, where 2 max does not overflow
            half = np.float32(q_max) if b.symmetric == "upper-end" else n / np.float32(2)
            s = _limited(b, _over(b, np.maximum(np.abs(low), high), half), eps)
            zero = {"uint16": 2**15, "quint8": 128, "uint8": 128}.get(dtype, 0)
            if b.symmetric_zero_point == "middle" and zero == 128 and None not in (quant_min, quant_max):  # noqa: PLR2004
                zero = (q_min + q_max) // 2
            z: Array = np.full(s.shape, 0 if b.symmetric_zero_point == "zero" else zero, np.int64)
        else:
            s = _limited(b, _over(b, high - low, n), eps)
            r = ROUNDINGS[b.rounding](low / s).astype(np.float64)
            if b.quotient == "int32":
                z = q_min - np.where(np.abs(r) < 2.0**31, r, -(2.0**31))
                z = (z + 2.0**31) % 2.0**32 - 2.0**31
            else:
                z = q_min - np.where(np.isfinite(r), r, 0.0)
            low_code, high_code = (q_min, q_max) if b.zero_point == "grid" else (-(2**31), 2**31 - 1)
            z = np.clip(z, low_code, high_code).astype(np.int32)
    equal = (x_min == x_max) & (b.equal_ends == "one")
    return np.where(equal, np.float32(1), s), np.where(equal, 0, z)


def _over(b: ObserverQparams, width: Array, steps: np.float32) -> Array:
    quotient: Array = width / steps if b.division == "divide" else width * (np.float32(1) / steps)
    return quotient


def _limited(b: ObserverQparams, scale: Array, eps: float) -> Array:
    if b.eps == "unused":
        return scale
    limited: Array = np.maximum(scale, np.float32(eps)) if b.eps == "least" else scale + np.float32(eps)
    return limited


@dataclass(frozen=True)
class ObservedRange(Behaviour):
    """The choices in observing a range."""

    nan: str = choice(
        {
            "stays": "keeps NaN in minimum and maximum",
            "left-out": "leaves NaN out of minimum and maximum",
        }
    )


@dataclass(frozen=True)
class AveragedRange(ObservedRange):
    """The choices in averaging a range: also those of the mean."""

    mean: str = choice(
        {
            "weighted": "adds the old value times 1 - c and the new one times c",
            "step": "adds c times the difference of the new value and the old one to the old one",
        }
    )
    rest: str = choice(
        {
            "rounded-last": "rounds 1 - c to float32",
            "of-rounded": "subtracts c, rounded to float32, from 1",
        }
    )


def _extremes(b: ObservedRange, x: Array, axis: int | None = None) -> tuple[Array, Array]:
    if b.nan == "stays":
        return np.min(x, axis=axis), np.max(x, axis=axis)
    return np.fmin.reduce(x, axis=axis), np.fmax.reduce(x, axis=axis)


def _running(b: ObservedRange, ends: tuple[Array, Array], found: tuple[Array, Array]) -> tuple[Array, Array]:
    low, high = (np.minimum, np.maximum) if b.nan == "stays" else (np.fmin, np.fmax)
    return low(ends[0], found[0]), high(ends[1], found[1])


@formula(
    "torch/MinMaxObserver",
    equation=r"x_{min} = \min(x_{min}, \min(X)),\quad x_{max} = \max(x_{max}, \max(X))",
    basis=AsComputed(dtype="float32"),
    source="torch.ao.quantization.observer.MinMaxObserver: equations of the running minimum and maximum",
    behaviour=ObservedRange(),
)
def min_max(b: ObservedRange, batches: Sequence[Array]) -> tuple[Array, Array]:
    """The running minimum and maximum of batches of any shapes and float dtypes, as 0-d float32.

    A batch without elements changes nothing; without any, they are inf and -inf. NaN stays.

    Args:
        batches: reals, in the order in which they are seen.
    """
    ends = np.asarray(np.inf, np.float32), np.asarray(-np.inf, np.float32)
    for batch in batches:
        if batch.size:
            ends = _running(b, ends, _extremes(b, batch.astype(np.float32)))
    return ends


@formula(
    "torch/PerChannelMinMaxObserver",
    equation=r"x_{min,c} = \min(x_{min,c}, \min(X_c)),\quad x_{max,c} = \max(x_{max,c}, \max(X_c))",
    basis=AsComputed(dtype="float32"),
    source="torch.ao.quantization.observer.PerChannelMinMaxObserver: running values per channel",
    behaviour=ObservedRange(),
)
def per_channel_min_max(b: ObservedRange, batches: Sequence[Array], ch_axis: int = 0) -> tuple[Array, Array]:
    """The running minimum and maximum of every index along ``ch_axis``, as lists of float32.

    Args:
        batches: floats of two dimensions or more that agree in the channels; those without elements change nothing.
        ch_axis: the dimension of the channels, -r to r - 1.

    Returns:
        Two arrays with one entry per channel; with none where no batch has elements.

    Raises:
        IndexError: ``ch_axis`` is outside a batch, or a batch has less than two dimensions (measured).
        RuntimeError: another number of channels (measured).
    """
    ends = np.zeros(0, np.float32), np.zeros(0, np.float32)
    for batch in batches:
        if not batch.size:
            continue
        if batch.ndim < 2 or not -batch.ndim <= ch_axis < batch.ndim:  # noqa: PLR2004 - a channel has a list of values
            msg = f"ch_axis={ch_axis} is not accepted for a batch of shape {batch.shape}: give one of two dimensions"
            raise IndexError(msg)
        x = np.moveaxis(batch.astype(np.float32), ch_axis, 0).reshape(batch.shape[ch_axis], -1)
        found, channels = _extremes(b, x, axis=1), ends[0].size
        if channels not in (0, x.shape[0]):
            msg = f"batches with {channels}, then {x.shape[0]} channels are not accepted: give one number of them"
            raise RuntimeError(msg)
        ends = _running(b, ends, found) if channels else found
    return ends


@formula(
    "torch/MovingAverageMinMaxObserver",
    equation=r"x_{min} = (1 - c)\,x_{min} + c \min(X),\quad x_{max} = (1 - c)\,x_{max} + c \max(X)",
    basis=AsComputed(dtype="float32; 1 - c before it is rounded"),
    source="torch.ao.quantization.observer.MovingAverageMinMaxObserver: equations",
    behaviour=AveragedRange(),
    versions={"2.13": (AveragedRange(mean="step"), "torch 2.13.0, MovingAverageMinMaxObserver, measured")},
)
def moving_average_min_max(
    b: AveragedRange, batches: Sequence[Array], averaging_constant: float = 0.01
) -> tuple[Array, Array]:
    """The moving average of minimum and maximum, as 0-d float32; the first batch with elements gives its own.

    Args:
        batches: floats of any shapes, in the order in which they are seen; those without elements change nothing, and
            without any the results are inf and -inf.
        averaging_constant: c, the share of the new batch.
    """
    ends = np.asarray(np.inf, np.float32), np.asarray(-np.inf, np.float32)
    c = np.float32(averaging_constant)
    rest = np.float32(1) - c if b.rest == "of-rounded" else np.float32(1 - averaging_constant)

    def mean(old: Array, new: Array) -> Array:
        averaged: Array = rest * old + c * new if b.mean == "weighted" else old + c * (new - old)
        return np.asarray(averaged)

    with np.errstate(all="ignore"):
        for batch in batches:
            if not batch.size:
                continue
            low, high = _extremes(b, batch.astype(np.float32))
            first = bool(ends[0] == np.inf) and bool(ends[1] == -np.inf)
            ends = (np.asarray(low), np.asarray(high)) if first else (mean(ends[0], low), mean(ends[1], high))
    return ends
