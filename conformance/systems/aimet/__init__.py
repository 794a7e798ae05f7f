"""AIMET: aimet-torch."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    name: Entry("aimet", "aimet-torch", does, extra="aimet", imports="aimet_torch.quantization", torchvision=True)
    for name, does in {
        "aimet.functional": "quantization.affine with a scale that requires grad; quantizers, analyzers, exports",
        "aimet.frozen": "quantization.affine without grad",
    }.items()
}
