"""brevitas: ``IntQuant``, its scale and zero point, and its gradients. Real per code, x̂ = (q - zero_point) * scale."""

from typing import Any

import numpy as np

from halfeven.reference.blocks import BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile

__all__ = [
    "BREVITAS",
    "fake_quantize",
    "int_quant",
    "int_quant_gradients",
    "int_scaling",
    "max_int",
    "min_int",
    "quantize",
    "rescaling_int_quant",
    "scale_shift_zero_point",
    "to_int",
    "to_int_0_13",
]

_INT_QUANT = "brevitas.core.quant.IntQuant"
_INPUT = AsComputed(dtype="input")


@formula(
    "brevitas.quantize",
    equation=r"q = \mathrm{clamp}(\lceil x / s + z \rfloor,\ q_{min},\ q_{max})",
    basis=_INPUT,
    source=f"{_INT_QUANT}.to_int",
)
def quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x`` as floats of its dtype: the zero point is added to the quotient, then rounded, then limited.

    Arguments and errors as in ``Profile.quantize``.
    """
    t = x.dtype
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        z = per_element(zero_point, x.shape, block_size).astype(t)
        min_int, max_int = np.asarray(grid.qmin, t), np.asarray(grid.qmax, t)
        y = np.rint(x / s + z)
        return np.where(y < min_int, min_int, np.where(y > max_int, max_int, y))


@formula(
    "brevitas.fake_quantize",
    equation=r"\hat x = (\mathrm{clamp}(\lceil x / s + z \rfloor,\ q_{min},\ q_{max}) - z) * s",
    basis=_INPUT,
    source=f"{_INT_QUANT}.forward",
)
def fake_quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """``x`` on the grid, in its dtype. Arguments and errors as in ``Profile.quantize``."""
    t = x.dtype
    y_int = quantize(x, scale, zero_point, grid, block_size)
    with np.errstate(all="ignore"):
        s = per_element(scale, x.shape, block_size).astype(t)
        z = per_element(zero_point, x.shape, block_size).astype(t)
        reals: Array = (y_int - z) * s
    return reals


def _grids(bits: int) -> tuple[Grid, ...]:
    signed = Grid.from_bitwidth(bits, signed=True)
    return signed, Grid(signed.qmin + 1, signed.qmax), Grid(0, 2**bits - 1), Grid(0, max(2**bits - 2, 0))


BREVITAS = Profile(
    name="brevitas",
    title="clamp(round(x / s + zero_point), qmin, qmax); (q - zero_point) * s",
    source=f"brevitas: {_INT_QUANT}",
    model=EvaluationModel(zero_point="before-rounding"),
    dtypes=("float32", "float64", "float16", "bfloat16"),
    scale_dtype="input",
    codes="input",
    grids=tuple(g for b in (8, 4, *(b for b in range(2, 17) if b not in {8, 4})) for g in _grids(b)),
    numpy={
        "quantize": "np.clip(np.rint(x / scale + np.float32(zero_point)), qmin, qmax)",
        "fake_quantize": (
            "(np.clip(np.rint(x / scale + np.float32(zero_point)), qmin, qmax) - np.float32(zero_point)) * scale"
        ),
    },
    transcriptions={"quantize": quantize, "fake_quantize": fake_quantize},
)


@formula(
    "brevitas.max_int",
    equation=r"2^{b-1} - 1;\quad \text{unsigned: } 2^b - 1 - [\text{narrow}]",
    basis=AsComputed(dtype="float32"),
    source="brevitas.function.ops.max_int",
)
def max_int(signed: bool, narrow_range: bool, bit_width: int) -> Array:
    """The highest code, 0-d float32; a narrow range costs an unsigned grid its top.

    Args:
        signed: codes of both signs.
        narrow_range: one code fewer: the lowest of a signed, the highest of an unsigned grid.
        bit_width: width of the codes.

    Raises:
        TypeError: ``bit_width`` is no int.
        ValueError: ``bit_width`` is below 1.
    """
    if signed:
        return _float32(_two_to(bit_width) / 2 - 1)
    return _float32(_two_to(bit_width) - 1 - narrow_range)


@formula(
    "brevitas.min_int",
    equation=r"-2^{b-1} + [\text{narrow}];\quad \text{unsigned: } 0",
    basis=AsComputed(dtype="float32"),
    source="brevitas.function.ops.min_int",
)
def min_int(signed: bool, narrow_range: bool, bit_width: int) -> Array:
    """The lowest code, 0-d float32; a narrow range costs a signed grid its bottom.

    Arguments and errors as in ``max_int``.
    """
    return _float32(-_two_to(bit_width) / 2 + narrow_range) if signed else _float32(0 * _two_to(bit_width))


@formula(
    "brevitas.IntScaling",
    equation=r"-q_{min}\ \text{if signed, else } q_{max}",
    basis=AsComputed(dtype="float32"),
    source="brevitas.core.scaling.int_scaling.IntScaling",
)
def int_scaling(bit_width: int, signed: bool, narrow_range: bool) -> Array:
    """The integer that the threshold is divided by, 0-d float32: 128, 127, 255 or 254 for 8 bits.

    Arguments and errors as in ``max_int``.
    """
    return -min_int(signed, narrow_range, bit_width) if signed else max_int(signed, narrow_range, bit_width)


def _two_to(bit_width: int) -> float:
    if isinstance(bit_width, bool) or not isinstance(bit_width, int):
        msg = f"bit_width={bit_width!r} is not accepted: give an int; the power of a fraction is not derived here"
        raise TypeError(msg)
    if bit_width < 1:
        msg = f"bit_width={bit_width} is not accepted: give 1 or more"
        raise ValueError(msg)
    return float(np.ldexp(1.0, bit_width))


def _check_shapes(x: Array, **parameters: Array) -> None:
    for name, parameter in parameters.items():
        try:
            np.broadcast_shapes(x.shape, parameter.shape)
        except ValueError:
            msg = f"{name} of shape {parameter.shape} is not accepted: it does not broadcast with {x.shape}"
            raise RuntimeError(msg) from None


def _float32(value: float) -> Array:
    return np.asarray(value, np.float32)


def _float_to_int(y: Array, float_to_int: str) -> Array:
    match float_to_int:
        case "ROUND":
            return np.asarray(np.rint(y))
        case "FLOOR":
            return np.asarray(np.floor(y))
        case "CEIL":
            return np.asarray(np.ceil(y))
        case "ROUND_TO_ZERO":
            return np.asarray(np.sign(y) * np.floor(np.abs(y)))
        case "DPU":
            negative_tie = (y < 0) & (y - np.floor(y) == np.asarray(0.5, y.dtype))
            return np.where(negative_tie, np.ceil(y), np.rint(y))
        case _:
            msg = f"float_to_int={float_to_int!r} is not accepted: give ROUND, FLOOR, CEIL, ROUND_TO_ZERO or DPU"
            raise ValueError(msg)


@formula(
    "brevitas.IntQuant.to_int",
    equation=r"q = \mathrm{clamp}(\mathrm{float\_to\_int}(x / s + z),\ q_{min},\ q_{max})",
    basis=_INPUT,
    source=f"{_INT_QUANT}.to_int",
)
def to_int(
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Array:
    """Codes of ``x`` as floats of its dtype; NaN stays NaN.

    Args:
        scale: real per code, of the dtype of ``x``, broadcastable to it.
        zero_point: in codes, likewise; it need not be an integer (measured).
        bit_width: width of the codes.
        x: float16, bfloat16, float32 or float64 of any shape.
        signed: codes of both signs.
        narrow_range: one code fewer: the lowest of a signed, the highest of an unsigned grid.
        float_to_int: ROUND (ties to even), FLOOR, CEIL, ROUND_TO_ZERO, or DPU (a negative tie goes up).

    Raises:
        TypeError: ``bit_width`` is no int.
        ValueError: ``bit_width`` is below 1; ``float_to_int`` is none of these.
        RuntimeError: ``scale`` or ``zero_point`` does not broadcast with ``x``.
    """
    _check_shapes(x, scale=scale, zero_point=zero_point)
    t = x.dtype
    with np.errstate(all="ignore"):
        y = x / scale
        y = y + zero_point
        min_int_val = min_int(signed, narrow_range, bit_width).astype(t)
        max_int_val = max_int(signed, narrow_range, bit_width).astype(t)
        y = _float_to_int(y, float_to_int)
        y = np.where(y > max_int_val, max_int_val, y)
        return np.where(y < min_int_val, min_int_val, y)


@formula(
    "brevitas.IntQuant.to_int@0.13",
    equation=r"q = \mathrm{clamp}(\mathrm{float\_to\_int}(x / s + z),\ q_{min},\ q_{max})",
    basis=_INPUT,
    source="brevitas 0.13.4, measured",
)
def to_int_0_13(
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Array:
    """A ``bit_width`` below 1 passes: the ends are fractions then, the lower one wins, and unsigned is -0.0 below 0."""
    if bit_width >= 1:
        return to_int(scale, zero_point, bit_width, x, signed, narrow_range, float_to_int)
    _check_shapes(x, scale=scale, zero_point=zero_point)
    codes = float(np.ldexp(1.0, bit_width))
    low = _float32(-codes / 2 + narrow_range if signed else 0.0 * bit_width).astype(x.dtype)
    high = _float32(codes / 2 - 1 if signed else codes - 1 - narrow_range).astype(x.dtype)
    with np.errstate(all="ignore"):
        rounded = _float_to_int(x / scale + zero_point, float_to_int)
        limited = np.where(rounded > high, high, rounded)
        return np.where(limited < low, low, limited)


@formula(
    "brevitas.IntQuant",
    equation=r"\hat x = (\mathrm{clamp}(\mathrm{float\_to\_int}(x / s + z),\ q_{min},\ q_{max}) - z) * s",
    basis=_INPUT,
    source=f"{_INT_QUANT}.forward",
)
def int_quant(
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Array:
    """``x`` on the grid, in its dtype. Arguments and errors as in ``to_int``."""
    y_int = to_int(scale, zero_point, bit_width, x, signed, narrow_range, float_to_int)
    with np.errstate(all="ignore"):
        reals: Array = (y_int - zero_point) * scale
    return reals


@formula(
    "brevitas.IntQuant.backward",
    equation=r"dx = (m\,(g s)) / s,\ ds = g (q - z) - m\,(g s) (x / s) / s,\ dz = m\,(g s) - g s,\quad "
    r"m = [q_{min} \le \mathrm{float\_to\_int}(x / s + z) \le q_{max}]",
    basis=_INPUT,
    source=f"{_INT_QUANT}: straight-through rounding (round_ste), differentiable tensor_clamp (order: measured)",
)
def int_quant_gradients(
    grad: Array,
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> tuple[Array, Array, Array]:
    """Gradients of ``x``, ``scale`` and ``zero_point``, per element, before any sum over what shares a parameter.

    Args:
        grad: the gradient of the result, of the dtype and shape of ``x``.
        scale: real per code, of the dtype and shape of ``x``.
        zero_point: in codes, likewise.
        bit_width: as in ``to_int``, as the rest, and the errors.
        x: see there.
        signed: see there.
        narrow_range: see there.
        float_to_int: see there.

    Returns:
        Three arrays of the dtype and shape of ``x``.
    """
    y_int = to_int(scale, zero_point, bit_width, x, signed, narrow_range, float_to_int)
    t = x.dtype
    _check_shapes(x, grad=grad)
    with np.errstate(all="ignore"):
        y = _float_to_int(x / scale + zero_point, float_to_int)
        outside = (y > max_int(signed, narrow_range, bit_width).astype(t)) | (
            y < min_int(signed, narrow_range, bit_width).astype(t)
        )
        difference = grad * scale  # of y_int - zero_point
        quotient = np.where(outside, np.zeros((), t), difference)  # through the clamp, then straight through
        grad_x: Array = quotient / scale
        grad_scale: Array = grad * (y_int - zero_point) + -quotient * (x / scale / scale)
        grad_zero_point: Array = -difference + quotient
    return grad_x, grad_scale, grad_zero_point


@formula(
    "brevitas.RescalingIntQuant",
    equation=r"s = |\text{threshold} / \text{int\_threshold}|,\ z = 0,\ \hat x = \mathrm{IntQuant}(s, z, b, x)",
    basis=_INPUT,
    source="brevitas.core.quant.RescalingIntQuant, with ConstScaling, IntScaling, ZeroZeroPoint and BitWidthConst",
)
def rescaling_int_quant(
    x: Array, threshold: Array, bit_width: int, signed: bool = True, narrow_range: bool = False
) -> tuple[Array, Array, Array, Array]:
    """``x`` on the grid of a threshold, with what a quantizer returns beside it.

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
    int_threshold = int_scaling(bit_width, signed, narrow_range)
    with np.errstate(all="ignore"):
        scale = np.abs(threshold / int_threshold)
    zero_point = _float32(0)
    y = int_quant(scale, zero_point, bit_width, x, signed, narrow_range)
    return y, scale, zero_point, _float32(bit_width)


@formula(
    "brevitas.scale_shift_zero_point",
    equation=r"z = \mathrm{clamp}(\lceil z_r / s + q_{min} \rfloor,\ q_{min},\ q_{max})\ \text{or}\ z_r / s + q_{min}",
    basis=_INPUT,
    source="brevitas.core.zero_point: the zero point of a statistic, quantize_zero_point",
)
def scale_shift_zero_point(
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
    lowest: Any = min_int(signed, narrow_range, bit_width).astype(zero_point.dtype)
    if quantize_zero_point:
        return to_int(scale, lowest, bit_width, zero_point, signed, narrow_range)
    _check_shapes(zero_point, scale=scale)
    with np.errstate(all="ignore"):
        out: Array = zero_point / scale + lowest
    return out
