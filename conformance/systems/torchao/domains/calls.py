"""torchao: calls of quantize and dequantize where the zero point is a real, or where there is none."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Arguments, calls
from halfeven.conformance.systems.torchao.affine import calls as affine
from halfeven.conformance.systems.torchao.affine.calls import (
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
    scalar,
    shared,
    ties,
)

__all__ = ["float8_codes", "float_codes", "none_codes"]

for _name, _build in {
    "nan": affine.nan,
    "wide-grids": affine.wide_grids,
    "blocks": affine.blocks,
    "signed-sub-byte": affine.signed_sub_byte,
    "refusals": affine.refusals,
}.items():
    shared((FLOAT, NONE), _name)(_build)
shared((FLOAT,), "empty")(affine.empty)
shared((NONE_BACK,), "codes")(affine.real_codes)
shared((FLOAT_BACK, NONE_BACK), "blocks")(affine.real_blocks)
shared((FLOAT_BACK, NONE_BACK), "refusals")(affine.real_refusals)


@shared((FLOAT,), "float-domain")
def float_codes(formula: str) -> Iterator[dict[str, Any]]:
    """Ties of the quotient from the real of the least code, with zero points in reals of every dtype."""
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


@shared((NONE,), "none-domain")
def none_codes(formula: str) -> Iterator[dict[str, Any]]:
    """Ties of integer codes without a zero point; the sign of zero."""
    domain = {"zero_point_domain": "NONE"} if formula == FAKE else {}
    for dtype in DTYPES:
        for i, grid in enumerate(GRIDS[:-1]):
            s = scalar((1.0, 0.5, 2.0, 2.0**-10)[i % 4], dtype if i % 2 else np.float32)
            x = np.concatenate([ties(float(s), near(*limits_of(grid)), dtype), np.array([-0.0, 0.0, -0.25], dtype)])
            given = {"input": x, "block_size": x.shape, "scale": s, "zero_point": None, **domain}
            yield {**given, "codes": grid[0], "quant_min": grid[1], "quant_max": grid[2]}


@calls(NONE, "quotient")
def none_quotient() -> Iterator[Arguments]:
    """Scales whose reciprocal is no float, without a zero point."""
    for given in affine.int_quotient(NONE):
        kept = {k: v for k, v in given.items() if k not in ("codes", "zero_point")}
        yield {**kept, "zero_point": None, "output_dtype": "int16"}


@shared((NONE,), "float8")
def float8_codes(formula: str) -> Iterator[dict[str, Any]]:
    """Quotients between the integers and beyond the ends, cast to every float8."""
    domain = {"zero_point_domain": "NONE"} if formula == FAKE else {}
    values = [0.0, -0.0, 0.1, 0.3, 0.5, 0.7, 1.0, 1.3, 1.5, 2.5, 17.0, 18.5, 239.0, 300.0, 460.0, 1e5, np.inf]
    x = np.array([*values, *(-v for v in values), 2.0**-9, 2.0**-10, 3 * 2.0**-10, 2.0**-17], np.float64)
    for dtype in DTYPES:
        for name in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
            for scale in (1.0, 0.25, 2.0**-3):
                given = {"input": x.astype(dtype), "block_size": x.shape, "scale": scalar(scale)}
                yield {**given, "zero_point": None, "codes": name, **domain}


@calls(NONE, "zero-point")
def none_zero_point() -> Iterator[Arguments]:
    """A zero point in the domain that has none."""
    x = np.arange(4, dtype=np.float32)
    given = {"input": x, "block_size": (4,), "scale": scalar(1), "zero_point": scalar(1, np.int32)}
    yield from ({**given, "output_dtype": "int8"}, {**given, "output_dtype": "float8_e4m3fn"})


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
