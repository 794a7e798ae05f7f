"""What is required of quantized_decomposed's choose_qparams, the calls that decide it, and the libraries' answers."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, calls, measured
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

_DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16)
_EPS = 2.0**-23
_NAME = "torch/quantized_decomposed.choose_qparams"
CHOOSE, SYMMETRIC = _NAME, f"{_NAME}_symmetric"
PER_TOKEN, ASYMMETRIC = f"{_NAME}_per_token", f"{_NAME}_per_token_asymmetric"
_OF_CHOOSE = "torch 2.13.0, quantized_decomposed.choose_qparams.tensor"
_OF_SYMMETRIC = "torch 2.13.0, quantized_decomposed.choose_qparams_symmetric.tensor"
_INF, _NAN = np.inf, np.nan
_ROWS = ((1, -0.3), (1, 2), (-2, -1), (0.1, 0.7, -0.1), (3,), (-3,), (5e4, -6e4), (1e-3, -1e-5), (-127.5, 127.5))


@measured(CHOOSE, _OF_CHOOSE)
@measured(
    SYMMETRIC,
    _OF_SYMMETRIC,
    text="The scale is the largest magnitude over half the number of steps, the zero point 128 for uint8, else 0.",
)
def ranges() -> Calls:
    """The scale is the range, widened to hold zero, over the number of steps, in the input's dtype; the zero point is
    the lowest code less the rounded quotient of the minimum and the scale, limited to the codes."""
    for row in _ROWS:
        for dtype in _DTYPES:
            x = np.asarray(row).astype(dtype)
            yield {"input": x, "qmin": -128, "qmax": 127, "eps": _EPS, "dtype": "int8"}
            yield {"input": x.reshape(-1, 1), "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}


@measured(CHOOSE, _OF_CHOOSE)
@measured(SYMMETRIC, _OF_SYMMETRIC, text="The scale is at least eps, and NaN for NaN.")
def small_and_special() -> Calls:
    """The scale is at least eps; the zero point of NaN is an int32 that wrapped."""
    rows = ((0,), (0, 0), (1e-6, -1e-6), (1e-30,), (-1e-40,), (_NAN, 1), (_INF, 1), (-_INF, 1), (_INF, -_INF))
    for row in rows:
        for dtype in _DTYPES:
            for eps in (_EPS, 1e-5, 1e-45):
                ends = {"qmin": -128, "qmax": 127, "eps": eps, "dtype": "int8"}
                yield {"input": np.asarray(row, np.float64).astype(dtype)} | ends
            x = np.asarray(row, np.float64).astype(dtype)
            yield {"input": x, "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}
    for eps in (2e-17, 1e-17):  # a scale of 0 in float16, and so quotients that no int32 holds
        x = np.array([-(2.0**-24), 0], np.float16)
        yield {"input": x, "qmin": -128, "qmax": 127, "eps": eps, "dtype": "int8"}


@measured(CHOOSE, _OF_CHOOSE)
@calls(SYMMETRIC, "ranges")
def ends() -> Calls:
    """qmin and qmax are taken as they are; the dtype of the codes does not limit them."""
    x = np.array([1, -0.3], np.float32)
    for low, high in ((0, 1), (-1, 0), (-8, 7), (0, 15), (-127, 127), (0, 65535), (-(2**15), 2**15 - 1)):
        yield {"input": x, "qmin": low, "qmax": high, "eps": _EPS, "dtype": "int32"}
    for dtype in ("uint8", "int8", "uint16", "int16", "int32", "float8_e5m2", "float8_e4m3fn"):
        yield {"input": x, "qmin": 0, "qmax": 300, "eps": _EPS, "dtype": dtype}


@measured(CHOOSE, _OF_CHOOSE)
@measured(SYMMETRIC, _OF_SYMMETRIC)
def refusals() -> Calls:
    """Other dtypes, ends without zero between them, and a tensor without elements are refused."""
    good: dict[str, Any] = {"input": np.ones(2, np.float32), "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}
    changes: tuple[dict[str, Any], ...] = ({"input": np.ones(2)}, {"input": np.ones(0, np.float32)})
    changes += ({"qmin": 1}, {"qmax": -1}, {"qmax": 0}, {"dtype": "float32"}, {"dtype": "int64"})
    for change in changes:
        yield good | change


@calls(CHOOSE, "ranges")
def zero_point_ties() -> Calls:
    """Minima whose zero point falls on a tie."""
    for low in (-0.5, -1.5, -2.5, -127.5, -253.5):
        for scale in (1.0, 2.0**-7):
            x = np.array([low * scale, (low + 255) * scale], np.float32)
            yield {"input": x, "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}
    for row in ((-97.46054077148438, 81.97943878173828), (12.286121368408203, -20.86690330505371)):
        # float32 makes a tie of the quotient, or none of one.
        yield {"input": np.array(row, np.float32), "qmin": 0, "qmax": 255, "eps": _EPS, "dtype": "uint8"}


def _tokens() -> Iterator[Array]:
    rows = ((1, -0.3), (1, 2), (-2, -1), (0.1, 0.7), (3, 0), (0, -3), (0, 0), (1e-7, 0), (5e4, -6e4), (1e-3, -1e-5))
    for dtype in _DTYPES:
        yield np.asarray(rows, np.float64).astype(dtype)
        yield np.asarray(rows[:4], np.float64).astype(dtype).reshape(2, 2, 2)
        yield np.asarray([[1, 2, 3, -0.5, 0.7]], np.float64).astype(dtype)
        yield np.asarray(0.7, np.float64).astype(dtype)
        yield np.asarray([1, -0.3], np.float64).astype(dtype)
        yield np.zeros((0, 2), dtype)


@measured(PER_TOKEN, "torch 2.13.0, quantized_decomposed.choose_qparams_per_token")
def tokens() -> Calls:
    """Every vector along the last dimension has the scale of its largest magnitude, at least 1e-5, over 127, and the
    zero point 0; float16 is computed in float32."""
    for x in _tokens():
        yield {"input": x, "dtype": "int8"}
    one, rest = np.nextafter(np.float32(1), np.float32(0)), ((1, -0.3), (0.1, 0.7), (1e-5, 0), (1e-7, 0))
    yield {"input": np.array([[one], [-3 * one]], np.float32), "dtype": "int8"}  # the reciprocal of 127 would show
    yield {"input": np.array([[np.nextafter(1.0, 0), 0], *rest]), "dtype": "int8"}


@calls(PER_TOKEN, "tokens")
def specials() -> Calls:
    """NaN, infinities, and magnitudes around the least."""
    for dtype in _DTYPES:
        x = np.array([[_NAN, 1], [_INF, 1], [1, -_INF], [1e-5, 0], [-1.1e-5, 0], [9e-6, 0]]).astype(dtype)
        yield {"input": x, "dtype": "int8"}


@measured(PER_TOKEN, "torch 2.13.0, quantized_decomposed.choose_qparams_per_token", aspect="refusals")
def refused_tokens() -> Calls:
    """Codes other than int8 and vectors without elements are refused."""
    yield {"input": np.ones((2, 2), np.float32), "dtype": "uint8"}
    for shape in ((2, 0), (2, 3, 0)):
        yield {"input": np.ones(shape, np.float32), "dtype": "int8"}


@measured(
    ASYMMETRIC,
    "torch 2.13.0, quantized_decomposed.choose_qparams_per_token_asymmetric",
    aspect="tokens",
)
def asymmetric_tokens() -> Calls:
    """The zero point comes from the end of the range with the larger error, computed and rounded in the input's
    dtype."""
    for x in _tokens():
        yield {"input": x, "dtype": "int8"}
    # The errors of both ends decide, not that of the maximum alone: the two zero points are one code apart.
    apart = ((-68.79551696777344, 40.505767822265625), (-58.84375, 14.8984375), (-123.5, 25.25), (91.0, -90.5))
    for row, dtype in zip(apart, (*_DTYPES, ml_dtypes.bfloat16), strict=True):
        yield {"input": np.array([row]).astype(dtype), "dtype": "int8"}


@calls(ASYMMETRIC, "tokens")
def ties() -> Calls:
    """Ranges whose zero point falls on a tie."""
    for dtype in _DTYPES:
        lows = np.array([-0.5, -1.5, -2.5, -127.5, -126.5, -253.5])
        yield {"input": np.stack([lows, lows + 255], axis=1).astype(dtype), "dtype": "int8"}


@measured(
    ASYMMETRIC,
    "torch 2.13.0, quantized_decomposed.choose_qparams_per_token_asymmetric",
    aspect="specials",
)
def asymmetric_specials() -> Calls:
    """The zero point of NaN is -2^63."""
    for dtype in _DTYPES:
        x = np.array([[_NAN, 1], [_INF, 1], [1, -_INF], [_INF, -_INF], [3e38, -3e38], [-1e-8, 0]]).astype(dtype)
        yield {"input": x, "dtype": "int8"}


@measured(
    ASYMMETRIC,
    "torch 2.13.0, quantized_decomposed.choose_qparams_per_token_asymmetric",
    aspect="refusals",
)
def asymmetric_refusals() -> Calls:
    """Vectors without elements are refused."""
    for shape in ((2, 0), (2, 3, 0)):
        yield {"input": np.ones(shape, np.float32), "dtype": "int8"}


def _choose_qparams(input: Any, qmin: int, qmax: int, eps: float, dtype: str) -> Any:  # noqa: A002 - torch's word
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams.tensor(input, qmin, qmax, eps, getattr(torch, dtype))


def _choose_qparams_symmetric(input: Any, qmin: int, qmax: int, eps: float, dtype: str) -> Any:  # noqa: A002
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams_symmetric.tensor(input, qmin, qmax, eps, getattr(torch, dtype))


def _choose_qparams_per_token(input: Any, dtype: str) -> Any:  # noqa: A002 - torch's word
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams_per_token(input, getattr(torch, dtype))


def _choose_qparams_per_token_asymmetric(input: Any, dtype: str) -> Any:  # noqa: A002 - torch's word
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.choose_qparams_per_token_asymmetric(input, getattr(torch, dtype))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch.observers": {
        "torch/quantized_decomposed.choose_qparams": _choose_qparams,
        "torch/quantized_decomposed.choose_qparams_symmetric": _choose_qparams_symmetric,
        PER_TOKEN: _choose_qparams_per_token,
        ASYMMETRIC: _choose_qparams_per_token_asymmetric,
    },
}
