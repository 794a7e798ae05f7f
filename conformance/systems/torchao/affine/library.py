"""torchao: how it, and torchao.quantization.pt2e, quantize and dequantize in the integer domain."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.systems.torchao.by_release import primitive

__all__ = ["ANSWERS"]

ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": {
        "torchao/quantize_affine": primitive("quantize_affine"),
        "torchao/dequantize_affine": primitive("dequantize_affine"),
    },
    "torchao.pt2e": {
        "torchao/dequantize_affine": primitive(
            "dequantize_affine", module="torchao.quantization.pt2e._affine_quantization"
        )
    },
}
