"""One call of a backend, with everything around it that catches a broken adapter.

The input is copied into the asked layout and looked at again afterwards; memory of the result's size is filled
with poison and freed just before, so that an element the backend never writes shows it; and the result of the
call before is kept and looked at again, so that a buffer handed out twice shows.
"""

import re
import traceback
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import numpy as np
import torch

from halfeven.conformance.arrays import arrange, from_backend, to_torch
from halfeven.conformance.backends.protocol import Backend, Unsupported, names
from halfeven.conformance.configuration import DTYPES, Case, Configuration
from halfeven.conformance.environment import restore
from halfeven.reference.blocks import Array
from halfeven.reference.profile import Operation
from halfeven.reference.systems import PROFILES

__all__ = ["POISONS", "Caller", "Crash", "Fault"]

POISONS = (0xA5, 0x5A)
_TORCH_DTYPES = {name: getattr(torch, name) for name in DTYPES}


class Fault(Exception):  # noqa: N818 - it names what the backend did
    """The backend broke the contract of a call: wrong shape, wrong dtype, mutated input, stale output."""


class Crash(Exception):  # noqa: N818 - it carries the backend's own error
    """The backend raised; the message is the traceback."""


@dataclass(eq=False)
class Caller:
    """Calls one backend. Holds the previous result, to see whether a later call changes it."""

    backend: Backend
    poison: int = POISONS[0]
    _previous: tuple[Array, bytes] | None = field(default=None, repr=False)

    def __call__(self, case: Case) -> Array:
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
        if changed := restore():
            msg = f"changed the process: {changed} after the call"
            raise Fault(msg)
        if self._elsewhere:
            held = [from_backend(a) for a in arguments]
        if [_memory(a).tobytes() for a in held] != before:
            msg = "mutated input: the call changed an argument in place"
            raise Fault(msg)
        self._check(c, value, x.shape)
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
        named = {key: value for key, value in offered.items() if names(function, key)}
        if c.block_size is not None:  # what only a **kwargs can take is given where it says something
            named["block_size"] = c.block_size
        return named if c.operation == "dequantize" else named | {"qmin": c.grid.qmin, "qmax": c.grid.qmax}

    def _answer(self, c: Configuration, arguments: list[Any]) -> Array:
        keywords = self.keywords(c)
        # Written and freed: an allocator mostly hands the same memory to a result that nothing is written into, so
        # that what was there before, such as the right answer to the call before, is not taken for an answer.
        # A result may have elements of any width, and allocators sort by size.
        self.poison = POISONS[1] if self.poison == POISONS[0] else POISONS[0]
        size = max(int(np.prod(c.shape)), 1)
        poison: list[object] = [np.full(size * width, self.poison, np.uint8) for width in (1, 2, 4, 8)]
        poison += [torch.full((size * width,), self.poison, dtype=torch.uint8) for width in (1, 2, 4, 8, 1, 2, 4, 8)]
        del poison
        try:
            value = self.backend.operations[c.operation](*arguments, **keywords)
        except (Unsupported, KeyboardInterrupt):
            raise
        except BaseException:  # noqa: BLE001 - whatever the backend raises is its outcome, SystemExit too
            raise Crash(_anywhere(traceback.format_exc(limit=-6))) from None
        try:
            return from_backend(value)
        except Exception as error:  # noqa: BLE001 - a meta, sparse or nested tensor has no array
            msg = f"wrong result: {error}"
            raise Fault(msg) from None

    def _check(self, c: Configuration, value: Array, shape: tuple[int, ...]) -> None:
        if value.shape != shape:
            msg = f"wrong shape: {value.shape} for an input of {shape}"
            raise Fault(msg)
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


def _anywhere(text: str) -> str:
    """A traceback that reads alike on every machine: of each file the last three parts of its path."""
    return re.sub(r'File "([^"]+)"', lambda m: f'File "{"/".join(PurePath(m[1]).parts[-3:])}"', text)
