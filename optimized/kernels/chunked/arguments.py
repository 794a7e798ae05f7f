"""The arguments of the torch path checked, and the parameters in the dtype of the arithmetic."""

import torch
from torch import Tensor

from halfeven.optimized.arguments import Blocks, accepted_codes, accepted_reals

__all__ = ["of_codes", "of_reals"]


def of_reals(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    offset: bool,
    *,
    result: torch.dtype,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Scale and offset for reals ``x`` on a grid.

    Raises:
        TypeError, ValueError, RuntimeError: an argument is not accepted, or ``out`` is not one for ``x`` in ``result``.
    """
    compute = accepted_reals(x, scale, zero_point, qmin, qmax, block_size, result=result, out=out)
    return scale.to(compute), _offset(zero_point, scale, compute, offset)


def of_codes(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    compute: torch.dtype | None,
    offset: bool,
    *,
    result: torch.dtype,
    out: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Scale and offset for codes ``q``.

    Raises:
        TypeError, ValueError, RuntimeError: an argument is not accepted, or ``out`` is not one for ``q`` in ``result``.
    """
    compute = accepted_codes(q, scale, zero_point, block_size, compute, result=result, out=out)
    return scale.to(compute), _offset(zero_point, scale, compute, offset)


def _offset(zero_point: Tensor | None, scale: Tensor, compute: torch.dtype, offset: bool) -> Tensor:
    """The offset o = −z in the dtype of the arithmetic; ``zero_point`` is o itself where ``offset`` says so."""
    if zero_point is None:
        return torch.zeros((), dtype=compute, device=scale.device)
    if offset:
        return zero_point.to(compute)
    # An integer has no -0: the offset of the integer 0 is +0.0, the offset of the float 0.0 is -0.0.
    o = zero_point.to(compute).neg()
    return o if zero_point.dtype.is_floating_point else o + 0.0
