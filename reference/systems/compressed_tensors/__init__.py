"""compressed-tensors: quantize and dequantize, and how scales and zero points are made."""
