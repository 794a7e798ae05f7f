"""ONNX: QuantizeLinear, DequantizeLinear, and their relatives."""
