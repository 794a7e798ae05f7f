"""compressed-tensors' forward pass: ties of every kind of code, global scales, zero points and dtypes of the result."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, documented, measured, on, says, silent
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

_F32, _BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
_FP4 = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 6, 7)
_FP6 = (0.0625, 0.1875, 0.9375, 1.0625, 1.1875, 1.9375, 2.125, 3.875, 4.25, 4.75, 7.25, 7.5, 7.75, 9)
_E4M3 = (1.0625, 1.1875, 17, 18, 440, 448, 464, 480, 2.0**-10, 3 * 2.0**-10, 2.0**-7)


def _x(codes: Any, scale: float, dtype: Any) -> Array:
    """Reals of codes, one unit in the last place off on either side too, and the negatives."""
    centre = (np.asarray(codes, np.float64) * float(np.asarray(scale, dtype))).astype(dtype)
    near = np.concatenate([centre, step(centre, np.asarray(-1)), step(centre, np.asarray(1))])
    return np.concatenate([near, -near])


on(
    "compressed-tensors",
    says(
        "nearest-code",
        "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
        "forward.quantize: quantizes with the given scale (division and ties: measured)",
        basis="measured",
    ),
    says(
        "odd-zero-point",
        "The zero point is added to the quotient before it is rounded, so an odd one turns ties.",
        "forward.quantize: zero_point (its place: measured)",
        basis="measured",
    ),
    says(
        "range",
        "The code is limited to the signed range of num_bits, its lowest code included, however large the input.",
        "calculate_range: the range of the arguments; round_to_quantized_type_args: min and max limit the tensor",
        checks=("edges", "huge"),
        kills=("narrow-range",),
    ),
    says(
        "dequantized-value",
        "A code becomes (code - zero_point) * scale.",
        "forward.dequantize: zero_point and scale (their order: measured)",
        basis="measured",
    ),
)


@measured("compressed-tensors/quantize", "forward.quantize: scale, zero_point, args (the order: measured)")
@documented(
    "compressed-tensors/fake_quantize",
    "forward.fake_quantize: quantizes, then dequantizes",
    text="The result is the code less the zero point, times the scale.",
)
def integer_codes() -> Calls:
    """The quotient plus the zero point is limited to the range of num_bits and rounded to the nearest integer, ties to
    even."""
    halves = [*(np.arange(0, 12) + 0.5), 126.4, 127, 127.5, 128, 1e6]
    for dtype in (_F32, _BF16):
        for scale in (1.0, 0.1, 0.0123):
            for zero_point in (None, 3, -128):
                point = None if zero_point is None else np.array([zero_point], np.int8)
                for num_bits in (8, 4):
                    x = _x(halves, scale, dtype)
                    yield {"x": x, "scale": np.array([scale], dtype), "zero_point": point, "num_bits": num_bits}
    wide = {"x": np.array([0, 0.5, 3], _BF16), "zero_point": np.array([1001], np.int16), "num_bits": 16}
    yield {**wide, "scale": np.array([0.25], _BF16)}


@documented("compressed-tensors/quantize", "round_to_quantized_type_args: the nearest representation of the type")
@documented(
    "compressed-tensors/fake_quantize",
    "forward.fake_quantize: quantizes, then dequantizes",
    text="A number of E4M3, E2M3 or E2M1 is multiplied by the scale.",
)
def float_codes() -> Calls:
    """Floats of 8, 6 and 4 bits become the nearest number of E4M3, E2M3 and E2M1, ties to the even code."""
    for dtype in (_F32, _BF16):
        for scale in (1.0, 0.1, 0.375):
            for num_bits, ties in ((4, _FP4), (6, (0, *_FP6)), (8, _E4M3)):
                yield {
                    "x": _x(ties, scale, dtype),
                    "scale": np.array([scale], dtype),
                    "num_bits": num_bits,
                    "type": "float",
                }


@documented(
    "compressed-tensors/quantize", "forward.quantize: global_scale (in which order: measured)", aspect="global-scale"
)
@documented(
    "compressed-tensors/fake_quantize",
    "forward.fake_quantize: global_scale",
    aspect="global-scale",
    text="Both ways the scale is that over the global scale.",
)
def global_scales() -> Calls:
    """The scale is divided by the global scale before the input is divided by it."""
    for dtype in (_F32, _BF16):
        for factor in (384.1, 6.0, 1e-3):
            scale = np.array([[0.75], [1.125], [448]], dtype)
            x = (_x(_FP4, 1.0, _F32) * np.float32(1 / factor) * scale.astype(_F32)).astype(dtype)
            given = {"x": x, "scale": scale, "global_scale": np.array([factor], _F32)}
            yield {**given, "num_bits": 4, "type": "float"}
            yield {**given, "num_bits": 4}


@measured("compressed-tensors/quantize", "forward.quantize, measured")
@measured("compressed-tensors/fake_quantize", "forward.fake_quantize, measured")
def zero_signs() -> Calls:
    """Without a zero point a zero keeps its sign; with one, even of 0, it is 0.0."""
    x = np.array([0.0, -0.0, 0.3, -0.3, 0.5, -0.5], _F32)
    for point in (None, np.zeros(1, np.int8)):
        yield {"x": x, "scale": np.ones(1, _F32), "zero_point": point}


@silent("compressed-tensors/quantize", "forward.quantize")
@silent("compressed-tensors/fake_quantize", "forward.fake_quantize")
def specials() -> Calls:
    """What NaN, infinities and a scale of 0 give; the document does not say."""
    x = np.array([np.nan, np.inf, -np.inf, 3e38], _F32)
    for scale in (0.5, 0.0):
        given = {"x": x, "scale": np.array([scale], _F32)}
        yield from ({**given, "type": type_} for type_ in ("int", "float"))
        yield from ({**given, "type": "float", "num_bits": num_bits} for num_bits in (6, 4))


@documented("compressed-tensors/quantize", "calculate_range; QuantizationArgs: type")
@documented(
    "compressed-tensors/fake_quantize",
    "forward.fake_quantize: quantizes, then dequantizes",
    text="What quantize refuses is refused.",
)
def refusals() -> Calls:
    """Unknown types, and floats of a width without a format, are refused."""
    x = np.ones(2, _F32)
    yield {"x": x, "scale": x[:1], "type": "complex"}
    yield {"x": x, "scale": x[:1], "type": "float", "num_bits": 5}


@documented("compressed-tensors/quantize", "forward.quantize: dtype")
def code_dtype() -> Calls:
    """With a dtype the codes are cast to it."""
    x = np.array([1.5, 2.5, -300, 300, 0.3, -0.3], _F32)
    given = {"x": x, "scale": np.ones(1, _F32), "zero_point": np.ones(1, np.int8)}
    yield {**given, "dtype": "int8"}
    yield {**given, "zero_point": None, "type": "float", "dtype": "float8_e4m3fn"}


_CODES = np.arange(-128, 128, 5).astype(np.int8)


@documented("compressed-tensors/dequantize", "forward.dequantize: scale, zero_point, global_scale (order: measured)")
def reals() -> Calls:
    """A real is the code less the zero point, times the scale, which a global scale divides first."""
    for dtype in (_F32, _BF16):
        for scale in (0.1, 0.0123, 3.0):
            for point in (None, np.array([7], np.int8), np.array([-128], np.int8)):
                yield {"x_q": _CODES, "scale": np.array([scale], dtype), "zero_point": point}
            yield {"x_q": _CODES, "scale": np.array([scale], dtype), "global_scale": np.array([384.1], _F32)}


@documented("compressed-tensors/dequantize", "forward.dequantize: dtype")
def result_dtype() -> Calls:
    """With a dtype the reals are cast to it."""
    for dtype in ("float32", "bfloat16", "float16"):
        for scale_dtype in (_F32, _BF16):
            yield {"x_q": _CODES, "scale": np.array([0.1], scale_dtype), "dtype": dtype}


def _quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    dtype: str | None = None,
    global_scale: Tensor | None = None,
) -> Any:
    """``forward.quantize``, per tensor, so that parameters broadcast."""
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle import forward

    args = QuantizationArgs(num_bits=num_bits, type=type, strategy="tensor")
    return forward.quantize(x, scale, zero_point, args, dtype and getattr(torch, dtype), global_scale)


def _fake_quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    global_scale: Tensor | None = None,
) -> Any:
    """``forward.fake_quantize``, per tensor, so that parameters broadcast."""
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle import forward

    args = QuantizationArgs(num_bits=num_bits, type=type, strategy="tensor")
    return forward.fake_quantize(x, scale, zero_point, args, global_scale)


def _dequantize(
    x_q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    dtype: str | None = None,
    global_scale: Tensor | None = None,
) -> Any:
    """``forward.dequantize``, per tensor, so that parameters broadcast."""
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle import forward

    args = QuantizationArgs(strategy="tensor")
    return forward.dequantize(x_q, scale, zero_point, args, dtype and getattr(torch, dtype), global_scale)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "compressed-tensors": {
        "compressed-tensors/quantize": _quantize,
        "compressed-tensors/fake_quantize": _fake_quantize,
        "compressed-tensors/dequantize": _dequantize,
    },
}
