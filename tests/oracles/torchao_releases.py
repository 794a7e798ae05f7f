"""torchao's releases before 0.18: what they choose, and their float8, block by block."""

from fractions import Fraction
from itertools import product
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from oracles.exact import FORMATS
from oracles.registry import DERIVATIONS, derives
from oracles.soft import Array, Soft, form, soft, softs
from oracles.torchao_blocks import each, float8_max, members, pack
from oracles.torchao_float8 import float8_code

__all__: list[str] = []

CHOOSE = "torchao/choose_qparams_affine"


def _choose(given: dict[str, Any], default: str | None) -> tuple[Array, Array | None]:
    """As 0.18, with the distance from 1 to the next number as the least scale; the dtype "" is its default, too."""
    precision = FORMATS[name].precision if (name := given["input"].dtype.name) in FORMATS else 0
    eps = given.get("eps")
    least = float(Fraction(2) ** (1 - precision)) if eps is None and precision else eps
    point = given.get("zero_point_dtype", default)
    found: tuple[Array, Array | None] = DERIVATIONS[f"{CHOOSE}@0.18"](
        **{**given, "eps": least, "zero_point_dtype": point}
    )
    return found


@derives("torchao/choose_qparams_affine_with_min_max@0.17")
def _with_min_max_0_17(**given: Any) -> tuple[Array, Array | None]:
    name = given["min_val"].dtype.name
    least = float(Fraction(2) ** (1 - FORMATS[name].precision)) if name in FORMATS else 0.0
    eps = given.get("eps")
    found: tuple[Array, Array | None] = DERIVATIONS[f"{CHOOSE}_with_min_max@0.18"](
        **{**given, "eps": least if eps is None else eps}
    )
    return found


@derives("torchao/choose_qparams_affine@0.17")
def _choose_0_17(**given: Any) -> tuple[Array, Array | None]:
    return _choose(given, "")


@derives("torchao/choose_qparams_affine@0.15")
def _choose_0_15(**given: Any) -> tuple[Array, Array | None]:
    kept = given.get("keepdim", False)
    scale, point = _choose({**given, "keepdim": False}, "")
    if not kept:
        return scale, point
    shape: list[int] = []
    for n, b in zip(given["input"].shape, given["block_size"], strict=True):
        shape += [n] if b == 1 else [n // b, 1] if 1 < b != n else [1]
    shape = [1] * len(shape) if prod(shape) != scale.size else shape
    return scale.reshape(shape), None if point is None else point.reshape(shape)


@derives("torchao/choose_qparams_affine@0.11")
def _choose_0_11(**given: Any) -> tuple[Array, Array | None]:
    mapping, target = given["mapping_type"], given["target_dtype"]
    if given.get("keepdim", False):
        raise TypeError(given["keepdim"])
    if float8_max(target) is not None and mapping != "SYMMETRIC":
        raise AssertionError(mapping)
    try:
        return _choose({k: v for k, v in given.items() if k != "keepdim"}, None)
    except AssertionError:
        real = given.get("zero_point_domain", "INT") == "FLOAT" or not given.get("preserve_zero", True)
        if real and mapping in ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR"):
            raise ValueError(mapping) from None
        raise


@derives("torchao/choose_qparams_affine@pt2e-0.18")
def _choose_pt2e(**given: Any) -> tuple[Array, Array | None]:
    point = given.get("zero_point_dtype") or given["input"].dtype.name
    return _choose_0_11(**{**given, "zero_point_dtype": point})


def _common(tensor: Array, scale: Array) -> tuple[Array, Array]:
    """Both in the shape to which they broadcast, entry by entry."""
    rank = max(tensor.ndim, scale.ndim)
    shapes = [(1,) * (rank - a.ndim) + a.shape for a in (tensor, scale)]
    if any(1 not in pair and pair[0] != pair[1] for pair in zip(*shapes, strict=True)):
        raise RuntimeError(shapes)
    shape = tuple(a if b == 1 else b for a, b in zip(*shapes, strict=True))
    spread = []
    for array, own in zip((tensor, scale), shapes, strict=True):
        flat = array.reshape(own)
        cells = [flat[tuple(i * (n > 1) for i, n in zip(at, own, strict=True))] for at in product(*map(range, shape))]
        spread.append(np.array(cells, array.dtype).reshape(shape))
    return spread[0], spread[1]


@derives("torchao/quantize_affine_float8@0.11")
def _quantize_0_11(tensor: Array, scale: Array, float8_dtype: str = "float8_e4m3fn") -> Array:
    codes: Array = DERIVATIONS["torchao/quantize_affine_float8"](*_common(tensor, scale), float8_dtype)
    return codes


@derives("torchao/dequantize_affine_float8@0.11")
def _dequantize_0_11(tensor: Array, scale: Array, output_dtype: str = "float32") -> Array:
    reals: Array = DERIVATIONS["torchao/dequantize_affine_float8"](*_common(tensor, scale), output_dtype)
    return reals


def _known(target_dtype: str) -> None:
    if float8_max(target_dtype) is None:
        raise NotImplementedError(target_dtype)


def _by_product(x: Array, scales: list[Soft], target: str) -> Array:
    """Codes of the products with the reciprocals; what is beyond the largest number has its code."""
    codes = []
    for value, s in zip(softs(x), scales, strict=True):
        wide = value.form if value.form == s.form else FORMATS["float32"]
        q = (value.to(wide) * (Soft(1.0, s.form) / s).to(wide)).value
        codes.append(float8_code(q, target))
    return np.array(codes, np.uint8).reshape(x.shape).view(getattr(ml_dtypes, target))


@derives("torchao/from_hp_to_floatx@0.11")
def _floatx_0_11(
    input_float: Array, block_size: tuple[int, ...], target_dtype: str, scale_dtype: str | None = None
) -> dict[str, Array]:
    _known(target_dtype)
    if scale_dtype == "float8_e8m0fnu":
        raise NotImplementedError(scale_dtype)
    x, own = input_float, form(input_float.dtype)
    if x.size > 1 and prod(block_size) == 1:
        msg = f"block_size={block_size} is not accepted: one scale of the whole for many blocks"
        raise RuntimeError(msg)
    groups, values = members(x.shape, block_size), softs(x)
    least, top = soft(2.0**-23, "float64").to(own), Soft(float(float8_max(target_dtype) or 0), own)
    scales = []
    for group in groups:
        inside = [abs(values[i]) for i in group]
        amax = next((v for v in inside if v.nan), None) or max(inside, key=lambda v: v.value)
        s = amax / top
        scales.append(least if s.value < least.value else s)
    name = scale_dtype or x.dtype.name
    scales = [s.to(FORMATS[name]) for s in scales]
    pairs = zip(x.shape, block_size, strict=True)
    shape = tuple(n if b == 1 else n // b for n, b in pairs if b == 1 or b != n) if prod(block_size) > 1 else ()
    data = _by_product(x, each(scales, x.shape, block_size), target_dtype)
    return {"data": data, "scale": pack([s.value for s in scales], shape, name)}


@derives("torchao/from_hp_to_floatx_static@0.11")
def _static_0_11(input_float: Array, scale: Array, block_size: tuple[int, ...], target_dtype: str) -> dict[str, Array]:
    _known(target_dtype)
    scales = each(softs(scale), input_float.shape, block_size)
    return {"data": _by_product(input_float, scales, target_dtype), "scale": scale}


@derives("torchao/from_hp_to_floatx@0.17")
def _floatx_0_17(
    input_float: Array,
    block_size: tuple[int, ...],
    target_dtype: str,
    scale_dtype: str | None = None,
) -> dict[str, Array]:
    _known(target_dtype)
    scale = DERIVATIONS["torchao/choose_scale_float8@0.18"](input_float, block_size, target_dtype)
    return _static_0_17(input_float, scale, block_size, target_dtype)


@derives("torchao/from_hp_to_floatx_static@0.17")
def _static_0_17(
    input_float: Array,
    scale: Array,
    block_size: tuple[int, ...],
    target_dtype: str,
) -> dict[str, Array]:
    _known(target_dtype)
    data = DERIVATIONS["torchao/quantize_affine_float8@0.18"](input_float, scale, target_dtype)
    return {"data": data, "scale": scale}
