"""The documented API of ``aimet_torch.quantization``, with the documented arithmetic.

Code written for that library runs on this one once its import is changed. Names, signatures, defaults and the types of
errors are the library's; where its behaviour differs from its documents, the documents are followed, and a note that
begins with "Upstream:" says what the library does.
"""

from halfeven.optimized.aimet import affine, base, encoding_analyzer, float, tensor  # noqa: A004 - upstream's name
from halfeven.optimized.aimet.affine import get_backend, set_backend
from halfeven.optimized.aimet.tensor import DequantizedTensor, EncodingError, QuantizedTensor, QuantizedTensorBase

__all__ = [
    "DequantizedTensor",
    "EncodingError",
    "QuantizedTensor",
    "QuantizedTensorBase",
    "affine",
    "base",
    "encoding_analyzer",
    "float",
    "get_backend",
    "set_backend",
    "tensor",
]
