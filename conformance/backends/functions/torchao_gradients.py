"""torchao 0.18: gradients of fake quantize, each element with a scale and a zero point of its own."""

from collections.abc import Callable
from typing import Any

__all__ = ["FUNCTIONS"]


def _gradients(
    block_size: tuple[int, ...], scale: Any, zero_point: Any, grad: Any, quant_dtype: str, **given: Any
) -> Any:
    import torch
    from torchao.quantization import quant_primitives

    x = given["input"]
    leaves = [x]
    for parameter in (scale, zero_point):
        if parameter is not None:
            full = parameter.reshape([n // b for n, b in zip(x.shape, block_size, strict=True)])
            for dim, size in enumerate(block_size):
                full = full.repeat_interleave(size, dim)
            leaves.append(full)
    x, s, *z = (p.clone().requires_grad_() for p in leaves)
    domain = quant_primitives.ZeroPointDomain.INT if z else quant_primitives.ZeroPointDomain.NONE
    dtype, ones = getattr(torch, quant_dtype), (1,) * x.dim()
    low, high = given.get("quant_min"), given.get("quant_max")
    out = quant_primitives._fake_quantize_affine(x, ones, s, z[0] if z else None, dtype, low, high, domain)  # noqa: SLF001 - it has no other name
    found = torch.autograd.grad(out, [x, s, *z], grad)
    return found if z else (*found, None)


FUNCTIONS: dict[str, Callable[..., Any]] = {"torchao.fake_quantize_affine_gradients": _gradients}
