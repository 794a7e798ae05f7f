"""AIMET: the grid of a quantizer, and how scale and offset follow from its learnable minimum and maximum.

The documents say that both are derived and not how: the arithmetic is measured, aimet-torch 2.42.
"""

import math
from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.rounding import ROUNDINGS

__all__ = [
    "BITWIDTH_GRID",
    "LEAST",
    "SCALE_AND_OFFSET",
    "LeastScale",
    "ScaleAndOffset",
    "bitwidth_grid",
    "ends_of",
    "grid",
    "min_scale",
    "recalibrated_range",
    "scale_and_offset",
]

_FLOAT32 = AsComputed(dtype="float32")
_MEASURED = "aimet-torch 2.42, measured"


@dataclass(frozen=True)
class Widths(Behaviour):
    """The choices in making a grid of a width or of a number of steps."""

    given: str = choice({
        "one-int": "takes a bitwidth or num_steps, one of them and an int",
        "any-number": "goes by the bitwidth where both are given, and takes fractions where the codes are signed",
    })  # fmt: skip
    below: str = choice({
        "ceil": "gives a signed grid with an odd number of steps one more code below zero than above",
        "floor": "gives a signed grid with an odd number of steps one more code above zero than below",
    })  # fmt: skip


@dataclass(frozen=True)
class BitwidthGrid(Behaviour):
    """The choices in making the grid of a quantizer."""

    bitwidth: str = choice({
        "int": "refuses a bitwidth that is no int of 1 or more",
        "positive": "takes every bitwidth above 0, fractions too",
    })  # fmt: skip
    symmetric: str = choice(
        {"whole": "uses all codes of a symmetric grid", "restricted": "leaves out the least code of a symmetric grid"}
    )


@dataclass(frozen=True)
class LeastScale(Behaviour):
    """The choice of the least scale."""

    least: str = choice({
        "spanned": "takes float32's machine epsilon for the least scale, or 0.01 over the steps where that is less",
        "eps": "takes float32's machine epsilon for the least scale whatever the grid",
    })  # fmt: skip


@dataclass(frozen=True)
class ScaleAndOffset(LeastScale):
    """The choices in making scale and offset of a range."""

    division: str = choice({
        "divide": "divides the range by the steps",
        "reciprocal": "multiplies the range by the rounded reciprocal of the steps",
    })  # fmt: skip
    quotient: str = choice({
        "divide": "divides min by the scale for the offset",
        "reciprocal": "multiplies min by the rounded reciprocal of the scale for the offset",
    })  # fmt: skip
    # Of no positive quotient, of which ties up are ties toward zero.
    rounding: str = choice({
        "half-even": "rounds the quotient of min and scale, ties to even",
        "half-away": "rounds the quotient of min and scale, ties away from zero",
        "half-to-zero": "rounds the quotient of min and scale, ties toward zero",
        "toward-zero": "rounds the quotient of min and scale toward zero",
        "floor": "rounds the quotient of min and scale down",
    })  # fmt: skip
    swapped: str = choice({
        "magnitude": "takes the distance of min and max for the range, in whichever order they are",
        "least": "gives a range whose max lies below its min the least scale",
    })  # fmt: skip
    zero: str = choice({
        "kept": "limits the offset so that zero stays in the range",
        "free": "leaves the offset where the range puts it",
    })  # fmt: skip
    middle: str = choice({
        "half-even": "rounds the middle of a symmetric grid, ties to even",
        "ceil": "rounds the middle of a symmetric grid up",
        "zero": "gives a symmetric grid the offset 0",
    })  # fmt: skip
    float64: str = choice({
        "kept": "computes the offset in float64 where min is float64",
        "narrowed": "computes the offset in float32 whatever the dtype of min",
    })  # fmt: skip


@dataclass(frozen=True)
class Recalibrated(ScaleAndOffset):
    """The choices in giving the ends of the grid that a range leads to."""

    shift: str = choice({"moves": "moves both ends by zero_point_shift", "ignored": "ignores zero_point_shift"})


BITWIDTH_GRID, LEAST, SCALE_AND_OFFSET = BitwidthGrid(), LeastScale(), ScaleAndOffset()


@formula(
    "aimet/grid",
    equation=(
        r"n = 2^{bitwidth} - 1 \text{ or } num\_steps; \quad [q_{min}, q_{max}] = "
        r"[-\lceil n/2 \rceil, \lfloor n/2 \rfloor] \text{ if signed, else } [0, n]"
    ),
    basis=Real(),
    source="aimet_torch.quantization.affine.quantize, parameters bitwidth, num_steps and signed",
    behaviour=Widths(),
    versions={"2.42": (Widths(given="any-number"), _MEASURED)},
)
def grid(
    b: Widths, bitwidth: float | None = None, num_steps: float | None = None, signed: bool = False
) -> tuple[int, int]:
    """The codes (qmin, qmax) of ``bitwidth`` bits, or of ``num_steps`` steps; 0 of either is the one code 0 (measured).

    Args:
        bitwidth: width of the codes, an int.
        num_steps: codes less one, an int; give one of the two.
        signed: half of the codes are below zero.

    Raises:
        TypeError: not exactly one of the two is given, or it is no int.
        RuntimeError: it is negative (measured).
        KeyError: neither is given (2.42).
        AttributeError: a number that is no int, and unsigned (2.42).
    """
    given = [n for n in (bitwidth, num_steps) if n is not None]
    both = f"bitwidth={bitwidth!r}, num_steps={num_steps!r} is not accepted"
    if b.given == "one-int" and (len(given) != 1 or not isinstance(given[0], int) or isinstance(given[0], bool)):
        msg = f"{both}: give one of them, an int"
        raise TypeError(msg)
    if not given:
        msg = f"{both}: give one of them"
        raise KeyError(msg)
    n = given[0] if bitwidth is None else 2 ** given[0] - 1
    if n < 0:
        msg = f"{both}: give 0 or more"
        raise RuntimeError(msg)
    if not signed and not isinstance(n, int):
        msg = f"{both} with signed=False: give an int"
        raise AttributeError(msg)
    qmin, qmax = ends_of(n, signed)
    return (-qmax, -qmin) if signed and b.below == "floor" else (qmin, qmax)


def ends_of(n: float, signed: bool | None) -> tuple[int, int]:
    """The lowest and the highest of the codes of ``n`` steps."""
    return (-math.ceil(n / 2), math.floor(n / 2)) if signed else (0, int(n))


@formula(
    "aimet/bitwidth_grid",
    equation=r"[-2^{b-1}, 2^{b-1} - 1] \text{ if symmetric, else } [0, 2^b - 1]",
    basis=Real(),
    source="aimet_torch.v2.quantization.affine.QuantizeDequantize, parameters bitwidth and symmetric (grid: measured)",
    behaviour=BITWIDTH_GRID,
    versions={"2.42": (BitwidthGrid(bitwidth="positive"), _MEASURED)},
)
def bitwidth_grid(b: BitwidthGrid, bitwidth: int, symmetric: bool) -> tuple[int, int]:
    """The codes (qmin, qmax) of a quantizer.

    Args:
        bitwidth: width of the codes; where fractions are taken, 2^bitwidth - 1 steps, halved where symmetric.
        symmetric: half of the codes are below zero; else they start at 0.

    Raises:
        TypeError: ``bitwidth`` is no int.
        ValueError: ``bitwidth`` is below 1.
    """
    if b.bitwidth == "int" and (not isinstance(bitwidth, int) or isinstance(bitwidth, bool)):
        msg = f"bitwidth={bitwidth!r} is not accepted: give an int"
        raise TypeError(msg)
    n = 2**bitwidth - 1
    if n <= 0:
        msg = f"bitwidth={bitwidth} is not accepted: give 1 or more"
        raise ValueError(msg)
    if not symmetric:
        return 0, n
    qmin, qmax = ends_of(n, True)
    return (-qmax if b.symmetric == "restricted" else qmin), qmax


@formula(
    "aimet/min_scale",
    equation=r"s_{min} = \min(2^{-23},\ 0.01 / n)",
    basis=AsComputed(dtype="float64"),
    source=_MEASURED,
    behaviour=LEAST,
)
def min_scale(b: LeastScale, num_steps: int) -> float:
    """The least scale, real per code, of a grid of ``num_steps`` steps (1 or more), a Python float.

    float32's eps, unless that spans more than 0.01.
    """
    return 2.0**-23 if b.least == "eps" else min(2.0**-23, 0.01 / num_steps)


@formula(
    "aimet/scale_and_offset",
    equation=(
        r"s = \max(|\theta_{max} - \theta_{min}| / n, s_{min}); \quad "
        r"o = -\lceil (q_{min} + q_{max}) / 2 \rfloor \text{ if symmetric, else } "
        r"\mathrm{clamp}(\lceil \theta_{min} / s \rfloor - q_{min}, -q_{max}, -q_{min})"
    ),
    basis=_FLOAT32,
    source="aimet_torch.v2.quantization.affine.QuantizeDequantize, variables min and max (arithmetic: measured)",
    behaviour=SCALE_AND_OFFSET,
)
def scale_and_offset(
    b: ScaleAndOffset,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
) -> tuple[Array, Array]:
    """Scale, real per code, and offset, in codes, both float32 in the shape of ``min`` and ``max``.

    The scale is computed in float32; the quotient that becomes the offset in float64 where ``min`` is float64.

    Args:
        min: in reals, any float dtype and shape.
        max: likewise, of the same shape.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: the offset is minus the middle of the grid; else it follows from ``min``.

    Raises:
        ValueError: ``qmin`` is not below ``qmax``.
        RuntimeError: ``min`` and ``max`` differ in shape.
    """
    n = _num_steps(qmin, qmax)
    if min.shape != max.shape:
        msg = f"min of shape {min.shape} and max of shape {max.shape} are not accepted: give one shape"
        raise RuntimeError(msg)
    f32 = np.float32
    t = np.promote_types(min.dtype, f32) if b.float64 == "kept" else np.dtype(f32)
    with np.errstate(all="ignore"):
        width = max.astype(f32) - min.astype(f32)
        scale = width * (f32(1) / f32(n)) if b.division == "reciprocal" else width / f32(n)
        scale = np.maximum(scale if b.swapped == "least" else np.abs(scale), f32(min_scale(b, n)))
        if symmetric:
            half = (qmin + qmax) / 2
            middle = {"half-even": round(half), "ceil": math.ceil(half), "zero": 0}[b.middle]
            return np.asarray(scale), np.full(scale.shape, -middle, f32)
        s = scale.astype(t)
        quotient = min.astype(t) * (t.type(1) / s) if b.quotient == "reciprocal" else min.astype(t) / s
        offset = ROUNDINGS[b.rounding](quotient) - t.type(qmin)
        if b.zero == "kept":  # an offset of -0.0 stays what it is, which np.clip does not promise
            lo, hi = t.type(-qmax), t.type(-qmin)
            offset = np.where(offset < lo, lo, np.where(offset > hi, hi, offset))
    return np.asarray(scale), offset.astype(f32)


@formula(
    "aimet/recalibrated_range",
    equation=r"\hat\theta_{min} = s (o + q_{min} + \delta), \quad \hat\theta_{max} = s (o + q_{max} + \delta)",
    basis=_FLOAT32,
    source="aimet-torch 2.42, measured: get_min and get_max of a quantizer",
    behaviour=Recalibrated(),
)
def recalibrated_range(
    b: Recalibrated,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    zero_point_shift: float = 0.0,
) -> tuple[Array, Array]:
    """The least and the greatest real on the grid, float32; they differ from ``min`` and ``max`` where these are not.

    Args:
        min: as in ``scale_and_offset``, and so the next four.
        max: in reals.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: the offset is minus the middle of the grid.
        zero_point_shift: 0.0 or 0.5 codes; moves every real.

    Raises:
        ValueError: ``qmin`` is not below ``qmax``, or another ``zero_point_shift``.
        RuntimeError: ``min`` and ``max`` differ in shape.
    """
    if zero_point_shift not in {0.0, 0.5}:
        msg = f"zero_point_shift={zero_point_shift} is not accepted: give 0.0 or 0.5"
        raise ValueError(msg)
    scale, offset = scale_and_offset(b, min, max, qmin, qmax, symmetric)
    shift = np.float32(zero_point_shift if b.shift == "moves" else 0)
    with np.errstate(all="ignore"):
        low, high = (scale * (offset + np.float32(q) + shift) for q in (qmin, qmax))
    return np.asarray(low), np.asarray(high)


def _num_steps(qmin: int, qmax: int) -> int:
    if qmin >= qmax:
        msg = f"qmin={qmin} is not below qmax={qmax}: a quantizer needs two codes or more"
        raise ValueError(msg)
    return qmax - qmin
