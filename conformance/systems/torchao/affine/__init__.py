"""torchao: quantize and dequantize in the integer domain."""
