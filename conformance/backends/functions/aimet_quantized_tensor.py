"""AIMET's tensor types."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]


def quantized_repr(tensor: Tensor, qmin: int, qmax: int) -> tuple[str, Tensor]:
    """``QuantizedTensor.quantized_repr``."""
    import torch
    from aimet_torch.quantization import QuantizedTensor, affine

    codes = tensor.as_subclass(QuantizedTensor)
    one = torch.ones((), dtype=tensor.dtype)
    codes.encoding = affine.AffineEncoding(one, 0 * one, qmin=qmin, qmax=qmax)
    found = codes.quantized_repr()
    return str(found.dtype).removeprefix("torch."), found


def represented(
    tensor: Tensor, scale: Tensor, offset: Tensor, qmin: int, qmax: int, block_size: tuple[int, ...] | None = None
) -> tuple[Tensor, Tensor]:
    """``DequantizedTensor.quantize`` and ``QuantizedTensor.dequantize`` of that."""
    from aimet_torch.quantization import DequantizedTensor, affine

    encoding = affine.AffineEncoding(
        scale.requires_grad_(), offset, qmin=qmin, qmax=qmax, symmetry=False, block_size=block_size
    )
    values = affine.quantize_dequantize(tensor, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size).as_subclass(
        DequantizedTensor
    )
    values.encoding = encoding
    codes = values.quantize()
    return codes.as_subclass(Tensor).long(), codes.dequantize().as_subclass(Tensor).detach()


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aimet.quantized_repr": quantized_repr,
    "aimet.represented": represented,
}
