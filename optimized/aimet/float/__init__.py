"""Float quantization: a narrow float format, times a scale."""

from halfeven.optimized.aimet.float.encoding import FloatEncoding
from halfeven.optimized.aimet.float.formats import float_cast
from halfeven.optimized.aimet.float.quantizer import FloatQuantizeDequantize, QuantizeDequantize

__all__ = ["FloatEncoding", "FloatQuantizeDequantize", "QuantizeDequantize", "float_cast"]
