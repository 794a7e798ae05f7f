"""This project's own functions, ``halfeven.optimized``: held to other systems' documents."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "halfeven": Entry("aimet", "halfeven", "halfeven.optimized.affine, float codes", adapter="halfeven.adapter"),
    "halfeven.integer": Entry(
        "onnx", "halfeven", "halfeven.optimized.affine, integer codes", adapter="halfeven.adapter"
    ),
    "halfeven.aimet": Entry(
        "aimet",
        "halfeven",
        "halfeven.optimized.aimet, by the code that calls aimet_torch.quantization",
        path="halfeven.conformance.systems.halfeven.adapter:path",
        answers="aimet.functional",
        swap=("aimet_torch.quantization", "halfeven.optimized.aimet"),
        lacks=(
            "aimet/float_cast/small",  # the equation gives bits that the IEEE format does not have
            "aimet/float_cast/zero",  # its calls have such numbers next to zero
        ),
    ),
}
