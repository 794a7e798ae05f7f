"""torchao 0.18: how it chooses scales and zero points, and its block sizes."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["FUNCTIONS"]


def _choose(preserve_zero: bool = True, zero_point_domain: str = "INT", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    if zero_point_domain == "NONE" or (zero_point_domain == "FLOAT" and preserve_zero):
        msg = f"zero_point_domain={zero_point_domain}, preserve_zero={preserve_zero} is not offered by torchao 0.18"
        raise Unsupported(msg)
    if given["mapping_type"] not in quant_primitives.MappingType.__members__:
        msg = f"mapping_type={given['mapping_type']} is not a member of the enumeration"
        raise Unsupported(msg)
    given["mapping_type"] = quant_primitives.MappingType[given["mapping_type"]]
    for name in ("target_dtype", "scale_dtype", "zero_point_dtype"):
        if given.get(name) is not None:
            given[name] = getattr(torch, given[name])
    if preserve_zero:
        return quant_primitives.choose_qparams_affine(**given)
    if given.pop("keepdim", False):
        msg = "keepdim=True is not offered by torchao without preserve_zero"
        raise Unsupported(msg)
    name = "tinygemm" if zero_point_domain == "FLOAT" else "dont_preserve_zero"
    function = getattr(quant_primitives, f"_choose_qparams_affine_{name}")
    return function(**{"quant_min": None, "quant_max": None, **given})


def _choose_with_min_max(preserve_zero: bool = True, zero_point_domain: str = "INT", **given: Any) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    if zero_point_domain != "INT" or not preserve_zero:
        msg = f"zero_point_domain={zero_point_domain}, preserve_zero={preserve_zero} is not offered by torchao 0.18"
        raise Unsupported(msg)
    given["mapping_type"] = quant_primitives.MappingType[given["mapping_type"]]
    for name in ("target_dtype", "scale_dtype", "zero_point_dtype"):
        if given.get(name) is not None:
            given[name] = getattr(torch, given[name])
    return quant_primitives.choose_qparams_affine_with_min_max(**given)


def _reduction(block_size: tuple[int, ...], input_size: tuple[int, ...]) -> Any:
    from torchao.quantization import quant_primitives

    shape, dims = quant_primitives._get_reduction_params(block_size, input_size)  # noqa: SLF001 - it has no other name
    return tuple(shape), tuple(dims)


def _block_size(input_shape: tuple[int, ...], granularity: str, **given: Any) -> Any:
    from torchao.quantization import granularity as granularities
    from torchao.quantization.utils import get_block_size

    if not hasattr(granularities, granularity):
        msg = f"granularity={granularity} is not a class of torchao's"
        raise Unsupported(msg)
    return get_block_size(input_shape, getattr(granularities, granularity)(**given))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "torchao.choose_qparams_affine": _choose,
    "torchao.choose_qparams_affine_with_min_max": _choose_with_min_max,
    "torchao.get_reduction_params": _reduction,
    "torchao.get_block_size": _block_size,
}
