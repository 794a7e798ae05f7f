"""brevitas: ``IntQuant`` and its gradients. Real per code, x̂ = (q - zero_point) * scale."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.affine import spread
from halfeven.reference.behaviour import choice, roundings
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.brevitas.int_grid import IntGrid, ends_of

__all__ = [
    "BREVITAS",
    "IntQuant",
    "IntQuantGradients",
    "Rounded",
    "Shifted",
    "ToInt",
    "check_shapes",
    "codes",
    "int_quant",
    "int_quant_gradients",
    "reals",
    "to_int",
]

_INT_QUANT = "brevitas.core.quant.IntQuant"
_INPUT = AsComputed(dtype="input")


@dataclass(frozen=True)
class Rounded(IntGrid):
    """The choices in dividing and rounding."""

    division: str = choice(
        {
            "divide": "divides by the scale",
            "reciprocal": "multiplies by the rounded reciprocal of the scale",
        }
    )
    ties: str = roundings("where it is asked to ROUND")


@dataclass(frozen=True)
class Shifted(Rounded):
    """The choices where there is a zero point."""

    zero_point: str = choice(
        {
            "before-rounding": "adds the zero point before rounding",
            "after-rounding": "adds the zero point after rounding",
        }
    )


@dataclass(frozen=True)
class IntQuant(Shifted):
    """The choices in quantizing."""

    nan: str = choice(
        {
            "stays": "keeps NaN",
            "lowest": "gives NaN the lowest code",
        }
    )


@dataclass(frozen=True)
class ToInt(IntQuant):
    """The choices in what is asked for the codes."""

    below_one: str = choice(
        {
            "refused": "refuses a bit_width below 1",
            "computed": "computes the ends of a bit_width below 1, fractions, of which the lower one wins",
        }
    )


@dataclass(frozen=True)
class IntQuantGradients(Shifted):
    """The choices in the gradients."""

    ends: str = choice(
        {
            "inside": "passes the gradient on at the ends of the grid",
            "outside": "passes no gradient on at the ends of the grid",
        }
    )
    square: str = choice(
        {
            "twice": "divides by the scale twice for the gradient of the scale",
            "once": "divides by the square of the scale for its gradient",
        }
    )


def codes(b: Shifted, x: Array, s: Array, z: Array, ends: tuple[Array, Array], float_to_int: str = "ROUND") -> Array:
    """Codes of ``x`` as floats of its dtype; s, z and the ends are of it too. The lower end wins over the upper one."""
    y_int = _before_clamp(b, x, s, z, float_to_int)
    low, high = ends
    y_int = np.where(y_int > high, high, y_int)
    y_int = np.where(y_int < low, low, y_int)
    return np.where(np.isnan(y_int), low, y_int) if isinstance(b, IntQuant) and b.nan == "lowest" else y_int


def _before_clamp(b: Shifted, x: Array, s: Array, z: Array, float_to_int: str) -> Array:
    y = x / s if b.division == "divide" else x * (np.ones((), s.dtype) / s)
    if b.zero_point == "before-rounding":
        return _float_to_int(b, y + z, float_to_int)
    return np.asarray(_float_to_int(b, y, float_to_int) + z)


def reals(y_int: Array, s: Array, z: Array) -> Array:
    """The reals of codes; all of one dtype."""
    return np.asarray((y_int - z) * s)


def _float_to_int(b: Rounded, y: Array, float_to_int: str) -> Array:
    match float_to_int:
        case "ROUND":
            return np.asarray(ROUNDINGS[b.ties](y))
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


def _grids(bits: int) -> tuple[Grid, ...]:
    signed = Grid.from_bitwidth(bits, signed=True)
    return signed, Grid(signed.qmin + 1, signed.qmax), Grid(0, 2**bits - 1), Grid(0, 2**bits - 2)


BREVITAS = Profile(
    name="brevitas",
    title="clamp(round(x / s + zero_point), qmin, qmax); (q - zero_point) * s",
    source=f"brevitas: {_INT_QUANT}",
    model=EvaluationModel(zero_point="before-rounding"),
    dtypes=("float32", "float64", "float16", "bfloat16"),
    scale_dtype="input",
    codes="input",
    operations=("quantize", "fake_quantize"),
    grids=tuple(g for b in range(2, 17) for g in _grids(b)),
)


def check_shapes(x: Array, **parameters: Array) -> None:
    """Refuse what does not broadcast with ``x``.

    Raises:
        RuntimeError: a parameter does not.
    """
    for name, parameter in parameters.items():
        try:
            np.broadcast_shapes(x.shape, parameter.shape)
        except ValueError:
            msg = f"{name} of shape {parameter.shape} is not accepted: it does not broadcast with {x.shape}"
            raise RuntimeError(msg) from None


def _arguments(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    s, z = (spread(p, x.shape, block_size) for p in (scale, zero))
    signed, bits = grid.qmin < 0, grid.bits
    narrow = grid != Grid.from_bitwidth(bits, signed=signed)
    if grid not in _grids(bits):
        msg = f"grid {grid} is not accepted: the functions have full and narrow ranges"
        raise ValueError(msg)
    grid_of = {"bit_width": bits, "signed": signed, "narrow_range": narrow}
    return {"x": x, "scale": s, "zero_point": z.astype(x.dtype)} | grid_of


@formula(
    "brevitas/IntQuant.to_int",
    equation=r"q = \mathrm{clamp}(\mathrm{float\_to\_int}(x / s + z),\ q_{min},\ q_{max})",
    basis=_INPUT,
    source=f"{_INT_QUANT}.to_int",
    behaviour=ToInt(),
    versions={"0.13": (ToInt(below_one="computed"), "brevitas 0.13.4, measured")},
    affine=AffineView("brevitas", "quantize", _arguments),
)
def to_int(
    b: ToInt,
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
    check_shapes(x, scale=scale, zero_point=zero_point)
    ends = ends_of(b, x, bit_width, signed, narrow_range, least=1 if b.below_one == "refused" else None)
    with np.errstate(all="ignore"):
        return codes(b, x, scale, zero_point, ends, float_to_int)


@formula(
    "brevitas/IntQuant",
    equation=r"\hat x = (\mathrm{clamp}(\mathrm{float\_to\_int}(x / s + z),\ q_{min},\ q_{max}) - z) * s",
    basis=_INPUT,
    source=f"{_INT_QUANT}.forward",
    behaviour=IntQuant(),
    affine=AffineView("brevitas", "fake_quantize", _arguments),
)
def int_quant(
    b: IntQuant,
    scale: Array,
    zero_point: Array,
    bit_width: int,
    x: Array,
    signed: bool = True,
    narrow_range: bool = False,
    float_to_int: str = "ROUND",
) -> Array:
    """``x`` on the grid, in its dtype. Arguments and errors as in ``to_int``."""
    check_shapes(x, scale=scale, zero_point=zero_point)
    ends = ends_of(b, x, bit_width, signed, narrow_range)
    with np.errstate(all="ignore"):
        return reals(codes(b, x, scale, zero_point, ends, float_to_int), scale, zero_point)


@formula(
    "brevitas/IntQuant.backward",
    equation=r"dx = (m\,(g s)) / s,\ ds = g (q - z) - m\,(g s) (x / s) / s,\ dz = m\,(g s) - g s,\quad "
    r"m = [q_{min} \le \mathrm{float\_to\_int}(x / s + z) \le q_{max}]",
    basis=_INPUT,
    source=f"{_INT_QUANT}: straight-through rounding (round_ste), differentiable tensor_clamp (order: measured)",
    behaviour=IntQuantGradients(),
)
def int_quant_gradients(
    b: IntQuantGradients,
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
    check_shapes(x, scale=scale, zero_point=zero_point, grad=grad)
    low, high = ends = ends_of(b, x, bit_width, signed, narrow_range)
    with np.errstate(all="ignore"):
        y_int = codes(b, x, scale, zero_point, ends, float_to_int)
        y = _before_clamp(b, x, scale, zero_point, float_to_int)
        outside = (y > high) | (y < low) if b.ends == "inside" else (y >= high) | (y <= low)
        difference = grad * scale  # of y_int - zero_point
        quotient = np.where(outside, np.zeros((), x.dtype), difference)  # through the clamp, then straight through
        grad_x: Array = quotient / scale
        of_scale = x / scale / scale if b.square == "twice" else x / (scale * scale)
        grad_scale: Array = grad * (y_int - zero_point) + -quotient * of_scale
        grad_zero_point: Array = -difference + quotient
    return grad_x, grad_scale, grad_zero_point
