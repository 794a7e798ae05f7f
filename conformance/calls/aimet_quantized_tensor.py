"""Calls of what AIMET's tensors represent: every dtype's ends, and round trips through codes."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.aimet_affine import DTYPES, F32, boundaries, scalar
from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__ = ["EXAMPLE", "EXAMPLE_SCALE"]

EXAMPLE = np.array([[-1.20, 4.1, -0.21, 2.3], [0.2, 5.6, -1.0, -0.1]], F32)
_STEP = EXAMPLE.max(axis=1, keepdims=True) / F32.type(127)
EXAMPLE_SCALE = (F32.type(127) * _STEP - F32.type(-128) * _STEP) / F32.type(255)
_PRINTED = np.array([[11, -57, -128, 38], [28, -0.0, -128, -40]], F32)


@calls("aimet.quantized_repr", "dtypes")
def dtypes() -> Iterator[Arguments]:
    """Both ends of grids at every dtype's ends, zeros of both signs, and fractions."""
    for qmin, qmax in (
        *((0, 2**b - 1) for b in (1, 4, 8, 9, 15, 16, 31)),
        *((-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in (1, 4, 8, 9, 16, 17, 32)),
        *((-127, 127), (1, 4), (-1, 255), (-1, 128), (-129, 0), (-32768, 32768), (-1, 2**15)),
    ):
        codes = np.array([qmin, qmax, qmin / 2, qmax / 2, (qmin + qmax) // 2, 0.0, -0.0])
        held = codes[(codes >= qmin) & (codes <= qmax)]
        for dtype in DTYPES:
            narrow = held.astype(dtype)
            yield {"tensor": narrow[narrow.astype(np.float64) == held], "qmin": qmin, "qmax": qmax}
    yield {"tensor": np.zeros((2, 0), F32), "qmin": 0, "qmax": 255}
    yield {"tensor": scalar(3), "qmin": 0, "qmax": 255}


@calls("aimet.quantized_repr", "wide-grids")
def wide_grids() -> Iterator[Arguments]:
    """Grids that int32 does not hold."""
    codes = np.array([0, 1, 2.0**31 - 1, 2.0**31, 2.0**32 - 1, 2.0**32])
    yield {"tensor": codes, "qmin": 0, "qmax": 2**32}
    yield {"tensor": codes[:-1], "qmin": 0, "qmax": 2**32 - 1}
    yield {"tensor": -codes[:-1], "qmin": -(2**32) + 1, "qmax": 0}


@calls("aimet.quantized_repr", "examples")
def examples() -> Iterator[Arguments]:
    """The codes that the document prints, one of them a negative zero."""
    yield {"tensor": _PRINTED, "qmin": -128, "qmax": 127}
    codes = np.array([[-37, 127, -7, 71], [5, 127, -23, -2]], F32)
    yield {"tensor": codes, "qmin": -128, "qmax": 127}


@calls("aimet.represented", "float32")
def float32() -> Iterator[Arguments]:
    """Ties and all codes of small and of 8-bit grids, in blocks too; and the document's example."""
    grids = ((-8, 7, 0), (0, 15, -7), (0, 255, -128), (-128, 127, 0), (-128, 127, 5))
    for dtype in DTYPES[:2]:
        for qmin, qmax, offset in grids:
            for scale in (0.1, 3.7e-3, 2.0**-10):
                x = boundaries(scale, np.arange(qmin + offset - 1, qmax + offset + 2, 1 + (qmax - qmin) // 12), dtype)
                given = {"tensor": x, "scale": scalar(scale, dtype), "offset": scalar(offset, dtype)}
                yield {**given, "qmin": qmin, "qmax": qmax}
    example = {"tensor": EXAMPLE, "scale": EXAMPLE_SCALE, "offset": np.zeros((2, 1), F32), "qmin": -128, "qmax": 127}
    yield example
    yield {**example, "block_size": (-1, 4)}


@calls("aimet.represented", "narrow-dtypes")
def narrow_dtypes() -> Iterator[Arguments]:
    """float16 and bfloat16 tensors with the float32 scales that quantizers keep."""
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        for qmin, qmax in ((-8, 7), (0, 255), (-128, 127)):
            for scale in (0.1, 0.013845434):
                x = (np.arange(qmin, qmax + 1, 1 + (qmax - qmin) // 60) * scale).astype(dtype)
                given = {"tensor": x, "scale": scalar(scale), "offset": scalar(0), "qmin": qmin, "qmax": qmax}
                yield given
