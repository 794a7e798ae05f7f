"""torchao: the gradients of fake quantization in the INT and NONE domains, element by element.

Rounding passes the gradient on. The gradient of a parameter is the sum of its block's elements, in no stated order.
"""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.rounding import ROUNDINGS
from halfeven.reference.systems.torchao.affine import DIVISION, clamp, quotient
from halfeven.reference.systems.torchao.granularity import per_element
from halfeven.reference.systems.torchao.storage import check_reals, code_range, limits

__all__ = ["fake_quantize_affine_gradients"]


@dataclass(frozen=True)
class Gradients(Behaviour):
    """What implementations do differently in the gradients of fake quantization."""

    division: str = choice(DIVISION)
    rounding: str = roundings("the quotient")
    passes: str = choice({
        "grid": "passes on the gradient of inputs whose code lies on the grid",
        "all": "passes on the gradient of every input",
        "none": "passes on no gradient, for that of rounding is 0",
    })  # fmt: skip
    ends: str = choice({
        "inside": "counts the ends of the grid as on it",
        "outside": "counts the ends of the grid as outside",
    })  # fmt: skip
    chain: str = choice({
        "cancelled": "cancels the scale against its reciprocal",
        "factors": "multiplies by the scale and then by its rounded reciprocal, infinities by 0 too",
    })  # fmt: skip
    int_domain: str = choice({
        "differentiated": "differentiates in the INT domain",
        "refused": "has no gradient in the INT domain, where codes become int32",
    })  # fmt: skip


_0_18 = Gradients(division="reciprocal", chain="factors")
_0_11 = Gradients(division="reciprocal", chain="factors", passes="none", int_domain="refused")


@formula(
    "torchao/fake_quantize_affine_gradients",
    equation=r"\partial x = g\,[q_{min} \le r \le q_{max}];\quad \partial s = g\,((q - z) - [\cdot]\,x / s);\quad "
    r"\partial z = -g\,s\,(1 - [\cdot]);\quad r = \lceil x / s \rfloor + z",
    basis=AsComputed(dtype="the input's"),
    source="torchao.quantization.quant_primitives.fake_quantize_affine, whose rounding passes the gradient on",
    behaviour=Gradients(),
    versions={
        "0.18": (_0_18, "torchao 0.18.0, measured on the CPU: the chain of its operations"),
        "0.11": (_0_11, "torchao 0.11.0, measured on the CPU: rounding passes nothing on"),
    },
)
def fake_quantize_affine_gradients(
    b: Gradients,
    input: Array,  # noqa: A002 - the document's own word
    block_size: BlockSize,
    scale: Array,
    zero_point: Array | None,
    grad: Array,
    quant_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
) -> tuple[Array, Array, Array | None]:
    """What each element adds to the gradients of input, scale and zero point.

    Args:
        input: float32, float16 or bfloat16 of any shape.
        block_size: elements per block along each dimension.
        scale: real per code, of the input's dtype, one entry per block.
        zero_point: floats of the input's dtype, or None in the NONE domain, whose gradient is None.
        grad: the gradient of the result, of the input's shape and dtype.
        quant_dtype: the dtype whose range is the grid where none is given.
        quant_min: the least code; it and the greatest belong to the grid.
        quant_max: the greatest code.

    Returns:
        Three arrays of the input's shape and dtype.

    Raises:
        AssertionError, ValueError, RuntimeError: as ``quantize_affine``.
    """
    qmin, qmax = code_range(quant_dtype, quant_min, quant_max)
    check_reals(input)
    s = per_element("scale", scale, input.shape, block_size)
    z = None if zero_point is None else per_element("zero_point", zero_point, input.shape, block_size)
    low, high = limits(qmin, qmax, input.dtype)
    if z is not None and b.int_domain == "refused":
        msg = f"zero_point of dtype {z.dtype} is not accepted: there is no gradient in the INT domain"
        raise RuntimeError(msg)
    with np.errstate(all="ignore"):
        v = quotient(b.division, input, s)
        r = ROUNDINGS[b.rounding](v)
        r = r if z is None else r + z
        q = clamp(r, low, high)
        steps = q if z is None else q - z
        passes, nothing = _passes(b, r, low, high), np.zeros_like(grad)
        if b.chain == "cancelled":
            of_input = np.where(passes, grad, nothing)
            of_scale = grad * np.where(passes, steps - v, steps)
            of_zero_point = np.where(passes, nothing, -(grad * s))
        else:
            reciprocal = np.ones((), s.dtype) / s
            through = np.where(passes, grad * s, nothing)
            of_input = through * reciprocal
            of_scale = grad * steps + -(through * input) * (reciprocal * reciprocal)
            of_zero_point = through + -(grad * s)
    return of_input, of_scale, None if z is None else of_zero_point


def _passes(b: Gradients, r: Array, low: Array, high: Array) -> Array:
    """Where the gradient passes, by the codes before they are limited."""
    match b.passes, b.ends:
        case "grid", "inside":
            return (r >= low) & (r <= high)
        case "grid", _:
            return (r > low) & (r < high)
        case which, _:
            return np.full(r.shape, which == "all")
