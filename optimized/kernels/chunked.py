"""The operators in torch operations: where no kernel was compiled, and on devices that have none.

The results have the bits that the compiled kernels give; sums of gradients may differ in the last bit of float64.
The forward operators work on pieces that stay in the cache; the gradients on whole tensors.
"""

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.kernels import blocks

__all__ = ["IMPLEMENTATIONS"]

_PIECE = 2**18  # elements
_Blocks = Sequence[int] | None


def quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: _Blocks,
    dtype: torch.dtype | None,
    offset: bool,
) -> Tensor:
    """See ``operators``, and so the rest."""
    arguments.check_reals("x", x)
    out = torch.empty_like(x, dtype=arguments.codes_dtype(x.dtype, dtype, qmin, qmax), requires_grad=False)
    quantize_out(x, scale, zero_point, qmin, qmax, block_size, offset, out)
    return out


def quantize_out(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: _Blocks,
    offset: bool,
    out: Tensor,
) -> None:
    arguments.check_reals("x", x)
    arguments.check_grid(qmin, qmax)
    codes = arguments.codes_dtype(x.dtype, None if out.dtype == x.dtype else out.dtype, qmin, qmax)
    arguments.check_parameters(("x", x), scale, zero_point, block_size, out, codes)
    compute = arguments.compute_dtype(x.dtype, qmin, qmax)
    o = arguments.offset_of(zero_point, scale, compute, offset=offset)
    for x_, s_, o_, out_ in _pieces(*arguments.side_by_side(x, scale.to(compute), o, out, block_size)):
        r = _grid_codes(x_, s_, o_, qmin, qmax, 0.0)
        if not out.dtype.is_floating_point:
            r = torch.where(r.isnan(), o_.neg().nan_to_num(0.0).clamp(qmin, qmax), r)
        out_.copy_(r)


def dequantize(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: _Blocks,
    dtype: torch.dtype | None,
    compute: torch.dtype | None,
    offset: bool,
) -> Tensor:
    arguments.check_codes(q)
    out = torch.empty_like(q, dtype=arguments.reals_dtype(q.dtype, scale.dtype, dtype), requires_grad=False)
    dequantize_out(q, scale, zero_point, block_size, compute, offset, out)
    return out


def dequantize_out(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: _Blocks,
    compute: torch.dtype | None,
    offset: bool,
    out: Tensor,
) -> None:
    arguments.check_codes(q)
    reals = arguments.reals_dtype(q.dtype, scale.dtype, out.dtype)
    arguments.check_parameters(("q", q), scale, zero_point, block_size, out, reals)
    compute = arguments.check_compute(compute, reals)
    o = arguments.offset_of(zero_point, scale, compute, offset=offset)
    for q_, s_, o_, out_ in _pieces(*arguments.side_by_side(q, scale.to(compute), o, out, block_size)):
        out_.copy_(q_.to(compute).add(o_).mul_(s_))


def quantize_dequantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: _Blocks,
    shift: float,
    offset: bool,
) -> Tensor:
    arguments.check_reals("x", x)
    out = torch.empty_like(x, requires_grad=False)
    quantize_dequantize_out(x, scale, zero_point, qmin, qmax, block_size, shift, offset, out)
    return out


def quantize_dequantize_out(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: _Blocks,
    shift: float,
    offset: bool,
    out: Tensor,
) -> None:
    arguments.check_reals("x", x)
    arguments.check_grid(qmin, qmax)
    compute = arguments.compute_dtype(x.dtype, qmin, qmax)
    arguments.check_parameters(("x", x), scale, zero_point, block_size, out, x.dtype)
    o = arguments.offset_of(zero_point, scale, compute, offset=offset)
    for x_, s_, o_, out_ in _pieces(*arguments.side_by_side(x, scale.to(compute), o, out, block_size)):
        r = _grid_codes(x_, s_, o_, qmin, qmax, shift)
        out_.copy_(r.add_(o_ + shift if shift else o_).mul_(s_))


def _grid_codes(x: Tensor, s: Tensor, o: Tensor, qmin: int, qmax: int, shift: float) -> Tensor:
    r = x.to(s.dtype) / s
    if shift:
        r.sub_(shift)
    # Subtracting the offset, not adding the zero point: -0.0 − 0.0 is -0.0, but -0.0 + 0.0 is not.
    return r.round_().sub_(o).clamp_(qmin, qmax)


def _pieces(x: Tensor, s: Tensor, o: Tensor, out: Tensor) -> Iterator[tuple[Tensor, Tensor, Tensor, Tensor]]:
    """``x`` and ``out`` in pieces of at most ``_PIECE`` elements, each with its parameters."""
    if x.numel() <= _PIECE:
        yield x, s, o, out
        return
    d = next(d for d, n in enumerate(x.shape) if n > 1)
    n = x.shape[d]
    step = max(_PIECE // (x.numel() // n), 1)
    for start in range(0, n, step):
        length = min(step, n - start)
        s_, o_ = (
            p.narrow(e, start, length) if (e := d - x.ndim + p.ndim) >= 0 and p.shape[e] != 1 else p for p in (s, o)
        )
        yield from _pieces(x.narrow(d, start, length), s_, o_, out.narrow(d, start, length))


def quantize_backward(
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: _Blocks,
    offset: bool,
    *needs: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    g, u, s, o = _wide(grad, x, scale, zero_point, qmin, qmax, block_size, offset)
    u = u / s
    code = u.round() - o
    m = (code >= qmin) & (code <= qmax)
    dx = g * m / s
    return _collected(x, scale, zero_point, block_size, offset, needs, dx, -dx * u, -(g * m))


def dequantize_backward(
    grad: Tensor,
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: _Blocks,
    compute: torch.dtype | None,
    offset: bool,
    *needs: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    arguments.check_codes(q)
    arguments.check_gradient(grad, "q", q, grad.dtype)
    arguments.check_parameters(("q", q), scale, zero_point, block_size, None, grad.dtype)
    t = arguments.check_compute(compute, grad.dtype)
    g, c = grad.to(t), q.to(t)
    o = arguments.offset_of(zero_point, scale, t, offset=offset)
    s, o = (blocks.expand(p, q.shape, block_size) for p in (scale.to(t), o))
    gs = g * s
    return _collected(q, scale, zero_point, block_size, offset, needs, gs, g * (c + o), gs)


def quantize_dequantize_backward(
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: _Blocks,
    shift: float,
    offset: bool,
    *needs: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    g, u, s, o = _wide(grad, x, scale, zero_point, qmin, qmax, block_size, offset)
    u = u / s
    if shift:
        u = u - shift
    r = u.round()
    m = (r - o >= qmin) & (r - o <= qmax)
    clipped = torch.minimum(torch.maximum(r, o + qmin), o + qmax)
    if shift:
        clipped = clipped + shift
    none = g.new_zeros(())
    dx = torch.where(m, g, none)
    ds, do = g * torch.where(m, r - u, clipped), torch.where(m, none, g * s)
    return _collected(x, scale, zero_point, block_size, offset, needs, dx, ds, do)


def _wide(
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: _Blocks,
    offset: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradient, input, scale and offset in the dtype of the arithmetic, the parameters broadcasting to the input."""
    arguments.check_reals("x", x)
    arguments.check_grid(qmin, qmax)
    arguments.check_gradient(grad, "x", x, x.dtype)
    arguments.check_parameters(("x", x), scale, zero_point, block_size, None, x.dtype)
    t = arguments.compute_dtype(x.dtype, qmin, qmax)
    o = arguments.offset_of(zero_point, scale, t, offset=offset)
    s, o = (blocks.expand(p, x.shape, block_size) for p in (scale.to(t), o))
    return grad.to(t), x.to(t), s, o


def _collected(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: _Blocks,
    offset: bool,
    needs: Sequence[bool],
    dx: Tensor,
    ds: Tensor,
    do: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Of each the gradient wanted, summed over the elements of each parameter; else an empty tensor."""
    dz = do if offset else -do
    return (
        dx.to(x.dtype) if needs[0] else x.new_empty((0,)),
        blocks.sum_to(ds, scale, block_size) if needs[1] else x.new_empty((0,)),
        blocks.sum_to(dz, zero_point, block_size) if needs[2] and zero_point is not None else x.new_empty((0,)),
    )


def aminmax(x: Tensor, block_size: _Blocks) -> tuple[Tensor, Tensor]:
    arguments.check_reduction(x, block_size)
    keys = _keys(x)
    low, high = (blocks.reduce(keys, block_size, f) for f in (torch.amin, torch.amax))
    return _of_keys(low, high, x.dtype), _of_keys(high, low, x.dtype)


def amax(x: Tensor, block_size: _Blocks) -> Tensor:
    arguments.check_reduction(x, block_size)
    high = blocks.reduce(_keys(x.abs()), block_size, torch.amax)
    return _of_keys(high, high, x.dtype)


_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _keys(x: Tensor) -> Tensor:
    """Integers in the order of the floats, -0.0 below +0.0, NaN beyond the infinities; its own inverse on bits."""
    bits = x.contiguous().view(_INTEGERS[x.element_size()])
    return bits ^ ((bits >> (8 * x.element_size() - 1)) & torch.iinfo(bits.dtype).max)


def _of_keys(key: Tensor, other: Tensor, dtype: torch.dtype) -> Tensor:
    """The floats of keys; NaN where either key is that of a NaN."""
    infinity = _keys(torch.tensor([torch.inf, -torch.inf], dtype=dtype, device=key.device))
    nan = (torch.maximum(key, other) > infinity[0]) | (torch.minimum(key, other) < infinity[1])
    bits = key ^ ((key >> (8 * key.element_size() - 1)) & torch.iinfo(key.dtype).max)
    return torch.where(nan, torch.nan, bits.view(dtype)).to(dtype)


IMPLEMENTATIONS: dict[str, Any] = {
    f.__name__: f
    for f in (
        quantize,
        quantize_out,
        dequantize,
        dequantize_out,
        quantize_dequantize,
        quantize_dequantize_out,
        quantize_backward,
        dequantize_backward,
        quantize_dequantize_backward,
        aminmax,
        amax,
    )
}
