"""pytorch-quantization's ``scaled_e4m3``: what is required, the calls that decide it, and the library's answers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, expected, measured
from halfeven.conformance.systems.pytorch_quantization.tensor_quant import around

__all__ = ["ANSWERS"]

FORMULA = "pytorch-quantization/scaled_e4m3"
F32 = np.dtype(np.float32)
_VALUES = np.arange(127, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(F32)
TIES = (_VALUES[1:] + _VALUES[:-1]) / np.float32(2)


@measured(FORMULA, "ScaledE4M3Function, which the document does not list")
def ties() -> Calls:
    """The scaled input goes to the nearest value of float8_e4m3fn in one rounding, a tie to the even code, and comes
    back by division."""
    # Half-way between two values of the format, with neighbours: all without amax, some with.
    yield {"inputs": around(TIES)}
    for amax in (448.0, 1.0, 0.7, 1e-3, 3e4):
        yield {"inputs": around(TIES[::9] * np.float32(amax / 448)), "amax": np.asarray(amax, F32)}


@measured(FORMULA, "ScaledE4M3Function, which the document does not list")
def saturation() -> Calls:
    """Beyond 448, infinity included, it is 448 of that sign; NaN stays NaN."""
    # From the largest value on: half a step above it, a step, infinity; NaN.
    inputs = np.array([447, 448, 463.9, 464, 464.1, 480, 1e30, np.inf, np.nan, 0.0], F32)
    for x in (inputs, -inputs):
        yield {"inputs": x}
        yield {"inputs": x, "amax": np.asarray(448, F32)}
        yield {"inputs": x, "amax": np.asarray(100, F32)}


@measured(FORMULA, "ScaledE4M3Function, which the document does not list")
def small_inputs() -> Calls:
    """An input below 2**-24 in magnitude gives +0.0, whatever amax; others that underflow keep their sign."""
    inputs = np.concatenate([around([2.0**-24, 2.0**-10, 2.0**-11]), np.array([0.0, -0.0, 1e-45], F32)])
    yield {"inputs": inputs}
    for amax in (1.0, 2.0**-20, 2.0**-24, 2.0**-30):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}


@measured(FORMULA, "ScaledE4M3Function, which the document does not list", aspect="amax")
def amaxes() -> Calls:
    """The scale is the reciprocal of amax in float32, rounded, times 448; it broadcasts with the inputs; an amax of 0
    gives 0."""
    # Amax whose scale is inexact, along an axis, zero, infinite; none of rank 0 to 3.
    inputs = np.array([[0.3, -1, 2.7], [100, -448, 0.01]], F32)
    for amax in (0.7, 3.3, 1e-7, 0.0, np.inf, 2.0**-24):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}
    yield {"inputs": inputs, "amax": np.array([[2.7], [448]], F32)}
    yield {"inputs": inputs, "amax": np.array([0.4, 3, 7], F32)}
    for wide in ([0.7], [0.1, 3.3, 1 / 3]):  # taken to float32
        yield {"inputs": inputs, "amax": np.array(wide, np.float64)}
    for shape in ((), (1,), (2, 3, 1), (0, 3)):
        yield {"inputs": np.full(shape, 0.33, F32), "amax": np.asarray(0.9, F32)}


@measured(FORMULA, "ScaledE4M3Function, which the document does not list")
def refused_format() -> Calls:
    """Only 4 exponent and 3 mantissa bits are implemented."""
    # Other splits of the eight bits, and of others.
    for exponent, mantissa in ((5, 2), (3, 4), (4, 2), (5, 3), (0, 0)):
        yield {"inputs": np.ones(2, F32), "amax": np.asarray(1, F32), "E": exponent, "M": mantissa}


@measured(FORMULA, "ScaledE4M3Function, which the document does not list")
def refused_inputs() -> Calls:
    """On a CPU the inputs are float32."""
    # Other dtypes than float32, with and without amax.
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        inputs = np.array([0.3, 449, -1e-3, 65000, 21.0001, 0.0016601563489530235], np.float64).astype(dtype)
        yield {"inputs": inputs}
        yield {"inputs": inputs, "amax": np.asarray(0.7, F32)}


@expected(FORMULA, "ScaledE4M3Function, which the document does not list")
def refused_amax() -> Calls:
    """A negative or NaN amax, and one that does not broadcast, is refused."""
    inputs = np.array([3, 0.5], F32)
    for amax in (-1.0, np.nan, [1.0, -1e-45]):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}
    yield {"inputs": inputs, "amax": np.ones(3, F32)}


def scaled_e4m3(inputs: Any, amax: Any = None, E: int = 4, M: int = 3) -> Any:  # noqa: N803 - the names it has
    """ScaledE4M3Function: on a CPU ``fp8_eager``."""
    from modelopt.torch.quantization.tensor_quant import scaled_e4m3 as scaled

    return scaled(inputs, amax, None, E, M)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt": {
        "pytorch-quantization/scaled_e4m3": scaled_e4m3,
    },
}
