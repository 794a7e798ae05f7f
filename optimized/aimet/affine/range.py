"""Scale and offset of a range, with their gradients; and the range of a scale and offset.

All of it is computed in float32, or as named, one rounding per operation: s = max(|max − min| / n, least), and, where
the grid is not symmetric, o = clamp(half_even(min / s) − qmin, −qmax, −qmin), which keeps zero in the range. Compilers
get it as two operators: of the operations they are made of, one would drop the sign of an offset of -0.0.

The gradient goes straight through the rounding. The least scale stops that of the scale, strictly below it, and the
clamp that of the offset.
"""

from collections.abc import Callable
from itertools import product
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.operators.batching import batched
from halfeven.optimized.operators.registration import OPS, Operator, register, transforms_active

__all__ = ["derived", "exact_range", "middle_offset", "min_scale", "nearest_integer", "range_offset", "range_scale"]

_ULPS = (0, -1, 1, -2, 2)


def min_scale(num_steps: int) -> float:
    """The least scale, real per code, of a grid of ``num_steps`` steps, 1 or more: float32's eps, or 0.01 / n."""
    return min(2.0**-23, 0.01 / num_steps)


def middle_offset(qmin: int, qmax: int) -> int:
    """The offset of a symmetric grid: minus its middle, a half to the even neighbour."""
    return -round((qmin + qmax) / 2)


def range_scale(low: Tensor, high: Tensor, num_steps: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """The scale of a range, of the shape of its ends, computed in ``dtype``."""
    low, high = low.to(dtype), high.to(dtype)
    if not _opaque():
        return _scale(low, high, num_steps)
    scale: Tensor = OPS.range_scale.default(low, high, num_steps)
    return scale


def range_offset(low: Tensor, scale: Tensor, qmin: int, qmax: int) -> Tensor:
    """The offset of a range that starts at ``low``, in the wider of its dtype and that of ``scale``."""
    wide = torch.promote_types(low.dtype, scale.dtype)
    low, scale = low.to(wide), scale.to(wide)
    if not _opaque():
        return _offset(low, scale, qmin, qmax)
    offset: Tensor = OPS.range_offset.default(low, scale, qmin, qmax)
    return offset


def derived(low: Tensor, high: Tensor, qmin: int, qmax: int, symmetric: bool) -> tuple[Tensor, Tensor]:
    """Scale and offset of a range, float32."""
    scale = range_scale(low, high, qmax - qmin)
    if symmetric:
        return scale, torch.full_like(scale, middle_offset(qmin, qmax), requires_grad=False)
    return scale, range_offset(low, scale, qmin, qmax).to(torch.float32)


def exact_range(scale: Tensor, offset: Tensor, qmin: int, qmax: int, symmetric: bool) -> tuple[Tensor, Tensor] | None:
    """A float32 range that gives float32 ``scale`` and ``offset`` to the bit, or None where there is none near.

    A width w gives the scale w / n, rounded: not every scale is one of those. About 1 in 240 of 8 bits is not, and 1
    in 7 of 2 bits.
    """
    shape, s, o = scale.shape, scale.reshape(1, -1), offset.reshape(1, -1)
    # Subtracted, not added: -0.0 − 0 is the offset -0.0 of a minimum of -0.0, but -0.0 + 0 is 0.0.
    low, high = s * (o - -qmin), s * (o - -qmax)

    def gives(low: Tensor, high: Tensor) -> Tensor:
        found = derived(low, high, qmin, qmax, symmetric)
        return (found[0] == s) & (found[1] == o) & (found[1].signbit() == o.signbit())

    missing = ~gives(low, high)[0]
    if missing.any():
        s, o = s[:, missing], o[:, missing]
        moved = list(product(_ULPS, _ULPS))
        lows = torch.cat([_moved(low[:, missing], below) for below, _ in moved])
        highs = torch.cat([_moved(high[:, missing], above) for _, above in moved])
        free = gives(lows, highs)
        if not free.any(0).all():
            return None
        first = free.to(torch.uint8).argmax(0, keepdim=True)
        low[:, missing], high[:, missing] = lows.gather(0, first), highs.gather(0, first)
    return low.reshape(shape), high.reshape(shape)


class _NearestInteger(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:  # noqa: ARG004
        return torch.round(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> Tensor:  # noqa: ARG004
        return grads[0]


def nearest_integer(x: Tensor) -> Tensor:
    """``x`` rounded half to even; the gradient goes straight through."""
    if not (x.requires_grad and torch.is_grad_enabled()):
        return torch.round(x)
    rounded: Tensor = _NearestInteger.apply(x)  # type: ignore[no-untyped-call]
    return rounded


def _opaque() -> bool:
    # The rounding's gradient is a function of Python, which neither a compiler nor vmap looks into.
    return torch.compiler.is_compiling() or transforms_active()


def _moved(end: Tensor, ulps: int) -> Tensor:
    target = torch.full_like(end, torch.inf if ulps > 0 else -torch.inf)
    for _ in range(abs(ulps)):
        end = torch.nextafter(end, target)
    return end


def _divided(x: Tensor, num_steps: int) -> Tensor:
    # With a CUDA tensor a Python number would become its reciprocal, and the division a product.
    return x / (num_steps if x.device.type == "cpu" else torch.full((), num_steps, dtype=x.dtype, device=x.device))


def _scale(low: Tensor, high: Tensor, num_steps: int) -> Tensor:
    return _divided(high - low, num_steps).abs().clamp_min(min_scale(num_steps))


def _scale_backward(grad: Tensor, low: Tensor, high: Tensor, num_steps: int) -> tuple[Tensor, Tensor]:
    width = _divided(high - low, num_steps)
    passed = torch.where(width.abs() >= torch.full_like(width, min_scale(num_steps)), grad, 0.0)
    d_high = _divided(passed * width.sgn(), num_steps)
    return -d_high, d_high


def _offset(low: Tensor, scale: Tensor, qmin: int, qmax: int) -> Tensor:
    return (nearest_integer(low / scale) - qmin).clamp(-qmax, -qmin)


def _offset_backward(grad: Tensor, low: Tensor, scale: Tensor, qmin: int, qmax: int) -> tuple[Tensor, Tensor]:
    u = low / scale
    offset = u.round() - qmin
    passed = torch.where((offset >= -qmax) & (offset <= -qmin), grad, 0.0)
    return passed / scale, -passed * (u / scale)


def _empty(like: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(like)


def _empty_pair(_: Tensor, a: Tensor, b: Tensor, *__: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(a), torch.empty_like(b)


def _gradients(name: str) -> Callable[..., tuple[Any, ...]]:
    def gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        found = getattr(OPS, name).default(grad, *ctx.saved_tensors, *ctx.settings)
        return (*found, *(None for _ in ctx.settings))

    return gradients


def _batched(name: str) -> Callable[..., tuple[Tensor, int]]:
    def over_batch(info: Any, dims: tuple[Any, ...], a: Tensor, b: Tensor, *settings: int) -> tuple[Tensor, int]:
        a, b = batched(a, dims[0], info.batch_size), batched(b, dims[1], info.batch_size)
        return getattr(OPS, name).default(a, b, *settings), 0

    return over_batch


register(
    {
        "range_scale": Operator(
            "(Tensor min, Tensor max, int num_steps) -> Tensor",
            _scale,
            _empty,
            backward=_gradients("range_scale_backward"),
            vmap=_batched("range_scale"),
        ),
        "range_scale_backward": Operator(
            "(Tensor grad, Tensor min, Tensor max, int num_steps) -> (Tensor, Tensor)", _scale_backward, _empty_pair
        ),
        "range_offset": Operator(
            "(Tensor min, Tensor scale, int qmin, int qmax) -> Tensor",
            _offset,
            _empty,
            backward=_gradients("range_offset_backward"),
            vmap=_batched("range_offset"),
        ),
        "range_offset_backward": Operator(
            "(Tensor grad, Tensor min, Tensor scale, int qmin, int qmax) -> (Tensor, Tensor)",
            _offset_backward,
            _empty_pair,
        ),
    }
)
