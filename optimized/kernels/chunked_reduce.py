"""The reductions in torch operations, on integers that have the order of the floats."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.kernels import blocks

__all__ = ["REDUCE"]

_Blocks = Sequence[int] | None
_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _aminmax(x: Tensor, block_size: _Blocks) -> tuple[Tensor, Tensor]:
    arguments.check_reduction(x, block_size)
    keys = _keys(x)
    low, high = (blocks.reduce(keys, block_size, f) for f in (torch.amin, torch.amax))
    return _of_keys(low, high, x.dtype), _of_keys(high, low, x.dtype)


def _amax(x: Tensor, block_size: _Blocks) -> Tensor:
    arguments.check_reduction(x, block_size)
    high = blocks.reduce(_keys(x.abs()), block_size, torch.amax)
    return _of_keys(high, high, x.dtype)


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


REDUCE: dict[str, Any] = {
    "aminmax": _aminmax,
    "amax": _amax,
}
