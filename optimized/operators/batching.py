"""``torch.func.vmap`` of the operators: the batch becomes the first dimension of ``x`` and of batched parameters."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from halfeven.optimized.operators.registration import OPS

__all__ = ["batched", "lift", "rule"]


def batched(t: Tensor, dim: int | None, n: int) -> Tensor:
    """``t`` with the batch of ``n`` as its first dimension, which is ``dim``, or none that it has."""
    return t.expand(n, *t.shape) if dim is None else t.movedim(dim, 0)


def lift(parameter: Tensor, ndim: int) -> Tensor:
    """``parameter``, whose first dimension is the batch, over the dimensions that it lacks of ``ndim``."""
    shape = parameter.shape
    return parameter.reshape(shape[0], *(1,) * (ndim - parameter.ndim), *shape[1:])


def rule(name: str, block_size: int) -> Callable[..., tuple[Tensor, int]]:
    """The vmap rule of an operator (x, scale, zero_point, *rest), whose ``rest[block_size]`` is the block size."""

    def over_batch(info: Any, in_dims: Any, x: Tensor, scale: Tensor, zero_point: Tensor | None, *rest: Any) -> Any:
        operator = getattr(OPS, name).default
        n = info.batch_size
        x = batched(x, in_dims[0], n)
        given = list(zip((scale, zero_point), in_dims[1:3], strict=True))
        blocks = rest[block_size]
        if blocks is None:
            # The trailing dimensions broadcast as they did; a batched parameter is lifted over those it lacks.
            parameters = [p if p is None or d is None else lift(batched(p, d, n), x.ndim) for p, d in given]
            return operator(x, *parameters, *rest), 0
        each = any(d is not None for _, d in given)
        parameters = [p if p is None else _whole(p, d, x.ndim, n if each else 1) for p, d in given]
        settings = list(rest)
        settings[block_size] = (1 if each else max(n, 1), *blocks)
        return operator(x, *parameters, *settings), 0

    return over_batch


def _whole(parameter: Tensor, dim: int | None, ndim: int, n: int) -> Tensor:
    """One entry per block of the batch: ``n`` along the first dimension."""
    if dim is not None:
        return lift(batched(parameter, dim, n), ndim)
    shape = parameter.shape if parameter.ndim else (1,) * (ndim - 1)
    return parameter.reshape(1, *shape).expand(n, *shape)
