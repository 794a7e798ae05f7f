"""AIMET's gradients element by element, in exact fractions; a parameter's sum is exact and rounded once."""

import builtins
from collections.abc import Sequence
from fractions import Fraction
from math import copysign, inf, isfinite, nan
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.aimet_affine import codes_of, ends, owners, refuse, working
from oracles.registry import derives
from oracles.soft import DTYPES, Soft, array, form, soft, softs

Array = npt.NDArray[Any]
Triples = list[tuple[Soft, Soft, Soft]]

__all__: list[str] = []


@derives("aimet/quantize_gradient")
def quantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: Any = None,
    narrow: bool = False,
) -> tuple[Array, Array, Array]:
    """Inside, d/dx of x / s is 1 / s, d/ds is -x / s^2 and d/do is -1; outside a zero of the same sign."""
    ends(None, None, qmin, qmax, None)
    refuse(tensor.dtype, qmin, qmax)
    t = working(tensor.dtype.name, qmin, qmax)
    owner, s, o, g = _given(tensor, scale, offset, gradient, block_size, t)
    found: Triples = []
    for x, i, up in zip(softs(tensor), owner, g, strict=True):
        real, _, code = codes_of(x, s[i], o[i])
        passed = up if qmin <= code.value <= qmax else up * Soft(0.0, up.form)
        if narrow:
            real = real.to(x.form).to(real.form)
        found.append((passed / s[i], -(passed / s[i]) * real, -passed))
    return _out(found, owner, tensor, scale, offset, block_size)


@derives("aimet/quantize_gradient@2.42")
def quantize_2_42(**given: Any) -> tuple[Array, Array, Array]:
    """With a scalar scale and a tensor of dimensions, the last quotient passes through the tensor's dtype."""
    scalar = given["scale"].shape == () and given["tensor"].shape != () and not given.get("block_size")
    return quantize(**given, narrow=scalar)


@derives("aimet/dequantize_gradient")
def dequantize(
    tensor: Array, scale: Array, offset: Array, gradient: Array, block_size: Any = None
) -> tuple[Array, Array, Array]:
    """The product rule on (q + o) * s."""
    owner, s, o, g = _given(tensor, scale, offset, gradient, block_size, tensor.dtype.name)
    rows = zip(softs(tensor), owner, g, strict=True)
    found = [(up * s[i], up * (q + o[i]), up * s[i]) for q, i, up in rows]
    return _out(found, owner, tensor, scale, offset, block_size)


@derives("aimet/quantize_dequantize_gradient")
def quantize_dequantize(
    tensor: Array,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    gradient: Array,
    block_size: Any = None,
    zero_point_shift: float = 0.0,
    moved: bool = True,
) -> tuple[Array, Array, Array]:
    """Inside, x passes and the scale sees the rounding error; outside, scale and offset see the end of the grid."""
    ends(None, None, qmin, qmax, None)
    t = working(tensor.dtype.name, qmin, qmax)
    refuse(DTYPES[t], qmin, qmax)
    owner, s, o, g = _given(tensor, scale, offset, gradient, block_size, t)
    found: Triples = []
    for x, i, up in zip(softs(tensor), owner, g, strict=True):
        real, nearest, code = codes_of(x, s[i], o[i], zero_point_shift)
        zero = Soft(0.0, up.form)
        if qmin <= code.value <= qmax:
            found.append((up, up * (nearest - real), zero))
            continue
        low, high = (o[i] + Soft(float(end), up.form) for end in (qmin, qmax))
        end = nearest
        if nearest.value < low.value or nearest.value > high.value:
            end = low if nearest.value < low.value else high
        if zero_point_shift and moved:
            end = end + Soft(zero_point_shift, up.form)
        found.append((zero, up * end, up * s[i]))
    return _out(found, owner, tensor, scale, offset, block_size)


@derives("aimet/quantize_dequantize_gradient@2.42")
def quantize_dequantize_2_42(**given: Any) -> tuple[Array, Array, Array]:
    """Without the shift at the ends."""
    return quantize_dequantize(**given, moved=False)


@derives("aimet/range_gradient")
def range_gradient(
    min: Array,  # noqa: A002
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    scale_gradient: Array,
    offset_gradient: Array,
) -> tuple[Array, Array]:
    """Backwards through width / n, its magnitude, the smallest scale, and the clamped offset."""
    if not qmin < qmax:
        msg = f"[{qmin}, {qmax}] is not accepted: it needs two codes"
        raise ValueError(msg)
    n = soft(float(qmax - qmin), "float32")
    floor = soft(builtins.min(2.0**-23, 0.01 / (qmax - qmin)), "float32")
    lows, highs = [], []
    for low, high, ds, do in zip(*map(softs, (min, max, scale_gradient, offset_gradient)), strict=True):
        width = (high - low) / n
        scale = abs(width) if abs(width).value >= floor.value else floor
        total = ds
        by_offset = soft(0.0, "float32")
        if not symmetric:
            place = (low / scale).rint() - soft(float(qmin), "float32")
            by_offset = do if -qmax <= place.value <= -qmin else by_offset
            total = ds + -by_offset * ((low / scale) / scale)
        if abs(width).value < floor.value:
            total = soft(0.0, "float32")
        sign = 0.0 if width.value == 0 else copysign(1.0, width.value)
        by_width = total * soft(sign, "float32") / n
        highs.append(by_width)
        lows.append(-by_width if symmetric else by_offset / scale - by_width)
    return array(lows, min.shape, np.float32), array(highs, min.shape, np.float32)


def _given(
    tensor: Array, scale: Array, offset: Array, gradient: Array, block_size: Any, t: str
) -> tuple[list[int], list[Soft], list[Soft], list[Soft]]:
    owner = owners(tensor.shape, scale.shape, block_size)
    s, o, g = ([soft(float(v), t) for v in p.ravel()] for p in (scale, offset, gradient))
    return owner, s, o, g


def _out(
    found: Triples, owner: Sequence[int], tensor: Array, scale: Array, offset: Array, block_size: Any
) -> tuple[Array, Array, Array]:
    columns = list(zip(*found, strict=True)) or [(), (), ()]
    own = array((d.to(form(tensor.dtype)) for d in columns[0]), tensor.shape, tensor.dtype)
    alone = block_size is None and scale.shape == tensor.shape
    gathered = []
    for column, parameter in ((columns[1], scale), (columns[2], offset)):
        values = column if alone else [_sum(column, owner, i) for i in range(parameter.size)]
        kept = form(DTYPES[parameter.dtype.name])
        gathered.append(array((d.to(kept) for d in values), parameter.shape, parameter.dtype))
    return own, gathered[0], gathered[1]


def _sum(column: Sequence[Soft], owner: Sequence[int], parameter: int) -> Soft:
    mine = [d for d, i in zip(column, owner, strict=True) if i == parameter]
    kept = column[0].form if column else form(np.float32)
    odd = [d.value for d in mine if not isfinite(d.value)]
    if odd:
        return Soft(sum(odd) if len({*odd} - {inf, -inf}) == 0 else nan, kept)
    total = sum((Fraction(d.value) for d in mine), Fraction(0))
    return soft(total, next(name for name, f in ((n, form(d)) for n, d in DTYPES.items()) if f == kept))
