"""ModelOpt's FP8, each scalar by itself: the scale of its index, and a search among the numbers of e4m3."""

from collections.abc import Callable
from itertools import product
from math import copysign, nan, prod

import ml_dtypes
import numpy as np

from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, soft, softs
from oracles.torchao_float8 import float8_code, float8_number

__all__ = ["places", "scales_of"]

_E4M3 = "float8_e4m3fn"
_Index = tuple[int, ...]


def _counts(shape: _Index, sizes: _Index) -> _Index:
    return tuple(len(range(0, n, size)) for n, size in zip(shape, sizes, strict=True))


def _check(given: Array, shape: _Index, sizes: _Index | None, *, reshapes: bool) -> Array:
    if sizes and given.shape != (counts := _counts(shape, sizes)):
        if not reshapes or given.size != prod(counts):
            msg = f"scales={given.shape}"
            raise AssertionError(msg)
        return given.reshape(counts)
    return given


def places(scales: _Index, sizes: _Index | None) -> Callable[[_Index], _Index]:
    """The index of the scale of an element."""
    if sizes:
        return lambda at: tuple(i // size for i, size in zip(at, sizes, strict=True))
    return lambda at: tuple(0 if n == 1 else i for i, n in zip(at[len(at) - len(scales) :], scales, strict=True))


def scales_of(x: Array, axis: int | None, sizes: _Index | None, top: float, *, alone: bool) -> Array:
    """The largest magnitude of the tensor, of each index or each block, over ``top``."""
    if sizes:
        shape = _counts(x.shape, sizes)
    elif axis is None or (x.ndim == 1 and not alone):
        shape = ()
    else:
        shape = tuple(n if i == axis % x.ndim else 1 for i, n in enumerate(x.shape))
    where = places(shape, sizes)
    found: dict[_Index, Soft] = {}
    for at, v in zip(product(*map(range, x.shape)), softs(x), strict=True):
        held = found.get(where(at))
        if held is None or v.nan or (not held.nan and abs(v).value > held.value):
            found[where(at)] = abs(v)
    whole = shape if sizes or prod(shape) != 1 else ()
    by = soft(top, x.dtype.name)
    return array([found[at] / by for at in product(*map(range, shape))], whole, x.dtype)


def _quantize(
    x: Array, scales: Array | None, axis: int | None, sizes: _Index | None, *, documented: bool
) -> tuple[Array, Array]:
    s = (
        scales_of(x, axis, sizes, 448.0, alone=documented)
        if scales is None
        else _check(scales, x.shape, sizes, reshapes=True)
    )
    where = places(s.shape, sizes)
    codes = []
    for at, v in zip(product(*map(range, x.shape)), softs(x), strict=True):
        by = soft(float(s[where(at)]), x.dtype.name)
        zero = documented and v.value == 0 == by.value
        quotient = v if zero else v / by
        codes.append(float8_code(quotient.value, _E4M3))
    return np.array(codes, np.uint8).reshape(x.shape).view(getattr(ml_dtypes, _E4M3)), s


@derives("modelopt/fp8_quantize")
def _documented(
    input: Array,  # noqa: A002
    scales: Array | None = None,
    axis: int | None = None,
    block_sizes: _Index | None = None,
) -> tuple[Array, Array]:
    return _quantize(input, scales, axis, block_sizes, documented=True)


@derives("modelopt/fp8_quantize@0.47")
def _measured(
    input: Array,  # noqa: A002
    scales: Array | None = None,
    axis: int | None = None,
    block_sizes: _Index | None = None,
) -> tuple[Array, Array]:
    return _quantize(input, scales, axis, block_sizes, documented=False)


@derives("modelopt/fp8_dequantize")
def _dequantize(
    quantized_data: Array, scale: Array, dtype: str = "float32", block_sizes: _Index | None = None
) -> Array:
    s = _check(scale, quantized_data.shape, block_sizes, reshapes=False)
    where, f = places(s.shape, block_sizes), form(DTYPES[dtype])
    codes = quantized_data.view(np.uint8).ravel().tolist()
    reals = []
    for at, code in zip(product(*map(range, quantized_data.shape)), codes, strict=True):
        number = float8_number(code, _E4M3)
        held = Soft(copysign(nan, number) if number != number else number, f)  # noqa: PLR0124 - NaN
        reals.append(held * soft(float(s[where(at)]), scale.dtype.name).to(f))
    return array(reals, quantized_data.shape, DTYPES[dtype])
