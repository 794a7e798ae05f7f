"""AIMET's float quantizer, with the scale that is asked for: its own comes out of logarithms."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["FUNCTIONS"]


def float_quantize_dequantize(
    tensor: Tensor, scale: Tensor, block_size: tuple[int, ...] | None = None, dtype: str | None = None, **bits: Any
) -> Tensor:
    """The encoding of ``FloatQuantizeDequantize``, given the scale."""
    import torch
    from aimet_torch.quantization.float import FloatEncoding, FloatQuantizeDequantize

    if bits.get("exponent_bits", 2) < 2 or bits.get("mantissa_bits", 1) < 1:  # noqa: PLR2004
        msg = "the library rounds to such a width by another rule"
        raise Unsupported(msg)
    own = FloatQuantizeDequantize(**bits, dtype=dtype and getattr(torch, dtype)).get_encodings()
    encoding = FloatEncoding(
        own.mantissa_bits, own.exponent_bits, own.finite, own.unsigned_zero, scale, block_size=block_size
    )
    result: Tensor = encoding.quantize_dequantize(tensor)
    return result


def float_cast(tensor: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """``FloatQuantizeDequantize`` of a scale of 1."""
    import torch
    from aimet_torch.quantization.float import FloatEncoding

    if exponent_bits < 2 or mantissa_bits < 1:  # noqa: PLR2004
        msg = "the library rounds to such a width by another rule"
        raise Unsupported(msg)
    encoding = FloatEncoding(mantissa_bits, exponent_bits, False, False, torch.ones(()))
    result: Tensor = encoding.quantize_dequantize(tensor)
    return result


def float_gradient(tensor: Tensor, scale: Tensor, gradient: Tensor, dtype: str) -> Tensor:
    """Autograd of the encoding of ``FloatQuantizeDequantize``, given the scale."""
    import torch
    from aimet_torch.quantization.float import FloatEncoding, FloatQuantizeDequantize

    own = FloatQuantizeDequantize(dtype=getattr(torch, dtype)).get_encodings()
    encoding = FloatEncoding(own.mantissa_bits, own.exponent_bits, own.finite, own.unsigned_zero, scale)
    (found,) = torch.autograd.grad(encoding.quantize_dequantize(tensor.requires_grad_()), [tensor], gradient)
    return found


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aimet.float_quantize_dequantize": float_quantize_dequantize,
    "aimet.float_cast": float_cast,
    "aimet.float_gradient": float_gradient,
}
