"""AIMET: calibration by the least and the greatest value, the default analyzer, and what it leaves a quantizer with.

The documents name the analyzer and its use; the arithmetic is measured, aimet-torch 2.42. An analyzer is a function
of all the batches that it saw.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.systems.aimet.blocks import grouped
from halfeven.reference.systems.aimet.encodings import (
    BITWIDTH_GRID,
    SCALE_AND_OFFSET,
    LeastScale,
    bitwidth_grid,
    min_scale,
    scale_and_offset,
)

__all__ = ["Range", "compute_encodings", "is_initialized", "minmax_encodings"]


@dataclass(frozen=True)
class Range(LeastScale):
    """The choices in making a range of the values that bound it."""

    zero: str = choice(
        {"extended": "extends the range to zero", "observed": "leaves a range without zero as it was observed"}
    )
    narrow: str = choice({
        "widened": "widens a range below the least scale per step",
        "kept": "leaves a range below the least scale per step as it is",
    })  # fmt: skip
    no_steps: str = choice({
        "ignored": "leaves out the side of a symmetric grid that has no steps",
        "divided": "divides by the steps of a side of a symmetric grid that has none",
    })  # fmt: skip


@dataclass(frozen=True)
class Calibration(Range):
    """The choices in calibrating a quantizer by the least and the greatest value."""

    two_bits: str = choice({
        "two-steps": "counts the positive side of two symmetric bits as two steps",
        "one-step": "counts the positive side of two symmetric bits as the one step that it has",
    })  # fmt: skip
    infinity: str = choice(
        {"largest": "takes the largest number of the dtype for an infinity", "kept": "keeps an infinity"}
    )


@dataclass(frozen=True)
class MinMax(Calibration):
    """The choices in finding minimum and maximum, those of blocks too."""

    blocks: str = choice({
        "fit": "refuses blocks that do not fit",
        "in-order": "fills blocks that do not fit in memory order if they multiply to the right size",
    })  # fmt: skip


@dataclass(frozen=True)
class Initialized(Behaviour):
    """The choices of what gives a quantizer its range."""

    in_place: str = choice(
        {"counts": "takes numbers written in place for a range", "ignored": "ignores numbers written in place"}
    )
    nothing: str = choice({
        "ignored": "has no range after a calibration without a batch",
        "counts": "takes a calibration without a batch for a range",
    })  # fmt: skip
    failure: str = choice({
        "undone": "drops what it observed where calibration fails",
        "kept": "keeps what it observed where calibration fails",
    })  # fmt: skip


_MEASURED = "aimet-torch 2.42, measured"
_ARITHMETIC = AsComputed(dtype="the input's, widened to float32")
_TWO_BITS = 3
"""The steps of two bits."""


@formula(
    "aimet/minmax_encodings",
    equation=(
        r"m = \min(x, 0), M = \max(x, 0); \quad \text{asymmetric: } (m, M); \quad "
        r"\text{symmetric: } \delta = \max(M / \lfloor n/2 \rfloor, -m / \lceil n/2 \rceil), "
        r"(-\lceil n/2 \rceil \delta, \lfloor n/2 \rfloor \delta)"
    ),
    basis=_ARITHMETIC,
    source="QuantizeDequantize, parameter encoding_analyzer: the default, absolute min-max (arithmetic: measured)",
    behaviour=MinMax(),
    versions={"2.42": (MinMax(no_steps="divided", blocks="in-order"), _MEASURED)},
)
def minmax_encodings(
    b: MinMax,
    batches: tuple[Array, ...],
    num_steps: int,
    symmetric: bool,
    shape: Shape,
    block_size: BlockSize | None = None,
) -> tuple[Array, Array]:
    """Minimum and maximum of a grid of ``num_steps`` steps over all ``batches``, in their dtype and in ``shape``.

    A range below ``min_scale`` per step is widened by it. With two bits the positive side is counted as two steps,
    so that the least code is used. A side without steps, as one symmetric bit has, has no say.

    Args:
        batches: floats, in reals, of shapes that ``shape`` fits.
        num_steps: codes less one.
        symmetric: the range is that of a grid around zero.
        shape: of the parameters, as in ``grouped``; () is one for all elements.
        block_size: elements per block, as in ``grouped``; without it an entry of ``shape`` is 1 or the dimension's.

    Raises:
        ValueError: ``num_steps`` is below 1; ``grouped``'s.
        RuntimeError: no batch; ``grouped``'s.
        TypeError: a batch is not of a float dtype.
        IndexError: a batch is empty.
    """
    low, high = _observed(batches, num_steps, lambda x: grouped(x, shape, block_size, b.blocks == "in-order"))
    return _range(b, low, high, num_steps, symmetric, shape)


def _range(b: Calibration, low: Array, high: Array, n: int, symmetric: bool, shape: Shape) -> tuple[Array, Array]:
    dtype, t = low.dtype, np.promote_types(low.dtype, np.float32)
    below, above = math.ceil(n / 2), math.floor(n / 2)
    with np.errstate(all="ignore"):
        if b.zero == "extended":  # a zero of either sign stays
            low, high = np.where(low > 0, dtype.type(0), low), np.where(high < 0, dtype.type(0), high)
        least = min_scale(b, n)
        narrow = ((high - low) / t.type(n)).astype(dtype) < dtype.type(least)
        step = np.float32(least) * (narrow if b.narrow == "widened" else np.zeros_like(narrow))
        if symmetric:
            high = high + np.float32(above) * step
            low = low - np.float32(below) * step
            counted = above + 1 if n == _TWO_BITS and b.two_bits == "two-steps" else above
            delta = -low / t.type(below)
            if counted or b.no_steps == "divided":
                delta = np.maximum(high / t.type(counted), delta)
            low, high = t.type(-below) * delta, t.type(above) * delta
        else:
            high = high + np.float32(n) * step
        if b.infinity == "largest":
            info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
            least, most = t.type(info.min), t.type(info.max)
            low, high = np.where(low < least, least, low), np.where(high > most, most, high)
        return low.astype(dtype).reshape(shape), high.astype(dtype).reshape(shape)


@formula(
    "aimet/compute_encodings",
    equation=r"\theta_{min}, \theta_{max} = \mathrm{minmax}(x_1, x_2, \ldots); \quad s, o \text{ derived from them}",
    basis=AsComputed(dtype="float32"),
    source="QuantizeDequantize, the note on initialisation: compute_encodings()",
    behaviour=Calibration(),
    versions={"2.42": (Calibration(no_steps="divided"), _MEASURED)},
)
def compute_encodings(
    b: Calibration,
    batches: tuple[Array, ...],
    bitwidth: int,
    symmetric: bool,
    shape: Shape,
    block_size: BlockSize | None = None,
) -> dict[str, Array]:
    """What a quantizer holds after it saw ``batches`` inside compute_encodings: min, max, scale, offset, float32.

    Empty batches are not observed. Minimum and maximum, in reals, are those of all batches together.

    Args:
        batches: as in ``minmax_encodings``.
        bitwidth: width of the codes; the grid is that of ``bitwidth_grid``.
        symmetric: the grid is signed, and the offset 0.
        shape: of the parameters, and of each of the four results.
        block_size: elements per block, one entry per dimension of ``shape``; without it as in ``minmax_encodings``.

    Raises:
        RuntimeError: nothing was observed, so the quantizer cannot run; a block size shorter than ``shape``; or as in
            ``minmax_encodings``.
        TypeError, ValueError: as in ``bitwidth_grid`` and ``minmax_encodings``.
    """
    qmin, qmax = bitwidth_grid(BITWIDTH_GRID, bitwidth, symmetric)
    seen = tuple(x for x in batches if x.size)
    if not seen:
        msg = f"batches of shapes {[x.shape for x in batches]} are not accepted: give one with elements"
        raise RuntimeError(msg)
    if block_size is not None and len(block_size) < len(shape):
        msg = f"block_size={block_size} is not accepted for shape={shape}: give one entry per dimension"
        raise RuntimeError(msg)
    extremes = _observed(seen, qmax - qmin, lambda x: grouped(x, shape, block_size))
    low, high = _range(b, *extremes, qmax - qmin, symmetric, shape)
    with np.errstate(over="ignore"):
        low, high = low.astype(np.float32), high.astype(np.float32)
    scale, offset = scale_and_offset(SCALE_AND_OFFSET, low, high, qmin, qmax, symmetric)
    return {"min": low, "max": high, "scale": scale, "offset": offset}


@formula(
    "aimet/is_initialized",
    equation=r"\text{both } \theta_{min} \text{ and } \theta_{max} \text{ have been given a value}",
    basis=Real(),
    source="QuantizeDequantize, the note on initialisation and both examples",
    behaviour=Initialized(),
)
def is_initialized(b: Initialized, steps: tuple[str, ...]) -> bool:
    """Whether a new quantizer can run after ``steps``, of these kinds.

    ``assign min``, ``assign max``: a new parameter. ``fill min``, ``fill max``: its numbers in place. ``range``,
    ``range min``, ``range max``: set_range of both or one. ``calibrate``, ``calibrate nothing``, ``calibrate and
    fail``: compute_encodings with a batch, without one, and left by an error after one (all but ``assign`` and
    ``calibrate``: measured).

    Raises:
        ValueError: a step of another name.
    """
    given: set[str] = set()
    for step in steps:
        match step.split():
            case ["assign" | "range", "min" | "max" as name]:
                given.add(name)
            case ["fill", "min" | "max" as name]:
                given |= {name} if b.in_place == "counts" else set()
            case ["range"] | ["calibrate"]:
                given |= {"min", "max"}
            case ["calibrate", "nothing"]:
                given |= {"min", "max"} if b.nothing == "counts" else set()
            case ["calibrate", "and", "fail"]:
                given |= {"min", "max"} if b.failure == "kept" else set()
            case _:
                msg = (
                    f"steps={steps} with {step!r} is not accepted: give assign, fill, range or calibrate, as documented"
                )
                raise ValueError(msg)
    return given == {"min", "max"}


def _observed(batches: tuple[Array, ...], num_steps: int, rows_of: Callable[[Array], Array]) -> tuple[Array, Array]:
    """The least and the greatest value per parameter, NaN where there is one, of its row in ``rows_of`` a batch."""
    for x in batches:
        if x.dtype.kind not in "fV":
            msg = f"batches with one of dtype {x.dtype.name} are not accepted: give a float dtype"
            raise TypeError(msg)
        if not x.size:
            msg = f"batches with one of shape {x.shape} are not accepted: give each elements"
            raise IndexError(msg)
    if num_steps < 1:
        msg = f"num_steps={num_steps} is not accepted: give 1 or more"
        raise ValueError(msg)
    if not batches:
        msg = "batches=() is not accepted: give one or more"
        raise RuntimeError(msg)
    rows = [rows_of(x) for x in batches]
    return (
        reduce(np.minimum, [np.minimum.reduce(r, axis=1) for r in rows]),
        reduce(np.maximum, [np.maximum.reduce(r, axis=1) for r in rows]),
    )
