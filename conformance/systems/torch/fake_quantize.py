"""torch: ``fake_quantize_per_tensor_affine`` and ``fake_quantize_per_channel_affine``, and their gradients."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, measured, on, says, silent
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS", "f32", "grid_of", "halves", "near", "signs"]

on(
    "torch.fake_quantize",
    says(
        "nearest-code",
        "The input divided by the scale is rounded to the nearest integer (ties, by the library: to even); the result"
        " is that code's real.",
        "torch.fake_quantize_per_tensor_affine: equation",
    ),
    says(
        "zero-point-after-rounding",
        "The zero point is added to the rounded quotient.",
        "torch.fake_quantize_per_tensor_affine: equation",
    ),
    says(
        "saturation",
        "The code is limited to [quant_min, quant_max], after the zero point.",
        "torch.fake_quantize_per_tensor_affine: equation",
    ),
    says(
        "huge-inputs",
        "Inputs however large, and the infinities, give the end of the grid on their side.",
        "torch.fake_quantize_per_tensor_affine: the minimum and maximum of the equation, whose argument is unbounded",
    ),
)


_EQUATION = "torch.fake_quantize_per_tensor_affine: equation"
_TENSOR, _CHANNEL = "torch/fake_quantize_per_tensor_affine", "torch/fake_quantize_per_channel_affine"

_INF, _NAN = np.inf, np.nan
# The sum with a zero point of 1 is a code that float32 does not hold; nor does it hold the end of the last grids.
_ROUNDED_CODES = ((2.0**24, 2**24), (2.0**24 + 2, 2**24 + 3), (2.0**24 + 4, 2**24 + 3), (2.0**24 + 6, 2**24 + 5))
_SPECIALS = (_INF, -_INF, _NAN, 3e38, -3e38, 1e10, -1e10, 1e20, 0.0, -0.0, 1e-45)


def f32(values: Any) -> Array:
    """The values in float32."""
    return np.asarray(values, np.float32)


def near(codes: Any, scale: float) -> Array:
    """The floats nearest to ``codes`` times the scale, and their neighbours."""
    middle = (np.asarray(codes) * np.float64(np.float32(scale))).astype(np.float32)
    return np.concatenate([middle, np.nextafter(middle, f32(_INF)), np.nextafter(middle, f32(-_INF))])


def halves(zero: float, low: int = -128, high: int = 127) -> Array:
    """Half-way points around zero and both ends of the grid, less the zero point that it holds."""
    z = np.rint(np.clip(zero, low, high))
    return np.concatenate([np.arange(-3, 3) + 0.5, low - z + np.arange(-2, 2) + 0.5, high - z + np.arange(-2, 2) + 0.5])


def grid_of(low: int, high: int) -> dict[str, int]:
    """The ends of a grid, as both functions name them."""
    return {"quant_min": low, "quant_max": high}


def signs(n: int) -> Array:
    """Gradients that are no powers of two."""
    return f32([(0.3, -1.7, 1.1)[i % 3] for i in range(n)])


def _asked(formula: str, x: Array, scale: float, zero: int, grid: dict[str, int]) -> Arguments:
    """A call with one scale, or with two along axis 0, for whichever of the two the formula is."""
    if formula == _TENSOR:
        return {"input": x, "scale": float(np.float32(scale)), "zero_point": zero} | grid
    parameters = {"scale": f32([scale, 0.5]), "zero_point": np.array([zero, 0], np.int32)}
    return {"input": np.stack([x, x]), "axis": 0} | parameters | grid


@documented((_TENSOR, _CHANNEL), f"{_EQUATION} (ties, by the library: to even)")
def nearest(formula: str) -> Calls:
    """The quotient is rounded to the nearest integer, a tie to the even one; then the zero point is added, and the
    result is that code's real."""
    for low, high, zero in ((-128, 127, 0), (-128, 127, 5), (0, 255, 128), (-8, 7, -7), (0, 1, 0)):
        for scale in (1.0, 0.1, 0.3, 0.75, 1.0000001):
            x = near(np.arange(low - zero - 2, high - zero + 3) + 0.5, scale)
            yield _asked(formula, x, scale, zero, grid_of(low, high))


@documented((_TENSOR, _CHANNEL), _EQUATION)
def saturation(formula: str) -> Calls:
    """The code is limited to the grid, after the zero point: infinities and inputs however large too."""
    x = f32((_INF, -_INF, 3e38, -3e38, 1e10, -1e10, 3e9, -3e9, 1e20, -1e20, 300, -300))
    for zero in (0, 3, -3):
        yield _asked(formula, x, 0.5, zero, grid_of(-8, 7))


@documented((_TENSOR, _CHANNEL), _EQUATION)
def zero_point(formula: str) -> Calls:
    """A zero point however large is added and subtracted."""
    x = f32([0.5, 1.5, 2.5, -0.5, 0.0, -0.0, 0.05, 0.15, 7.4, -8.6])
    for zero in (2**24 + 1, -(2**24) - 3):
        for scale in (1.0, 0.1, 0.3):
            yield _asked(formula, x, scale, zero, grid_of(-(2**25), 2**25))


@silent((_TENSOR, _CHANNEL), f"{_EQUATION}, which says nothing of NaN")
def nan(formula: str) -> Calls:
    """What NaN becomes; the document does not say."""
    for values in ([_NAN], [1, _NAN, -1], [_NAN, 2] * 40):
        yield _asked(formula, f32(values), 0.5, 2, grid_of(-8, 7))


@documented("torch/fake_quantize_per_channel_affine", "torch.fake_quantize_per_channel_affine: argument axis")
def channels() -> Calls:
    """Each index along the axis has its scale and its zero point."""
    x = f32(np.arange(24) * 0.7 - 8).reshape(2, 3, 4)
    for axis, n in enumerate(x.shape):
        parameters = {"scale": f32(np.arange(1, n + 1) * 0.3), "zero_point": np.arange(n, dtype=np.int32)}
        yield {"input": x, "axis": axis} | parameters | grid_of(-8, 7)


@silent(
    "torch/fake_quantize_per_channel_affine",
    "torch.fake_quantize_per_channel_affine: argument axis; nothing of one below 0",
)
def negative_axis() -> Calls:
    """What a negative axis is; the document does not say."""
    for call in channels():
        yield {**call, "axis": call["axis"] - call["input"].ndim}


@measured("torch/fake_quantize_per_tensor_affine.backward", "torch 2.13.0, gradient of fake_quantize_per_tensor_affine")
def edges() -> Calls:
    """The gradient passes where the rounded code lies in the grid, ends included; code and ends are float32."""
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        for low, high, zero in ((-128, 127, 0), (-128, 127, 5), (0, 255, 128), (-8, 7, -7), (0, 1, 0), (0, 0, 0)):
            for scale in (0.1, 0.3):
                x = near(halves(zero, low, high), scale).astype(dtype)
                more = {"grad": signs(x.size).astype(dtype)} | grid_of(low, high)
                yield {"x": x, "scale": float(np.float32(scale)), "zero_point": zero} | more
    for v, high in _ROUNDED_CODES:
        beyond = {"x": f32([v]), "scale": 1.0, "zero_point": 1, "grad": f32([1])}
        yield beyond | grid_of(-(2**24), high)
    below = {"x": f32([-(2.0**24) - 4, -(2.0**24) - 6]), "scale": 1.0, "zero_point": 0, "grad": f32([1, 1])}
    yield below | grid_of(-(2**24) - 3, 0)


@measured("torch/fake_quantize_per_tensor_affine.backward", "torch 2.13.0, gradient of fake_quantize_per_tensor_affine")
def specials() -> Calls:
    """Infinities and NaN lie outside; the gradient is multiplied by 1 or 0, so that an infinite one becomes NaN
    outside."""
    x = f32(_SPECIALS)
    for scale in (0.5, 0.0, _INF, 1e-45):
        yield {"x": x, "scale": scale, "zero_point": 1, "grad": signs(x.size)} | grid_of(-128, 127)
    yield {"x": f32([1, 1, 100, 100]), "scale": 0.5, "zero_point": 0, "grad": f32([_INF, _NAN, _INF, 1])} | grid_of(
        -8, 7
    )
    yield {"x": f32([]), "scale": 0.5, "zero_point": 0, "grad": f32([])} | grid_of(-8, 7)


@measured("torch/fake_quantize_per_tensor_affine.backward", "torch 2.13.0, fake_quantize_per_tensor_affine")
def refusals() -> Calls:
    """A zero point outside the grid is refused."""
    for zero in (8, -9, 300):
        yield {"x": f32([1]), "scale": 0.5, "zero_point": zero, "grad": f32([1])} | grid_of(-8, 7)


@measured(
    "torch/fake_quantize_per_channel_affine.backward",
    "torch 2.13.0, gradient of fake_quantize_per_channel_affine",
    aspect="edges",
)
def gradient_edges() -> Calls:
    """The gradient passes where the rounded code of its channel, a float32, lies in the grid, ends included."""
    zeros = (0, 5, -7, 127, -128)
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        for scale in (0.1, 0.3):
            x = np.stack([near(halves(z), scale) for z in zeros]).astype(dtype)
            grad = signs(x.size).reshape(x.shape).astype(dtype)
            more = {"scale": f32([scale] * len(zeros)), "zero_point": np.array(zeros, np.int32)} | grid_of(-128, 127)
            yield {"x": x, "axis": 0, "grad": grad} | more
            yield {"x": x.T.copy(), "axis": 1, "grad": grad.T.copy()} | more
    for v, high in _ROUNDED_CODES:
        beyond = {"x": f32([v]), "scale": f32([1]), "zero_point": np.array([1], np.int32), "grad": f32([1])}
        yield beyond | {"axis": 0} | grid_of(-(2**24), high)
    below = {"x": f32([[-(2.0**24) - 4, -(2.0**24) - 6]]), "scale": f32([1]), "grad": f32([[1, 1]])}
    yield below | {"zero_point": np.array([0], np.int32), "axis": 0} | grid_of(-(2**24) - 3, 0)


@documented(
    "torch/fake_quantize_per_channel_affine.backward",
    "torch.fake_quantize_per_channel_affine: argument axis",
    aspect="channels",
)
def gradient_channels() -> Calls:
    """The gradient of each index along the axis is that of its scale and its zero point."""
    for sizes in ((2, 3, 4), (3, 3, 3), (2, 3, 4, 5)):
        x = f32(np.arange(np.prod(sizes)) * 0.37 - 5).reshape(sizes)
        for axis, n in enumerate(sizes):
            more = {"scale": f32(np.arange(1, n + 1) * 0.1), "zero_point": np.arange(n, dtype=np.int32) * 3 - 4}
            yield {"x": x, "axis": axis, "grad": signs(x.size).reshape(sizes)} | more | grid_of(-8, 7)


@measured(
    "torch/fake_quantize_per_channel_affine.backward",
    "torch 2.13.0, gradient of fake_quantize_per_channel_affine",
    aspect="specials",
)
def gradient_specials() -> Calls:
    """Infinities and NaN lie outside; a negative gradient becomes -0 there."""
    x = np.tile(f32(_SPECIALS), (3, 1))
    grad = signs(x.size).reshape(x.shape)
    z = np.array([0, 1, -1], np.int32)
    yield {"x": x, "scale": f32([0.5, 0, _INF]), "zero_point": z, "axis": 0, "grad": grad} | grid_of(-128, 127)


@measured(
    "torch/fake_quantize_per_channel_affine.backward",
    "torch 2.13.0, fake_quantize_per_channel_affine",
    aspect="refusals",
)
def gradient_refusals() -> Calls:
    """A zero point outside the grid, and parameters that are not as many as the channels, are refused."""
    x = np.ones((2, 3), np.float32)
    good = {"x": x, "scale": f32([1, 1]), "zero_point": np.zeros(2, np.int32), "axis": 0, "grad": x} | grid_of(-8, 7)
    changes: list[dict[str, Any]] = [{"axis": axis} for axis in (1, -1, -3)]
    changes += [{"zero_point": np.array([0, 8], np.int32)}]
    for change in changes:
        yield good | change


def _fixed_per_tensor_gradient(x: Any, scale: float, zero_point: int, quant_min: int, quant_max: int, grad: Any) -> Any:
    import torch

    given = x.clone().requires_grad_()
    y = torch.fake_quantize_per_tensor_affine(given, scale, zero_point, quant_min, quant_max)
    return torch.autograd.grad(y, given, grad)[0]


def _fixed_per_channel_gradient(
    x: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int, grad: Any
) -> Any:
    import torch

    given = x.clone().requires_grad_()
    y = torch.fake_quantize_per_channel_affine(given, scale, zero_point, axis, quant_min, quant_max)
    return torch.autograd.grad(y, given, grad)[0]


def _per_tensor(**given: Any) -> Any:
    import torch

    return torch.fake_quantize_per_tensor_affine(**given)


def _per_channel(**given: Any) -> Any:
    import torch

    return torch.fake_quantize_per_channel_affine(**given)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch.fake_quantize_per_tensor_affine": {"torch/fake_quantize_per_tensor_affine": _per_tensor},
    "torch.fake_quantize_per_channel_affine": {"torch/fake_quantize_per_channel_affine": _per_channel},
    "torch.learnable": {
        "torch/fake_quantize_per_tensor_affine.backward": _fixed_per_tensor_gradient,
        "torch/fake_quantize_per_channel_affine.backward": _fixed_per_channel_gradient,
    },
}
