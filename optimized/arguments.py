"""What the functions of ``affine`` accept, and how they lay parameters beside the elements they belong to."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from halfeven.optimized.memory import check_out

__all__ = [
    "Call",
    "check_codes",
    "check_grid",
    "check_reals",
    "codes_dtype",
    "compute_dtype",
    "prepare",
    "reals_dtype",
]

_REALS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_CODES = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32)
_INTEGERS = (*_CODES, torch.uint32, torch.int64)


@dataclass(frozen=True, eq=False)
class Call:
    """Checked arguments, ready for a kernel.

    Attributes:
        x: the input; a dimension of several whole blocks is split in two, (blocks, elements).
        scale: in the dtype of the arithmetic, on ``x``'s device, broadcasting to ``x``.
        offset: minus the zero point, likewise.
        view: ``out`` with ``x``'s shape.
        out: the result.
    """

    x: Tensor
    scale: Tensor
    offset: Tensor
    view: Tensor
    out: Tensor


def check_reals(name: str, value: Tensor) -> None:
    """Refuse anything but a strided tensor of an accepted float dtype.

    Raises:
        TypeError: ``value`` is something else.
    """
    _check_tensor(name, value, _REALS)


def check_codes(q: Tensor) -> None:
    """Refuse anything but a strided tensor of an accepted float or integer dtype.

    Raises:
        TypeError: ``q`` is something else.
    """
    _check_tensor("q", q, (*_REALS, *_CODES, torch.int64))


def check_grid(qmin: int, qmax: int) -> None:
    """Refuse ends that are no ints or out of order.

    Raises:
        TypeError: an end is not an int.
        ValueError: ``qmin`` is above ``qmax``.
    """
    for name, value in (("qmin", qmin), ("qmax", qmax)):
        if isinstance(value, bool) or not isinstance(value, int):
            msg = f"{name}={value!r} is not accepted: give an int"
            raise TypeError(msg)
    if qmin > qmax:
        msg = f"qmin={qmin} is above qmax={qmax}: a grid needs qmin <= qmax"
        raise ValueError(msg)


def codes_dtype(x: torch.dtype, dtype: torch.dtype | None, qmin: int, qmax: int) -> torch.dtype:
    """The dtype of the codes of an input of dtype ``x``.

    Raises:
        TypeError: ``dtype`` is not accepted.
        ValueError: the dtype does not hold the grid.
    """
    if dtype is None:
        if not _represents(x, qmin, qmax):
            msg = f"qmin={qmin}, qmax={qmax} is not accepted: {x} cannot represent the grid; give an integer dtype"
            raise ValueError(msg)
        return x
    if dtype not in _CODES:
        msg = f"dtype={dtype} is not accepted: give None for codes in x's dtype, or one of {_names(_CODES)}"
        raise TypeError(msg)
    info = torch.iinfo(dtype)
    if qmin < info.min or qmax > info.max:
        msg = (
            f"dtype={dtype} is not accepted: it holds {info.min} to {info.max}, the grid is qmin={qmin} to qmax={qmax}"
        )
        raise ValueError(msg)
    return dtype


def reals_dtype(q: torch.dtype, scale: Tensor | float, dtype: torch.dtype | None) -> torch.dtype:
    """The dtype of the reals of codes of dtype ``q``.

    Raises:
        TypeError: ``dtype`` is not accepted.
    """
    if dtype is None:
        scale_dtype = scale.dtype if isinstance(scale, Tensor) else torch.float32
        return q if q.is_floating_point else scale_dtype
    if dtype not in _REALS:
        msg = f"dtype={dtype} is not accepted: give None or one of {_names(_REALS)}"
        raise TypeError(msg)
    return dtype


def compute_dtype(x: torch.dtype, qmin: int, qmax: int) -> torch.dtype:
    """The first of ``x``, float32 and float64 that represents the grid with an epsilon of a quarter step or less.

    float64 serves wider grids as long as it represents them.

    Raises:
        ValueError: float64 does not represent the grid.
    """
    for dtype in (x, torch.float32, torch.float64):
        per_epsilon = int(1 / torch.finfo(dtype).eps)
        if _represents(dtype, qmin, qmax) and 4 * (qmax - qmin) <= per_epsilon:
            return dtype
    if not _represents(torch.float64, qmin, qmax):
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: float64 cannot represent the grid"
        raise ValueError(msg)
    return torch.float64


def prepare(
    named: tuple[str, Tensor],
    scale: Tensor | float,
    zero_point: Tensor | int,
    block_size: Sequence[int] | None,
    out: Tensor | None,
    result: torch.dtype,
    compute: torch.dtype,
) -> Call:
    """Check parameters, blocks and ``out``, make ``out`` where it is None, and lay all of them side by side.

    Raises:
        TypeError: a parameter, ``block_size`` or ``out`` has a type or dtype that is not accepted.
        ValueError: ``block_size`` does not fit.
        RuntimeError: a shape or device does not fit, or ``out`` shares memory.
    """
    name, x = named
    if isinstance(zero_point, float):
        msg = f"zero_point={zero_point!r} is not accepted: give an int, or a tensor of integers or floats"
        raise TypeError(msg)
    s = _parameter("scale", scale, torch.float32, _REALS, x)
    z = _parameter("zero_point", zero_point, torch.int64, (*_INTEGERS, *_REALS), x)
    if block_size is not None:
        _check_block_size(name, block_size, x.shape)
    # A Python number serves every block.
    for parameter, value, given in (("scale", s, scale), ("zero_point", z, zero_point)):
        if isinstance(given, Tensor):
            _check_shape(parameter, value.shape, name, x.shape, block_size)
    if out is None:
        out = torch.empty_like(x, dtype=result, requires_grad=False)
    else:
        check_out(out, result, {name: x, "scale": s, "zero_point": z})
    s = s.to(compute)
    # An integer has no -0: the offset of the integer 0 is +0.0, the offset of the float 0.0 is -0.0.
    o = z.to(compute).neg() if z.dtype.is_floating_point else z.to(compute).neg() + 0.0
    if block_size is None:
        return Call(x, s, o, out, out)
    return Call(*_side_by_side(x, s, o, out, block_size), out)


def _check_tensor(name: str, value: object, accepted: Sequence[torch.dtype]) -> Tensor:
    if not isinstance(value, Tensor):
        msg = f"{name}={value!r} is not accepted: give a torch.Tensor, not {type(value).__name__}"
        raise TypeError(msg)
    if value.dtype not in accepted or value.layout != torch.strided:
        kind = f"{value.dtype} and layout {value.layout}"
        msg = f"{name} of dtype {kind} is not accepted: give a strided tensor of {_names(accepted)}"
        raise TypeError(msg)
    return value


def _parameter(name: str, value: object, default: torch.dtype, accepted: Sequence[torch.dtype], x: Tensor) -> Tensor:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return torch.tensor(value, dtype=default, device=x.device)
    tensor = _check_tensor(name, value, accepted)
    if tensor.device != x.device and tensor.ndim:
        msg = f"{name} on {tensor.device} is not accepted: give it on {x.device}, where the input is"
        raise RuntimeError(msg)
    # A 0-d tensor left on the CPU would be a scalar to a CUDA division, which then multiplies by its reciprocal.
    return tensor.to(x.device)


def _check_block_size(name: str, block_size: Sequence[int], shape: torch.Size) -> None:
    if not isinstance(block_size, Sequence) or any(isinstance(b, bool) or not isinstance(b, int) for b in block_size):
        msg = f"block_size={block_size!r} is not accepted: give None or a sequence of ints"
        raise TypeError(msg)
    if len(block_size) != len(shape) or any(b < 1 for b in block_size):
        msg = (
            f"block_size={tuple(block_size)} is not accepted for {name} of shape {tuple(shape)}: "
            f"give {len(shape)} entries of 1 or more"
        )
        raise ValueError(msg)


def _check_shape(
    parameter: str, given: torch.Size, name: str, shape: torch.Size, block_size: Sequence[int] | None
) -> None:
    """Refuse a parameter that does not belong to ``shape`` in blocks of ``block_size``."""
    if block_size is None:
        aligned = shape[len(shape) - len(given) :]
        if len(given) > len(shape) or any(p not in (1, n) for p, n in zip(given, aligned, strict=True)):
            msg = (
                f"{parameter} of shape {tuple(given)} is not accepted: "
                f"it does not broadcast to {name} of shape {tuple(shape)}"
            )
            raise RuntimeError(msg)
        return
    blocks = tuple(-(-n // b) for n, b in zip(shape, block_size, strict=True))
    if tuple(given) != blocks and not (len(given) == 0 and all(n == 1 for n in blocks)):
        msg = (
            f"{parameter} of shape {tuple(given)} is not accepted: "
            f"{name} of shape {tuple(shape)} in blocks of {tuple(block_size)} needs {blocks}"
        )
        raise RuntimeError(msg)


def _side_by_side(
    x: Tensor, s: Tensor, o: Tensor, out: Tensor, block_size: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Views of ``x`` and ``out`` that the parameters broadcast to.

    Splitting a dimension in (blocks, elements) never copies. Only where the last block is short are the
    parameters repeated, along that dimension.
    """
    for d in reversed(range(x.ndim)):
        n, b = x.shape[d], block_size[d]
        if b == 1 or n <= b:
            continue
        if n % b:
            s, o = (p.repeat_interleave(b, d).narrow(d, 0, n) if p.ndim else p for p in (s, o))
        else:
            x, out = (torch.unflatten(t, d, (n // b, b)) for t in (x, out))
            s, o = (p.unsqueeze(d + 1) if p.ndim else p for p in (s, o))
    return x, s, o, out


def _represents(dtype: torch.dtype, qmin: int, qmax: int) -> bool:
    """Whether the grid's ends and their neighbours are values of ``dtype``."""
    ends = {qmin, min(qmin + 1, qmax), max(qmax - 1, qmin), qmax}
    info = torch.finfo(dtype)
    # An integer is exact where it is in range and its odd part has no more bits than the significand.
    return all(abs(end) <= info.max and abs(end) // max(end & -end, 1) < 2 / info.eps for end in ends)


def _names(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
