"""compressed-tensors: its helpers, called with the formulas' arguments."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]


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


def round_to_power_2(x: Tensor, elem_mantissa: int = 1) -> Any:
    """``utils.mxfp_utils.round_to_power_2``."""
    from compressed_tensors.quantization.utils.mxfp_utils import round_to_power_2

    return round_to_power_2(x, elem_mantissa)


def generate_mx_scales(x: Tensor, num_bits: int = 4) -> Any:
    """``utils.mxfp_utils.generate_mx_scales``."""
    from compressed_tensors.quantization.utils.mxfp_utils import generate_mx_scales

    return generate_mx_scales(x, num_bits)


def cast_to_fp4(x: Tensor) -> Any:
    """``FP4_E2M1_DATA.cast_to_fp4``."""
    from compressed_tensors.quantization.quant_args import FP4_E2M1_DATA

    return FP4_E2M1_DATA.cast_to_fp4(x)


def quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    dtype: str | None = None,
    global_scale: Tensor | None = None,
) -> Any:
    """``forward.quantize``, per tensor, so that parameters broadcast."""
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle import forward

    args = QuantizationArgs(num_bits=num_bits, type=type, strategy="tensor")
    return forward.quantize(x, scale, zero_point, args, dtype and getattr(torch, dtype), global_scale)


def fake_quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    global_scale: Tensor | None = None,
) -> Any:
    """``forward.fake_quantize``, per tensor, so that parameters broadcast."""
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle import forward

    args = QuantizationArgs(num_bits=num_bits, type=type, strategy="tensor")
    return forward.fake_quantize(x, scale, zero_point, args, global_scale)


def dequantize(
    x_q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None = None,
    dtype: str | None = None,
    global_scale: Tensor | None = None,
) -> Any:
    """``forward.dequantize``, per tensor, so that parameters broadcast."""
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.lifecycle import forward

    args = QuantizationArgs(strategy="tensor")
    return forward.dequantize(x_q, scale, zero_point, args, dtype and getattr(torch, dtype), global_scale)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "compressed_tensors.calculate_range": calculate_range,
    "compressed_tensors.calculate_qparams": calculate_qparams,
    "compressed_tensors.generate_gparam": generate_gparam,
    "compressed_tensors.round_to_power_2": round_to_power_2,
    "compressed_tensors.generate_mx_scales": generate_mx_scales,
    "compressed_tensors.cast_to_fp4": cast_to_fp4,
    "compressed_tensors.forward.quantize": quantize,
    "compressed_tensors.forward.fake_quantize": fake_quantize,
    "compressed_tensors.forward.dequantize": dequantize,
}
