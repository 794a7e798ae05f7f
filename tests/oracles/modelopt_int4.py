"""ModelOpt's INT4, each scalar by itself in operations of the input's dtype."""

from math import prod

import numpy as np

from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, form, largest, softs

__all__: list[str] = []


def _code(product: Soft) -> int:
    return 0 if product.nan else int(min(max(product.rint().value, -8.0), 7.0)) + 8


def _quantize(x: Array, size: int, *, documented: bool) -> tuple[Array, Array]:
    *rows, width = x.shape
    if width % 2 == 1:
        msg = f"input={x.shape}"
        raise AssertionError(msg)
    f = form(x.dtype)
    numbers = softs(x)
    numbers += [Soft(0.0, f)] * (-len(numbers) % size)
    codes: list[int] = []
    scales: list[Soft] = []
    for i in range(0, len(numbers), size):
        block = numbers[i : i + size]
        amax = largest(block)
        seven = Soft(7.0, f)
        s = seven / amax if documented else (Soft(1.0, f) / amax) * seven
        scales.append(s)
        codes += [8 if documented and v.value == 0 and not s.nan else _code(v * s) for v in block]
    packed = [16 * high + low for high, low in zip(codes[::2], codes[1::2], strict=True)]
    if len(packed) % prod(rows):
        msg = f"block_size={size}"
        raise RuntimeError(msg)
    return np.array(packed, np.uint8).reshape(*rows, -1), array(scales, (len(scales), 1), x.dtype)


@derives("modelopt/int4_quantize")
def _documented(input: Array, block_size: int) -> tuple[Array, Array]:  # noqa: A002
    return _quantize(input, block_size, documented=True)


@derives("modelopt/int4_quantize@0.47")
def _measured(input: Array, block_size: int) -> tuple[Array, Array]:  # noqa: A002
    return _quantize(input, block_size, documented=False)


@derives("modelopt/int4_dequantize")
def _dequantize(
    quantized_data: Array, scale: Array, shape: tuple[int, ...], block_size: int, dtype: str = "float32"
) -> Array:
    codes = [half for b in quantized_data.ravel().tolist() for half in divmod(b, 16)]
    scales = softs(scale)
    reals = [Soft(float(c - 8), form(scale.dtype)) / scales[i // block_size] for i, c in enumerate(codes)]
    return array([v.to(form(DTYPES[dtype])) for v in reals[: prod(shape)]], shape, DTYPES[dtype])
