"""AIMET's exported encodings."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["FUNCTIONS"]


def to_qnn_encoding_dict(
    encoding_version: str,
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    input_shape: tuple[int, ...] | None = None,
    **given: Any,
) -> dict[str, Any] | list[dict[str, Any]]:
    """``AffineEncoding.to_qnn_encoding_dict``, once the input's shape is hinted."""
    from aimet_torch.quantization import affine

    encoding = affine.AffineEncoding(scale, offset, qmin=qmin, qmax=qmax, **given)
    hinted = encoding._hint_input_shape(input_shape)  # noqa: SLF001
    found: dict[str, Any] | list[dict[str, Any]] = hinted.to_qnn_encoding_dict(encoding_version)
    return found


def lpbq_encoding_dict(
    encoding_version: str,
    per_channel_scale: Tensor,
    per_block_int_scale: Tensor,
    input_shape: tuple[int, ...] | None = None,
    **given: Any,
) -> dict[str, Any] | list[dict[str, Any]]:
    """``GroupedBlockEncoding.to_qnn_encoding_dict``, once the input's shape is hinted."""
    import torch
    from aimet_torch.quantization import affine

    if not ((per_channel_scale > 0).all() and per_channel_scale.isfinite().all() and (per_block_int_scale >= 1).all()):
        msg = "the library finds the integers anew, by quotients that such scales do not have"
        raise Unsupported(msg)
    scale = per_channel_scale
    for axis, (blocks, groups) in enumerate(zip(per_block_int_scale.shape, per_channel_scale.shape, strict=True)):
        scale = scale.repeat_interleave(blocks // groups, axis)
    scale = per_block_int_scale * scale
    encoding = affine.GroupedBlockEncoding(
        scale, torch.zeros_like(scale), signed=True, symmetry=True, per_channel_scale=per_channel_scale, **given
    )
    hinted = encoding._hint_input_shape(input_shape)  # noqa: SLF001
    found: dict[str, Any] | list[dict[str, Any]] = hinted.to_qnn_encoding_dict(encoding_version)
    return found


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "aimet.to_qnn_encoding_dict": to_qnn_encoding_dict,
    "aimet.lpbq_encoding_dict": lpbq_encoding_dict,
}
