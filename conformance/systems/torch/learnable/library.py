"""torch: ``_fake_quantize_learnable_per_*_affine`` and its gradients."""

from collections.abc import Callable
from typing import Any

__all__ = ["ANSWERS"]


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
