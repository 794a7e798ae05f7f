"""Code written for one library, run on another that offers the same names: its source, with the module renamed."""

import importlib
import inspect
import sys
from importlib.abc import InspectLoader
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType

__all__ = ["swapped"]


class _Renamed(InspectLoader):
    """Gives a module's source with one module name put for another; what quotes the module reads the same text."""

    def __init__(self, source: str) -> None:
        self.source = source

    def get_source(self, _fullname: str) -> str:
        return self.source


def swapped(name: str, old: str, new: str) -> ModuleType:
    """The module ``name`` with ``new`` wherever its source says ``old``, executed once; itself where it does not."""
    called = f"{name}@{new}"
    if (found := sys.modules.get(called)) is not None:
        return found
    own = importlib.import_module(name)
    source = inspect.getsource(own)
    if old not in source:
        return own
    spec = spec_from_file_location(called, f"{called}.py", loader=_Renamed(source.replace(old, new)))
    if spec is None or spec.loader is None:  # there is one: it was given
        raise ImportError(called)
    module = module_from_spec(spec)
    sys.modules[called] = module
    spec.loader.exec_module(module)
    return module
