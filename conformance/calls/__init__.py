"""The calls by which documented functions are tried, one file per part of a system; importing this registers all."""

import importlib
import pkgutil

from halfeven.conformance.calls.registry import CALLS, Arguments, CallSet, calls

for _module in sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name != "registry"):
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["CALLS", "Arguments", "CallSet", "calls"]
