"""The gradients of the operators in torch operations, which can be differentiated in turn."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.arguments import Blocks
from halfeven.optimized.kernels.chunked.arguments import of_codes, of_reals
from halfeven.optimized.kernels.chunked.parts import expand, held, narrow, sum_to

__all__ = ["BACKWARD"]


def _quantize_backward(
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    offset: bool,
    *needs: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    g, u, s, o = _wide(grad, x, scale, zero_point, qmin, qmax, block_size, offset)
    u = u / s
    code = u.round() - o
    m = (code >= qmin) & (code <= qmax)
    dx = g * m / s
    return _collected("x", x, scale, zero_point, block_size, offset, needs, dx, -dx * u, -(g * m))


def _dequantize_backward(
    grad: Tensor,
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    compute: torch.dtype | None,
    offset: bool,
    *needs: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    arguments.check_gradient(grad, "q", q, grad.dtype)
    parameters = of_codes(q, scale, zero_point, block_size, compute, offset, result=grad.dtype)
    s, o = (expand(p, q.shape, block_size) for p in parameters)
    g, c = grad.to(s.dtype), q.to(s.dtype)
    gs = g * s
    return _collected("q", q, scale, zero_point, block_size, offset, needs, gs, g * (c + o), gs)


def _quantize_dequantize_backward(
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    shift: float,
    offset: bool,
    *needs: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    g, u, s, o = _wide(grad, x, scale, zero_point, qmin, qmax, block_size, offset)
    u, shifted, shift = u / s, shift != 0, held(shift, s.dtype)
    if shifted:
        u = u - shift
    r = u.round()
    m = (r - o >= qmin) & (r - o <= qmax)
    clipped = torch.minimum(torch.maximum(r, o + qmin), o + qmax)
    if shifted:
        clipped = clipped + shift
    none = g.new_zeros(())
    dx = torch.where(m, g, none)
    ds, do = g * torch.where(m, r - u, clipped), torch.where(m, none, g * s)
    return _collected("x", x, scale, zero_point, block_size, offset, needs, dx, ds, do)


def _wide(
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    offset: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradient, input, scale and offset in the dtype of the arithmetic, the parameters broadcasting to the input."""
    parameters = of_reals(x, scale, zero_point, qmin, qmax, block_size, offset, result=x.dtype)
    arguments.check_gradient(grad, "x", x, x.dtype)
    s, o = (expand(p, x.shape, block_size) for p in parameters)
    return grad.to(s.dtype), x.to(s.dtype), s, o


def _collected(
    name: str,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    offset: bool,
    needs: Sequence[bool],
    dx: Tensor,
    ds: Tensor,
    do: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each the gradient wanted, summed over the elements of each parameter; else an empty tensor."""
    for of, tensor, needed in zip((name, "scale", "zero_point"), (x, scale, zero_point), needs, strict=True):
        arguments.check_differentiable(of, tensor, needed)
    dz = do if offset else -do
    return (
        narrow(dx, x.dtype) if needs[0] else x.new_empty((0,)),
        sum_to(ds, scale, block_size) if needs[1] else x.new_empty((0,)),
        sum_to(dz, zero_point, block_size) if needs[2] and zero_point is not None else x.new_empty((0,)),
    )


BACKWARD: dict[str, Any] = {
    "quantize_backward": _quantize_backward,
    "dequantize_backward": _dequantize_backward,
    "quantize_dequantize_backward": _quantize_dequantize_backward,
}
