"""AIMET: aimet-torch."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "aimet.functional": Entry(
        "aimet",
        "aimet-torch",
        "quantization.affine with a scale that requires grad; quantizers, analyzers, exports",
        extra="aimet",
        adapter="aimet.adapter",
    ),
    "aimet.frozen": Entry(
        "aimet",
        "aimet-torch",
        "quantization.affine without grad",
        extra="aimet",
        adapter="aimet.adapter",
        answers="none",
    ),
}
