"""ONNX: ONNX Runtime, and the reference evaluator of onnx itself."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "onnxruntime": Entry(
        "onnx",
        "onnxruntime",
        "QuantizeLinear, DequantizeLinear sessions",
        extra="onnx",
        adapter="onnx.adapter_onnxruntime",
    ),
    "onnxruntime.graphs": Entry(
        "onnx",
        "onnxruntime",
        "graphs of QDQ pairs, optimized as by default",
        extra="onnx",
        adapter="onnx.adapter_graphs",
    ),
    "onnx.reference": Entry("onnx", "onnx", "ReferenceEvaluator", extra="onnx", adapter="onnx.adapter_reference"),
}
