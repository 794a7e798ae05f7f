"""torchao: calls of choose_qparams_affine: extremes at which mappings part, tiny and huge blocks, dtypes, blocks."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.requirement import Arguments, calls

__all__ = ["extremes"]

Array = npt.NDArray[Any]


DTYPES = tuple(np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16))
MAPPINGS = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")
TARGETS = ("int8", "uint8", "int16", "int32", *(f"{u}int{b}" for b in range(1, 8) for u in ("", "u")))
GRIDS = {"int8": (-127, 127), "uint8": (0, 15), "int16": (0, 514), "uint4": (1, 14), "int32": (-100, 3)}
CHOOSE = "torchao/choose_qparams_affine"
MIN_MAX = "torchao/choose_qparams_affine_with_min_max"
# Pairs whose ends lie on both sides of 0 or on one; the last four are 15 apart, so that 16 codes tie.
_PAIRS = [
    (-3.5, 10.2), (-10.2, 3.5), (-1, 1), (1, 2), (-2, -1), (0, 0.1), (-0.1, 0), (0.3, 0.3), (-7.1, 7.0),
    (-0.5, 14.5), (-1.5, 13.5), (-2.5, 12.5), (-3.5, 11.5),
]  # fmt: skip


def extremes(dtype: "np.dtype[Any]") -> Array:
    """Blocks of two elements, one row each: the pairs, and the ends of the dtype's range."""
    top = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
    return np.array([*_PAIRS, (-top / 8, top / 16), (-top, top / 2)], np.float64).astype(dtype)


def _tiny(dtype: "np.dtype[Any]") -> Array:
    info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    eps, normal, least = float(info.eps), float(info.smallest_normal), float(info.smallest_subnormal)
    spans = [0.0, least, normal, eps, 10 * eps, 15 * eps, 127 * eps, 128 * eps, 256 * eps, 1e-6, 1e-5, 1.0]
    return np.array([(sign * s, 0.0) for s in spans for sign in (1, -1)], np.float64).astype(dtype)


def _least(dtype: "np.dtype[Any]") -> float:
    """The least normal number: an eps that few scales meet, whatever the default."""
    return float(ml_dtypes.finfo(dtype).smallest_normal)  # type: ignore[no-untyped-call]


def _every_mapping(x: Array, **more: Any) -> Iterator[Arguments]:
    for mapping in MAPPINGS:
        common = {"input": x, "mapping_type": mapping, "block_size": (1, 2), "zero_point_dtype": "int32"}
        yield {**common, "eps": _least(x.dtype), **more}


@calls(CHOOSE, "examples")
def examples() -> Iterator[Arguments]:
    """The range [-3.5, 10.2] on the codes -8 to 7."""
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
        common["eps"] = _least(dtype)
        half = dtype == np.float16
        for target in TARGETS:
            if not (half and target == "int32"):
                yield {**common, "target_dtype": target}
        for target, (qmin, qmax) in GRIDS.items():
            yield {**common, "target_dtype": target, "quant_min": qmin, "quant_max": qmax}


@calls(CHOOSE, "symmetric")
def symmetric() -> Iterator[Arguments]:
    """Every pair of extremes and every grid, mapped symmetrically."""
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


@calls(CHOOSE, "no-clipping")
def no_clipping() -> Iterator[Arguments]:
    """Every pair of extremes and every grid, mapped so that neither end is clipped."""
    yield from _mapping("SYMMETRIC_NO_CLIPPING_ERR")


@calls(CHOOSE, "asymmetric")
def asymmetric() -> Iterator[Arguments]:
    """Every pair of extremes and every grid, mapped from one to the other."""
    yield from _mapping("ASYMMETRIC")


@calls(CHOOSE, "eps")
def least_scale() -> Iterator[Arguments]:
    """Blocks of nothing, of subnormals and around the machine epsilon; with and without ``eps``."""
    for dtype in DTYPES:
        for eps in (None, 1e-5, 1e-7, 0.1):
            for target in ("int8", "uint4"):
                yield from _every_mapping(_tiny(dtype), target_dtype=target, eps=eps)
    for scale_dtype in ("float16", "float32"):  # a scale of float32 that float16 has no number for
        yield from _every_mapping(_tiny(DTYPES[0]), target_dtype="int8", scale_dtype=scale_dtype)
        yield from _every_mapping(_tiny(DTYPES[0]), target_dtype="int8", scale_dtype=scale_dtype, eps=None)


@calls(CHOOSE, "result-dtypes")
def result_dtypes() -> Iterator[Arguments]:
    """The scale and the zero point in every dtype, also in one that wraps."""
    for dtype in (*DTYPES, np.dtype(np.float64)):
        x = extremes(dtype)[:-2]
        for scale_dtype in (None, "float32", "float16", "bfloat16", "float64"):
            yield from _every_mapping(x, target_dtype="uint8", scale_dtype=scale_dtype)
        for zero_point_dtype in ("int8", "uint8", "int16", "int64", "float32", "float16", "bfloat16"):
            more = {"target_dtype": "uint8", "zero_point_dtype": zero_point_dtype}
            yield from _every_mapping(x, **more)
        yield from _every_mapping(x, target_dtype="int16", quant_min=0, quant_max=514, zero_point_dtype="float64")


@calls(CHOOSE, "zero-point-default")
def zero_point_default() -> Iterator[Arguments]:
    """No dtype of the zero point given, or None."""
    x = extremes(DTYPES[0])[:4]
    for mapping in MAPPINGS:
        common = {"input": x, "mapping_type": mapping, "block_size": (1, 2), "target_dtype": "uint8"}
        yield {**common, "zero_point_dtype": None}
        yield common


@calls(CHOOSE, "without-zero")
def without_zero() -> Iterator[Arguments]:
    """Zero without a code of its own: extremes on one side of 0 are not drawn out to it."""
    for dtype in DTYPES:
        x = extremes(dtype)[:-1]
        for target in ("int8", "uint8", "uint4", "int4"):
            more = {"target_dtype": target, "preserve_zero": False, "eps": _least(dtype)}
            yield {"input": x, "mapping_type": "ASYMMETRIC", "block_size": (1, 2), "zero_point_dtype": "int32", **more}


@calls(CHOOSE, "float-domain")
def float_domain() -> Iterator[Arguments]:
    """The zero point as the real of the middle code, with zero kept and not."""
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
                        "eps": _least(dtype),
                    }


@calls(CHOOSE, "none-domain")
def none_domain() -> Iterator[Arguments]:
    """No zero point."""
    for dtype in DTYPES:
        yield from _every_mapping(extremes(dtype), target_dtype="int8", zero_point_domain="NONE")


@calls(CHOOSE, "specials")
def specials() -> Iterator[Arguments]:
    """NaN and infinities in a block, and a range beyond the dtype."""
    inf, nan = np.inf, np.nan
    for dtype in DTYPES:
        top = float(ml_dtypes.finfo(dtype).max)  # type: ignore[no-untyped-call]
        rows = [(inf, 1), (-top, top), (nan, 1), (1, nan), (-inf, 1), (-inf, inf), (nan, inf)]
        for row in rows:
            for target in ("int8", "uint8"):
                yield from _every_mapping(np.array([row], np.float64).astype(dtype), target_dtype=target)


@calls(CHOOSE, "blocks")
def blocks() -> Iterator[Arguments]:
    """Every way to cut tensors of rank 0 to 4 into blocks, with and without the reduced dimensions."""
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


@calls(CHOOSE, "blocks-of-one")
def blocks_of_one() -> Iterator[Arguments]:
    """Blocks of one element each."""
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


@calls(CHOOSE, "refusals")
def refusals() -> Iterator[Arguments]:
    """Grids beyond the dtype, dtypes without codes, blocks that do not fit, ends that float16 does not hold."""
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


@calls(CHOOSE, "refused-symmetric")
def refused_symmetric() -> Iterator[Arguments]:
    """A symmetric mapping without a zero that is kept, or with a zero point in reals."""
    x = np.array([-1, 1], np.float32)
    for mapping in MAPPINGS[:2]:
        for more in ({"preserve_zero": False}, {"preserve_zero": False, "zero_point_domain": "FLOAT"}):
            yield {"input": x, "mapping_type": mapping, "block_size": (2,), "target_dtype": "int8", **more}


@calls(CHOOSE, "asymmetric-float8")
def asymmetric_float8() -> Iterator[Arguments]:
    """Mappings to a float8 that are not symmetric."""
    for mapping in MAPPINGS[1:]:
        yield {
            "input": extremes(DTYPES[0]),
            "mapping_type": mapping,
            "block_size": (1, 2),
            "target_dtype": "float8_e4m3fn",
            "zero_point_dtype": "float32",
        }


@calls(CHOOSE, "rounded-ends")
def rounded_ends() -> Iterator[Arguments]:
    """Ends of the grid that bfloat16 and float16 do not hold."""
    for dtype, qmin in ((DTYPES[2], -301), (DTYPES[2], -513), (DTYPES[1], -2049)):
        common = {"input": extremes(dtype)[:-2], "block_size": (1, 2), "target_dtype": "int16"}
        yield {**common, "mapping_type": "ASYMMETRIC", "quant_min": qmin, "quant_max": 500, "zero_point_dtype": "int32"}


@calls(CHOOSE, "blocks-below-one")
def blocks_below_one() -> Iterator[Arguments]:
    """Blocks of 0 and -1, where the dimensions that ``keepdim`` keeps divide by them."""
    for shape, block in (
        ((1, 4), (-1, 4)),
        ((1, 4), (-1, 2)),
        ((4, 1), (1, -1)),
        ((4, 1), (4, -1)),
        ((2, 4), (-1, 4)),
        ((1, 1), (-1, -1)),
        ((2, 4), (0, 4)),
        ((1, 4), (0, 4)),
    ):
        x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape) - 1
        given = {"input": x, "mapping_type": "ASYMMETRIC", "block_size": block, "target_dtype": "int8"}
        yield {**given, "zero_point_dtype": "int32", "keepdim": True}


@calls(CHOOSE, "inverted-grid")
def inverted_grid() -> Iterator[Arguments]:
    """A grid of one code, and ends in the other order."""
    for qmin, qmax in ((5, 5), (10, -10)):
        yield from _every_mapping(extremes(DTYPES[0]), target_dtype="int8", quant_min=qmin, quant_max=qmax)


@calls(MIN_MAX, "extremes")
def given_extremes() -> Iterator[Arguments]:
    """Extremes in every order and shape, also those that no block has."""
    for dtype in (*DTYPES, np.dtype(np.float64)):
        low, high = extremes(dtype)[:-2].T
        for shape in ((-1,), (len(low), 1), (1, len(low), 1)):
            for mapping in MAPPINGS:
                for target in ("int8", "uint4"):
                    yield {
                        "min_val": low.reshape(shape),
                        "max_val": high.reshape(shape),
                        "mapping_type": mapping,
                        "block_size": (1, 2),
                        "target_dtype": target,
                        "eps": _least(dtype),
                        "zero_point_dtype": "int32",
                    }
    one, two = np.asarray(1, np.float32), np.asarray(-2, np.float32)
    for mapping in MAPPINGS:
        yield {
            "min_val": one,
            "max_val": two,
            "mapping_type": mapping,
            "block_size": (),
            "target_dtype": "int8",
            "eps": 0.1,
            "zero_point_dtype": "int8",
        }


@calls(MIN_MAX, "zero-point-quotient")
def zero_point_quotient() -> Iterator[Arguments]:
    """Least elements that lie midway between two codes in float16, where a product with the reciprocal does not."""
    lows = [-7.453125, -2.3125, -3.296875, -3.625, -3.078125]
    highs = [0.015625, 0.109375, 0.15625, 0.25, 0.296875]
    for target in ("int8", "uint8"):
        yield {
            "min_val": np.array(lows, np.float16),
            "max_val": np.array(highs, np.float16),
            "mapping_type": "ASYMMETRIC",
            "block_size": (1, 2),
            "target_dtype": target,
            "eps": _least(DTYPES[1]),
            "zero_point_dtype": "int32",
        }


@calls(MIN_MAX, "nan")
def given_nan() -> Iterator[Arguments]:
    """A greatest or a least element of NaN beside a finite one, the zero point a float."""
    for dtype in DTYPES:
        for low, high in ((-1, np.nan), (np.nan, 1), (1, np.nan)):
            for mapping in MAPPINGS:
                yield {
                    "min_val": np.array([low, -1], dtype),
                    "max_val": np.array([high, 1], dtype),
                    "mapping_type": mapping,
                    "block_size": (1, 2),
                    "target_dtype": "int8",
                    "eps": _least(dtype),
                    "zero_point_dtype": "float32",
                }


@calls(MIN_MAX, "integer-nan")
def given_integer_nan() -> Iterator[Arguments]:
    """An extreme of NaN, the zero point an integer."""
    x = np.array([-1, np.nan], np.float32)
    given = {"min_val": x, "max_val": np.abs(x), "mapping_type": "ASYMMETRIC", "block_size": (1, 2)}
    yield {**given, "target_dtype": "int8", "zero_point_dtype": "int32"}


@calls(MIN_MAX, "refused-symmetric")
def min_max_refused_symmetric() -> Iterator[Arguments]:
    """A symmetric mapping of extremes without a zero that is kept, or with a zero point in reals."""
    x = np.array([-1, 1], np.float32)
    given = {"min_val": x, "max_val": x, "mapping_type": "SYMMETRIC", "block_size": (1,), "target_dtype": "int8"}
    yield from ({**given, "preserve_zero": False}, {**given, "zero_point_domain": "FLOAT"})


@calls(MIN_MAX, "defaults")
def defaults() -> Iterator[Arguments]:
    """Extremes too close for the least scale, and no dtype for the zero point."""
    for dtype in DTYPES:
        low, high = _tiny(dtype).T
        for mapping in MAPPINGS:
            yield {
                "min_val": np.minimum(low, high),
                "max_val": np.maximum(low, high),
                "mapping_type": mapping,
                "block_size": (1, 2),
                "target_dtype": "int8",
            }


@calls(MIN_MAX, "refusals")
def min_max_refusals() -> Iterator[Arguments]:
    """Extremes of two dtypes, of integers, and what is refused of the grid."""
    x = np.array([-1, 1], np.float32)
    good = {"min_val": x, "max_val": x, "mapping_type": "ASYMMETRIC", "block_size": (), "target_dtype": "int8"}
    yield from (
        {**good, "max_val": x.astype(np.float16)},
        {**good, "min_val": x.astype(np.int32), "max_val": x.astype(np.int32)},
        {**good, "quant_min": -129},
        {**good, "target_dtype": "int64"},
        {**good, "min_val": x.astype(np.float16), "max_val": x.astype(np.float16), "target_dtype": "int32"},
    )
