"""Where a model's answers change, and so a proof that two models give the same for every input.

For one scale and one zero point a model is a function of x alone. Each of its operations is monotone: a division or a
product by a positive number, a sum with a constant, a rounding to a dtype or to an integer, a limit. So, as long as
nothing wraps, its codes are steps that never go back, from -inf to inf. A conversion to 32 or 64 bits that overflows
changes this only beyond 2^30 codes: there the code is the last one, and from one input on, as far as infinity, it is
the code that the overflow gives: again one step.

Of such a function every run of equal codes has two ends. Another such function that gives the same at both ends of each
run gives the same between them: what is between two equal steps is equal to them. A range form limits x first: if it
wraps at all, its codes at both ends of the inputs are not those of the grid. The ends of runs are found by bisection of
the ordered bit patterns, so all 2^32 float32 are decided by some 600 of them. NaN, the infinities and the zeros are
inputs of their own. The inputs of a 16-bit dtype are looked at one by one, and so are codes: nothing is assumed there.
"""

from typing import Any

import numpy as np

from halfeven.conformance.bits import ordered, unordered
from halfeven.conformance.fingerprints.models import Given
from halfeven.reference import Grid
from halfeven.reference.blocks import Array
from halfeven.reference.choices import Coding
from halfeven.reference.model import EvaluationModel, quantize

__all__ = ["FAR", "LIMITING", "every", "monotone", "predicted", "run_ends", "specials"]

_WIDE = 512  # boundaries of a grid with more codes that are looked at
#: Codes: nothing that has 32 bits overflows before.
FAR = 2.0**30
#: The bits that are kept where more are converted.
_BITS = {"int16": 16, "int16-sum": 16, "int8": 8, "int8-sum": 8, "int8-exact": 8, "int64-int32": 32}
_WRAPPING = frozenset(_BITS) - {"int64-int32"}
_BYTE = np.iinfo(np.int8)
#: Divisions that limit x to the range of the grid: their codes ascend if those of the largest inputs are its ends.
LIMITING = frozenset(EvaluationModel.choices()["division"]) - frozenset(Coding.choices()["division"])
_SHORT = 2  # bytes of a dtype of which all inputs are looked at


def monotone(model: EvaluationModel, grid: Grid, *, zero_points: bool = True) -> bool:
    """Whether the argument above holds for the model: nothing in it wraps within 2^30 codes.

    What is limited before it is converted does not wrap in a type that holds it, with the zero point or without. Of
    what limits x the largest inputs have to be looked at besides.
    """
    # What is limited last, since the zero point is in it already, or is 0.
    added = not zero_points or model.zero_point == "before-rounding"
    added = added or (model.zero_point == "fused" and model.division in Coding.choices()["division"])
    last = model.clamp in {"before-zero-point", "twice"} and added
    held = _held(model, grid, added=added)
    narrow = model.integer in _WRAPPING
    early = model.clamp == "before-rounding" or (last and (held or not narrow))
    if not (model.overflow == "saturate" or early):
        return model.division in LIMITING and (not narrow or _whole(grid))
    if narrow and model.overflow == "wrap":
        return held or _whole(grid)
    return model.integer not in _BITS or held


def _whole(grid: Grid) -> bool:
    """Whether all is modulo a power of two of which the number of codes is a divisor."""
    return (1 << _BYTE.bits) % (grid.num_steps + 1) == 0


def _held(model: EvaluationModel, grid: Grid, *, added: bool) -> bool:
    """Whether what is converted was limited to what the type holds, with any zero point of the grid."""
    if model.clamp == "after" or model.integer not in _BITS:
        return False
    of_sum = model.integer.endswith(("-sum", "-exact"))
    limited = added or of_sum == (model.clamp == "before-rounding")
    most = 0 if limited else max(abs(grid.qmin), abs(grid.qmax))
    end = 1 << (_BITS[model.integer] - 1)
    return -end <= grid.qmin - most and grid.qmax + most < end


def predicted(model: EvaluationModel, x: Array, given: Given) -> Array:
    """The codes that a model makes of reals, as float64."""
    with np.errstate(all="ignore"):
        try:
            codes = quantize(model, x, given.scale, np.asarray(given.zero), given.asked.grid)
        except ValueError:  # it is not defined for these dtypes
            return np.full(x.shape, np.nan)
        return codes.astype(np.float64)


def every(dtype: "np.dtype[Any]") -> Array:
    """All numbers of a dtype of 16 bits, NaN as one of them, or none of a longer one."""
    if dtype.itemsize > _SHORT:
        return np.empty(0, dtype)
    top = int(ordered(np.asarray(np.inf, dtype)))
    return np.concatenate([unordered(np.arange(-top, top + 1), dtype), specials(dtype)])


def specials(dtype: "np.dtype[Any]") -> Array:
    """Both infinities, both zeros, NaN, and the largest numbers."""
    largest = unordered(ordered(np.asarray(np.inf, dtype)) - 1, dtype)
    return np.concatenate([np.array([np.inf, -np.inf, 0.0, -0.0, np.nan]).astype(dtype), [largest, -largest]])


def run_ends(model: EvaluationModel, given: Given) -> Array:
    """The first and the last input of every run of equal codes, ascending; of a wide grid those of some runs.

    Empty where the model gives no code for some input, or does not ascend.
    """
    a = given.asked
    dtype, step = a.dtype, given.step
    places = np.linspace(0, a.grid.num_steps - 1, min(a.grid.num_steps, _WIDE))
    codes = np.unique(places.astype(np.int64)).astype(np.float64) + (a.grid.qmin + 1)
    with np.errstate(all="ignore"):
        far = np.asarray(FAR * step, np.float64).astype(dtype)
    top = int(ordered(np.asarray(np.inf, dtype)))
    bound = min(int(ordered(far)), top - 1)
    inner = _crossings(model, given, codes, -bound, bound)
    ends = [unordered(np.array([-bound, bound]), dtype)]
    last = np.array([top - 1])
    # Beyond 2^30 codes there is at most one step on either side.
    for low, high in ((bound, last[0]), (-last[0], -bound)):
        ends.append(unordered(np.array([low, high]), dtype))
        ends.append(unordered(_change(model, given, low, high), dtype))
    ends += [unordered(inner, dtype), unordered(inner - 1, dtype)]
    found = np.concatenate(ends)
    return found[np.unique(ordered(found), return_index=True)[1]]


def _crossings(model: EvaluationModel, given: Given, codes: Array, low: int, high: int) -> Array:
    """Of each code the first input, as ordered, that has it or a higher one."""
    dtype = given.asked.dtype
    below, above = np.full(codes.shape, low, np.int64), np.full(codes.shape, high, np.int64)
    while (above - below > 1).any():
        middle = (below + above) // 2
        reached = predicted(model, unordered(middle, dtype), given) >= codes
        below, above = np.where(reached, below, middle), np.where(reached, middle, above)
    return above


def _change(model: EvaluationModel, given: Given, low: int, high: int) -> Array:
    """Both sides of the one step between two inputs; the two themselves where there is none."""
    dtype = given.asked.dtype
    first, last = predicted(model, unordered(np.array([low, high]), dtype), given)
    if first == last or high - low <= 1:
        return np.array([low, high])
    while high - low > 1:
        middle = (low + high) // 2
        here = predicted(model, unordered(np.array([middle]), dtype), given)[0]
        low, high = (middle, high) if here == first else (low, middle)
    return np.array([low, high])
