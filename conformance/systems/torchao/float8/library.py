"""torchao: the float8 primitives of ``quant_primitives``."""

from collections.abc import Callable, Sequence
from typing import Any

from halfeven.conformance.systems.torchao.by_release import absent, by_release

__all__ = ["ANSWERS"]


def _choose_scale_float8(
    tensor: Any,
    block_size: Sequence[int],
    float8_dtype: str = "float8_e4m3fn",
    scale_dtype: str = "float32",
    hp_value_lb: float | None = None,
    hp_value_ub: float | None = None,
) -> Any:
    import torch
    from torchao.quantization.quant_primitives import _choose_scale_float8

    dtypes = getattr(torch, float8_dtype), getattr(torch, scale_dtype)
    return _choose_scale_float8(tensor, list(block_size), *dtypes, hp_value_lb, hp_value_ub)


def _quantize_affine_float8(tensor: Any, scale: Any, float8_dtype: str = "float8_e4m3fn") -> Any:
    import torch
    from torchao.quantization.quant_primitives import _quantize_affine_float8

    return _quantize_affine_float8(tensor, scale, getattr(torch, float8_dtype))


def _dequantize_affine_float8(tensor: Any, scale: Any, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import _dequantize_affine_float8

    return _dequantize_affine_float8(tensor, scale, getattr(torch, output_dtype))


def _quantize_affine_float8_0_11(tensor: Any, scale: Any, float8_dtype: str = "float8_e4m3fn") -> Any:
    import torch
    from torchao.quantization.quant_primitives import quantize_affine_float8

    return quantize_affine_float8(tensor, scale, getattr(torch, float8_dtype))


def _dequantize_affine_float8_0_11(tensor: Any, scale: Any, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import dequantize_affine_float8

    return dequantize_affine_float8(tensor, scale, getattr(torch, output_dtype))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/choose_scale_float8": _choose_scale_float8,
            "torchao/quantize_affine_float8": _quantize_affine_float8,
            "torchao/dequantize_affine_float8": _dequantize_affine_float8,
        },
        v0_11={
            "torchao/choose_scale_float8": absent,
            "torchao/quantize_affine_float8": _quantize_affine_float8_0_11,
            "torchao/dequantize_affine_float8": _dequantize_affine_float8_0_11,
        },
    ),
}
