"""AIMET's affine functions. The scale requires grad where it can: that selects the documented division."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


__all__ = ["ANSWERS"]


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


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/affine.quantize": quantize,
        "aimet/affine.quantize_dequantize": quantize_dequantize,
        "aimet/affine.dequantize": dequantize,
    },
}
