"""A device that is not there: tensors that say they are on it, with memory of their own, and work that is done later.

``install()`` changes the process for good: it is for a process of its own. ``LATER`` is what the device still has to do
on a stream that nobody waits for: it is done when the device is synchronized.
"""

import types
from collections.abc import Callable
from typing import Any, Self

import torch
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

NAME = "pretend"
LATER: list[Callable[[], None]] = []


class There(torch.Tensor):
    """A tensor on the device, which holds one of the CPU."""

    inner: torch.Tensor

    @staticmethod
    def __new__(cls, inner: torch.Tensor) -> Self:
        made = torch.Tensor._make_wrapper_subclass(
            cls,
            inner.shape,
            strides=inner.stride(),
            storage_offset=inner.storage_offset(),
            dtype=inner.dtype,
            device=f"{NAME}:0",
        )
        made.inner = inner
        return made

    def __repr__(self, **_: Any) -> str:
        return f"There({self.inner})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _done(func, args, kwargs or {})


class _Everywhere(TorchDispatchMode):
    def __torch_dispatch__(self, func: Any, _types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _done(func, args, kwargs or {})


def install(*, hidden: bool = False) -> None:
    """Let torch have the device; ``hidden`` where its tensors are really on the CPU, and say so."""
    module = types.ModuleType(NAME)
    told = {"is_available": True, "device_count": 1, "current_device": 0, "_is_in_bad_fork": False}
    for name, value in told.items():
        setattr(module, name, lambda value=value: value)
    module.synchronize = _synchronize  # type: ignore[attr-defined]
    module.get_device_name = lambda _device=None: "Pretended 100"  # type: ignore[attr-defined]
    module.get_device_capability = lambda _device=None: (9, 0)  # type: ignore[attr-defined]
    _setup_privateuseone_for_python_backend(NAME, backend_module=module)
    global _wrapped  # noqa: PLW0603 - one device per process
    _wrapped = (lambda t: t) if hidden else There
    _Everywhere().__enter__()


def _synchronize(_device: Any = None) -> None:
    waiting = [*LATER]
    LATER.clear()
    for work in waiting:
        work()


def late(tensor: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
    """Write ``value`` into ``tensor`` on another stream; nothing waits for it."""
    if not isinstance(tensor, There):
        return tensor.copy_(value)
    inner, source = tensor.inner, value.inner.clone()  # type: ignore[attr-defined]
    LATER.append(lambda: _write(inner, source))
    return tensor


def _write(to: torch.Tensor, value: torch.Tensor) -> None:
    with _disable_current_modes():
        to.copy_(value)


_wrapped: Callable[[torch.Tensor], torch.Tensor] = There


def _is_there(device: Any) -> bool:
    return device is not None and torch.device(device).type == NAME


def _done(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    given = [t for t in tree_leaves((args, kwargs)) if isinstance(t, There)]
    asked = kwargs.get("device")
    there = _is_there(asked) if asked is not None else bool(given)
    moves = func._schema.name == "aten::_to_copy"
    tensors = [t for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor) and t.ndim]
    if len({isinstance(t, There) for t in tensors}) > 1 and func._schema.name != "aten::copy_":
        msg = "Expected all tensors to be on the same device"
        raise RuntimeError(msg)
    if asked is not None:
        kwargs = {**kwargs, "device": "cpu"}
    plain = lambda v: v.inner if isinstance(v, There) else v  # noqa: E731
    with _disable_current_modes():
        inner = tree_map(plain, args)
        found = func(*inner, **tree_map(plain, kwargs))
        if moves and found is inner[0]:
            found = found.clone()
    if not there:
        return found
    known = {id(t.inner): t for t in given}  # what is changed in place is the tensor that was given
    return tree_map(lambda v: known.get(id(v), _wrapped(v)) if isinstance(v, torch.Tensor) else v, found)
