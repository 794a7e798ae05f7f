"""What torch's learnable quantizers are required to give, and their gradients."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, measured, silent
from halfeven.conformance.systems.torch.fake_quantize import f32, grid_of, halves, near, signs
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

_INF, _NAN = np.inf, np.nan
_ZEROS = (0.0, 1.0, -1.0, 5.0, -7.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.4, -0.6, 300.0, -129.0, 127.0, -128.0)
# Over a scale of a half the powers of two are at the ends of an int64, and between them and the next.
_SPECIALS = (_INF, -_INF, _NAN, 3e38, -3e38, 1e10, -1e10, 1e20, 0.0, -0.0, 1e-45, 2.0**62, 1.5 * 2.0**62, -(2.0**62))
# x / s lies 2^-37 above, 2^-41 below a half: with a zero point of 2^23 a second rounding makes a tie of it.
_BY_ONE_ROUNDING = ((1 + 2.0**-12, 2 + 2.0**-11, 2.0**23), (1 + 2.0**-20, 2 + 2.0**-19, 2.0**23 + 1))
# x / s is a tie of float32 and so large that next to it a float64 loses the zero point, which decides.
_BY_THE_ZERO_POINT = (65281 * 2.0**40, 1 / (257 * 2.0**-10))
_SCALES = (0.0, -0.5, _NAN, _INF, 1e-45, 1e38)


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine",
    "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
    aspect="values",
)
def tensor_values() -> Calls:
    """The zero point is rounded, a tie to the even integer, and limited to the grid; the input times the reciprocal of
    the scale is rounded, then the zero point is added and the sum limited."""
    for zero in _ZEROS:
        for scale in (0.1, 0.3, 0.5):
            x = near(halves(zero), scale)
            yield {"x": x, "scale": f32([scale]), "zero_point": f32([zero])} | grid_of(-128, 127)
    for low, high in ((0, 255), (-8, 7), (0, 1), (-1, 0), (0, 15)):
        yield {"x": near(halves(1, low, high), 0.3), "scale": f32([0.3]), "zero_point": f32([1])} | grid_of(low, high)
    yield {"x": f32(0.7), "scale": f32([0.1]), "zero_point": f32([0])} | grid_of(-8, 7)
    for low, high, zero in ((5, 7, 6.0), (-7, -5, -6.0), (3, 3, 0.0)):  # grids without zero, and of one code
        yield {"x": f32([1]), "scale": f32([0.1]), "zero_point": f32([zero])} | grid_of(low, high)


def _others() -> Iterator[tuple[Array, float, float]]:
    """Ties of the quotient, and of float64 what float32 would round to one."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        for zero, scale in ((0.0, 0.1), (1.0, 0.3), (-7.0, 0.5)):
            codes = halves(zero) * np.float64(np.float32(scale))
            yield np.append(codes * (1 + 2.0**-40), [*codes, 1e5, -1e5, _INF, _NAN]).astype(dtype), zero, scale


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine", "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine"
)
def dtypes() -> Calls:
    """float16 and bfloat16 are computed with in float32; of float64 the quotient is in float64, the rest in float32;
    the result has the input's dtype."""
    for x, zero, scale in _others():
        yield {"x": x, "scale": f32([scale]), "zero_point": f32([zero])} | grid_of(-128, 127)


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="dtypes",
)
def channel_dtypes() -> Calls:
    """float16 and bfloat16 are computed with in float32, float64 in itself; the result has the input's dtype."""
    for x, zero, scale in _others():
        more = {"scale": f32([scale]), "zero_point": f32([zero]), "axis": 0}
        yield {"x": x[None], **more} | grid_of(-128, 127)


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine", "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine"
)
def specials() -> Calls:
    """Infinities saturate on their side, and NaN takes the lowest code."""
    for zero in (0.0, 1.0, -1.0):
        yield {"x": f32(_SPECIALS), "scale": f32([0.5]), "zero_point": f32([zero])} | grid_of(-128, 127)
    for scale in _SCALES:
        yield {"x": f32([1, 0, -3, 1e38]), "scale": f32([scale]), "zero_point": f32([1])} | grid_of(-128, 127)
    for zero in (_INF, -_INF):
        yield {"x": f32([1, 1000]), "scale": f32([0.5]), "zero_point": f32([zero])} | grid_of(-128, 127)


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine", "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine"
)
def refusals() -> Calls:
    """Ends of the grid that are no integers, a lowest code above the highest, a zero point of NaN and an input of
    integers are refused."""
    for low, high, zero in ((5, 1, 0.0), (-8, 7, _NAN)):
        yield {"x": f32([1]), "scale": f32([0.1]), "zero_point": f32([zero])} | grid_of(low, high)
    for ends in ({"quant_min": 0.5, "quant_max": 7}, {"quant_min": 0, "quant_max": 7.0}):
        yield {"x": f32([1]), "scale": f32([0.1]), "zero_point": f32([0])} | ends
    yield {"x": np.ones(1, np.int32), "scale": f32([0.1]), "zero_point": f32([0])} | grid_of(0, 7)


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="values",
)
def channel_values() -> Calls:
    """Every index along axis has its own scale and zero point, rounded and limited as per tensor."""
    for scale in (0.1, 0.3, 0.5):
        x = np.stack([near(halves(zero), scale) for zero in _ZEROS])
        more = {"scale": f32([scale] * len(_ZEROS)), "zero_point": f32(_ZEROS)} | grid_of(-128, 127)
        yield {"x": x, "axis": 0} | more
        yield {"x": x.T.copy(), "axis": 1} | more
    x = f32(np.arange(24).reshape(2, 3, 4) * 0.3 - 3)
    for axis in (0, 1, 2):
        n = x.shape[axis]
        s, z = f32(np.arange(1, n + 1) * 0.1), f32(np.arange(n))
        yield {"x": x, "scale": s, "zero_point": z, "axis": axis} | grid_of(-8, 7)
    yield {"x": f32([1, 2]), "scale": f32([0.5, 0.3]), "zero_point": f32([0, 1]), "axis": 0} | grid_of(0, 3)
    for low, high in ((5, 7), (0, 0), (3, 3)):  # the last two of one code
        yield {"x": f32([1, 2]), "scale": f32([0.5, 0.3]), "zero_point": f32([0, 1]), "axis": 0} | grid_of(low, high)


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="specials",
)
def channel_specials() -> Calls:
    """Codes that an int64 does not hold, infinities and NaN take the lowest code."""
    x = np.tile(f32(_SPECIALS), (3, 1))
    yield {"x": x, "scale": f32([0.5] * 3), "zero_point": f32([0, 1, -1]), "axis": 0} | grid_of(-128, 127)
    n = len(_SCALES)
    x = np.tile(f32([1, 0, -3, 1e38]), (n, 1))
    yield {"x": x, "scale": f32(_SCALES), "zero_point": f32([1] * n), "axis": 0} | grid_of(-128, 127)


def _bad_channels() -> Iterator[Arguments]:
    x, one, two, three = np.ones((2, 3), np.float32), f32([1]), f32([1, 1]), f32([1, 1, 1])
    good = {"x": x, "scale": two, "zero_point": two * 0, "axis": 0} | grid_of(-8, 7)
    changes: list[dict[str, Any]] = [{"axis": 2}, {"axis": 1}, {"axis": -2}, {"axis": -3}, {"scale": one}]
    changes += [grid_of(5, 1), {"zero_point": three}, {"zero_point": f32([0, _NAN])}]
    changes += [{"quant_min": 0.5}, {"quant_max": 7.0}]
    for change in changes:
        yield good | change


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="refusals",
)
def channel_refusals() -> Calls:
    """An axis outside the dimensions, a negative one, and parameters that are not as many as the channels are
    refused."""
    yield from _bad_channels()


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
)
def one_element() -> Calls:
    """Inside the grid the gradient of the scale is that of the result times the rounding error over the scale, outside
    the distance of the end from the zero point; the zero point has one outside only."""
    for zero in (0.0, 2.0, 0.25):
        for scale in (0.1, 0.3):
            for i, x in enumerate(near(halves(zero), scale)[::2]):
                more = {"grad": signs(3)[i % 3 : i % 3 + 1], "grad_factor": (1.0, 0.3)[i % 2]}
                yield {"x": f32([x]), "scale": f32([scale]), "zero_point": f32([zero])} | grid_of(-128, 127) | more
    for x, scale, zero in _BY_ONE_ROUNDING:
        one = {"x": f32([x]), "scale": f32([scale]), "zero_point": f32([zero]), "grad": f32([1])}
        yield one | grid_of(0, 2**24 - 1)
    x, scale = _BY_THE_ZERO_POINT
    for zero in (1.0, -2.0):
        one = {"x": f32([x]), "scale": f32([scale]), "zero_point": f32([zero]), "grad": f32([1])}
        yield one | grid_of(-(2**60), 2**60)


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
)
def zero_points() -> Calls:
    """The gradients see the zero point plus a half, limited to the grid and cut towards zero."""
    for zero in (*_ZEROS, _INF, -_INF):
        for x in (1000, -1000, 0.26):
            one = {"x": f32([x]), "scale": f32([0.5]), "zero_point": f32([zero]), "grad": f32([1])}
            yield one | grid_of(-128, 127)
    for low, high in ((-8, 0), (0, 7)):
        yield {"x": f32([0.6]), "scale": f32([0.5]), "zero_point": f32([0]), "grad": f32([1])} | grid_of(low, high)


def _exact(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Multiples of 1/16 and small integers: with a scale that is a power of two every sum is exact."""
    n = int(np.prod(shape))
    return f32((np.arange(n) * 37 % 97 - 48) / 16).reshape(shape), f32(np.arange(n) * 5 % 7 - 3).reshape(shape)


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
)
def sums() -> Calls:
    """The gradients of scale and zero point are sums over the elements, times grad_factor."""
    for shape in ((7,), (5, 8), (2, 3, 4), ()):
        for low, high in ((-8, 7), (0, 15), (0, 3)):
            x, grad = _exact(shape)
            for factor in (1.0, 0.25):
                more = {"grad": grad, "grad_factor": factor} | grid_of(low, high)
                yield {"x": x, "scale": f32([0.25]), "zero_point": f32([1])} | more
    x, grad = _exact((7,))
    yield {"x": x, "scale": f32([0.25]), "zero_point": f32([0]), "grad": grad} | grid_of(-8, 0)


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
    aspect="specials",
)
def gradient_specials() -> Calls:
    """Codes that an int64 does not hold, infinities and NaN count as below the grid; without elements the gradients are
    scale and zero point themselves."""
    for x in _SPECIALS:
        one = {"x": f32([x]), "scale": f32([0.5]), "zero_point": f32([1]), "grad": f32([2])}
        yield one | grid_of(-128, 127)
    for scale in _SCALES:
        for x in (1, 0):
            one = {"x": f32([x]), "scale": f32([scale]), "zero_point": f32([1]), "grad": f32([2])}
            yield one | grid_of(-128, 127)
    for grad in (_INF, _NAN, -0.0):
        for x in (1, 1000):
            one = {"x": f32([x]), "scale": f32([0.5]), "zero_point": f32([1]), "grad": f32([grad])}
            yield one | grid_of(-128, 127)
    ones = f32([1, 1, 1])
    yield {"x": 1000 * ones, "scale": ones[:1], "zero_point": ones[:1], "grad": f32([_INF, 1, -_INF])} | grid_of(-8, 7)
    yield {"x": f32([]), "scale": f32([0.5]), "zero_point": f32([1]), "grad": f32([])} | grid_of(-8, 7)


@silent("torch/_fake_quantize_learnable_per_tensor_affine.backward", "no document says")
def order() -> Calls:
    """In which order, and in which dtype, the terms of a sum are added, where its roundings show."""
    ones = f32([1, 1, 1])
    for grad in ((2.0**60, 1, -(2.0**60)), (3e38, 3e38, -_INF)):
        yield {"x": 1000 * ones, "scale": ones[:1], "zero_point": ones[:1], "grad": f32(grad)} | grid_of(-8, 7)


@measured(
    "torch/_fake_quantize_learnable_per_tensor_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_tensor_affine",
    aspect="refusals",
)
def gradient_refusals() -> Calls:
    """A range without zero, a zero point of NaN, and float16 and float64 are refused."""
    for low, high, zero in ((5, 1, 0.0), (5, 7, 6.0), (1, 7, 1.0), (-8, -1, -1.0), (-8, 7, _NAN)):
        yield {"x": f32([1]), "scale": f32([0.1]), "zero_point": f32([zero]), "grad": f32([1])} | grid_of(low, high)
    for dtype in ("float16", "float64"):
        x = np.ones(1, dtype)
        yield {"x": x, "scale": f32([0.1]), "zero_point": f32([0]), "grad": x} | grid_of(-8, 7)


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="one-element",
)
def gradient_one_element() -> Calls:
    """The gradients are those per tensor, with the zero point that the result has."""
    for zero in _ZEROS:
        for scale in (0.1, 0.3):
            x = near(halves(zero), scale)
            n = x.size
            more = {"axis": 0, "grad": signs(n).reshape(n, 1), "grad_factor": 0.3} | grid_of(-128, 127)
            yield {"x": x.reshape(n, 1), "scale": f32([scale] * n), "zero_point": f32([zero] * n)} | more
    xs, scales, zeros = (f32(column) for column in zip(*_BY_ONE_ROUNDING, strict=True))
    ones: dict[str, Any] = {"axis": 0, "grad": np.ones((len(xs), 1), np.float32)} | grid_of(0, 2**24 - 1)
    yield {"x": xs.reshape(-1, 1), "scale": scales, "zero_point": zeros} | ones
    x, s = (np.full((2, 1), v, np.float32) for v in _BY_THE_ZERO_POINT)
    yield ones | {"x": x, "scale": s.ravel(), "zero_point": f32([1, -1])} | grid_of(-(2**60), 2**60)


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="sums",
)
def gradient_sums() -> Calls:
    """The gradients of scale and zero point are sums over the elements of a channel."""
    for shape in ((5, 8), (2, 3, 4), (1, 1)):
        for axis in range(len(shape)):
            x, grad = _exact(shape)
            n = shape[axis]
            s, z = f32([(0.25, 0.5)[i % 2] for i in range(n)]), f32(np.arange(n) % 4)
            yield {"x": x, "scale": s, "zero_point": z, "axis": axis, "grad": grad} | grid_of(-8, 7)


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="specials",
)
def channel_gradient_specials() -> Calls:
    """Codes that an int64 does not hold, infinities and NaN count as below the grid."""
    n, m = len(_SPECIALS), len(_SCALES)
    x = f32(_SPECIALS).reshape(n, 1)
    ones = {"axis": 0} | grid_of(-128, 127)
    yield {"x": x, "scale": f32([0.5] * n), "zero_point": f32([1] * n), "grad": np.ones_like(x)} | ones
    for v in (1, 0):
        x = np.full((m, 1), v, np.float32)
        yield {"x": x, "scale": f32(_SCALES), "zero_point": f32([1] * m), "grad": f32([[2]] * m)} | ones
    grad = f32([[_INF], [_NAN], [-0.0]])
    for v in (1, 1000):
        x = np.full((3, 1), v, np.float32)
        yield {"x": x, "scale": f32([0.5] * 3), "zero_point": f32([1] * 3), "grad": grad} | ones
    x = np.zeros((2, 0), np.float32)
    yield {"x": x, "scale": f32([0.5, 3]), "zero_point": f32([1, 0]), "grad": x} | ones


@measured(
    "torch/_fake_quantize_learnable_per_channel_affine.backward",
    "torch 2.13.0, _fake_quantize_learnable_per_channel_affine",
    aspect="refusals",
)
def channel_gradient_refusals() -> Calls:
    """What per_channel refuses, a range without zero, and an input of one dimension are refused."""
    for change in _bad_channels():
        yield {**change, "grad": np.ones((2, 3), np.float32)}
    ones = np.ones((2, 3), np.float32)
    yield {"x": ones, "scale": f32([1, 1]), "zero_point": f32([0, 0]), "axis": 0, "grad": ones} | grid_of(5, 7)
    x = f32([1, 2])
    yield {"x": x, "scale": x, "zero_point": x, "axis": 0, "grad": x} | grid_of(-8, 7)


def _per_tensor(x: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int) -> Any:
    import torch

    return torch._fake_quantize_learnable_per_tensor_affine(x, scale, zero_point, quant_min, quant_max, 1.0)  # noqa: SLF001


def _per_channel(x: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int) -> Any:
    import torch

    return torch._fake_quantize_learnable_per_channel_affine(x, scale, zero_point, axis, quant_min, quant_max, 1.0)  # noqa: SLF001


def _per_tensor_gradients(
    x: Any, scale: Any, zero_point: Any, quant_min: int, quant_max: int, grad: Any, grad_factor: float = 1.0
) -> Any:
    import torch

    x, s, z = (t.clone().requires_grad_() for t in (x, scale, zero_point))
    y = torch._fake_quantize_learnable_per_tensor_affine(x, s, z, quant_min, quant_max, grad_factor)  # noqa: SLF001
    return torch.autograd.grad(y, (x, s, z), grad)


def _per_channel_gradients(
    x: Any, scale: Any, zero_point: Any, axis: int, quant_min: int, quant_max: int, grad: Any, grad_factor: float = 1.0
) -> Any:
    import torch

    x, s, z = (t.clone().requires_grad_() for t in (x, scale, zero_point))
    y = torch._fake_quantize_learnable_per_channel_affine(x, s, z, axis, quant_min, quant_max, grad_factor)  # noqa: SLF001
    return torch.autograd.grad(y, (x, s, z), grad)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch.learnable": {
        "torch/_fake_quantize_learnable_per_tensor_affine": _per_tensor,
        "torch/_fake_quantize_learnable_per_channel_affine": _per_channel,
        "torch/_fake_quantize_learnable_per_tensor_affine.backward": _per_tensor_gradients,
        "torch/_fake_quantize_learnable_per_channel_affine.backward": _per_channel_gradients,
    },
}
