"""ONNX: QuantizeLinear, DequantizeLinear, and their relatives, one file per part."""

from halfeven.reference.profiles.onnx import dequantize_opsets, dynamic, quantize_measured, quantize_opsets
from halfeven.reference.profiles.onnx.linear import (
    ONNX,
    ONNX_REFERENCE_1_23,
    ONNXRUNTIME_1_31,
    dequantize_linear,
    quantize_linear,
)

__all__ = [
    "ONNX",
    "ONNXRUNTIME_1_31",
    "ONNX_REFERENCE_1_23",
    "dequantize_linear",
    "dequantize_opsets",
    "dynamic",
    "quantize_linear",
    "quantize_measured",
    "quantize_opsets",
]
