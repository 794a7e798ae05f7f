"""The arithmetic of ``affine`` in plain torch operations: the seam that compiled kernels will take over.

Every function takes arguments that ``arguments.prepare`` has checked: ``scale`` and ``offset`` (minus the zero
point) in the dtype of the arithmetic and broadcasting to ``x``, and ``out`` of ``x``'s shape, written in place.
"""

import torch
from torch import Tensor

__all__ = ["dequantize", "quantize", "quantize_dequantize"]


def quantize(x: Tensor, scale: Tensor, offset: Tensor, qmin: int, qmax: int, out: Tensor) -> None:
    """Write clamp(half_even(x / scale) − offset, qmin, qmax) to ``out``, of a float or an integer dtype."""
    r = _grid_codes(x, scale, offset, qmin, qmax, out)
    if not out.dtype.is_floating_point:
        code_of_nan = offset.neg().nan_to_num(0.0).clamp_(qmin, qmax)
        torch.where(r.isnan(), code_of_nan, r, out=r)
    _store(r, out)


def dequantize(q: Tensor, scale: Tensor, offset: Tensor, out: Tensor) -> None:
    """Write (q + offset)·scale to ``out``, in the dtype of ``out``, which scale and offset have."""
    if q.dtype == out.dtype:
        torch.add(q, offset, out=out)
    else:
        out.copy_(q).add_(offset)
    out.mul_(scale)


def quantize_dequantize(x: Tensor, scale: Tensor, offset: Tensor, qmin: int, qmax: int, out: Tensor) -> None:
    """Write (clamp(half_even(x / scale) − offset, qmin, qmax) + offset)·scale to ``out``, of ``x``'s dtype."""
    r = _grid_codes(x, scale, offset, qmin, qmax, out)
    r.add_(offset).mul_(scale)
    _store(r, out)


def _grid_codes(x: Tensor, scale: Tensor, offset: Tensor, qmin: int, qmax: int, out: Tensor) -> Tensor:
    """The codes in the dtype of the arithmetic: in ``out`` itself where it has that dtype, else in a new tensor."""
    compute = scale.dtype
    if x.dtype != compute:
        r = x.to(compute).div_(scale)
    elif out.dtype == compute:
        r = torch.div(x, scale, out=out)
    else:
        r = torch.div(x, scale)
    # Subtracting the offset, not adding the zero point: -0.0 − 0.0 is -0.0, but -0.0 + 0.0 is not.
    return r.round_().sub_(offset).clamp_(qmin, qmax)


def _store(r: Tensor, out: Tensor) -> None:
    if r is not out:
        out.copy_(r)
