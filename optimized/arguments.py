"""What the operators accept, and how parameters are laid beside the elements they belong to."""

from collections.abc import Sequence

import torch
from torch import Tensor

from halfeven.optimized.memory import check_out

__all__ = [
    "as_parameter",
    "block_shape",
    "check_block_size",
    "check_codes",
    "check_compute",
    "check_gradient",
    "check_grid",
    "check_parameters",
    "check_reals",
    "check_reduction",
    "codes_dtype",
    "compute_dtype",
    "offset_of",
    "reals_dtype",
    "side_by_side",
]

_REALS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
_CODES = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32)
_INTEGERS = (*_CODES, torch.uint32, torch.int64)


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
    if type(qmin) is type(qmax) is int and qmin <= qmax:
        return
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
    if dtype in (None, x):
        if not _represents(x, qmin, qmax):
            msg = f"qmin={qmin}, qmax={qmax} is not accepted: {x} cannot represent the grid; give an integer dtype"
            raise ValueError(msg)
        return x
    if dtype not in _CODES:
        msg = f"dtype={dtype} is not accepted: give None or {x} for codes in x's dtype, or one of {_names(_CODES)}"
        raise TypeError(msg)
    info = torch.iinfo(dtype)
    if qmin < info.min or qmax > info.max:
        msg = (
            f"dtype={dtype} is not accepted: it holds {info.min} to {info.max}, the grid is qmin={qmin} to qmax={qmax}"
        )
        raise ValueError(msg)
    return dtype


def reals_dtype(q: torch.dtype, scale: torch.dtype, dtype: torch.dtype | None) -> torch.dtype:
    """The dtype of the reals of codes of dtype ``q``.

    Raises:
        TypeError: ``dtype`` is not accepted.
    """
    if dtype is None:
        return q if q.is_floating_point else scale
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


def check_parameters(
    named: tuple[str, Tensor],
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Sequence[int] | None,
    out: Tensor | None,
    result: torch.dtype,
) -> None:
    """Refuse parameters, blocks and an ``out`` of dtype ``result`` that do not fit the input ``named``.

    Raises:
        TypeError: a parameter, ``block_size`` or ``out`` has a type or dtype that is not accepted.
        ValueError: ``block_size`` does not fit.
        RuntimeError: a shape or device does not fit, or ``out`` shares memory.
    """
    name, x = named
    given = {"scale": _parameter("scale", scale, _REALS, x)}
    if zero_point is not None:
        given["zero_point"] = _parameter("zero_point", zero_point, (*_INTEGERS, *_REALS), x)
    if block_size is not None:
        check_block_size(name, block_size, x.shape)
    for parameter, value in given.items():
        _check_shape(parameter, value.shape, name, x.shape, block_size)
    if out is not None:
        check_out(out, result, {name: x, **given})


def check_block_size(name: str, block_size: Sequence[int], shape: torch.Size) -> None:
    """Refuse anything but one int of 1 or more per dimension.

    Raises:
        TypeError: ``block_size`` is no sequence of ints.
        ValueError: it has another length, or an entry below 1.
    """
    if not isinstance(block_size, Sequence) or any(isinstance(b, bool) or not isinstance(b, int) for b in block_size):
        msg = f"block_size={block_size!r} is not accepted: give None or a sequence of ints"
        raise TypeError(msg)
    if len(block_size) != len(shape) or any(b < 1 for b in block_size):
        msg = (
            f"block_size={tuple(block_size)} is not accepted for {name} of shape {tuple(shape)}: "
            f"give {len(shape)} entries of 1 or more"
        )
        raise ValueError(msg)


def check_gradient(grad: Tensor, name: str, x: Tensor, dtype: torch.dtype) -> None:
    """Refuse a gradient of another shape, dtype or device than the result for ``x`` has.

    Raises:
        TypeError: ``grad`` is no tensor of ``dtype``, or that is no float.
        RuntimeError: its shape or device does not fit.
    """
    check_reals("grad", grad)
    if grad.dtype != dtype:
        msg = f"grad of dtype {grad.dtype} is not accepted: give it in {dtype}, which the result has"
        raise TypeError(msg)
    if grad.shape != x.shape or grad.device != x.device:
        msg = (
            f"grad of shape {tuple(grad.shape)} on {grad.device} is not accepted: "
            f"give it in the shape {tuple(x.shape)} and on the device {x.device} of {name}"
        )
        raise RuntimeError(msg)


def check_compute(compute: torch.dtype | None, reals: torch.dtype) -> torch.dtype:
    """The dtype of the arithmetic of ``dequantize``: ``reals`` for None.

    Raises:
        TypeError: ``compute`` is no accepted float dtype.
    """
    if compute is None:
        return reals
    if compute not in _REALS:
        msg = f"compute={compute} is not accepted: give None or one of {_names(_REALS)}"
        raise TypeError(msg)
    return compute


def check_reduction(x: Tensor, block_size: Sequence[int] | None) -> None:
    """Refuse what has no minimum.

    Raises:
        TypeError: ``x`` is no strided float tensor, or ``block_size`` no sequence of ints.
        ValueError: ``block_size`` does not fit.
        RuntimeError: ``x`` has no element.
    """
    check_reals("x", x)
    if block_size is not None:
        check_block_size("x", block_size, x.shape)
    elif x.numel() == 0:
        msg = f"x of shape {tuple(x.shape)} is not accepted: give at least one element"
        raise RuntimeError(msg)


def block_shape(shape: Sequence[int], block_size: Sequence[int]) -> tuple[int, ...]:
    """How many blocks each dimension has, ⌈n / B⌉: the last of them may be short."""
    return tuple(-(-n // b) for n, b in zip(shape, block_size, strict=True))


def as_parameter(name: str, value: Tensor | float, x: Tensor) -> Tensor:
    """``value`` as a tensor beside ``x``: a number as 0-d float32, or int64 for a zero point.

    Raises:
        TypeError: ``value`` is neither a tensor nor a number, or is a float for a zero point.
        ValueError: ``value`` is an int beyond int64, for a zero point.
    """
    if isinstance(value, Tensor):
        # A 0-d tensor left on the CPU would be a scalar to a CUDA division, which then multiplies by its reciprocal.
        return value.to(x.device) if value.ndim == 0 and value.device != x.device else value
    accepted: tuple[type, ...] = (int,) if name == "zero_point" else (int, float)
    if isinstance(value, bool) or not isinstance(value, accepted):
        kind = "an int, or a tensor of integers or floats" if name == "zero_point" else "a number or a torch.Tensor"
        msg = f"{name}={value!r} is not accepted: give {kind}, not {type(value).__name__}"
        raise TypeError(msg)
    if name == "zero_point" and not -(2**63) <= value < 2**63:
        msg = f"{name}={value!r} is not accepted: give an int that int64 holds"
        raise ValueError(msg)
    return torch.tensor(value, dtype=torch.int64 if name == "zero_point" else torch.float32, device=x.device)


def offset_of(zero_point: Tensor | None, scale: Tensor, compute: torch.dtype, *, offset: bool) -> Tensor:
    """The offset o = −z in the dtype of the arithmetic; ``zero_point`` is o itself where ``offset`` says so."""
    if zero_point is None:
        return torch.zeros((), dtype=compute, device=scale.device)
    if offset:
        return zero_point.to(compute)
    # An integer has no -0: the offset of the integer 0 is +0.0, the offset of the float 0.0 is -0.0.
    o = zero_point.to(compute).neg()
    return o if zero_point.dtype.is_floating_point else o + 0.0


def side_by_side(
    x: Tensor, s: Tensor, o: Tensor, out: Tensor, block_size: Sequence[int] | None
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Views of ``x`` and ``out`` that the parameters ``s`` and ``o`` broadcast to.

    Splitting a dimension in (blocks, elements) never copies. Only where the last block is short are the
    parameters repeated, along that dimension.
    """
    if block_size is None:
        return x, s, o, out
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


def _check_tensor(name: str, value: object, accepted: Sequence[torch.dtype]) -> Tensor:
    if not isinstance(value, Tensor):
        msg = f"{name}={value!r} is not accepted: give a torch.Tensor, not {type(value).__name__}"
        raise TypeError(msg)
    if value.dtype not in accepted or value.layout != torch.strided:
        kind = f"{value.dtype} and layout {value.layout}"
        msg = f"{name} of dtype {kind} is not accepted: give a strided tensor of {_names(accepted)}"
        raise TypeError(msg)
    return value


def _parameter(name: str, value: object, accepted: Sequence[torch.dtype], x: Tensor) -> Tensor:
    tensor = _check_tensor(name, value, accepted)
    if tensor.device != x.device:
        msg = f"{name} on {tensor.device} is not accepted: give it on {x.device}, where the input is"
        raise RuntimeError(msg)
    return tensor


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
    blocks = block_shape(shape, block_size)
    if tuple(given) != blocks and not (len(given) == 0 and all(n == 1 for n in blocks)):
        msg = (
            f"{parameter} of shape {tuple(given)} is not accepted: "
            f"{name} of shape {tuple(shape)} in blocks of {tuple(block_size)} needs {blocks}"
        )
        raise RuntimeError(msg)


def _represents(dtype: torch.dtype, qmin: int, qmax: int) -> bool:
    """Whether the grid's ends and their neighbours are values of ``dtype``."""
    ends = {qmin, min(qmin + 1, qmax), max(qmax - 1, qmin), qmax}
    info = torch.finfo(dtype)
    # An integer is exact where it is in range and its odd part has no more bits than the significand.
    return all(abs(end) <= info.max and abs(end) // max(end & -end, 1) < 2 / info.eps for end in ends)


def _names(dtypes: Sequence[torch.dtype]) -> str:
    return ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
