"""gguf."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "gguf": Entry("gguf", "gguf", "blocks of codes with a scale", extra="gguf", imports="gguf.quants"),
}
