"""torch: ``_fake_quantize_learnable_per_*_affine`` and its gradients, and those of ``fake_quantize_per_*_affine``."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


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


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torch.learnable.per_tensor": _per_tensor,
    "torch.learnable.per_channel": _per_channel,
    "torch.learnable.per_tensor_gradients": _per_tensor_gradients,
    "torch.learnable.per_channel_gradients": _per_channel_gradients,
    "torch.learnable.fixed_per_tensor_gradient": _fixed_per_tensor_gradient,
    "torch.learnable.fixed_per_channel_gradient": _fixed_per_channel_gradient,
}
