"""``scaled_e4m3`` by a search among the 127 magnitudes of the format."""

from fractions import Fraction
from math import copysign, isfinite, isnan
from operator import mul, truediv
from typing import Any

import numpy as np

from oracles.codes import nearest, values
from oracles.pytorch_quantization_tensor_quant import elements, held, operate, pack
from oracles.registry import derives
from oracles.soft import Array, soft

__all__ = ["scaled", "scaled_modelopt", "scaled_strict"]

MAGNITUDES = values(4, 3, 7, 127)  # the 128th code is NaN
SMALL = Fraction(1, 2**24)


def _cast(product: float) -> float:
    if isnan(product):
        return product
    magnitude = MAGNITUDES[nearest(abs(Fraction(product)), MAGNITUDES)] if isfinite(product) else MAGNITUDES[-1]
    return copysign(float(magnitude), product)


def _scale(amax: float) -> float:
    return operate(mul, operate(truediv, 1.0, amax, "float32"), 448.0, "float32")


def _format(exponent: Any, mantissa: Any) -> None:
    if [exponent, mantissa] != [4, 3]:
        msg = f"E={exponent}, M={mantissa}"
        raise NotImplementedError(msg)


def _spread(inputs: Array, amax: Array) -> tuple[tuple[int, ...], list[float], list[float]]:
    """The joint shape, and the inputs and amax repeated to it."""
    rank = max(inputs.ndim, amax.ndim)
    a, b = ((1,) * (rank - v.ndim) + v.shape for v in (inputs, amax))
    shape = tuple(m if n == 1 else n for n, m in zip(a, b, strict=True))
    return shape, list(elements(inputs, shape)), list(elements(amax, shape))


@derives("pytorch-quantization/scaled_e4m3@2.2.1")
def scaled(inputs: Array, amax: Array | None = None, E: int = 4, M: int = 3) -> Array:  # noqa: N803
    """Small inputs are zero; all others come back from the nearest magnitude by dividing."""
    _format(E, M)
    if inputs.dtype.name != "float32":
        msg = f"inputs of dtype {inputs.dtype}"
        raise RuntimeError(msg)
    if amax is None:
        reals = [_cast(x) for x in held(inputs)]
        shape, xs = inputs.shape, held(inputs)
    else:
        shape, xs, entries = _spread(inputs, amax)
        reals = []
        for x, a in zip(xs, entries, strict=True):
            scale = _scale(a)
            reals.append(operate(truediv, _cast(operate(mul, x, scale, "float32")), scale, "float32"))
    kept = [0.0 if isfinite(x) and abs(Fraction(x)) < SMALL else y for x, y in zip(xs, reals, strict=True)]
    return pack(kept, shape, "float32")


@derives("pytorch-quantization/scaled_e4m3")
def scaled_strict(inputs: Array, amax: Array | None = None, E: int = 4, M: int = 3) -> Array:  # noqa: N803
    """The same after amax has been looked at."""
    if amax is not None and any(isnan(a) or a < 0 for a in held(amax)):
        msg = f"amax={amax}"
        raise ValueError(msg)
    return scaled(inputs, amax, E, M)


@derives("pytorch-quantization/scaled_e4m3@modelopt-0.47")
def scaled_modelopt(inputs: Array, amax: Array | None = None, E: int = 4, M: int = 3) -> Array:  # noqa: N803
    """A reciprocal brings the magnitude back; a small amax counts as 1; no input is set to zero."""
    _format(E, M)
    single = np.array([soft(x, "float32").value for x in held(inputs)], np.float64).reshape(inputs.shape)
    if amax is None:
        return pack([_cast(x) for x in held(single)], inputs.shape, inputs.dtype.name)
    shape, xs, entries = _spread(single, amax)
    reals = []
    for x, entry in zip(xs, entries, strict=True):
        a = soft(entry, "float32").value
        scale = _scale(1.0 if a <= SMALL else a)
        back = operate(truediv, 1.0, scale, "float32")
        reals.append(operate(mul, _cast(operate(mul, x, scale, "float32")), back, "float32"))
    return pack(reals, shape, inputs.dtype.name)
