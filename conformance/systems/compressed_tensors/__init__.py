"""compressed-tensors."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "compressed-tensors": Entry(
        "compressed-tensors",
        "compressed-tensors",
        "forward and its helpers, integer codes",
        extra="compressed-tensors",
        adapter="compressed_tensors.adapter",
    ),
}
