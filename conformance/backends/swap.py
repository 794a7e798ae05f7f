"""Code written for one library, run on another that offers the same names: its source, with the module renamed."""

import sys
from collections.abc import Callable
from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_file_location
from typing import Any
from zlib import crc32

from halfeven.conformance.quote import quote

__all__ = ["swapped"]


class _Renamed(InspectLoader):
    """Gives a source with one module name put for another; what quotes the module reads the same text."""

    def __init__(self, source: str) -> None:
        self.source = source

    def get_source(self, _fullname: str) -> str:
        return self.source


def swapped(function: Callable[..., Any], old: str, new: str) -> Callable[..., Any]:
    """``function`` with ``new`` wherever it or what it needs of its module says ``old``; itself where nothing does.

    Raises:
        ImportError: the function has no source.
    """
    quoted = quote(function, alone=False)
    if quoted is None:
        msg = f"function={function!r} is not accepted: it has no source"
        raise ImportError(msg)
    source, name = quoted
    if old not in source:
        return function
    own = f"{crc32(source.encode()):08x}"  # lambdas and partials of one module are all quoted by one name
    called = f"{getattr(function, '__module__', '')}.{name}@{new}-{own}"
    if called not in sys.modules:
        spec = spec_from_file_location(called, f"{called}.py", loader=_Renamed(source.replace(old, new)))
        if spec is None or spec.loader is None:  # there is one: it was given
            raise ImportError(called)
        module = module_from_spec(spec)
        sys.modules[called] = module
        spec.loader.exec_module(module)
    made: Callable[..., Any] = getattr(sys.modules[called], name)
    return made
