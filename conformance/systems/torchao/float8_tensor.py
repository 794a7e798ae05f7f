"""torchao: ``AffineQuantizedTensor`` of float8. Calls: blocks, ties, scales of e8m0, zeros and special values."""

from collections.abc import Callable
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected, measured, silent
from halfeven.conformance.systems.torchao.by_release import by_release
from halfeven.conformance.systems.torchao.float8 import mixed
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, decode

__all__ = ["ANSWERS"]

_FLOATX, _STATIC = "torchao/from_hp_to_floatx", "torchao/from_hp_to_floatx_static"
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
_DTYPES = (np.dtype("float32"), np.dtype("float16"), np.dtype(ml_dtypes.bfloat16))
_INF, _NAN = np.inf, np.nan


def _f32(*values: float) -> Array:
    return np.array(values, np.float32)


@documented(_FLOATX, "AffineQuantizedTensor: from_hp_to_floatx", aspect="scale-and-codes")
def rows_and_blocks() -> Calls:
    """A tensor becomes float8 codes under the scales of its blocks, each as its own formula gives it."""
    for name, dtype in product(_FLOAT8, _DTYPES):
        x = mixed(4, 6).astype(dtype)
        for block in ((1, 6), (4, 6), (2, 3)):
            yield {"input_float": x, "block_size": block, "target_dtype": name}
    yield {"input_float": mixed(4, 6), "block_size": (1, 6), "target_dtype": _FLOAT8[0]} | {
        "scale_dtype": "float8_e8m0fnu"
    }
    for dtype in _DTYPES:
        given = {"input_float": mixed(4, 6).astype(dtype), "block_size": (1, 6), "target_dtype": _FLOAT8[0]}
        yield {**given, "scale_dtype": "float32"}
    for shape, block in (((1, 1), (1, 1)), ((4, 4), (2, 2)), ((1, 4), (1, 2))):
        yield {"input_float": mixed(*shape), "block_size": block, "target_dtype": _FLOAT8[0]}


def _midpoints(name: str, scale: float) -> Array:
    """The largest number, and every midpoint with either sign, times ``scale``."""
    v = decode(np.arange(FLOAT_FORMATS[name].max_code + 1), name, "float32")
    middle = (v[1:] + v[:-1]) / 2
    return np.concatenate([v[-1:], middle, -middle]) * np.float32(scale)


@documented(_FLOATX, "AffineQuantizedTensor: the affine transformation, float over scale", aspect="nearest")
def ties() -> Calls:
    """An element becomes the float8 number nearest to its quotient by the scale, of two the even code's."""
    for name in _FLOAT8:
        rows = np.stack([_midpoints(name, scale) for scale in (1, 41, 47)])  # 41 * (1 / 41) is not 1 in float32
        yield {"input_float": rows, "block_size": (1, rows.shape[1]), "target_dtype": name}


@measured(_FLOATX, "torchao.quantization.quant_primitives._choose_scale_float8: scale_dtype")
def e8m0_scale() -> Calls:
    """A scale of dtype e8m0 is the power of two whose exponent is nearest to the scale's logarithm."""
    units = np.array([0, 1, 3474674, 3474675, 3474676, 3474677, 4194303, 4194304, 8388607])  # 3474675: sqrt(2)
    for k in (-33, -4, -1, 0, 1, 2, 5, 33):
        scales = np.ldexp(2.0**23 + units, k - 23)
        rows = (scales[:, None] * [448.0, -100.0]).astype(np.float32)
        yield {"input_float": rows, "block_size": (1, 2), "target_dtype": _FLOAT8[0], "scale_dtype": "float8_e8m0fnu"}


@documented(
    _FLOATX, "AffineQuantizedTensor: block_size, the elements that share a parameter", aspect="blocks-of-one-element"
)
def single_elements() -> Calls:
    """A block size of ones gives each element its own scale."""
    yield {"input_float": mixed(2, 3), "block_size": (1, 1), "target_dtype": _FLOAT8[0]}
    yield {"input_float": mixed(5), "block_size": (1,), "target_dtype": _FLOAT8[2]}


@silent(_FLOATX, "AffineQuantizedTensor.from_hp_to_floatx: no document says what such blocks give")
def zeros_and_specials() -> Calls:
    """A block of zeros has a scale of zero, of infinity or NaN one like it; what is divided by them is NaN."""
    rows = np.stack([_f32(0, -0.0), _f32(1e-6, 0), _f32(1e-4, -5e-5), _f32(1, _NAN), _f32(_INF, 1), _f32(-_INF, 0)])
    for name, dtype in product(_FLOAT8, _DTYPES):
        yield {"input_float": rows.astype(dtype), "block_size": (1, 2), "target_dtype": name}


@documented(_FLOATX, "AffineQuantizedTensor: from_hp_to_floatx, a float8 quantized tensor")
def refusals() -> Calls:
    """The target is a float8 dtype with numbers of both signs, and the block size divides the shape."""
    for name in ("int8", "float16", "float8_e8m0fnu"):
        yield {"input_float": mixed(4, 6), "block_size": (1, 6), "target_dtype": name}
    yield {"input_float": mixed(4, 6), "block_size": (1, 5), "target_dtype": _FLOAT8[0]}
    yield {"input_float": mixed(4, 6), "block_size": (1, 6), "target_dtype": _FLOAT8[0], "scale_dtype": "bfloat16"}


@documented(_STATIC, "AffineQuantizedTensor: from_hp_to_floatx_static")
def given_scale() -> Calls:
    """With a given scale the codes are those that this scale gives, and it is kept as it is."""
    x = _f32(0, 1, -500, _INF, _NAN, 0.3).reshape(2, 3)
    for name, dtype in product(_FLOAT8, _DTYPES):
        yield {"input_float": x.astype(dtype), "scale": _f32(0.1, 3.0).reshape(2, 1), "block_size": (1, 3)} | {
            "target_dtype": name
        }


@documented(_STATIC, "AffineQuantizedTensor: the affine transformation, float over scale", aspect="nearest")
def static_ties() -> Calls:
    """An element becomes the float8 number nearest to its quotient by the scale, of two the even code's."""
    for name in _FLOAT8:
        x = np.stack([_midpoints(name, scale) for scale in (1, 41, 47)])
        scale = _f32(1, 41, 47).reshape(3, 1)
        yield {"input_float": x, "scale": scale, "block_size": (1, x.shape[1]), "target_dtype": name}


@expected(_STATIC, "torchao.quantization.quant_primitives._quantize_affine_float8", aspect="quotient-in-float32")
def sixteen_bit_scales() -> Calls:
    """The quotient is computed in float32, also where the input and the scale have one narrower dtype."""
    for name, dtype in product(_FLOAT8, _DTYPES[1:]):
        scale = _f32(0.1, 0.7, 3.0, 41.0).reshape(4, 1).astype(dtype)
        for input_dtype in (dtype, _DTYPES[0]):
            x = mixed(4, 60).astype(input_dtype)
            yield {"input_float": x, "scale": scale, "block_size": (1, 60), "target_dtype": name}


@documented(_STATIC, "AffineQuantizedTensor: from_hp_to_floatx_static", aspect="refusals")
def from_hp_static_refusals() -> Calls:
    """The target is a float8 dtype, and the scale has one entry per block."""
    yield {"input_float": mixed(2, 3), "scale": _f32(1), "block_size": (1, 3), "target_dtype": _FLOAT8[0]}
    yield {"input_float": mixed(3, 3), "scale": _f32(1, 2, 3), "block_size": (1, 3), "target_dtype": _FLOAT8[0]}
    yield {"input_float": mixed(2, 3), "scale": np.ones((2, 1), np.float32), "block_size": (1, 3)} | {
        "target_dtype": "int4"
    }


def _from_hp_to_floatx(target_dtype: str, scale_dtype: str | None = None, **given: Any) -> dict[str, Any]:
    import torch
    from torchao import dtypes

    layout = dtypes.Float8Layout(mm_config=None) if hasattr(dtypes, "Float8Layout") else dtypes.utils.PlainLayout()
    given |= {"target_dtype": getattr(torch, target_dtype), "scale_dtype": scale_dtype and getattr(torch, scale_dtype)}
    held = dtypes.AffineQuantizedTensor.from_hp_to_floatx(**given, _layout=layout)
    data, scale, *_ = held.tensor_impl.get_plain()
    return {"data": data, "scale": scale}


def _from_hp_to_floatx_static(target_dtype: str, **given: Any) -> dict[str, Any]:
    import torch
    from torchao import dtypes

    layout = dtypes.Float8Layout(mm_config=None) if hasattr(dtypes, "Float8Layout") else dtypes.utils.PlainLayout()
    given["target_dtype"] = getattr(torch, target_dtype)
    held = dtypes.AffineQuantizedTensor.from_hp_to_floatx_static(**given, _layout=layout)
    data, scale, *_ = held.tensor_impl.get_plain()
    return {"data": data, "scale": scale}


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {},
        v0_17={
            "torchao/from_hp_to_floatx": _from_hp_to_floatx,
            "torchao/from_hp_to_floatx_static": _from_hp_to_floatx_static,
        },
    ),
}
