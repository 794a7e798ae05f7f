"""One call of a backend, with everything around it that catches a broken adapter.

The input is copied into the asked layout and looked at again afterwards; memory of the result's size is filled
with poison and freed just before, so that an element the backend never writes shows it; and the result of the
call before is kept and looked at again, so that a buffer handed out twice shows.
"""

import inspect
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from halfeven.conformance.arrays import arrange, from_backend, to_torch
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.configuration import DTYPES, Case, Configuration
from halfeven.reference.profiles import PROFILES, Operation

Array = npt.NDArray[Any]

__all__ = ["POISON", "Caller", "Crash", "Fault"]

POISON = 0xA5
_TORCH_DTYPES = {name: getattr(torch, name) for name in DTYPES}


class Fault(Exception):  # noqa: N818 - it names what the backend did
    """The backend broke the contract of a call: wrong shape, wrong dtype, mutated input, stale output."""


class Crash(Exception):  # noqa: N818 - it carries the backend's own error
    """The backend raised; the message is the traceback."""


@dataclass(eq=False)
class Caller:
    """Calls one backend. Holds the previous result, to see whether a later call changes it."""

    backend: Backend
    _previous: tuple[Array, bytes] | None = field(default=None, repr=False)

    def __call__(self, case: Case, *, strict_dtype: bool = True) -> Array:
        """The backend's answer to ``case``, in the shape of its input.

        Raises:
            Unsupported: the backend does not offer the configuration.
            Crash: it raised.
            Fault: it broke the contract.
        """
        c = case.configuration
        x = arrange(case.x, c.layout)
        held = [x, np.array(case.scale), np.array(case.zero)][: 1 + len(PROFILES[self.backend.profile].parameters)]
        before = [_memory(a).tobytes() for a in held]
        arguments = self.arguments(held)
        value = self._answer(c, arguments)
        if self._elsewhere:
            held = [from_backend(a) for a in arguments]
        if [_memory(a).tobytes() for a in held] != before:
            msg = "mutated input: the call changed an argument in place"
            raise Fault(msg)
        self._check(c, value, x.shape, strict=strict_dtype)
        self._keep(value)
        return value

    def raw(self, operation: Operation, arguments: list[Any], keywords: dict[str, Any]) -> Any:
        """The operation on arguments as they are, for calls that are meant to be refused."""
        return self.backend.operations[operation](*arguments, **keywords)

    def arguments(self, arrays: list[Array]) -> list[Any]:
        """Arrays in the backend's own kind, over the same memory."""
        if self.backend.array == "numpy":
            return arrays
        tensors = [to_torch(a) for a in arrays]
        return [t.to(self.backend.device) for t in tensors] if self._elsewhere else tensors

    @property
    def _elsewhere(self) -> bool:
        """Whether the arguments are copied to a device of torch's; a vendor's adapter takes them on the CPU."""
        return self.backend.array == "torch" and self.backend.device.startswith("cuda")

    def keywords(self, c: Configuration) -> dict[str, Any]:
        """The keyword arguments of a call: the grid for what quantizes; the rest where the signature names it."""
        function = self.backend.operations[c.operation]
        offered: dict[str, Any] = {"block_size": c.block_size}
        if c.operation == "dequantize":
            dtype: Any = DTYPES[c.dtype] if self.backend.array == "numpy" else _TORCH_DTYPES[c.dtype]
            offered |= {"qmin": c.grid.qmin, "qmax": c.grid.qmax, "dtype": dtype}
        named = {key: value for key, value in offered.items() if _names(function, key)}
        return named if c.operation == "dequantize" else named | {"qmin": c.grid.qmin, "qmax": c.grid.qmax}

    def _answer(self, c: Configuration, arguments: list[Any]) -> Array:
        keywords = self.keywords(c)
        # Written and freed: an allocator mostly hands the same memory to a result that nothing is written into, so
        # that what was there before, such as the right answer to the call before, is not taken for an answer.
        size = max(int(np.prod(c.shape)), 1) * DTYPES[c.dtype].itemsize
        poison = [np.full(size, POISON, np.uint8), *(torch.full((size,), POISON, dtype=torch.uint8) for _ in range(4))]
        del poison
        try:
            value = self.backend.operations[c.operation](*arguments, **keywords)
        except Unsupported:
            raise
        except Exception:  # noqa: BLE001 - whatever the backend raises is its outcome
            raise Crash(traceback.format_exc(limit=-6)) from None
        try:
            return from_backend(value)
        except TypeError as error:
            msg = f"wrong result: {error}"
            raise Fault(msg) from None

    def _check(self, c: Configuration, value: Array, shape: tuple[int, ...], *, strict: bool) -> None:
        if value.shape != shape:
            msg = f"wrong shape: {value.shape} for an input of {shape}"
            raise Fault(msg)
        if not strict:
            return
        kind = _kind(value)
        if c.operation == "quantize":
            if kind == "other":
                msg = f"wrong dtype: {value.dtype} for codes, which are integers or floats"
                raise Fault(msg)
        elif value.dtype != DTYPES[c.dtype]:
            msg = f"wrong dtype: {value.dtype} for the result of {c.operation} in {c.dtype}"
            raise Fault(msg)

    def _keep(self, value: Array) -> None:
        previous, self._previous = self._previous, (value, value.tobytes())
        if previous is not None and previous[0].tobytes() != previous[1]:
            self._previous = None
            msg = "stale output: this call wrote into the result that an earlier call had returned"
            raise Fault(msg)


def _memory(x: Array) -> Array:
    """The whole buffer behind a view, so that a write between its elements shows too."""
    return x.base if isinstance(x.base, np.ndarray) else x


def _kind(value: Array) -> str:
    if value.dtype.kind in "iu":
        return "integer"
    return "float" if value.dtype.kind == "f" or value.dtype in DTYPES.values() else "other"


@lru_cache(maxsize=256)
def _names(function: Callable[..., Any], key: str) -> bool:
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):  # a builtin tells nothing: give it the bare call
        return False
    return key in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())
