"""AIMET: grids, scales and offsets, as a quantizer of the installed library gives them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


__all__ = ["ANSWERS"]


def grid(bitwidth: Any = None, num_steps: Any = None, signed: bool = False) -> tuple[int, int]:
    """What the two largest reals become: the grid's ends."""
    import torch
    from aimet_torch.quantization import affine

    x = torch.tensor([-1e300, 1e300], dtype=torch.float64)
    given = {"bitwidth": bitwidth, "num_steps": num_steps}
    given = {name: value for name, value in given.items() if value is not None}
    q = affine.quantize(x, torch.tensor(1.0), torch.tensor(0.0), **given, signed=signed)
    return int(q[0]), int(q[1])


def bitwidth_grid(bitwidth: Any, symmetric: bool) -> tuple[int, int]:
    """The ends that a quantizer keeps."""
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize((), bitwidth, symmetric)
    return quantizer.qmin, quantizer.qmax


def min_scale(num_steps: int) -> float:
    """The library's own function; a quantizer of one number shows it in float32."""
    from aimet_torch.common.quantsim import _get_minimum_scale

    return float(_get_minimum_scale(num_steps))


def scale_and_offset(min: Tensor, max: Tensor, qmin: int, qmax: int, symmetric: bool) -> tuple[Tensor, Tensor]:  # noqa: A002
    """A quantizer with its minimum and maximum assigned."""
    import torch
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize(tuple(min.shape), qmin, qmax, symmetric)
    quantizer.min, quantizer.max = torch.nn.Parameter(min.clone()), torch.nn.Parameter(max.clone())
    return quantizer.get_scale().detach(), quantizer.get_offset().detach()


def recalibrated_range(
    min: Tensor,  # noqa: A002
    max: Tensor,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    zero_point_shift: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """The range that such a quantizer says it has."""
    import torch
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize(tuple(min.shape), qmin, qmax, symmetric, zero_point_shift=zero_point_shift)
    quantizer.min, quantizer.max = torch.nn.Parameter(min.clone()), torch.nn.Parameter(max.clone())
    return quantizer.get_min().detach(), quantizer.get_max().detach()


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/grid": grid,
        "aimet/bitwidth_grid": bitwidth_grid,
        "aimet/min_scale": min_scale,
        "aimet/scale_and_offset": scale_and_offset,
        "aimet/recalibrated_range": recalibrated_range,
    },
}
