"""ModelOpt's INT8, each scalar by itself: the scale of its index, and the nearest integer to an exact quotient."""

from itertools import product

import numpy as np

from oracles.modelopt_fp8 import places, scales_of
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft

__all__: list[str] = []

_Index = tuple[int, ...]


def _code(x: Soft, s: Soft) -> int:
    quotient = x / s
    return 0 if quotient.nan else int(min(max(quotient.rint().value, -128.0), 127.0))


def _check(scale: Array, shape: _Index, sizes: _Index) -> None:
    if any(n % size for n, size in zip(shape, sizes, strict=True)):
        raise AssertionError(shape)
    if scale.shape != tuple(n // size for n, size in zip(shape, sizes, strict=True)):
        raise AssertionError(scale.shape)


def _filled(x: Array, sizes: _Index) -> Array:
    found = np.zeros([-(-n // size) * size for n, size in zip(x.shape, sizes, strict=True)], x.dtype)
    for at in product(*map(range, x.shape)):
        found[at] = x[at]
    return found


def _quantize(
    x: Array, scales: Array | None, axis: int | None, sizes: _Index | None, *, documented: bool
) -> tuple[Array, Array]:
    if sizes and scales is not None:
        _check(scales, x.shape, sizes)
    x = _filled(x, sizes) if sizes else x
    s = scales_of(x, axis, sizes, 127.0, alone=documented) if scales is None else scales
    where = places(s.shape, sizes)
    kind = x.dtype.name
    codes = [_code(soft(float(x[at]), kind), soft(float(s[where(at)]), kind)) for at in product(*map(range, x.shape))]
    return np.array(codes, np.int8).reshape(x.shape), s


@derives("modelopt/int8_quantize")
def _documented(
    input: Array,  # noqa: A002
    scales: Array | None = None,
    axis: int | None = None,
    block_sizes: _Index | None = None,
) -> tuple[Array, Array]:
    return _quantize(input, scales, axis, block_sizes, documented=True)


@derives("modelopt/int8_quantize@0.47")
def _measured(
    input: Array,  # noqa: A002
    scales: Array | None = None,
    axis: int | None = None,
    block_sizes: _Index | None = None,
) -> tuple[Array, Array]:
    return _quantize(input, scales, axis, block_sizes, documented=False)


@derives("modelopt/int8_dequantize")
def _dequantize(
    quantized_data: Array, scale: Array, shape: _Index, dtype: str = "float32", block_sizes: _Index | None = None
) -> Array:
    if block_sizes:
        _check(scale, quantized_data.shape, block_sizes)
    where, f = places(scale.shape, block_sizes), form(DTYPES[dtype])
    reals = [
        Soft(float(quantized_data[at]), f) * soft(float(scale[where(at)]), scale.dtype.name).to(f)
        for at in product(*map(range, shape))
    ]
    return array(reals, shape, DTYPES[dtype])
