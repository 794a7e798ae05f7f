"""torchao: quantize and dequantize with a zero point in reals or none."""
