"""torchao before 0.18: AffineQuantizedTensor, and up to 0.11 the primitives by the names that they had."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.backends.common import installed
from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["FUNCTIONS"]


def _choose(zero_point_domain: str = "INT", keepdim: bool = False, **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    if keepdim or given["mapping_type"] not in quant_primitives.MappingType.__members__:
        msg = f"keepdim={keepdim}, mapping_type={given['mapping_type']} is not offered by torchao 0.11"
        raise Unsupported(msg)
    given["mapping_type"] = quant_primitives.MappingType[given["mapping_type"]]
    for name in ("target_dtype", "scale_dtype", "zero_point_dtype"):
        if given.get(name) is not None:
            given[name] = getattr(torch, given[name])
    domain = quant_primitives.ZeroPointDomain[zero_point_domain]
    return quant_primitives.choose_qparams_affine(**given, zero_point_domain=domain)


def _quantize_float(output_dtype: str, **given: Any) -> Any:
    import torch
    from torchao.quantization.quant_primitives import ZeroPointDomain, quantize_affine

    return quantize_affine(output_dtype=getattr(torch, output_dtype), zero_point_domain=ZeroPointDomain.FLOAT, **given)


def _quantize_none(output_dtype: str, **given: Any) -> Any:
    import torch
    from torchao.quantization.quant_primitives import ZeroPointDomain, quantize_affine

    return quantize_affine(output_dtype=getattr(torch, output_dtype), zero_point_domain=ZeroPointDomain.NONE, **given)


def _dequantize_float(input_dtype: str, output_dtype: str = "float32", **given: Any) -> Any:
    import torch
    from torchao.quantization.quant_primitives import ZeroPointDomain, dequantize_affine

    given |= {"input_dtype": getattr(torch, input_dtype), "output_dtype": getattr(torch, output_dtype)}
    return dequantize_affine(zero_point_domain=ZeroPointDomain.FLOAT, **given)


def _dequantize_none(input_dtype: str, output_dtype: str = "float32", **given: Any) -> Any:
    import torch
    from torchao.quantization.quant_primitives import ZeroPointDomain, dequantize_affine

    given |= {"input_dtype": getattr(torch, input_dtype), "output_dtype": getattr(torch, output_dtype)}
    return dequantize_affine(zero_point_domain=ZeroPointDomain.NONE, **given)


def _fake_quantize(quant_dtype: str, zero_point_domain: str | None = "INT", **given: Any) -> Any:
    import torch
    from torchao.quantization.quant_primitives import ZeroPointDomain, fake_quantize_affine

    domain = getattr(ZeroPointDomain, str(zero_point_domain), None)
    return fake_quantize_affine(quant_dtype=getattr(torch, quant_dtype), zero_point_domain=domain, **given)


def _fake_quantize_cachemask(quant_dtype: str, zero_point_domain: str | None = "INT", **given: Any) -> Any:
    import torch
    from torchao.quantization.quant_primitives import ZeroPointDomain, fake_quantize_affine_cachemask

    domain = getattr(ZeroPointDomain, str(zero_point_domain), None)
    return fake_quantize_affine_cachemask(quant_dtype=getattr(torch, quant_dtype), zero_point_domain=domain, **given)


def _gradients(
    block_size: tuple[int, ...], scale: Any, zero_point: Any, grad: Any, quant_dtype: str, **given: Any
) -> Any:
    import torch
    from torchao.quantization.quant_primitives import ZeroPointDomain, fake_quantize_affine

    x = given["input"]
    leaves = [x]
    for parameter in (scale, zero_point):
        if parameter is not None:
            full = parameter.reshape([n // b for n, b in zip(x.shape, block_size, strict=True)])
            for dim, size in enumerate(block_size):
                full = full.repeat_interleave(size, dim)
            leaves.append(full)
    x, s, *z = (p.clone().requires_grad_() for p in leaves)
    domain, dtype = ZeroPointDomain.INT if z else ZeroPointDomain.NONE, getattr(torch, quant_dtype)
    low, high = given.get("quant_min"), given.get("quant_max")
    out = fake_quantize_affine(x, (1,) * x.dim(), s, z[0] if z else None, dtype, low, high, domain)
    found = torch.autograd.grad(out, [x, s, *z], grad)
    return found if z else (*found, None)


def _choose_floatx(tensor: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import choose_qparams_affine_floatx

    return choose_qparams_affine_floatx(tensor, ebits, mbits)


def _quantize_floatx(tensor: Any, scale: Any, ebits: int, mbits: int) -> Any:
    from torchao.quantization.quant_primitives import quantize_affine_floatx

    return quantize_affine_floatx(tensor, scale, ebits, mbits)


def _dequantize_floatx(tensor: Any, scale: Any, ebits: int, mbits: int, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import dequantize_affine_floatx

    return dequantize_affine_floatx(tensor, scale, ebits, mbits, getattr(torch, output_dtype))


def _quantize_float8(tensor: Any, scale: Any, float8_dtype: str = "float8_e4m3fn") -> Any:
    import torch
    from torchao.quantization.quant_primitives import quantize_affine_float8

    return quantize_affine_float8(tensor, scale, getattr(torch, float8_dtype))


def _dequantize_float8(tensor: Any, scale: Any, output_dtype: str = "float32") -> Any:
    import torch
    from torchao.quantization.quant_primitives import dequantize_affine_float8

    return dequantize_affine_float8(tensor, scale, getattr(torch, output_dtype))


def _hqq(tensor: Any, compute_dtype: str = "float16", **given: Any) -> Any:
    import torch
    from torchao.quantization.quant_primitives import choose_qparams_and_quantize_affine_hqq

    dtype = getattr(torch, compute_dtype)
    return choose_qparams_and_quantize_affine_hqq(tensor, **given, optimize=False, compute_dtype=dtype, device="cpu")


def _from_hp_to_intx(
    mapping_type: str, target_dtype: str, zero_point_domain: str = "INT", **given: Any
) -> dict[str, Any]:
    import torch
    from torchao.dtypes import AffineQuantizedTensor
    from torchao.quantization.quant_primitives import MappingType, ZeroPointDomain

    given |= {"target_dtype": getattr(torch, target_dtype), "mapping_type": MappingType[mapping_type]}
    for name in ("scale_dtype", "zero_point_dtype"):
        if given.get(name) is not None:
            given[name] = getattr(torch, given[name])
    held = AffineQuantizedTensor.from_hp_to_intx(**given, zero_point_domain=ZeroPointDomain[zero_point_domain])
    int_data, scale, zero_point = held.tensor_impl.get_plain()
    return {"int_data": int_data, "scale": scale, "zero_point": zero_point, "dequantized": held.dequantize()}


def _from_hp_to_intx_static(target_dtype: str, zero_point_domain: str | None = "INT", **given: Any) -> dict[str, Any]:
    import torch
    from torchao.dtypes import AffineQuantizedTensor
    from torchao.quantization.quant_primitives import ZeroPointDomain

    domain, dtype = getattr(ZeroPointDomain, str(zero_point_domain), None), getattr(torch, target_dtype)
    held = AffineQuantizedTensor.from_hp_to_intx_static(**given, target_dtype=dtype, zero_point_domain=domain)
    int_data, scale, zero_point = held.tensor_impl.get_plain()
    return {"int_data": int_data, "scale": scale, "zero_point": zero_point, "dequantized": held.dequantize()}


def _from_hp_to_floatx(target_dtype: str, scale_dtype: str | None = None, **given: Any) -> dict[str, Any]:
    import torch
    from torchao import dtypes

    layout = dtypes.Float8Layout(mm_config=None) if hasattr(dtypes, "Float8Layout") else dtypes.utils.PlainLayout()
    given |= {"target_dtype": getattr(torch, target_dtype), "scale_dtype": scale_dtype and getattr(torch, scale_dtype)}
    held = dtypes.AffineQuantizedTensor.from_hp_to_floatx(**given, _layout=layout)
    data, scale, *_ = held.tensor_impl.get_plain()
    return {"data": data, "scale": scale}


def _from_hp_to_floatx_static(target_dtype: str, **given: Any) -> dict[str, Any]:
    import torch
    from torchao import dtypes

    layout = dtypes.Float8Layout(mm_config=None) if hasattr(dtypes, "Float8Layout") else dtypes.utils.PlainLayout()
    given["target_dtype"] = getattr(torch, target_dtype)
    held = dtypes.AffineQuantizedTensor.from_hp_to_floatx_static(**given, _layout=layout)
    data, scale, *_ = held.tensor_impl.get_plain()
    return {"data": data, "scale": scale}


def _from_hp_to_fpx(input_float: Any, ebits: int, mbits: int) -> dict[str, Any]:
    import importlib

    from torchao.dtypes import AffineQuantizedTensor

    try:
        layouts = importlib.import_module("torchao.dtypes.floatx")
        layout = layouts.FloatxTensorCoreLayout(ebits, mbits)
    except (ImportError, AttributeError):
        layouts = importlib.import_module("torchao.prototype.dtypes.floatx")
        layout = layouts.FloatxTensorCoreLayout(ebits, mbits)
    codes, scale, *_ = AffineQuantizedTensor.from_hp_to_fpx(input_float, layout).tensor_impl.get_plain()
    return {"codes": codes, "scale": scale}


def _absent(**_given: Any) -> Any:
    msg = "torchao 0.11 has no such function, or not with these arguments"
    raise Unsupported(msg)


_TENSOR: dict[str, Callable[..., Any]] = {
    "torchao.from_hp_to_intx": _from_hp_to_intx,
    "torchao.from_hp_to_intx_static": _from_hp_to_intx_static,
    "torchao.from_hp_to_floatx": _from_hp_to_floatx,
    "torchao.from_hp_to_floatx_static": _from_hp_to_floatx_static,
}
_FPX: dict[str, Callable[..., Any]] = {"torchao.from_hp_to_fpx": _from_hp_to_fpx}
_NAMED_OTHERWISE: dict[str, Callable[..., Any]] = {
    "torchao.choose_qparams_affine": _choose,
    "torchao.quant_primitives.fake_quantize_affine": _fake_quantize,
    "torchao.fake_quantize_affine_cachemask": _fake_quantize_cachemask,
    "torchao.fake_quantize_affine_gradients": _gradients,
    "torchao.quantize_affine_float_domain": _quantize_float,
    "torchao.dequantize_affine_float_domain": _dequantize_float,
    "torchao.quantize_affine_no_zero_point": _quantize_none,
    "torchao.dequantize_affine_no_zero_point": _dequantize_none,
    "torchao.choose_qparams_affine_floatx": _choose_floatx,
    "torchao.quantize_affine_floatx": _quantize_floatx,
    "torchao.dequantize_affine_floatx": _dequantize_floatx,
    "torchao.quantize_affine_float8": _quantize_float8,
    "torchao.dequantize_affine_float8": _dequantize_float8,
    "torchao.choose_qparams_and_quantize_affine_hqq": _hqq,
    **dict.fromkeys(
        (
            "torchao.choose_scale_float8",
            "torchao.get_block_size",
            "torchao.choose_qparams_and_quantize_scale_only_hqq",
            "torchao.hp_tensor_and_scale_to_float8",
            "torchao.to_original_precision",
            "torchao.to_mx",
            "torchao.mx_dequantize",
            "torchao.pack_uint4",
            "torchao.unpack_uint4",
            "torchao.from_blocked",
            "torchao.per_tensor_amax_to_scale",
            "torchao.nvfp4_quantize",
            "torchao.nvfp4_dequantize",
        ),
        _absent,
    ),
}


def _offered(version: str) -> dict[str, Callable[..., Any]]:
    """What a release has, or names, otherwise than 0.18."""
    minor = [int(part) for part in version.split(".")[:2]]
    found: dict[str, Callable[..., Any]] = {}
    for last, functions in (([0, 17], _TENSOR), ([0, 15], _FPX), ([0, 11], _NAMED_OTHERWISE)):
        found |= functions if minor <= last else {}
    return found


FUNCTIONS: dict[str, Callable[..., Any]] = _offered(installed("torchao") or "0.18")
