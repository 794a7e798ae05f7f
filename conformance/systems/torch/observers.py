"""What is required of torch's observers, the calls that decide it, and the libraries' answers."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

_INF, _NAN = np.inf, np.nan
_INTEGERS = ("quint8", "qint8", "uint8", "int8", "int16", "uint16", "qint32", "int32", "quint4x2")
_DTYPES = (*_INTEGERS, "float8_e5m2", "float8_e4m3fn")
_TENSOR = ("per_tensor_affine", "per_tensor_symmetric")
_CHANNEL = ("per_channel_affine", "per_channel_symmetric")
_FAR = ((-1000, -999.99994), (999.99994, 1000))  # zero points that an int32 does not hold
_BOTH_SIDES = ((-1, 3), (-0.3, 0.1), (-1000, 500), (-7e-3, 2e5), (-0.1, 0.7), (-127.5, 127.5), (-1, 254), (-0.5, 254.5))


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _range(low: Any, high: Any, **settings: Any) -> Arguments:
    return {"min_val": _f(low), "max_val": _f(high)} | settings


@documented("torch/MinMaxObserver.calculate_qparams", "MinMaxObserver: equations of s and z, not symmetric")
def affine() -> Calls:
    """An affine scale is the range over the number of steps, and the zero point the lowest code less the rounded
    quotient of the minimum and the scale, a tie to the even integer."""
    for low, high in _BOTH_SIDES:
        for dtype in ("quint8", "qint8"):
            yield _range(low, high, dtype=dtype)
    # The quotient falls on a tie: s is 1, and a power of two.
    for low in (-0.5, -1.5, -2.5, -127.5, -253.5):
        for scale in (1.0, 2.0**-7):
            yield _range(low * scale, (low + 255) * scale)
            yield _range(low * scale, (low + 255) * scale, dtype="qint8")


@documented("torch/MinMaxObserver.calculate_qparams", "MinMaxObserver: equations of s and z, symmetric")
def symmetric() -> Calls:
    """A symmetric scale is twice the largest magnitude over the number of steps; the zero point is 0 for qint8 and 128
    otherwise."""
    for low, high in (*_BOTH_SIDES, (1, 2), (-2, -1), (0, 5), (-5, 0), (-3e38, 3e38)):
        for dtype in ("quint8", "qint8"):
            yield _range(low, high, dtype=dtype, qscheme="per_tensor_symmetric")


@documented(
    "torch/MinMaxObserver.calculate_qparams",
    "MinMaxObserver: equations of s and z, not symmetric",
    aspect="one-sided-ranges",
)
def one_sided() -> Calls:
    """The equations hold for a range that does not hold zero."""
    for low, high in ((1, 2), (-2, -1), (0.5, 0.75), (100, 101), (0, 1), (-1, 0), (0, 3.3), *_FAR):
        for dtype in ("quint8", "qint8"):
            yield _range(low, high, dtype=dtype)


@documented("torch/MinMaxObserver.calculate_qparams", "MinMaxObserver: note on equal minimum and maximum")
def equal_ends() -> Calls:
    """Where minimum and maximum are equal, the scale is 1 and the zero point 0."""
    for value in (0, 1, -3, 1e-30):
        for qscheme in _TENSOR:
            yield _range(value, value, qscheme=qscheme, dtype="qint8")
    yield _range([0, 2, -1], [0, 2, 1], qscheme="per_channel_affine")


@documented("torch/MinMaxObserver.calculate_qparams", "MinMaxObserver: equations of s; it does not say what eps is for")
def small_ranges() -> Calls:
    """The equations hold for ranges however small."""
    for size in (1e-30, 1e-6, 3e-5, 3.0398369e-05, 1e-40):
        for qscheme in _TENSOR:
            yield _range(-size, size, qscheme=qscheme, dtype="qint8")
            yield _range(-size, size / 2, qscheme=qscheme, eps=1e-12)
    yield _range(-1, 1, eps=0.5)


@documented(
    "torch/MinMaxObserver.calculate_qparams",
    "MinMaxObserver: Qmin and Qmax; dtypes other than qint8 and quint8, and their zero points, are measured",
)
def dtypes() -> Calls:
    """The ends of the range are those of the dtype."""
    for dtype in _DTYPES:
        for qscheme in _TENSOR:
            yield _range(-1000, 500, dtype=dtype, qscheme=qscheme)


@documented("torch/MinMaxObserver.calculate_qparams", "MinMaxObserver: argument reduce_range")
def reduced_range() -> Calls:
    """reduce_range leaves out one bit of an 8-bit range."""
    for dtype in _DTYPES:
        for qscheme in _TENSOR:
            yield _range(-1, 3, dtype=dtype, qscheme=qscheme, reduce_range=True)


@documented(
    "torch/MinMaxObserver.calculate_qparams",
    "MinMaxObserver: arguments quant_min and quant_max; that they are halved is measured",
)
def given_ends() -> Calls:
    """quant_min and quant_max together replace the ends of the range; reduce_range halves them."""
    for low, high in ((0, 15), (-8, 7), (-7, 7), (0, 1), (-1, 0), (-128, 127), (-7, 0)):
        for dtype in ("quint8", "qint8"):
            yield _range(-1, 3, dtype=dtype, quant_min=low, quant_max=high)
            yield _range(-1, 3, dtype=dtype, quant_min=low, quant_max=high, reduce_range=True)
    yield _range(-1, 3, quant_min=1)
    yield _range(-1, 3, quant_max=7)


@documented("torch/MinMaxObserver.calculate_qparams", "MinMaxObserver: equation of z, symmetric")
def given_ends_symmetric() -> Calls:
    """The symmetric zero point does not depend on given ends."""
    for low, high in ((0, 15), (0, 14), (-4, 3), (0, 255)):
        for dtype in ("quint8", "uint8", "qint8", "uint16"):
            ends = {"quant_min": low, "quant_max": high}
            yield _range(-1, 3, dtype=dtype, qscheme="per_tensor_symmetric", **ends)


@documented(
    "torch/MinMaxObserver.calculate_qparams", "PerChannelMinMaxObserver: computed as MinMaxObserver, per channel"
)
def channels() -> Calls:
    """Every channel has its own scale and zero point."""
    low, high = [-1, -0.3, -1000, -1e-3], [3, 0.1, 500, 2e5]
    for qscheme in _CHANNEL:
        for dtype in ("quint8", "qint8", "int16"):
            yield _range(low, high, qscheme=qscheme, dtype=dtype)
    yield _range(-1, 1, qscheme="per_channel_affine")


@measured("torch/MinMaxObserver.calculate_qparams", "torch 2.13.0, PerChannelMinMaxObserver")
def float_zero_points() -> Calls:
    """per_channel_affine_float_qparams keeps the range as it is, takes 1 for a scale of at most eps, and does not round
    the zero point."""
    for low, high in (([-1, 0, 1, -2], [1, 0, 2, -1]), ([-3e38, 1e-9], [3e38, 2e-9])):
        for dtype in ("quint8", "quint4x2"):
            yield _range(low, high, qscheme="per_channel_affine_float_qparams", dtype=dtype)
    for eps in (2.0**-23, 0.5, 0.1):  # a scale of just eps, which float32 may not hold, and its neighbours
        ends = [255 * float(np.float32(eps)) * (1 + k * 2.0**-22) for k in (-1, 0, 1)]
        yield _range([0, 0, 0], ends, qscheme="per_channel_affine_float_qparams", eps=eps)


@measured("torch/MinMaxObserver.calculate_qparams", "torch 2.13.0, MinMaxObserver and PerChannelMinMaxObserver")
def unobserved() -> Calls:
    """Before anything was observed, the scale is 1 and the zero point 0."""
    for qscheme in _TENSOR:
        yield _range(_INF, -_INF, qscheme=qscheme)
    for qscheme in _CHANNEL:
        yield _range([], [], qscheme=qscheme)
        yield _range([], [1], qscheme=qscheme)
        yield _range([1], [], qscheme=qscheme)


@expected("torch/MinMaxObserver.calculate_qparams", "MinMaxObserver says nothing of them")
def specials() -> Calls:
    """NaN and infinite ranges give NaN and infinite scales, and the zero point that the equation gives where it gives
    one."""
    for low, high in ((_NAN, 1), (-1, _NAN), (-1, _INF), (-_INF, _INF), (-_INF, 1), (-3.4e38, 3.4e38)):
        for qscheme in _TENSOR:
            for dtype in ("quint8", "qint8"):
                yield _range(low, high, qscheme=qscheme, dtype=dtype)
    yield _range(-1000, 0, dtype="qint32")


@measured("torch/MinMaxObserver.calculate_qparams", "torch 2.13.0, MinMaxObserver")
def refusals() -> Calls:
    """A minimum above the maximum, another dtype, ends without zero between them, more than 256 codes for int8 and a
    reduced symmetric quint8 are refused."""
    yield _range(1, -1)
    yield _range(_INF, 3)
    yield _range(-3, -_INF)
    yield _range([-1, 2], [1, 1], qscheme="per_channel_affine")
    yield _range(-1, 1, dtype="float32")
    yield _range(-1, 1, dtype="int64")
    yield _range(-1, 1, dtype="quint8", qscheme="per_tensor_symmetric", reduce_range=True)
    yield _range([-1], [1], dtype="quint8", qscheme="per_channel_symmetric", reduce_range=True)
    for low, high in ((1, 5), (-5, -1), (0, 0), (3, -3)):
        yield _range(-1, 1, quant_min=low, quant_max=high)
    for dtype in ("qint8", "int8", "quint8"):
        yield _range(-1, 1, dtype=dtype, quant_min=0, quant_max=256)
        yield _range(-1, 1, dtype=dtype, quant_min=-200, quant_max=200)
        yield _range(-1, 1, dtype=dtype, quant_min=0, quant_max=255)


def _batches() -> Iterator[tuple[Array, ...]]:
    yield ()
    yield (_f([]),)
    yield (_f([1, 2]), _f([-1, 0.3]), _f([]), _f([[5], [0.1]]))
    yield (_f(3.0), _f([2.5, -1e-3]))
    yield (np.array([1, -0.3], np.float16), np.array([0.1, 7], ml_dtypes.bfloat16), np.array([1e-60, 1 / 3]))
    yield (_f([1, -1]), _f([_INF, 0.5]), _f([0.25]))
    yield (_f([1, -1]), _f([_NAN, 0.5]), _f([0.25]))
    yield (_f([_NAN]), _f([0.25, 4]))
    yield (_f([_INF]), _f([1, 2]))
    yield (_f([-_INF]), _f([1, 2]))


@documented(
    "torch/MinMaxObserver",
    "MinMaxObserver: equations of the running minimum and maximum; NaN and empty batches are measured",
    aspect="batches",
)
def minmax_batches() -> Calls:
    """Minimum and maximum run over all batches; NaN stays, and a batch without elements changes nothing."""
    for batches in _batches():
        yield {"batches": batches}


@documented("torch/MovingAverageMinMaxObserver", "MovingAverageMinMaxObserver: equations", aspect="batches")
def moving_average_batches() -> Calls:
    """After the first batch, minimum and maximum are (1 - c) times the old plus c times the new."""
    for batches in _batches():
        for constant in (0.01, 0.1, 0.5, 1.0):
            yield {"batches": batches, "averaging_constant": constant}
    steps = tuple(_f([0.1 * k, -0.3 / (k + 1)]) for k in range(8))
    yield {"batches": steps}
    yield {"batches": steps, "averaging_constant": 1 / 3}


@documented("torch/PerChannelMinMaxObserver", "PerChannelMinMaxObserver: running values per channel", aspect="batches")
def channel_batches() -> Calls:
    """Minimum and maximum run per index along ch_axis."""
    x = _f(np.arange(24).reshape(2, 3, 4) * 0.3 - 2)
    for axis in (0, 1, 2, -1, -3):
        yield {"batches": (x,), "ch_axis": axis}
        yield {"batches": (x, -x, x[:0]), "ch_axis": axis}
    yield {"batches": ()}
    yield {"batches": (x[0], _f([[_NAN, 1], [2, 3], [4, _INF]]), x[0] * 0)}
    yield {"batches": (x[0].astype(np.float16),), "ch_axis": 1}


@measured("torch/PerChannelMinMaxObserver", "torch 2.13.0, PerChannelMinMaxObserver", aspect="refusals")
def channel_refusals() -> Calls:
    """Fewer than two dimensions, an axis outside them and another number of channels are refused."""
    x = _f(np.arange(6).reshape(2, 3))
    yield {"batches": (x[0],)}
    yield {"batches": (x,), "ch_axis": 2}
    yield {"batches": (x,), "ch_axis": -3}
    yield {"batches": (x, x.T)}


def _calculate_qparams(min_val: Any, max_val: Any, **settings: Any) -> Any:
    import warnings

    import torch
    from torch.ao.quantization.observer import MinMaxObserver, PerChannelMinMaxObserver

    warnings.simplefilter("ignore")
    given = {k: getattr(torch, v) if isinstance(v, str) else v for k, v in settings.items()}
    per_channel = settings.get("qscheme", "").startswith("per_channel")
    observer = (PerChannelMinMaxObserver if per_channel else MinMaxObserver)(**given)
    observer.min_val, observer.max_val = min_val, max_val
    return observer.calculate_qparams()


def _min_max(batches: Sequence[Any]) -> Any:
    from torch.ao.quantization.observer import MinMaxObserver

    observer = MinMaxObserver()
    for batch in batches:
        observer(batch)
    return observer.min_val, observer.max_val


def _per_channel_min_max(batches: Sequence[Any], ch_axis: int = 0) -> Any:
    from torch.ao.quantization.observer import PerChannelMinMaxObserver

    observer = PerChannelMinMaxObserver(ch_axis=ch_axis)
    for batch in batches:
        observer(batch)
    return observer.min_val, observer.max_val


def _moving_average_min_max(batches: Sequence[Any], averaging_constant: float = 0.01) -> Any:
    from torch.ao.quantization.observer import MovingAverageMinMaxObserver

    observer = MovingAverageMinMaxObserver(averaging_constant=averaging_constant)
    for batch in batches:
        observer(batch)
    return observer.min_val, observer.max_val


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch.observers": {
        "torch/MinMaxObserver.calculate_qparams": _calculate_qparams,
        "torch/MinMaxObserver": _min_max,
        "torch/PerChannelMinMaxObserver": _per_channel_min_max,
        "torch/MovingAverageMinMaxObserver": _moving_average_min_max,
    },
}
