"""compressed-tensors: its helpers, called with the formulas' arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


__all__ = ["ANSWERS"]


def calculate_range(type: str, num_bits: int) -> Any:  # noqa: A002 - the document's own word
    """``utils.helpers.calculate_range``."""
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.utils import calculate_range

    return calculate_range(QuantizationArgs(type=type, num_bits=num_bits), "cpu")


def calculate_qparams(
    min_vals: Tensor,
    max_vals: Tensor,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    symmetric: bool = True,
    group_size: int | None = None,
    scale_dtype: str | None = None,
    global_scale: Tensor | None = None,
) -> Any:
    """``utils.helpers.calculate_qparams``."""
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.utils import calculate_qparams

    args = QuantizationArgs(
        num_bits=num_bits,
        type=type,
        symmetric=symmetric,
        group_size=group_size,
        scale_dtype=scale_dtype and getattr(torch, scale_dtype),
    )
    return calculate_qparams(min_vals, max_vals, args, global_scale=global_scale)


def generate_gparam(updated_min_val: Tensor, updated_max_val: Tensor) -> Any:
    """``utils.helpers.generate_gparam``."""
    from compressed_tensors.quantization.utils import generate_gparam

    return generate_gparam(updated_min_val, updated_max_val)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "compressed-tensors": {
        "compressed-tensors/calculate_range": calculate_range,
        "compressed-tensors/calculate_qparams": calculate_qparams,
        "compressed-tensors/generate_gparam": generate_gparam,
    },
}
