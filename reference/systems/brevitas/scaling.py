"""brevitas: ``RescalingIntQuant``, and the zero point that a statistic becomes. Real per code."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.systems.brevitas.int_grid import ends_of, int_scaling
from halfeven.reference.systems.brevitas.int_quant import Rounded, Shifted, check_shapes, codes, reals

__all__ = ["RescalingIntQuant", "rescaling_int_quant", "scale_shift_zero_point"]

_INPUT = AsComputed(dtype="input")


@dataclass(frozen=True)
class RescalingIntQuant(Rounded):
    """The choices in making a scale of a threshold, and in quantizing by it."""

    sign: str = choice(
        {
            "left-out": "takes the magnitude of the scale",
            "kept": "keeps the sign of the threshold in the scale",
        }
    )
    scale: str = choice(
        {
            "divide": "divides the threshold by the integer one",
            "reciprocal": "multiplies the threshold by the rounded reciprocal of the integer one",
        }
    )


@formula(
    "brevitas/RescalingIntQuant",
    equation=r"s = |\text{threshold} / \text{int\_threshold}|,\ z = 0,\ \hat x = \mathrm{IntQuant}(s, z, b, x)",
    basis=_INPUT,
    source="brevitas.core.quant.RescalingIntQuant, with ConstScaling, IntScaling, ZeroZeroPoint and BitWidthConst",
    behaviour=RescalingIntQuant(),
)
def rescaling_int_quant(
    b: RescalingIntQuant,
    x: Array,
    threshold: Array,
    bit_width: int,
    signed: bool = True,
    narrow_range: bool = False,
) -> tuple[Array, Array, Array, Array]:
    """``x`` on the grid of a threshold, with what a quantizer returns with it.

    Args:
        x: float32 of any shape.
        threshold: 0-d float32, in reals: the magnitude of the lowest code of a signed, of the highest of another grid;
            its sign does not count (measured).
        bit_width: width of the codes; errors as in ``to_int``.
        signed: codes of both signs.
        narrow_range: one code fewer: the lowest of a signed, the highest of an unsigned grid.

    Returns:
        The result, of the shape of ``x``; scale (real per code), zero point and bit width, 0-d; all float32.
    """
    int_threshold = int_scaling(b, bit_width, signed, narrow_range)
    zero_point = np.asarray(0, np.float32)
    with np.errstate(all="ignore"):
        scale = threshold / int_threshold if b.scale == "divide" else threshold * (np.float32(1) / int_threshold)
        scale = np.asarray(np.abs(scale) if b.sign == "left-out" else scale)
        ends = ends_of(b, x, bit_width, signed, narrow_range)
        y_int = codes(Shifted(division=b.division, ties=b.ties), x, scale, zero_point, ends)
        y = reals(y_int, scale, zero_point)
    return y, scale, zero_point, np.asarray(bit_width, np.float32)


@formula(
    "brevitas/scale_shift_zero_point",
    equation=r"z = \mathrm{clamp}(\lceil z_r / s + q_{min} \rfloor,\ q_{min},\ q_{max})\ \text{or}\ z_r / s + q_{min}",
    basis=_INPUT,
    source="brevitas.core.zero_point: the zero point of a statistic, quantize_zero_point",
    behaviour=Shifted(),
)
def scale_shift_zero_point(
    b: Shifted,
    zero_point: Array,
    scale: Array,
    bit_width: int,
    signed: bool = True,
    narrow_range: bool = False,
    quantize_zero_point: bool = True,
) -> Array:
    """The zero point in codes of a real one, -min(x): the codes that ``IntQuant`` gives it with zero point q_min.

    Args:
        zero_point: in reals, of any float dtype and at least one dimension.
        scale: real per code, of the same dtype and shape.
        bit_width: width of the codes; errors as in ``to_int``.
        signed: codes of both signs.
        narrow_range: one code fewer: the lowest of a signed, the highest of an unsigned grid.
        quantize_zero_point: whether it is rounded and limited.

    Returns:
        Codes, as floats of the dtype and shape of ``zero_point``.
    """
    check_shapes(zero_point, scale=scale)
    ends = ends_of(b, zero_point, bit_width, signed, narrow_range)
    with np.errstate(all="ignore"):
        if quantize_zero_point:
            return codes(b, zero_point, scale, ends[0], ends)
        out: Array = zero_point / scale + ends[0]
    return out
