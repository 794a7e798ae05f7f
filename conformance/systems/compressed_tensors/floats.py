"""compressed-tensors: powers of two for the scales of MX, and the nearest E2M1 number."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, documented, measured, silent
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)
_DTYPES = (F32, np.dtype(np.float64), np.dtype(np.float16), BF16)
_INF, _NAN = np.inf, np.nan


def _near(values: Any, dtype: Any = F32) -> Array:
    """Each value in ``dtype``, one unit in the last place below and above it, and the negatives."""
    with np.errstate(over="ignore"):
        centre = np.asarray(values, np.float64).astype(dtype)
    x = np.concatenate([centre, step(centre, np.asarray(-1)), step(centre, np.asarray(1))])
    return np.concatenate([x, -x])


@documented(
    "compressed-tensors/round_to_power_2", "utils.mxfp_utils.round_to_power_2: elem_mantissa sets the threshold"
)
def thresholds() -> Calls:
    """The mantissa is dropped, but from 2 - 2^-(k+1) times a power of two on the next one is taken, k being the
    element's mantissa bits: 1.75 for E2M1."""
    for dtype in _DTYPES:
        for elem_mantissa, threshold in ((0, 1.5), (1, 1.75), (2, 1.875), (3, 1.9375)):
            x = _near([1, 1.5, threshold, 2, 3, threshold * 2**5, threshold / 2**8, 6.9, 448, 0.0825], dtype)
            yield {"x": x, "elem_mantissa": elem_mantissa}
    yield {"x": np.asarray(1.8, F32)}


@measured(
    "compressed-tensors/round_to_power_2",
    "utils.mxfp_utils.round_to_power_2: exponent and sign bits are kept, measured",
)
def ends() -> Calls:
    """A subnormal number becomes 0 or the smallest normal one; the largest numbers become an infinity; the sign
    stays."""
    for dtype in _DTYPES:
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        least = float(info.smallest_normal)
        with np.errstate(over="ignore"):
            x = _near([0, least, least * 0.75, least / 2, float(info.smallest_subnormal), float(info.max)], dtype)
        yield {"x": np.concatenate([x, np.array([_INF, -_INF], dtype)])}


@silent("compressed-tensors/round_to_power_2", "utils.mxfp_utils.round_to_power_2")
def nan() -> Calls:
    """What NaN becomes: an infinity, or a zero where the addition carries out of its payload; the document does not
    say."""
    for dtype in _DTYPES:
        bits, mantissa = 8 * dtype.itemsize, int(ml_dtypes.finfo(dtype).nmant)  # type: ignore[no-untyped-call]
        infinity = (1 << (bits - 1)) - (1 << mantissa)
        quiet = infinity | 1 << (mantissa - 1)
        carry = infinity | (1 << mantissa) - (1 << (mantissa - 2))
        patterns = [quiet, carry - 1, carry, (1 << (bits - 1)) - 1]
        signed = np.array([*patterns, *(p | 1 << (bits - 1) for p in patterns)], f"u{dtype.itemsize}")
        yield {"x": signed.view(dtype)}


@documented("compressed-tensors/round_to_power_2", "utils.mxfp_utils.round_to_power_2: unsupported dtypes")
def refusals() -> Calls:
    """What is not float16, bfloat16, float32 or float64 is a TypeError."""
    yield {"x": np.array([1, 2], np.int32)}
    yield {"x": np.array([1, 2], np.int64)}


@documented(
    "compressed-tensors/generate_mx_scales",
    "utils.mxfp_utils.generate_mx_scales: its three steps; the element's offset",
)
def exponents() -> Calls:
    """The biased exponent is 127 plus that of the power of two, less 2 for E2M1 and E2M3 and 8 for E4M3; E2M3 rounds up
    from 1.9375, the others from 1.75."""
    for dtype in _DTYPES:
        e = np.arange(-14, 15)
        x = np.concatenate([np.ldexp(m, e) for m in (1.0, 1.7421875, 1.75, 1.875, 1.9375)]).astype(dtype)
        for num_bits in (4, 6, 8):
            yield {"x": x, "num_bits": num_bits}
    yield {"x": np.ldexp(np.ones(254), np.arange(-126, 128)).astype(F32)}


@measured("compressed-tensors/generate_mx_scales", "utils.mxfp_utils.generate_mx_scales: the logarithm, measured")
def specials() -> Calls:
    """0 has the exponent minus infinity and an infinity plus infinity; a negative number has none, NaN."""
    for dtype in _DTYPES:
        x = np.array([0, -0.0, _INF, -_INF, -1, -0.3], np.float64).astype(dtype)
        yield {"x": x}
        yield {"x": x, "num_bits": 8}


@documented("compressed-tensors/generate_mx_scales", "utils.mxfp_utils.generate_mx_scales: num_bits", aspect="refusals")
def mx_refusals() -> Calls:
    """Elements of other than 4, 6 or 8 bits, and groups that are no floats, are refused."""
    yield {"x": np.ones(1, F32), "num_bits": 5}
    yield {"x": np.array([1], np.int32), "num_bits": 4}


@documented(
    "compressed-tensors/cast_to_fp4", "FP4_E2M1_DATA.cast_to_fp4: nearest representable value", aspect="nearest"
)
def ties() -> Calls:
    """The nearest of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives is taken; a tie goes to the even code (ties:
    measured)."""
    for dtype in _DTYPES:
        yield {"x": _near([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5, 0.5, 1, 1.5, 2, 3, 4, 6], dtype)}


@documented("compressed-tensors/cast_to_fp4", "FP4_E2M1_DATA.cast_to_fp4: the values that there are")
def beyond() -> Calls:
    """What is beyond 6, and the infinities, give 6 on their side."""
    for dtype in _DTYPES:
        largest = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        yield {"x": np.array([6.5, 7, 8, 100, largest, _INF, -7, -largest, -_INF], np.float64).astype(dtype)}


@measured("compressed-tensors/cast_to_fp4", "FP4_E2M1_DATA.cast_to_fp4, measured on the CPU")
def zero_sign_and_nan() -> Calls:
    """NaN stays; a small negative number gives -0.0, and -0.0 gives 0.0."""
    for dtype in _DTYPES:
        yield {"x": np.array([0.0, -0.0, 0.1, -0.1, -0.25, _NAN], np.float64).astype(dtype)}
    yield {"x": np.zeros((0, 3), F32)}
    yield {"x": np.array(-3.2, F32)}


def _round_to_power_2(x: Tensor, elem_mantissa: int = 1) -> Any:
    """``utils.mxfp_utils.round_to_power_2``."""
    from compressed_tensors.quantization.utils.mxfp_utils import round_to_power_2

    return round_to_power_2(x, elem_mantissa)


def _generate_mx_scales(x: Tensor, num_bits: int = 4) -> Any:
    """``utils.mxfp_utils.generate_mx_scales``."""
    from compressed_tensors.quantization.utils.mxfp_utils import generate_mx_scales

    return generate_mx_scales(x, num_bits)


def _cast_to_fp4(x: Tensor) -> Any:
    """``FP4_E2M1_DATA.cast_to_fp4``."""
    from compressed_tensors.quantization.quant_args import FP4_E2M1_DATA

    return FP4_E2M1_DATA.cast_to_fp4(x)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "compressed-tensors": {
        "compressed-tensors/round_to_power_2": _round_to_power_2,
        "compressed-tensors/generate_mx_scales": _generate_mx_scales,
        "compressed-tensors/cast_to_fp4": _cast_to_fp4,
    },
}
