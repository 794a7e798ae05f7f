"""torchao 0.18: quantize, dequantize and fake quantize in the three zero-point domains."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


def _quantize(output_dtype: str, **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    return quant_primitives.quantize_affine(output_dtype=getattr(torch, output_dtype), **given)


def _dequantize(input_dtype: str, output_dtype: str = "float32", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    given |= {"input_dtype": getattr(torch, input_dtype), "output_dtype": getattr(torch, output_dtype)}
    return quant_primitives.dequantize_affine(**given)


def _quantize_float(output_dtype: str, **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    return quant_primitives._quantize_affine_tinygemm(output_dtype=getattr(torch, output_dtype), **given)  # noqa: SLF001 - it has no other name


def _dequantize_float(input_dtype: str, output_dtype: str = "float32", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    given |= {"input_dtype": getattr(torch, input_dtype), "output_dtype": getattr(torch, output_dtype)}
    return quant_primitives._dequantize_affine_tinygemm(**given)  # noqa: SLF001 - as above


def _quantize_none(output_dtype: str, **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    return quant_primitives._quantize_affine_no_zero_point(output_dtype=getattr(torch, output_dtype), **given)  # noqa: SLF001 - as above


def _dequantize_none(input_dtype: str, output_dtype: str = "float32", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    given |= {"input_dtype": getattr(torch, input_dtype), "output_dtype": getattr(torch, output_dtype)}
    return quant_primitives._dequantize_affine_no_zero_point(**given)  # noqa: SLF001 - as above


def _fake_quantize(quant_dtype: str, zero_point_domain: str | None = "INT", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    domain = getattr(quant_primitives.ZeroPointDomain, str(zero_point_domain), None)
    return quant_primitives._fake_quantize_affine(  # noqa: SLF001 - as above
        quant_dtype=getattr(torch, quant_dtype), zero_point_domain=domain, **given
    )


def _fake_quantize_cachemask(quant_dtype: str, zero_point_domain: str | None = "INT", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    domain = getattr(quant_primitives.ZeroPointDomain, str(zero_point_domain), None)
    return quant_primitives._fake_quantize_affine_cachemask(  # noqa: SLF001 - as above
        quant_dtype=getattr(torch, quant_dtype), zero_point_domain=domain, **given
    )


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao.quant_primitives.quantize_affine": _quantize,
    "torchao.quant_primitives.dequantize_affine": _dequantize,
    "torchao.quant_primitives.fake_quantize_affine": _fake_quantize,
    "torchao.quantize_affine_float_domain": _quantize_float,
    "torchao.dequantize_affine_float_domain": _dequantize_float,
    "torchao.quantize_affine_no_zero_point": _quantize_none,
    "torchao.dequantize_affine_no_zero_point": _dequantize_none,
    "torchao.fake_quantize_affine_cachemask": _fake_quantize_cachemask,
}
