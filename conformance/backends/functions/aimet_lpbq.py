"""AIMET's grouped block quantizer."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]


def lpbq_scale(
    min: Tensor,  # noqa: A002 - the document's names
    max: Tensor,  # noqa: A002
    bitwidth: int,
    decompressed_bw: int,
    block_grouping: tuple[int, ...] | None = None,
) -> dict[str, Tensor]:
    """The encoding of ``GroupedBlockQuantizeDequantize``."""
    import torch
    from aimet_torch.quantization import affine

    shape = tuple(min.shape)
    quantizer = affine.GroupedBlockQuantizeDequantize(
        shape, bitwidth, True, decompressed_bw, block_size=(-1,) * len(shape), block_grouping=block_grouping
    )
    quantizer.min, quantizer.max = torch.nn.Parameter(min), torch.nn.Parameter(max)
    encoding = quantizer.get_encodings()
    names = ("scale", "per_channel_scale", "per_block_int_scale")
    return {name: getattr(encoding, name).detach() for name in names}


def lpbq_scaled(
    min: Tensor,  # noqa: A002
    max: Tensor,  # noqa: A002
    bitwidth: int,
    decompressed_bw: int,
    factor: float,
    block_grouping: tuple[int, ...] | None = None,
) -> dict[str, Tensor]:
    """The encoding of what ``GroupedBlockQuantizeDequantize`` returns, times a number."""
    import torch
    from aimet_torch.quantization import affine

    shape = tuple(min.shape)
    quantizer = affine.GroupedBlockQuantizeDequantize(
        shape, bitwidth, True, decompressed_bw, block_size=(-1,) * len(shape), block_grouping=block_grouping
    )
    quantizer.min, quantizer.max = torch.nn.Parameter(min), torch.nn.Parameter(max)
    encoding = (quantizer(torch.zeros(shape)) * factor).encoding
    names = ("scale", "per_channel_scale", "per_block_int_scale")
    return {name: getattr(encoding, name).detach() for name in names}


FUNCTIONS: dict[str, Callable[..., Any]] = {"aimet.lpbq_scale": lpbq_scale, "aimet.lpbq_scaled": lpbq_scaled}
