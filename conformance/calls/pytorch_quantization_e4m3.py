"""Calls of ``scaled_e4m3``: ties of the format, its ends, underflow, amax of every kind, refusals."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from halfeven.conformance.calls.pytorch_quantization_tensor_quant import around
from halfeven.conformance.calls.registry import Arguments, calls

__all__: list[str] = []

FORMULA = "pytorch_quantization.scaled_e4m3"
F32 = np.dtype(np.float32)
_VALUES = np.arange(127, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(F32)
TIES = (_VALUES[1:] + _VALUES[:-1]) / np.float32(2)


@calls(FORMULA, "ties")
def ties() -> Iterator[Arguments]:
    """Half-way between two values of the format, with neighbours: all without amax, some with."""
    yield {"inputs": around(TIES)}
    for amax in (448.0, 1.0, 0.7, 1e-3, 3e4):
        yield {"inputs": around(TIES[::9] * np.float32(amax / 448)), "amax": np.asarray(amax, F32)}


@calls(FORMULA, "saturation")
def saturation() -> Iterator[Arguments]:
    """From the largest value on: half a step above it, a step, infinity; NaN."""
    inputs = np.array([447, 448, 463.9, 464, 464.1, 480, 1e30, np.inf, np.nan, 0.0], F32)
    for x in (inputs, -inputs):
        yield {"inputs": x}
        yield {"inputs": x, "amax": np.asarray(448, F32)}
        yield {"inputs": x, "amax": np.asarray(100, F32)}


@calls(FORMULA, "small-inputs")
def small() -> Iterator[Arguments]:
    """Inputs at and beside 2**-24, and those that underflow above it."""
    inputs = np.concatenate([around([2.0**-24, 2.0**-10, 2.0**-11]), np.array([0.0, -0.0, 1e-45], F32)])
    yield {"inputs": inputs}
    for amax in (1.0, 2.0**-20, 2.0**-24, 2.0**-30):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}


@calls(FORMULA, "amax")
def amaxes() -> Iterator[Arguments]:
    """Amax whose scale is inexact, along an axis, zero, infinite; none of rank 0 to 3."""
    inputs = np.array([[0.3, -1, 2.7], [100, -448, 0.01]], F32)
    for amax in (0.7, 3.3, 1e-7, 0.0, np.inf, 2.0**-24):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}
    yield {"inputs": inputs, "amax": np.array([[2.7], [448]], F32)}
    yield {"inputs": inputs, "amax": np.array([0.4, 3, 7], F32)}
    for wide in ([0.7], [0.1, 3.3, 1 / 3]):  # taken to float32
        yield {"inputs": inputs, "amax": np.array(wide, np.float64)}
    for shape in ((), (1,), (2, 3, 1), (0, 3)):
        yield {"inputs": np.full(shape, 0.33, F32), "amax": np.asarray(0.9, F32)}


@calls(FORMULA, "refused-format")
def formats() -> Iterator[Arguments]:
    """Other splits of the eight bits, and of others."""
    for exponent, mantissa in ((5, 2), (3, 4), (4, 2), (5, 3), (0, 0)):
        yield {"inputs": np.ones(2, F32), "amax": np.asarray(1, F32), "E": exponent, "M": mantissa}


@calls(FORMULA, "refused-inputs")
def refused_inputs() -> Iterator[Arguments]:
    """Other dtypes than float32, with and without amax."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        inputs = np.array([0.3, 449, -1e-3, 65000, 21.0001], np.float64).astype(dtype)
        yield {"inputs": inputs}
        yield {"inputs": inputs, "amax": np.asarray(0.7, F32)}


@calls(FORMULA, "refused-amax")
def refused_amax() -> Iterator[Arguments]:
    """Negative values, NaN, and shapes that do not broadcast."""
    inputs = np.array([3, 0.5], F32)
    for amax in (-1.0, np.nan, [1.0, -1e-45]):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}
    yield {"inputs": inputs, "amax": np.ones(3, F32)}
