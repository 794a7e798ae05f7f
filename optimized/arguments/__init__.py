"""What the operators accept: tensors, grids, blocks, and parameters and gradients that fit a tensor; and numbers."""

from collections.abc import Sequence
from numbers import Integral, Real

import torch
from torch import Tensor

from halfeven.optimized.arguments.dtypes import (
    CODES,
    INTEGERS,
    REALS,
    compute_dtype,
    names,
    reals_compute_dtype,
    reals_dtype,
)
from halfeven.optimized.arguments.memory import check_out

__all__ = [
    "Blocks",
    "accepted_codes",
    "accepted_reals",
    "as_tensors",
    "block_counts",
    "check_block_size",
    "check_codes",
    "check_differentiable",
    "check_elements",
    "check_gradient",
    "check_grid",
    "check_ints",
    "check_parameters",
    "check_reals",
    "check_reduction",
    "check_tensor",
]

#: The size of a block in each dimension; None where parameters broadcast.
Blocks = Sequence[int] | None


def as_tensors(
    name: str, x: Tensor, scale: Tensor | float, zero_point: Tensor | int, block_size: Blocks
) -> tuple[Tensor, Tensor | None, Blocks]:
    """The parameters as tensors, None for a zero point of 0, and the blocks, None where numbers serve all of them.

    Whether tensors are of an accepted dtype and shape is left to the operators.

    Raises:
        TypeError: ``x``, of that name, is no tensor, a parameter neither a tensor nor a number, the zero point a float,
            or ``block_size`` no sequence of ints.
        ValueError: a number is too large, or, where there are only numbers, ``block_size`` does not fit.
    """
    if block_size is not None:
        check_ints(block_size)
    check_tensor(name, x)
    s = scale if isinstance(scale, Tensor) else _scale(scale, x)
    z = zero_point if isinstance(zero_point, Tensor) else _zero_point(zero_point, x)
    if not x.is_cpu:
        s, z = _beside(s, x), None if z is None else _beside(z, x)
    if block_size is None:
        return s, z, None
    if isinstance(scale, Tensor):
        return s, z if z is None or isinstance(zero_point, Tensor) else z.expand(s.shape), block_size
    if isinstance(zero_point, Tensor):
        return s.expand(zero_point.shape), z, block_size
    check_block_size(name, block_size, x.shape)
    return s, z, None


def check_tensor(name: str, value: object) -> Tensor:
    """Refuse anything but a tensor.

    Raises:
        TypeError: ``value`` is something else.
    """
    if not isinstance(value, Tensor):
        msg = f"{name}={value!r} is not accepted: give a torch.Tensor, not {type(value).__name__}"
        raise TypeError(msg)
    return value


def check_reals(name: str, value: Tensor) -> None:
    """Refuse anything but a strided tensor of an accepted float dtype.

    Raises:
        TypeError: ``value`` is something else.
    """
    _check_dtype(name, value, REALS)


def check_codes(q: Tensor) -> None:
    """Refuse anything but a strided tensor of an accepted float or integer dtype.

    Raises:
        TypeError: ``q`` is something else.
    """
    _check_dtype("q", q, (*REALS, *CODES, torch.int64))


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
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: a grid needs qmin <= qmax"
        raise ValueError(msg)


def check_parameters(
    named: tuple[str, Tensor],
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
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
    given = {"scale": _parameter("scale", scale, REALS, x)}
    if zero_point is not None:
        given["zero_point"] = _parameter("zero_point", zero_point, (*INTEGERS, *REALS), x)
    if block_size is not None:
        check_block_size(name, block_size, x.shape)
    for parameter, value in given.items():
        _check_shape(parameter, value.shape, name, x.shape, block_size)
    if out is not None:
        check_out(out, result, {name: x, **given})


def accepted_reals(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    *,
    result: torch.dtype,
    out: Tensor | None = None,
) -> torch.dtype:
    """The dtype of the arithmetic of reals ``x`` on a grid, of arguments that are accepted.

    Raises:
        TypeError, ValueError, RuntimeError: an argument is not accepted, or ``out`` is not one for ``x`` in ``result``.
    """
    check_reals("x", x)
    check_grid(qmin, qmax)
    compute = compute_dtype(x.dtype, qmin, qmax)
    check_parameters(("x", x), scale, zero_point, block_size, out, result)
    return compute


def accepted_codes(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    compute: torch.dtype | None,
    *,
    result: torch.dtype,
    out: Tensor | None = None,
) -> torch.dtype:
    """The dtype of the arithmetic of codes ``q``, of arguments that are accepted.

    Raises:
        TypeError, ValueError, RuntimeError: an argument is not accepted, or ``out`` is not one for ``q`` in ``result``.
    """
    check_codes(q)
    compute = reals_compute_dtype(compute, reals_dtype(q.dtype, scale.dtype, result))
    check_parameters(("q", q), scale, zero_point, block_size, out, result)
    return compute


def check_ints(block_size: Sequence[int]) -> None:
    """Refuse a ``block_size`` that is no sequence of ints; torch takes bools, numbers of NumPy and tensors for ints.

    Raises:
        TypeError: it is something else.
    """
    if type(block_size) in (tuple, list):
        for b in block_size:
            if type(b) is not int:
                break
        else:
            return  # quickly, in advance of every call
    if not isinstance(block_size, Sequence) or any(isinstance(b, bool) or not isinstance(b, int) for b in block_size):
        msg = f"block_size={block_size!r} is not accepted: give None or a sequence of ints"
        raise TypeError(msg)


def check_block_size(name: str, block_size: Sequence[int], shape: torch.Size) -> None:
    """Refuse anything but one int of 1 or more per dimension.

    Raises:
        TypeError: ``block_size`` is no sequence of ints.
        ValueError: it has another length, or an entry below 1 or above int64.
    """
    check_ints(block_size)
    if len(block_size) != len(shape) or any(not 1 <= b < 2**63 for b in block_size):
        msg = (
            f"block_size={tuple(block_size)} is not accepted for {name} of shape {tuple(shape)}: "
            f"give {len(shape)} entries of 1 or more that int64 holds"
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


def check_differentiable(name: str, value: Tensor | None, needed: bool) -> None:
    """Refuse to give a gradient of an integer.

    Raises:
        RuntimeError: one is ``needed`` of a ``value`` that is no float.
    """
    if needed and value is not None and not value.dtype.is_floating_point:
        given = f"need_{name}=True is not accepted for {name} of dtype {names((value.dtype,))}"
        msg = f"{given}: only floats have gradients"
        raise RuntimeError(msg)


def check_reduction(x: Tensor, block_size: Blocks) -> None:
    """Refuse what has no minimum.

    Raises:
        TypeError: ``x`` is no strided float tensor, or ``block_size`` no sequence of ints.
        ValueError: ``block_size`` does not fit, or, without it, ``x`` has no element.
    """
    check_reals("x", x)
    if block_size is None:
        check_elements(x)
    else:
        check_block_size("x", block_size, x.shape)


def check_elements(x: Tensor) -> None:
    """Refuse an ``x`` without any.

    Raises:
        ValueError: ``x`` has no element.
    """
    if x.numel() == 0:
        msg = f"x of shape {tuple(x.shape)} is not accepted: give at least one element"
        raise ValueError(msg)


def block_counts(shape: Sequence[int], block_size: Sequence[int]) -> tuple[int, ...]:
    """How many blocks each dimension has, ⌈n / B⌉: the last of them may be short."""
    return tuple(-(-n // b) for n, b in zip(shape, block_size, strict=True))


def _check_dtype(name: str, value: object, accepted: Sequence[torch.dtype]) -> Tensor:
    tensor = check_tensor(name, value)
    if tensor.dtype not in accepted or tensor.layout != torch.strided:
        kind = f"{tensor.dtype} and layout {tensor.layout}"
        msg = f"{name} of dtype {kind} is not accepted: give a strided tensor of {names(accepted)}"
        raise TypeError(msg)
    return tensor


def _parameter(name: str, value: object, accepted: Sequence[torch.dtype], x: Tensor) -> Tensor:
    tensor = _check_dtype(name, value, accepted)
    if tensor.device != x.device:
        msg = f"{name} on {tensor.device} is not accepted: give it on {x.device}, where the input is"
        raise RuntimeError(msg)
    return tensor


def _check_shape(parameter: str, given: torch.Size, name: str, shape: torch.Size, block_size: Blocks) -> None:
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
    blocks = block_counts(shape, block_size)
    if tuple(given) != blocks and not (len(given) == 0 and all(n == 1 for n in blocks)):
        msg = (
            f"{parameter} of shape {tuple(given)} is not accepted: "
            f"{name} of shape {tuple(shape)} in blocks of {tuple(block_size)} needs {blocks}"
        )
        raise RuntimeError(msg)


def _beside(parameter: Tensor, x: Tensor) -> Tensor:
    # A 0-d tensor left on the CPU would be a scalar to a CUDA division, which then multiplies by its reciprocal.
    return parameter if parameter.ndim else parameter.to(x.device)


def _scale(value: float, x: Tensor) -> Tensor:
    if isinstance(value, bool) or not isinstance(value, (int, float, Real)):
        msg = f"scale={value!r} is not accepted: give a number or a torch.Tensor, not {type(value).__name__}"
        raise TypeError(msg)
    try:
        s = torch.scalar_tensor(float(value), dtype=torch.float32)
    except (OverflowError, RuntimeError):
        msg = f"scale={value!r} is not accepted: give a number that float32 holds, or a torch.Tensor"
        raise ValueError(msg) from None
    return s if x.is_cpu else s.to(x.device)


def _zero_point(value: int, x: Tensor) -> Tensor | None:
    if isinstance(value, bool) or not isinstance(value, (int, Integral)):
        kind = "an int, or a tensor of integers or floats"
        msg = f"zero_point={value!r} is not accepted: give {kind}, not {type(value).__name__}"
        raise TypeError(msg)
    if not -(2**63) <= value < 2**63:
        msg = f"zero_point={value!r} is not accepted: give an int that int64 holds"
        raise ValueError(msg)
    return torch.scalar_tensor(int(value), dtype=torch.int64, device=x.device) if value else None
