"""Scale and zero point as a caller gives them, tensors or numbers, as the operators take them."""

from collections.abc import Sequence
from numbers import Integral, Real

import torch
from torch import Tensor

from halfeven.optimized.arguments import check_block_size, check_ints, check_tensor

__all__ = ["as_tensors"]


def as_tensors(
    name: str, x: Tensor, scale: Tensor | float, zero_point: Tensor | int, block_size: Sequence[int] | None
) -> tuple[Tensor, Tensor | None, Sequence[int] | None]:
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
