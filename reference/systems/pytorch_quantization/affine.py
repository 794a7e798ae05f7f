"""pytorch-quantization: ``fake_affine_tensor_quant``, a range [min, max] in place of an absolute maximum."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.pytorch_quantization.tensor_quant import FLOATS, check_width, operands

__all__ = ["fake_affine_tensor_quant"]


@dataclass(frozen=True)
class FakeAffine(Behaviour):
    """The choices in putting reals on the grid of a range."""

    rounding: str = roundings("the quotient")
    zero_point: str = choice({
        "after": "subtracts the zero point from the rounded quotient",
        "before": "subtracts the zero point from the quotient before it rounds",
    })  # fmt: skip
    whole: str = choice(
        {"rounded": "rounds the zero point to an integer", "real": "leaves the zero point where the range puts it"}
    )
    steps: str = choice({"intervals": "divides the range by 2^b - 1 steps", "codes": "divides the range by 2^b steps"})
    division: str = choice(
        {"divide": "divides by the step", "reciprocal": "multiplies by the rounded reciprocal of the step"}
    )
    arithmetic: str = choice({
        "inputs": "rounds every operation to the dtype of inputs",
        "float32": "computes in float32 or wider, and rounds the result alone to the dtype of inputs",
    })  # fmt: skip
    checks: str = choice({
        "all": "refuses an end that is no array, a num_bits that is no integer of 1 or more, and inputs of integers",
        "ends": "refuses only two ends that are no arrays",
    })  # fmt: skip


def _check(inputs: Array, num_bits: Any) -> None:
    check_width(num_bits)
    if inputs.dtype not in FLOATS:
        msg = f"inputs of dtype {inputs.dtype} is not accepted: give one of {', '.join(map(str, FLOATS))}"
        raise TypeError(msg)


@formula(
    "pytorch-quantization/fake_affine_tensor_quant",
    equation=r"\Delta = \frac{max - min}{2^b - 1},\quad z = \lceil min / \Delta \rfloor + 2^{b-1},\quad "
    r"\hat x = (\mathrm{clamp}(\lceil x / \Delta \rfloor - z,\ -2^{b-1},\ 2^{b-1} - 1) + z) * \Delta",
    basis=AsComputed(dtype="the inputs' dtype, every operation rounded; a range without dimensions widens nothing"),
    source="pytorch_quantization.tensor_quant.FakeAffineTensorQuantFunction.forward: measured",
    behaviour=FakeAffine(),
    versions={"2.1.3": (FakeAffine(checks="ends"), "pytorch-quantization 2.1.3 on a CPU: measured")},
)
def fake_affine_tensor_quant(b: FakeAffine, inputs: Array, min_range: Any, max_range: Any, num_bits: Any = 8) -> Array:
    """``inputs`` on the 2**num_bits reals from about ``min_range`` to ``max_range``.

    The zero point z has the sign of (q + z) * step, and is subtracted after rounding; min == max gives NaN.

    Args:
        inputs: float32, float16, bfloat16 or float64 of any shape; the result has both.
        min_range: 0-d float array, in reals.
        max_range: likewise.
        num_bits: width of the codes, 1 or more.

    Raises:
        TypeError: an end that is no array (2.1.3: both are none); inputs of no float dtype, ``num_bits`` no integer
            (2.1.3 takes them).
        ValueError: ``num_bits`` is below 1 (2.1.3 takes it).
    """
    ends = [v for v in (min_range, max_range) if hasattr(v, "dtype")]
    needed = 2 if b.checks == "all" else 1
    if len(ends) < needed:
        given = f"min_range={min_range!r}, max_range={max_range!r}"
        msg = f"{given} is not accepted: give 0-d arrays, {needed} at least"
        raise TypeError(msg)
    if b.checks == "all":
        _check(inputs, num_bits)
    min_range, max_range = (np.asarray(v, getattr(v, "dtype", ends[0].dtype)) for v in (min_range, max_range))
    lo, hi = -(2 ** (num_bits - 1)), 2 ** (num_bits - 1) - 1
    with np.errstate(all="ignore"):
        wide = np.promote_types(min_range.dtype, np.float32).type
        steps = wide(2**num_bits - (b.steps == "intervals"))
        step = (wide(max_range - min_range) / steps).astype(min_range.dtype)
        z = min_range / step
        z = (wide(np.rint(z) if b.whole == "rounded" else z) - wide(lo)).astype(min_range.dtype)
        x, s, dtype = operands(inputs, np.asarray(step))
        if b.arithmetic == "float32":
            dtype = x.dtype
        u = (x * (x.dtype.type(1) / s) if b.division == "reciprocal" else x / s).astype(dtype)
        z, rounded = np.asarray(z).astype(dtype), ROUNDINGS[b.rounding]
        q = rounded(u - z) if b.zero_point == "before" else rounded(u) - z
        q = np.where(q < lo, dtype.type(lo), q)
        q = np.where(q > hi, dtype.type(hi), q)
        result = ((q + z) * s).astype(dtype)
        return np.asarray(result if b.arithmetic == "inputs" else result.astype(inputs.dtype))
