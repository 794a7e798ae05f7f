"""Number formats: casts of ml_dtypes; torch's are a backend of torch."""

from halfeven.conformance.backends.entry import Backends, Entry

__all__ = ["BACKENDS"]

BACKENDS: Backends = {
    "ml_dtypes": Entry("number-formats", "ml_dtypes", "casts of NumPy arrays"),
}
