"""brevitas."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "brevitas": Entry("brevitas", "brevitas", "IntQuant", extra="brevitas", imports="brevitas"),
}
