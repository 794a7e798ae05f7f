"""Libraries that are tried by their documented functions alone, which ``backends/functions`` holds."""

from functools import partial

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.protocol import Backend

__all__ = ["load"]

_IMPORTS = {"modelopt": "modelopt.torch.quantization"}


def load(name: str) -> partial[Backend]:
    """The backend ``name``, without operations; the library is imported first, so that its absence is said once."""
    if name in _IMPORTS:
        quiet_import(_IMPORTS[name])
    return partial(Backend)
