"""The operators' gradients: each a backward operator, save where a gradient of the gradient is asked for."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.kernels import chunked
from halfeven.optimized.operators.registration import OPS, transforms_active

__all__ = ["GRADIENTS", "Eager", "Transformed", "keep_parameters"]


def keep_parameters(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
    """Save what a gradient needs: the tensors, and the other arguments as ``ctx.settings``."""
    x, scale, zero_point, *ctx.settings = inputs
    ctx.save_for_backward(x, scale, zero_point)
    if not output.dtype.is_floating_point:
        ctx.mark_non_differentiable(output)


def _gradients(name: str, ctx: Any, grad: Tensor, *settings: Any) -> tuple[Tensor | None, ...]:
    """Those of the tensors, by the operator ``name`` with its ``settings``, and none for the forward's settings."""
    need_x, need_scale, need_zero_point, *_ = ctx.needs_input_grad
    x, scale, zero_point = ctx.saved_tensors
    # With create_graph, or under a transform, the gradient is differentiated in turn, which the torch operations allow.
    again = torch.is_grad_enabled() or transforms_active()
    backward = chunked.IMPLEMENTATIONS[name] if again else getattr(OPS, name).default
    dx, ds, dz = backward(grad, x, scale, zero_point, *settings, need_x, need_scale, need_zero_point)
    found = (dx if need_x else None, ds if need_scale else None, dz if need_zero_point else None)
    return (*found, *(None for _ in ctx.settings))


def _quantize_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    qmin, qmax, block_size, _, offset = ctx.settings
    return _gradients("quantize_backward", ctx, grad, qmin, qmax, block_size, offset)


def _dequantize_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    block_size, _, compute, offset = ctx.settings
    return _gradients("dequantize_backward", ctx, grad, block_size, compute, offset)


def _quantize_dequantize_backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
    return _gradients("quantize_dequantize_backward", ctx, grad, *ctx.settings)


GRADIENTS: dict[str, Callable[..., tuple[Any, ...]]] = {
    "quantize": _quantize_backward,
    "dequantize": _dequantize_backward,
    "quantize_dequantize": _quantize_dequantize_backward,
}


class Eager(torch.autograd.Function):
    """An operator where nothing compiles or transforms it: several times faster than gradients that are registered.

    ``apply(x, scale, zero_point, name, *settings)``.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, scale: Tensor, zero_point: Tensor | None, name: str, *settings: Any) -> Tensor:
        """The operator ``name``, less what is registered for its gradient."""
        with torch._C._AutoDispatchBelowAutograd():  # noqa: SLF001
            result: Tensor = getattr(OPS, name).default(x, scale, zero_point, *settings)
        ctx.name = name
        keep_parameters(ctx, (x, scale, zero_point, *settings), result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """As for the operator."""
        dx, ds, dz, *rest = GRADIENTS[ctx.name](ctx, grad)
        return dx, ds, dz, None, *rest


class Transformed(torch.autograd.Function):
    """An operator under the transforms of ``torch.func``, which gradients registered with an operator do not serve.

    ``apply(x, scale, zero_point, name, *settings)``.
    """

    generate_vmap_rule = True

    @staticmethod
    def forward(x: Tensor, scale: Tensor, zero_point: Tensor | None, name: str, *settings: Any) -> Tensor:
        """The operator ``name``."""
        result: Tensor = getattr(OPS, name).default(x, scale, zero_point, *settings)
        return result

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
        """As for the operator."""
        x, scale, zero_point, ctx.name, *settings = inputs
        keep_parameters(ctx, (x, scale, zero_point, *settings), output)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Any, ...]:
        """As for the operator."""
        dx, ds, dz, *rest = GRADIENTS[ctx.name](ctx, grad)
        return dx, ds, dz, None, *rest
