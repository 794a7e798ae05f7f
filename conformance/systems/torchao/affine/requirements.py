"""torchao: what its documents say of quantize and dequantize in the integer domain."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, documented, expected, measured, on, says, silent
from halfeven.reference.blocks import Array

__all__ = [
    "BF16",
    "DTYPES",
    "F16",
    "F32",
    "FAKE",
    "FLOAT",
    "FLOAT_BACK",
    "GRIDS",
    "MASK",
    "NONE",
    "NONE_BACK",
    "SCALES",
    "blocks",
    "empty",
    "float_zero_point",
    "int_codes",
    "int_extremes",
    "int_quotient",
    "limits_of",
    "nan",
    "near",
    "real_blocks",
    "real_codes",
    "real_refusals",
    "refusals",
    "renamed",
    "scalar",
    "signed_sub_byte",
    "ties",
    "wide_grids",
]

on(
    "torchao",
    says(
        "nearest-code",
        "The input divided by the scale is rounded to the nearest integer; a tie goes to the even one.",
        "AffineQuantizedTensor: the affine transformation (ties: measured)",
    ),
    says(
        "zero-point-after-rounding",
        "In the integer domain the zero point is added to the quantized integer, not to the quotient.",
        "AffineQuantizedTensor, field zero_point_domain",
    ),
    says(
        "saturation",
        "The code is limited to [quant_min, quant_max].",
        "AffineQuantizedTensor, fields quant_min and quant_max",
        operations=("quantize",),
        kills=("narrow-range", "clamp-before-zero-point", "wrap", "int32-cast", "end-past-the-grid"),
    ),
    says(
        "saturation",
        "The code is limited to [quant_min, quant_max].",
        "AffineQuantizedTensor, fields quant_min and quant_max",
        operations=("fake_quantize",),
    ),
    says(
        "huge-inputs",
        "Inputs however large, and the infinities, give the end of the grid on their side.",
        "AffineQuantizedTensor, fields quant_min and quant_max, the least and the greatest value",
    ),
    says(
        "dequantized-value",
        "A code becomes (code - zero_point) * scale: the inverse of the affine transformation.",
        "AffineQuantizedTensor.dequantize and the affine transformation",
    ),
)


DTYPES = tuple(np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16))
F32, F16, BF16 = DTYPES
GRIDS: tuple[tuple[str, int | None, int | None], ...] = (
    ("int8", None, None),
    ("int8", -8, 7),
    ("uint8", None, None),
    ("uint4", None, None),
    ("int16", -500, 601),
    ("int8", 3, 5),
)
INT, BACK = "torchao/quantize_affine", "torchao/dequantize_affine"
FAKE, MASK = "torchao/fake_quantize_affine", "torchao/fake_quantize_affine_cachemask"
FLOAT, FLOAT_BACK = "torchao/quantize_affine_float_domain", "torchao/dequantize_affine_float_domain"
NONE, NONE_BACK = "torchao/quantize_affine_no_zero_point", "torchao/dequantize_affine_no_zero_point"
_DTYPE = {INT: "output_dtype", FLOAT: "output_dtype", NONE: "output_dtype", FAKE: "quant_dtype", MASK: "quant_dtype"}
SCALES = (1.0, 0.1, 3.0, 2.0**-20, 0.0123)


def ties(scale: float, codes: Array, dtype: "np.dtype[Any]") -> Array:
    """The floats nearest to (code + 1/2) * scale, their neighbours, and code * scale."""
    with np.errstate(all="ignore"):
        half = ((codes + 0.5) * scale).astype(dtype)
        return np.concatenate([step(half[:, None], np.arange(-1, 2)).ravel(), (codes * scale).astype(dtype)])


def scalar(value: float, dtype: Any = np.float32) -> Array:
    """A 0-d array."""
    return np.asarray(value, dtype)


def renamed(build: Callable[[str], Calls]) -> Callable[[str], Calls]:
    """Calls whose ``codes``, the dtype of the codes, are given under the formula's own word for it."""

    @wraps(build)
    def renaming(formula: str) -> Calls:
        for given in build(formula):
            yield {_DTYPE.get(formula, "codes") if k == "codes" else k: v for k, v in given.items()}

    return renaming


def near(qmin: int, qmax: int) -> Array:
    """Codes on and around the ends of a grid and around zero."""
    ends = [q + d for q in (qmin, qmax) for d in (-2, -1, 0, 1)]
    return np.unique([*ends, *range(max(qmin, -4), min(qmax, 4) + 1)])


def limits_of(grid: tuple[str, int | None, int | None]) -> tuple[int, int]:
    """The ends of one of ``GRIDS``."""
    name, low, high = grid
    bits = int(name.partition("int")[2])
    unsigned = name.startswith("u")
    return (
        low if low is not None else 0 if unsigned else -(2 ** (bits - 1)),
        high if high is not None else 2**bits - 1 if unsigned else 2 ** (bits - 1) - 1,
    )


@documented(
    INT,
    "AffineQuantizedTensor: the affine transformation, field zero_point_domain, fields quant_min and quant_max (ties:"
    " measured)",
    aspect="codes",
)
@renamed
def int_codes(_: str) -> Calls:
    """INT domain: the quotient is rounded to the nearest integer, a tie to the even one, then the zero point is added,
    then the code is limited to the grid."""
    # Every tie near zero and the ends, under zero points that are even, odd, at the ends and beyond.
    for k, dtype in enumerate(DTYPES):
        for i, grid in enumerate(GRIDS):
            qmin, qmax = limits_of(grid)
            for j, z in enumerate((0, 1, -3, qmin, qmax, qmax + 5)):
                if (i + j + k) % 2 and dtype != F32:
                    continue
                scale = (1.0, 0.5, 4.0, 2.0**-10)[(i + j) % 4]  # with reciprocals that are floats
                s = scalar(scale, dtype if (i + j) % 2 else np.float32)
                x = ties(float(s), near(qmin, qmax) - z, dtype)
                given = {"input": x, "block_size": x.shape, "scale": s, "zero_point": scalar(z, np.int32)}
                yield {**given, "codes": grid[0], "quant_min": grid[1], "quant_max": grid[2]}
    x = np.array([2000, 2010, -2000], BF16)  # bfloat16 rounds the sum, of whichever integers the zero point is
    given = {"input": x, "block_size": x.shape, "scale": scalar(1, BF16), "codes": "int16"}
    for point_dtype in (np.uint8, np.int16):
        yield {**given, "zero_point": scalar(101, point_dtype), "quant_min": -3000, "quant_max": 3000}


@documented(
    INT, "AffineQuantizedTensor: float_tensor / scale; quant_primitives: ZeroPointDomain.INT", aspect="quotient"
)
@renamed
def int_quotient(_: str) -> Calls:
    """The input is divided by the scale, in the dtype to which both promote."""
    # Scales whose reciprocal is no float: quotients that are ties, and that a rounded reciprocal moves off them.
    codes = np.arange(1, 140, 2) + 0.5
    for scale in (3, 7, 41, 49, 0.1, 1.1, 1e-3):
        for dtype, scale_dtype in ((F32, F32), (BF16, F32), (F16, F32), (BF16, BF16), (F16, F16)):
            s = scalar(scale, scale_dtype)
            x = (codes * float(s)).astype(dtype)
            yield {
                "input": x,
                "block_size": x.shape,
                "scale": s,
                "zero_point": scalar(0, np.int32),
                "codes": "int16",
            }


@silent(INT, "no document says what NaN gives")
@renamed
def nan(formula: str) -> Calls:
    """NaN among the codes is refused, for an integer does not stand for it."""
    # NaN among numbers, a NaN scale, and a scale of zero under zero.
    point = None if formula == NONE else scalar(3, np.int32)
    for dtype in DTYPES:
        for codes in ("int8", "uint8", "int16", "uint4"):
            x = np.array([np.nan, 1, -2, 0, 300], dtype)
            for scale in (1.0, 0.0, np.nan):
                yield {"input": x, "block_size": (5,), "scale": scalar(scale), "zero_point": point, "codes": codes}
    yield {
        "input": np.array([np.nan], F32),
        "block_size": (1,),
        "scale": scalar(1),
        "zero_point": point,
        "codes": "int32",
    }


@documented(INT, "AffineQuantizedTensor, fields quant_min and quant_max", aspect="extremes")
@renamed
def int_extremes(_: str) -> Calls:
    """Numbers however large, infinities, subnormals and both zeros: each gives the code of its quotient, or the end of
    the grid on its side."""
    # Infinities, the ends of the dtype, subnormals, both zeros; scales of any size and sign.
    for dtype in DTYPES:
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        ends = [float(info.max), float(info.smallest_subnormal), float(info.smallest_normal), np.inf, 0.0, 40000.0]
        x = np.array([s * v for v in ends for s in (1, -1)], np.float64).astype(dtype)
        for scale in (1.0, -0.5, 2.0**-24, 2.0**100, np.inf):
            for codes in ("int8", "uint8", "uint4"):
                sized = x[(x != 0) & np.isfinite(x)] if np.isinf(scale) else x
                given = {"input": sized, "block_size": sized.shape, "scale": scalar(scale), "codes": codes}
                yield {**given, "zero_point": scalar(1, np.int32)}


@expected(INT, "AffineQuantizedTensor, field quant_max: the greatest code")
@renamed
def wide_grids(formula: str) -> Calls:
    """An end of the grid that the arithmetic's dtype does not hold does not pass the grid's end as an integer."""
    # Ends of the grid that the arithmetic's dtype has no number for: they round past the integer type.
    point = None if formula in (NONE, FAKE) else scalar(0, np.int32)
    domain = {"zero_point_domain": "NONE"} if formula == FAKE else {}
    for dtype, codes in ((F32, "int32"), (BF16, "int32"), (BF16, "int16"), (F16, "int16")):
        huge = [] if dtype == F16 else [2.0**31, 3e9, -3e9]
        x = np.array([4e4, -4e4, 32767, 3.0, 6e4, np.inf, -np.inf, *huge], dtype)
        given = {"input": x, "block_size": x.shape, "scale": scalar(1, dtype), "zero_point": point, **domain}
        yield {**given, "codes": codes}
    x = np.array([2000, 2001, 2100], BF16)
    common = {"input": x, "block_size": x.shape, "scale": scalar(1, BF16), "zero_point": point, **domain}
    yield {**common, "codes": "int16", "quant_min": -2001, "quant_max": 2001}


@measured(INT, "quant_primitives.quantize_affine: zero_point (an integer by the document)")
@renamed
def float_zero_point(_: str) -> Calls:
    """A zero point that is no integer is added as it is, and the limited sum is cut toward zero."""
    x = ties(0.5, np.arange(-6, 7), F32)
    for dtype in DTYPES:
        for z in (0.5, -1.25, 3.0):
            for point_dtype in DTYPES:
                given = {"input": x.astype(dtype), "block_size": x.shape, "scale": scalar(0.5, dtype)}
                yield {**given, "zero_point": scalar(z, point_dtype), "codes": "int8", "quant_min": -4, "quant_max": 4}


@documented(
    INT, "AffineQuantizedTensor, field block_size; quant_primitives.quantize_affine, the table of granularities"
)
@renamed
def blocks(formula: str) -> Calls:
    """Elements of one block share its scale and zero point, given in any shape of one entry per block; a block of the
    whole shape is per tensor."""
    # Every way to cut tensors of rank 0 to 4; parameters in the block's shape, flat, and kept.
    for shape, block, count in (
        ((), (), 1),
        ((4,), (4,), 1),
        ((4,), (1,), 4),
        ((4,), (2,), 2),
        ((2, 4), (2, 4), 1),
        ((2, 4), (1, 4), 2),
        ((2, 4), (2, 1), 4),
        ((2, 4), (1, 2), 4),
        ((2, 4), (1, -1), 2),
        ((4, 6), (2, 3), 4),
        ((2, 3, 4), (1, 3, 4), 2),
        ((2, 3, 4), (2, 1, 4), 3),
        ((2, 3, 4), (1, 1, 2), 12),
        ((2, 2, 2, 2), (2, 1, 2, 1), 4),
        ((0, 4), (1, 4), 0),
        ((0, 4), (1, 2), 0),
    ):
        size = int(np.prod(shape, dtype=int))
        x = np.asarray((np.arange(size).reshape(shape) - size / 3) * 0.7, np.float32)
        s = (np.arange(count, dtype=np.float32) + 1) / 8
        z = None if formula == NONE else np.arange(count, dtype=np.int32) - 2
        if formula != NONE and count == 0:
            continue  # a zero point without entries is a case of its own
        for parameter_shape in ((count,), (1, count)):
            yield {
                "input": x,
                "block_size": block,
                "scale": s.reshape(parameter_shape),
                "zero_point": None if z is None else z.reshape(parameter_shape),
                "codes": "int8",
                "quant_min": -8,
                "quant_max": 7,
            }


@expected(INT, "quant_primitives: blocks divide the dimensions; of none there are none")
@renamed
def empty(_: str) -> Calls:
    """A tensor without elements, and parameters without entries, give a tensor without elements."""
    none = np.ones(0, np.float32)
    given = {"input": np.ones((0, 4), np.float32), "block_size": (1, 4), "scale": none, "zero_point": none}
    yield {**given, "codes": "int8", "quant_min": -8, "quant_max": 7}


@documented(
    INT,
    "quant_primitives.quantize_affine: output_dtype gives the grid; AffineQuantizedTensor, fields quant_min and "
    "quant_max",
    aspect="unsigned-sub-byte",
)
def sub_byte() -> Calls:
    """Codes of 1 to 7 unsigned bits lie in uint8 and keep to their own grid."""
    x = np.arange(-10, 140, dtype=np.float32) / 2
    for bits in range(1, 8):
        common = {"input": x, "block_size": x.shape, "scale": scalar(0.5), "zero_point": scalar(1, np.int32)}
        yield {**common, "output_dtype": f"uint{bits}"}


@documented(INT, "quant_primitives.quantize_affine: output_dtype gives the grid")
@renamed
def signed_sub_byte(formula: str) -> Calls:
    """Codes of 1 to 7 signed bits keep to their own grid."""
    x = np.arange(-70, 70, dtype=np.float32) / 2
    point = None if formula == NONE else scalar(-1, np.int32)
    for bits in range(1, 8):
        common = {"input": x, "block_size": x.shape, "scale": scalar(0.5), "zero_point": point}
        yield {**common, "codes": f"int{bits}"}


@measured(INT, "quant_primitives.quantize_affine: the arguments (the error types: measured)")
@renamed
def refusals(formula: str) -> Calls:
    """A grid beyond its dtype, a dtype without codes, an input of another dtype than float32, float16 and bfloat16,
    blocks and parameters that do not fit, and no zero point are refused."""
    x = np.arange(8, dtype=np.float32).reshape(2, 4)
    two, four = np.ones(2, np.float32), np.ones(4, np.float32)
    point = None if formula == NONE else np.zeros(2, np.int32)
    good = {"input": x, "block_size": (1, 4), "scale": two, "zero_point": point, "codes": "int8"}
    yield from (
        {**good, "quant_min": -129},
        {**good, "codes": "uint4", "quant_max": 16},
        {**good, "codes": "int64"},
        {**good, "codes": "float32"},
        {**good, "input": x.astype(np.float64)},
        {**good, "input": x.astype(np.int32)},
        {**good, "block_size": (4,)},
        {**good, "block_size": (1, 3)},
        {**good, "block_size": (1, 8)},
        {**good, "scale": four},
        {**good, "input": x.astype(np.float16), "codes": "int32"},
    )
    for low, high in ((-65504, 65504), (-1, 65505), (-65505, 1)):  # float16 ends at 65504
        yield {**good, "input": x.astype(np.float16), "codes": "int32", "quant_min": low, "quant_max": high}
    half = {**good, "input": x.astype(np.float16), "scale": two.astype(np.float16), "codes": "int32"}
    for low, high in ((-65504, 65504), (-1, 65505), (-65505, 1), (0, -70000)):  # where the arithmetic is float16's
        yield {**half, "quant_min": low, "quant_max": high}
    if formula != NONE:
        yield from ({**good, "zero_point": None}, {**good, "zero_point": np.zeros(4, np.int32)})


def _codes(name: str) -> Array:
    info = np.iinfo(name)
    if info.bits == 8:  # noqa: PLR2004 - every code of a byte
        return np.arange(info.min, info.max + 1).astype(name)
    ends = [info.min, info.min + 1, -(2**24) - 1, -257, -1, 0, 1, 257, 2**24 + 1, 32767, info.max - 1, info.max]
    return np.array([e for e in ends if info.min <= e <= info.max], name)


@documented(
    BACK,
    "AffineQuantizedTensor.dequantize and the affine transformation (codes beyond the grid: measured)",
    aspect="codes",
)
@renamed
def real_codes(formula: str) -> Calls:
    """A code becomes the difference to the zero point times the scale, in the dtype asked for; codes beyond the grid
    keep their value."""
    # Every code of 8 bits, the ends of wider ones, under odd zero points, scales of every dtype.
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


@measured(BACK, "quant_primitives.dequantize_affine (measured on 0.18; 0.11 subtracts in int32)")
def subtraction() -> Calls:
    """The zero point is subtracted in the output's dtype, to which both are rounded first; without one nothing is."""
    # Codes and zero points that the output's dtype, or 32 bits, do not hold, and none at all.
    q = np.array([257, 259, 2049, 32767, 2**30 + 2**22 + 1, -(2**31), 2**31 - 1], np.int32)
    for out in ("bfloat16", "float16", "float32"):
        for z in (1, 2, 255, -1, 2**30 + 2**22 + 1, 2**31 - 1):
            common = {"input": q, "block_size": q.shape, "scale": scalar(1), "input_dtype": "int32"}
            yield {**common, "zero_point": scalar(z, np.int32), "output_dtype": out}
        yield {**common, "zero_point": None, "output_dtype": out}
        yield {**common, "scale": scalar(3), "zero_point": None, "output_dtype": out}
    for part in (0.5, -1.75):
        given = {"input": q[:2], "block_size": (2,), "scale": scalar(2), "input_dtype": "int32"}
        yield {**given, "zero_point": scalar(part)}


@documented(BACK, "AffineQuantizedTensor, field block_size", aspect="blocks")
@renamed
def real_blocks(formula: str) -> Calls:
    """The codes of one block share its scale and zero point."""
    for shape, block, count in (((), (), 1), ((4,), (2,), 2), ((2, 4), (1, 4), 2), ((2, 3, 4), (2, 1, 2), 6)):
        q = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) - 3, np.int8)
        s, z = (np.arange(count, dtype=np.float32) + 1) / 8, np.arange(count, dtype=np.int32) - 2
        point = None if formula == NONE_BACK else z
        yield {"input": q, "block_size": block, "scale": s, "zero_point": point, "input_dtype": "int8"}


@measured(BACK, "quant_primitives.dequantize_affine: the arguments (the error types: measured)", aspect="refusals")
@renamed
def real_refusals(formula: str) -> Calls:
    """Codes of another dtype than said, reals of another than float32, float16 and bfloat16, and what does not fit are
    refused; any codes pass for unsigned ones below 8 bits."""
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
