"""``fake_affine_tensor_quant``, one scalar after the other."""

from fractions import Fraction
from math import isfinite, isnan
from operator import add, sub, truediv
from typing import Any

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
    half = 2 ** (num_bits - 1)
    own = min_range.dtype.name
    low, high = float(min_range), float(max_range)
    step = operate(truediv, operate(sub, high, low, own), soft(Fraction(2 * half - 1), "float32").value, own)
    start = soft(operate(truediv, low, step, own), own).rint().value
    zero = operate(add, start, float(half), own)
    found = meet(kind, inputs.ndim, own, 0)
    z = soft(zero, found).value
    bottom, top = soft(Fraction(-half), found).value, soft(Fraction(half - 1), found).value
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
