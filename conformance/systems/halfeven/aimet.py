"""What this project's drop-in is asked otherwise than the library: private functions, and calls that it refuses."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from halfeven.conformance.backends.protocol import Unsupported

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]


def min_scale(num_steps: int) -> float:
    """The function under the quantizers' scales."""
    from halfeven.optimized.aimet.affine.range import min_scale

    return min_scale(num_steps)


def _gradient(
    function: str, tensor: Tensor, scale: Tensor, offset: Tensor, gradient: Tensor, **given: Any
) -> tuple[Tensor, ...]:
    """Of a function of ``affine``, by the tensor, the scale and the offset."""
    import torch

    from halfeven.optimized.aimet import affine

    leaves = [tensor.requires_grad_(), scale.requires_grad_(), offset.requires_grad_()]
    return torch.autograd.grad(getattr(affine, function)(*leaves, **given), leaves, gradient)


def lpbq_encoding_dict(
    encoding_version: str,
    per_channel_scale: Tensor,
    per_block_int_scale: Tensor,
    input_shape: Any = None,
    **given: Any,
) -> dict[str, Any] | list[dict[str, Any]]:
    """``GroupedBlockEncoding.to_qnn_encoding_dict`` of any scales."""
    import torch

    from halfeven.optimized.aimet import affine

    scale = per_channel_scale
    for axis, (blocks, groups) in enumerate(zip(per_block_int_scale.shape, per_channel_scale.shape, strict=True)):
        scale = scale.repeat_interleave(blocks // groups, axis)
    scale = per_block_int_scale * scale
    encoding = affine.GroupedBlockEncoding(
        scale, torch.zeros_like(scale), signed=True, symmetry=True, per_channel_scale=per_channel_scale, **given
    )
    return encoding._hint_input_shape(input_shape).to_qnn_encoding_dict(encoding_version)  # noqa: SLF001


def float_scale(maxval: Tensor, dtype: str | None = None, **bits: Any) -> Tensor:
    """``FloatQuantizeDequantize.get_scale`` of its largest input."""
    import torch

    from halfeven.optimized.aimet.float import FloatQuantizeDequantize

    named = getattr(torch, dtype) if dtype else None
    quantizer = FloatQuantizeDequantize(**bits, dtype=named, shape=tuple(maxval.shape))
    quantizer.maxval.copy_(maxval)
    found: Tensor = quantizer.get_scale()
    return found


def float_quantize_dequantize(
    tensor: Tensor, scale: Tensor, block_size: tuple[int, ...] | None = None, dtype: str | None = None, **bits: Any
) -> Tensor:
    """The encoding of ``FloatQuantizeDequantize``, given the scale, of any widths."""
    import torch

    from halfeven.optimized.aimet.float import FloatEncoding, FloatQuantizeDequantize

    own = FloatQuantizeDequantize(**bits, dtype=getattr(torch, dtype) if dtype else None).get_encodings()
    encoding = FloatEncoding(
        own.mantissa_bits, own.exponent_bits, own.finite, own.unsigned_zero, scale, block_size=block_size
    )
    return encoding.quantize_dequantize(tensor)


def float_cast(tensor: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """``FloatEncoding`` of a scale of 1, where the format has no subnormal number."""
    import torch

    from halfeven.optimized.aimet.float import FloatEncoding

    encoding = FloatEncoding(mantissa_bits, exponent_bits, False, False, torch.ones(()))
    if ((tensor != 0) & (tensor.abs() < 2.0 ** (2 - 2 ** (exponent_bits - 1)))).any():
        msg = "numbers below the format's least normal one: the equation gives them bits that the IEEE format lacks"
        raise Unsupported(msg)
    return encoding.quantize_dequantize(tensor)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "halfeven.aimet": {
        "aimet/min_scale": min_scale,
        "aimet/quantize_gradient": partial(_gradient, "quantize"),
        "aimet/quantize_dequantize_gradient": partial(_gradient, "quantize_dequantize"),
        "aimet/dequantize_gradient": partial(_gradient, "dequantize"),
        "aimet/lpbq_encoding_dict": lpbq_encoding_dict,
        "aimet/float_scale": float_scale,
        "aimet/float_quantize_dequantize": float_quantize_dequantize,
        "aimet/float_cast": float_cast,
    },
}
