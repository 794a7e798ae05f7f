"""compressed-tensors: ranges at which scales and zero points part."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, calls

__all__: list[str] = []


Array = npt.NDArray[Any]


F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
_DTYPES = (F32, np.dtype(np.float64), np.dtype(np.float16), BF16)
_INF, _NAN = np.inf, np.nan
_TYPED = (1.0, 0.1, 0.3, 0.7, 3.0, 127.0, 127.5, 448.0, 1 / 3, 5.3, 6.9, 7.0, 2.71, 1e-3, 0.0123, 100.7)


def _one(value: float, dtype: Any = F32) -> Array:
    return np.array([value], dtype)


def _near(values: Any, dtype: Any = F32) -> Array:
    """Each value in ``dtype``, one unit in the last place below and above it, and the negatives."""
    with np.errstate(over="ignore"):
        centre = np.asarray(values, np.float64).astype(dtype)
    x = np.concatenate([centre, step(centre, np.asarray(-1)), step(centre, np.asarray(1))])
    return np.concatenate([x, -x])


# calculate_range


@calls("compressed-tensors/calculate_range", "integer")
def _range_integer() -> Iterator[Arguments]:
    for num_bits in (*range(1, 17), 24, 25, 32):
        yield {"type": "int", "num_bits": num_bits}


@calls("compressed-tensors/calculate_range", "float")
def _range_float() -> Iterator[Arguments]:
    for num_bits in (4, 6, 8):
        yield {"type": "float", "num_bits": num_bits}


@calls("compressed-tensors/calculate_range", "no-width")
def _range_no_width() -> Iterator[Arguments]:
    for num_bits in (0, -3):
        yield {"type": "int", "num_bits": num_bits}


@calls("compressed-tensors/calculate_range", "refusals")
def _range_refusals() -> Iterator[Arguments]:
    yield {"type": "complex", "num_bits": 8}
    yield {"type": "int", "num_bits": 8.5}
    for num_bits in (1, 5, 7, 16):
        yield {"type": "float", "num_bits": num_bits}


# calculate_qparams


def _ranges(dtype: Any) -> tuple[Array, Array]:
    high = np.array([*_TYPED, *(0.0 for _ in _TYPED), *_TYPED, 0.5, 2.0], np.float64)
    low = -np.array([*(0.0 for _ in _TYPED), *_TYPED, *_TYPED[::-1], 2.0, 0.5], np.float64)
    return low.astype(dtype), high.astype(dtype)


@calls("compressed-tensors/calculate_qparams", "symmetric")
def _symmetric() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        low, high = _ranges(dtype)
        for num_bits in (8, 4, 2, 3, 7):
            yield {"min_vals": low, "max_vals": high, "num_bits": num_bits}
    yield {"min_vals": _one(-1), "max_vals": _one(1), "num_bits": 1}
    yield {"min_vals": _one(-3), "max_vals": _one(1), "num_bits": 16}
    yield {"min_vals": _one(-3), "max_vals": _one(1), "num_bits": 24}


@calls("compressed-tensors/calculate_qparams", "asymmetric")
def _asymmetric() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        low, high = _ranges(dtype)
        for num_bits in (8, 4, 2):
            yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "symmetric": False}
    low, high = _ranges(F32)
    for num_bits in (9, 16, 17):  # the codes of 8 bits, of 16, and what neither holds
        yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "symmetric": False}


@calls("compressed-tensors/calculate_qparams", "zero-point-ties")
def _zero_point_ties() -> Iterator[Arguments]:
    for num_bits in (8, 4):
        steps = 2**num_bits - 1
        low = -np.arange(0.5, steps, 1.0)
        for scale in (1.0, 0.25):
            yield {
                "min_vals": (low * scale).astype(F32),
                "max_vals": ((low + steps) * scale).astype(F32),
                "num_bits": num_bits,
                "symmetric": False,
            }


@calls("compressed-tensors/calculate_qparams", "zero-in-range")
def _zero_in_range() -> Iterator[Arguments]:
    low, high = np.array([1, 0.5, -3, -2, 0, -0.0], F32), np.array([3, 0.5, -1, -2, 2, 4], F32)
    for symmetric in (True, False):
        yield {"min_vals": low, "max_vals": high, "symmetric": symmetric}


@calls("compressed-tensors/calculate_qparams", "zero-scale")
def _zero_scale() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        tiny = ml_dtypes.finfo(dtype).smallest_subnormal  # type: ignore[no-untyped-call]
        low, high = np.zeros(4, dtype), np.array([0, -0.0, float(tiny), 1], np.float64).astype(dtype)
        for symmetric in (True, False):
            yield {"min_vals": low, "max_vals": high, "symmetric": symmetric}
    low, high = np.zeros(3, F32), np.array([0, 1e-9, 1], F32)
    for scale_dtype in ("float8_e4m3fn", "float16", "bfloat16"):
        yield {"min_vals": low, "max_vals": high, "num_bits": 4, "type": "float", "scale_dtype": scale_dtype}


@calls("compressed-tensors/calculate_qparams", "wide-codes-of-narrow-floats")
def _wide_codes() -> Iterator[Arguments]:
    yield {"min_vals": _one(-1, np.float16), "max_vals": _one(3, np.float16), "num_bits": 16}
    yield {"min_vals": _one(-1, BF16), "max_vals": _one(3, BF16), "num_bits": 16}


@calls("compressed-tensors/calculate_qparams", "float")
def _float() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        low, high = _ranges(dtype)
        for num_bits in (8, 6, 4):
            yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "type": "float"}
    low, high = _ranges(F32)
    yield {"min_vals": low, "max_vals": high, "type": "float", "symmetric": False}


@calls("compressed-tensors/calculate_qparams", "scale-dtype")
def _scale_dtype() -> Iterator[Arguments]:
    # 6 steps of the element in a unit: the scale is the maximum over 6, here at the ties of E4M3 and beyond its end.
    ties = np.array([1.0625, 1.1875, 2.125, 17.0, 18.0, 440.0, 448.0, 464.0, 480.0, 1e4, 0.0009765625, 0.0029296875])
    for dtype in (F32, BF16):
        high = _near(ties * 6, dtype)[: 3 * ties.size]
        yield {
            "min_vals": np.zeros_like(high),
            "max_vals": high,
            "num_bits": 4,
            "type": "float",
            "group_size": 16,
            "scale_dtype": "float8_e4m3fn",
        }
    low, high = _ranges(F32)
    for scale_dtype in ("float16", "bfloat16"):
        yield {"min_vals": low, "max_vals": high * F32.type(3e4), "scale_dtype": scale_dtype}


@calls("compressed-tensors/calculate_qparams", "global-scale")
def _global_scale() -> Iterator[Arguments]:
    for dtype in (F32, BF16):
        low, high = _ranges(dtype)
        for scale_dtype in (None, "float8_e4m3fn"):
            for factor in (2688 / 7, 384.1, 1e-3):
                yield {
                    "min_vals": low,
                    "max_vals": high,
                    "num_bits": 4,
                    "type": "float",
                    "group_size": 16,
                    "scale_dtype": scale_dtype,
                    "global_scale": _one(factor),
                }


def _mx(high: Array, num_bits: int) -> Arguments:
    return {
        "min_vals": np.zeros_like(high),
        "max_vals": high,
        "num_bits": num_bits,
        "type": "float",
        "group_size": 32,
        "scale_dtype": "uint8",
    }


@calls("compressed-tensors/calculate_qparams", "mx")
def _mx_scales() -> Iterator[Arguments]:
    high = np.abs(_near([1, 1.5, 1.75, 1.875, 1.9375, 6, 6.9, 7, 7.5, 448, 449, 2.0**-120, 2.0**-126, 2.0**127]))
    for num_bits in (4, 6, 8):
        yield _mx(np.concatenate([high, np.array([0, _INF, 3e38, 1e-45], F32)]), num_bits)
    exponents = np.ldexp(np.ones(254), np.arange(-126, 128))
    yield _mx(exponents.astype(F32), 8)
    yield _mx(exponents.astype(BF16), 4)


@calls("compressed-tensors/calculate_qparams", "shapes")
def _shapes() -> Iterator[Arguments]:
    for symmetric in (True, False):
        for shape in ((), (1,), (0,), (2, 3), (2, 1, 3)):
            n = int(np.prod(shape))
            low = np.asarray(-np.arange(1, n + 1, dtype=F32)).reshape(shape)
            yield {"min_vals": low, "max_vals": np.asarray(2 - low), "symmetric": symmetric}
        yield {"min_vals": np.array([[-1], [-2]], F32), "max_vals": np.array([3, 4], F32), "symmetric": symmetric}


@calls("compressed-tensors/calculate_qparams", "nan-and-infinity")
def _no_numbers() -> Iterator[Arguments]:
    low, high = np.array([_NAN, -1, -_INF, -1, -_INF], F32), np.array([1, _NAN, 1, _INF, _INF], F32)
    for symmetric in (True, False):
        yield {"min_vals": low, "max_vals": high, "symmetric": symmetric}


@calls("compressed-tensors/calculate_qparams", "refusals")
def _refusals() -> Iterator[Arguments]:
    low, high = _one(-1), _one(2)
    for num_bits in (4, 6):
        yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "type": "float", "symmetric": False}
    yield {"min_vals": low, "max_vals": high, "num_bits": 5, "type": "float"}
    yield {"min_vals": low, "max_vals": high, "type": "complex"}
    for group_size in (0, -2, -1):  # of which only the last is accepted
        yield {"min_vals": low, "max_vals": high, "group_size": group_size}


# generate_gparam


@calls("compressed-tensors/generate_gparam", "magnitudes")
def _gparam() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        for value in _TYPED:
            yield {"updated_min_val": _one(-value / 2, dtype), "updated_max_val": _one(value, dtype)}
            yield {"updated_min_val": _one(-value, dtype), "updated_max_val": _one(0.01, dtype)}


@calls("compressed-tensors/generate_gparam", "no-finite-number")
def _gparam_specials() -> Iterator[Arguments]:
    for value in (0.0, _NAN, 1e-38, 1e-40, 1e-30, 2688 / 3.3e38, 2688 / 3.5e38, _INF):
        yield {"updated_min_val": _one(0), "updated_max_val": _one(value)}
    yield {"updated_min_val": _one(1), "updated_max_val": _one(-1)}
    yield {"updated_min_val": _one(0, np.float16), "updated_max_val": _one(0.03, np.float16)}


@calls("compressed-tensors/generate_gparam", "refusals")
def _gparam_refusals() -> Iterator[Arguments]:
    yield {"updated_min_val": np.array([-1, 0], F32), "updated_max_val": np.array([1, 2], F32)}
    yield {"updated_min_val": _one(-1), "updated_max_val": np.array([1, 2], F32)}
