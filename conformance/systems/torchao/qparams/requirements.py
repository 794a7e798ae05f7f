"""torchao: what its documents say of choosing a scale and a zero point."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, calls, documented, expected, measured, silent
from halfeven.reference.blocks import Array

__all__ = ["DTYPES", "MAPPINGS", "extremes", "least_of", "tiny"]

DTYPES = tuple(np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16))
MAPPINGS = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")
TARGETS = ("int8", "uint8", "int16", "int32", *(f"{u}int{b}" for b in range(1, 8) for u in ("", "u")))
GRIDS = {"int8": (-127, 127), "uint8": (0, 15), "int16": (0, 514), "uint4": (1, 14), "int32": (-100, 3)}
CHOOSE = "torchao/choose_qparams_affine"
# Pairs whose ends lie on both sides of 0 or on one; the last four are 15 apart, so that 16 codes tie.
_PAIRS = [
    (-3.5, 10.2), (-10.2, 3.5), (-1, 1), (1, 2), (-2, -1), (0, 0.1), (-0.1, 0), (0.3, 0.3), (-7.1, 7.0),
    (-0.5, 14.5), (-1.5, 13.5), (-2.5, 12.5), (-3.5, 11.5),
]  # fmt: skip


def extremes(dtype: "np.dtype[Any]") -> Array:
    """Blocks of two elements, one row each: the pairs, and the ends of the dtype's range."""
    top = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return np.array([*_PAIRS, (-top / 8, top / 16), (-top, top / 2)], np.float64).astype(dtype)


def tiny(dtype: "np.dtype[Any]") -> Array:
    """Nothing, subnormals, and spans around the machine epsilon."""
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    eps, normal, least = float(info.eps), float(info.smallest_normal), float(info.smallest_subnormal)
    spans = [0.0, least, normal, eps, 10 * eps, 15 * eps, 127 * eps, 128 * eps, 256 * eps, 1e-6, 1e-5, 1.0]
    return np.array([(sign * s, 0.0) for s in spans for sign in (1, -1)], np.float64).astype(dtype)


def least_of(dtype: "np.dtype[Any]") -> float:
    """The least normal number: an eps that few scales meet, whatever the default."""
    return float(ml_dtypes.finfo(dtype).smallest_normal)  # type: ignore[no-untyped-call]


def _every_mapping(x: Array, **more: Any) -> Iterator[Arguments]:
    for mapping in MAPPINGS:
        common = {"input": x, "mapping_type": mapping, "block_size": (1, 2), "zero_point_dtype": "int32"}
        yield {**common, "eps": least_of(x.dtype), **more}


@documented(CHOOSE, "quant_primitives: MappingType, the worked examples")
def examples() -> Calls:
    """The range [-3.5, 10.2] on the codes -8 to 7: the symmetric scale is 20.4 / 15, the asymmetric 13.7 / 15."""
    x = np.array([-3.5, 10.2], np.float32)
    for mapping in MAPPINGS:
        for target, grid in (("int8", (-8, 7)), ("int4", (None, None))):
            yield {
                "input": x,
                "mapping_type": mapping,
                "block_size": (2,),
                "target_dtype": target,
                "quant_min": grid[0],
                "quant_max": grid[1],
                "zero_point_dtype": "int32",
            }


def _mapping(mapping: str) -> Iterator[Arguments]:
    for dtype in DTYPES:
        common = {"input": extremes(dtype), "mapping_type": mapping, "block_size": (1, 2), "zero_point_dtype": "int64"}
        common["eps"] = least_of(dtype)
        half = dtype == np.float16
        for target in TARGETS:
            if not (half and target == "int32"):
                yield {**common, "target_dtype": target}
        for target, (qmin, qmax) in GRIDS.items():
            yield {**common, "target_dtype": target, "quant_min": qmin, "quant_max": qmax}


@documented(CHOOSE, "quant_primitives: MappingType.SYMMETRIC")
def symmetric() -> Calls:
    """SYMMETRIC: the scale is the larger magnitude over half the steps of the grid; the zero point is the grid's
    middle, its fraction cut."""
    # Every pair of extremes and every grid, mapped symmetrically.
    yield from _mapping("SYMMETRIC")
    x = extremes(DTYPES[0])
    for target in ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"):
        yield {
            "input": x,
            "mapping_type": "SYMMETRIC",
            "block_size": (1, 2),
            "target_dtype": target,
            "zero_point_dtype": "float32",
        }


@documented(CHOOSE, "quant_primitives: MappingType.SYMMETRIC_NO_CLIPPING_ERR", aspect="symmetric-without-clipping")
def no_clipping() -> Calls:
    """SYMMETRIC_NO_CLIPPING_ERR: the scale is the larger of the least element over quant_min and the greatest over
    quant_max."""
    # Every pair of extremes and every grid, mapped so that neither end is clipped.
    yield from _mapping("SYMMETRIC_NO_CLIPPING_ERR")


@documented(CHOOSE, "quant_primitives: MappingType.ASYMMETRIC; from_hp_to_intx, preserve_zero")
def asymmetric() -> Calls:
    """ASYMMETRIC: the range drawn out to 0, over the steps of the grid; the zero point is the code of 0, limited to the
    grid."""
    # Every pair of extremes and every grid, mapped from one to the other.
    yield from _mapping("ASYMMETRIC")


@documented(CHOOSE, "quant_primitives.choose_qparams_affine: eps; from_hp_to_intx, eps", aspect="eps")
def least_scale() -> Calls:
    """The scale is at least eps, by default the machine epsilon of the input's dtype, before it takes the dtype asked
    for."""
    # Blocks of nothing, of subnormals and around the machine epsilon; with and without ``eps``.
    for dtype in DTYPES:
        for eps in (None, 1e-5, 1e-7, 0.1):
            for target in ("int8", "uint4"):
                yield from _every_mapping(tiny(dtype), target_dtype=target, eps=eps)
    for scale_dtype in ("float16", "float32"):  # a scale of float32 that float16 has no number for
        yield from _every_mapping(tiny(DTYPES[0]), target_dtype="int8", scale_dtype=scale_dtype)
        yield from _every_mapping(tiny(DTYPES[0]), target_dtype="int8", scale_dtype=scale_dtype, eps=None)


@measured(CHOOSE, "quant_primitives.choose_qparams_affine: scale_dtype, zero_point_dtype (the conversion: measured)")
def result_dtypes() -> Calls:
    """The arithmetic is the input's; scale and zero point are converted to scale_dtype and zero_point_dtype at the end,
    an integer wraps."""
    # The scale and the zero point in every dtype, also in one that wraps.
    for dtype in (*DTYPES, np.dtype(np.float64)):
        x = extremes(dtype)[:-2]
        for scale_dtype in (None, "float32", "float16", "bfloat16", "float64"):
            yield from _every_mapping(x, target_dtype="uint8", scale_dtype=scale_dtype)
        for zero_point_dtype in ("int8", "uint8", "int16", "int64", "float32", "float16", "bfloat16"):
            more = {"target_dtype": "uint8", "zero_point_dtype": zero_point_dtype}
            yield from _every_mapping(x, **more)
        yield from _every_mapping(x, target_dtype="int16", quant_min=0, quant_max=514, zero_point_dtype="float64")


@measured(
    CHOOSE,
    "from_hp_to_intx, zero_point_dtype: no default is named (measured on 0.11; since 0.15 int32 throughout)",
    aspect="zero-point-default-dtype",
)
def zero_point_default() -> Calls:
    """Without zero_point_dtype an asymmetric zero point in the integer domain is int32, and any other has the input's
    dtype."""
    x = extremes(DTYPES[0])[:4]
    for mapping in MAPPINGS:
        common = {"input": x, "mapping_type": mapping, "block_size": (1, 2), "target_dtype": "uint8"}
        yield {**common, "zero_point_dtype": None}
        yield common


@documented(
    CHOOSE, "from_hp_to_intx, preserve_zero; _choose_qparams_affine_dont_preserve_zero", aspect="zero-not-preserved"
)
def without_zero() -> Calls:
    """With preserve_zero=False the range is that of the elements, and not drawn out to 0."""
    # Zero without a code of its own: extremes on one side of 0 are not drawn out to it.
    for dtype in DTYPES:
        x = extremes(dtype)[:-1]
        for target in ("int8", "uint8", "uint4", "int4"):
            more = {"target_dtype": target, "preserve_zero": False, "eps": least_of(dtype)}
            yield {"input": x, "mapping_type": "ASYMMETRIC", "block_size": (1, 2), "zero_point_dtype": "int32", **more}


@documented(CHOOSE, "quant_primitives: ZeroPointDomain.FLOAT; AffineQuantizedTensor, field zero_point_domain")
def float_domain() -> Calls:
    """In the FLOAT domain the zero point is the real of the middle code: the least element plus scale times (qmin +
    qmax + 1) / 2."""
    for dtype in DTYPES:
        for preserve in (False, True):
            for target, grid in (
                ("int32", (0, 15)),
                ("uint4", (None, None)),
                ("int8", (None, None)),
                ("int8", (-3, 7)),
            ):
                for scale_dtype, zero_point_dtype in ((None, None), ("bfloat16", "bfloat16"), ("float32", "float16")):
                    yield {
                        "input": extremes(dtype)[:-1],
                        "mapping_type": "ASYMMETRIC",
                        "block_size": (1, 2),
                        "target_dtype": target,
                        "quant_min": grid[0],
                        "quant_max": grid[1],
                        "scale_dtype": scale_dtype,
                        "zero_point_dtype": zero_point_dtype,
                        "preserve_zero": preserve,
                        "zero_point_domain": "FLOAT",
                        "eps": least_of(dtype),
                    }


@calls(CHOOSE, "float-domain")
def float_domain_in_integers() -> Calls:
    """The real of a middle code that is no float32, and zero points that no int32 holds."""
    x = np.array([[-1, 2], [3e9, 4e9], [-3, 1e10]], np.float32)
    common = {"input": x, "block_size": (1, 2), "mapping_type": "ASYMMETRIC", "preserve_zero": False, "eps": 1e-12}
    domain = {"zero_point_domain": "FLOAT"}
    yield {**common, **domain, "target_dtype": "int32", "quant_min": 0, "quant_max": 2**25 + 2}
    yield {**common, **domain, "target_dtype": "uint8", "zero_point_dtype": "int32"}


@documented(CHOOSE, "quant_primitives: ZeroPointDomain.NONE")
def none_domain() -> Calls:
    """In the NONE domain there is no zero point."""
    for dtype in DTYPES:
        yield from _every_mapping(extremes(dtype), target_dtype="int8", zero_point_domain="NONE")
    yield from _every_mapping(extremes(DTYPES[0]), target_dtype="int8", zero_point_domain="NONE", keepdim=True)


@expected(CHOOSE, "no document says what NaN and infinities give")
def specials() -> Calls:
    """NaN gives a scale of NaN, an infinity one of infinity; an integer zero point of NaN is refused."""
    # NaN and infinities in a block, and a range beyond the dtype.
    inf, nan = np.inf, np.nan
    for dtype in DTYPES:
        top = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        rows = [(inf, 1), (-top, top), (nan, 1), (1, nan), (-inf, 1), (-inf, inf), (nan, inf)]
        for row in rows:
            for target in ("int8", "uint8"):
                yield from _every_mapping(np.array([row], np.float64).astype(dtype), target_dtype=target)


@documented(
    CHOOSE, "AffineQuantizedTensor, field block_size; quant_primitives.choose_qparams_affine: block_size, keepdim"
)
def blocks() -> Calls:
    """Each block has a scale and a zero point of its own; with keepdim there is an entry per block along every
    dimension."""
    # Every way to cut tensors of rank 0 to 4 into blocks, with and without the reduced dimensions.
    for shape, block in (
        ((), ()),
        ((4,), (4,)),
        ((4,), (2,)),
        ((2, 4), (2, 4)),
        ((2, 4), (1, 4)),
        ((2, 4), (2, 1)),
        ((2, 4), (1, 2)),
        ((4, 6), (2, 3)),
        ((4, 1), (4, 1)),
        ((2, 3, 4), (1, 3, 4)),
        ((2, 3, 4), (2, 1, 4)),
        ((2, 3, 4), (1, 1, 2)),
        ((3, 3, 4, 10), (3, 3, 2, 10)),
        ((0, 4), (1, 4)),
        ((2, 0), (2, 1)),
    ):
        x = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) * 0.7 - 3.3, np.float32)
        for keepdim in (False, True):
            for mapping in ("SYMMETRIC", "ASYMMETRIC"):
                yield {
                    "input": x,
                    "mapping_type": mapping,
                    "block_size": block,
                    "target_dtype": "int8",
                    "zero_point_dtype": "int32",
                    "keepdim": keepdim,
                }
    x = np.arange(8, dtype=np.float32).reshape(2, 4) - 3
    for block in ((1, -1), (-1, -1), (0, 2)):
        yield {"input": x, "mapping_type": "SYMMETRIC", "block_size": block, "target_dtype": "int8"}
    yield {"input": x.T, "mapping_type": "ASYMMETRIC", "block_size": (2, 1), "target_dtype": "int8"}


@expected(CHOOSE, "AffineQuantizedTensor, field block_size: the elements that share one parameter")
def blocks_of_one() -> Calls:
    """A block of one element along every dimension gives each element a scale of its own."""
    for shape in ((2, 4), (3,), (1, 1), (0, 4)):
        x = np.arange(np.prod(shape, dtype=int), dtype=np.float32).reshape(shape) - 3
        for keepdim in (False, True):
            yield {
                "input": x,
                "mapping_type": "ASYMMETRIC",
                "block_size": (1,) * len(shape),
                "target_dtype": "int8",
                "zero_point_dtype": "int32",
                "keepdim": keepdim,
            }


@measured(CHOOSE, "quant_primitives.choose_qparams_affine: the arguments (the error types: measured)")
def refusals() -> Calls:
    """A grid beyond the target dtype, a dtype without codes, an unknown mapping, an input that is not float, and blocks
    that do not fit or are empty are refused."""
    x = np.array([[-1, 1, 2, 3]], np.float32)
    good = {"input": x, "mapping_type": "ASYMMETRIC", "block_size": (1, 4), "target_dtype": "int8"}
    yield from (
        {**good, "quant_min": -129},
        {**good, "quant_max": 128},
        {**good, "target_dtype": "uint4", "quant_max": 16},
        {**good, "target_dtype": "int64"},
        {**good, "target_dtype": "uint16"},
        {**good, "target_dtype": "float32"},
        {**good, "mapping_type": "symmetric"},
        {**good, "block_size": (4,)},
        {**good, "block_size": (1, 3)},
        {**good, "block_size": (1, 5)},
        {**good, "input": x.astype(np.int32)},
        {**good, "input": x[:, :0], "block_size": (1, 0)},
        {**good, "input": x.astype(np.float16), "target_dtype": "int32"},
        {**good, "block_size": (1, -1), "keepdim": True},
    )


@measured(
    CHOOSE,
    "from_hp_to_intx, preserve_zero and zero_point_domain (the refusal: measured on 0.11)",
    aspect="symmetric-keeps-zero",
)
def refused_symmetric() -> Calls:
    """A symmetric mapping with preserve_zero=False, or with a zero point in reals, is refused."""
    x = np.array([-1, 1], np.float32)
    for mapping in MAPPINGS[:2]:
        for more in ({"preserve_zero": False}, {"preserve_zero": False, "zero_point_domain": "FLOAT"}):
            yield {"input": x, "mapping_type": mapping, "block_size": (2,), "target_dtype": "int8", **more}


@silent(CHOOSE, "from_hp_to_floatx maps so itself; whether another mapping is refused no document says")
def asymmetric_float8() -> Calls:
    """A float8 is mapped to symmetrically."""
    # Mappings to a float8 that are not symmetric.
    for mapping in MAPPINGS[1:]:
        yield {
            "input": extremes(DTYPES[0]),
            "mapping_type": mapping,
            "block_size": (1, 2),
            "target_dtype": "float8_e4m3fn",
            "zero_point_dtype": "float32",
        }


@measured(CHOOSE, "quant_primitives.choose_qparams_affine: the arithmetic is the input's (measured)")
def rounded_ends() -> Calls:
    """An end of the grid that the input's dtype does not hold is rounded to it before the zero point is taken."""
    for dtype, qmin in ((DTYPES[2], -301), (DTYPES[2], -513), (DTYPES[1], -2049)):
        common = {"input": extremes(dtype)[:-2], "block_size": (1, 2), "target_dtype": "int16"}
        yield {**common, "mapping_type": "ASYMMETRIC", "quant_min": qmin, "quant_max": 500, "zero_point_dtype": "int32"}


@measured(CHOOSE, "quant_primitives.choose_qparams_affine: keepdim (entries below 1: measured)")
def blocks_below_one() -> Calls:
    """With keepdim a block of -1 along a dimension of one element is the rest of the blocks, and one of 0 is
    refused."""
    for shape, block in (
        ((1, 4), (-1, 4)),
        ((1, 4), (-1, 2)),
        ((4, 1), (1, -1)),
        ((4, 1), (4, -1)),
        ((2, 4), (-1, 4)),
        ((1, 1), (-1, -1)),
        ((2, 4), (0, 4)),
        ((1, 4), (0, 4)),
        ((0, 1), (1, -1)),
        ((1, 1, 4), (-1, -1, 1)),
    ):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 1
        given = {"input": x, "mapping_type": "ASYMMETRIC", "block_size": block, "target_dtype": "int8"}
        yield {**given, "zero_point_dtype": "int32", "keepdim": True}


@silent(CHOOSE, "no document asks that quant_min lies below quant_max")
def inverted_grid() -> Calls:
    """A grid whose ends are equal or in the other order is not refused: the scale is infinite, or the least."""
    for qmin, qmax in ((5, 5), (10, -10)):
        yield from _every_mapping(extremes(DTYPES[0]), target_dtype="int8", quant_min=qmin, quant_max=qmax)
