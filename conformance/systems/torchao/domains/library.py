"""torchao: how its releases quantize and dequantize with a zero point in reals, or none."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.systems.torchao.by_release import by_release, primitive

__all__ = ["ANSWERS"]

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
