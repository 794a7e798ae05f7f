"""pytorch-quantization: answered by its successor, nvidia-modelopt."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "modelopt": Entry(
        "pytorch-quantization",
        "nvidia-modelopt",
        "pytorch-quantization's successor",
        extra="modelopt",
        imports="modelopt.torch.quantization",
    ),
}
