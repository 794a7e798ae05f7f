"""torchao: what its documents say of quantize and dequantize with a zero point in reals or none."""

from collections.abc import Callable
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected, measured, silent
from halfeven.conformance.systems.torchao.affine import requirements as affine
from halfeven.conformance.systems.torchao.affine.requirements import (
    BF16,
    DTYPES,
    F16,
    F32,
    FAKE,
    FLOAT,
    FLOAT_BACK,
    GRIDS,
    NONE,
    NONE_BACK,
    SCALES,
    limits_of,
    near,
    renamed,
    scalar,
    ties,
)
from halfeven.conformance.systems.torchao.by_release import by_release, primitive

__all__ = ["ANSWERS", "float8_codes", "float_codes", "none_codes"]

# In these domains too.
silent(
    FLOAT,
    "no document says what NaN gives",
    text="NaN among the codes is refused, for an integer does not stand for it.",
)(affine.nan)
silent(
    NONE,
    "no document says what NaN gives",
    text="NaN among integer codes is refused, for an integer does not stand for it.",
)(affine.nan)
expected(
    (FLOAT, NONE),
    "AffineQuantizedTensor, field quant_max: the greatest code",
    text="An end of the grid that the arithmetic's dtype does not hold does not pass the grid's end as an integer.",
)(affine.wide_grids)
documented(
    FLOAT, "AffineQuantizedTensor, field block_size", text="Elements of one block share its scale and zero point."
)(affine.blocks)
documented(NONE, "AffineQuantizedTensor, field block_size", text="Elements of one block share its scale.")(
    affine.blocks
)
expected(
    FLOAT,
    "quant_primitives: blocks divide the dimensions; of none there are none",
    text="A tensor without elements, and parameters without entries, give a tensor without elements.",
)(affine.empty)
documented(
    (FLOAT, NONE),
    "quant_primitives.quantize_affine: output_dtype gives the grid",
    text="Codes of 1 to 7 signed bits keep to their own grid.",
)(affine.signed_sub_byte)
measured(
    FLOAT,
    "quant_primitives.quantize_affine: the arguments (the error types: measured)",
    text="What quantize_affine refuses is refused in the FLOAT domain too.",
)(affine.refusals)
measured(
    NONE,
    "quant_primitives.quantize_affine: the arguments (the error types: measured)",
    text="What quantize_affine refuses is refused in the NONE domain too.",
)(affine.refusals)
documented(
    NONE_BACK,
    "quant_primitives: ZeroPointDomain.NONE",
    aspect="codes",
    text="NONE domain: a code times the scale, in the dtype asked for.",
)(affine.real_codes)
documented(
    FLOAT_BACK,
    "AffineQuantizedTensor, field block_size",
    aspect="blocks",
    text="The codes of one block share its scale and zero point.",
)(affine.real_blocks)
documented(
    NONE_BACK,
    "AffineQuantizedTensor, field block_size",
    aspect="blocks",
    text="The codes of one block share its scale.",
)(affine.real_blocks)
measured(
    FLOAT_BACK,
    "quant_primitives.dequantize_affine: the arguments (the error types: measured)",
    aspect="refusals",
    text="What dequantize_affine refuses is refused in the FLOAT domain too.",
)(affine.real_refusals)
documented(
    NONE_BACK,
    "quant_primitives._dequantize_affine_no_zero_point: zero_point (the error types: measured)",
    aspect="refusals",
    text="A zero point is refused in the NONE domain, and so is what dequantize_affine refuses.",
)(affine.real_refusals)


@documented(
    FLOAT,
    "quant_primitives: ZeroPointDomain.FLOAT; AffineQuantizedTensor, field zero_point_domain (ties: measured)",
    aspect="codes",
)
@renamed
def float_codes(formula: str) -> Calls:
    """FLOAT domain: the code counts from the real of code 0, the zero point less scale times the grid's middle; the
    quotient is rounded once, ties to even."""
    domain = {"zero_point_domain": "FLOAT"} if formula == FAKE else {}
    for dtype in DTYPES:
        wide = "int16" if dtype == F16 else "int32"
        for i, (name, qmin, qmax) in enumerate(((wide, 0, 15), ("uint4", 0, 15), ("int8", -8, 7), ("uint8", 3, 8))):
            for j, z in enumerate((0.0, 1.5, -0.37, 100.25)):
                s = scalar(SCALES[(i + j) % len(SCALES)], (dtype, F32)[j % 2])
                zero = scalar(z, (dtype, F32, BF16)[(i + j) % 3])
                low = float(zero) - float(s) * (qmin + qmax + 1) / 2
                x = (ties(float(s), near(qmin, qmax), F32) + np.float32(low)).astype(dtype)
                yield {
                    "input": x,
                    "block_size": x.shape,
                    "scale": s,
                    "zero_point": zero,
                    "codes": name,
                    "quant_min": qmin,
                    "quant_max": qmax,
                    **domain,
                }
    x = np.arange(-4, 5, dtype=np.float32) / 2
    common = {"input": x, "block_size": x.shape, "scale": scalar(0.25), "zero_point": scalar(3, np.int32)}
    yield {**common, "codes": "uint4", **domain}
    x = np.arange(0, 12, 2, dtype=np.float32)  # of a grid whose middle is no float32
    common = {"input": x, "block_size": x.shape, "scale": scalar(1.5), "zero_point": scalar(0)}
    yield {**common, "codes": "int32", "quant_min": 0, "quant_max": 2**25 + 2, **domain}


@measured(NONE, "quant_primitives: ZeroPointDomain.NONE (for integers no rounding is named)", aspect="codes")
@renamed
def none_codes(formula: str) -> Calls:
    """NONE domain, integer codes: the quotient rounded to the nearest integer, a tie to the even one, and limited to
    the grid."""
    # Ties of integer codes without a zero point; the sign of zero.
    domain = {"zero_point_domain": "NONE"} if formula == FAKE else {}
    for dtype in DTYPES:
        for i, grid in enumerate(GRIDS[:-1]):
            s = scalar((1.0, 0.5, 2.0, 2.0**-10)[i % 4], dtype if i % 2 else np.float32)
            x = np.concatenate([ties(float(s), near(*limits_of(grid)), dtype), np.array([-0.0, 0.0, -0.25], dtype)])
            given = {"input": x, "block_size": x.shape, "scale": s, "zero_point": None, **domain}
            yield {**given, "codes": grid[0], "quant_min": grid[1], "quant_max": grid[2]}
    given = {"input": np.array([-0.0, 0.0, -1, 1], F32), "block_size": (4,), "scale": scalar(1), "zero_point": None}
    yield {**given, "codes": "int8", "quant_min": -8, "quant_max": 0, **domain}  # an end that is a zero


@documented(NONE, "quant_primitives: ZeroPointDomain.NONE, float_val / scale")
def quotient() -> Calls:
    """NONE domain: the input is divided by the scale."""
    # Scales whose reciprocal is no float, without a zero point.
    for given in affine.int_quotient(NONE):
        yield {**given, "zero_point": None, "output_dtype": "int16"}


@documented(NONE, "quant_primitives._quantize_affine_no_zero_point, the note: scaled and cast", aspect="float8")
@renamed
def float8_codes(formula: str) -> Calls:
    """NONE domain, float8: the quotient is limited and cast to the nearest float8, not rounded to an integer before."""
    # Quotients between the integers and beyond the ends, cast to every float8.
    domain = {"zero_point_domain": "NONE"} if formula == FAKE else {}
    values = [0.0, -0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 2.5, 17.0, 18.5, 239.0, 300.0, 460.0, 1e5, np.inf]
    x = np.array([*values, *(-v for v in values), 2.0**-9, 2.0**-10, 3 * 2.0**-10, 2.0**-17], np.float64)
    for dtype in DTYPES:
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
            for scale in (1.0, 0.25, 2.0**-3):
                given = {"input": x.astype(dtype), "block_size": x.shape, "scale": scalar(scale)}
                yield {**given, "zero_point": None, "codes": name, **domain}


@measured(NONE, "quant_primitives._quantize_affine_no_zero_point: zero_point (measured; 0.11 refuses it)")
def zero_point() -> Calls:
    """A zero point in the NONE domain is not read."""
    x = np.arange(4, dtype=np.float32)
    given = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(1, np.int32)}
    yield from ({**given, "output_dtype": "int8"}, {**given, "output_dtype": "float8_e4m3fn"})


@documented(
    FLOAT_BACK,
    "quant_primitives: ZeroPointDomain.FLOAT; AffineQuantizedTensor, fields quant_min and quant_max (the roundings: "
    "measured)",
)
def codes() -> Calls:
    """FLOAT domain: a code less the grid's middle, times the scale, plus the zero point; the grid is that of the codes'
    dtype where none is given."""
    for i, (name, target, grid) in enumerate(
        (
            ("uint8", "uint4", (None, None)),
            ("int32", "int32", (0, 15)),
            ("int8", "int8", (-8, 7)),
            ("uint8", "uint8", (3, 8)),
            ("int32", "int32", (-(2**31), 2**31 - 1)),
            ("int32", "int32", (0, 2**25 + 2)),
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


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/quantize_affine_float_domain": primitive("_quantize_affine_tinygemm"),
            "torchao/dequantize_affine_float_domain": primitive("_dequantize_affine_tinygemm"),
            "torchao/quantize_affine_no_zero_point": primitive("_quantize_affine_no_zero_point"),
            "torchao/dequantize_affine_no_zero_point": primitive("_dequantize_affine_no_zero_point"),
        },
        v0_11={
            "torchao/quantize_affine_float_domain": primitive("quantize_affine", zero_point_domain="FLOAT"),
            "torchao/dequantize_affine_float_domain": primitive("dequantize_affine", zero_point_domain="FLOAT"),
            "torchao/quantize_affine_no_zero_point": primitive("quantize_affine", zero_point_domain="NONE"),
            "torchao/dequantize_affine_no_zero_point": primitive("dequantize_affine", zero_point_domain="NONE"),
        },
    )
}
