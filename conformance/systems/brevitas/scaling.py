"""brevitas: ``RescalingIntQuant``, and the zero point that a statistic becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, Calls, documented, measured
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

F32 = np.dtype(np.float32)
_DTYPES = (F32, np.dtype(np.float64), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_FLAGS = ((True, False), (True, True), (False, False), (False, True))  # signed, narrow_range


def _scalar(value: float, dtype: Any = F32) -> Array:
    return np.asarray(value, dtype)


def _near(values: Any, scale: float, dtype: Any = F32) -> Array:
    """The reals of codes, with the neighbours on both sides."""
    centre = (np.asarray(values, np.float64) * float(np.asarray(scale, dtype))).astype(dtype)
    return np.concatenate([centre, step(centre, np.asarray(-1)), step(centre, np.asarray(1))])


@documented("brevitas/RescalingIntQuant", "RescalingIntQuant: example")
def example() -> Calls:
    """The document's example: threshold 0.1 and 4 narrow bits give the scale 0.0143 and 0.0429, -0.0571, 0.1, -0.1."""
    x = np.array([0.042, -0.053, 0.31, -0.44], F32)
    yield {"x": x, "threshold": _scalar(0.1), "bit_width": 4, "signed": True, "narrow_range": True}


@documented("brevitas/RescalingIntQuant", "RescalingIntQuant: note on the scale", aspect="scale")
def thresholds() -> Calls:
    """The scale is the threshold over the integer threshold, without its sign (measured), the zero point 0."""
    x = np.array([0.042, -0.053, 0.31, -0.44, 1, -1, 3, -3, 7], F32)
    yield {"x": x, "threshold": _scalar(1.0), "bit_width": 4}
    for threshold in (1.0, 0.1, 3.0, 0.7):
        for bit_width in (8, 4, 2):
            for signed, narrow_range in _FLAGS:
                flags = {"signed": signed, "narrow_range": narrow_range}
                yield {"x": x, "threshold": _scalar(threshold), "bit_width": bit_width, **flags}
    for threshold in (-1.0, -0.0, 0.0):
        for signed, narrow_range in _FLAGS:
            flags = {"signed": signed, "narrow_range": narrow_range}
            yield {"x": x, "threshold": _scalar(threshold), "bit_width": 4, **flags}
    yield {"x": x, "threshold": _scalar(1.0), "bit_width": 1, "signed": True, "narrow_range": True}
    for threshold in (1.0, 7 / 3, 0.7):  # ties of the quotient, and next to them
        for signed, narrow_range in _FLAGS:
            steps = {(True, False): 8, (True, True): 7, (False, False): 15, (False, True): 14}[signed, narrow_range]
            halves = _near(np.arange(-9, 9) + 0.5, float(F32.type(threshold) / F32.type(steps)))
            flags = {"signed": signed, "narrow_range": narrow_range}
            yield {"x": halves, "threshold": _scalar(threshold), "bit_width": 4, **flags}


def _zero_points(**given: Any) -> Iterator[Arguments]:
    for dtype in _DTYPES:
        for scale in (1.0, 0.1, 1 / 3):
            for signed, narrow_range in _FLAGS:
                zero_point = _near([0, 0.5, 1.5, 2.5, 7.5, 15.5, 100, 300, -3], scale, dtype)
                parameters = {"zero_point": zero_point, "scale": np.full_like(zero_point, scale), "bit_width": 4}
                yield {**parameters, "signed": signed, "narrow_range": narrow_range, **given}


@measured("brevitas/scale_shift_zero_point", "core.zero_point: quantize_zero_point, measured")
def quantized() -> Calls:
    """A real zero point becomes the code that it has on a grid whose own zero point is the lowest code: round(z / s +
    q_min), limited."""
    yield from _zero_points(quantize_zero_point=True)
    yield {"zero_point": np.array([0.5, 300], F32), "scale": np.ones(2, F32), "bit_width": 4}
    yield {"zero_point": np.array([0.5, 2.5, 100, 300], F32), "scale": np.full(4, 0.7, F32), "bit_width": 8}


@measured("brevitas/scale_shift_zero_point", "core.zero_point, measured")
def refused_shapes() -> Calls:
    """A scale that does not broadcast with the zero point is refused."""
    yield {"zero_point": np.ones(2, F32), "scale": np.ones(3, F32), "bit_width": 4}


@measured("brevitas/scale_shift_zero_point", "core.zero_point: quantize_zero_point, measured")
def not_quantized() -> Calls:
    """Without quantize_zero_point it is z / s + q_min, neither rounded nor limited."""
    yield from _zero_points(quantize_zero_point=False)
    given = {"zero_point": np.array([0.5, 300], F32), "scale": np.full(2, 0.7, F32), "bit_width": 8}
    yield {**given, "quantize_zero_point": False}


def _rescaling_int_quant(
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


def _scale_shift_zero_point(
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


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "brevitas": {
        "brevitas/RescalingIntQuant": _rescaling_int_quant,
        "brevitas/scale_shift_zero_point": _scale_shift_zero_point,
    },
}
