"""Calls of torchao's dequantize, and of its fake quantize with a mask: every code, ends, domains, blocks, refusals."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.registry import Arguments, calls
from halfeven.conformance.calls.torchao_domains import DTYPES, SCALES, scalar, shared, ties

Array = npt.NDArray[Any]

__all__: list[str] = []

BACK, MASK = "torchao.quant_primitives.dequantize_affine", "torchao.fake_quantize_affine_cachemask"
FLOAT_BACK, NONE_BACK = "torchao.dequantize_affine_float_domain", "torchao.dequantize_affine_no_zero_point"


@calls(MASK, "inside")
def inside() -> Iterator[Arguments]:
    """Ties on the grid, none of whose codes leaves it: the values are those of fake quantize."""
    for dtype in DTYPES:
        for z in (0, 1, -3):
            for block, count in (((4, 3), 1), ((1, 3), 4), ((2, 3), 2)):
                x = ties(0.5, np.arange(-4, 4), dtype)[:24:2].reshape(4, 3)
                yield {
                    "input": x,
                    "block_size": block,
                    "scale": np.full(count, 0.5, dtype),
                    "zero_point": np.full(count, z, np.int32),
                    "quant_dtype": "int8",
                    "quant_min": -10,
                    "quant_max": 10,
                }


@calls(MASK, "outliers")
def outliers() -> Iterator[Arguments]:
    """Codes one step inside and outside of the grid, infinities and NaN, in the three domains."""
    for dtype in DTYPES:
        for qmin, qmax in ((-8, 7), (0, 15)):
            free = np.array([qmin - 1, qmin, qmax, qmax + 1, np.inf, -np.inf, np.nan], np.float64)
            for domain, z, shift in (("INT", 1, -1), ("NONE", None, 0), ("FLOAT", 2, 2 - (qmin + qmax + 1) / 2)):
                x = (free + shift).astype(dtype)
                point = None if z is None else scalar(z, np.int32 if domain == "INT" else dtype)
                yield {
                    "input": x,
                    "block_size": x.shape,
                    "scale": scalar(1, dtype),
                    "zero_point": point,
                    "quant_dtype": "int8",
                    "quant_min": qmin,
                    "quant_max": qmax,
                    "zero_point_domain": domain,
                }


@calls(MASK, "none-domain")
def none_domain_values() -> Iterator[Arguments]:
    """Ties of the codes without a zero point, and a scale that is no power of two."""
    x = np.array([0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, -3.5], np.float32)
    yield from (_without_zero_point(x, 1.0), _without_zero_point(x, 0.3))


@calls(MASK, "none-domain-quotient")
def none_domain_quotient() -> Iterator[Arguments]:
    """Quotients at a tie, and beside one, where the product with the reciprocal rounds to another code."""
    for x, scale in ((0.75000006, 0.50000006), (1.7500012, 0.50000036), (1.7500001, 0.50000006)):
        yield _without_zero_point(np.array([x, -x, 0.0, -0.0], np.float32), scale)


def _without_zero_point(x: Array, scale: float) -> Arguments:
    given = {"input": x, "block_size": x.shape, "scale": scalar(scale), "zero_point": None}
    return {**given, "quant_dtype": "int8", "quant_min": -128, "quant_max": 127, "zero_point_domain": "NONE"}


@calls(MASK, "whole-dtype")
def whole_dtype() -> Iterator[Arguments]:
    """A mask of the grid that the dtype gives."""
    x = np.array([-200, -129, -128, 127, 128], np.float32)
    yield {
        "input": x,
        "block_size": x.shape,
        "scale": scalar(1),
        "zero_point": scalar(0, np.int32),
        "quant_dtype": "int8",
    }


@calls(MASK, "refusals")
def mask_refusals() -> Iterator[Arguments]:
    """No domain, and a grid beyond the dtype."""
    x = np.arange(4, dtype=np.float32)
    good = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(0), "quant_dtype": "int8"}
    yield from ({**good, "zero_point_domain": None}, {**good, "quant_min": -129, "quant_max": 0})


@calls(MASK, "none-domain-zero-point")
def mask_none_domain() -> Iterator[Arguments]:
    """A zero point in the domain that has none."""
    x = np.arange(4, dtype=np.float32)
    good = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(0), "quant_dtype": "int8"}
    yield {**good, "quant_min": -8, "quant_max": 7, "zero_point_domain": "NONE"}


def _codes(name: str) -> Array:
    info = np.iinfo(name)
    if info.bits == 8:  # noqa: PLR2004 - every code of a byte
        return np.arange(info.min, info.max + 1).astype(name)
    ends = [info.min, info.min + 1, -(2**24) - 1, -257, -1, 0, 1, 257, 2**24 + 1, 32767, info.max - 1, info.max]
    return np.array([e for e in ends if info.min <= e <= info.max], name)


@shared((BACK, NONE_BACK), "codes")
def real_codes(formula: str) -> Iterator[dict[str, Any]]:
    """Every code of 8 bits, the ends of wider ones, under odd zero points, scales of every dtype."""
    for name in ("int8", "uint8", "int16", "int32"):
        q = _codes(name)
        for out in ("float32", "float16", "bfloat16"):
            for i, z in enumerate((0, 1, -3, 127)):
                s = scalar(SCALES[i], DTYPES[(i + len(out)) % 3])
                point = None if formula == NONE_BACK else scalar(z, np.int32)
                given = {"input": q, "block_size": q.shape, "scale": s, "zero_point": point, "input_dtype": name}
                yield {**given, "output_dtype": out}
    given = {"input": np.arange(-12, 13, dtype=np.int8), "block_size": (25,), "scale": scalar(0.5)}
    point = None if formula == NONE_BACK else scalar(1, np.int32)
    yield {**given, "zero_point": point, "input_dtype": "int8", "quant_min": -8, "quant_max": 7}


@calls(BACK, "subtraction")
def subtraction() -> Iterator[Arguments]:
    """Codes and zero points that the output's dtype, or 32 bits, do not hold, and none at all."""
    q = np.array([257, 259, 2049, 32767, 2**30 + 2**22 + 1, -(2**31), 2**31 - 1], np.int32)
    for out in ("bfloat16", "float16", "float32"):
        for z in (1, 2, 255, -1, 2**30 + 2**22 + 1, 2**31 - 1):
            common = {"input": q, "block_size": q.shape, "scale": scalar(1), "input_dtype": "int32"}
            yield {**common, "zero_point": scalar(z, np.int32), "output_dtype": out}
        yield {**common, "zero_point": None, "output_dtype": out}
    for part in (0.5, -1.75):
        given = {"input": q[:2], "block_size": (2,), "scale": scalar(2), "input_dtype": "int32"}
        yield {**given, "zero_point": scalar(part)}


@calls(FLOAT_BACK, "codes")
def float_reals() -> Iterator[Arguments]:
    """Every code of small grids, with zero points in reals of every dtype, and none."""
    for i, (name, target, grid) in enumerate(
        (
            ("uint8", "uint4", (None, None)),
            ("int32", "int32", (0, 15)),
            ("int8", "int8", (-8, 7)),
            ("uint8", "uint8", (3, 8)),
            ("int32", "int32", (-(2**31), 2**31 - 1)),
        )
    ):
        q = np.arange(16).astype(name) if name != "int32" else np.array([0, 7, 8, 15, 2**24 + 1, 2**31 - 1], np.int32)
        for j, out in enumerate(("float32", "float16", "bfloat16")):
            for k, point in enumerate((0.0, -0.37, 100.25, None)):
                s = scalar(SCALES[(i + j + k) % len(SCALES)], DTYPES[(i + k) % 3])
                yield {
                    "input": q,
                    "block_size": q.shape,
                    "scale": s,
                    "zero_point": None if point is None else scalar(point, DTYPES[(j + k) % 3]),
                    "input_dtype": target,
                    "quant_min": grid[0],
                    "quant_max": grid[1],
                    "output_dtype": out,
                }


@shared((BACK, FLOAT_BACK, NONE_BACK), "blocks")
def real_blocks(formula: str) -> Iterator[dict[str, Any]]:
    """Codes of rank 0 to 3 in blocks."""
    for shape, block, count in (((), (), 1), ((4,), (2,), 2), ((2, 4), (1, 4), 2), ((2, 3, 4), (2, 1, 2), 6)):
        q = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) - 3, np.int8)
        s, z = (np.arange(count, dtype=np.float32) + 1) / 8, np.arange(count, dtype=np.int32) - 2
        point = None if formula == NONE_BACK else z
        yield {"input": q, "block_size": block, "scale": s, "zero_point": point, "input_dtype": "int8"}


@shared((BACK, FLOAT_BACK, NONE_BACK), "refusals")
def real_refusals(formula: str) -> Iterator[dict[str, Any]]:
    """Codes of another dtype, reals of another, grids beyond it, blocks and parameters that do not fit."""
    q = np.arange(8, dtype=np.int8).reshape(2, 4)
    two = np.ones(2, np.float32)
    point = None if formula == NONE_BACK else np.zeros(2, np.int32)
    good = {"input": q, "block_size": (1, 4), "scale": two, "zero_point": point, "input_dtype": "int8"}
    yield from (
        {**good, "input_dtype": "uint8"},
        {**good, "input_dtype": "int4"},
        {**good, "output_dtype": "float64"},
        {**good, "output_dtype": "int8"},
        {**good, "quant_max": 128},
        {**good, "input": q.astype(np.int64), "input_dtype": "int64"},
        {**good, "block_size": (4,)},
        {**good, "block_size": (1, 3)},
        {**good, "scale": np.ones(3, np.float32)},
    )
    yield {**good, "input": q.astype(np.int16) + 200, "input_dtype": "uint4"}  # taken as they are (measured)
    if formula == NONE_BACK:
        yield {**good, "zero_point": np.zeros(2, np.int32)}
    else:
        yield {**good, "zero_point": np.zeros(3, np.int32)}
