"""torch's quantizers, scalar by scalar, by the oracle of the evaluation model."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import isnan
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from oracles import exact
from oracles.registry import derives
from oracles.soft import Array

__all__: list[str] = []

_F32 = exact.FORMATS["float32"]
_QUINT8, _QINT8 = Grid(0, 255), Grid(-128, 127)

_BEFORE = EvaluationModel(zero_point="before-rounding")
_FUSED = EvaluationModel(zero_point="fused", division="reciprocal", nan="qmax")
_BY_CHANNEL = replace(_BEFORE, division="reciprocal", nan="zero")
_FAKE = EvaluationModel()
_FAKE_EXACT = replace(_FAKE, division="reciprocal", nan="qmin", subtract="exact")
_FAKE_INT64 = replace(_FAKE, division="reciprocal", integer="int64-sum", subtract="exact")
_WIDE = EvaluationModel(compute="float32", product="promoted")
_WIDE_RECIPROCAL = replace(_WIDE, division="reciprocal", nan="zero", ends="rounded")


def _elements(x: Array, scales: Any, zeros: Any, axis: int | None) -> Iterator[tuple[float, float, float]]:
    """Each element with its scale, which is a float32, and its zero point."""
    s, z = np.asarray(scales, np.float32).ravel().tolist(), np.asarray(zeros).ravel().tolist()
    for index in np.ndindex(x.shape):
        at = 0 if axis is None else index[axis]
        yield float(x[index]), s[at], z[at]


def _quantized(model: EvaluationModel, x: Array, s: Any, z: Any, axis: int | None, grid: Grid, dtype: str) -> Array:
    form = exact.FORMATS[x.dtype.name]
    codes = [exact.quantize(model, *e, grid, form, _F32) for e in _elements(x, s, z, axis)]
    if any(map(isnan, codes)):
        msg = "NaN among the codes"
        raise ValueError(msg)
    return np.array(codes).reshape(x.shape).astype(dtype)


def _dequantized(model: EvaluationModel, q: Array, s: Any, z: Any, axis: int | None, dtype: str) -> Array:
    form = exact.FORMATS[dtype]
    reals = [exact.dequantize(model, *e, form, _F32) for e in _elements(q, s, z, axis)]
    return np.array(reals).reshape(q.shape).astype(getattr(ml_dtypes, dtype, dtype))


def _faked(model: EvaluationModel, x: Array, s: Any, z: Any, axis: int | None, grid: Grid) -> Array:
    form = exact.FORMATS[x.dtype.name]
    reals = [exact.fake_quantize(model, *e, grid, form, _F32) for e in _elements(x, s, z, axis)]
    return np.array(reals).reshape(x.shape).astype(x.dtype)


def _grid_of(dtype: str) -> Grid:
    return {"quint8": _QUINT8, "qint8": _QINT8}[dtype]


def _native(model: EvaluationModel) -> Callable[..., Array]:
    def quantize(input: Array, scale: Any, zero_point: Any, dtype: str) -> Array:  # noqa: A002 - the document's own word
        grid = _grid_of(dtype)
        return _quantized(model, input, scale, zero_point, None, grid, str(grid))

    return quantize


def _native_by_channel(model: EvaluationModel) -> Callable[..., Array]:
    def quantize(input: Array, scales: Any, zero_points: Any, axis: int, dtype: str) -> Array:  # noqa: A002 - the document's own word
        grid = _grid_of(dtype)
        return _quantized(model, input, scales, zero_points, axis, grid, str(grid))

    return quantize


derives("torch/quantize_per_tensor")(_native(_BEFORE))
derives("torch/quantize_per_tensor@2.13")(_native(_FUSED))
derives("torch/quantize_per_channel")(_native_by_channel(_BEFORE))
derives("torch/quantize_per_channel@2.13")(_native_by_channel(_BY_CHANNEL))


@derives("torch/dequantize")
def dequantize(q: Array, scale: Any, zero_point: Any, axis: int | None = None) -> Array:
    """Reals, float32."""
    return _dequantized(_BEFORE, q, scale, zero_point, axis, "float32")


def _fake(model: EvaluationModel) -> Callable[..., Array]:
    def fake_quantize(
        input: Array,  # noqa: A002 - the document's own word
        scale: Any,
        zero_point: Any,
        quant_min: int,
        quant_max: int,
        axis: int | None = None,
    ) -> Array:
        return _faked(model, input, scale, zero_point, axis, Grid(quant_min, quant_max))

    return fake_quantize


derives("torch/fake_quantize_per_tensor_affine", "torch/fake_quantize_per_channel_affine")(_fake(_FAKE))
derives("torch/fake_quantize_per_tensor_affine@2.13")(_fake(_FAKE_EXACT))
derives("torch/fake_quantize_per_channel_affine@2.13")(_fake(_FAKE_INT64))

_DECOMPOSED = "torch/quantized_decomposed."


def _decomposed(model: EvaluationModel) -> tuple[Callable[..., Array], Callable[..., Array]]:
    def per_tensor(input: Array, scale: Any, zero_point: Any, quant_min: int, quant_max: int, dtype: str) -> Array:  # noqa: A002 - the document's own word
        return _quantized(model, input, scale, zero_point, None, Grid(quant_min, quant_max), dtype)

    def per_channel(
        input: Array,  # noqa: A002 - the document's own word
        scales: Any,
        zero_points: Any,
        axis: int,
        quant_min: int,
        quant_max: int,
        dtype: str,
    ) -> Array:
        return _quantized(model, input, scales, zero_points, axis, Grid(quant_min, quant_max), dtype)

    return per_tensor, per_channel


for _made, _version in ((_decomposed(_WIDE), ""), (_decomposed(_WIDE_RECIPROCAL), "@2.13")):
    for _kind, _function in zip(("tensor", "channel"), _made, strict=True):
        derives(f"{_DECOMPOSED}quantize_per_{_kind}{_version}")(_function)


@derives(f"{_DECOMPOSED}dequantize_per_tensor")
def dequantize_per_tensor(
    input: Array,  # noqa: A002 - the document's own word
    scale: Any,
    zero_point: Any,
    quant_min: int,
    quant_max: int,
    *,
    out_dtype: str = "float32",
) -> Array:
    """Reals of codes."""
    return _dequantized(_WIDE, input, scale, zero_point, None, out_dtype)


def _by_channel(model: EvaluationModel) -> Callable[..., Array]:
    def dequantize_per_channel(
        input: Array,  # noqa: A002 - the document's own word
        scales: Any,
        zero_points: Any,
        axis: int,
        quant_min: int,
        quant_max: int,
        *,
        out_dtype: str = "float32",
    ) -> Array:
        return _dequantized(model, input, scales, zero_points, axis, out_dtype)

    return dequantize_per_channel


derives(f"{_DECOMPOSED}dequantize_per_channel")(_by_channel(_WIDE))
derives(f"{_DECOMPOSED}dequantize_per_channel@2.13")(_by_channel(replace(_WIDE, subtract="exact")))
