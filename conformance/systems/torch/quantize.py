"""torch: ``quantize_per_tensor`` and ``quantize_per_channel``, and ``dequantize`` of their results."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Calls, documented, on, says, silent
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

on(
    "torch.quantize",
    says(
        "nearest-code",
        "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
        "torch.quantize_per_tensor: the affine mapping of quantized tensors (ties: measured)",
    ),
    says(
        "odd-zero-point",
        "An odd zero point takes part where the document puts it: inside the rounding.",
        "torch.quantize_per_tensor: the affine mapping of quantized tensors",
    ),
    says(
        "saturation",
        "The code is limited to the range of the quantized dtype.",
        "torch.quantize_per_tensor: the dtype of the result",
        kills=("narrow-range", "wrap"),
    ),
    says(
        "huge-inputs",
        "Inputs however large, and the infinities, give the end of the range on their side.",
        "torch.quantize_per_tensor: the range of the dtype",
    ),
    says(
        "dequantized-value",
        "A code becomes (code - zero_point) * scale.",
        "torch.quantize_per_tensor: the affine mapping of quantized tensors",
    ),
)


_AFFINE = "torch.quantize_per_tensor: the affine mapping of quantized tensors"

_RANGES = {"quint8": (0, 255), "qint8": (-128, 127)}
_SCALES = (1.0, 0.1, 0.3, 0.75, 1 / 3, 1.0000001, 1e-3)


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _ties(scale: float, zero: int, low: int, high: int) -> Array:
    """Inputs at every tie between codes and a little beyond the range, with the float32 on either side."""
    codes = np.arange(low - 2, high + 3)
    middle = _f((codes - zero + 0.5) * np.float64(np.float32(scale)))
    return np.concatenate([middle, np.nextafter(middle, _f(np.inf)), np.nextafter(middle, _f(-np.inf))])


def _cases() -> Iterator[tuple[str, float, int, Array]]:
    for dtype, (low, high) in _RANGES.items():
        for scale in _SCALES:
            for zero in (0, 3, high - 2):
                yield dtype, scale, zero, _ties(scale, zero, low, high)


_BEYOND = (np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 3e9, 1e20, 300.5, -300.5, 0.0, -0.0, 1e-45)


@documented(
    "torch/quantize_per_tensor", "torch.quantize_per_tensor: the affine mapping of quantized tensors (ties: measured)"
)
def nearest() -> Calls:
    """The quotient of input and scale, with the zero point added, is rounded to the nearest integer; a tie goes to the
    even one."""
    for dtype, scale, zero, x in _cases():
        yield {"input": x, "scale": float(np.float32(scale)), "zero_point": zero, "dtype": dtype}


@documented("torch/quantize_per_tensor", "torch.quantize_per_tensor: the dtype of the result")
def saturation() -> Calls:
    """The code is limited to the range of the dtype; infinities and inputs however large give the end on their side."""
    for dtype in _RANGES:
        for scale in (1.0, 0.1, 1e-30):
            yield {"input": _f(_BEYOND), "scale": float(np.float32(scale)), "zero_point": 5, "dtype": dtype}


@silent(
    "torch/quantize_per_tensor", "torch.quantize_per_tensor: the affine mapping of quantized tensors: nothing of NaN"
)
def nan() -> Calls:
    """What code NaN becomes; the document does not say."""
    for dtype in _RANGES:
        for x in ([np.nan], [1, np.nan, -1], [np.nan, 2] * 40):
            yield {"input": _f(x), "scale": 0.5, "zero_point": 7, "dtype": dtype}


@documented("torch/quantize_per_tensor", _AFFINE)
def shapes() -> Calls:
    """The codes have the shape of the input, be it empty or without dimensions."""
    for shape in ((), (0,), (2, 0, 3), (1, 1), (2, 3, 2)):
        x = _f(np.arange(np.prod(shape)) - 3.5).reshape(shape)
        yield {"input": x, "scale": 0.5, "zero_point": 7, "dtype": "quint8"}


@documented(
    "torch/quantize_per_channel",
    "torch.quantize_per_tensor: the affine mapping of quantized tensors (ties: measured)",
    aspect="nearest",
)
def channel_nearest() -> Calls:
    """The quotient of input and scale, with the zero point added, is rounded to the nearest integer; a tie goes to the
    even one."""
    for dtype, scale, zero, x in _cases():
        s, z = _f([scale, 0.1]), np.array([zero, 1], np.int32)
        yield {"input": np.stack([x, x]), "scales": s, "zero_points": z, "axis": 0, "dtype": dtype}


@documented("torch/quantize_per_channel", "torch.quantize_per_tensor: the dtype of the result", aspect="saturation")
def channel_saturation() -> Calls:
    """The code is limited to the range of the dtype; infinities and inputs however large give the end on their side."""
    for dtype in _RANGES:
        x, z = np.stack([_f(_BEYOND)] * 3), np.array([5, 0, 1], np.int32)
        yield {"input": x, "scales": _f([1, 0.1, 1e-30]), "zero_points": z, "axis": 0, "dtype": dtype}


@silent(
    "torch/quantize_per_channel",
    "torch.quantize_per_tensor: the affine mapping of quantized tensors: nothing of NaN",
    aspect="nan",
)
def channel_nan() -> Calls:
    """What code NaN becomes; the document does not say."""
    for dtype in _RANGES:
        for x in ([[np.nan]], [[1, np.nan, -1]], [[np.nan, 2] * 40]):
            parameters = {"scales": _f([0.5]), "zero_points": np.array([7], np.int32)}
            yield {"input": _f(x), "axis": 0, "dtype": dtype} | parameters


@documented("torch/quantize_per_channel", "argument axis")
def channels() -> Calls:
    """Each index along the axis has its scale and its zero point."""
    x = _f(np.arange(24) * 0.7 - 8).reshape(2, 3, 4)
    for axis, n in enumerate(x.shape):
        parameters = {"scales": _f(np.arange(1, n + 1) * 0.3), "zero_points": np.arange(n, dtype=np.int32)}
        yield {"input": x, "axis": axis, "dtype": "qint8"} | parameters


@silent("torch/quantize_per_channel", "torch.quantize_per_channel: argument axis; nothing of one below 0")
def negative_axis() -> Calls:
    """What a negative axis is; the document does not say."""
    for call in channels():
        yield {**call, "axis": call["axis"] - call["input"].ndim}


@documented("torch/dequantize", _AFFINE)
def value() -> Calls:
    """A code becomes (code - zero_point) * scale, in float32."""
    for q in (np.arange(256).astype(np.uint8), np.arange(-128, 128).astype(np.int8)):
        for scale in (*_SCALES, 1e-45, 3e38):
            for zero in (0, 3, 127):
                yield {"q": q, "scale": _f(scale), "zero_point": np.asarray(zero, np.int32)}


@documented("torch/dequantize", _AFFINE, aspect="channels")
def dequantized_channels() -> Calls:
    """Each index along the axis has its scale and its zero point."""
    q = np.arange(24).astype(np.int8).reshape(2, 3, 4)
    for axis, n in enumerate(q.shape):
        parameters = {"scale": _f(np.arange(1, n + 1) * 0.3), "zero_point": np.arange(n, dtype=np.int32)}
        yield {"q": q, "axis": axis} | parameters


def _quantize_per_tensor(dtype: str, **given: Any) -> Any:
    import torch

    return torch.quantize_per_tensor(**given, dtype=getattr(torch, dtype)).int_repr()


def _quantize_per_channel(dtype: str, **given: Any) -> Any:
    import torch

    return torch.quantize_per_channel(**given, dtype=getattr(torch, dtype)).int_repr()


def _dequantize(q: Any, scale: Any, zero_point: Any, axis: int | None = None) -> Any:
    import torch

    if axis is None:
        return torch._make_per_tensor_quantized_tensor(q, scale.item(), zero_point.item()).dequantize()  # noqa: SLF001 - no other way in
    return torch._make_per_channel_quantized_tensor(q, scale, zero_point, axis).dequantize()  # noqa: SLF001


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch.quantize_per_tensor": {
        "torch/quantize_per_tensor": _quantize_per_tensor,
        "torch/dequantize": _dequantize,
    },
    "torch.quantize_per_channel": {
        "torch/quantize_per_channel": _quantize_per_channel,
        "torch/dequantize": _dequantize,
    },
}
