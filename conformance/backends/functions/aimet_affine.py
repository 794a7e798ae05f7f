"""AIMET's affine functions. The scale requires grad where it can: that selects the documented division."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]


def quantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.quantize``."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.quantize(tensor, scale.requires_grad_(), offset, **given)
    return result.detach()


def quantize_dequantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.quantize_dequantize``."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.quantize_dequantize(tensor, scale.requires_grad_(), offset, **given)
    return result.detach()


def dequantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.dequantize``."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.dequantize(tensor, scale, offset, **given)
    return result.detach()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aimet.quantize": quantize,
    "aimet.quantize_dequantize": quantize_dequantize,
    "aimet.dequantize": dequantize,
}
