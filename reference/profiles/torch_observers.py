"""torch: the observers' scale and zero point, what they observe, and the choose_qparams of quantized_decomposed.

The scale is real per code; zero points are codes.
"""

from collections.abc import Sequence

import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array

__all__ = [
    "calculate_qparams",
    "calculate_qparams_2_13",
    "min_max",
    "moving_average_min_max",
    "moving_average_min_max_2_13",
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


@formula(
    "torch.observers.calculate_qparams",
    equation=_EQUATION,
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
)
def calculate_qparams(
    min_val: Array,
    max_val: Array,
    *,
    dtype: str = "quint8",
    qscheme: str = "per_tensor_affine",
    reduce_range: bool = False,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float = 2.0**-23,  # noqa: ARG001 - the document does not say what it is for
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
        eps: not in the document's equations.

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
    n = np.float32(q_max - q_min)
    with np.errstate(all="ignore"):
        if qscheme == "per_channel_affine_float_qparams":
            s = (x_max - x_min) / n
            s = np.where(s > np.float32(2.0**-23), s, np.float32(1))
            return s, -x_min / s
        if qscheme.endswith("symmetric"):
            s = np.maximum(np.abs(x_min), x_max) / (n / np.float32(2))  # 2 max / n, where 2 max does not overflow
            zero = {"uint16": 2**15, "quint8": 128, "uint8": 128}.get(dtype, 0)
            z = np.full(s.shape, zero, np.int64)
        else:
            s = (x_max - x_min) / n
            r = np.rint(x_min / s).astype(np.float64)
            z = np.clip(q_min - np.where(np.isfinite(r), r, 0.0), -(2**31), 2**31 - 1).astype(np.int32)
    equal = x_min == x_max
    return np.where(equal, np.float32(1), s), np.where(equal, 0, z)


@formula(
    "torch.observers.calculate_qparams@2.13",
    equation=(
        r"m = \min(x_{min}, 0),\ M = \max(x_{max}, 0),\quad s = \max(\frac{M - m}{Q_{max} - Q_{min}}, \epsilon),"
        r"\quad z = \mathrm{clamp}(Q_{min} - \mathrm{round}(m / s), Q_{min}, Q_{max})"
    ),
    basis=AsComputed(dtype="float32"),
    source="torch 2.13.0, MinMaxObserver and PerChannelMinMaxObserver, measured",
)
def calculate_qparams_2_13(
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
    """As documented, but over a range that holds zero, with eps for the least scale, and a clamped zero point.

    Arguments and errors alike. The range is widened to hold zero, the scale is at least ``eps``, the zero point is
    clamped, equal ends are no exception, and a symmetric quint8 or uint8 with given ends has the middle of them for
    zero point. The rounded quotient is an int32, -2^31 where it does not fit, and Qmin minus it wraps.
    """
    q_min, q_max = quant_range(dtype, qscheme, reduce_range=reduce_range, quant_min=quant_min, quant_max=quant_max)
    if _unobserved(min_val, max_val):
        return np.ones(1, np.float32), np.zeros(1, np.int64)
    _ordered(min_val, max_val)
    x_min, x_max = np.atleast_1d(min_val), np.atleast_1d(max_val)
    n = np.float32(q_max - q_min)
    with np.errstate(all="ignore"):
        if qscheme == "per_channel_affine_float_qparams":
            s = (x_max - x_min) / n
            s = np.where(s > np.float32(eps), s, np.float32(1))
            return s, -x_min / s
        min_neg, max_pos = np.minimum(x_min, np.float32(0)), np.maximum(x_max, np.float32(0))
        if qscheme.endswith("symmetric"):
            s = np.maximum(np.maximum(-min_neg, max_pos) / (n / np.float32(2)), np.float32(eps))
            zero = {"uint16": 2**15, "quint8": 128, "uint8": 128}.get(dtype, 0)
            if zero == 128 and None not in (quant_min, quant_max):  # noqa: PLR2004
                zero = (q_min + q_max) // 2
            return s, np.full(s.shape, zero, np.int64)
        s = np.maximum((max_pos - min_neg) / n, np.float32(eps))
        r = np.rint(min_neg / s).astype(np.float64)
        int32 = np.where(np.abs(r) < 2.0**31, r, -(2.0**31))
        wrapped = (q_min - int32 + 2.0**31) % 2.0**32 - 2.0**31
        return s, np.clip(wrapped, q_min, q_max).astype(np.int32)


@formula(
    "torch.observers.min_max",
    equation=r"x_{min} = \min(x_{min}, \min(X)),\quad x_{max} = \max(x_{max}, \max(X))",
    basis=AsComputed(dtype="float32"),
    source="torch.ao.quantization.observer.MinMaxObserver: equations of the running minimum and maximum",
)
def min_max(batches: Sequence[Array]) -> tuple[Array, Array]:
    """The running minimum and maximum of batches of any shapes and float dtypes, as 0-d float32.

    A batch without elements changes nothing; without any, they are inf and -inf. NaN stays.

    Args:
        batches: reals, in the order in which they are seen.
    """
    x_min, x_max = np.asarray(np.inf, np.float32), np.asarray(-np.inf, np.float32)
    for batch in batches:
        if batch.size:
            x = batch.astype(np.float32)
            x_min, x_max = np.minimum(x_min, np.min(x)), np.maximum(x_max, np.max(x))
    return x_min, x_max


@formula(
    "torch.observers.per_channel_min_max",
    equation=r"x_{min,c} = \min(x_{min,c}, \min(X_c)),\quad x_{max,c} = \max(x_{max,c}, \max(X_c))",
    basis=AsComputed(dtype="float32"),
    source="torch.ao.quantization.observer.PerChannelMinMaxObserver: running values per channel",
)
def per_channel_min_max(batches: Sequence[Array], ch_axis: int = 0) -> tuple[Array, Array]:
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
    x_min = x_max = np.zeros(0, np.float32)
    for batch in batches:
        if not batch.size:
            continue
        if batch.ndim < 2 or not -batch.ndim <= ch_axis < batch.ndim:  # noqa: PLR2004 - a channel has a list of values
            msg = f"ch_axis={ch_axis} is not accepted for a batch of shape {batch.shape}: give one of two dimensions"
            raise IndexError(msg)
        x = np.moveaxis(batch.astype(np.float32), ch_axis, 0).reshape(batch.shape[ch_axis], -1)
        low, high = np.min(x, axis=1), np.max(x, axis=1)
        if x_min.size not in (0, low.size):
            msg = f"batches with {x_min.size}, then {low.size} channels are not accepted: give one number of them"
            raise RuntimeError(msg)
        x_min = np.minimum(x_min, low) if x_min.size else low
        x_max = np.maximum(x_max, high) if x_max.size else high
    return x_min, x_max


@formula(
    "torch.observers.moving_average_min_max",
    equation=r"x_{min} = (1 - c)\,x_{min} + c \min(X),\quad x_{max} = (1 - c)\,x_{max} + c \max(X)",
    basis=AsComputed(dtype="float32; 1 - c before it is rounded"),
    source="torch.ao.quantization.observer.MovingAverageMinMaxObserver: equations",
)
def moving_average_min_max(batches: Sequence[Array], averaging_constant: float = 0.01) -> tuple[Array, Array]:
    """The moving average of minimum and maximum, as 0-d float32; the first batch with elements gives its own.

    Args:
        batches: floats of any shapes, in the order in which they are seen; those without elements change nothing, and
            without any the results are inf and -inf.
        averaging_constant: c, the share of the new batch.
    """
    x_min, x_max = np.asarray(np.inf, np.float32), np.asarray(-np.inf, np.float32)
    c, rest = np.float32(averaging_constant), np.float32(1 - averaging_constant)
    with np.errstate(all="ignore"):
        for batch in batches:
            if not batch.size:
                continue
            x = batch.astype(np.float32)
            low, high = np.min(x), np.max(x)
            first = bool(x_min == np.inf) and bool(x_max == -np.inf)
            x_min = np.asarray(low if first else rest * x_min + c * low)
            x_max = np.asarray(high if first else rest * x_max + c * high)
    return x_min, x_max


@formula(
    "torch.observers.moving_average_min_max@2.13",
    equation=r"x_{min} = x_{min} + c\,(\min(X) - x_{min}),\quad x_{max} = x_{max} + c\,(\max(X) - x_{max})",
    basis=AsComputed(dtype="float32"),
    source="torch 2.13.0, MovingAverageMinMaxObserver, measured",
)
def moving_average_min_max_2_13(batches: Sequence[Array], averaging_constant: float = 0.01) -> tuple[Array, Array]:
    """As documented, but the mean x + c (new - x), where the document has (1 - c) x + c new: each rounds otherwise."""
    x_min, x_max = np.asarray(np.inf, np.float32), np.asarray(-np.inf, np.float32)
    c = np.float32(averaging_constant)
    with np.errstate(all="ignore"):
        for batch in batches:
            if not batch.size:
                continue
            x = batch.astype(np.float32)
            low, high = np.min(x), np.max(x)
            first = bool(x_min == np.inf) and bool(x_max == -np.inf)
            x_min = np.asarray(low if first else x_min + c * (low - x_min))
            x_max = np.asarray(high if first else x_max + c * (high - x_max))
    return x_min, x_max
