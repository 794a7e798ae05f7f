"""torchao: what its documents say of choosing a scale and a zero point from a minimum and a maximum."""

import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected, measured
from halfeven.conformance.systems.torchao.qparams.requirements import DTYPES, MAPPINGS, extremes, least_of, tiny

__all__: list[str] = []

MIN_MAX = "torchao/choose_qparams_affine_with_min_max"


@documented(MIN_MAX, "quant_primitives.choose_qparams_affine_with_min_max", aspect="extremes")
def given_extremes() -> Calls:
    """Given extremes lead to the same scale and zero point as the elements that have them; they are neither sorted nor
    reduced."""
    # Extremes in every order and shape, also those that no block has.
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
                        "eps": least_of(dtype),
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


@measured(MIN_MAX, "quant_primitives: MappingType.ASYMMETRIC (the division: measured)")
def zero_point_quotient() -> Calls:
    """For the zero point the least element is divided by the scale."""
    # Least elements that lie midway between two codes in float16, where a product with the reciprocal does not.
    lows = [-7.453125, -2.3125, -3.296875, -3.625, -3.078125]
    highs = [0.015625, 0.109375, 0.15625, 0.25, 0.296875]
    for target in ("int8", "uint8"):
        yield {
            "min_val": np.array(lows, np.float16),
            "max_val": np.array(highs, np.float16),
            "mapping_type": "ASYMMETRIC",
            "block_size": (1, 2),
            "target_dtype": target,
            "eps": least_of(DTYPES[1]),
            "zero_point_dtype": "int32",
        }


@measured(MIN_MAX, "no document says what NaN gives", aspect="nan")
def given_nan() -> Calls:
    """A given extreme of NaN gives a scale of NaN, and an asymmetric zero point of NaN where a float is asked for."""
    # A greatest or a least element of NaN with a finite one, the zero point a float.
    for dtype in DTYPES:
        for low, high in ((-1, np.nan), (np.nan, 1), (1, np.nan)):
            for mapping in MAPPINGS:
                yield {
                    "min_val": np.array([low, -1], dtype),
                    "max_val": np.array([high, 1], dtype),
                    "mapping_type": mapping,
                    "block_size": (1, 2),
                    "target_dtype": "int8",
                    "eps": least_of(dtype),
                    "zero_point_dtype": "float32",
                }


@expected(MIN_MAX, "no document says what NaN gives")
def integer_nan() -> Calls:
    """An integer zero point of NaN is refused."""
    x = np.array([-1, np.nan], np.float32)
    given = {"min_val": x, "max_val": np.abs(x), "mapping_type": "ASYMMETRIC", "block_size": (1, 2)}
    yield {**given, "target_dtype": "int8", "zero_point_dtype": "int32"}
    yield {**given, "target_dtype": "uint8", "zero_point_dtype": "uint8"}


@measured(
    MIN_MAX,
    "from_hp_to_intx, preserve_zero and zero_point_domain (the refusal: measured on 0.11)",
    aspect="symmetric-keeps-zero",
)
def min_max_refused_symmetric() -> Calls:
    """A symmetric mapping of given extremes is refused without a zero that is kept, as one of elements is."""
    x = np.array([-1, 1], np.float32)
    given = {"min_val": x, "max_val": x, "mapping_type": "SYMMETRIC", "block_size": (1,), "target_dtype": "int8"}
    yield from ({**given, "preserve_zero": False}, {**given, "zero_point_domain": "FLOAT"})


@documented(MIN_MAX, "quant_primitives.choose_qparams_affine_with_min_max: arguments as choose_qparams_affine")
def defaults() -> Calls:
    """Of given extremes too the scale is at least the machine epsilon of their dtype, and the zero point is of that
    dtype."""
    for dtype in DTYPES:
        low, high = tiny(dtype).T
        for mapping in MAPPINGS:
            yield {
                "min_val": np.minimum(low, high),
                "max_val": np.maximum(low, high),
                "mapping_type": mapping,
                "block_size": (1, 2),
                "target_dtype": "int8",
            }


@documented(MIN_MAX, "quant_primitives.choose_qparams_affine_with_min_max: arguments as choose_qparams_affine")
def arguments() -> Calls:
    """For given extremes too quant_min and quant_max are the ends of the grid, scale_dtype is the scale's,
    preserve_zero draws the extremes out to zero, and zero_point_domain says what the zero point is."""
    # Extremes without zero between them, and with; each argument by itself, and together.
    for dtype in DTYPES:
        x = {"min_val": np.array([-1.7, 0.3, -9], dtype), "max_val": np.array([0.9, 5.1, -0.7], dtype)}
        for mapping in MAPPINGS:
            given = {**x, "mapping_type": mapping, "block_size": (1, 2), "target_dtype": "int8"}
            yield from ({**given, **more} for more in ({"quant_min": -7}, {"quant_max": 9}))
            yield {**given, "quant_min": -7, "quant_max": 9}
            yield from ({**given, "scale_dtype": name} for name in ("float16", "bfloat16", "float64"))
            yield {**given, "zero_point_domain": "NONE"}
        given = {**x, "mapping_type": "ASYMMETRIC", "block_size": (1, 2), "target_dtype": "uint4"}
        yield {**given, "preserve_zero": False}
        for preserve in (False, True):
            yield {**given, "preserve_zero": preserve, "zero_point_domain": "FLOAT"}
            yield {**given, "preserve_zero": preserve, "zero_point_domain": "FLOAT", "quant_min": 3, "quant_max": 12}


@measured(MIN_MAX, "quant_primitives.choose_qparams_affine_with_min_max (the error types: measured)", aspect="refusals")
def min_max_refusals() -> Calls:
    """Extremes of two dtypes or of integers, and a grid beyond the target dtype, are refused."""
    x = np.array([-1, 1], np.float32)
    good = {"min_val": x, "max_val": x, "mapping_type": "ASYMMETRIC", "block_size": (), "target_dtype": "int8"}
    yield from (
        {**good, "max_val": x.astype(np.float16)},
        {**good, "min_val": x.astype(np.int32), "max_val": x.astype(np.int32)},
        {**good, "quant_min": -129},
        {**good, "target_dtype": "int64"},
        {**good, "min_val": x.astype(np.float16), "max_val": x.astype(np.float16), "target_dtype": "int32"},
    )
