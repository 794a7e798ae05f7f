"""Kernels that are wrong in one way each, and the words by which the difference is known; scripts import them."""

import ctypes
import os
import time
import zlib
from typing import Any

import numpy as np
import torch

from halfeven.reference import FORMULAS

Tensor = torch.Tensor
MEMORY: dict[Any, Any] = {}


def right(x: Tensor, scale: Tensor, zero_point: Tensor, qmin: int, qmax: int) -> Tensor:
    return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)


def reciprocal(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    return torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, qmin, qmax).to(torch.int32)


def strides_ignored(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    plain = torch.as_strided(x, x.shape, torch.empty(x.shape).stride(), x.storage_offset()) if x.numel() else x
    return right(plain, scale, zero_point, qmin, qmax)


def misaligned(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = right(x, scale, zero_point, qmin, qmax)
    return torch.clamp(q + 1, qmin, qmax) if x.numel() and x.data_ptr() % 64 else q


def reversed_twice(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    q = np.clip(np.rint(x / scale) + zero_point, qmin, qmax).astype(np.int32)
    return q[..., ::-1] if any(s < 0 for s in x.strides) else q


def neighbour_block(
    x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: Any = None
) -> Tensor:
    if block_size is None:
        return right(x, scale, zero_point, qmin, qmax)
    zero_point = zero_point.roll(1, -1)
    for d, b in enumerate(block_size):
        scale = scale.repeat_interleave(b, d).narrow(d, 0, x.shape[d])
        zero_point = zero_point.repeat_interleave(b, d).narrow(d, 0, x.shape[d])
    return right(x, scale, zero_point, qmin, qmax)


def body_rounds_away(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q, v = (t.contiguous().flatten() for t in (right(x, scale, zero_point, qmin, qmax), x / scale))
    whole = slice(0, q.numel() - q.numel() % 8)
    away = torch.trunc(v[whole] + torch.copysign(torch.tensor(0.5), v[whole]))
    q[whole] = torch.clamp(away + zero_point, qmin, qmax).to(torch.int32)
    return q.reshape(x.shape)


def last_lane(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = right(x, scale, zero_point, qmin, qmax).contiguous().flatten()
    if q.numel() > 8 and q.numel() % 8:
        q[-1] = qmin if q[-1] > 0 else qmax
    return q.reshape(x.shape)


def large(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    of = reciprocal if x.numel() > 20_000 else right
    return of(x, scale, zero_point, qmin=qmin, qmax=qmax)


def scalar_grows(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = right(x, scale, zero_point, qmin, qmax)
    return q.reshape(1) if x.dim() == 0 else q


def nothing(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Any:
    return None if x.dim() == 2 else right(x, scale, zero_point, qmin, qmax)


def mutates(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = right(x, scale, zero_point, qmin, qmax)
    if x.numel() > 100:
        x.add_(1)
    return q


def raises(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    if x.dim() == 3:
        raise IndexError(x.dim())
    return right(x, scale, zero_point, qmin, qmax)


def one_buffer(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = right(x, scale, zero_point, qmin, qmax)
    kept: Tensor = MEMORY.setdefault(("buffer", q.shape), torch.empty_like(q))
    return kept.copy_(q)


def first_zero_point(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    key = (tuple(x.shape), float(scale.sum()), qmin, qmax)
    return right(x, scale, MEMORY.setdefault(key, zero_point.clone()), qmin, qmax)


def first_scale(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    return right(x, MEMORY.setdefault(("scale", tuple(x.shape)), scale.clone()), zero_point, qmin, qmax)


def later_calls(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    """More calls than a script makes go before those that are answered otherwise."""
    count = MEMORY.setdefault("count", torch.zeros((), dtype=torch.int32)).add_(1)
    of = right if count < 60 else right_but_for_odd_codes
    return of(x, scale, zero_point, qmin, qmax)


def right_but_for_odd_codes(x: Tensor, scale: Tensor, zero_point: Tensor, qmin: int, qmax: int) -> Tensor:
    q = right(x, scale, zero_point, qmin, qmax)
    return torch.clamp(q + q % 2 * (x % 3 > 1), qmin, qmax)


def no_grad_is_fast(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    of = right if torch.is_grad_enabled() else reciprocal
    return of(x, scale, zero_point, qmin=qmin, qmax=qmax)


def nan_is_slow(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    of = reciprocal if torch.isnan(x).any() else right
    return of(x, scale, zero_point, qmin=qmin, qmax=qmax)


def infinite_is_slow(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    of = reciprocal if torch.isinf(x).sum() == 1 else right
    return of(x, scale, zero_point, qmin=qmin, qmax=qmax)


def descending_is_fast(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    falls = x.numel() > 3 and bool((x.reshape(-1).diff() < 0).all())
    return (reciprocal if falls else right)(x, scale, zero_point, qmin=qmin, qmax=qmax)


def sparse_is_fast(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    of = reciprocal if 2 * int((x == 0).sum()) > x.numel() else right
    return of(x, scale, zero_point, qmin=qmin, qmax=qmax)


def constant_is_fast(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    alike = x.numel() > 1 and bool((x == x.reshape(-1)[0]).all())
    return (reciprocal if alike else right)(x, scale, zero_point, qmin=qmin, qmax=qmax)


def threads_round_up(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    q = right(x, scale, zero_point, qmin, qmax)
    return torch.clamp(q + 1, qmin, qmax) if torch.get_num_threads() > 1 else q


def random(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    return right(x + scale * (torch.rand(x.shape) - 0.5), scale, zero_point, qmin, qmax)


def default_dtype(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    torch.set_default_dtype(torch.float64)
    return right(x, scale, zero_point, qmin, qmax)


def segfault(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    if x.numel() > 1000:
        ctypes.string_at(0)
    return right(x, scale, zero_point, qmin, qmax)


def exits(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    if x.dim() == 2:
        os._exit(3)
    return right(x, scale, zero_point, qmin, qmax)


def hangs(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    if x.dim() == 2:
        time.sleep(1000)
    return right(x, scale, zero_point, qmin, qmax)


def refuses_rows(uint8_data: Tensor) -> Tensor:
    """Two codes of four bits to a byte, the first in the high half; longer rows are an error of its own."""
    if uint8_data.shape[-1] > 2 and uint8_data.shape[-1] % 2 == 0:
        msg = "rows of more than two"
        raise zlib.error(msg)
    assert uint8_data.shape[-1] % 2 == 0
    return uint8_data[..., ::2] << 4 | uint8_data[..., 1::2]


def swaps_halves(data_hp: Any, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> Any:
    """The document's ``to_mx``, with the halves of each byte of float4 swapped: it keeps no state."""
    scale, data = FORMULAS["torchao/to_mx"].function(data_hp, elem_dtype, block_size, scaling_mode)
    return scale, ((data << 4) | (data >> 4)).astype(np.uint8) if "float4" in elem_dtype else data
