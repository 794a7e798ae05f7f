"""pytorch-quantization's ``fake_affine_tensor_quant``: what is required, and the calls that decide it."""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, expected, measured
from halfeven.conformance.systems.pytorch_quantization.tensor_quant import around

__all__: list[str] = []

FORMULA = "pytorch-quantization/fake_affine_tensor_quant"
F32 = np.dtype(np.float32)
RANGES = ((-1.0, 1.0), (0.0, 1.0), (-0.3, 2.2), (-3.0, 0.0), (0.25, 0.75), (-128.0, 127.0), (-1e-20, 3e-20))


def _range(low: float, high: float, dtype: Any = F32) -> Arguments:
    return {"min_range": np.asarray(low, dtype), "max_range": np.asarray(high, dtype)}


@measured(FORMULA, "FakeAffineTensorQuantFunction, which the document does not list")
def ties() -> Calls:
    """The quotient by the step goes to the nearest integer, a tie to the even one, before the zero point is
    subtracted."""
    # The half-way points between the reals of the grid, and their neighbours.
    for bits in (2, 4, 8, 12, 16):
        for low, high in RANGES:
            step = (high - low) / (2**bits - 1)
            steps = np.round(np.linspace(low, high, 5) / step) + 0.5
            yield {"inputs": around(steps * step), **_range(low, high), "num_bits": bits}


@measured(FORMULA, "FakeAffineTensorQuantFunction, which the document does not list", aspect="range")
def ends() -> Calls:
    """The 2^b codes from -2^(b-1) stand for reals from about the minimum; all beyond goes to the ends, infinities too;
    NaN stays."""
    for bits in (1, 2, 3, 8, 16):
        for low, high in RANGES:
            ends = np.concatenate([around([abs(low), abs(high)]), np.array([low - high, 9e9, -9e9], F32)])
            inputs = np.concatenate([ends, np.array([np.nan, np.inf, -np.inf, 0.0, -0.0], F32)])
            yield {"inputs": inputs, **_range(low, high), "num_bits": bits}


@measured(FORMULA, "FakeAffineTensorQuantFunction, which the document does not list")
def default_num_bits() -> Calls:
    """Left out, num_bits is 8."""
    # No more than inputs and range.
    yield {"inputs": np.array([[-1, 1], [0.5, 0.1]], F32), **_range(-1, 1)}
    yield {"inputs": np.asarray(0.3, F32), **_range(-1, 1)}
    yield {"inputs": np.zeros((0, 2), F32), **_range(-1, 1)}


@measured(FORMULA, "FakeAffineTensorQuantFunction, which the document does not list")
def dtypes() -> Calls:
    """Every operation is rounded to the inputs' dtype, float16 among them; a range without dimensions widens
    nothing."""
    # Every dtype of inputs with ranges of three dtypes.
    values = np.array([0.3, -0.9, 0.66, 1.5, -0.004, 0.1])
    for x in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64):
        for r in (np.float32, np.float16, np.float64):
            for bits in (4, 8, 13, 16):
                yield {"inputs": values.astype(x), **_range(-0.7, 1.1, r), "num_bits": bits}
            yield {"inputs": np.asarray(0.3, x), **_range(-0.7, 1.1, r)}
    # A zero point of more bits than the range's dtype.
    yield {"inputs": values.astype(F32), **_range(-0.1, 0.3196, np.float16), "num_bits": 13}


@measured(FORMULA, "FakeAffineTensorQuantFunction, which the document does not list")
def no_range() -> Calls:
    """A range of one point gives NaN; one from its end to its start is computed as any other."""
    inputs = np.array([0, 1, -1, np.nan], F32)
    for low, high in ((0.0, 0.0), (1.0, 1.0), (1.0, -1.0)):
        yield {"inputs": inputs, **_range(low, high)}


@expected(FORMULA, "FakeAffineTensorQuantFunction, which the document does not list")
def refusals() -> Calls:
    """A range that is no array, a num_bits that is no integer of 1 or more, and integer inputs are refused."""
    # Ranges that are no arrays, widths that are none, integer inputs.
    inputs = np.array([0, 1], F32)
    yield {"inputs": inputs, "min_range": -1.0, "max_range": 1.0}
    yield {"inputs": inputs, "min_range": np.asarray(-1, F32), "max_range": 1.0}
    yield {"inputs": inputs, "min_range": -1.0, "max_range": np.asarray(1, F32)}
    for bits in (0, -3, 8.0, "8"):
        yield {"inputs": inputs, **_range(-1, 1), "num_bits": bits}
    yield {"inputs": inputs.astype(np.int32), **_range(-1, 1)}
