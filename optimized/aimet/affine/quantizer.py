"""All affine quantizers, in one place."""

from halfeven.optimized.aimet.affine.lpbq import GroupedBlockQuantizeDequantize
from halfeven.optimized.aimet.affine.parameters import MinMaxQuantizer, ScaleOffsetQuantizer
from halfeven.optimized.aimet.affine.quantizer_base import AffineQuantizerBase
from halfeven.optimized.aimet.affine.quantizers import Dequantize, Quantize, QuantizeDequantize

__all__ = [
    "AffineQuantizerBase",
    "Dequantize",
    "GroupedBlockQuantizeDequantize",
    "MinMaxQuantizer",
    "Quantize",
    "QuantizeDequantize",
    "ScaleOffsetQuantizer",
]
