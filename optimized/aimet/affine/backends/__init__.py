"""The public functions, and the choice between backends that AIMET offers: here is one."""

from halfeven.optimized.aimet.affine.backends import torch_builtins, utils
from halfeven.optimized.aimet.affine.backends.utils import get_backend, set_backend
from halfeven.optimized.aimet.affine.functional import dequantize, quantize, quantize_dequantize

__all__ = [
    "dequantize",
    "get_backend",
    "quantize",
    "quantize_dequantize",
    "set_backend",
    "torch_builtins",
    "utils",
]
