"""``quantize``, ``dequantize`` and ``quantize_dequantize`` of float tensors, with AIMET's names and overloads.

Common to the three:

- ``tensor`` is float32, float64, float16 or bfloat16, of any shape and strides; the result is of its shape and dtype.
  Of a subclass the values alone are read, and the result is a plain tensor.
- ``scale``, real per code, broadcasts to ``tensor``; so does ``offset``, in codes, which is minus the zero point and
  is not rounded. Either may be a tensor of integers.
- ``block_size``: elements per block, one entry per dimension of ``scale``, which meet the last dimensions of
  ``tensor``; -1 for the dimension's size over the number of its scales. None or () without blocks.
- The gradients of all three tensors go straight through the rounding; ``operators`` states them.

The grid is given in one of three ways: ``bitwidth`` b with ``signed``, which stands for 2^b − 1 steps; ``num_steps``
with ``signed``; or its ends ``qmin`` and ``qmax``.

Upstream: the arithmetic depends on which arguments require a gradient, and so do infinities, NaN and ties; here it is
the documented one always. The dtype it runs in is the first of ``tensor``'s, float32 and float64 that holds the grid
with an epsilon of a quarter step or less.
"""

from typing import Any, overload

import torch
from torch import Tensor

from halfeven.optimized import operators
from halfeven.optimized.aimet.affine.grid import read_grid, second_is_end
from halfeven.optimized.aimet.arguments import aligned_blocks, exact_blocks, plain
from halfeven.optimized.arguments import Blocks
from halfeven.optimized.arguments.dtypes import codes_dtype, compute_dtype

__all__ = ["apply", "dequantize", "quantize", "quantize_dequantize", "undo"]

# The float dtypes, and up to where each holds every integer.
_FLOATS = {torch.float32: 2**24, torch.float64: 2**53, torch.float16: 2**11, torch.bfloat16: 2**8}
# The names after (tensor, scale, offset), as positions: with a bitwidth, and with the ends of the grid.
_BITS = ("bitwidth", "signed", "block_size", "zero_point_shift")
_ENDS = ("qmin", "qmax", "block_size", "zero_point_shift")
_NAMES = {*_BITS, *_ENDS, "num_steps"}


@overload
def quantize(
    tensor: Tensor, scale: Tensor, offset: Tensor, bitwidth: int, signed: bool = False, block_size: Blocks = None
) -> Tensor: ...
@overload
def quantize(
    tensor: Tensor, scale: Tensor, offset: Tensor, *, num_steps: int, signed: bool = False, block_size: Blocks = None
) -> Tensor: ...
@overload
def quantize(
    tensor: Tensor, scale: Tensor, offset: Tensor, qmin: int, qmax: int, block_size: Blocks = None
) -> Tensor: ...
def quantize(tensor: Tensor, scale: Tensor, offset: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """Codes clamp(half_even(tensor / scale) − offset, qmin, qmax), held in ``tensor.dtype``.

    NaN stays NaN, -0.0 stays -0.0, and infinities become the ends of the grid.

    Upstream: ``num_steps`` needs ``signed``, and unknown keywords are ignored.

    Raises:
        TypeError: not exactly one of the ways to give the grid; another argument; no tensor.
        ValueError: ``tensor`` is of another dtype.
        RuntimeError: a negative ``bitwidth`` or ``num_steps``, ``qmin`` above ``qmax``, a grid that ``tensor.dtype``
            does not hold, shapes or blocks that do not fit.
        IndexError: with ``block_size``, a scale of more dimensions than ``tensor``.
    """
    qmin, qmax, block_size, shift = _read(args, kwargs)
    if shift:
        msg = f"zero_point_shift={shift} is not accepted by quantize: give 0.0"
        raise RuntimeError(msg)
    return apply(tensor, scale, offset, qmin, qmax, block_size, codes=True)


@overload
def quantize_dequantize(
    tensor: Tensor,
    scale: Tensor,
    offset: Tensor,
    bitwidth: int,
    signed: bool = False,
    block_size: Blocks = None,
    zero_point_shift: float | None = None,
) -> Tensor: ...
@overload
def quantize_dequantize(
    tensor: Tensor,
    scale: Tensor,
    offset: Tensor,
    *,
    num_steps: int,
    signed: bool = False,
    block_size: Blocks = None,
    zero_point_shift: float | None = None,
) -> Tensor: ...
@overload
def quantize_dequantize(
    tensor: Tensor,
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    block_size: Blocks = None,
    zero_point_shift: float | None = None,
) -> Tensor: ...
def quantize_dequantize(tensor: Tensor, scale: Tensor, offset: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    """``tensor`` on the grid, (clamp(half_even(tensor / scale) − offset, qmin, qmax) + offset)·scale.

    Computed as a whole before it is rounded to ``tensor.dtype``, once. ``zero_point_shift``, in codes, moves every
    real of the grid by as many scales: it is taken from the quotient before the rounding, and added to the offset.

    Upstream: ``num_steps`` needs ``signed``, unknown keywords are ignored, and ``zero_point_shift=None`` is refused;
    the scale's gradient lacks the shift where a code is clipped.

    Raises:
        TypeError: as ``quantize``.
        ValueError: likewise.
        RuntimeError: likewise, but any grid is accepted that float64 holds.
        IndexError: likewise.
    """
    qmin, qmax, block_size, shift = _read(args, kwargs)
    return apply(tensor, scale, offset, qmin, qmax, block_size, shift)


def dequantize(tensor: Tensor, scale: Tensor, offset: Tensor, block_size: Blocks = None) -> Tensor:
    """Reals (tensor + offset)·scale; scale, offset, sum and product are each rounded to ``tensor.dtype``.

    Codes are not limited to a grid. An encoding knows its grid, and computes in a dtype that holds it.

    Upstream: integers are accepted, and lose the fractions of scale and offset.

    Raises:
        TypeError: ``tensor`` is not of a float dtype; no tensor.
        RuntimeError: shapes or blocks that do not fit.
        IndexError: with ``block_size``, a scale of more dimensions than ``tensor``.
    """
    return undo(tensor, scale, offset, block_size)


def apply(
    tensor: Tensor,
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    block_size: Blocks = None,
    zero_point_shift: float = 0.0,
    *,
    codes: bool = False,
) -> Tensor:
    """``quantize_dequantize``, or ``quantize`` with ``codes``, of a grid that has been read; errors as theirs."""
    tensor, scale, offset = plain("tensor", tensor), plain("scale", scale), plain("offset", offset)
    if qmin > qmax:
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: give qmin <= qmax"
        raise RuntimeError(msg)
    scale, offset, blocks = _aligned(tensor, scale, offset, block_size)
    if tensor.dtype not in _FLOATS:
        msg = f"tensor of {tensor.dtype} is not accepted: give one of {', '.join(map(str, _FLOATS))}"
        raise ValueError(msg)
    _check_grid(tensor.dtype if codes else torch.float64, qmin, qmax)
    if codes:
        return operators.quantize(tensor, scale, offset, qmin, qmax, block_size=blocks, offset=True)
    return operators.quantize_dequantize(
        tensor, scale, offset, qmin, qmax, block_size=blocks, shift=zero_point_shift, offset=True
    )


def undo(
    tensor: Tensor, scale: Tensor, offset: Tensor, block_size: Blocks = None, grid: tuple[int, int] | None = None
) -> Tensor:
    """``dequantize`` with the arithmetic in the dtype that ``apply`` has for codes of ``grid``, rounded once."""
    tensor, scale, offset = plain("tensor", tensor), plain("scale", scale), plain("offset", offset)
    scale, offset, blocks = _aligned(tensor, scale, offset, block_size)
    if tensor.dtype not in _FLOATS:
        msg = f"tensor of {tensor.dtype} is not accepted: give one of {', '.join(map(str, _FLOATS))}"
        raise TypeError(msg)
    compute = None
    if grid is not None and not _is_narrow(tensor.dtype, *grid):
        _check_grid(torch.float64, *grid)
        compute = compute_dtype(tensor.dtype, *grid)
    return operators.dequantize(tensor, scale, offset, block_size=blocks, compute=compute, offset=True)


def _is_narrow(dtype: torch.dtype, qmin: int, qmax: int) -> bool:
    """Whether ``dtype`` holds the grid with an epsilon of a quarter step or less; not every such grid is found."""
    return -_FLOATS[dtype] <= qmin and qmax <= _FLOATS[dtype] and 8 * (qmax - qmin) <= _FLOATS[dtype]


def _check_grid(dtype: torch.dtype, qmin: int, qmax: int) -> None:
    """Refuse a grid whose ends and their neighbours ``dtype`` does not hold."""
    if -_FLOATS[dtype] <= qmin and qmax <= _FLOATS[dtype]:
        return
    try:
        codes_dtype(dtype, None, qmin, qmax)
    except ValueError:
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: give a grid that {dtype} holds"
        raise RuntimeError(msg) from None


def _aligned(
    tensor: Tensor, scale: Tensor, offset: Tensor, block_size: Blocks
) -> tuple[Tensor, Tensor, tuple[int, ...] | None]:
    """Scale, offset and block size as the operators take them: one entry for every dimension of ``tensor``."""
    if not scale.dtype.is_floating_point:
        scale = scale.to(torch.float64)
    if not block_size:
        return scale, offset, None
    blocks = exact_blocks(tensor.shape, scale.shape, block_size)
    aligned, blocks = aligned_blocks(tensor.shape, scale.shape, blocks)
    if len(aligned) != scale.dim():
        scale = scale.expand(aligned)
    if offset.shape != scale.shape:
        offset = offset.expand(aligned)
    return scale, offset, blocks


def _read(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[int, int, Blocks, float]:
    """The ends of the grid, the block size and the shift that the arguments after the offset give."""
    names = _ENDS if second_is_end(args, kwargs) else _BITS
    given = dict(zip(names, args, strict=False)) | kwargs
    if len(given) < len(args) + len(kwargs) or not given.keys() <= _NAMES:
        said = f"{len(args)} arguments after offset and the keywords {', '.join(kwargs) or 'none'}"
        msg = (
            f"{said} are not accepted: give {', '.join(_BITS)}, or {', '.join(_ENDS)}, or num_steps instead of bitwidth"
        )
        raise TypeError(msg)
    block_size, shift = given.pop("block_size", None), given.pop("zero_point_shift", None)
    qmin, qmax = read_grid(**given)
    return qmin, qmax, block_size, shift or 0.0
