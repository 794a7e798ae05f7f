"""torchao: NVFP4 of ``torchao.prototype.mx_formats``."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


def _per_tensor_amax_to_scale(amax: Any) -> Any:
    from torchao.prototype.mx_formats.nvfp4_tensor import per_tensor_amax_to_scale

    return per_tensor_amax_to_scale(amax)


def _nvfp4_quantize(data_hp: Any, block_size: int = 16, per_tensor_scale: Any = None) -> Any:
    from torchao.prototype.mx_formats.nvfp4_tensor import nvfp4_quantize

    return nvfp4_quantize(data_hp, block_size, per_tensor_scale)


def _nvfp4_dequantize(
    qdata: Any, scale: Any, block_size: int = 16, per_tensor_scale: Any = None, output_dtype: str = "float32"
) -> Any:
    import torch
    from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor

    dtype = getattr(torch, output_dtype)
    codes = scale.view(torch.float8_e4m3fn)
    return NVFP4Tensor(qdata, codes, block_size, dtype, per_tensor_scale).dequantize(dtype)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao.per_tensor_amax_to_scale": _per_tensor_amax_to_scale,
    "torchao.nvfp4_quantize": _nvfp4_quantize,
    "torchao.nvfp4_dequantize": _nvfp4_dequantize,
}
