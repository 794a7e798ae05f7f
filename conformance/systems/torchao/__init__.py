"""torchao: the primitives, and mx_formats."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "torchao": Entry(
        "torchao",
        "torchao",
        "quant_primitives, mx_formats",
        extra="torchao",
        imports="torchao.quantization.quant_primitives",
    ),
    "torchao.pt2e": Entry(
        "torchao",
        "torchao",
        "quantization.pt2e, a copy of 0.11",
        extra="torchao",
        imports="torchao.quantization.pt2e",
    ),
}
