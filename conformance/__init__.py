"""The conformance engine: drives any implementation against the reference, and says where they part."""

from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.suite import Verdict, check, conformance_suite

__all__ = ["Backend", "Unsupported", "Verdict", "check", "conformance_suite"]
