"""brevitas: its modules and functions, called with the formulas' arguments."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

__all__ = ["FUNCTIONS"]


def max_int(signed: bool, narrow_range: bool, bit_width: int) -> Any:
    """``function.ops.max_int``."""
    import torch
    from brevitas.function.ops import max_int

    return max_int(signed, narrow_range, torch.tensor(float(bit_width)))


def min_int(signed: bool, narrow_range: bool, bit_width: int) -> Any:
    """``function.ops.min_int``."""
    import torch
    from brevitas.function.ops import min_int

    return min_int(signed, narrow_range, torch.tensor(float(bit_width)))


def int_scaling(bit_width: int, signed: bool, narrow_range: bool) -> Any:
    """``IntScaling``."""
    import torch
    from brevitas.core.scaling import IntScaling

    return IntScaling(narrow_range, signed)(torch.tensor(float(bit_width)))


def to_int(
    scale: Tensor,
    zero_point: Tensor,
    bit_width: int,
    x: Tensor,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Any:
    """``IntQuant.to_int``."""
    import torch
    from brevitas.core import function_wrapper as wrapper
    from brevitas.core.quant import IntQuant

    name = {"ROUND": "Round", "FLOOR": "Floor", "CEIL": "Ceil", "ROUND_TO_ZERO": "RoundToZero", "DPU": "DPURound"}
    rounding = getattr(wrapper, f"{name[float_to_int]}Ste")()
    quant = IntQuant(narrow_range, signed, wrapper.Identity(), rounding)
    return quant.to_int(scale, zero_point, torch.tensor(float(bit_width)), x)


def int_quant(
    scale: Tensor,
    zero_point: Tensor,
    bit_width: int,
    x: Tensor,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Any:
    """``IntQuant``."""
    import torch
    from brevitas.core import function_wrapper as wrapper
    from brevitas.core.quant import IntQuant

    name = {"ROUND": "Round", "FLOOR": "Floor", "CEIL": "Ceil", "ROUND_TO_ZERO": "RoundToZero", "DPU": "DPURound"}
    rounding = getattr(wrapper, f"{name[float_to_int]}Ste")()
    return IntQuant(narrow_range, signed, wrapper.Identity(), rounding)(
        scale, zero_point, torch.tensor(float(bit_width)), x
    )


def int_quant_gradients(
    grad: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    bit_width: int,
    x: Tensor,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Any:
    """The gradients of ``IntQuant``."""
    import torch
    from brevitas.core import function_wrapper as wrapper
    from brevitas.core.quant import IntQuant

    name = {"ROUND": "Round", "FLOOR": "Floor", "CEIL": "Ceil", "ROUND_TO_ZERO": "RoundToZero", "DPU": "DPURound"}
    rounding = getattr(wrapper, f"{name[float_to_int]}Ste")()
    x, scale, zero_point = (t.detach().clone().requires_grad_() for t in (x, scale, zero_point))
    quant = IntQuant(narrow_range, signed, wrapper.Identity(), rounding)
    y = quant(scale, zero_point, torch.tensor(float(bit_width)), x)
    return torch.autograd.grad(y, (x, scale, zero_point), grad)


def rescaling_int_quant(
    x: Tensor, threshold: Tensor, bit_width: int, signed: bool = True, narrow_range: bool = False
) -> Any:
    """``RescalingIntQuant`` with a constant threshold."""
    from brevitas.core.bit_width import BitWidthConst
    from brevitas.core.function_wrapper import Identity
    from brevitas.core.quant import IntQuant, RescalingIntQuant
    from brevitas.core.scaling import ConstScaling, IntScaling
    from brevitas.core.zero_point import ZeroZeroPoint

    quant = RescalingIntQuant(
        IntQuant(narrow_range, signed, Identity()),
        ConstScaling(threshold),
        IntScaling(narrow_range, signed),
        ZeroZeroPoint(),
        BitWidthConst(bit_width),
    )
    return quant(x)


def scale_shift_zero_point(
    zero_point: Tensor,
    scale: Tensor,
    bit_width: int,
    signed: bool = True,
    narrow_range: bool = False,
    quantize_zero_point: bool = True,
) -> Any:
    """What the zero points of statistics share."""
    import torch
    from brevitas.core.function_wrapper import Identity
    from brevitas.core.quant import IntQuant
    from brevitas.core.zero_point import _ScaleShiftZeroPoint

    shift = _ScaleShiftZeroPoint(IntQuant(narrow_range, signed, Identity()), quantize_zero_point)
    return shift(zero_point, scale, torch.tensor(float(bit_width)))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "brevitas.max_int": max_int,
    "brevitas.min_int": min_int,
    "brevitas.IntScaling": int_scaling,
    "brevitas.IntQuant.to_int": to_int,
    "brevitas.IntQuant": int_quant,
    "brevitas.IntQuant.backward": int_quant_gradients,
    "brevitas.RescalingIntQuant": rescaling_int_quant,
    "brevitas.scale_shift_zero_point": scale_shift_zero_point,
}
