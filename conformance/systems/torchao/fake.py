"""torchao: what its documents say of fake quantization and its mask."""

from collections.abc import Callable
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, calls, documented, expected, measured
from halfeven.conformance.systems.torchao import domains
from halfeven.conformance.systems.torchao.affine import requirements as affine
from halfeven.conformance.systems.torchao.affine.requirements import (
    DTYPES,
    FAKE,
    MASK,
    scalar,
    ties,
)
from halfeven.conformance.systems.torchao.by_release import by_release, primitive
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]


# As quantize and dequantize.
documented(
    FAKE,
    "quant_primitives.fake_quantize_affine: quantize_affine and dequantize_affine without the casts",
    aspect="codes",
    text="Fake quantization gives the reals that dequantize makes of quantize's codes, in the input's dtype.",
)(affine.int_codes)
documented(
    FAKE,
    "AffineQuantizedTensor: float_tensor / scale; quant_primitives: ZeroPointDomain.INT",
    aspect="quotient",
    text="The input is divided by the scale, in the dtype to which both promote.",
)(affine.int_quotient)
measured(
    FAKE,
    "quant_primitives.fake_quantize_affine: no casts (measured on 0.18; 0.11 casts to int32)",
    text="NaN stays NaN.",
)(affine.nan)
documented(
    FAKE,
    "AffineQuantizedTensor, fields quant_min and quant_max",
    aspect="extremes",
    text="Numbers however large, infinities, subnormals and both zeros: each gives the real of its code, or of the "
    "end of the grid on its side.",
)(affine.int_extremes)
measured(
    FAKE,
    "quant_primitives.fake_quantize_affine: zero_point (an integer by the document)",
    text="A zero point that is no integer is added and subtracted as it is.",
)(affine.float_zero_point)
documented(
    FAKE, "AffineQuantizedTensor, field block_size", text="Elements of one block share its scale and zero point."
)(affine.blocks)
expected(
    (FAKE, MASK),
    "quant_primitives: blocks divide the dimensions; of none there are none",
    text="A tensor without elements, and parameters without entries, give a tensor without elements.",
)(affine.empty)
measured(
    FAKE,
    "quant_primitives.fake_quantize_affine: the arguments (the error types: measured)",
    text="What quantize_affine refuses is refused here too.",
)(affine.refusals)
documented(
    FAKE,
    "quant_primitives.fake_quantize_affine: zero_point_domain",
    aspect="float-domain",
    text="FLOAT domain: the reals that its dequantize makes of its quantize's codes.",
)(domains.float_codes)
measured(
    FAKE,
    "quant_primitives.fake_quantize_affine: zero_point_domain (the sign of zero: measured)",
    aspect="none-domain",
    text="NONE domain: code times scale, integer codes rounded; a zero keeps its sign.",
)(domains.none_codes)
calls(FAKE, "none-domain")(affine.wide_grids)
documented(
    FAKE,
    "quant_primitives._quantize_affine_no_zero_point, the note; fake_quantize_affine: without the casts",
    aspect="float8",
    text="NONE domain, float8: the quotient is limited and not rounded to an integer.",
)(domains.float8_codes)


@measured(FAKE, "quant_primitives.fake_quantize_affine: zero_point_domain (the errors: measured)", aspect="domain")
def domains_refused() -> Calls:
    """An absent domain is refused, and so is a zero point in the NONE domain."""
    x = np.arange(4, dtype=np.float32)
    good = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(0), "quant_dtype": "int8"}
    yield from ({**good, "zero_point_domain": None}, {**good, "zero_point_domain": "NONE"})


@documented(MASK, "quant_primitives.fake_quantize_affine_cachemask")
def inside() -> Calls:
    """The values are those of fake quantization, and the mask is True where the code lies on the grid."""
    # Ties on the grid, none of whose codes leaves it: the values are those of fake quantize.
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


@documented(MASK, "quant_primitives.fake_quantize_affine_cachemask: the mask of outliers")
def outliers() -> Calls:
    """The mask is False exactly where the code, before it is limited, lies outside of the grid; the ends belong to
    it."""
    # Codes one step inside and outside of the grid, infinities and NaN, in the three domains.
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


@documented(
    MASK,
    "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine; ZeroPointDomain.NONE (ties: "
    "measured)",
)
def none_domain() -> Calls:
    """NONE domain: the values are codes rounded to the nearest integer, a tie to the even one, times the scale."""
    # Ties of the codes without a zero point, and a scale that is no power of two.
    x = np.array([0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5, -3.5], np.float32)
    yield from (_without_zero_point(x, 1.0), _without_zero_point(x, 0.3))


@documented(MASK, "quant_primitives: ZeroPointDomain.NONE, float_val / scale")
def none_domain_quotient() -> Calls:
    """NONE domain: the input is divided by the scale."""
    # Quotients at a tie, and next to one, where the product with the reciprocal rounds to another code.
    for x, scale in ((0.75000006, 0.50000006), (1.7500012, 0.50000036), (1.7500001, 0.50000006)):
        yield _without_zero_point(np.array([x, -x, 0.0, -0.0], np.float32), scale)


def _without_zero_point(x: Array, scale: float) -> Arguments:
    given = {"input": x, "block_size": x.shape, "scale": scalar(scale), "zero_point": None}
    return {**given, "quant_dtype": "int8", "quant_min": -128, "quant_max": 127, "zero_point_domain": "NONE"}


@documented(MASK, "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine")
def whole_dtype() -> Calls:
    """Without quant_min and quant_max the mask speaks of the grid of quant_dtype."""
    # A mask of the grid that the dtype gives.
    x = np.array([-200, -129, -128, 127, 128], np.float32)
    given = {"input": x, "block_size": x.shape, "scale": scalar(1), "zero_point": scalar(0, np.int32)}
    for ends in ({}, {"quant_min": -100}, {"quant_max": 100}):
        yield {**given, "quant_dtype": "int8", **ends}


@measured(MASK, "quant_primitives.fake_quantize_affine_cachemask: the arguments (the error types: measured)")
def refusals() -> Calls:
    """An absent domain and a grid beyond the dtype are refused."""
    x = np.arange(4, dtype=np.float32)
    good = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(0), "quant_dtype": "int8"}
    yield from ({**good, "zero_point_domain": None}, {**good, "quant_min": -129, "quant_max": 0})


@documented(MASK, "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine")
def none_domain_zero_point() -> Calls:
    """A zero point in the NONE domain is refused as by fake_quantize_affine."""
    x = np.arange(4, dtype=np.float32)
    good = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(0), "quant_dtype": "int8"}
    yield {**good, "quant_min": -8, "quant_max": 7, "zero_point_domain": "NONE"}


@documented(MASK, "quant_primitives.fake_quantize_affine_cachemask: arguments as fake_quantize_affine")
def values() -> Calls:
    """The values are those of fake quantization in every domain, dtype and scale."""
    # A sample of the calls of fake quantize: scales of another dtype, zero points in reals, a float8.
    for given in [*affine.int_quotient(FAKE)][::2]:
        yield {**given, "quant_dtype": "int16", "quant_min": -100, "quant_max": 100}
    yield from [*domains.float_codes(FAKE)][::7]
    x = np.array([0.3, 1.5, -2.75, 500], np.float32)
    given = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": None, "zero_point_domain": "NONE"}
    yield {**given, "quant_dtype": "float8_e4m3fn", "quant_min": -448, "quant_max": 448}


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/fake_quantize_affine": primitive("_fake_quantize_affine"),
            "torchao/fake_quantize_affine_cachemask": primitive("_fake_quantize_affine_cachemask"),
        },
        v0_11={
            "torchao/fake_quantize_affine": primitive("fake_quantize_affine"),
            "torchao/fake_quantize_affine_cachemask": primitive("fake_quantize_affine_cachemask"),
        },
    )
}
