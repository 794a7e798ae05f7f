"""torchao: floatx primitives of ``custom_fp_utils`` and ``quant_primitives``."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


def _f32_to_floatx_unpacked(x: Any, ebits: int, mbits: int) -> Any:
    from torchao.prototype.custom_fp_utils import _f32_to_floatx_unpacked

    return _f32_to_floatx_unpacked(x, ebits, mbits)


def _floatx_unpacked_to_f32(x: Any, ebits: int, mbits: int) -> Any:
    from torchao.prototype.custom_fp_utils import _floatx_unpacked_to_f32

    return _floatx_unpacked_to_f32(x, ebits, mbits)


def _choose_qparams_affine_floatx(tensor: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import _choose_qparams_affine_floatx

    return _choose_qparams_affine_floatx(tensor, ebits, mbits)


def _quantize_affine_floatx(tensor: Any, scale: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import _quantize_affine_floatx

    return _quantize_affine_floatx(tensor, scale, ebits, mbits)


def _dequantize_affine_floatx(tensor: Any, scale: Any, ebits: int, mbits: int, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import _dequantize_affine_floatx

    return _dequantize_affine_floatx(tensor, scale, ebits, mbits, getattr(torch, output_dtype))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao.f32_to_floatx_unpacked": _f32_to_floatx_unpacked,
    "torchao.floatx_unpacked_to_f32": _floatx_unpacked_to_f32,
    "torchao.choose_qparams_affine_floatx": _choose_qparams_affine_floatx,
    "torchao.quantize_affine_floatx": _quantize_affine_floatx,
    "torchao.dequantize_affine_floatx": _dequantize_affine_floatx,
}
