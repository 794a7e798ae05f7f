"""AIMET's grids, scales and offsets, in fractions and floats of one rounding."""

from fractions import Fraction
from math import isnan

from oracles.exact import FORMATS, round_integer, round_to
from oracles.registry import derives
from oracles.soft import Array, Soft, array, soft, softs

__all__ = ["at_least", "between", "bitwidth_grid", "grid", "least_scale", "recalibrated_range", "scale_and_offset"]


def _halves(steps: float) -> tuple[int, int]:
    """The steps below zero and above it: from the top down, every second step falls below."""
    whole = Fraction(steps) / 2
    above = whole.numerator // whole.denominator
    return -above - (whole != above), above


def _is_int(value: object) -> bool:
    return type(value) is int


@derives("aimet/grid")
def grid(bitwidth: object = None, num_steps: object = None, signed: bool = False) -> tuple[int, int]:
    """Count the codes, then place them."""
    if (bitwidth is None) == (num_steps is None):
        raise TypeError
    given = num_steps if bitwidth is None else bitwidth
    if not isinstance(given, int) or not _is_int(given):
        raise TypeError
    if given < 0:
        raise RuntimeError
    codes = given + 1 if bitwidth is None else 1 << given
    below = codes // 2 if signed else 0
    return -below, codes - 1 - below


@derives("aimet/grid@2.42")
def grid_2_42(bitwidth: float | None = None, num_steps: float | None = None, signed: bool = False) -> tuple[int, int]:
    """The same, with what the library lets pass."""
    if bitwidth is None and num_steps is None:
        raise KeyError
    steps = num_steps if bitwidth is None else 2**bitwidth - 1
    if steps is None or steps < 0:
        raise RuntimeError
    if signed:
        return _halves(steps)
    if isinstance(steps, int):
        return 0, steps
    raise AttributeError


@derives("aimet/bitwidth_grid")
def bitwidth_grid(bitwidth: int, symmetric: bool) -> tuple[int, int]:
    """Two's complement, or plain binary."""
    if not _is_int(bitwidth):
        raise TypeError
    if bitwidth < 1:
        raise ValueError
    sign = (1 << bitwidth) >> 1 if symmetric else 0
    return -sign, (1 << bitwidth) - 1 - sign


@derives("aimet/bitwidth_grid@2.42")
def bitwidth_grid_2_42(bitwidth: float, symmetric: bool) -> tuple[float, float]:
    """The same, of any number above zero."""
    if bitwidth <= 0:
        raise ValueError
    steps = 2**bitwidth - 1
    return _halves(steps) if symmetric else (0, steps)


@derives("aimet/min_scale")
def least_scale(num_steps: int) -> float:
    """The least of two numbers, one of them rounded once."""
    spread = round_to(Fraction(0.01) / num_steps, FORMATS["float64"])
    eps = Fraction(1, 2**23)
    return float(eps) if spread > eps else spread


def at_least(value: Soft, bound: Soft) -> Soft:
    """``value``, or ``bound`` above it; NaN stays."""
    return bound if value.value < bound.value else value


def between(value: Soft, lo: Soft, hi: Soft) -> Soft:
    """``value`` inside [lo, hi]; NaN stays, and so does a zero of either sign."""
    return lo if value.value < lo.value else hi if value.value > hi.value else value


@derives("aimet/scale_and_offset")
def scale_and_offset(min: Array, max: Array, qmin: int, qmax: int, symmetric: bool) -> tuple[Array, Array]:  # noqa: A002
    """Pair by pair."""
    if qmax - qmin < 1:
        raise ValueError
    if min.shape != max.shape:
        raise RuntimeError
    floor = soft(least_scale(qmax - qmin), "float32")
    centre = -round_integer(Fraction(qmin + qmax, 2), "half-even")
    scales, offsets = [], []
    for low, high in zip(softs(min), softs(max), strict=True):
        width = high.to(FORMATS["float32"]) - low.to(FORMATS["float32"])
        scale = at_least(abs(width / soft(float(qmax - qmin), "float32")), floor)
        scales.append(scale)
        if symmetric:
            offsets.append(soft(float(centre), "float32"))
            continue
        wide = "float64" if low.form == FORMATS["float64"] else "float32"
        codes = (low.to(FORMATS[wide]) / scale.to(FORMATS[wide])).rint()
        offset = between(codes - soft(float(qmin), wide), soft(float(-qmax), wide), soft(float(-qmin), wide))
        offsets.append(offset.to(FORMATS["float32"]))
    return array(scales, min.shape, "float32"), array(offsets, min.shape, "float32")


@derives("aimet/recalibrated_range")
def recalibrated_range(
    min: Array,  # noqa: A002
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    zero_point_shift: float = 0.0,
) -> tuple[Array, Array]:
    """The reals of the end codes: the exact code, rounded once, then the product rounded once."""
    if 2 * zero_point_shift not in (0, 1):
        raise ValueError
    scale, offset = scale_and_offset(min, max, qmin, qmax, symmetric)
    ends = []
    for code in (qmin, qmax):
        reals = []
        for s, o in zip(softs(scale), softs(offset), strict=True):
            place = o + soft(float(code), "float32") + soft(zero_point_shift, "float32")
            reals.append(s * place if not isnan(s.value) else s)
        ends.append(array(reals, min.shape, "float32"))
    return ends[0], ends[1]
