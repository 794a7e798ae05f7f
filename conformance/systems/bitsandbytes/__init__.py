"""bitsandbytes, on the CPU."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "bitsandbytes": Entry(
        "bitsandbytes",
        "bitsandbytes",
        "blockwise 8-bit, NF4 and FP4",
        extra="bitsandbytes",
        imports="bitsandbytes.functional",
    ),
}
