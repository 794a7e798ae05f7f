"""pytorch-quantization: the library itself, and its successor, nvidia-modelopt."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "pytorch-quantization": Entry(
        "pytorch-quantization",
        "pytorch-quantization",
        "tensor_quant, calibrators, QuantDescriptor; on a CPU",
        extra="pytorch-quantization",
        imports="pytorch_quantization.nn",
    ),
    "modelopt": Entry(
        "pytorch-quantization",
        "nvidia-modelopt",
        "pytorch-quantization's successor",
        extra="modelopt",
        imports="modelopt.torch.quantization",
    ),
}
