"""The forward operators in torch operations, on the CPU in pieces that stay in the cache. See ``operators``."""

from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.arguments import Blocks, dtypes
from halfeven.optimized.kernels.chunked.arguments import of_codes, of_reals
from halfeven.optimized.kernels.chunked.parts import held, narrow, pieces, room_for, side_by_side

__all__ = ["FORWARD"]

_PIECE = 2**18  # elements that stay in the cache


def _most(x: Tensor) -> int:
    """Elements of a piece: a GPU is given all of them, since each piece would cost it as many launches."""
    return _PIECE if x.is_cpu else x.numel()


def _quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    dtype: torch.dtype | None,
    offset: bool,
) -> Tensor:
    out = torch.empty_like(x, dtype=dtype, requires_grad=False)
    _quantize_out(x, scale, zero_point, qmin, qmax, block_size, offset, out)
    return out


def _quantize_out(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    offset: bool,
    out: Tensor,
) -> None:
    s, o = of_reals(x, scale, zero_point, qmin, qmax, block_size, offset, result=out.dtype, out=out)
    dtypes.codes_dtype(x.dtype, out.dtype, qmin, qmax)
    r = None
    for x_, out_, s_, o_ in pieces(*side_by_side((x, out), (s, o), block_size), _most(x)):
        r = _grid_codes(r, x_, s_, o_, qmin, qmax, 0.0)
        # A sum tells whether there is a NaN in a twentieth of the time; that of a GPU would have to be waited for.
        if not out.dtype.is_floating_point and not (r.is_cpu and r.sum().isfinite()):
            r = torch.where(r.isnan(), o_.neg().nan_to_num(0.0).clamp(qmin, qmax), r)
        out_.copy_(r)


def _dequantize(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    dtype: torch.dtype | None,
    compute: torch.dtype | None,
    offset: bool,
) -> Tensor:
    out = torch.empty_like(q, dtype=dtypes.reals_dtype(q.dtype, scale.dtype, dtype), requires_grad=False)
    _dequantize_out(q, scale, zero_point, block_size, compute, offset, out)
    return out


def _dequantize_out(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    compute: torch.dtype | None,
    offset: bool,
    out: Tensor,
) -> None:
    s, o = of_codes(q, scale, zero_point, block_size, compute, offset, result=out.dtype, out=out)
    c = None
    for q_, out_, s_, o_ in pieces(*side_by_side((q, out), (s, o), block_size), _most(q)):
        c = room_for(q_, s.dtype, c).copy_(q_)
        _multiply(c.add_(o_), s_, out_)


def _quantize_dequantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    shift: float,
    offset: bool,
) -> Tensor:
    out = torch.empty_like(x, requires_grad=False)
    _quantize_dequantize_out(x, scale, zero_point, qmin, qmax, block_size, shift, offset, out)
    return out


def _quantize_dequantize_out(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    shift: float,
    offset: bool,
    out: Tensor,
) -> None:
    s, o = of_reals(x, scale, zero_point, qmin, qmax, block_size, offset, result=x.dtype, out=out)
    shifted, shift = shift != 0, held(shift, s.dtype)
    r = None
    for x_, out_, s_, o_ in pieces(*side_by_side((x, out), (s, o), block_size), _most(x)):
        r = _grid_codes(r, x_, s_, o_, qmin, qmax, shift)
        _multiply(r.add_(o_ + shift if shifted else o_), s_, out_)


def _grid_codes(room: Tensor | None, x: Tensor, s: Tensor, o: Tensor, qmin: int, qmax: int, shift: float) -> Tensor:
    r = room_for(x, s.dtype, room)
    if x.dtype == r.dtype:
        torch.div(x, s, out=r)
    else:
        r.copy_(x).div_(s)
    if shift:
        r.sub_(shift)
    # Subtracting the offset, not adding the zero point: -0.0 − 0.0 is -0.0, but -0.0 + 0.0 is not.
    return r.round_().sub_(o).clamp_(qmin, qmax)


def _multiply(r: Tensor, s: Tensor, out: Tensor) -> None:
    if r.dtype == out.dtype:
        torch.mul(r, s, out=out)
    elif r.dtype == torch.float64:
        out.copy_(narrow(r.mul_(s), out.dtype))
    else:  # a copy rounds once, and needs no memory in between
        out.copy_(r.mul_(s))


FORWARD: dict[str, Any] = {
    "quantize": _quantize,
    "quantize_out": _quantize_out,
    "dequantize": _dequantize,
    "dequantize_out": _dequantize_out,
    "quantize_dequantize": _quantize_dequantize,
    "quantize_dequantize_out": _quantize_dequantize_out,
}
