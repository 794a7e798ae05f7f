"""AIMET: the affine functions, and what its documents say around them, one file per part."""

from halfeven.reference.profiles.aimet import (
    analyzer_percentile,
    analyzer_sqnr,
    analyzers,
    encodings,
    export,
    float_gradient,
    gradients,
    histogram,
    lpbq,
    propagation,
    quantized_tensor,
    quantizers,
)
from halfeven.reference.profiles.aimet import float as float_quantization
from halfeven.reference.profiles.aimet.affine import AIMET, dequantize, quantize, quantize_dequantize

__all__ = [
    "AIMET",
    "analyzer_percentile",
    "analyzer_sqnr",
    "analyzers",
    "dequantize",
    "encodings",
    "export",
    "float_gradient",
    "float_quantization",
    "gradients",
    "histogram",
    "lpbq",
    "propagation",
    "quantize",
    "quantize_dequantize",
    "quantized_tensor",
    "quantizers",
]
