"""The axes of a backend: where and how it computes, as words after its name: ``torch.quantize@cuda,compiled``.

A device is any of torch's (``cuda``, ``cuda:1``, ``xpu``); ``compiled`` is ``torch.compile`` of each function that the
backend calls. A backend may have words of its own instead (``Backend.axes``), such as a runtime's providers.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

from halfeven.conformance.backends.protocol import Backend, NotInstalled

__all__ = ["COMMAND", "COMPILED", "along", "extended", "joined", "split"]

COMPILED = "compiled"
COMMAND = "cmd:"
"""What a command begins with where the command line takes a backend: ``cmd:./my-device --flag``."""
_AT = "@"


def split(spec: str) -> tuple[str, tuple[str, ...]]:
    """A name, and the words after it.

    >>> split("torch.quantize@cuda,compiled")
    ('torch.quantize', ('cuda', 'compiled'))
    """
    if spec.startswith(COMMAND):  # its words are its own
        return spec, ()
    name, _, words = spec.partition(_AT)
    return name, tuple(w for w in words.split(",") if w)


def extended(spec: str, device: str | None = None, *, compiled: bool = False) -> str:
    """The name with the words that options stand for, where it has not said as much itself.

    >>> extended("torch.quantize", "cuda", compiled=True)
    'torch.quantize@cuda,compiled'
    """
    if spec.startswith(COMMAND) and (device or compiled):
        msg = f"backend={spec!r} is not accepted with a device or {COMPILED}: a command computes where it does"
        raise ValueError(msg)
    name, words = split(spec)
    more = [*([device] if device else []), *([COMPILED] if compiled else [])]
    words = (*words, *(w for w in more if w not in words))
    return joined(name, words)


def joined(name: str, words: Sequence[str]) -> str:
    """What ``split`` takes apart.

    >>> joined("torch.quantize", ["cuda", "compiled"])
    'torch.quantize@cuda,compiled'
    """
    return f"{name}{_AT}{','.join(words)}" if words else name


def along(backend: Backend, words: Sequence[str], *, tried: bool = True) -> Backend:
    """The backend, computing as the words say; its name has them.

    With ``tried=False`` it is not looked whether the device is there: then its calls say so.

    Raises:
        ValueError: a word is none that the backend knows, or two say the same.
        NotInstalled: the device is not there, or is another one under this name; or the backend takes no tensors.
    """
    if not words:
        return backend
    backend = replace(backend, name=joined(backend.name, words))
    if backend.axes is not None:
        changed: dict[str, Any] = dict(backend.axes(tuple(words)))
        return replace(backend, **changed)
    devices = [w for w in words if w != COMPILED]
    if len(devices) > 1 or words.count(COMPILED) > 1:
        msg = f"{','.join(words)!r} of {backend.name!r} is not accepted: give one device, {COMPILED}, or both"
        raise ValueError(msg)
    if devices and not _is_device(devices[0]):
        msg = (
            f"{devices[0]!r} of {backend.name!r} is not accepted: give a device of torch's, such as cuda, or {COMPILED}"
        )
        raise ValueError(msg)
    if backend.array != "torch":
        msg = f"backend={backend.name!r} takes NumPy arrays, which torch neither moves to a device nor compiles"
        raise NotInstalled(msg)
    if devices:
        if tried:
            _try(backend.name, devices[0])
        backend = replace(backend, device=devices[0], path=_path_on(backend.path, devices[0]))
    return _compiled(backend) if COMPILED in words else backend


def _path_on(path: Callable[..., str], device: str) -> Callable[[], str]:
    """What says which path runs on a device, where that asks for one."""
    return partial(path, device=device) if "device" in signature(path).parameters else path


def _compiled(backend: Backend) -> Backend:
    from halfeven.conformance.backends.compiled import compiled

    def function(given: Callable[..., Any]) -> Callable[..., Any]:
        """What is compiled is the library's function, not what turns arrays into its arguments."""
        around = getattr(given, "around", None)
        return compiled(given, count) if around is None else around(compiled(getattr(given, "fn"), count))  # noqa: B009 - it has both

    count: list[int] = [0]
    path = backend.path
    return replace(
        backend,
        operations={o: function(f) for o, f in backend.operations.items()},
        functions={name: function(f) for name, f in backend.functions.items()},
        path=lambda: "; ".join(p for p in (path(), f"torch.compile, inductor: {count[0]} graphs") if p),
    )


def _is_device(word: str) -> bool:
    import torch

    try:
        return torch.device(word).type != "meta"  # which has no values
    except RuntimeError:
        return False


def _try(name: str, word: str) -> None:
    """Put a tensor there, and see where it is."""
    import torch

    try:
        found = torch.zeros(2).to(word).device.type
    except Exception as error:  # noqa: BLE001 - of whatever kind: each device of torch's says it in its own way
        said = " ".join(f"{error}".split()) or type(error).__name__
        msg = f"backend={name!r}: the device {word} is not there: {said:.200}"
        raise NotInstalled(msg) from None
    if found != torch.device(word).type:
        msg = f"backend={name!r}: a tensor put on {word} is on {found}"
        raise NotInstalled(msg)
