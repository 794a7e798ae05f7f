"""Scale and zero point of torchao, block by block, every operation exact and then rounded."""

from collections.abc import Sequence
from math import isnan, prod
from typing import Any

import numpy as np

from oracles.exact import FORMATS
from oracles.registry import derives
from oracles.soft import Array, Soft, soft, softs
from oracles.torchao_blocks import (
    as_integer,
    bounds,
    clamped,
    in_float,
    members,
    pack,
    storage,
)

__all__ = ["convert"]

# The distance from 1 to the next number, and the least normal number, from precision and exponents.
_EPS = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_NORMAL = {"float64": 2.0**-1022, "float32": 2.0**-126, "float16": 2.0**-14, "bfloat16": 2.0**-126}
_MAPPINGS = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")


def convert(values: Sequence[Soft], shape: tuple[int, ...], dtype: str, *, refuse_nan: bool = False) -> Array:
    """Numbers in another dtype: floats rounded, integers as the processor makes them."""
    to = storage(dtype)
    if to.kind not in "iu":
        return pack([v.to(FORMATS[dtype]).value for v in values], shape, dtype)
    if refuse_nan and any(v.nan for v in values):
        raise ValueError(dtype)
    return pack([as_integer(v.value, 8 * to.itemsize, signed=to.kind == "i") for v in values], shape, dtype)


def _one(
    low: Soft, high: Soft, mapping: str, grid: tuple[int, int], eps: float, dtype: str, preserve: bool, domain: str
) -> tuple[Soft, Soft | None]:
    """Scale and zero point of one block."""
    qmin, qmax = grid
    wide = FORMATS["float64" if dtype == "float64" else "float32"]
    zero = soft(0.0, dtype)

    def over(a: Soft, number: float) -> Soft:
        return (a.to(wide) / soft(number, "float64").to(wide)).to(FORMATS[dtype])

    if preserve:
        low, high = (v if v.nan or keep(v.value) else zero for v, keep in ((low, _below), (high, _above)))
    if mapping == "SYMMETRIC":
        reach = next((v for v in (low, high) if v.nan), max(-low, high, key=lambda v: v.value))
        scale = over(reach, (qmax - qmin) / 2)
    elif mapping == "SYMMETRIC_NO_CLIPPING_ERR":
        smin, smax = over(low, qmin), over(high, qmax)
        scale = smin if smin.value > smax.value else smax
    else:
        scale = over(high - low, qmax - qmin)
    least = soft(eps, dtype)
    scale = least if scale.value < least.value else scale
    if domain == "NONE":
        return scale, None
    if domain == "FLOAT":
        return scale, low + (scale.to(wide) * soft((qmin + qmax + 1) / 2, "float64").to(wide)).to(FORMATS[dtype])
    if mapping != "ASYMMETRIC":
        middle = qmin + qmax + 1
        return scale, in_float(middle // 2 if middle > 0 else -(-middle // 2), dtype)
    first, last = in_float(qmin, dtype), in_float(qmax, dtype)
    return scale, clamped(first - (low / scale).rint(), first, last)


def _below(value: float) -> bool:
    return value < 0


def _above(value: float) -> bool:
    return value > 0


def _from_extremes(
    min_val: Array,
    max_val: Array,
    mapping_type: str,
    grid: tuple[int, int],
    eps: float | None,
    least: dict[str, float],
    preserve_zero: bool,
    zero_point_domain: str,
) -> tuple[list[Soft], list[Soft] | None]:
    if mapping_type not in _MAPPINGS or min_val.dtype != max_val.dtype:
        raise AssertionError(mapping_type)
    dtype = min_val.dtype.name
    if dtype not in _EPS:
        raise TypeError(dtype)
    if mapping_type != "ASYMMETRIC" and (zero_point_domain == "FLOAT" or not preserve_zero):
        raise ValueError(mapping_type)
    found = [
        _one(a, b, mapping_type, grid, least[dtype] if eps is None else eps, dtype, preserve_zero, zero_point_domain)
        for a, b in zip(softs(min_val), softs(max_val), strict=True)
    ]
    points = [z for _, z in found if z is not None]
    return [s for s, _ in found], None if zero_point_domain == "NONE" else points


@derives("torchao/choose_qparams_affine_with_min_max")
def _with_min_max(
    min_val: Array,
    max_val: Array,
    mapping_type: str,
    block_size: tuple[int, ...],
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
) -> tuple[Array, Array | None]:
    grid = bounds(target_dtype, quant_min, quant_max)
    scales, points = _from_extremes(min_val, max_val, mapping_type, grid, eps, _EPS, preserve_zero, zero_point_domain)
    own = min_val.dtype.name
    scale = convert(scales, min_val.shape, scale_dtype or own)
    if points is None:
        return scale, None
    default = "int32" if (mapping_type, zero_point_domain) == ("ASYMMETRIC", "INT") else own
    return scale, convert(points, min_val.shape, zero_point_dtype or default, refuse_nan=True)


@derives("torchao/choose_qparams_affine_with_min_max@0.18")
def _with_min_max_0_18(
    min_val: Array,
    max_val: Array,
    mapping_type: str,
    block_size: tuple[int, ...],
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
) -> tuple[Array, Array | None]:
    grid = bounds(target_dtype, quant_min, quant_max)
    scales, points = _from_extremes(
        min_val, max_val, mapping_type, grid, eps, _NORMAL, preserve_zero, zero_point_domain
    )
    own = min_val.dtype.name
    scale = convert(scales, min_val.shape, scale_dtype or own)
    default = "int32" if (mapping_type, zero_point_domain) == ("ASYMMETRIC", "INT") else own
    return scale, None if points is None else convert(points, min_val.shape, zero_point_dtype or default)


def _extremes(x: Array, block_size: tuple[int, ...], *, keepdim: bool) -> tuple[Array, Array, tuple[int, ...]]:
    """Least and greatest of each block as lists, and the shape that they have to have."""
    groups = members(x.shape, block_size)
    values = [float(v) for v in x.ravel()]
    if any(not group for group in groups):
        raise IndexError(x.shape)
    if keepdim:
        shape = tuple(n // b for n, b in zip(x.shape, block_size, strict=True))
        counts = [n for n in shape if n != -1]
        if len(shape) - len(counts) > 1 or any(n < 0 for n in counts) or (-1 in shape and not prod(counts)):
            raise RuntimeError(block_size)
        shape = tuple(len(groups) // prod(counts) if n == -1 else n for n in shape)
        if prod(shape) != len(groups):
            raise RuntimeError(block_size)
    else:
        pairs = zip(x.shape, block_size, strict=True)
        shape = tuple(n if b == 1 else n // b for n, b in pairs if b == 1 or (b > 1 and b != n))
    ordered: list[list[float]] = [[], []]
    for group in groups:
        inside = [values[i] for i in group]
        none = next((v for v in inside if isnan(v)), None)
        ordered[0].append(min(inside) if none is None else none)
        ordered[1].append(max(inside) if none is None else none)
    low, high = (np.array(v, np.float64).astype(x.dtype) for v in ordered)
    return low, high, shape


def _chosen(x: Array, block_size: tuple[int, ...], keepdim: bool, choose: Any, rest: tuple[Any, ...]) -> Any:
    low, high, shape = _extremes(x, block_size, keepdim=keepdim)
    scale, point = choose(low, high, *rest)
    return scale.reshape(shape), None if point is None else point.reshape(shape)


@derives("torchao/choose_qparams_affine")
def _choose(
    input: Array,  # noqa: A002 - the formula's argument
    mapping_type: str,
    block_size: tuple[int, ...],
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    bounds(target_dtype, quant_min, quant_max)
    rest = (mapping_type, block_size, target_dtype, quant_min, quant_max, eps, scale_dtype, zero_point_dtype)
    found: tuple[Array, Array | None] = _chosen(
        input, block_size, keepdim, _with_min_max, (*rest, preserve_zero, zero_point_domain)
    )
    return found


@derives("torchao/choose_qparams_affine@0.18")
def _choose_0_18(
    input: Array,  # noqa: A002 - as above
    mapping_type: str,
    block_size: tuple[int, ...],
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = "",
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    bounds(target_dtype, quant_min, quant_max)
    if zero_point_dtype == "":  # the function for the FLOAT domain has another default than the others
        zero_point_dtype = {"FLOAT": None}.get(zero_point_domain, "int32")
    if mapping_type != "ASYMMETRIC" and (zero_point_domain == "FLOAT" or not preserve_zero):
        raise AssertionError(mapping_type)
    rest = (mapping_type, block_size, target_dtype, quant_min, quant_max, eps, scale_dtype, zero_point_dtype)
    if set(block_size) == {1} and len(block_size) == input.ndim:
        if input.size == 0 or (keepdim and input.size > 1):
            raise RuntimeError(block_size)
        if not keepdim:  # every element falls into one block, which has no dimension
            input, block_size = input.ravel(), (-1,)  # noqa: A001 - as above
    found: tuple[Array, Array | None] = _chosen(
        input, block_size, keepdim, _with_min_max_0_18, (*rest, preserve_zero, zero_point_domain)
    )
    return found
