"""torch's learnable fake quantization and gradients, element by element: fractions, a fused sum rounded once."""

from collections.abc import Sequence
from fractions import Fraction
from math import inf, isfinite
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.exact import FORMATS, fused_multiply_add, round_integer, round_to
from oracles.registry import derives
from oracles.soft import DTYPES, Soft, array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

_F = "float32"
_FORM = FORMATS[_F]
_LOWEST = -(2**63)


def _check(x: Array, low: int, high: int, zeros: Sequence[Soft], *, backward: bool) -> None:
    if type(low) is not int or type(high) is not int:
        msg = f"{low}, {high}"
        raise TypeError(msg)
    if x.dtype.name not in DTYPES:
        msg = f"{x.dtype}"
        raise NotImplementedError(msg)
    missing = 0 not in range(low, high + 1) or x.dtype.name != _F
    if low > high or any(z.nan for z in zeros) or (backward and missing):
        msg = f"{x.dtype}, {low}, {high}, {zeros}"
        raise RuntimeError(msg)


def _channels(x: Array, counts: Sequence[tuple[int, ...]], axis: int) -> list[int]:
    """For every element its channel."""
    if axis not in range(-x.ndim, x.ndim):
        msg = f"axis={axis}"
        raise IndexError(msg)
    if axis < 0 or any(c != (x.shape[axis],) for c in counts):
        msg = f"axis={axis}, {counts}"
        raise RuntimeError(msg)
    return [place[axis] for place in np.ndindex(x.shape)]


def _nearest(v: float) -> int:
    return round_integer(Fraction(v), "half-even")


def _limited(v: float, low: int, high: int) -> float:
    return sorted((low, v, high))[1]


def _inverse(s: Soft) -> Soft:
    return soft(1.0, _F) / s


def _fused(a: Soft, b: Soft, c: Soft) -> Soft:
    return Soft(fused_multiply_add(a.value, b.value, c.value, _FORM), _FORM)


def _int(v: Soft) -> int:
    return _nearest(v.value) if isfinite(v.value) and abs(v.value) < 2**63 else _LOWEST


def _forward(x: Soft, s: Soft, z: int, low: int, high: int, *, wide: bool) -> Soft:
    """``wide``: the code is cast to an int64 before it is limited."""
    form = FORMATS["float64"] if x.form == FORMATS["float64"] else _FORM
    v = x.to(form) * _inverse(s).to(form)
    if v.nan or (wide and abs(v.value) >= 2**63):
        code = low
    elif v.value in (inf, -inf):
        code = high if v.value > 0 else low
    else:
        whole = round_to(Fraction(_nearest(v.value)), form)
        total = Soft(whole, form) + Soft(float(z), form)
        code = int(_limited(total.value, low, high))
    last = form if wide else _FORM
    return (Soft(float(code - z), last) * s.to(last)).to(x.form)


def _rounded(z: Soft, low: int, high: int) -> int:
    return int(_limited(_nearest(z.value) if isfinite(z.value) else z.value, low, high))


@derives("torch/_fake_quantize_learnable_per_tensor_affine")
def _(x: Array, scale: Array, zero_point: Array, quant_min: int, quant_max: int) -> Array:
    s, zeros = softs(scale)[0], softs(zero_point)
    _check(x, quant_min, quant_max, zeros, backward=False)
    z = _rounded(zeros[0], quant_min, quant_max)
    return array((_forward(v, s, z, quant_min, quant_max, wide=False) for v in softs(x)), x.shape, x.dtype)


@derives("torch/_fake_quantize_learnable_per_channel_affine")
def _(x: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int) -> Array:
    s, zeros = softs(scale), softs(zero_point)
    _check(x, quant_min, quant_max, zeros, backward=False)
    own = _channels(x, (scale.shape, zero_point.shape), axis)
    z = [_rounded(v, quant_min, quant_max) for v in zeros]
    found = [_forward(v, s[c], z[c], quant_min, quant_max, wide=True) for v, c in zip(softs(x), own, strict=True)]
    return array(found, x.shape, x.dtype)


def _terms(x: Soft, s: Soft, z: int, grad: Soft, factor: Soft, low: int, high: int) -> tuple[Soft, Soft, Soft]:
    zero = soft(Fraction(z), _F)
    q = _int(_fused(x, _inverse(s), zero))
    if low <= q <= high:
        error = _fused(soft(Fraction(q - z), _F), s, -x)
        return grad * soft(1.0, _F), grad * error * _inverse(s) * factor, soft(0.0, _F)
    end = low if q < low else high
    return grad * soft(0.0, _F), soft(Fraction(end - z), _F) * grad * factor, -grad * s * factor


def _total(terms: Sequence[Soft]) -> Soft:
    if all(isfinite(t.value) for t in terms):
        exact = sum((Fraction(t.value) for t in terms), Fraction(0))
        return soft(exact, "float64").to(_FORM) if exact else soft(0.0, _F)
    return soft(sum(t.value for t in terms), _F)


def _gradients(
    x: Array, own: Sequence[int], s: Sequence[Soft], z: Sequence[int], grad: Array, factor: float, low: int, high: int
) -> tuple[Array, Array, Array]:
    f = soft(factor, _F)
    each = [(c, _terms(v, s[c], z[c], g, f, low, high)) for v, g, c in zip(softs(x), softs(grad), own, strict=True)]
    sums = [[_total([t[i] for c, t in each if c == k]) for k in range(len(s))] for i in (1, 2)]
    shape = (len(s),)
    return (
        array((t[0] for _, t in each), x.shape, np.float32),
        array(sums[0], shape, np.float32),
        array(sums[1], shape, np.float32),
    )


@derives("torch/_fake_quantize_learnable_per_tensor_affine.backward")
def _(
    x: Array,
    scale: Array,
    zero_point: Array,
    quant_min: int,
    quant_max: int,
    grad: Array,
    grad_factor: float = 1.0,
) -> tuple[Array, Array, Array]:
    zeros = softs(zero_point)
    _check(x, quant_min, quant_max, zeros, backward=True)
    if x.size == 0:
        return x, scale, zero_point
    # Half is added in float32, then the number is limited, then cut towards zero.
    z = int(_limited((zeros[0] + soft(0.5, _F)).value, quant_min, quant_max))
    return _gradients(x, [0] * x.size, softs(scale), [z], grad, grad_factor, quant_min, quant_max)


@derives("torch/_fake_quantize_learnable_per_channel_affine.backward")
def _(
    x: Array,
    scale: Array,
    zero_point: Array,
    axis: int,
    quant_min: int,
    quant_max: int,
    grad: Array,
    grad_factor: float = 1.0,
) -> tuple[Array, Array, Array]:
    zeros = softs(zero_point)
    _check(x, quant_min, quant_max, zeros, backward=True)
    own = _channels(x, (scale.shape, zero_point.shape), axis)
    if x.size == 0:
        return x, scale, zero_point
    if x.ndim < 2:
        msg = "one dimension"
        raise RuntimeError(msg)
    z = [_rounded(v, quant_min, quant_max) for v in zeros]
    return _gradients(x, own, softs(scale), z, grad, grad_factor, quant_min, quant_max)


def _masked(x: Array, own: Sequence[int], s: Sequence[Soft], z: Sequence[int], low: int, high: int, g: Array) -> Array:
    found = []
    for v, c, d in zip(softs(x), own, softs(g), strict=True):
        code = _int((v.to(_FORM) * _inverse(s[c])).rint() + soft(float(z[c]), _F))
        found.append(d * Soft(float(low <= code <= high), d.form))
    return array(found, x.shape, g.dtype)


@derives("torch/fake_quantize_per_tensor_affine.backward")
def _(x: Array, scale: float, zero_point: int, quant_min: int, quant_max: int, grad: Array) -> Array:
    if zero_point not in range(quant_min, quant_max + 1):
        msg = f"zero_point={zero_point}"
        raise RuntimeError(msg)
    low, high = (int(soft(float(end), _F).value) for end in (quant_min, quant_max))
    return _masked(x, [0] * x.size, [soft(scale, _F)], [zero_point], low, high, grad)


@derives("torch/fake_quantize_per_channel_affine.backward")
def _(x: Array, scale: Array, zero_point: Array, axis: int, quant_min: int, quant_max: int, grad: Array) -> Array:
    own = _channels(x, (scale.shape, zero_point.shape), axis)
    z = [int(v) for v in zero_point.tolist()]
    if any(v not in range(quant_min, quant_max + 1) for v in z):
        msg = f"zero_point={z}"
        raise RuntimeError(msg)
    return _masked(x, own, softs(scale), z, quant_min, quant_max, grad)
