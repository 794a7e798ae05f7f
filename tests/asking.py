"""A function on its own, asked as a backend's: one call in this process."""

from collections.abc import Callable, Mapping
from typing import Any

from halfeven.conformance.backends.protocol import ArrayKind, Backend
from halfeven.conformance.engine.call import PLAIN, Answer, Call, CallShape, sent
from halfeven.conformance.workers.inside import Inside

__all__ = ["ask", "named"]

_ANY = "onnx/QuantizeLinear"  # the worker does not look at what a formula says


def ask(
    function: Callable[..., Any],
    arguments: Mapping[str, Any],
    array: ArrayKind = "torch",
    shape: CallShape = PLAIN,
) -> Answer:
    """What comes of calling ``function`` by keyword."""
    return Inside(Backend("asked", "onnx", functions={_ANY: function}, array=array)).answer(named(arguments, shape))


def named(arguments: Mapping[str, Any], shape: CallShape = PLAIN) -> Call:
    """The call that ``ask`` makes."""
    return Call(_ANY, (), {name: sent(value) for name, value in arguments.items()}, shape)
