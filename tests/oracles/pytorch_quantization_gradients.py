"""The gradients, element by element: what passes is decided on fractions, a sum of gradients is one fraction."""

from fractions import Fraction
from math import copysign, inf, isinf, isnan, nan
from operator import mul
from typing import Any

from oracles.pytorch_quantization_tensor_quant import elements, held, meet, operate, pack
from oracles.registry import derives
from oracles.soft import Array, soft

__all__ = ["clip", "clip_backward", "passes_below", "passes_between"]


def _ordered(a: float, b: float) -> bool:
    """A <= b; with NaN it is not."""
    if isnan(a) or isnan(b):
        return False
    if isinf(a) or isinf(b):
        return a == -inf or b == inf
    return Fraction(a) <= Fraction(b)


def _kept(inputs: Array, bounds: list[tuple[float, float]], gradients: Array) -> Array:
    rows = zip(held(inputs), bounds, held(gradients), strict=True)
    found = [g if _ordered(low, x) and _ordered(x, high) else 0.0 for x, (low, high), g in rows]
    return pack(found, inputs.shape, gradients.dtype.name)


@derives(
    "pytorch-quantization/tensor_quant_backward",
    "pytorch-quantization/fake_tensor_quant_backward",
    "pytorch-quantization/legacy_fake_tensor_quant_backward",
)
def passes_below(inputs: Array, amax: Array, grad_outputs: Array) -> Array:
    """Between -amax and amax, both in the dtype in which torch compares them."""
    kind = meet(inputs.dtype.name, inputs.ndim, amax.dtype.name, amax.ndim)
    entries = [soft(a, kind).value for a in elements(amax, inputs.shape)]
    return _kept(inputs, [(-a, a) for a in entries], grad_outputs)


@derives("pytorch-quantization/scaled_e4m3_backward")
def e4m3(inputs: Array, amax: Array | None, grad_outputs: Array) -> Array:
    """Between -448 and 448 where there is no amax."""
    if amax is not None:
        return passes_below(inputs, amax, grad_outputs)
    return _kept(inputs, [(-448.0, 448.0)] * inputs.size, grad_outputs)


@derives("pytorch-quantization/scaled_e4m3_backward@modelopt-0.47")
def e4m3_modelopt(inputs: Array, amax: Array | None, grad_outputs: Array) -> Array:
    """All of it where there is no amax, of NaN as well."""
    if amax is None:
        return pack(held(grad_outputs), inputs.shape, grad_outputs.dtype.name)
    return passes_below(inputs, amax, grad_outputs)


@derives("pytorch-quantization/fake_affine_tensor_quant_backward")
def passes_between(inputs: Array, min_range: Array, max_range: Array, grad_outputs: Array) -> Array:
    """Between the two ends of the range."""
    return _kept(inputs, [(float(min_range), float(max_range))] * inputs.size, grad_outputs)


@derives("pytorch-quantization/clip")
def clip(inputs: Array, clip_value_min: Any, clip_value_max: Any) -> Array:
    """The upper bound first, so that the lower one has the last word."""
    if not hasattr(clip_value_min, "dtype") or not hasattr(clip_value_max, "dtype"):
        msg = f"clip_value_min={clip_value_min!r}, clip_value_max={clip_value_max!r}"
        raise TypeError(msg)
    found = []
    lows, highs = (elements(b, inputs.shape) for b in (clip_value_min, clip_value_max))
    for x, low, high in zip(held(inputs), lows, highs, strict=True):
        y = high if _ordered(high, x) else x
        found.append(nan if any(map(isnan, (x, low, high))) else low if _ordered(y, low) else y)
    return pack(found, inputs.shape, inputs.dtype.name)


@derives("pytorch-quantization/clip_backward")
def clip_backward(
    inputs: Array, clip_value_min: Array, clip_value_max: Array, grad_outputs: Array
) -> tuple[Array, Array, Array]:
    """Strictly inside passes; what does not is summed up for the bound that it is not inside of, NaN for both."""
    if clip_value_min.size != 1 or clip_value_max.size != 1:
        msg = f"bounds of shape {clip_value_min.shape}, {clip_value_max.shape}"
        raise ValueError(msg)
    low, high = held(clip_value_min)[0], held(clip_value_max)[0]
    passed, below, above = [], [], []
    for x, g in zip(held(inputs), held(grad_outputs), strict=True):
        over = not _ordered(x, low) and not isnan(x) and not isnan(low)
        under = not _ordered(high, x) and not isnan(x) and not isnan(high)
        # A gradient that does not pass is multiplied by 0: it keeps its sign, and what is infinite becomes NaN.
        passed.append(g if over and under else operate(mul, g, 0.0, "float32"))
        below.append(operate(mul, g, 0.0 if over else 1.0, "float32"))
        above.append(operate(mul, g, 0.0 if under else 1.0, "float32"))
    shapes = (clip_value_min.shape, clip_value_max.shape)
    sums = [pack([_sum(t)], s, "float32") for t, s in zip((below, above), shapes, strict=True)]
    return pack(passed, inputs.shape, "float32"), sums[0], sums[1]


def _sum(terms: list[float]) -> float:
    strange = {t for t in terms if isinf(t)}
    if any(map(isnan, terms)) or len(strange) > 1:
        return nan
    if strange:
        return copysign(inf, strange.pop())
    return float(sum(map(Fraction, terms), Fraction(0)))
