"""compressed-tensors' forward pass: ties of every kind of code, global scales, zero points and dtypes of the result."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.arrays import step
from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

_F32, _BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
_FP4 = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7)
_FP6 = (0.0625, 0.1875, 0.9375, 1.0625, 1.1875, 1.9375, 2.125, 3.875, 4.25, 4.75, 7.25, 7.5, 7.75, 9)
_E4M3 = (1.0625, 1.1875, 17, 18, 440, 448, 464, 480, 2.0**-10, 3 * 2.0**-10, 2.0**-7)
_BOTH = ("quantize", "fake_quantize")


def _x(codes: Any, scale: float, dtype: Any) -> Array:
    """Reals of codes, one unit in the last place off on either side too, and the negatives."""
    centre = (np.asarray(codes, np.float64) * float(np.asarray(scale, dtype))).astype(dtype)
    near = np.concatenate([centre, step(centre, np.asarray(-1)), step(centre, np.asarray(1))])
    return np.concatenate([near, -near])


_Builder = Callable[[], Iterable[Arguments]]


def _both(name: str) -> Callable[[_Builder], _Builder]:
    """The same calls for codes and for reals."""

    def register(build: _Builder) -> _Builder:
        for operation in _BOTH:
            calls(f"compressed_tensors.forward.{operation}", name)(build)
        return build

    return register


@_both("integer-codes")
def _integers() -> Iterator[Arguments]:
    halves = [*(np.arange(0, 12) + 0.5), 126.4, 127, 127.5, 128, 1e6]
    for dtype in (_F32, _BF16):
        for scale in (1.0, 0.1, 0.0123):
            for zero_point in (None, 3, -128):
                point = None if zero_point is None else np.array([zero_point], np.int8)
                for num_bits in (8, 4):
                    x = _x(halves, scale, dtype)
                    yield {"x": x, "scale": np.array([scale], dtype), "zero_point": point, "num_bits": num_bits}


@_both("float-codes")
def _floats() -> Iterator[Arguments]:
    for dtype in (_F32, _BF16):
        for scale in (1.0, 0.1, 0.375):
            for num_bits, ties in ((4, _FP4), (6, (0, *_FP6)), (8, _E4M3)):
                yield {
                    "x": _x(ties, scale, dtype),
                    "scale": np.array([scale], dtype),
                    "num_bits": num_bits,
                    "type": "float",
                }


@_both("global-scale")
def _global_scales() -> Iterator[Arguments]:
    for dtype in (_F32, _BF16):
        for factor in (384.1, 6.0, 1e-3):
            scale = np.array([[0.75], [1.125], [448]], dtype)
            x = (_x(_FP4, 1.0, _F32) * np.float32(1 / factor) * scale.astype(_F32)).astype(dtype)
            given = {"x": x, "scale": scale, "global_scale": np.array([factor], _F32)}
            yield {**given, "num_bits": 4, "type": "float"}
            yield {**given, "num_bits": 4}


@_both("zero-signs")
def _zero_signs() -> Iterator[Arguments]:
    x = np.array([0.0, -0.0, 0.3, -0.3, 0.5, -0.5], _F32)
    for point in (None, np.zeros(1, np.int8)):
        yield {"x": x, "scale": np.ones(1, _F32), "zero_point": point}


@_both("specials")
def _specials() -> Iterator[Arguments]:
    x = np.array([np.nan, np.inf, -np.inf, 3e38], _F32)
    for scale in (0.5, 0.0):
        for type_ in ("int", "float"):
            yield {"x": x, "scale": np.array([scale], _F32), "type": type_}


@_both("refusals")
def _refusals() -> Iterator[Arguments]:
    x = np.ones(2, _F32)
    yield {"x": x, "scale": x[:1], "type": "complex"}
    yield {"x": x, "scale": x[:1], "type": "float", "num_bits": 5}


@calls("compressed_tensors.forward.quantize", "code-dtype")
def _code_dtypes() -> Iterator[Arguments]:
    x = np.array([1.5, 2.5, -300, 300, 0.3, -0.3], _F32)
    given = {"x": x, "scale": np.ones(1, _F32), "zero_point": np.ones(1, np.int8)}
    yield {**given, "dtype": "int8"}
    yield {**given, "zero_point": None, "type": "float", "dtype": "float8_e4m3fn"}


_CODES = np.arange(-128, 128, 5).astype(np.int8)


@calls("compressed_tensors.forward.dequantize", "reals")
def _reals() -> Iterator[Arguments]:
    for dtype in (_F32, _BF16):
        for scale in (0.1, 0.0123, 3.0):
            for point in (None, np.array([7], np.int8), np.array([-128], np.int8)):
                yield {"x_q": _CODES, "scale": np.array([scale], dtype), "zero_point": point}
            yield {"x_q": _CODES, "scale": np.array([scale], dtype), "global_scale": np.array([384.1], _F32)}


@calls("compressed_tensors.forward.dequantize", "result-dtype")
def _result_dtypes() -> Iterator[Arguments]:
    for dtype in ("float32", "bfloat16", "float16"):
        for scale_dtype in (_F32, _BF16):
            yield {"x_q": _CODES, "scale": np.array([0.1], scale_dtype), "dtype": dtype}
