"""The reductions in torch operations, on integers that have the order of the floats."""

from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.arguments import Blocks
from halfeven.optimized.kernels.chunked.parts import reduce

__all__ = ["REDUCE"]

_INTEGERS = {2: torch.int16, 4: torch.int32, 8: torch.int64}


def _aminmax(x: Tensor, block_size: Blocks) -> tuple[Tensor, Tensor]:
    arguments.check_reduction(x, block_size)
    low, high = (reduce(x, block_size, f) for f in (torch.amin, torch.amax))
    # To look at a number of a GPU is to wait for it, and a graph that is captured cannot.
    if x.is_cpu and not ((low == 0) | (high == 0)).any():
        return low.clone(), high.clone()  # of one element each, either may be x itself
    # Torch leaves open which zero is the less: the integers say.
    keys = _keys(x)
    return _of_keys(reduce(keys, block_size, torch.amin), low), _of_keys(reduce(keys, block_size, torch.amax), high)


def _amax(x: Tensor, block_size: Blocks) -> Tensor:
    arguments.check_reduction(x, block_size)
    return reduce(x.abs(), block_size, torch.amax)


def _keys(x: Tensor) -> Tensor:
    """Integers in the order of the floats, -0.0 below +0.0, NaN beyond the infinities."""
    return _flipped(x.contiguous().view(_INTEGERS[x.element_size()]))


def _of_keys(key: Tensor, end: Tensor) -> Tensor:
    """The floats of keys, NaN where ``end`` is."""
    return torch.where(end.isnan(), end, _flipped(key).view(end.dtype))


def _flipped(bits: Tensor) -> Tensor:
    """All bits but the sign's, where that is set: done twice, it undoes itself."""
    return bits ^ ((bits >> (8 * bits.element_size() - 1)) & torch.iinfo(bits.dtype).max)


REDUCE: dict[str, Any] = {
    "aminmax": _aminmax,
    "amax": _amax,
}
