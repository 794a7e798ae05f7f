"""AffineQuantizedTensor's integer constructors, put together from the derivations of their parts."""

from typing import Any

from halfeven.reference.derivations.registry import DERIVATIONS, derives
from halfeven.reference.derivations.soft import Array
from halfeven.reference.derivations.torchao_blocks import bounds

__all__: list[str] = []

_SUFFIX = {"INT": "quant_primitives.{}_affine", "FLOAT": "{}_affine_float_domain", "NONE": "{}_affine_no_zero_point"}


def _held(given: dict[str, Any], grid: tuple[int | None, int | None], version: str) -> dict[str, Array | None]:
    x, domain, target = given["input_float"], given.get("zero_point_domain", "INT"), given["target_dtype"]
    if domain not in _SUFFIX:
        raise ValueError(domain)
    common = {name: given[name] for name in ("block_size", "scale", "zero_point")}
    common |= {"quant_min": grid[0], "quant_max": grid[1]}
    quantize = DERIVATIONS["torchao." + _SUFFIX[domain].format("quantize") + version]
    q = quantize(input=x, output_dtype=target, **common)
    dequantize = DERIVATIONS["torchao." + _SUFFIX[domain].format("dequantize")]
    real = dequantize(input=q, input_dtype=q.dtype.name, output_dtype=x.dtype.name, **common)
    return {"int_data": q, "scale": given["scale"], "zero_point": given["zero_point"], "dequantized": real}


@derives("torchao.from_hp_to_intx_static")
def _static(**given: Any) -> dict[str, Array | None]:
    if given.get("zero_point_domain", "INT") not in _SUFFIX:
        raise ValueError(given["zero_point_domain"])
    return _held(given, bounds(given["target_dtype"], given.get("quant_min"), given.get("quant_max")), "")


@derives("torchao.from_hp_to_intx_static@0.17")
def _static_0_17(**given: Any) -> dict[str, Array | None]:
    return _held(given, (given.get("quant_min"), given.get("quant_max")), "@0.18")


@derives("torchao.from_hp_to_intx")
def _dynamic(**given: Any) -> dict[str, Array | None]:
    own = {"input_float": "input"}
    scale, zero_point = DERIVATIONS["torchao.choose_qparams_affine"](**{own.get(k, k): v for k, v in given.items()})
    return _static(**given, scale=scale, zero_point=zero_point)
