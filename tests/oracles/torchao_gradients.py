"""Gradients of torchao's fake quantize, element by element, from where the code falls."""

from collections.abc import Callable
from typing import Any

from oracles.registry import derives
from oracles.soft import Array, Soft, softs
from oracles.torchao_blocks import bounds, clamped, each, in_float, pack

__all__: list[str] = []

Three = tuple[Soft, Soft, Soft]


def _steps(quotient: Soft, z: Soft | None, low: Soft, high: Soft) -> tuple[Soft, Soft]:
    """The code before it is limited, and what the limited one is away from the zero point."""
    r = quotient.rint()
    if z is None:  # not even the sign of a zero changes
        return r, clamped(r, low, high)
    return r + z, clamped(r + z, low, high) - z


def _documented(x: Soft, s: Soft, z: Soft | None, g: Soft, low: Soft, high: Soft) -> Three:
    nothing = Soft(0.0, x.form)
    quotient = x / s
    r, steps = _steps(quotient, z, low, high)
    if low.value <= r.value <= high.value:
        return g, g * (steps - quotient), nothing
    return nothing, g * steps, -(g * s)


def _chained(x: Soft, s: Soft, z: Soft | None, g: Soft, low: Soft, high: Soft) -> Three:
    reciprocal = Soft(1.0, s.form) / s
    r, steps = _steps(x * reciprocal, z, low, high)
    through = g * s if low.value <= r.value <= high.value else Soft(0.0, x.form)
    down = -(through * x) * (reciprocal * reciprocal)
    return through * reciprocal, g * steps + down, through - g * s


def _each(one: Callable[..., Three], given: dict[str, Any]) -> tuple[Array, Array, Array | None]:
    x, block, point = given["input"], given["block_size"], given["zero_point"]
    dtype = x.dtype.name
    grid = bounds(given["quant_dtype"], given.get("quant_min"), given.get("quant_max"))
    if dtype not in ("float32", "float16", "bfloat16"):
        raise AssertionError(dtype)
    s = each(softs(given["scale"]), x.shape, block)
    z: list[Soft | None] = [None] * len(s) if point is None else each(softs(point), x.shape, block)
    low, high = (in_float(end, dtype) for end in grid)
    rows = zip(softs(x), s, z, softs(given["grad"]), strict=True)
    found = [one(a, b, c, d, low, high) for a, b, c, d in rows]
    columns = [pack([row[i].value for row in found], x.shape, dtype) for i in range(3)]
    return columns[0], columns[1], None if point is None else columns[2]


@derives("torchao/fake_quantize_affine_gradients")
def _gradients(**given: Any) -> tuple[Array, Array, Array | None]:
    return _each(_documented, given)


@derives("torchao/fake_quantize_affine_gradients@0.18")
def _gradients_0_18(**given: Any) -> tuple[Array, Array, Array | None]:
    return _each(_chained, given)


def _cut(x: Soft, s: Soft, z: Soft | None, g: Soft, low: Soft, high: Soft) -> Three:
    """Nothing of the input's own, but the sign of its nothing."""
    reciprocal, nothing = Soft(1.0, s.form) / s, Soft(0.0, x.form)
    _, q = _steps(x * reciprocal, z, low, high)
    return nothing * reciprocal, g * q + -(nothing * x) * (reciprocal * reciprocal), nothing


@derives("torchao/fake_quantize_affine_gradients@0.11")
def _gradients_0_11(**given: Any) -> tuple[Array, Array, Array | None]:
    found = _each(_cut, given)
    if given["zero_point"] is not None:
        raise RuntimeError(given["zero_point"])
    return found
