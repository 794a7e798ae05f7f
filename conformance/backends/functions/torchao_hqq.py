"""torchao 0.18: half-quadratic quantization, on the CPU."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


def _affine(tensor: Any, compute_dtype: str = "float16", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    function = quant_primitives._choose_qparams_and_quantize_affine_hqq  # noqa: SLF001 - it has no other name
    dtype = getattr(torch, compute_dtype)
    return function(tensor, **given, optimize=False, compute_dtype=dtype, device="cpu")


def _scale_only(**given: Any) -> Any:
    from torchao.quantization import quant_primitives

    return quant_primitives._choose_qparams_and_quantize_scale_only_hqq(**given)  # noqa: SLF001 - as above


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao.choose_qparams_and_quantize_affine_hqq": _affine,
    "torchao.choose_qparams_and_quantize_scale_only_hqq": _scale_only,
}
