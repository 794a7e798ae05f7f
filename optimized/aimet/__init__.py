"""The documented API of ``aimet_torch.quantization``, with the documented arithmetic.

Code written for that library runs on this one once its import is changed. Names, signatures, defaults and the types of
errors are the library's; where its behaviour differs from its documents, the documents are followed, and a note that
begins with "Upstream:" says what the library does.

Left out:

- ``affine.add_backend`` and ``affine.triton``: there is one arithmetic, which no module of others takes the place of.
  ``set_backend("triton")`` is accepted and changes nothing.
- ``QuantizeFunc``, ``DequantizeFunc``, ``QuantDequantFunc`` of ``affine.backends.torch_builtins``: the gradients belong
  to the operators.
- ``tensor.implements`` and ``tensor.HANDLED_FUNCTIONS``: one table says what each operation makes of an encoding.
- ``encoding_analyzer.reduce``, and whatever else a module of that library imports from outside of it.
- Names that begin with an underscore.
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
