"""torch: the operators ``torch.ops.quantized_decomposed.{quantize,dequantize}_per_{tensor,channel}``."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, on, says, silent
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

on(
    "torch.quantized_decomposed",
    says(
        "nearest-code",
        "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
        "quantized_decomposed.quantize_per_tensor: docstring, affine mapping (ties: measured)",
    ),
    says(
        "zero-point-after-rounding",
        "The zero point is added to the rounded quotient.",
        "quantized_decomposed.quantize_per_tensor: docstring, affine mapping",
    ),
    says(
        "saturation",
        "The code is limited to [quant_min, quant_max].",
        "quantized_decomposed.quantize_per_tensor: quant_min and quant_max",
        kills=("narrow-range", "clamp-before-zero-point", "wrap", "int32-cast", "end-past-the-grid"),
    ),
    says(
        "huge-inputs",
        "Inputs however large, and the infinities, give the end of the range on their side.",
        "quantized_decomposed.quantize_per_tensor: quant_min and quant_max",
    ),
    says(
        "dequantized-value",
        "A code becomes (code - zero_point) * scale.",
        "quantized_decomposed.quantize_per_tensor: docstring, affine mapping",
    ),
)


_NAME = "torch/quantized_decomposed"
_TENSOR, _CHANNEL = (f"{_NAME}.quantize_per_{kind}" for kind in ("tensor", "channel"))
_OF_TENSOR, _OF_CHANNEL = (f"{_NAME}.dequantize_per_{kind}" for kind in ("tensor", "channel"))
_SOURCE = "quantized_decomposed.quantize_per_tensor: docstring, affine mapping"
_AXIS = "quantized_decomposed.quantize_per_channel: docstring, axis"

_DTYPES: tuple[Any, ...] = (np.float32, np.float16, ml_dtypes.bfloat16)
_SCALES = (1.0, 0.1, 0.3, 0.75)


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _grid(low: int, high: int) -> dict[str, int]:
    return {"quant_min": low, "quant_max": high}


def _asked(formula: str, x: Array, scale: float, zero: int, **more: Any) -> Arguments:
    """A call with one scale, or the same twice along axis 0, for whichever of the two the formula is."""
    if formula in (_TENSOR, _OF_TENSOR):
        return {"input": x, "scale": float(np.float32(scale)), "zero_point": zero, **more}
    parameters = {"scales": _f([scale, 0.5]), "zero_points": np.array([zero, 1])}
    return {"input": np.stack([x, x]), "axis": 0, **parameters, **more}


@documented((_TENSOR, _CHANNEL), f"{_SOURCE} (ties and dtype: measured)")
def nearest(formula: str) -> Calls:
    """The quotient is rounded to the nearest integer, a tie to the even one, and the zero point is added; 16-bit floats
    are widened to float32 first."""
    grids: tuple[tuple[int, int, str], ...] = ((-128, 127, "int8"), (0, 255, "uint8"), (-8, 7, "int8"))
    for (low, high, dtype), scale, zero, t in product(grids, _SCALES, (0, 5), _DTYPES):
        middle = ((np.arange(low - 2, high + 3) - zero + 0.5) * scale).astype(t)
        bits = middle.view(f"int{8 * middle.dtype.itemsize}")
        x = np.concatenate([middle, (bits + 1).view(t), (bits - 1).view(t)])
        yield _asked(formula, x, scale, zero, **_grid(low, high), dtype=dtype)


@documented((_TENSOR, _CHANNEL), "quantized_decomposed.quantize_per_tensor: quant_min and quant_max")
def saturation(formula: str) -> Calls:
    """The code is limited to [quant_min, quant_max]: infinities, inputs and zero points however large too."""
    for zero, t in product((0, 3, -3, 300), _DTYPES):
        x = _f([np.inf, -np.inf, 3e38, -3e38, 1e10, -1e10, 3e9, -3e9, 1e20, -1e20, 300, -300]).astype(t)
        yield _asked(formula, x, 0.5, zero, **_grid(-8, 7), dtype="int8")


@documented((_TENSOR, _CHANNEL), _SOURCE)
def zero_point(formula: str) -> Calls:
    """A zero point however large is added."""
    for zero, scale in product((2**24 + 1, -(2**24) - 3), _SCALES):
        x = _f([0.5, 1.5, 2.5, -0.5, 0.0, 0.05, 0.15, 7.4, -8.6])
        yield _asked(formula, x, scale, zero, **_grid(-(2**25), 2**25), dtype="int32")


@documented((_TENSOR, _CHANNEL), "quantized_decomposed.quantize_per_tensor: quant_min and quant_max")
def wide_grids(formula: str) -> Calls:
    """Of codes that float32 does not hold the ends are no float32s: none is passed, and none wraps."""
    grids = ((-(2**31), 2**31 - 1), (0, 2**31 - 1), (-(2**30), 2**30 - 1), (-(2**25), 2**25 - 1), (-(2**24), 2**24 - 1))
    for (low, high), zero in product((*grids, (-(2**24) - 1, 2**24 + 1)), (0, 1, -3)):
        ends = np.array([low, high], np.float64)[:, None] - zero + np.array([-600, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 600])
        x = np.concatenate([ends.ravel(), [2.0**31, -(2.0**31), 2.0**32, 3e38, -3e38, np.inf, -np.inf]])
        x = np.concatenate([_f(x), np.nextafter(_f(ends.ravel()), _f(0)), _f([2.0**23 - 0.5, 2.0**22 + 0.5, -0.5])])
        yield _asked(formula, x, 1.0, zero, **_grid(low, high), dtype="int32")
    for zero in (2**31 - 1, -(2**31), 2**30, -(2**30) - 1):
        x = _f([0, 0.5, -0.5, 1, -1, 127.5, -127.5, 128.5, 2.0**30, -(2.0**30), 2.0**31, -(2.0**31), -(2.0**32)])
        yield _asked(formula, x, 1.0, zero, **_grid(-(2**31), 2**31 - 1), dtype="int32")


@silent((_TENSOR, _CHANNEL), f"{_SOURCE}, which says nothing of NaN")
def nan(formula: str) -> Calls:
    """What code NaN becomes; the docstring does not say."""
    for values in ([np.nan], [1, np.nan, -1], [np.nan, 2] * 40):
        yield _asked(formula, _f(values), 0.5, 2, **_grid(-8, 7), dtype="int8")


@documented((_OF_TENSOR, _OF_CHANNEL), _SOURCE)
def value(formula: str) -> Calls:
    """A code becomes (code - zero_point) * scale, in out_dtype."""
    q = np.arange(-128, 128).astype(np.int8)
    for zero, scale, dtype in product((0, 5, -200), (*_SCALES, 1e-3), ("float32", "float16", "bfloat16")):
        yield _asked(formula, q, scale, zero, **_grid(-128, 127), out_dtype=dtype)


@documented((_OF_TENSOR, _OF_CHANNEL), _SOURCE, aspect="zero-point")
def large_zero_point(formula: str) -> Calls:
    """A zero point however large is subtracted."""
    q = np.arange(-128, 128).astype(np.int8)
    for zero, scale in product((2**24 + 1, -(2**24) - 3), (*_SCALES, 1e-3)):
        yield _asked(formula, q, scale, zero, **_grid(-128, 127), out_dtype="float32")


@documented((_OF_TENSOR, _OF_CHANNEL), _SOURCE, aspect="wide-codes")
def wide_codes(formula: str) -> Calls:
    """Codes of 32 bits, and their difference to the zero point, are rounded to the dtype of the reals."""
    near = 2 ** np.arange(23, 31)[:, None] + np.array([-3, -1, 0, 1, 3])
    q = np.concatenate([near.ravel(), -near.ravel(), [2**31 - 1, 2**31 - 129, -(2**31), -(2**31) + 1, 0, 1]])
    for zero, scale in product((0, 2**24 + 1, 2**31 - 1, -(2**31)), (1.0, 0.3, 2.0**-20)):
        codes = {**_grid(-(2**31), 2**31 - 1), "out_dtype": "float32"}
        yield _asked(formula, q.astype(np.int32), scale, zero, **codes)


@documented((_CHANNEL, _OF_CHANNEL), _AXIS)
def channels(formula: str) -> Calls:
    """Each index along the axis, which may be negative, has its scale and its zero point."""
    shape, quantizes = (2, 3, 4), formula == _CHANNEL
    x = (_f(np.arange(24) * 0.7 - 8) if quantizes else np.arange(24).astype(np.int8)).reshape(shape)
    more: dict[str, Any] = {"dtype": "int8", **_grid(-8, 7)} if quantizes else _grid(-128, 127)
    for axis in (0, 1, 2, -1, -3):
        n = shape[axis]
        parameters = {"scales": _f(np.arange(1, n + 1) * 0.3), "zero_points": np.arange(n)}
        yield {"input": x, "axis": axis} | parameters | more


def _quantize_per_tensor(dtype: str, **given: Any) -> Any:
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.quantize_per_tensor(**given, dtype=getattr(torch, dtype))


def _quantize_per_channel(dtype: str, **given: Any) -> Any:
    import torch
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed.quantize_per_channel(**given, dtype=getattr(torch, dtype))


def _dequantize_per_tensor(out_dtype: str = "float32", **given: Any) -> Any:
    import torch
    import torch.ao.quantization.fx._decomposed

    dtypes = {"dtype": given["input"].dtype, "out_dtype": getattr(torch, out_dtype)}
    return torch.ops.quantized_decomposed.dequantize_per_tensor(**given, **dtypes)


def _dequantize_per_channel(out_dtype: str = "float32", **given: Any) -> Any:
    import torch
    import torch.ao.quantization.fx._decomposed

    dtypes = {"dtype": given["input"].dtype, "out_dtype": getattr(torch, out_dtype)}
    return torch.ops.quantized_decomposed.dequantize_per_channel(**given, **dtypes)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torch.quantized_decomposed.per_tensor": {
        "torch/quantized_decomposed.quantize_per_tensor": _quantize_per_tensor,
        "torch/quantized_decomposed.dequantize_per_tensor": _dequantize_per_tensor,
    },
    "torch.quantized_decomposed.per_channel": {
        "torch/quantized_decomposed.quantize_per_channel": _quantize_per_channel,
        "torch/quantized_decomposed.dequantize_per_channel": _dequantize_per_channel,
    },
}
