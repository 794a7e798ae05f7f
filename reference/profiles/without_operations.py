"""Systems whose documents have formulas, but none of the three operations: they are tried by calls alone."""

from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Profile

__all__ = ["WITHOUT_OPERATIONS"]

_TITLES = {
    "number-formats": ("encode and decode of float formats up to 16 bits, one rounding", "OCP FP8 and MX, IEEE 754"),
    "torch.observers": ("scale and zero point from what observers saw", "torch.ao.quantization.observer"),
    "torch.learnable": ("fake quantization with learnable parameters, and its gradients", "torch.ao.quantization"),
}

WITHOUT_OPERATIONS = tuple(
    Profile(name=name, title=title, source=source, model=EvaluationModel(), numpy={})
    for name, (title, source) in _TITLES.items()
)
