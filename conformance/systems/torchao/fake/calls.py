"""torchao: calls of fake quantize, and of its mask: those of the three domains, and codes that leave the grid."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.requirement import Arguments, calls
from halfeven.conformance.systems.torchao.affine import calls as affine
from halfeven.conformance.systems.torchao.affine.calls import (
    DTYPES,
    FAKE,
    MASK,
    scalar,
    shared,
    ties,
)
from halfeven.conformance.systems.torchao.domains import calls as domains

__all__: list[str] = []

Array = npt.NDArray[Any]

for _name, _build in {
    "codes": affine.int_codes,
    "quotient": affine.int_quotient,
    "float-domain": domains.float_codes,
    "none-domain": domains.none_codes,
    "float8": domains.float8_codes,
    "nan": affine.nan,
    "extremes": affine.int_extremes,
    "wide-grids": affine.wide_grids,
    "float-zero-point": affine.float_zero_point,
    "blocks": affine.blocks,
    "empty": affine.empty,
    "refusals": affine.refusals,
}.items():
    shared((FAKE,), _name)(_build)
shared((MASK,), "empty")(affine.empty)


@calls(FAKE, "domains-refused")
def domains_refused() -> Iterator[Arguments]:
    """No domain, and a zero point in the domain that has none."""
    x = np.arange(4, dtype=np.float32)
    good = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(0), "quant_dtype": "int8"}
    yield from ({**good, "zero_point_domain": None}, {**good, "zero_point_domain": "NONE"})


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


@calls(MASK, "values")
def values() -> Iterator[Arguments]:
    """A sample of the calls of fake quantize: scales of another dtype, zero points in reals, a float8."""
    for given in [*affine.int_quotient(FAKE)][::2]:
        kept = {k: v for k, v in given.items() if k != "codes"}
        yield {**kept, "quant_dtype": "int16", "quant_min": -100, "quant_max": 100}
    for given in [*domains.float_codes(FAKE)][::7]:
        yield {"quant_dtype": given["codes"], **{k: v for k, v in given.items() if k != "codes"}}
    x = np.array([0.3, 1.5, -2.75, 500], np.float32)
    given = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": None, "zero_point_domain": "NONE"}
    yield {**given, "quant_dtype": "float8_e4m3fn", "quant_min": -448, "quant_max": 448}
