"""Libraries that are tried by their documented functions alone, which ``backends/functions`` holds."""

from functools import partial

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.protocol import Backend

__all__ = ["load"]

_IMPORTS = {"modelopt": "modelopt.torch.quantization", "torchao.pt2e": "torchao.quantization.pt2e"}


def load(name: str) -> partial[Backend]:
    """The backend ``name``, without operations; a library that is an extra is imported first, and fails once."""
    if name in _IMPORTS:
        quiet_import(_IMPORTS[name])
    return partial(Backend)
