"""What a call may change of the process that it runs in: noted before it, told and put back after it."""

import ctypes
import signal
from collections.abc import Callable, Iterator
from functools import partial
from operator import itemgetter
from typing import Any

import numpy as np
import torch

from halfeven.conformance.environment import flushes_to_zero, rounds_to_nearest

__all__ = ["changes", "state"]

_NUMPY = vars(np)
_NAMES = tuple(name for name, value in _NUMPY.items() if callable(value))
_FUNCTIONS = itemgetter(*_NAMES)
_OWN = dict(zip(_NAMES, _FUNCTIONS(_NUMPY), strict=True))
_OWN_FUNCTIONS = tuple(_OWN.values())


def _replaced() -> tuple[str, ...]:
    """The functions of NumPy that are others than at the start."""
    try:
        if _FUNCTIONS(_NUMPY) == _OWN_FUNCTIONS:  # it asks for identity first
            return ()
    except KeyError:  # one was deleted
        pass
    return tuple(name for name in _NAMES if _NUMPY.get(name) is not _OWN[name])


def _put_back(before: tuple[str, ...]) -> None:
    for name in _replaced():
        if name not in before:
            setattr(np, name, _OWN[name])


def _round_to_nearest(_: bool) -> None:
    ctypes.CDLL(None).fesetround(0)  # on every platform that has the function


def _set_default_device(old: Any) -> None:
    torch.set_default_device(None if old == torch.device("cpu") else old)  # a default of cpu would slow every call down


def _set_inference(on: bool) -> None:
    _HELD.append(torch.inference_mode(on))
    _HELD[-1].__enter__()
    del _HELD[1:]


def _timer() -> bool:
    return any(signal.getitimer(signal.ITIMER_REAL))


def _stop_timer(_: bool) -> None:
    signal.setitimer(signal.ITIMER_REAL, 0)


_HELD: list[Any] = []  # a mode ends where nothing holds it
_STATE: dict[str, tuple[Callable[[], Any], Callable[[Any], Any]]] = {
    "the default dtype was another": (torch.get_default_dtype, torch.set_default_dtype),
    "the default device was another": (torch.get_default_device, _set_default_device),
    "inference mode was on": (torch.is_inference_mode_enabled, _set_inference),
    "the grad mode was another": (torch.is_grad_enabled, torch.set_grad_enabled),
    "autocast was on": (partial(torch.is_autocast_enabled, "cpu"), partial(torch.set_autocast_enabled, "cpu")),
    "the precision of matrix products was another": (
        torch.get_float32_matmul_precision,
        torch.set_float32_matmul_precision,
    ),
    "deterministic algorithms were switched": (
        torch.are_deterministic_algorithms_enabled,
        torch.use_deterministic_algorithms,
    ),
    "NumPy's error handling was another": (np.geterr, lambda old: np.seterr(**old)),
    "functions of NumPy were replaced": (_replaced, _put_back),
    "flush-to-zero was on": (flushes_to_zero, torch.set_flush_denormal),
    "the rounding mode was another": (rounds_to_nearest, _round_to_nearest),
    **({"a timer was running": (_timer, _stop_timer)} if hasattr(signal, "getitimer") else {}),
}


def state() -> list[Any]:
    """How the process computes now."""
    return [read() for read, _ in _STATE.values()]


def changes(before: list[Any]) -> Iterator[str]:
    """What is not as it was, in words; it is put back."""
    for was, (words, (read, write)) in zip(before, _STATE.items(), strict=True):
        if read() != was:
            write(was)
            yield words
