"""torch: the choose_qparams of ``torch.ops.quantized_decomposed``. Its document has no equations: all is measured.

The scale is real per code; zero points are codes.
"""

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array

__all__ = [
    "choose_qparams",
    "choose_qparams_per_token",
    "choose_qparams_per_token_asymmetric",
    "choose_qparams_symmetric",
]

_FLOATS = (np.dtype(np.float32), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_CODES = ("uint8", "int8", "uint16", "int16", "int32", "float8_e5m2", "float8_e4m3fn")
_SOURCE = "torch 2.13.0, torch.ops.quantized_decomposed, measured"


def _accept(x: Array, qmin: int, qmax: int, dtype: str) -> None:
    if x.dtype not in _FLOATS or dtype not in _CODES:
        msg = (
            f"input of {x.dtype.name}, dtype={dtype!r} are not accepted: give a float of at most 32 bits, and {_CODES}"
        )
        raise AssertionError(msg)
    if not qmin <= 0 <= qmax or qmin >= qmax:
        msg = f"qmin={qmin}, qmax={qmax} are not accepted: zero lies between them"
        raise AssertionError(msg)
    if not x.size:
        msg = f"input of shape {x.shape} is not accepted: give at least one element"
        raise RuntimeError(msg)


@formula(
    "torch.observers.choose_qparams",
    equation=(
        r"s = \max(\frac{\max(x, 0) - \min(x, 0)}{q_{max} - q_{min}}, \epsilon),"
        r"\quad z = \mathrm{clamp}(q_{min} - \mathrm{round}(\min(x, 0) / s), q_{min}, q_{max})"
    ),
    basis=AsComputed(dtype="the input's for range and quotient; float32 from eps on"),
    source=_SOURCE + ": choose_qparams.tensor",
)
def choose_qparams(
    input: Array,  # noqa: A002 - the library's own word
    qmin: int,
    qmax: int,
    eps: float,
    dtype: str,
) -> tuple[Array, Array]:
    """One scale, float64 of a float32, and one zero point, of shape (1,).

    The rounded quotient is an int32, -2^31 where it does not fit, and qmin minus it wraps.

    Args:
        input: float32, float16 or bfloat16, any shape.
        qmin: the lowest code, at most 0.
        qmax: the highest code, at least 0.
        eps: the smallest scale, in reals.
        dtype: of the codes; it does not limit qmin and qmax.

    Raises:
        AssertionError: a dtype that is not accepted, or ends without zero between them.
        RuntimeError: no element.
    """
    _accept(input, qmin, qmax, dtype)
    with np.errstate(all="ignore"):
        min_neg = np.minimum(np.min(input), np.zeros((), input.dtype))
        max_pos = np.maximum(np.max(input), np.zeros((), input.dtype))
        span = np.asarray(max_pos - min_neg)
        scale = np.asarray(span.astype(np.float32) / np.float32(qmax - qmin)).astype(input.dtype).astype(np.float32)
        scale = np.maximum(scale, np.float32(eps))
        r = np.rint(min_neg.astype(np.float32) / scale).astype(np.float64)
        int32 = np.where(np.abs(r) < 2.0**31, r, -(2.0**31))
        zero_point = np.clip((qmin - int32 + 2.0**31) % 2.0**32 - 2.0**31, qmin, qmax)
    return scale.astype(np.float64).reshape(1), zero_point.astype(np.int64).reshape(1)


@formula(
    "torch.observers.choose_qparams_symmetric",
    equation=r"s = \max(\frac{\max |x|}{(q_{max} - q_{min}) / 2}, \epsilon)",
    basis=AsComputed(dtype="the input's for the quotient; float32 from eps on"),
    source=_SOURCE + ": choose_qparams_symmetric.tensor",
)
def choose_qparams_symmetric(
    input: Array,  # noqa: A002 - the library's own word
    qmin: int,
    qmax: int,
    eps: float,
    dtype: str,
) -> tuple[Array, Array]:
    """One scale and one zero point, 128 for uint8, else 0. Arguments, results and errors as in ``choose_qparams``."""
    _accept(input, qmin, qmax, dtype)
    with np.errstate(all="ignore"):
        amax = np.asarray(np.max(np.abs(input)))
        scale = np.asarray(amax.astype(np.float32) / np.float32((qmax - qmin) / 2)).astype(input.dtype)
        scale = np.maximum(scale.astype(np.float32), np.float32(eps))
    return scale.astype(np.float64).reshape(1), np.asarray([128 if dtype == "uint8" else 0])


@formula(
    "torch.observers.choose_qparams_per_token",
    equation=r"s = \max(\max |x|, 10^{-5}) / 127,\quad z = 0",
    basis=AsComputed(dtype="the input's; float32 for float16"),
    source=_SOURCE + ": choose_qparams_per_token",
)
def choose_qparams_per_token(
    input: Array,  # noqa: A002 - the library's own word
    dtype: str,
) -> tuple[Array, Array]:
    """One scale and one zero point, 0, for every vector along the last dimension, which both keep with length 1.

    Args:
        input: float32, float16, bfloat16 or float64, any shape.
        dtype: "int8".

    Returns:
        Both of the input's dtype, or of float32 for float16.

    Raises:
        Exception: another ``dtype``.
        IndexError: the last dimension has no element.
    """
    if input.ndim and input.shape[-1] == 0:
        msg = f"input of shape {input.shape} is not accepted: its last dimension is empty"
        raise IndexError(msg)
    if dtype != "int8":
        msg = f"dtype={dtype!r} is not accepted: give 'int8'"
        raise Exception(msg)  # noqa: TRY002 - the library's own type
    with np.errstate(all="ignore"):
        amax = np.asarray(np.max(np.abs(input), axis=-1, keepdims=True) if input.ndim else np.abs(input))
        held = np.dtype(np.float32) if input.dtype == np.float16 else input.dtype
        clamped = np.maximum(amax.astype(held), np.asarray(1e-5).astype(held))
        wide = np.promote_types(held, np.float32)
        scales = np.asarray(clamped.astype(wide) / np.asarray(127, wide)).astype(held)
    return scales, np.zeros(scales.shape, held)


@formula(
    "torch.observers.choose_qparams_per_token_asymmetric",
    equation=(
        r"s = \max(\frac{M - m}{255}, 2^{-23}),\quad z = \mathrm{round}(\mathrm{clamp}(-128 - m / s, -128, 127))"
        r"\ \text{if}\ (-128 + m / s) + (127 + M / s) > 0,"
        r"\ \text{else}\ \mathrm{round}(\mathrm{clamp}(127 - M / s, -128, 127))"
    ),
    basis=AsComputed(dtype="the input's"),
    source=_SOURCE + ": choose_qparams_per_token_asymmetric",
)
def choose_qparams_per_token_asymmetric(
    input: Array,  # noqa: A002 - the library's own word
    dtype: str,  # noqa: ARG001 - the library does not look at it
) -> tuple[Array, Array]:
    """One scale and one zero point for every vector along the last dimension, which both keep with length 1.

    m and M are the minimum and the maximum, widened to hold zero. The zero point of NaN is -2^63.

    Args:
        input: float32, float16 or bfloat16, any shape.
        dtype: any; the codes are those of int8.

    Returns:
        scale: float64 that holds a number of the input's dtype; zero point: int64.

    Raises:
        IndexError: the last dimension has no element.
    """
    if input.ndim and input.shape[-1] == 0:
        msg = f"input of shape {input.shape} is not accepted: its last dimension is empty"
        raise IndexError(msg)
    t = input.dtype

    def rounded(v: Array) -> Array:
        return np.asarray(v, np.float32).astype(t).astype(np.float32)

    with np.errstate(all="ignore"):
        x = input.astype(np.float32)
        low = np.min(x, axis=-1, keepdims=True) if x.ndim else x
        high = np.max(x, axis=-1, keepdims=True) if x.ndim else x
        min_neg, max_pos = np.minimum(low, np.float32(0)), np.maximum(high, np.float32(0))
        scale = rounded(rounded(max_pos - min_neg) / np.float32(255))
        scale = np.maximum(scale, rounded(np.asarray(2.0**-23)))
        descaled_min, descaled_max = rounded(min_neg / scale), rounded(max_pos / scale)
        min_error, max_error = rounded(-128 + descaled_min), rounded(127 + descaled_max)
        from_min, from_max = rounded(-128 - descaled_min), rounded(127 - descaled_max)
        zero_point = np.where(rounded(min_error + max_error) > 0, from_min, from_max)
        zero_point = np.rint(np.clip(zero_point, np.float32(-128), np.float32(127))).astype(np.float64)
        codes = np.where(np.isnan(zero_point), -(2.0**63), zero_point).astype(np.int64)
    return scale.astype(np.float64), codes
