"""AIMET: calibration by the least and the greatest value, the default analyzer, and what it leaves a quantizer with.

The documents name the analyzer and its use; the arithmetic is measured, aimet-torch 2.42. An analyzer is a function
of all the batches that it saw.
"""

import math
from functools import reduce

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.profiles.aimet.encodings import bitwidth_grid, min_scale, scale_and_offset
from halfeven.reference.profiles.profile import Array

__all__ = [
    "compute_encodings",
    "compute_encodings_2_42",
    "grouped",
    "is_initialized",
    "minmax_encodings",
    "minmax_encodings_2_42",
]

_ARITHMETIC = AsComputed(dtype="the input's, widened to float32")
_TWO_BITS = 3
"""The steps of two bits."""


def grouped(x: Array, shape: Shape, block_size: BlockSize | None = None) -> Array:
    """The elements of ``x`` by the parameter that they share: one row per parameter of ``shape``.

    ``shape`` meets the last dimensions of ``x``; an entry of 1 shares along its dimension. Blocks: element j has the
    parameter floor(j / B), -1 is the dimension over the parameters along it, and leading entries may be left out.

    Raises:
        RuntimeError: ``shape`` or ``block_size`` does not fit ``x``.
        ValueError: ``block_size`` is longer than ``shape``, or ``shape`` with blocks longer than the shape of ``x``.
    """
    lead = x.ndim - len(shape)
    tail = x.shape[max(lead, 0) :]
    if block_size is not None and (lead < 0 or len(block_size) > len(shape)):
        most = f"give a shape of at most {x.ndim} entries, and no more block sizes"
        msg = f"shape={shape}, block_size={block_size} is not accepted for batches of shape {x.shape}: {most}"
        raise ValueError(msg)
    if block_size is None:
        sizes: tuple[int, ...] = tuple(1 if p == n else n for n, p in zip(tail, shape, strict=False))
        fits = all(p in {1, n} for n, p in zip(tail, shape, strict=False))
    else:
        left_out = tuple(1 if p > 1 else -1 for p in shape[: len(shape) - len(block_size)])
        given = zip(tail, shape, (*left_out, *block_size), strict=True)
        sizes = tuple(n // p if b == -1 else b for n, p, b in given)
        fits = all(b * p == n for n, p, b in zip(tail, shape, sizes, strict=True))
    if lead < 0 or not fits:
        msg = (
            f"shape={shape}, block_size={block_size} is not accepted for batches of shape {x.shape}: give what divides"
        )
        raise RuntimeError(msg)
    split = x.reshape(-1, *(n for pair in zip(shape, sizes, strict=True) for n in pair))
    parameters = tuple(range(1, split.ndim, 2))
    rows: Array = np.moveaxis(split, parameters, range(len(shape))).reshape(math.prod(shape), -1)
    return rows


@formula(
    "aimet.minmax_encodings",
    equation=(
        r"m = \min(x, 0), M = \max(x, 0); \quad \text{asymmetric: } (m, M); \quad "
        r"\text{symmetric: } \delta = \max(M / \lfloor n/2 \rfloor, -m / \lceil n/2 \rceil), "
        r"(-\lceil n/2 \rceil \delta, \lfloor n/2 \rfloor \delta)"
    ),
    basis=_ARITHMETIC,
    source="QuantizeDequantize, parameter encoding_analyzer: the default, absolute min-max (arithmetic: measured)",
)
def minmax_encodings(
    batches: tuple[Array, ...], num_steps: int, symmetric: bool, shape: Shape, block_size: BlockSize | None = None
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
    low, high = _observed(batches, num_steps, shape, block_size)
    dtype, n = low.dtype, num_steps
    t = np.promote_types(dtype, np.float32)
    below, above = math.ceil(n / 2), math.floor(n / 2)
    with np.errstate(all="ignore"):
        # Zero is in the range; a zero of either sign stays.
        low, high = np.where(low > 0, dtype.type(0), low), np.where(high < 0, dtype.type(0), high)
        narrow = ((high - low).astype(t) / t.type(n)).astype(dtype) < dtype.type(min_scale(n))
        step = np.float32(min_scale(n)) * narrow
        if symmetric:
            high = high.astype(t) + np.float32(above) * step
            low = low.astype(t) - np.float32(below) * step
            counted = above + 1 if n == _TWO_BITS else above
            delta = -low / t.type(below)
            if counted:
                delta = np.maximum(high / t.type(counted), delta)
            low, high = t.type(-below) * delta, t.type(above) * delta
        else:
            low, high = low.astype(t), high.astype(t) + np.float32(n) * step
        # An infinity becomes the largest number of the dtype.
        least, most = (t.type(end) for end in (ml_dtypes.finfo(dtype).min, ml_dtypes.finfo(dtype).max))  # type: ignore[no-untyped-call]
        low, high = np.where(low < least, least, low), np.where(high > most, most, high)
        return low.astype(dtype).reshape(shape), high.astype(dtype).reshape(shape)


@formula(
    "aimet.minmax_encodings@2.42",
    equation=r"\text{symmetric, } n = 1: \delta = M / 0; \quad \text{blocks that do not fit share elements in order}",
    basis=_ARITHMETIC,
    source="aimet-torch 2.42, measured",
)
def minmax_encodings_2_42(
    batches: tuple[Array, ...], num_steps: int, symmetric: bool, shape: Shape, block_size: BlockSize | None = None
) -> tuple[Array, Array]:
    """``minmax_encodings``, but one symmetric bit divides by its zero positive steps, and misfit blocks are accepted.

    Blocks that multiply to the size of the input take its elements in memory order.
    """
    fits = all(x.ndim >= len(shape) for x in batches)
    if fits and block_size is not None and len(block_size) == len(shape) and -1 not in block_size:
        blocks = tuple(n for pair in zip(shape, block_size, strict=True) for n in pair)
        batches = tuple(x.reshape(-1, *blocks) if x.size % max(math.prod(blocks), 1) == 0 else x for x in batches)
        if all(x.shape[1:] == blocks for x in batches):
            shared = tuple(n for p in shape for n in (p, 1))
            low, high = minmax_encodings_2_42(batches, num_steps, symmetric, shared)
            return low.reshape(shape), high.reshape(shape)
    low, high = minmax_encodings(batches, num_steps, symmetric, shape, block_size)
    if symmetric and num_steps == 1:
        positive = _observed(batches, num_steps, shape, block_size)[1].reshape(shape) > 0
        low = np.where(positive, ml_dtypes.finfo(low.dtype).min, np.nan).astype(low.dtype)  # type: ignore[no-untyped-call]
        high = np.full(shape, np.nan, low.dtype)
    return low, high


@formula(
    "aimet.compute_encodings",
    equation=r"\theta_{min}, \theta_{max} = \mathrm{minmax}(x_1, x_2, \ldots); \quad s, o \text{ derived from them}",
    basis=AsComputed(dtype="float32"),
    source="QuantizeDequantize, the note on initialisation: compute_encodings()",
)
def compute_encodings(
    batches: tuple[Array, ...], bitwidth: int, symmetric: bool, shape: Shape, block_size: BlockSize | None = None
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
    qmin, qmax = bitwidth_grid(bitwidth, symmetric)
    seen = tuple(x for x in batches if x.size)
    if not seen:
        msg = f"batches of shapes {[x.shape for x in batches]} are not accepted: give one with elements"
        raise RuntimeError(msg)
    if block_size is not None and len(block_size) < len(shape):
        msg = f"block_size={block_size} is not accepted for shape={shape}: give one entry per dimension"
        raise RuntimeError(msg)
    low, high = minmax_encodings(seen, qmax - qmin, symmetric, shape, block_size)
    with np.errstate(over="ignore"):
        low, high = low.astype(np.float32), high.astype(np.float32)
    scale, offset = scale_and_offset(low, high, qmin, qmax, symmetric)
    return {"min": low, "max": high, "scale": scale, "offset": offset}


@formula(
    "aimet.compute_encodings@2.42",
    equation=r"\text{symmetric, } b = 1: \theta_{max} = \mathrm{NaN}",
    basis=AsComputed(dtype="float32"),
    source="aimet-torch 2.42, measured",
)
def compute_encodings_2_42(
    batches: tuple[Array, ...], bitwidth: int, symmetric: bool, shape: Shape, block_size: BlockSize | None = None
) -> dict[str, Array]:
    """``compute_encodings``, but one symmetric bit divides by its zero positive steps: the maximum is NaN."""
    found = compute_encodings(batches, bitwidth, symmetric, shape, block_size)
    if not (symmetric and bitwidth == 1):
        return found
    low, high = minmax_encodings_2_42(tuple(x for x in batches if x.size), 1, symmetric, shape, block_size)
    low, high = low.astype(np.float32), high.astype(np.float32)
    scale, offset = scale_and_offset(low, high, -1, 0, symmetric)
    return {"min": low, "max": high, "scale": scale, "offset": offset}


@formula(
    "aimet.is_initialized",
    equation=r"\text{both } \theta_{min} \text{ and } \theta_{max} \text{ have been given a value}",
    basis=Real(),
    source="QuantizeDequantize, the note on initialisation and both examples",
)
def is_initialized(steps: tuple[str, ...]) -> bool:
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
            case ["assign" | "fill" | "range", "min" | "max" as name]:
                given.add(name)
            case ["range"] | ["calibrate"]:
                given |= {"min", "max"}
            case ["calibrate", "nothing"] | ["calibrate", "and", "fail"]:
                pass
            case _:
                msg = (
                    f"steps={steps} with {step!r} is not accepted: give assign, fill, range or calibrate, as documented"
                )
                raise ValueError(msg)
    return given == {"min", "max"}


def _observed(
    batches: tuple[Array, ...], num_steps: int, shape: Shape, block_size: BlockSize | None
) -> tuple[Array, Array]:
    """The least and the greatest value per parameter, NaN where there is one, in rows as ``grouped`` gives them."""
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
    rows = [grouped(x, shape, block_size) for x in batches]
    return (
        reduce(np.minimum, [np.minimum.reduce(r, axis=1) for r in rows]),
        reduce(np.maximum, [np.maximum.reduce(r, axis=1) for r in rows]),
    )
