"""What compressed-tensors requires of its ranges of codes, scales and zero points, by calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, Calls, calls, documented, measured, silent
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

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


@documented("compressed-tensors/calculate_range", "utils.helpers.calculate_range: the effective range of the arguments")
def integer() -> Calls:
    """An integer of b bits has the codes -2^(b-1) to 2^(b-1) - 1."""
    for num_bits in (*range(1, 17), 24, 25, 32):
        yield {"type": "int", "num_bits": num_bits}


@documented(
    "compressed-tensors/calculate_range", "quant_args: FP8_E4M3_DATA, FP6_E2M3_DATA, FP4_E2M1_DATA", aspect="float"
)
def range_float() -> Calls:
    """A float of 8, 6 or 4 bits is E4M3, E2M3 or E2M1 and reaches 448, 7.5 or 6 on both sides."""
    for num_bits in (4, 6, 8):
        yield {"type": "float", "num_bits": num_bits}


@silent("compressed-tensors/calculate_range", "QuantizationArgs: num_bits")
def no_width() -> Calls:
    """What a width of 0 or below gives; nothing refuses it."""
    for num_bits in (0, -3):
        yield {"type": "int", "num_bits": num_bits}


@documented(
    "compressed-tensors/calculate_range",
    "QuantizationArgs: types of num_bits and type; calculate_range: only 4, 6 and 8 bits",
)
def refusals() -> Calls:
    """A width that is no integer, another type than int and float, and a float of a width without a format are
    refused."""
    yield {"type": "complex", "num_bits": 8}
    yield {"type": "int", "num_bits": 8.5}
    for num_bits in (1, 5, 7, 16):
        yield {"type": "float", "num_bits": num_bits}


# calculate_qparams


def _ranges(dtype: Any) -> tuple[Array, Array]:
    high = np.array([*_TYPED, *(0.0 for _ in _TYPED), *_TYPED, 0.5, 2.0], np.float64)
    low = -np.array([*(0.0 for _ in _TYPED), *_TYPED, *_TYPED[::-1], 2.0, 0.5], np.float64)
    return low.astype(dtype), high.astype(dtype)


@measured(
    "compressed-tensors/calculate_qparams",
    "QuantizationArgs: symmetric; utils.helpers.calculate_qparams (the divisor: measured)",
    aspect="symmetric-scale",
)
def _symmetric() -> Calls:
    """A symmetric scale is the largest magnitude over half the number of steps, 127.5 for 8 bits, and the zero point is
    0."""
    for dtype in _DTYPES:
        low, high = _ranges(dtype)
        for num_bits in (8, 4, 2, 3, 7):
            yield {"min_vals": low, "max_vals": high, "num_bits": num_bits}
    yield {"min_vals": _one(-1), "max_vals": _one(1), "num_bits": 1}
    yield {"min_vals": _one(-3), "max_vals": _one(1), "num_bits": 16}
    yield {"min_vals": _one(-3), "max_vals": _one(1), "num_bits": 24}


@measured(
    "compressed-tensors/calculate_qparams",
    "QuantizationArgs: symmetric; utils.helpers.calculate_qparams (the equation: measured)",
    aspect="asymmetric-scale",
)
def asymmetric() -> Calls:
    """An asymmetric scale is the range over the number of steps; the zero point is qmin - min / scale."""
    for dtype in _DTYPES:
        low, high = _ranges(dtype)
        for num_bits in (8, 4, 2):
            yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "symmetric": False}
    low, high = _ranges(F32)
    for num_bits in (9, 16, 17):  # the codes of 8 bits, of 16, and what neither holds
        yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "symmetric": False}


@documented(
    "compressed-tensors/calculate_qparams",
    "QuantizationArgs: zp_dtype; round_to_quantized_type_dtype: rounds to the nearest representation",
    aspect="zero-point-rounding",
)
def zero_point_ties() -> Calls:
    """The zero point is limited to the range and rounded to the nearest integer, ties to even, then held in the integer
    type of the codes."""
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


@documented("compressed-tensors/calculate_qparams", "utils.helpers.calculate_qparams: 0.0 is always representable")
def zero_in_range() -> Calls:
    """The range is widened to hold 0, so that 0 has a code."""
    low, high = np.array([1, 0.5, -3, -2, 0, -0.0], F32), np.array([3, 0.5, -1, -2, 2, 4], F32)
    for symmetric in (True, False):
        yield {"min_vals": low, "max_vals": high, "symmetric": symmetric}


@documented(
    "compressed-tensors/calculate_qparams",
    "utils.helpers.calculate_qparams: zeros are updated to prevent a division by 0 (the values: measured)",
)
def zero_scale() -> Calls:
    """A scale of 0 is replaced: by the epsilon of its dtype, or 0.125 where it is rounded to E4M3."""
    for dtype in _DTYPES:
        tiny = ml_dtypes.finfo(dtype).smallest_subnormal  # type: ignore[no-untyped-call]
        low, high = np.zeros(4, dtype), np.array([0, -0.0, float(tiny), 1], np.float64).astype(dtype)
        for symmetric in (True, False):
            yield {"min_vals": low, "max_vals": high, "symmetric": symmetric}
    low, high = np.zeros(3, F32), np.array([0, 1e-9, 1], F32)
    for scale_dtype in ("float8_e4m3fn", "float16", "bfloat16"):
        yield {"min_vals": low, "max_vals": high, "num_bits": 4, "type": "float", "scale_dtype": scale_dtype}


@measured("compressed-tensors/calculate_qparams", "utils.helpers.calculate_qparams, measured")
def wide_codes_of_narrow_floats() -> Calls:
    """The number of steps is rounded to the dtype of the minima: 65535 becomes an infinity in float16, and the scale
    its epsilon."""
    yield {"min_vals": _one(-1, np.float16), "max_vals": _one(3, np.float16), "num_bits": 16}
    yield {"min_vals": _one(-1, BF16), "max_vals": _one(3, BF16), "num_bits": 16}


@documented("compressed-tensors/calculate_qparams", "QuantizationArgs: type, zp_dtype")
def _float() -> Calls:
    """For floats the same equations hold with the range of the format; the zero point is an E4M3 number."""
    for dtype in _DTYPES:
        low, high = _ranges(dtype)
        for num_bits in (8, 6, 4):
            yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "type": "float"}
    low, high = _ranges(F32)
    yield {"min_vals": low, "max_vals": high, "type": "float", "symmetric": False}


@documented(
    "compressed-tensors/calculate_qparams",
    "utils.helpers.calculate_qparams: the third step; round_to_quantized_type_dtype",
)
def _scale_dtype() -> Calls:
    # 6 steps of the element in a unit: the scale is the maximum over 6, here at the ties of E4M3 and beyond its end.
    """With a scale_dtype the scale is limited to its range and rounded to it, before zeros are replaced; the result
    keeps the dtype it had."""
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


@documented("compressed-tensors/calculate_qparams", "utils.helpers.calculate_qparams: global_scale")
def global_scale() -> Calls:
    """A global scale multiplies the scale before it is rounded to scale_dtype."""
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


@documented("compressed-tensors/calculate_qparams", "utils.mxfp_utils.generate_mx_scales; maybe_convert_from_mx_exp")
def mx() -> Calls:
    """MX scales (float elements, groups of 32, scale_dtype uint8) are powers of two whose exponent fits a byte."""
    high = np.abs(_near([1, 1.5, 1.75, 1.875, 1.9375, 6, 6.9, 7, 7.5, 448, 449, 2.0**-120, 2.0**-126, 2.0**127]))
    for num_bits in (4, 6, 8):
        yield _mx(np.concatenate([high, np.array([0, _INF, 3e38, 1e-45], F32)]), num_bits)
    exponents = np.ldexp(np.ones(254), np.arange(-126, 128))
    yield _mx(exponents.astype(F32), 8)
    yield _mx(exponents.astype(BF16), 4)
    # One thing else than the block scales of MX each.
    yield {**_mx(high, 8), "type": "int"}
    yield {**_mx(high, 8), "group_size": 16}
    yield {**_mx(high, 8), "scale_dtype": None}
    yield {**_mx(np.array([0, 0.1, 300], F32), 8), "type": "int"}


@calls("compressed-tensors/calculate_qparams", "symmetric-scale")
@calls("compressed-tensors/calculate_qparams", "asymmetric-scale")
def shapes() -> Calls:
    """Minima and maxima of every shape, and of two."""
    for symmetric in (True, False):
        for shape in ((), (1,), (0,), (2, 3), (2, 1, 3)):
            n = int(np.prod(shape))
            low = np.asarray(-np.arange(1, n + 1, dtype=F32)).reshape(shape)
            yield {"min_vals": low, "max_vals": np.asarray(2 - low), "symmetric": symmetric}
        yield {"min_vals": np.array([[-1], [-2]], F32), "max_vals": np.array([3, 4], F32), "symmetric": symmetric}


@silent("compressed-tensors/calculate_qparams", "utils.helpers.calculate_qparams")
def nan_and_infinity() -> Calls:
    """What minima and maxima that are no finite numbers give; the document does not say."""
    low, high = np.array([_NAN, -1, -_INF, -1, -_INF], F32), np.array([1, _NAN, 1, _INF, _INF], F32)
    for symmetric in (True, False):
        yield {"min_vals": low, "max_vals": high, "symmetric": symmetric}


@documented(
    "compressed-tensors/calculate_qparams", "utils.helpers.calculate_qparams; QuantizationArgs: group_size, type"
)
def _refusals() -> Calls:
    """Asymmetric floats of 4 or 6 bits, floats of other widths, unknown types and group sizes of 0 or below -1 are
    refused."""
    low, high = _one(-1), _one(2)
    for num_bits in (4, 6):
        yield {"min_vals": low, "max_vals": high, "num_bits": num_bits, "type": "float", "symmetric": False}
    yield {"min_vals": low, "max_vals": high, "num_bits": 5, "type": "float"}
    yield {"min_vals": low, "max_vals": high, "type": "complex"}
    for group_size in (0, -2, -1):  # of which only the last is accepted
        yield {"min_vals": low, "max_vals": high, "group_size": group_size}


# generate_gparam


@documented(
    "compressed-tensors/generate_gparam", "utils.helpers.generate_gparam: goal of the global scale", aspect="quotient"
)
def magnitudes() -> Calls:
    """The global scale is 448 * 6 over the largest magnitude, so that the scales of groups use the whole of E4M3 where
    the codes use the whole of E2M1."""
    for dtype in _DTYPES:
        for value in _TYPED:
            yield {"updated_min_val": _one(-value / 2, dtype), "updated_max_val": _one(value, dtype)}
            yield {"updated_min_val": _one(-value, dtype), "updated_max_val": _one(0.01, dtype)}


@documented("compressed-tensors/generate_gparam", "utils.helpers.generate_gparam: NaN and infinity are replaced by 1")
def no_finite_number() -> Calls:
    """Where the quotient is no finite number, as of a largest magnitude of 0 or NaN, the global scale is 1; of an
    infinity it is 0."""
    for value in (0.0, _NAN, 1e-38, 1e-40, 1e-30, 2688 / 3.3e38, 2688 / 3.5e38, _INF):
        yield {"updated_min_val": _one(0), "updated_max_val": _one(value)}
    yield {"updated_min_val": _one(1), "updated_max_val": _one(-1)}
    yield {"updated_min_val": np.asarray(-1, F32), "updated_max_val": np.asarray(2, F32)}
    yield {"updated_min_val": _one(0, np.float16), "updated_max_val": _one(0.03, np.float16)}


@documented(
    "compressed-tensors/generate_gparam",
    "utils.helpers.generate_gparam: a global scale for an entire tensor",
    aspect="one-number",
)
def gparam_refusals() -> Calls:
    """The minimum and maximum of one whole tensor are one number each; more are refused."""
    yield {"updated_min_val": np.array([-1, 0], F32), "updated_max_val": np.array([1, 2], F32)}
    yield {"updated_min_val": _one(-1), "updated_max_val": np.array([1, 2], F32)}
    yield {"updated_min_val": np.array([-1, 0], F32), "updated_max_val": _one(2)}


def calculate_range(type: str, num_bits: int) -> Any:  # noqa: A002 - the document's own word
    """``utils.helpers.calculate_range``."""
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.utils import calculate_range

    return calculate_range(QuantizationArgs(type=type, num_bits=num_bits), "cpu")


def calculate_qparams(
    min_vals: Tensor,
    max_vals: Tensor,
    num_bits: int = 8,
    type: str = "int",  # noqa: A002
    symmetric: bool = True,
    group_size: int | None = None,
    scale_dtype: str | None = None,
    global_scale: Tensor | None = None,
) -> Any:
    """``utils.helpers.calculate_qparams``."""
    import torch
    from compressed_tensors.quantization import QuantizationArgs
    from compressed_tensors.quantization.utils import calculate_qparams

    args = QuantizationArgs(
        num_bits=num_bits,
        type=type,
        symmetric=symmetric,
        group_size=group_size,
        scale_dtype=scale_dtype and getattr(torch, scale_dtype),
    )
    return calculate_qparams(min_vals, max_vals, args, global_scale=global_scale)


def generate_gparam(updated_min_val: Tensor, updated_max_val: Tensor) -> Any:
    """``utils.helpers.generate_gparam``."""
    from compressed_tensors.quantization.utils import generate_gparam

    return generate_gparam(updated_min_val, updated_max_val)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "compressed-tensors": {
        "compressed-tensors/calculate_range": calculate_range,
        "compressed-tensors/calculate_qparams": calculate_qparams,
        "compressed-tensors/generate_gparam": generate_gparam,
    },
}
