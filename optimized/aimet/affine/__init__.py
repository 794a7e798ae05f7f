"""Integer affine quantization, x̂ = (q + offset)·scale: functions, encodings and quantizers."""

from halfeven.optimized.aimet.affine.backends import get_backend, set_backend, torch_builtins, utils
from halfeven.optimized.aimet.affine.encoding import AffineEncoding, GroupedBlockEncoding, VectorEncoding
from halfeven.optimized.aimet.affine.functional import dequantize, quantize, quantize_dequantize
from halfeven.optimized.aimet.affine.quantizer import (
    AffineQuantizerBase,
    Dequantize,
    GroupedBlockQuantizeDequantize,
    MinMaxQuantizer,
    Quantize,
    QuantizeDequantize,
    ScaleOffsetQuantizer,
)

__all__ = [
    "AffineEncoding",
    "AffineQuantizerBase",
    "Dequantize",
    "GroupedBlockEncoding",
    "GroupedBlockQuantizeDequantize",
    "MinMaxQuantizer",
    "Quantize",
    "QuantizeDequantize",
    "ScaleOffsetQuantizer",
    "VectorEncoding",
    "dequantize",
    "get_backend",
    "quantize",
    "quantize_dequantize",
    "set_backend",
    "torch_builtins",
    "utils",
]
