"""brevitas: its modules and functions, called with the formulas' arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from torch import Tensor


__all__ = ["ANSWERS"]


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


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "brevitas": {
        "brevitas/IntQuant.to_int": to_int,
        "brevitas/IntQuant": int_quant,
        "brevitas/IntQuant.backward": int_quant_gradients,
    },
}
