"""AIMET's quantize, dequantize and quantize_dequantize: requirements, calls, answers."""
