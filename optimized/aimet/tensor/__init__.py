"""Tensors that know the encoding of their values."""

import torch

from halfeven.optimized.aimet.affine.encoding import AffineEncoding, GroupedBlockEncoding, VectorEncoding
from halfeven.optimized.aimet.base.encoding import EncodingBase as EncodingBase  # upstream has it here, too
from halfeven.optimized.aimet.tensor import rules  # noqa: F401 - which tells the types what operations do
from halfeven.optimized.aimet.tensor.types import (
    DequantizedTensor,
    EncodingError,
    QuantizedTensor,
    QuantizedTensorBase,
    rebuild,
)

__all__ = ["DequantizedTensor", "EncodingError", "QuantizedTensor", "QuantizedTensorBase"]

# What torch.load takes with weights_only: a rebuilt tensor is made of a plain one and numbers.
torch.serialization.add_safe_globals(
    [rebuild, QuantizedTensor, DequantizedTensor, AffineEncoding, GroupedBlockEncoding, VectorEncoding]
)
