"""torchao's quantize, dequantize and fake quantize as the engine calls them, with codes that are floats."""

from itertools import product
from typing import Any

import numpy as np

from halfeven.reference.exact import FORMATS
from halfeven.reference.grid import Grid
from oracles.registry import derives_operation
from oracles.soft import Array, Soft, soft, softs
from oracles.torchao_blocks import clamped, from_number, numbers, pack
from oracles.torchao_domains import divided, int_real, promoted

__all__: list[str] = []

Block = tuple[int, ...]


def _engine(
    x: Array, scale: Array, zero: Array, block_size: Block | None
) -> tuple[list[Soft], list[Any], tuple[str, str]]:
    """Scales and zero points of the elements, and the dtypes of input and scale."""

    def spread(parameter: Array) -> list[Any]:
        given = parameter.reshape((1,) * (x.ndim - parameter.ndim) + parameter.shape)
        block = tuple(0 for _ in x.shape) if block_size is None else block_size
        at = [
            tuple(min(i // b if b else i, n - 1) for i, b, n in zip(index, block, given.shape, strict=True))
            for index in product(*map(range, x.shape))
        ]
        return [numbers(given[index])[0] for index in at]

    form = FORMATS[scale.dtype.name]
    return [Soft(float(v), form) for v in spread(scale)], spread(zero), (x.dtype.name, scale.dtype.name)


def _engine_codes(
    x: Array, scale: Array, zero: Array, grid: Grid, block_size: Block | None
) -> tuple[list[Soft], list[Soft], list[Any]]:
    s, z, dtypes = _engine(x, scale, zero, block_size)
    wide = promoted(*dtypes)
    points = [from_number(v, wide) for v in z]
    free = [divided(a, b, c, 0.0, "INT") for a, b, c in zip(softs(x), s, points, strict=True)]
    low, high = soft(float(grid.qmin), wide), soft(float(grid.qmax), wide)
    return [clamped(q, low, high) for q in free], s, z


@derives_operation("torchao", "quantize")
def _engine_quantize(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: Block | None = None) -> Array:
    codes, *_ = _engine_codes(x, scale, zero_point, grid, block_size)
    return pack([q.value for q in codes], x.shape, promoted(x.dtype.name, scale.dtype.name))


@derives_operation("torchao", "dequantize")
def _engine_dequantize(
    q: Array, scale: Array, zero_point: Array, _grid: Grid, dtype: Any, block_size: Block | None = None
) -> Array:
    out = np.dtype(dtype).name
    s, z, _ = _engine(q, scale, zero_point, block_size)
    codes = [from_number(v, out) for v in numbers(q)]
    points = [from_number(v, out) for v in z]
    return pack([int_real(a, b, c, 0.0, out).value for a, b, c in zip(codes, s, points, strict=True)], q.shape, out)


@derives_operation("torchao", "fake_quantize")
def _engine_fake(x: Array, scale: Array, zero_point: Array, grid: Grid, block_size: Block | None = None) -> Array:
    codes, s, z = _engine_codes(x, scale, zero_point, grid, block_size)
    out, wide = x.dtype.name, promoted(x.dtype.name, scale.dtype.name)
    points = [from_number(v, wide) for v in z]
    return pack([int_real(a, b, c, 0.0, out).value for a, b, c in zip(codes, s, points, strict=True)], x.shape, out)
