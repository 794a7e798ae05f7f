"""torchao.quantization.pt2e of 0.18: a copy of the primitives as they were about 0.11."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["FUNCTIONS"]

_MODULE = "torchao.quantization.pt2e._affine_quantization"


def _choose(preserve_zero: bool = True, zero_point_domain: str = "INT", keepdim: bool = False, **given: Any) -> Any:
    import torch
    from torchao.quantization.pt2e import _affine_quantization

    symmetric = given["mapping_type"] != "ASYMMETRIC"
    if keepdim or (zero_point_domain == "INT") != preserve_zero or (symmetric and zero_point_domain == "NONE"):
        msg = f"zero_point_domain={zero_point_domain}, preserve_zero={preserve_zero}, keepdim={keepdim}: not offered"
        raise Unsupported(msg)
    for name in ("target_dtype", "scale_dtype", "zero_point_dtype"):
        if given.get(name) is not None:
            given[name] = getattr(torch, given[name])
    if given["target_dtype"] in [getattr(torch, f"int{bits}") for bits in range(1, 8)]:
        msg = "signed codes below 8 bits are not offered by torchao.quantization.pt2e"
        raise Unsupported(msg)
    given |= {"preserve_zero": preserve_zero, "zero_point_domain": zero_point_domain}
    return _affine_quantization._choose_qparams_affine(**given)  # noqa: SLF001 - it has no other name


def _dequantize(input_dtype: str, output_dtype: str = "float32", **given: Any) -> Any:
    import torch
    from torchao.quantization.pt2e import _affine_quantization

    given |= {"input_dtype": getattr(torch, input_dtype), "output_dtype": getattr(torch, output_dtype)}
    return _affine_quantization.dequantize_affine(**given)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao.choose_qparams_affine": _choose,
    "torchao.quant_primitives.dequantize_affine": _dequantize,
}
