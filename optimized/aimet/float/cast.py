"""Casts to a float format with a scale, and their gradients: operators, which compilers do not look into.

quantize: cast(x / s); quantize_dequantize: cast(x / s)·s. Quotient, cast and product are rounded to the dtype of ``x``,
and computed in the widest of it, the scale's and float32. The gradient goes straight through the rounding, and is that
of the clamp: none where the quotient is beyond the format's largest number, or NaN.
"""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.aimet.arguments import exact_blocks
from halfeven.optimized.aimet.float.formats import FloatFormat
from halfeven.optimized.arguments.dtypes import REALS, names
from halfeven.optimized.kernels.chunked.parts import pieces, sum_to
from halfeven.optimized.operators.batching import batched, lift
from halfeven.optimized.operators.registration import OPS, Operator, register, transforms_active

__all__ = ["blockwise", "held", "quantize", "quantize_dequantize", "scale"]

_PIECE = 2**17  # elements that stay in a cache


def quantize(x: Tensor, format_: FloatFormat, scales: Tensor, block_size: Sequence[int] | None) -> Tensor:
    """The numbers of the format nearest to ``x`` / ``scales``, in the shape and dtype of ``x``.

    Raises:
        ValueError: ``x`` is of another dtype.
        RuntimeError, IndexError: the scale or the blocks do not fit; see ``exact_blocks``.
    """
    return blockwise(lambda x, s: _apply("float_cast", x, s, *format_, False), x, scales, block_size)


def quantize_dequantize(x: Tensor, format_: FloatFormat, scales: Tensor, block_size: Sequence[int] | None) -> Tensor:
    """``quantize`` times ``scales``."""
    return blockwise(lambda x, s: _apply("float_cast", x, s, *format_, True), x, scales, block_size)


def scale(maxval: Tensor, format_: FloatFormat) -> Tensor:
    """|maxval| / the format's largest number, float32, rounded once; 1 where ``maxval`` is that in its dtype."""
    return _apply("float_scale", maxval, *format_)


def held(value: float, like: Tensor) -> Tensor:
    """``value`` as the dtype of ``like`` holds it, infinity where it does not."""
    return torch.tensor(value, dtype=torch.float64).to(like.dtype).to(like.device)


def blockwise(
    function: Callable[[Tensor, Tensor], Tensor], x: Tensor, scales: Tensor, block_size: Sequence[int] | None
) -> Tensor:
    """``function`` of ``x`` and a scale that broadcasts to it, in the shape of ``x``."""
    if x.dtype not in REALS:
        msg = f"input of dtype {x.dtype} is not accepted: give {names(REALS)}"
        raise ValueError(msg)
    if not block_size:
        pairs = zip(reversed(scales.shape), reversed(x.shape), strict=False)
        if scales.ndim > x.ndim or any(n not in {1, m} for n, m in pairs):
            msg = f"scale of shape {tuple(scales.shape)} is not accepted: it does not broadcast to {tuple(x.shape)}"
            raise RuntimeError(msg)
        return function(x, scales)
    sizes = exact_blocks(x.shape, scales.shape, block_size)
    lead = x.shape[: x.ndim - scales.ndim]
    split = x.reshape(*lead, *(n for pair in zip(scales.shape, sizes, strict=True) for n in pair))
    aligned = scales.reshape([n for count in scales.shape for n in (count, 1)])
    return function(split, aligned).reshape(x.shape)


def _apply(name: str, *given: Any) -> Tensor:
    """The operator; where nothing looks into it the function under it, which small tensors gain from."""
    wanted = torch.is_grad_enabled() and any(isinstance(t, Tensor) and t.requires_grad for t in given)
    seen = wanted or torch.compiler.is_compiling() or transforms_active()
    plain = all(type(t) in {Tensor, torch.nn.Parameter} for t in given if isinstance(t, Tensor))
    found: Tensor = getattr(OPS, name).default(*given) if seen or not plain else _OPERATORS[name].implementation(*given)
    return found


def _cast(x: Tensor, scale: Tensor, *settings: Any) -> Tensor:
    *widths, dequantized = settings
    format_, wide = FloatFormat(*widths), _wide(x, scale)
    format_.check()
    x, scale = x.detach(), scale.detach()
    out = torch.empty_like(x)
    most = _PIECE if x.is_cpu else x.numel()
    for x_, out_, s_ in pieces((x, out), (scale.to(wide),), most):
        near = format_.nearest((x_.to(wide) / s_).to(x.dtype))
        out_.copy_(near.to(wide).mul_(s_) if dequantized else near)
    return out


def _cast_backward(grad: Tensor, x: Tensor, scale: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    *widths, dequantized, need_x, need_scale = settings
    format_, wide = FloatFormat(*widths), _wide(x, scale)
    g, s = grad.to(wide), scale.to(wide)
    y = (x.to(wide) / s).to(x.dtype)
    inside = y.to(torch.promote_types(x.dtype, format_.holder)).abs() <= format_.max
    none = torch.zeros((), dtype=wide, device=x.device)
    dx = torch.where(inside, g if dequantized else g / s, none)
    if not need_scale:
        return dx.to(x.dtype), x.new_empty((0,))
    u = y.to(wide)
    ds = g * (format_.nearest(y.clone()).to(wide) - torch.where(inside, u, none)) if dequantized else -dx * u
    return dx.to(x.dtype) if need_x else x.new_empty((0,)), sum_to(ds, scale, None)


def _scale(maxval: Tensor, *settings: Any) -> Tensor:
    format_, maxval = FloatFormat(*settings), maxval.detach()
    format_.check()
    # In a dtype that has the largest number; a tensor, since some devices multiply by the reciprocal of a number.
    wide = torch.promote_types(maxval.dtype, format_.holder)
    found = (maxval.abs().to(wide) / torch.full((), format_.max, dtype=wide, device=maxval.device)).float()
    if maxval.dtype == wide:
        return found
    return torch.where(maxval == held(format_.max, maxval), 1.0, found)


def _scale_gradient(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    (maxval,) = ctx.saved_tensors
    return ((grad.double() * maxval.sgn() / FloatFormat(*ctx.settings).max).to(maxval.dtype), None, None, None, None)


def _wide(x: Tensor, scale: Tensor) -> torch.dtype:
    return torch.promote_types(torch.promote_types(x.dtype, scale.dtype), torch.float32)


def _gradients(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    needs = ctx.needs_input_grad[:2]
    found = OPS.float_cast_backward.default(grad, *ctx.saved_tensors, *ctx.settings, *needs)
    own = (g if needed else None for g, needed in zip(found, needs, strict=True))
    return (*own, *(None for _ in ctx.settings))


def _batched(info: Any, dims: tuple[Any, ...], x: Tensor, scale: Tensor, *settings: Any) -> tuple[Tensor, int]:
    x = batched(x, dims[0], info.batch_size)
    if dims[1] is not None:
        scale = lift(batched(scale, dims[1], info.batch_size), x.ndim)
    return OPS.float_cast.default(x, scale, *settings), 0


def _like(x: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(x, requires_grad=False)


def _like_both(_: Tensor, x: Tensor, scale: Tensor, *settings: Any) -> tuple[Tensor, Tensor]:
    *_widths, need_x, need_scale = settings
    none, contiguous = x.new_empty((0,)), torch.contiguous_format
    return (
        _like(x) if need_x or not need_scale else none,
        torch.empty_like(scale, memory_format=contiguous, requires_grad=False) if need_scale else none,
    )


def _like_scale(maxval: Tensor, *_: Any) -> Tensor:
    return torch.empty_like(maxval, dtype=torch.float32, requires_grad=False)


_FORMAT = "int exponent_bits, int mantissa_bits, bool finite, bool unsigned_zero"
_OPERATORS = {
    "float_cast": Operator(
        f"(Tensor x, Tensor scale, {_FORMAT}, bool dequantize) -> Tensor",
        _cast,
        _like,
        backward=_gradients,
        vmap=_batched,
    ),
    "float_cast_backward": Operator(
        f"(Tensor grad, Tensor x, Tensor scale, {_FORMAT}, bool dequantize, bool x_, bool scale_) -> (Tensor, Tensor)",
        _cast_backward,
        _like_both,
    ),
    "float_scale": Operator(f"(Tensor maxval, {_FORMAT}) -> Tensor", _scale, _like_scale, backward=_scale_gradient),
}
register(_OPERATORS)
