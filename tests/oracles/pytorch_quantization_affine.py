"""``fake_affine_tensor_quant``, one scalar after the other."""

from fractions import Fraction
from math import isfinite, isnan
from operator import add, sub, truediv
from typing import Any

import numpy as np

from oracles.pytorch_quantization_tensor_quant import HALVES, held, meet, operate, pack
from oracles.registry import derives
from oracles.soft import Array, soft

__all__ = ["fake_affine"]


@derives("pytorch-quantization/fake_affine_tensor_quant")
def fake_affine(inputs: Array, min_range: Any, max_range: Any, num_bits: Any = 8) -> Array:
    """The code by clamping an integer, where there is one; every operation rounded to the dtype of its result."""
    kind = inputs.dtype.name
    numbers = hasattr(min_range, "dtype") and hasattr(max_range, "dtype")
    if not numbers or type(num_bits) not in {int, bool} or kind not in {"float32", "float64", *HALVES}:
        msg = f"min_range={min_range!r}, max_range={max_range!r}, num_bits={num_bits!r}, inputs of dtype {kind}"
        raise TypeError(msg)
    if num_bits <= 0:
        msg = f"num_bits={num_bits}"
        raise ValueError(msg)
    return _on_grid(inputs, min_range, max_range, num_bits)


@derives("pytorch-quantization/fake_affine_tensor_quant@2.1.3")
def fake_affine_2_1_3(inputs: Array, min_range: Any, max_range: Any, num_bits: Any = 8) -> Array:
    """An end that is no array has the other's dtype; integers are taken to float32, and no width is refused."""
    kinds = [v.dtype for v in (min_range, max_range) if hasattr(v, "dtype")]
    if not kinds:
        msg = f"min_range={min_range!r}, max_range={max_range!r}"
        raise TypeError(msg)
    low, high = (v if hasattr(v, "dtype") else np.full((), v, kinds[0]) for v in (min_range, max_range))
    return _on_grid(inputs.astype(np.float32) if inputs.dtype.kind in "iu" else inputs, low, high, num_bits)


def _on_grid(inputs: Array, min_range: Array, max_range: Array, num_bits: Any) -> Array:
    kind = inputs.dtype.name
    half = Fraction(2) ** int(num_bits - 1)
    own = min_range.dtype.name
    low, high = float(min_range), float(max_range)
    step = operate(truediv, operate(sub, high, low, own), soft(2 * half - 1, "float32").value, own)
    start = soft(operate(truediv, low, step, own), own).rint().value
    zero = operate(add, start, float(half), own)
    found = meet(kind, inputs.ndim, own, 0)
    z = soft(zero, found).value
    bottom, top = soft(-half, found).value, soft(half - 1, found).value
    reals = []
    for x in held(inputs):
        steps = soft(operate(truediv, x, step, found), found).rint().value
        code = operate(sub, steps, z, found)
        if isfinite(code):
            code = min(max(code, bottom), top)
        elif not isnan(code):
            code = top if code > 0 else bottom
        real = soft(operate(add, code, z, found), found)
        wide = "float32" if found in HALVES else found
        reals.append((soft(real.value, wide) * soft(step, wide)).value)
    return pack(reals, inputs.shape, found)
