"""What the positional arguments of a call are called where a file has to name them."""

from halfeven.conformance.engine.call import Call
from halfeven.reference.systems import PROFILES

__all__ = ["names_of"]


def names_of(call: Call) -> tuple[str, ...]:
    """Their names, in order: of an operation ``x`` (``q`` for dequantize) and its profile's parameters.

    >>> names_of(Call("onnx:dequantize", (1, 2, 3)))
    ('q', 'scale', 'zero_point')
    """
    profile, _, operation = call.formula.partition(":")
    named: tuple[str, ...] = ()
    if operation and profile in PROFILES:
        named = ("q" if operation == "dequantize" else "x", *PROFILES[profile].parameters)
    return (*named, *(f"argument{i}" for i in range(len(named), len(call.positional))))[: len(call.positional)]
