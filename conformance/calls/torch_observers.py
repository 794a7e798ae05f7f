"""Calls of torch's observers: ranges beside zero, equal ends, tiny and huge ranges, every dtype and scheme; batches."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

_INF, _NAN = np.inf, np.nan
_DTYPES = ("quint8", "qint8", "uint8", "int8", "int16", "uint16", "qint32", "int32", "quint4x2", "float8_e5m2")
_TENSOR = ("per_tensor_affine", "per_tensor_symmetric")
_CHANNEL = ("per_channel_affine", "per_channel_symmetric")
_BOTH_SIDES = ((-1, 3), (-0.3, 0.1), (-1000, 500), (-7e-3, 2e5), (-0.1, 0.7), (-127.5, 127.5), (-1, 254), (-0.5, 254.5))


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _range(low: Any, high: Any, **settings: Any) -> Arguments:
    return {"min_val": _f(low), "max_val": _f(high)} | settings


@calls("torch.observers.calculate_qparams", "affine")
def _() -> Iterator[Arguments]:
    for low, high in _BOTH_SIDES:
        for dtype in ("quint8", "qint8"):
            yield _range(low, high, dtype=dtype)
    # The quotient falls on a tie: s is 1, and a power of two.
    for low in (-0.5, -1.5, -2.5, -127.5, -253.5):
        for scale in (1.0, 2.0**-7):
            yield _range(low * scale, (low + 255) * scale)
            yield _range(low * scale, (low + 255) * scale, dtype="qint8")


@calls("torch.observers.calculate_qparams", "symmetric")
def _() -> Iterator[Arguments]:
    for low, high in (*_BOTH_SIDES, (1, 2), (-2, -1), (0, 5), (-5, 0), (-3e38, 3e38)):
        for dtype in ("quint8", "qint8"):
            yield _range(low, high, dtype=dtype, qscheme="per_tensor_symmetric")


@calls("torch.observers.calculate_qparams", "one-sided")
def _() -> Iterator[Arguments]:
    for low, high in ((1, 2), (-2, -1), (0.5, 0.75), (100, 101), (0, 1), (-1, 0), (0, 3.3)):
        for dtype in ("quint8", "qint8"):
            yield _range(low, high, dtype=dtype)


@calls("torch.observers.calculate_qparams", "equal-ends")
def _() -> Iterator[Arguments]:
    for value in (0, 1, -3, 1e-30):
        for qscheme in _TENSOR:
            yield _range(value, value, qscheme=qscheme, dtype="qint8")
    yield _range([0, 2, -1], [0, 2, 1], qscheme="per_channel_affine")


@calls("torch.observers.calculate_qparams", "small-ranges")
def _() -> Iterator[Arguments]:
    for size in (1e-30, 1e-6, 3e-5, 3.0398369e-05, 1e-40):
        for qscheme in _TENSOR:
            yield _range(-size, size, qscheme=qscheme, dtype="qint8")
            yield _range(-size, size / 2, qscheme=qscheme, eps=1e-12)
    yield _range(-1, 1, eps=0.5)


@calls("torch.observers.calculate_qparams", "dtypes")
def _() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        for qscheme in _TENSOR:
            yield _range(-1000, 500, dtype=dtype, qscheme=qscheme)


@calls("torch.observers.calculate_qparams", "reduced-range")
def _() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        for qscheme in _TENSOR:
            yield _range(-1, 3, dtype=dtype, qscheme=qscheme, reduce_range=True)


@calls("torch.observers.calculate_qparams", "given-ends")
def _() -> Iterator[Arguments]:
    for low, high in ((0, 15), (-8, 7), (-7, 7), (0, 1), (-1, 0), (-128, 127), (-7, 0)):
        for dtype in ("quint8", "qint8"):
            yield _range(-1, 3, dtype=dtype, quant_min=low, quant_max=high)
            yield _range(-1, 3, dtype=dtype, quant_min=low, quant_max=high, reduce_range=True)
    yield _range(-1, 3, quant_min=1)
    yield _range(-1, 3, quant_max=7)


@calls("torch.observers.calculate_qparams", "given-ends-symmetric")
def _() -> Iterator[Arguments]:
    for low, high in ((0, 15), (0, 14), (-4, 3), (0, 255)):
        for dtype in ("quint8", "uint8", "qint8", "uint16"):
            ends = {"quant_min": low, "quant_max": high}
            yield _range(-1, 3, dtype=dtype, qscheme="per_tensor_symmetric", **ends)


@calls("torch.observers.calculate_qparams", "channels")
def _() -> Iterator[Arguments]:
    low, high = [-1, -0.3, -1000, -1e-3], [3, 0.1, 500, 2e5]
    for qscheme in _CHANNEL:
        for dtype in ("quint8", "qint8", "int16"):
            yield _range(low, high, qscheme=qscheme, dtype=dtype)
    yield _range(-1, 1, qscheme="per_channel_affine")


@calls("torch.observers.calculate_qparams", "float-zero-points")
def _() -> Iterator[Arguments]:
    for low, high in (([-1, 0, 1, -2], [1, 0, 2, -1]), ([-3e38, 1e-9], [3e38, 2e-9])):
        for dtype in ("quint8", "quint4x2"):
            yield _range(low, high, qscheme="per_channel_affine_float_qparams", dtype=dtype)


@calls("torch.observers.calculate_qparams", "unobserved")
def _() -> Iterator[Arguments]:
    for qscheme in _TENSOR:
        yield _range(_INF, -_INF, qscheme=qscheme)
    for qscheme in _CHANNEL:
        yield _range([], [], qscheme=qscheme)


@calls("torch.observers.calculate_qparams", "specials")
def _() -> Iterator[Arguments]:
    for low, high in ((_NAN, 1), (-1, _NAN), (-1, _INF), (-_INF, _INF), (-_INF, 1), (-3.4e38, 3.4e38)):
        for qscheme in _TENSOR:
            for dtype in ("quint8", "qint8"):
                yield _range(low, high, qscheme=qscheme, dtype=dtype)
    yield _range(-1000, 0, dtype="qint32")


@calls("torch.observers.calculate_qparams", "refusals")
def _() -> Iterator[Arguments]:
    yield _range(1, -1)
    yield _range([-1, 2], [1, 1], qscheme="per_channel_affine")
    yield _range(-1, 1, dtype="float32")
    yield _range(-1, 1, dtype="int64")
    yield _range(-1, 1, dtype="quint8", qscheme="per_tensor_symmetric", reduce_range=True)
    yield _range([-1], [1], dtype="quint8", qscheme="per_channel_symmetric", reduce_range=True)
    for low, high in ((1, 5), (-5, -1), (0, 0), (3, -3)):
        yield _range(-1, 1, quant_min=low, quant_max=high)
    for dtype in ("qint8", "int8", "quint8"):
        yield _range(-1, 1, dtype=dtype, quant_min=0, quant_max=256)
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


@calls("torch.observers.min_max", "batches")
def _() -> Iterator[Arguments]:
    for batches in _batches():
        yield {"batches": batches}


@calls("torch.observers.moving_average_min_max", "batches")
def _() -> Iterator[Arguments]:
    for batches in _batches():
        for constant in (0.01, 0.1, 0.5, 1.0):
            yield {"batches": batches, "averaging_constant": constant}
    steps = tuple(_f([0.1 * k, -0.3 / (k + 1)]) for k in range(8))
    yield {"batches": steps}
    yield {"batches": steps, "averaging_constant": 1 / 3}


@calls("torch.observers.per_channel_min_max", "batches")
def _() -> Iterator[Arguments]:
    x = _f(np.arange(24).reshape(2, 3, 4) * 0.3 - 2)
    for axis in (0, 1, 2, -1, -3):
        yield {"batches": (x,), "ch_axis": axis}
        yield {"batches": (x, -x, x[:0]), "ch_axis": axis}
    yield {"batches": ()}
    yield {"batches": (x[0], _f([[_NAN, 1], [2, 3], [4, _INF]]), x[0] * 0)}
    yield {"batches": (x[0].astype(np.float16),), "ch_axis": 1}


@calls("torch.observers.per_channel_min_max", "refusals")
def _() -> Iterator[Arguments]:
    x = _f(np.arange(6).reshape(2, 3))
    yield {"batches": (x[0],)}
    yield {"batches": (x,), "ch_axis": 2}
    yield {"batches": (x,), "ch_axis": -3}
    yield {"batches": (x, x.T)}
