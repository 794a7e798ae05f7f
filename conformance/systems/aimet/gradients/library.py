"""AIMET's gradients, by autograd: the scale requires grad, which selects the documented division."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from halfeven.conformance.backends.protocol import Unsupported

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]


def _refuse_rounded_sums(tensor: Tensor, scale: Tensor, gradient: Tensor) -> None:
    """Torch adds in an order of its own, which decides where small gradients meet large ones."""
    import torch

    sizes = gradient[gradient != 0].abs()
    if scale.numel() == tensor.numel() or not sizes.numel() or not sizes.isfinite().all():
        return
    if float(sizes.max()) * torch.finfo(sizes.dtype).eps > float(sizes.min()) / 4:
        msg = f"gradient from {sizes.min()} to {sizes.max()}: its sum depends on the order, which torch leaves open"
        raise Unsupported(msg)


def _gradient(
    function: str, tensor: Tensor, scale: Tensor, offset: Tensor, gradient: Tensor, **given: Any
) -> tuple[Tensor, ...]:
    """Of a function of ``affine``, by the tensor, the scale and the offset."""
    import torch
    from aimet_torch.quantization import affine

    _refuse_rounded_sums(tensor, scale, gradient)
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
        "aimet/quantize_gradient": partial(_gradient, "quantize"),
        "aimet/quantize_dequantize_gradient": partial(_gradient, "quantize_dequantize"),
        "aimet/dequantize_gradient": partial(_gradient, "dequantize"),
        "aimet/range_gradient": range_gradient,
    },
}
