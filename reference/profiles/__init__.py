"""One file per documented system: the transcriptions of its formulas, and its profile.

A name with an ``@`` is a library's measured behaviour, where it parts from its document; its model is evaluated.
"""

from dataclasses import replace

from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.profiles import compressed_tensors_forward as _forward  # noqa: F401 - its formulas register
from halfeven.reference.profiles import number_formats as _number_formats  # noqa: F401 - its formulas register
from halfeven.reference.profiles import torch_choose_qparams as _torch_choose_qparams  # noqa: F401
from halfeven.reference.profiles import torch_learnable as _torch_learnable  # noqa: F401
from halfeven.reference.profiles import torch_observers as _torch_observers  # noqa: F401
from halfeven.reference.profiles.aimet import AIMET
from halfeven.reference.profiles.brevitas import BREVITAS
from halfeven.reference.profiles.compressed_tensors import COMPRESSED_TENSORS
from halfeven.reference.profiles.onnx import ONNX, ONNX_REFERENCE_1_23, ONNXRUNTIME_1_31
from halfeven.reference.profiles.profile import OPERATIONS, Operation, Profile
from halfeven.reference.profiles.pytorch_quantization import PYTORCH_QUANTIZATION
from halfeven.reference.profiles.quantized_decomposed import (
    QUANTIZED_DECOMPOSED,
    QUANTIZED_DECOMPOSED_2_13,
    QUANTIZED_DECOMPOSED_PER_TOKEN_2_13,
)
from halfeven.reference.profiles.torch_fake_quantize import TORCH_FAKE_QUANTIZE, TORCH_FAKE_QUANTIZE_2_13
from halfeven.reference.profiles.torch_quantize import (
    TORCH_QUANTIZE,
    TORCH_QUANTIZE_2_13,
    TORCH_QUANTIZE_PER_CHANNEL_2_13,
)
from halfeven.reference.profiles.torchao import TORCHAO, TORCHAO_0_18
from halfeven.reference.profiles.without_operations import WITHOUT_OPERATIONS

_ALL = (
    AIMET,
    TORCHAO,
    TORCHAO_0_18,
    PYTORCH_QUANTIZATION,
    ONNX,
    ONNXRUNTIME_1_31,
    ONNX_REFERENCE_1_23,
    TORCH_FAKE_QUANTIZE,
    TORCH_FAKE_QUANTIZE_2_13,
    TORCH_QUANTIZE,
    TORCH_QUANTIZE_2_13,
    TORCH_QUANTIZE_PER_CHANNEL_2_13,
    QUANTIZED_DECOMPOSED,
    QUANTIZED_DECOMPOSED_2_13,
    QUANTIZED_DECOMPOSED_PER_TOKEN_2_13,
    COMPRESSED_TENSORS,
    BREVITAS,
    *WITHOUT_OPERATIONS,
)

PROFILES: dict[str, Profile] = {p.name: p for p in _ALL}


def _of_formulas() -> dict[str, Profile]:
    """The versions that only formulas have: a backend may claim them too, its operations as documented."""
    found: dict[str, Profile] = {}
    for formula, _, tag in (f.partition("@") for f in FORMULAS if "@" in f):
        systems = [n for n in PROFILES if formula.replace("_", "-").startswith(f"{n}.".replace("_", "-"))]
        system = max(systems, key=len)
        if (name := f"{system}@{tag}") not in PROFILES:
            title = f"the functions of {system} as {tag} has them; operations as documented"
            found[name] = replace(PROFILES[system], name=name, title=title, source=f"{system} {tag}, measured")
    return found


PROFILES |= _of_formulas()

__all__ = ["OPERATIONS", "PROFILES", "Operation", "Profile"]
