"""ONNX's QuantizeLinear and DequantizeLinear element by element: fractions and ints, small floats by their tables."""

from collections.abc import Iterator
from fractions import Fraction
from math import copysign, isinf, isnan, nan
from typing import Any, Literal

import ml_dtypes
import numpy as np
import numpy.typing as npt

from oracles.codes import nearest, values
from oracles.exact import round_integer
from oracles.registry import derives
from oracles.soft import Soft, array, soft

Array = npt.NDArray[Any]
Rules = Literal["documented", "onnxruntime", "reference"]

__all__ = ["dequantize", "quantize"]

_OPSETS = (10, 13, 19, 21, 23, 24, 25)
_FLOAT8 = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")
# The first opset with each type and attribute.
_REAL = {"float32": 10, "int32": 10, "float16": 19, "bfloat16": 19}
_SCALE = {"float32": 10, "float16": 19, "bfloat16": 19, "int32": 19, "float8_e8m0fnu": 24}
_CODE = {
    **dict.fromkeys(("int8", "uint8"), 10),
    **dict.fromkeys(_FLOAT8, 19),
    **dict.fromkeys(("int16", "uint16", "int4", "uint4"), 21),
    "float4_e2m1fn": 23,
    **dict.fromkeys(("int2", "uint2"), 25),
}
_ATTRIBUTE = {"axis": 13, "saturate": 19, "block_size": 21, "output_dtype": 21, "precision": 23}
# Exponent bits, mantissa bits, bias, how many numbers are not negative, the code of NaN.
_SMALL = {
    "float8_e4m3fn": (4, 3, 7, 127, 0x7F),
    "float8_e4m3fnuz": (4, 3, 8, 128, 0x80),
    "float8_e5m2": (5, 2, 15, 124, 0x7E),
    "float8_e5m2fnuz": (5, 2, 16, 128, 0x80),
    "float4_e2m1fn": (2, 1, 1, 8, None),
}
_INT32 = 2**31


def _check(condition: bool, error: type[Exception], text: str) -> None:
    if not condition:
        raise error(text)


def _dtype(name: str) -> "np.dtype[Any]":
    return np.dtype(getattr(ml_dtypes, name, name))


def _numbers(a: Array) -> list[float | int]:
    integer = a.dtype.kind in "iu" or a.dtype.name.startswith(("int", "uint"))
    return [int(v) if integer else float(v) for v in a.ravel()]


def _soft(v: float, name: str) -> Soft:
    return soft(Fraction(v), name) if isinstance(v, int) else soft(v, name)


def _common(opset: int, wanted: dict[str, tuple[dict[str, int], str]], attributes: dict[str, Any]) -> None:
    _check(opset in _OPSETS, ValueError, f"opset={opset}")
    for name, (table, dtype) in wanted.items():
        _check(table.get(dtype, 99) <= opset, TypeError, f"{name} of {dtype} at opset {opset}")
    for name, value in attributes.items():
        _check(value is None or _ATTRIBUTE[name] <= opset, TypeError, f"{name} at opset {opset}")


def _owners(x: tuple[int, ...], p: tuple[int, ...], axis: int, block: int, rules: Rules, opset: int) -> Iterator[int]:
    """For every element in order, which parameter is its own."""
    if p in ((), (1,)) or (rules == "reference" and all(n == 1 for n in p)):
        _check(rules != "onnxruntime" or not block or len(p) == len(x), ValueError, "one parameter for blocks")
        yield from (0 for _ in np.ndindex(x))
        return
    _check(-len(x) <= axis < len(x), ValueError, f"axis={axis} for {x}")
    d = axis + len(x) if axis < 0 else axis
    if block == 0:
        _check(rules != "documented" or opset > 10, ValueError, "one scale at opset 10")
        _check(p == (x[d],), ValueError, f"{p} parameters for {x[d]} indices")
        yield from (place[d] for place in np.ndindex(x))
        return
    _check(block > 0 and len(p) == len(x) and opset > 19, ValueError, "blocks")
    last = -(-x[d] // block)
    fits = p[d] >= last if rules == "reference" else p[d] == last
    _check(fits and all(p[i] == n for i, n in enumerate(x) if i != d), ValueError, f"{p} for blocks of {x}")
    for place in np.ndindex(x):
        flat = 0
        for i, j in enumerate(place):
            flat = flat * p[i] + (j // block if i == d else j)
        yield flat


def _alike(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes say the same: a list of one is a scalar."""
    return a == b or (len(a) + len(b) == 1 and 1 in (*a, *b))


def _wrapped(total: int) -> int:
    return (total + _INT32) % (2 * _INT32) - _INT32


def _integer(v: Soft, z: int, low: int, high: int, int32: bool) -> int:
    if int32:
        whole = -_INT32 if v.nan or isinf(v.value) else round_integer(Fraction(v.value), "half-even")
        code = _wrapped((whole if abs(whole) < _INT32 else -_INT32) + z)
    elif v.nan:
        return low
    elif isinf(v.value):
        return high if v.value > 0 else low
    else:
        code = round_integer(Fraction(v.value), "half-even") + z
    return max(low, min(high, code))


def _small(v: float, name: str, special: bool) -> int:
    exponent, mantissa, bias, count, nan_code = _SMALL[name]
    sign = 1 << (exponent + mantissa) if copysign(1, v) < 0 else 0
    if isnan(v):
        return sign if nan_code is None else nan_code
    place = count if isinf(v) else nearest(abs(Fraction(v)), values(exponent, mantissa, bias, count + 1))
    if place == count and special:
        return sign + count if name == "float8_e5m2" else int(nan_code or 0)
    place = min(place, count - 1)
    return place + (0 if place == 0 and name.endswith("fnuz") else sign)


def _small_code(v: Soft, z: float, name: str, special: bool, rules: Rules, given: bool) -> int:
    if name in _FLOAT8 and rules == "documented":
        total = v if z == 0 else v + soft(z, _name(v))
        return _small(nan if name.endswith("fnuz") and isinf(total.value) else total.value, name, special)
    if name in _FLOAT8:
        size = abs(v.value)
        if rules == "onnxruntime" and special and name == "float8_e4m3fn" and 480 <= size < 496:
            return _small(copysign(448, v.value), name, special)
        if rules == "onnxruntime" and special and name == "float8_e5m2" and 61440 <= size < 65536:
            return _small(nan, name, special)
        return _small(v.value, name, special)
    add = given if rules == "reference" else z != 0
    total = v + soft(z, _name(v)) if add else v
    # float4 has no NaN: measured, it becomes -0.
    return _small(-0.0 if total.nan else total.value, name, special=False)


def _name(v: Soft) -> str:
    return {53: "float64", 24: "float32", 11: "float16", 8: "bfloat16"}[v.form.precision]


def _division(x: str, s: str, precision: str | None, rules: Rules) -> str:
    if rules == "onnxruntime" and x == s and x in ("float32", "float16"):
        return "float32"
    if precision:
        return precision
    if rules == "reference":
        return "float64" if "int32" in (x, s) else x if x == s else "float32"
    return {"float8_e8m0fnu": "float32", "int32": "float64"}.get(s, s)


def quantize(
    rules: Rules,
    x: Array,
    y_scale: Array,
    y_zero_point: Array | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    saturate: int | None = None,
    precision: str | None = None,
    output_dtype: str | None = None,
    opset: int = 25,
    release: int = 0,
) -> Array:
    """The codes of the operator under the document's or a library's rules; of ONNX Runtime the release as 31 or 32."""
    to = output_dtype or "uint8" if y_zero_point is None else y_zero_point.dtype.name
    _check(output_dtype in (None, to), TypeError, "two output types")
    xt, st = x.dtype.name, y_scale.dtype.name
    names = ("axis", "block_size", "saturate", "precision", "output_dtype")
    attributes = dict(zip(names, (axis, block_size, saturate, precision, output_dtype), strict=True))
    _common(opset, {"x": (_REAL, xt), "y_scale": (_SCALE, st), "y": (_CODE, to)}, attributes)
    _check(xt == st or opset not in (19, 21), TypeError, "one type for x and y_scale")
    _check(precision in (None, "float64", "float32", "float16", "bfloat16"), TypeError, f"precision={precision}")
    z_shape = y_scale.shape if y_zero_point is None else y_zero_point.shape
    if rules == "reference":
        _check(opset > 19 or y_scale.ndim < 2, ValueError, "a list of scales")
    else:
        _check(_alike(z_shape, y_scale.shape), ValueError, "one shape for scale and zero point")
    where = (1 if axis is None else axis, block_size or 0, rules, opset)
    owner_s = list(_owners(x.shape, y_scale.shape, *where))
    owner_z = owner_s if z_shape == y_scale.shape else list(_owners(x.shape, z_shape, *where))
    scales = _numbers(y_scale)
    zeros = [0] * len(scales) if y_zero_point is None else _numbers(y_zero_point)
    t = _division(xt, st, precision, "documented" if release > 31 and opset > 22 else rules)
    if to in _SMALL:
        special = saturate == 0
    else:
        bits = int(to[-2:]) if to[-2:].isdigit() else int(to[-1])
        low = 0 if to[0] == "u" else -(1 << (bits - 1))
        high = low + (1 << bits) - 1
        int32 = rules == "reference" or (
            release == 31 and xt == st and (xt == "float16" or (bits == 2 and xt == "float32"))
        )
    found = []
    for place, (v, i, j) in enumerate(zip(_numbers(x), owner_s, owner_z, strict=True)):
        q = _soft(v, t) / _soft(scales[i], t)
        if to in _SMALL:
            documented = rules != "documented" and t == "float32" and to != "float4_e2m1fn"
            own: Rules = rules if documented or rules == "reference" else "documented"
            found.append(_small_code(q, float(zeros[j]), to, special, own, y_zero_point is not None))
        else:
            # The other half of the byte: the element before an odd place, after an even one.
            pair = place - 1 if place % 2 else place + 1
            alone = not (pair < x.size and owner_s[pair] == i)
            narrow = release == 31 and xt == st == "float32" and bits == 4 and alone
            found.append(_integer(q, int(zeros[j]), low, high, int32 or narrow))
    if to in _SMALL:
        return np.array(found, np.uint8).view(_dtype(to)).reshape(x.shape)
    return np.array(found, np.int32).astype(_dtype(to)).reshape(x.shape)


@derives("onnx/QuantizeLinear")
def _(x: Array, y_scale: Array, y_zero_point: Array | None = None, **attributes: Any) -> Array:
    return quantize("documented", x, y_scale, y_zero_point, **attributes)


@derives("onnx/QuantizeLinear@onnxruntime-1.31")
def _(x: Array, y_scale: Array, y_zero_point: Array | None = None, **attributes: Any) -> Array:
    return quantize("onnxruntime", x, y_scale, y_zero_point, **attributes, release=31)


@derives("onnx/QuantizeLinear@onnxruntime-1.32")
def _(x: Array, y_scale: Array, y_zero_point: Array | None = None, **attributes: Any) -> Array:
    return quantize("onnxruntime", x, y_scale, y_zero_point, **attributes, release=32)


@derives("onnx/QuantizeLinear@reference-1.23")
def _(x: Array, y_scale: Array, y_zero_point: Array | None = None, **attributes: Any) -> Array:
    return quantize("reference", x, y_scale, y_zero_point, **attributes)


# The first opset with each type of DequantizeLinear.
_DEQUANTIZE_SCALE = {"float32": 10, "float16": 19, "bfloat16": 19, "float8_e8m0fnu": 24}
_OUTPUT = {"float32": 10, "float16": 19, "bfloat16": 19}
_DEQUANTIZE_CODE = {**_CODE, "int32": 10}
_DEQUANTIZE_ATTRIBUTE = {"axis": 13, "block_size": 21, "output_dtype": 23}


def _product(rules: Rules, q: float, z: float, s: float, to: str, wide: bool) -> Soft:
    """(q - z) * s under the rules; ``wide`` where the reference works in float64."""
    if isinstance(q, float) and (isnan(q) or isinf(q) or q == 0):
        d: float | Fraction = q - z
    else:
        d = Fraction(q) - Fraction(z)
    if rules == "documented":
        if isinstance(d, Fraction) and d and not (isnan(s) or isinf(s) or s == 0):
            return _lifted(d * Fraction(s), to)
        return (soft(float(d), "float64") * soft(s, "float64")).to(soft(0.0, to).form)
    if rules == "onnxruntime":
        d = Fraction(_wrapped(int(d))) if isinstance(q, int) and isinstance(d, Fraction) else d
        return (_lifted(d, "float32") * soft(s, "float32")).to(soft(0.0, to).form)
    t = "float64" if wide else "float32"
    code = _lifted(q if isinstance(q, float) else Fraction(q), "float32").to(soft(0.0, t).form)
    y = (code - soft(float(z), t)) * soft(s, t)
    if to == "bfloat16":
        y = y.to(soft(0.0, "float32").form)
    return y.to(soft(0.0, to).form)


def _lifted(v: float | Fraction, name: str) -> Soft:
    return soft(v, name)


def dequantize(
    rules: Rules,
    x: Array,
    x_scale: Array,
    x_zero_point: Array | None = None,
    *,
    axis: int | None = None,
    block_size: int | None = None,
    output_dtype: str | None = None,
    opset: int = 25,
) -> Array:
    """The reals of the operator under the document's or a library's rules."""
    to = output_dtype or x_scale.dtype.name
    name, st = x.dtype.name, x_scale.dtype.name
    _check(opset in _OPSETS, ValueError, f"opset={opset}")
    _check(x_zero_point is None or x_zero_point.dtype == x.dtype, TypeError, "codes and zero point of two types")
    for table, dtype in ((_OUTPUT, to), (_DEQUANTIZE_SCALE, st), (_DEQUANTIZE_CODE, name)):
        _check(table.get(dtype, 99) <= opset, TypeError, f"{dtype} at opset {opset}")
    attributes = {"axis": axis, "block_size": block_size, "output_dtype": output_dtype}
    for attribute, value in attributes.items():
        _check(value is None or _DEQUANTIZE_ATTRIBUTE[attribute] <= opset, TypeError, f"{attribute} at {opset}")
    z_shape = x_scale.shape if x_zero_point is None else x_zero_point.shape
    if rules == "reference":
        _check(opset > 19 or x_scale.ndim < 2, ValueError, "a list of scales")
    else:
        _check(_alike(z_shape, x_scale.shape), ValueError, "one shape for scale and zero point")
    where = (1 if axis is None else axis, block_size or 0, rules, opset)
    owner_s = list(_owners(x.shape, x_scale.shape, *where))
    owner_z = owner_s if z_shape == x_scale.shape else list(_owners(x.shape, z_shape, *where))
    scales = [float(v) for v in _numbers(x_scale)]
    zeros = [0] * len(scales) if x_zero_point is None else _numbers(x_zero_point)
    offered = name != "float4_e2m1fn" and "bfloat16" not in (to, st) and st != "float8_e8m0fnu"
    own: Rules = "documented" if rules == "onnxruntime" and not offered else rules
    if name in _FLOAT8 and x_zero_point is not None and own != "documented":
        codes = x_zero_point.view(np.uint8).ravel().tolist()
        zero = [abs(z) < 1 for z in zeros] if own == "reference" else [c == 0 for c in codes]
        _check(all(zero), ValueError, "a float8 zero point")
    if own == "reference" and name in (*_FLOAT8, "float4_e2m1fn"):
        zeros = [0.0] * len(zeros)
    wide = name == "int32" and x_zero_point is not None
    found = [
        _product(own, q, zeros[j], scales[i], to, wide) for q, i, j in zip(_numbers(x), owner_s, owner_z, strict=True)
    ]
    return array(found, x.shape, _dtype(to))


@derives("onnx/DequantizeLinear")
def _(x: Array, x_scale: Array, x_zero_point: Array | None = None, **attributes: Any) -> Array:
    return dequantize("documented", x, x_scale, x_zero_point, **attributes)


@derives("onnx/DequantizeLinear@onnxruntime-1.31")
def _(x: Array, x_scale: Array, x_zero_point: Array | None = None, **attributes: Any) -> Array:
    return dequantize("onnxruntime", x, x_scale, x_zero_point, **attributes)


@derives("onnx/DequantizeLinear@reference-1.23")
def _(x: Array, x_scale: Array, x_zero_point: Array | None = None, **attributes: Any) -> Array:
    return dequantize("reference", x, x_scale, x_zero_point, **attributes)
