"""A sweep, carried out where the backend is: a call that stands for many, made one after the other.

The inputs are generated in one buffer, and the answers are kept as runs of equal values, so that all floats pass at the
speed of the backend. What it wrote into the buffer stays there and is seen at the end; memory of the result's size is
poisoned before each call, as for any.
"""

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from halfeven.conformance.arrays import to_torch
from halfeven.conformance.engine.call import Call
from halfeven.conformance.engine.exhaustive.patterns import Encoder, Patterns
from halfeven.conformance.engine.memory import POISONS, Array
from halfeven.conformance.workers.devices import Device

__all__ = ["is_sweep", "swept"]

_PLAIN = frozenset({torch.int8, torch.uint8, torch.int32, torch.float16, torch.float32})
_MUTATED = "mutated input: a call of a sweep changed its input in place"


def is_sweep(call: Call) -> bool:
    """Whether the call stands for many."""
    return call.shape.each or any(isinstance(a, Patterns) for a in call.positional)


def swept(
    call: Call,
    function: Callable[..., Any],
    named: Mapping[str, Any],
    kind: str,
    device: Device | None,
    received: Callable[[Any], Any],
    faults: dict[str, None],
) -> tuple[dict[str, Array] | None, float]:
    """The answers to all the calls, row by row, as runs; and the seconds that the function itself took.

    With the runs come, as ``spent``, the seconds of processor time that the function took, and all else here, and the
    id of this process.

    Args:
        call: the first argument is ``Patterns``, or an array with a row for each index of the parameters.
        function: the backend's.
        named: its keyword arguments, as it takes them.
        kind: of the arrays it takes: torch or numpy.
        device: where they are, if not here.
        received: makes an array of NumPy's of what it returned.
        faults: what a call did that none may do is noted here; then there are no answers.
    """
    inputs, *parameters = call.positional
    arrays = [p.view() for p in parameters]
    rows = len(arrays[0]) if call.shape.each else 1
    lent = [_by_row(_lent(np.ascontiguousarray(a), kind, device), rows, each=call.shape.each) for a in arrays]
    held = None if isinstance(inputs, Patterns) else np.array(inputs.view())
    encoder, own, busy, start = Encoder(), 0.0, 0.0, time.process_time()
    poison = np.dtype(np.uint8), 0
    for row in range(rows):
        given = [p[row] for p in lent]
        for x in _vectors(inputs, faults) if held is None else (held[row],):
            _poisoned(kind, device, *poison)
            argument = _lent(x, kind, device)
            begun, before = time.perf_counter(), time.process_time()
            came = function(argument, *given, **named)
            if device:
                device.synchronize()
            own, busy = own + time.perf_counter() - begun, busy + time.process_time() - before
            answer = _plain(came) if type(came) is torch.Tensor else None
            answer = received(came) if answer is None else answer
            if not isinstance(answer, np.ndarray) or answer.shape != x.shape:
                said = f"shape: {answer.shape}" if isinstance(answer, np.ndarray) else f"result: {type(came).__name__}"
                faults[f"wrong {said} for an input of {x.shape}"] = None
                return None, own
            poison = answer.dtype, answer.size
            encoder.add(answer)
            del came, answer  # poison and the next result find their memory free, and near
    if held is not None and not np.array_equal(_bytes(held), _bytes(inputs.view())):
        faults[_MUTATED] = None
    spent = {"spent": np.array([busy, max(time.process_time() - start - busy, 0.0), os.getpid()])}
    return (None if _MUTATED in faults else encoder.result() | spent), own


def _by_row(parameter: Any, rows: int, *, each: bool) -> Sequence[Any]:
    """The parameter of each row."""
    if not each:
        return [parameter] * rows
    return parameter.unbind() if isinstance(parameter, torch.Tensor) else [parameter[row, ...] for row in range(rows)]


def _vectors(inputs: Patterns, faults: dict[str, None]) -> Iterator[Array]:
    """The first argument of each call, in turn, in memory that is used again; what a call wrote into it is noted."""
    bits = inputs.integers()
    step = bits.dtype.type(inputs.piece % (1 << 8 * bits.itemsize))
    for at in range(0, inputs.count, inputs.piece):
        if at:  # a value that a call changed is wrong from here on, and at the end
            np.add(bits, step, out=bits)
        yield inputs.floats(bits)
    if not np.array_equal(bits, inputs.integers(inputs.count - inputs.piece)):
        faults[_MUTATED] = None


def _plain(came: torch.Tensor) -> Array | None:
    """The array of an ordinary tensor: there are so many that whatever is special about others counts."""
    if came.dtype not in _PLAIN or came.device.type != "cpu" or came.requires_grad:
        return None
    try:
        found: Array = came.numpy()
    except RuntimeError:  # such as a view that is negated when it is read
        return None
    return found


def _lent(a: Array, kind: str, device: Device | None) -> Any:
    if kind != "torch":
        return a
    return to_torch(a).to(device.torch) if device else to_torch(a)


def _poisoned(kind: str, device: Device | None, dtype: "np.dtype[Any]", size: int) -> None:
    """Write and free memory of the last result's size: what the next call does not write, it will not have by luck."""
    if not size:
        return
    if device:
        device.poison(POISONS[0], [size * dtype.itemsize])
    elif kind == "torch":
        torch.full((size * dtype.itemsize,), POISONS[0], dtype=torch.uint8)
    else:
        np.full(size * dtype.itemsize, POISONS[0], np.uint8)


def _bytes(a: Array) -> Array:
    return np.ascontiguousarray(a).view(np.uint8)
