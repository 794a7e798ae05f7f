"""The three functions with the ends of the grid by position, as AIMET's backends have them."""

from collections.abc import Sequence

from torch import Tensor

from halfeven.optimized.aimet.affine import functional

__all__ = ["dequantize", "quantize", "quantize_dequantize"]


def quantize(
    input: Tensor,  # noqa: A002 - the name that backends of AIMET have
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    block_size: Sequence[int] | None = None,
) -> Tensor:
    """``affine.quantize`` of the grid ``qmin`` to ``qmax``, errors too."""
    return functional.quantize(input, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size)


def dequantize(
    input: Tensor,  # noqa: A002
    scale: Tensor,
    offset: Tensor,
    block_size: Sequence[int] | None = None,
) -> Tensor:
    """``affine.dequantize``, errors too."""
    return functional.dequantize(input, scale, offset, block_size)


def quantize_dequantize(
    input: Tensor,  # noqa: A002
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    block_size: Sequence[int] | None = None,
    zero_point_shift: float = 0.0,
) -> Tensor:
    """``affine.quantize_dequantize`` of the grid ``qmin`` to ``qmax``, errors too."""
    return functional.quantize_dequantize(
        input, scale, offset, qmin=qmin, qmax=qmax, block_size=block_size, zero_point_shift=zero_point_shift
    )
