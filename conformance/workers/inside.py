"""The worker in this process: it makes each call with everything around it that catches a broken adapter.

Arguments are copies in memory of their own, with guards on both sides, and are looked at again afterwards, those of the
calls before too. Memory of the result's size is filled with poison and freed just before, so that an element that is
never written shows; results are kept and looked at again, so that a buffer handed out twice shows; and what a call
changes of the process is put back and told.
"""

import os
import re
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import PurePath
from typing import Any

import ml_dtypes
import numpy as np
import torch

from halfeven.conformance.arrays import from_backend, to_torch
from halfeven.conformance.backends.offer import Offer, offer
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.batch import DTYPES
from halfeven.conformance.engine.call import CHANGED, Answer, Call, Dtype, Mode, leaves
from halfeven.conformance.engine.memory import POISONS, Array, Strided
from halfeven.conformance.environment import flushed, flushes_to_zero
from halfeven.conformance.quote import Spelt, spelt
from halfeven.conformance.view import operation, script
from halfeven.conformance.workers.devices import Device, NoDevice, device_of
from halfeven.conformance.workers.state import changes, state
from halfeven.conformance.workers.sweep import is_sweep, swept

__all__ = ["CAP", "Inside", "text_of"]

CAP = 1 << 14  # characters of a message
_CARRIED = frozenset(DTYPES.values())
_KEPT_LARGE, _LARGE = 2, 1 << 24  # bytes: of larger results none is kept
_KEPT = 8  # earlier results and arguments that are looked at again
_SMALL = 1 << 16  # bytes: more is not kept, and poisoned at fewer sizes
_ALIGNED = 64
_GUARD = 64
_DEEP = 2000  # calls deep: torch's compiler raises a lower limit to this, which is no deed of a function
_DEEPEST = 32  # containers in one another, in a result
_NUMPY = '; it is given torch tensors: for NumPy arrays say array="numpy", or @numpy after its name'


class Inside:
    """Calls a backend in this process; a child process does so too, on its side."""

    def __init__(self, backend: Backend, *, alone: bool = False) -> None:
        """The functions are those of ``backend``; they are called by the ids of their formulas and operations.

        ``alone`` where the process is the backend's own: then an interrupt is raised by it, not by the user.
        """
        self.backend = backend
        self._interrupts = () if alone else KeyboardInterrupt
        operations = {f"{backend.profile}:{o}": f for o, f in backend.operations.items()}
        self._functions: Mapping[str, Callable[..., Any]] = {**backend.functions, **operations}
        self._device = device_of(backend.array, backend.device)
        self._results: deque[tuple[Any, bytes]] = deque(maxlen=_KEPT)
        self._arguments: deque[tuple[Any, bytes]] = deque(maxlen=_KEPT)
        self._large: deque[tuple[Any, bytes]] = deque(maxlen=_KEPT_LARGE)
        self._poison = POISONS[0]
        self.flushes = flushed()
        if flushes_to_zero():
            torch.set_flush_denormal(False)

    sweeps = True

    @cached_property
    def offer(self) -> Offer:
        """What the backend offers."""
        own = offer(self.backend)
        return replace(own, device=self._device.words()) if self._device else own

    def answers(self, calls: Sequence[Call]) -> list[Answer]:
        """One answer per call, in order."""
        return [self.answer(call) for call in calls]

    def answer(self, call: Call) -> Answer:
        """What comes of one call, whatever it is."""
        start, threads, faults = time.perf_counter(), torch.get_num_threads(), dict[str, None]()
        wanted = 1 if call.shape.threads == "one" else max(os.cpu_count() or 1, 2)
        if wanted != threads:
            torch.set_num_threads(wanted)
        try:
            found: dict[str, Any] = {"kind": "returned"}
            found |= self._swept(call, faults) if is_sweep(call) else {"value": self._asked(call, faults)}
        except (Unsupported, NoDevice) as reason:
            found = {"kind": "unsupported", "message": text_of(reason) or "not offered by the backend"}
        except _NoAnswer as reason:
            found, faults = {"kind": "returned"}, {str(reason): None, **faults}
        except self._interrupts:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever is raised is the answer, SystemExit too
            types = tuple(t.__name__ for t in type(error).__mro__ if issubclass(t, BaseException))
            hint = _NUMPY if "'Tensor' object has no attribute" in (said := text_of(error)) else ""
            told = _anywhere(_traceback(error))
            told = f"{told.rstrip()}{hint}\n" if hint else told
            found = {"kind": "raised", "error": types, "message": said + hint, "traceback": told}
        if torch.get_num_threads() != wanted:
            faults[f"{CHANGED}: the number of threads is another after the call"] = None
        if torch.get_num_threads() != threads:
            torch.set_num_threads(threads)
        return Answer(**{"seconds": time.perf_counter() - start, **found}, faults=tuple(faults))

    def script(self, formula: str, passed: Mapping[str, str], configuration: Configuration | None = None) -> Spelt:
        """The backend's own script, or the call of the function itself."""
        if configuration is not None and self.backend.script is not None:
            return Spelt(*self.backend.script(configuration))
        function = self._functions[formula]
        if configuration is not None and isinstance(function, operation):
            return script(function, configuration)
        return spelt(function, passed)

    def path(self) -> str:
        """What the backend says of its path."""
        return self.backend.path()

    def close(self) -> None:
        """Nothing is held that outlives this object."""

    def _swept(self, call: Call, faults: dict[str, None]) -> dict[str, Any]:
        """What comes of a call that stands for many."""
        named = _Given(replace(call, positional=()), self.backend, self._device).named
        with _mode(call.shape.mode), np.errstate(all="ignore"):
            before = state()
            try:
                made = self._function(call), named, self.backend.array, self._device, _received, faults
                value, seconds = swept(call, *made)
            finally:
                faults |= {f"{CHANGED}: {what} after the call": None for what in changes(before)}
        return {"value": value, "seconds": seconds}

    def _function(self, call: Call) -> Callable[..., Any]:
        function = self._functions.get(call.formula)
        if function is None:
            msg = f"{call.formula} is not offered"
            raise Unsupported(msg)
        return _flushing(function) if self.flushes else function

    def _asked(self, call: Call, faults: dict[str, None]) -> Any:
        """The result; what the call did that no call may do is noted in ``faults``, whatever it raises."""
        function = self._function(call)
        first: Any = None
        for again in range(call.shape.repeats):
            given = _Given(call, self.backend, self._device)
            self._poisoned(call)
            with _mode(call.shape.mode), np.errstate(all="ignore"):
                before, limit = state(), sys.getrecursionlimit()
                sys.setrecursionlimit(deep := max(limit, _DEEP))
                try:
                    came = function(*given.positional, **given.named)
                    if self._device:
                        faults |= dict.fromkeys(self._device.settled(came, given=bool(given.lent)))
                finally:  # before the mode is left, which hides what it puts back
                    found = sys.getrecursionlimit()
                    sys.setrecursionlimit(limit)  # at once: all that follows needs the stack
                    if found != deep:
                        faults[f"{CHANGED}: the recursion limit was another after the call"] = None
                    faults |= {f"{CHANGED}: {what} after the call": None for what in changes(before)}
                live = _received(came)
            faults |= dict.fromkeys(given.touched())
            faults |= dict.fromkeys(self._later(large=given.nbytes > _SMALL))
            self._keep(came if self._device else live, given)
            value = _copied(live)
            if again and not _same(value, first):
                faults["not deterministic: the same call gives another answer when it is repeated"] = None
            first = value if not again else first
        return first

    def _poisoned(self, call: Call) -> None:
        """Write and free memory of the result's likely sizes: an allocator mostly hands the same out again.

        Else what was there, such as the right answer to the call before, would be taken for an answer.
        """
        self._poison = POISONS[1] if self._poison == POISONS[0] else POISONS[0]
        arrays = [a for a in (*call.positional, *call.named.values()) if isinstance(a, Strided)]
        size = max((int(np.prod(a.shape)) for a in arrays[:1]), default=1) or 1
        numpy, both = self.backend.array == "numpy", 8 * size <= _SMALL
        # Allocators sort small memory by size, and by who asks; of large memory the input's width and a byte's will do.
        widths = [1, 2, 4, 8] if both else sorted({1, arrays[0].memory.itemsize})
        poison: list[object] = [np.full(size * w, self._poison, np.uint8) for w in widths if numpy or both]
        if both or not numpy:
            # Twice: of one array torch's allocator gives other memory in nearly every second call.
            poison += [torch.full((size * w,), self._poison, dtype=torch.uint8) for w in widths * 2]
        del poison
        if self._device:
            self._device.poison(self._poison, [size * w for w in (*widths, *widths)])

    def _keep(self, came: Any, given: "_Given") -> None:
        for _, leaf in leaves(came):
            if isinstance(leaf, np.ndarray | torch.Tensor) and leaf.nbytes <= _SMALL:
                self._results.append((leaf, _now(leaf)))
            elif isinstance(leaf, np.ndarray | torch.Tensor) and leaf.nbytes <= _LARGE:
                self._large.append((leaf, _now(leaf)))
        self._arguments.extend((m, _now(m)) for m in given.lent if m.nbytes <= _SMALL)

    def _later(self, *, large: bool) -> Iterator[str]:
        """What this call changed of the calls before; ``large`` where it had much to write."""
        # A large result is looked at in the next large call, since looking takes as long as the call.
        if _forget_changed(self._results) or (large and _forget_changed(self._large)):
            yield "stale output: this call wrote into the result that an earlier call had returned"
        if _forget_changed(self._arguments):
            yield "mutated input: this call wrote into an argument of an earlier call"


class _NoAnswer(Exception):  # noqa: N818 - what came is the fault
    pass


def _flushing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function with flush-to-zero on while it runs, as it was before: who judges it keeps its subnormals."""

    def called(*positional: Any, **named: Any) -> Any:
        torch.set_flush_denormal(True)
        try:
            return function(*positional, **named)
        finally:
            torch.set_flush_denormal(False)

    return called


class _Given:
    """The arguments of one call in the backend's own kind, over copies of their memory between guards."""

    def __init__(self, call: Call, backend: Backend, device: Device | None) -> None:
        self._backend, self._mode, self._device = backend, call.shape.mode, device
        self._held: dict[int, tuple[Any, Any]] = {}  # by memory: the whole buffer, guards and all, and its part
        self._inner: list[tuple[Any, Any]] = []
        self.positional: list[Any] = self._of(list(call.positional))
        self.named: dict[str, Any] = {name: self._of(value) for name, value in call.named.items()}
        self._before = [_now(buffer) for buffer in self.lent]
        self._inner_before = [_form(value) for value in (*self.positional, *self.named.values())]

    @property
    def nbytes(self) -> int:
        """The bytes of all arrays."""
        return sum(buffer.nbytes for buffer in self.lent)

    @property
    def lent(self) -> list[Any]:
        """The buffers that the backend has seen, guards and all: where they are."""
        return [buffer for buffer, _ in self._held.values()]

    def touched(self) -> Iterator[str]:
        """What the call changed of them."""
        for buffer, before in zip(self.lent, self._before, strict=True):
            if _now(buffer) != before:
                yield "mutated input: the call changed an argument in place, or the memory around it"
                return
        if self._inner_before != [_form(value) for value in (*self.positional, *self.named.values())]:
            yield "mutated input: the call changed the form of an argument"

    def _of(self, value: Any) -> Any:
        torch_ = self._backend.array == "torch"
        match value:
            case Strided():
                return self._tensor(value) if torch_ else value.view(self._memory(value))
            case np.generic() if torch_:
                scalar = _to_torch(np.asarray(value))
                return scalar.to(self._device.torch) if self._device else scalar
            case Dtype(name):
                return getattr(torch, name) if torch_ else np.dtype(_numpy(name))
            case tuple() | list():
                return type(value)(map(self._of, value))
            case Mapping():
                return {key: self._of(inner) for key, inner in value.items()}
        return value

    def _memory(self, value: Strided) -> Any:
        if id(value.memory) not in self._held:
            of = value.memory
            there = self._device and self._device.lend(of, _to_torch(of[:0]).dtype)
            self._held[id(of)] = there or _guarded(of)
        return self._held[id(value.memory)][1]

    def _tensor(self, value: Strided) -> torch.Tensor:
        if any(s < 0 for s in value.strides):
            msg = "torch has no negative strides"
            raise Unsupported(msg)
        part = self._memory(value)
        whole = part if self._device else _to_torch(part)
        found = torch.as_strided(whole, value.shape, value.strides, whole.storage_offset() + value.offset)
        return found.requires_grad_() if self._mode == "requires_grad" and found.is_floating_point() else found


def _now(held: Any) -> bytes:
    """The bytes of an array or a tensor, wherever it is."""
    return held.tobytes() if isinstance(held, np.ndarray) else from_backend(held).tobytes()


def _guarded(memory: Array) -> tuple[Array, Array]:
    """A buffer, and in it the copy of ``memory``, which begins at a multiple of 64 bytes, between guards."""
    raw = np.full(memory.nbytes + 2 * _GUARD + _ALIGNED, POISONS[0], np.uint8)
    start = -(raw.__array_interface__["data"][0] + _GUARD) % _ALIGNED + _GUARD
    part = raw[start : start + memory.nbytes].view(memory.dtype)
    part[...] = memory
    return raw, part


def _to_torch(a: Array) -> torch.Tensor:
    try:
        return to_torch(a)
    except TypeError:  # such as int4
        msg = f"torch has no tensor of {a.dtype}"
        raise Unsupported(msg) from None


def _numpy(name: str) -> Any:
    return getattr(ml_dtypes, name, name)


def _mode(name: Mode) -> AbstractContextManager[Any]:
    match name:
        case "no_grad":
            return torch.no_grad()
        case "inference":
            return torch.inference_mode()
        case _:
            return torch.enable_grad()


def _received(value: Any, depth: int = 0) -> Any:
    """A result as NumPy arrays over the backend's memory.

    Raises:
        _NoAnswer: it holds something that has no array, such as a sparse tensor, or is nested deep, perhaps in itself.
    """
    if depth > _DEEPEST:
        msg = f"wrong result: nested more than {_DEEPEST} deep"
        raise _NoAnswer(msg)
    match value:
        case Mapping():
            return {k: _received(v, depth + 1) for k, v in value.items()}
        case tuple() | list():
            return (tuple if isinstance(value, tuple) else list)(_received(v, depth + 1) for v in value)
        case torch.Tensor() | np.ndarray():
            return _array(value)
    return value


def _array(value: Any) -> Array:
    try:
        found = np.asarray(from_backend(value)).view(np.ndarray)
    except Exception as error:  # noqa: BLE001 - a meta, sparse or nested tensor has no array
        msg = f"wrong result: {text_of(error)}"
        raise _NoAnswer(msg) from None
    if found.dtype not in _CARRIED or isinstance(value, np.ma.MaskedArray):
        msg = f"wrong result: a {type(value).__name__} of dtype {found.dtype!r:.200}"
        raise _NoAnswer(msg)
    return found


def _copied(value: Any) -> Any:
    match value:
        case np.ndarray():
            return np.array(value, order="C")
        case Mapping():
            return {k: _copied(v) for k, v in value.items()}
        case tuple() | list():
            return type(value)(map(_copied, value))
    return value


def _same(a: Any, b: Any) -> bool:
    """Whether two results are the same, bit for bit."""
    left, right = dict(leaves(a)), dict(leaves(b))
    return left.keys() == right.keys() and all(_bits(v) == _bits(right[k]) for k, v in left.items())


def _bits(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype, np.shape(value), value.tobytes()
    return type(value), repr(value)


def _form(value: Any) -> Any:
    """Everything about an argument that a call can change but the values of its arrays."""
    match value:
        case torch.Tensor():
            return value.dtype, tuple(value.shape), tuple(value.stride()), value.device
        case np.ndarray():
            return value.dtype, value.shape, value.strides
        case Mapping():
            return {key: _form(inner) for key, inner in value.items()}
        case tuple() | list():
            return [_form(inner) for inner in value]
    return repr(value)


def _forget_changed(kept: deque[tuple[Any, bytes]]) -> bool:
    same = [k for k in kept if _now(k[0]) == k[1]]
    changed = len(same) < len(kept)
    if changed:
        kept.clear()
        kept.extend(same)
    return changed


def text_of(error: BaseException) -> str:
    """What an error says, shortened, whatever its ``__str__`` does."""
    try:
        return str(error)[:CAP]
    except BaseException as inner:  # noqa: BLE001 - an error that cannot say what it is
        return f"(its message cannot be had: {type(inner).__name__})"


def _traceback(error: BaseException) -> str:
    try:
        text = "".join(traceback.format_exception(error, limit=-6))
        said = "".join(traceback.format_exception_only(error))
        if len(text) <= CAP or not text.endswith(said):
            return text[-CAP:]
        shown = said[: CAP // 2]  # of a long message the beginning, which has the kind of the error
        return text[: -len(said)][len(shown) - CAP :] + shown
    except Exception:  # noqa: BLE001 - as above
        return type(error).__name__


def _anywhere(text: str) -> str:
    """A traceback that reads alike on every machine: of each file the last three parts of its path."""
    return re.sub(r'File "([^"]+)"', lambda m: f'File "{"/".join(PurePath(m[1]).parts[-3:])}"', text)
