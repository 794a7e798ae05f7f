"""pytorch-quantization: tensor_quant and what its documents say around it, one file per part."""

from halfeven.reference.profiles.pytorch_quantization import (
    affine,
    calibrators,
    descriptor,
    e4m3,
    gradients,
    histogram,
)
from halfeven.reference.profiles.pytorch_quantization.tensor_quant import (
    PYTORCH_QUANTIZATION,
    SMALLEST_AMAX,
    fake_tensor_quant,
    tensor_quant,
)

__all__ = [
    "PYTORCH_QUANTIZATION",
    "SMALLEST_AMAX",
    "affine",
    "calibrators",
    "descriptor",
    "e4m3",
    "fake_tensor_quant",
    "gradients",
    "histogram",
    "tensor_quant",
]
