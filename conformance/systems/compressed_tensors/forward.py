"""compressed-tensors' forward pass: ties of every kind of code, global scales, zero points and dtypes of the result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, calls, documented, measured, of, on, silent

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS", "REQUIREMENTS"]

REQUIREMENTS = (
    *on(
        "compressed-tensors",
        measured(
            "nearest-code",
            "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
            "forward.quantize: quantizes with the given scale (division and ties: measured)",
            operations=("quantize", "fake_quantize"),
            checks=("boundaries",),
            kills=(
                "half-away",
                "half-up",
                "half-down",
                "half-to-zero",
                "toward-zero",
                "floor",
                "ceil",
                "reciprocal",
                "scale-one-ulp-off",
            ),
        ),
        measured(
            "odd-zero-point",
            "The zero point is added to the quotient before it is rounded, so an odd one turns ties.",
            "forward.quantize: zero_point (its place: measured)",
            operations=("quantize", "fake_quantize"),
            checks=("odd-zero-point",),
            kills=("zero-point-after-rounding", "sign-flipped"),
        ),
        documented(
            "range",
            "The code is limited to the signed range of num_bits, its lowest code included, however large the input.",
            "calculate_range: the range of the arguments; round_to_quantized_type_args: min and max limit the tensor",
            operations=("quantize", "fake_quantize"),
            checks=("edges", "huge"),
            kills=("narrow-range",),
        ),
        measured(
            "dequantized-value",
            "A code becomes (code - zero_point) * scale.",
            "forward.dequantize: zero_point and scale (their order: measured)",
            operations=("dequantize",),
            checks=("all-codes",),
            kills=("sign-flipped", "scale-one-ulp-off"),
        ),
    ),
    *of(
        "compressed-tensors/quantize",
        measured(
            "integer-codes",
            "The quotient plus the zero point is limited to the range of num_bits and rounded to the nearest "
            "integer, ties to even.",
            "forward.quantize: scale, zero_point, args (the order: measured)",
        ),
        documented(
            "float-codes",
            "Floats of 8, 6 and 4 bits become the nearest number of E4M3, E2M3 and E2M1, ties to the even code.",
            "round_to_quantized_type_args: the nearest representation of the type",
        ),
        documented(
            "global-scale",
            "The scale is divided by the global scale before the input is divided by it.",
            "forward.quantize: global_scale (in which order: measured)",
        ),
        measured(
            "zero-signs",
            "Without a zero point a zero keeps its sign; with one, even of 0, it is 0.0.",
            "forward.quantize, measured",
        ),
        documented(
            "code-dtype",
            "With a dtype the codes are cast to it.",
            "forward.quantize: dtype",
        ),
        silent(
            "specials",
            "What NaN, infinities and a scale of 0 give; the document does not say.",
            "forward.quantize",
        ),
        documented(
            "refusals",
            "Unknown types, and floats of a width without a format, are refused.",
            "calculate_range; QuantizationArgs: type",
        ),
    ),
    *of(
        "compressed-tensors/fake_quantize",
        documented(
            "integer-codes",
            "The result is the code less the zero point, times the scale.",
            "forward.fake_quantize: quantizes, then dequantizes",
        ),
        documented(
            "float-codes",
            "A number of E4M3, E2M3 or E2M1 is multiplied by the scale.",
            "forward.fake_quantize: quantizes, then dequantizes",
        ),
        documented(
            "global-scale",
            "Both ways the scale is that over the global scale.",
            "forward.fake_quantize: global_scale",
        ),
        measured(
            "zero-signs",
            "Without a zero point a zero keeps its sign; with one, even of 0, it is 0.0.",
            "forward.fake_quantize, measured",
        ),
        silent(
            "specials",
            "What NaN, infinities and a scale of 0 give; the document does not say.",
            "forward.fake_quantize",
        ),
        documented(
            "refusals",
            "What quantize refuses is refused.",
            "forward.fake_quantize: quantizes, then dequantizes",
        ),
    ),
    *of(
        "compressed-tensors/dequantize",
        documented(
            "reals",
            "A real is the code less the zero point, times the scale, which a global scale divides first.",
            "forward.dequantize: scale, zero_point, global_scale (order: measured)",
        ),
        documented(
            "result-dtype",
            "With a dtype the reals are cast to it.",
            "forward.dequantize: dtype",
        ),
    ),
)

Array = npt.NDArray[Any]


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
            calls(f"compressed-tensors/{operation}", name)(build)
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


@calls("compressed-tensors/quantize", "code-dtype")
def _code_dtypes() -> Iterator[Arguments]:
    x = np.array([1.5, 2.5, -300, 300, 0.3, -0.3], _F32)
    given = {"x": x, "scale": np.ones(1, _F32), "zero_point": np.ones(1, np.int8)}
    yield {**given, "dtype": "int8"}
    yield {**given, "zero_point": None, "type": "float", "dtype": "float8_e4m3fn"}


_CODES = np.arange(-128, 128, 5).astype(np.int8)


@calls("compressed-tensors/dequantize", "reals")
def _reals() -> Iterator[Arguments]:
    for dtype in (_F32, _BF16):
        for scale in (0.1, 0.0123, 3.0):
            for point in (None, np.array([7], np.int8), np.array([-128], np.int8)):
                yield {"x_q": _CODES, "scale": np.array([scale], dtype), "zero_point": point}
            yield {"x_q": _CODES, "scale": np.array([scale], dtype), "global_scale": np.array([384.1], _F32)}


@calls("compressed-tensors/dequantize", "result-dtype")
def _result_dtypes() -> Iterator[Arguments]:
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
