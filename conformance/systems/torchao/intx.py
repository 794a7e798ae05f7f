"""torchao: AffineQuantizedTensor's integer constructors: domains, mappings, grids, blocks."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented, expected
from halfeven.conformance.systems.torchao.by_release import by_release, with_members

__all__ = ["ANSWERS"]

DYNAMIC, STATIC = "torchao/from_hp_to_intx", "torchao/from_hp_to_intx_static"
X = ((np.arange(32) * 37 % 101 - 40) / 8).reshape(4, 8)
BLOCKS = ((4, 8), (1, 8), (4, 1), (1, 4))


@documented(DYNAMIC, "AffineQuantizedTensor.from_hp_to_intx, dequantize; fields shape and dtype")
def mappings() -> Calls:
    """A tensor is held as the codes that quantize gives under the scale and zero point chosen from it, and dequantizes
    to their reals in its own dtype and shape."""
    # Every mapping, dtype and block in the INT domain.
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        for mapping in ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC"):
            for target in ("int8", "uint8", "uint4", "int16"):
                for block in BLOCKS[:: 1 if target == "uint4" and dtype == np.float32 else 3]:
                    given = {"input_float": X.astype(dtype), "mapping_type": mapping, "block_size": block}
                    yield {**given, "target_dtype": target, "zero_point_dtype": "int32"}


@documented(DYNAMIC, "AffineQuantizedTensor.from_hp_to_intx; field zero_point_domain")
def domains() -> Calls:
    """zero_point_domain and preserve_zero hold for choosing, quantizing and dequantizing alike."""
    # Zero points in reals, with and without a zero that is kept, and none.
    for block in BLOCKS:
        given = {"input_float": X.astype(np.float32), "mapping_type": "ASYMMETRIC", "block_size": block}
        for preserve in (False, True):
            float_domain = {"preserve_zero": preserve, "zero_point_domain": "FLOAT"}
            yield {**given, "target_dtype": "uint4", **float_domain}
            yield {**given, "target_dtype": "int32", "quant_min": 0, "quant_max": 15, **float_domain}
        yield {**given, "target_dtype": "int8", "zero_point_domain": "NONE"}
        yield {**given, "target_dtype": "uint4", "preserve_zero": False, "zero_point_dtype": "int32"}


@documented(DYNAMIC, "AffineQuantizedTensor.from_hp_to_intx; choose_qparams_affine: eps and scale_dtype")
def chosen_scale() -> Calls:
    """eps and scale_dtype hold for the scale that is chosen, and by it for the codes and the reals."""
    # Blocks that are narrower than eps, and scales that the dtype rounds.
    given = {"input_float": X.astype(np.float32) * np.float32(0.3), "mapping_type": "ASYMMETRIC", "block_size": (1, 4)}
    for mapping, target in (("ASYMMETRIC", "int8"), ("SYMMETRIC", "uint4"), ("SYMMETRIC_NO_CLIPPING_ERR", "int8")):
        call = {**given, "mapping_type": mapping, "target_dtype": target, "zero_point_dtype": "int32"}
        yield from ({**call, "scale_dtype": dtype} for dtype in ("float16", "bfloat16"))
        yield {**call, "eps": 0.1}


@documented(DYNAMIC, "AffineQuantizedTensor, fields quant_min, quant_max and zero_point_domain")
def odd_grid() -> Calls:
    """In the floating-point domain the codes count from the middle of the grid, wherever its least code lies."""
    # Zero points in reals on a grid whose least code is not 0, so that its middle is not half its greatest code.
    for grid in ((-1, 14), (-8, 7), (3, 18)):
        for block in BLOCKS:
            given = {"input_float": X.astype(np.float32), "mapping_type": "ASYMMETRIC", "block_size": block}
            more = {"quant_min": grid[0], "quant_max": grid[1], "preserve_zero": False, "zero_point_domain": "FLOAT"}
            yield {**given, "target_dtype": "int8", **more}


@expected(DYNAMIC, "AffineQuantizedTensor, field quant_max: the greatest code")
def wide_grids() -> Calls:
    """A code that the arithmetic rounds past the grid's end becomes that end."""
    # Codes whose greatest the arithmetic rounds past the integer type.
    for dtype, target in ((np.float32, "int32"), (ml_dtypes.bfloat16, "int16"), (np.float16, "int16")):
        for mapping in ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC"):
            given = {"input_float": X.astype(dtype) * dtype(64), "mapping_type": mapping, "block_size": (4, 8)}
            yield {**given, "target_dtype": target, "eps": 2.0**-40 if dtype == np.float32 else 2.0**-14}


@expected(DYNAMIC, "AffineQuantizedTensor, field block_size: the elements that share one parameter")
def blocks_of_one() -> Calls:
    """Blocks of one element each have a scale of their own."""
    # As many parameters as elements.
    yield {
        "input_float": X.astype(np.float32),
        "mapping_type": "ASYMMETRIC",
        "block_size": (1, 1),
        "target_dtype": "int8",
    }


@expected(STATIC, "AffineQuantizedTensor, field quant_max: the greatest code", aspect="wide-grids")
def static_wide_grids() -> Calls:
    """A quotient beyond the integer type becomes the end of the grid on its side."""
    # Quotients of 2^31 and more for int32, and of 2^15 and more for int16.
    ends = np.array([2.0**31, -(2.0**31), 3e9, -3e9, 2.0**31 - 128, 2.0**40, -(2.0**40), 5.0])
    small = np.array([4e4, -4e4, 32767, 32768, -32768, 6e4, 5, -5])
    for x, dtype, target in (
        (ends, np.float32, "int32"),
        (ends, ml_dtypes.bfloat16, "int32"),
        (small, np.float32, "int16"),
        (small, ml_dtypes.bfloat16, "int16"),
        (small, np.float16, "int16"),
    ):
        for domain, point in (("INT", np.zeros(1, np.int32)), ("NONE", None)):
            yield {
                "input_float": x.astype(dtype),
                "scale": np.ones(1, dtype),
                "zero_point": point,
                "block_size": (8,),
                "target_dtype": target,
                "zero_point_domain": domain,
            }


@documented(STATIC, "AffineQuantizedTensor.from_hp_to_intx_static; field zero_point_domain", aspect="domains")
def static_domains() -> Calls:
    """Given parameters are used as they are: the zero point is added to the code in the integer domain, and subtracted
    from the real in the floating-point one."""
    for block, count in zip(BLOCKS, (1, 4, 8, 8), strict=True):
        scale = (2.0 ** (np.arange(count) % 3 - 2)).astype(np.float32)
        points = {
            "INT": np.arange(count, dtype=np.int32) - 1,
            "FLOAT": np.arange(count, dtype=np.float32) / 4,
            "NONE": None,
        }
        for domain, point in points.items():
            for target, grid in (
                ("int8", (None, None)),
                ("int8", (-8, 7)),
                ("uint8", (None, None)),
                ("int32", (0, 15)),
            ):
                yield {
                    "input_float": X.astype(np.float32),
                    "scale": scale,
                    "zero_point": point,
                    "block_size": block,
                    "target_dtype": target,
                    "quant_min": grid[0],
                    "quant_max": grid[1],
                    "zero_point_domain": domain,
                }


@documented(STATIC, "AffineQuantizedTensor, fields quant_min and quant_max: derived from the dtype of int_data")
def grid_of_the_target() -> Calls:
    """Without quant_min and quant_max the codes are dequantized on the grid on which they were quantized."""
    # No grid given, for codes below 8 bits, whose middle is not that of the bytes that hold them.
    for target in ("uint4", "uint2", "uint7"):
        yield {
            "input_float": X.astype(np.float32),
            "scale": np.ones(1, np.float32),
            "zero_point": np.ones(1, np.float32),
            "block_size": (4, 8),
            "target_dtype": target,
            "zero_point_domain": "FLOAT",
        }


@documented(STATIC, "AffineQuantizedTensor, field dtype", aspect="reals")
def half_precision() -> Calls:
    """The reals have the dtype of the original tensor."""
    # Tensors of 16-bit floats.
    for dtype in (np.float16, ml_dtypes.bfloat16):
        for scale_dtype in (dtype, np.float32):
            yield {
                "input_float": X.astype(dtype),
                "scale": np.array([0.25, 0.5, 1, 2], scale_dtype),
                "zero_point": np.arange(4, dtype=np.int32),
                "block_size": (1, 8),
                "target_dtype": "int8",
            }


@documented(
    STATIC, "AffineQuantizedTensor, field zero_point_domain: either integer or float (the error types: measured)"
)
def refusals() -> Calls:
    """A domain that is neither integer, floating point nor none, a missing zero point and a grid beyond the dtype are
    refused."""
    one = np.ones(1, np.float32)
    good = {"input_float": X.astype(np.float32), "scale": one, "block_size": (4, 8), "target_dtype": "int8"}
    yield from (
        {**good, "zero_point": None, "zero_point_domain": None},
        {**good, "zero_point": None},
        {**good, "zero_point": one, "quant_max": 128},
    )


def _constructor(name: str) -> Callable[..., Any]:
    def answer(**given: Any) -> dict[str, Any]:
        from torchao.dtypes import AffineQuantizedTensor

        held = getattr(AffineQuantizedTensor, name)(**with_members(given))
        int_data, scale, zero_point = held.tensor_impl.get_plain()
        return {"int_data": int_data, "scale": scale, "zero_point": zero_point, "dequantized": held.dequantize()}

    return answer


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {}, v0_17={DYNAMIC: _constructor("from_hp_to_intx"), STATIC: _constructor("from_hp_to_intx_static")}
    ),
}
