"""Calls of quantized_decomposed's choose_qparams: ranges beside zero, ties of zero points, every dtype."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

_DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
_EPS = 2.0**-23
_INF, _NAN = np.inf, np.nan
_ROWS = ((1, -0.3), (1, 2), (-2, -1), (0.1, 0.7, -0.1), (3,), (-3,), (5e4, -6e4), (1e-3, -1e-5), (-127.5, 127.5))


def _whole(name: str) -> None:  # noqa: C901 - four short sets
    @calls(f"torch.observers.{name}", "ranges")
    def _() -> Iterator[Arguments]:
        for row in _ROWS:
            for dtype in _DTYPES:
                x = np.asarray(row).astype(dtype)
                yield {"input": x, "qmin": -128, "qmax": 127, "eps": _EPS, "dtype": "int8"}
                yield {"input": x.reshape(-1, 1), "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}

    @calls(f"torch.observers.{name}", "small-and-special")
    def _() -> Iterator[Arguments]:
        rows = ((0,), (0, 0), (1e-6, -1e-6), (1e-30,), (-1e-40,), (_NAN, 1), (_INF, 1), (-_INF, 1), (_INF, -_INF))
        for row in rows:
            for dtype in _DTYPES:
                for eps in (_EPS, 1e-5, 1e-45):
                    ends = {"qmin": -128, "qmax": 127, "eps": eps, "dtype": "int8"}
                    yield {"input": np.asarray(row, np.float64).astype(dtype)} | ends
                x = np.asarray(row, np.float64).astype(dtype)
                yield {"input": x, "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}

    @calls(f"torch.observers.{name}", "ends")
    def _() -> Iterator[Arguments]:
        x = np.array([1, -0.3], np.float32)
        for low, high in ((0, 1), (-1, 0), (-8, 7), (0, 15), (-127, 127), (0, 65535), (-(2**15), 2**15 - 1)):
            yield {"input": x, "qmin": low, "qmax": high, "eps": _EPS, "dtype": "int32"}
        for dtype in ("uint8", "int8", "uint16", "int16", "int32", "float8_e5m2", "float8_e4m3fn"):
            yield {"input": x, "qmin": 0, "qmax": 300, "eps": _EPS, "dtype": dtype}

    @calls(f"torch.observers.{name}", "refusals")
    def _() -> Iterator[Arguments]:
        good: dict[str, Any] = {"input": np.ones(2, np.float32), "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}
        changes: tuple[dict[str, Any], ...] = ({"input": np.ones(2)}, {"input": np.ones(0, np.float32)})
        changes += ({"qmin": 1}, {"qmax": -1}, {"qmax": 0}, {"dtype": "float32"}, {"dtype": "int64"})
        for change in changes:
            yield good | change


_whole("choose_qparams")
_whole("choose_qparams_symmetric")


@calls("torch.observers.choose_qparams", "zero-point-ties")
def _() -> Iterator[Arguments]:
    for low in (-0.5, -1.5, -2.5, -127.5, -253.5):
        for scale in (1.0, 2.0**-7):
            x = np.array([low * scale, (low + 255) * scale], np.float32)
            yield {"input": x, "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}


def _tokens() -> Iterator[Array]:
    rows = ((1, -0.3), (1, 2), (-2, -1), (0.1, 0.7), (3, 0), (0, -3), (0, 0), (1e-7, 0), (5e4, -6e4), (1e-3, -1e-5))
    for dtype in _DTYPES:
        yield np.asarray(rows, np.float64).astype(dtype)
        yield np.asarray(rows[:4], np.float64).astype(dtype).reshape(2, 2, 2)
        yield np.asarray([[1, 2, 3, -0.5, 0.7]], np.float64).astype(dtype)
        yield np.asarray(0.7, np.float64).astype(dtype)
        yield np.zeros((0, 2), dtype)


@calls("torch.observers.choose_qparams_per_token", "tokens")
def _() -> Iterator[Arguments]:
    for x in _tokens():
        yield {"input": x, "dtype": "int8"}
    one, rest = np.nextafter(np.float32(1), np.float32(0)), ((1, -0.3), (0.1, 0.7), (1e-5, 0), (1e-7, 0))
    yield {"input": np.array([[one], [-3 * one]], np.float32), "dtype": "int8"}  # the reciprocal of 127 would show
    yield {"input": np.array([[np.nextafter(1.0, 0), 0], *rest]), "dtype": "int8"}


@calls("torch.observers.choose_qparams_per_token", "specials")
def _() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        x = np.array([[_NAN, 1], [_INF, 1], [1, -_INF], [1e-5, 0], [-1.1e-5, 0], [9e-6, 0]]).astype(dtype)
        yield {"input": x, "dtype": "int8"}


@calls("torch.observers.choose_qparams_per_token", "refusals")
def _() -> Iterator[Arguments]:
    yield {"input": np.ones((2, 2), np.float32), "dtype": "uint8"}
    yield {"input": np.ones((2, 0), np.float32), "dtype": "int8"}


@calls("torch.observers.choose_qparams_per_token_asymmetric", "tokens")
def _() -> Iterator[Arguments]:
    for x in _tokens():
        yield {"input": x, "dtype": "int8"}
    # The errors of both ends decide, not that of the maximum alone: the two zero points are one code apart.
    apart = ((-68.79551696777344, 40.505767822265625), (-58.84375, 14.8984375), (-123.5, 25.25))
    for row, dtype in zip(apart, (np.float32, np.float16, ml_dtypes.bfloat16), strict=True):
        yield {"input": np.array([row]).astype(dtype), "dtype": "int8"}


@calls("torch.observers.choose_qparams_per_token_asymmetric", "ties")
def _() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        lows = np.array([-0.5, -1.5, -2.5, -127.5, -126.5, -253.5])
        yield {"input": np.stack([lows, lows + 255], axis=1).astype(dtype), "dtype": "int8"}


@calls("torch.observers.choose_qparams_per_token_asymmetric", "specials")
def _() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        x = np.array([[_NAN, 1], [_INF, 1], [1, -_INF], [_INF, -_INF], [3e38, -3e38], [-1e-8, 0]]).astype(dtype)
        yield {"input": x, "dtype": "int8"}


@calls("torch.observers.choose_qparams_per_token_asymmetric", "refusals")
def _() -> Iterator[Arguments]:
    yield {"input": np.ones((2, 0), np.float32), "dtype": "int8"}
