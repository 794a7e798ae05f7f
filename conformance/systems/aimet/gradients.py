"""What the documents require of AIMET's gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, expected, measured
from halfeven.conformance.systems.aimet.affine import DTYPES, F32, boundaries, scalar
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

QUANTIZERS = ("aimet/quantize_gradient", "aimet/quantize_dequantize_gradient")


# Scale, offset and grid; two grids without zero.
_GRIDS = (
    (1, 0, (-8, 7)),
    (0.1, 1, (0, 15)),
    (3, -7, (-2, 1)),
    (0.37, 0.5, (-100, 155)),
    (1, 0, (1, 15)),
    (1, 0, (-2, -1)),
)


def _gradient(n: int, dtype: Any) -> Array:
    quarters: Array = (np.arange(n) % 7 - 3).astype(dtype) / np.asarray(4, dtype)
    return quarters


@measured("aimet/quantize_gradient", "aimet-torch 2.42: affine.quantize, autograd", aspect="straight-through")
@measured(
    "aimet/quantize_dequantize_gradient",
    "aimet-torch 2.42: affine.quantize_dequantize, autograd",
    text="Inside the grid, ends included and by the rounded code, the input gets the gradient and the scale the "
    "rounding error; outside the scale gets the end plus the offset, and the offset the scale.",
)
def elements() -> Calls:
    """Inside the grid the gradient of a code is 1 / scale for the input, -(x / scale) / scale for the scale and -1 for
    the offset; outside all are zero."""
    # A scale and an offset for each element: nothing is summed, so that every contribution is seen.
    for dtype in DTYPES:
        for scale, offset, grid in _GRIDS:
            x = boundaries(scale, np.array([*range(-10, 10), -101, 154, 155, 156]), dtype)
            s = np.full(x.shape, scale, F32 if dtype.itemsize < F32.itemsize else dtype)
            given = {"tensor": x, "scale": s, "offset": np.full_like(s, offset), "gradient": _gradient(x.size, dtype)}
            yield {**given, "qmin": grid[0], "qmax": grid[1]}


@measured("aimet/quantize_gradient", "aimet-torch 2.42: affine.quantize, autograd")
@measured(
    "aimet/quantize_dequantize_gradient",
    "aimet-torch 2.42: affine.quantize_dequantize, autograd",
    text="Outside the grid the input's gradient is zero whatever comes from above; a NaN input gives its scale a NaN.",
)
def not_finite() -> Calls:
    """What is not finite in the gradient from above stays so outside the grid, where it is multiplied by zero."""
    # Infinities and NaN, among the inputs and among the gradients from above, inside the grid and out of it.
    x, g = np.meshgrid(np.array([0.0, 1, 99, -99, np.inf, -np.inf, np.nan]), np.array([-1.0, 0, np.inf, np.nan]))
    for dtype in DTYPES:
        s = np.full(x.shape, 0.5, dtype)
        given = {"tensor": x.astype(dtype), "scale": s, "offset": np.zeros_like(s), "gradient": g.astype(dtype)}
        yield {**given, "qmin": -8, "qmax": 7}
        for row in ([np.inf, 1], [1, -np.inf], [np.inf, -np.inf], [np.nan, 1]):  # summed
            one = {"scale": scalar(0.5, dtype), "offset": scalar(0, dtype), "gradient": np.array(row, dtype)}
            yield from ({**one, "tensor": np.full(2, v, dtype), "qmin": -8, "qmax": 7} for v in (1, 99))


def _sums() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], Any]]:
    """Shapes of tensor and scale, and block sizes; between five and eight elements share a parameter."""
    yield from (((6,), (), None), ((2, 5), (2, 1), None), ((5, 3), (3,), None), ((2, 3, 2), (3, 1), None))
    yield from (((4, 6), (2, 2), (2, 3)), ((2, 12), (2,), (6,)), ((4, 6), (1, 3), (-1, 2)), ((5,), (1,), (-1,)))


def _summed(dtype: np.dtype[Any]) -> Iterator[Arguments]:
    for shape, scales, block in _sums():
        n, k = int(np.prod(shape)), int(np.prod(scales))
        x = (np.arange(n) * 5 % 23 - 11).reshape(shape).astype(dtype) / np.asarray(2, dtype)
        kept = F32 if dtype.itemsize < F32.itemsize else dtype
        scale = (2.0 ** (np.arange(k) % 2)).reshape(scales).astype(kept)
        offset = (np.arange(k) % 3 - 1).reshape(scales).astype(kept)
        gradient = (np.arange(n) % 3 - 1).reshape(shape).astype(dtype)
        yield {"tensor": x, "scale": scale, "offset": offset, "gradient": gradient, "block_size": block}


@measured("aimet/quantize_gradient", "aimet-torch 2.42: affine.quantize, autograd")
@measured("aimet/quantize_dequantize_gradient", "aimet-torch 2.42: affine.quantize_dequantize, autograd")
def sums() -> Calls:
    """The gradient of a scale or offset is the sum over the elements, or the blocks' elements, that share it."""
    # Small numbers and powers of two, whose sums no order of addition rounds.
    for dtype in DTYPES:
        yield from ({**c, "qmin": -4, "qmax": 3} for c in _summed(dtype))
    for c in _summed(DTYPES[1]):  # gradients that float32 does not hold, and float64 adds exactly
        yield {**c, "gradient": c["gradient"] * (1 + 2.0**-30), "qmin": -4, "qmax": 3}
    for value in (1, 9999):  # a grid that float16 is widened for, and sums that it does not hold
        wide = {"tensor": np.full(2, value, np.float16), "scale": scalar(1), "offset": scalar(0)}
        yield {**wide, "gradient": np.array([2048, 1], np.float16), "qmin": -1024, "qmax": 1023}


@measured("aimet/dequantize_gradient", "aimet-torch 2.42: affine.dequantize, autograd", aspect="sums")
def dequantized_sums() -> Calls:
    """The gradient of a scale or offset is the sum over the codes that share it."""
    # The same for dequantize.
    for dtype in DTYPES:
        yield from _summed(dtype)
    yield from ({**c, "gradient": c["gradient"] * (1 + 2.0**-30)} for c in _summed(DTYPES[1]))


def _cancelling(element: float) -> Iterator[Arguments]:
    """One scale for gradients that cancel, overflow on the way, or leave a tie by less than float64 can tell."""
    for dtype in DTYPES:
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        large, largest = 2.0 ** int(info.maxexp - 2), float(info.max)
        tie, less = float(info.eps) / 2, max(float(info.smallest_subnormal), 2.0**-140)
        rows = ([large, 1, -large, 1], [largest, largest, -largest, 1], [largest, largest, 1, 0])
        for row in (*rows, [1, tie, less, 0], [1, tie, -less, 0], [-1, -tie, 0, -less]):
            x, s = np.full(4, element, dtype), scalar(1).astype(dtype)
            yield {"tensor": x, "scale": s, "offset": 0 * s, "gradient": np.array(row, dtype)}


@expected(
    "aimet/quantize_gradient",
    "derivative of aimet_torch.quantization.affine; the library leaves the order of its sums open",
)
def cancelling_sums() -> Calls:
    """The gradient of a scale or offset is one that an order of addition gives, also where large elements cancel."""
    # Every element inside.
    yield from ({**c, "qmin": -2, "qmax": 1} for c in _cancelling(1))


@expected(
    "aimet/quantize_dequantize_gradient",
    "derivative of aimet_torch.quantization.affine; the library leaves the order of its sums open",
    aspect="cancelling-sums",
)
def cancelling_where_clipped() -> Calls:
    """The gradient of a scale or offset is one that an order of addition gives, also where large elements cancel."""
    # Every element clipped, so that scale and offset both get the gradient itself.
    yield from ({**c, "qmin": -2, "qmax": 1} for c in _cancelling(99))


@expected(
    "aimet/dequantize_gradient",
    "derivative of aimet_torch.quantization.affine; the library leaves the order of its sums open",
    aspect="cancelling-sums",
)
def dequantized_cancelling() -> Calls:
    """The gradient of a scale or offset is one that an order of addition gives, also where large elements cancel."""
    # The same for dequantize.
    yield from _cancelling(1)


@measured("aimet/quantize_gradient", "aimet-torch 2.42: affine.quantize, autograd")
@measured("aimet/quantize_dequantize_gradient", "aimet-torch 2.42: affine.quantize_dequantize, autograd")
def refusals() -> Calls:
    """A grid whose ends are in the other order, and scales that do not fit the tensor, are refused as without
    gradients."""
    for scale, block in ((scalar(1), None), (np.ones(3, F32), None), (np.ones(2, F32), (3,))):
        x = np.ones(4, F32)
        given = {"tensor": x, "scale": scale, "offset": 0 * scale, "gradient": x, "block_size": block}
        yield {**given, "qmin": 0, "qmax": -1 if scale.ndim == 0 else 1}


@expected("aimet/quantize_gradient", "aimet-torch 2.42: affine.quantize with a scale of shape (1,), autograd")
def scalar_scale() -> Calls:
    """One scale for a tensor of a narrow dtype gets the gradient that one scale per element would get: x / scale is not
    rounded to the narrow dtype."""
    # One scale for a tensor of a narrow dtype on a grid that needs a wider one; one element each, so no sum.
    for dtype in DTYPES:
        for value in (0.7, 1.9, -2.3):
            x, g = np.array([value], dtype), np.array([1], dtype)
            given = {"tensor": x, "scale": scalar(0.3), "offset": scalar(0), "gradient": g}
            yield from ({**given, "qmin": -n, "qmax": n - 1} for n in (8, 128, 512))
        point = {"tensor": scalar(1.9, dtype), "scale": scalar(0.3), "offset": scalar(0), "gradient": scalar(1, dtype)}
        yield {**point, "qmin": -512, "qmax": 511}


@expected("aimet/quantize_dequantize_gradient", "derivative of affine.quantize_dequantize, aimet-torch 2.42")
def zero_point_shift() -> Calls:
    """With a zero point shift the value of a clipped element is (end + offset + shift) * scale, and so is its
    derivative with respect to the scale."""
    for dtype in DTYPES:
        x = boundaries(1, np.arange(-7, 7), dtype)
        s = np.ones(x.shape, dtype)
        given = {"tensor": x, "scale": s, "offset": 0 * s, "gradient": _gradient(x.size, dtype), "qmin": -4, "qmax": 3}
        yield from ({**given, "zero_point_shift": shift} for shift in (0.5, -0.25))


@measured("aimet/dequantize_gradient", "aimet-torch 2.42: affine.dequantize, autograd", aspect="elements")
def dequantized_elements() -> Calls:
    """The gradient of (q + offset) * scale is scale for the code and the offset, and q + offset for the scale."""
    for dtype in DTYPES:
        q = np.array([*range(-4, 5), 127, -128, 0.5, -0.0, np.inf, np.nan]).astype(dtype)
        for scale, offset in ((0.1, 0), (0.3, -257), (-3, 0.5)):
            s = np.full(q.shape, scale, F32)
            given = {"tensor": q, "scale": s, "offset": np.full_like(s, offset)}
            yield {**given, "gradient": _gradient(q.size, dtype)}


def _range(low: Any, high: Any, **given: Any) -> Arguments:
    low, high = np.atleast_1d(np.asarray(low, F32)), np.atleast_1d(np.asarray(high, F32))
    ds, do = (np.resize(np.array(v, F32), low.shape) for v in ((1, -0.3, 0.7), (0.9, 0, -2)))
    return {"min": low, "max": high, "scale_gradient": ds, "offset_gradient": do, **given}


GRIDS = ((0, 255), (-128, 127), (-127, 127), (-8, 7), (0, 1), (-32768, 32767), (0, 5))


@measured("aimet/range_gradient", "aimet-torch 2.42: QuantizeDequantize, autograd of scale", aspect="symmetric")
def symmetric_range() -> Calls:
    """Of a symmetric quantizer max gets the scale's gradient over the number of steps, min its negative, both with the
    sign of max - min."""
    # Ordered, swapped and narrow ranges.
    for qmin, qmax in GRIDS:
        yield _range([-1, -0.3, 2, 0.1], [1, 2.7, -1, 0.7], qmin=qmin, qmax=qmax, symmetric=True)


@measured("aimet/range_gradient", "aimet-torch 2.42: QuantizeDequantize, autograd of scale and offset")
def asymmetric() -> Calls:
    """Of an asymmetric quantizer the offset's gradient reaches min and the scale through min / scale, save where the
    offset is clamped to keep zero in the range."""
    # Ranges with zero inside, at an end and outside, where the offset is clamped; swapped ones.
    for qmin, qmax in GRIDS:
        low, high = [-1, -0.3, 0, -5, 0.1, -3, 1, 2], [1, 2.7, 5, 0, 0.7, -1, -2, 0.5]
        yield _range(low, high, qmin=qmin, qmax=qmax, symmetric=False)
        n, grid = qmax - qmin, {"qmin": qmin, "qmax": qmax}
        yield _range([-n - 0.3, -n - 0.6, 0.3, 0.6], [-0.3, -0.6, n + 0.3, n + 0.6], **grid, symmetric=False)
        yield _range([-2.87, -1.65, -0.72, -0.3], [3, 2, 1, 0.7], qmin=qmin, qmax=qmax, symmetric=False)


@measured("aimet/range_gradient", "aimet-torch 2.42: QuantizeDequantize", aspect="refusals")
def refused_range() -> Calls:
    """A grid of fewer than two codes is refused."""
    # Grids of one code, and of none.
    for qmin, qmax in ((4, 4), (0, 0), (5, 4)):
        yield from (_range([-1], [1], qmin=qmin, qmax=qmax, symmetric=symmetric) for symmetric in (True, False))


@measured("aimet/range_gradient", "aimet-torch 2.42: QuantizeDequantize, autograd of scale")
def smallest_scale() -> Calls:
    """A width below the smallest scale has no gradient; at the smallest scale it has."""
    # Widths just below, at and above n times the smallest scale, and zero.
    for qmin, qmax in ((0, 255), (-8, 7), (0, 1)):
        smallest = np.float32((qmax - qmin) * 2.0**-23)
        high = [np.nextafter(smallest, F32.type(0)), smallest, np.nextafter(smallest, F32.type(1)), 0, 1e-30]
        for symmetric in (True, False):
            yield _range(np.zeros(5), high, qmin=qmin, qmax=qmax, symmetric=symmetric)
    for half in (2**23, 2**31):  # the smallest scale is a hundredth of a step of one
        yield _range([-0.1, -0.01, -1e-4], [0.2, 0.02, 1e-4], qmin=-half, qmax=half - 1, symmetric=True)


def answered_gradient(
    function: str, tensor: Tensor, scale: Tensor, offset: Tensor, gradient: Tensor, **given: Any
) -> tuple[Tensor, ...]:
    """Of a function of ``affine``, by the tensor, the scale and the offset."""
    import torch
    from aimet_torch.quantization import affine

    leaves = [tensor.requires_grad_(), scale.requires_grad_(), offset.requires_grad_()]
    return torch.autograd.grad(getattr(affine, function)(*leaves, **given), leaves, gradient)


def range_gradient(
    min: Tensor,  # noqa: A002 - the document's names
    max: Tensor,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    scale_gradient: Tensor,
    offset_gradient: Tensor,
) -> tuple[Tensor, ...]:
    """Of the scale and offset of ``affine.QuantizeDequantize``."""
    import torch
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize(tuple(min.shape), qmin=qmin, qmax=qmax, symmetric=symmetric)
    quantizer.min, quantizer.max = torch.nn.Parameter(min), torch.nn.Parameter(max)
    encoding = quantizer.get_encodings()
    outputs = [encoding.scale] if symmetric else [encoding.scale, encoding.offset]
    given = [scale_gradient] if symmetric else [scale_gradient, offset_gradient]
    return torch.autograd.grad(outputs, [quantizer.min, quantizer.max], given)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/quantize_gradient": partial(answered_gradient, "quantize"),
        "aimet/quantize_dequantize_gradient": partial(answered_gradient, "quantize_dequantize"),
        "aimet/dequantize_gradient": partial(answered_gradient, "dequantize"),
        "aimet/range_gradient": range_gradient,
    },
}
