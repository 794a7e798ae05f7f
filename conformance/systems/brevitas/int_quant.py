"""What brevitas requires of IntQuant and its gradients, by calls and as operations."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured, on, says, silent
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

on(
    "brevitas",
    says(
        "nearest-code",
        "The input divided by the scale is rounded to the nearest integer by RoundSte, the default; a tie goes to the"
        " even one.",
        "IntQuant: float_to_int_impl; round_ste, which is torch.round",
    ),
    says(
        "odd-zero-point",
        "The zero point is added to the quotient before it is rounded, so an odd one turns ties.",
        "IntQuant: scale and zero-point of the input (the place of the zero point: measured)",
        basis="measured",
    ),
    says(
        "range",
        "The code is limited to the integers from min_int to max_int, by signed, narrow_range and bit width.",
        "IntQuant: narrow_range, signed; min_int and max_int",
    ),
    says(
        "huge-inputs",
        "Inputs however large, and the infinities, give the end of the range on their side.",
        "tensor_clamp: the result lies between the minimum and the maximum",
    ),
)


F32 = np.dtype(np.float32)
_DTYPES = (F32, np.dtype(np.float64), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_MODES = ("ROUND", "FLOOR", "CEIL", "ROUND_TO_ZERO", "DPU")
_FLAGS = ((True, False), (True, True), (False, False), (False, True))  # signed, narrow_range
_INF, _NAN = np.inf, np.nan


def _scalar(value: float, dtype: Any = F32) -> Array:
    return np.asarray(value, dtype)


def _near(values: Any, scale: float, dtype: Any = F32) -> Array:
    """The reals of codes, with the neighbours on both sides."""
    centre = (np.asarray(values, np.float64) * float(np.asarray(scale, dtype))).astype(dtype)
    return np.concatenate([centre, step(centre, np.asarray(-1)), step(centre, np.asarray(1))])


def _asked(x: Array, scale: float, zero_point: float, bit_width: int = 8, **given: Any) -> Arguments:
    arguments = {"scale": _scalar(scale, x.dtype), "zero_point": _scalar(zero_point, x.dtype)}
    return {**arguments, "bit_width": bit_width, "x": x, **given}


def _ties(bits: int) -> Iterator[Arguments]:
    halves = np.arange(-9, 9) + 0.5
    for dtype in _DTYPES:
        for scale in (1.0, 0.25, 0.1, 1 / 3):
            for mode in _MODES:
                yield _asked(_near([*halves, *range(-4, 5)], scale, dtype), scale, 0.0, bits, float_to_int=mode)


@documented(
    "brevitas/IntQuant.to_int",
    "function.ops_ste: round_ste, floor_ste, ceil_ste; function.ops: round_to_zero and dpu_round with their examples",
)
def rounding() -> Calls:
    """ROUND goes to the nearest integer and of a tie to the even one, FLOOR down, CEIL up, ROUND_TO_ZERO to zero; DPU
    is ROUND but for negative ties, which go up."""
    yield from _ties(5)


@measured("brevitas/IntQuant.to_int", "IntQuant.to_int, measured", aspect="zero-point-before-rounding")
def _zero_point() -> Calls:
    """The zero point is added to the quotient, and the sum is rounded; it need not be an integer."""
    halves = np.arange(-9, 9) + 0.5
    for dtype in _DTYPES:
        for zero_point in (1.0, -3.0, 2.0, 0.5, 0.25, -127.0, 100.0):
            for scale in (1.0, 0.1):
                yield _asked(_near(halves, scale, dtype), scale, zero_point)


def _ends() -> Iterator[Arguments]:
    for signed, narrow_range in _FLAGS:
        for bits in (1, 2, 4, 8, 12):
            top, full = 2 ** (bits - 1), 2**bits
            edges = [e + h for e in (-top, -top + 1, top - 1, 0, full - 1, full - 2) for h in (-0.6, -0.5, 0, 0.5, 0.6)]
            for mode in ("ROUND", "FLOOR", "CEIL"):
                flags = {"signed": signed, "narrow_range": narrow_range, "float_to_int": mode}
                yield _asked(_near(edges, 1.0), 1.0, 0.0, bits, **flags)


@documented("brevitas/IntQuant.to_int", "IntQuant: bit-width, signed, narrow_range; tensor_clamp", aspect="clamp")
def ends() -> Calls:
    """What is rounded is limited to min_int and max_int, both included."""
    yield from _ends()


@documented(
    "brevitas/IntQuant.to_int",
    "tensor_clamp: the result lies between the minimum and the maximum",
    aspect="huge-inputs",
)
def specials() -> Calls:
    """Inputs however large, and the infinities, give the end of the range on their side; NaN stays (measured)."""
    x = np.array([_NAN, _INF, -_INF, 3e38, -3e38, 2.0**31, 2.0**63, -(2.0**65)])
    for dtype in (F32, np.dtype(np.float64)):
        for mode in _MODES:
            yield _asked(x.astype(dtype), 0.5, 3.0, float_to_int=mode)


@measured("brevitas/IntQuant.to_int", "function.ops.round_to_zero: its example prints -0. (of -0.0: measured)")
def zeros() -> Calls:
    """What rounds to zero from below is -0.0 in every rounding; ROUND_TO_ZERO makes 0.0 of -0.0, as sign and magnitude
    are multiplied."""
    x = np.array([0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1e-45, -1e-45], F32)
    for mode in _MODES:
        for zero_point in (0.0, -0.0):
            yield _asked(x, 1.0, zero_point, float_to_int=mode)


@expected("brevitas/IntQuant.to_int", "IntQuant: scale and zero-point of the input tensor")
def shapes() -> Calls:
    """Scale and zero point broadcast to the input, whose shape the codes have."""
    for shape in ((), (0,), (3,), (2, 3), (2, 3, 2)):
        x = np.linspace(-9, 9, int(np.prod(shape)), dtype=F32).reshape(shape)
        yield _asked(x, 0.3, 1.0)
    x, scale = np.array([[1, -2, 3], [0.5, 9, -9]], F32), np.array([[0.5], [2]], F32)
    yield {"scale": scale, "zero_point": np.array([[1], [-3]], F32), "bit_width": 8, "x": x}


@expected("brevitas/IntQuant.to_int", "IntQuant: bit-width")
def refused_widths() -> Calls:
    """A bit-width is 1 or more."""
    for bits in (0, -1, -3):
        for signed, narrow_range in _FLAGS:
            x = np.array([1, -1, 0.3, -0.9, 0, _NAN], F32)
            yield _asked(x, 0.5, 0.0, bits, signed=signed, narrow_range=narrow_range)


def _misfits() -> Iterator[Arguments]:
    for scale, zero_point in (((3,), ()), ((), (3,)), ((2, 3), ())):
        parameters = {"scale": np.ones(scale, F32), "zero_point": np.zeros(zero_point, F32)}
        yield {**parameters, "bit_width": 8, "x": np.ones(2, F32)}


@measured("brevitas/IntQuant.to_int", "IntQuant.to_int, measured")
def refused_shapes() -> Calls:
    """A scale or zero point that does not broadcast with the input is refused."""
    yield from _misfits()


@measured("brevitas/IntQuant", "IntQuant.forward, measured", aspect="refused-shapes")
def refused_shapes_of_reals() -> Calls:
    """A scale or zero point that does not broadcast with the input is refused."""
    yield from _misfits()


@documented("brevitas/IntQuant", "IntQuant: example")
def example() -> Calls:
    """The document's example: at scale 0.01 and 4 narrow bits, 0.042, -0.053, 0.31, -0.44 become 0.04, -0.05, 0.07,
    -0.07."""
    x = np.array([0.042, -0.053, 0.31, -0.44], F32)
    yield _asked(x, 0.01, 0.0, 4, signed=True, narrow_range=True)


@documented(
    "brevitas/IntQuant",
    "IntQuant: quantized output in dequantized format; scale and zero-point (order: measured)",
    aspect="dequantized-value",
)
def reals() -> Calls:
    """The result is the code less the zero point, times the scale."""
    for dtype in _DTYPES:
        for scale in (0.1, 1 / 3, 0.0123):
            for zero_point in (0.0, 3.0, -7.0):
                yield _asked(_near(np.arange(-10, 11) * 0.7, scale, dtype), scale, zero_point, 5)
    for signed, narrow_range in _FLAGS:
        yield _asked(np.array([-99, -8, 0, 7, 14, 15, 99], F32), 1.0, 0.0, 4, signed=signed, narrow_range=narrow_range)
    yield _asked(np.array([-99, 99], F32), 1.0, 0.0, 4)
    for mode in _MODES[1:]:
        yield _asked(_near(np.arange(-9, 9) + 0.5, 0.1), 0.1, 1.0, 5, float_to_int=mode)


@measured("brevitas/IntQuant", "IntQuant, measured")
def fractional_zero_point() -> Calls:
    """A zero point that is no integer is taken off as it is: results lie between the multiples of the scale."""
    for zero_point in (0.5, 0.25, -1.5, 0.1):
        yield _asked(np.array([0.4, 0.6, 1.0, -3.3, 200, -0.1], F32), 1.0, zero_point)
        yield _asked(np.array([0.4, 0.6, 1.0, -3.3, 200, -0.1], F32), 0.3, zero_point)


@silent("brevitas/IntQuant", "IntQuant: scale")
def zero_scale() -> Calls:
    """What a scale of 0 gives; the document does not say."""
    yield _asked(np.array([1, 0, -1, _NAN, _INF], F32), 0.0, 0.0)
    yield _asked(np.array([1, 0, -1, -0.0], F32), -0.0, 3.0)


# IntQuant's gradients: one parameter per element, so that nothing is summed


def _graded(x: Array, scale: float, zero_point: float, bit_width: int = 8, **given: Any) -> Arguments:
    grad = np.linspace(-1.3, 2.1, x.size).astype(x.dtype).reshape(x.shape)
    parameters = {"scale": np.full_like(x, scale), "zero_point": np.full_like(x, zero_point)}
    return {"grad": grad, **parameters, "bit_width": bit_width, "x": x, **given}


@documented(
    "brevitas/IntQuant.backward",
    "function.ops_ste: straight-through estimators (the order of the operations: measured)",
    aspect="straight-through",
)
def inside() -> Calls:
    """Inside the range the rounding passes gradients through: x gets (g s) / s, the scale g (q - z) - g x / s, the zero
    point 0."""
    for dtype in _DTYPES:
        for scale in (1.0, 0.1, 1 / 3):
            for zero_point in (0.0, 3.0, 0.5):
                yield _graded(_near(np.arange(-9, 10) * 0.5, scale, dtype), scale, zero_point)


@documented(
    "brevitas/IntQuant.backward",
    "tensor_clamp: differentiable (the ends, and that it is the rounded number: measured)",
    aspect="clamp-mask",
)
def gradient_ends() -> Calls:
    """The rounded number decides: on and between the ends gradients pass, beyond them x gets 0, the scale g (q - z),
    the zero point -g s."""
    for arguments in _ends():
        if arguments["bit_width"] not in {2, 4, 8}:
            continue
        x = arguments["x"]
        given = {k: arguments[k] for k in ("signed", "narrow_range", "float_to_int")}
        yield _graded(x, 1.0, 0.0, arguments["bit_width"], **given)
        yield _graded((x * F32.type(0.1)).astype(F32), 0.1, 1.0, arguments["bit_width"], **given)
    yield _graded(np.array([-8, -99, 99], F32), 1.0, 0.0, 4)


@measured("brevitas/IntQuant.backward", "IntQuant.forward, measured", aspect="refused-shapes")
def gradient_misfits() -> Calls:
    """A scale or zero point that does not broadcast with the input is refused."""
    yield from ({"grad": np.ones(2, F32), **arguments} for arguments in _misfits())


@silent("brevitas/IntQuant.backward", "IntQuant", aspect="specials")
def gradient_specials() -> Calls:
    """What NaN, infinities and a scale of 0 give; the document does not say."""
    yield _graded(np.array([_NAN, _INF, -_INF, 0.0, -0.0], F32), 0.5, 1.0)
    yield _graded(np.array([1, -1, 0.0, -0.0], F32), 0.0, 0.0)


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
