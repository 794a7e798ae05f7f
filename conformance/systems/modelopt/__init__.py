"""ModelOpt: the storages of quantized tensors; its fake quantization is pytorch-quantization's."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "modelopt.qtensor": Entry(
        "modelopt",
        "nvidia-modelopt",
        "NVFP4, MXFP4, MXFP8, NF4, INT4, INT8 and FP8 as stored",
        extra="modelopt",
        imports="modelopt.torch.quantization.qtensor",
    ),
}
