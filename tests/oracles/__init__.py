"""A second derivation of every formula, in fractions and integers, scalar by scalar. Slow, and shares no code.

A derivation takes the arguments of its formula and returns what the formula must return, bit for bit.
"""

import importlib
import pkgutil

from oracles.registry import DERIVATIONS, derives

for _module in sorted(m.name for m in pkgutil.iter_modules(__path__) if m.name not in {"registry", "soft"}):
    importlib.import_module(f"{__name__}.{_module}")

__all__ = ["DERIVATIONS", "derives"]
