"""What torch.compile needs to trace functions of tensors with encodings, without being imported for it."""

from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["SUBCLASSES", "accept_subclasses", "eager", "shared"]

F = TypeVar("F", bound=Callable[..., Any])

SUBCLASSES: list[type[torch.Tensor]] = []
"""The types of tensors with encodings."""


def eager(function: F) -> F:
    """Never compile a call of ``function`` by itself, nor what it calls; where a caller is traced, it is, too.

    A compiled ``__torch_function__`` would call itself without end: the graph knows no DisableTorchFunctionSubclass.
    """
    frames = torch._C._dynamo.eval_frame  # noqa: SLF001 - torch.compiler.disable would forbid the tracing as well
    never = frames._FrameAction.SKIP  # noqa: SLF001
    frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(never, never))  # noqa: SLF001
    return function


def accept_subclasses() -> bool:
    """Let compiled functions be given tensors of ``SUBCLASSES``; runs while one is traced that is.

    At its first run, torch looks whether operators of others return memory of their inputs (2.13). That check refuses
    every subclass of ``Tensor`` that is not on its list, so these are added to that list. It stays on, for them too.
    """
    from torch._functorch._aot_autograd import runtime_wrappers  # noqa: PLC0415 - not needed otherwise

    names = vars(runtime_wrappers)
    known = names.get("HANDLED_TYPES")
    if known is not None:
        names["HANDLED_TYPES"] = (*known, *(kind for kind in SUBCLASSES if kind not in known))
    return True


accept_subclasses._dynamo_marked_constant = True  # type: ignore[attr-defined]  # noqa: SLF001 - torch.compiler.assume_constant_result


def shared(encoding: Any) -> Any:
    """An encoding of its own with the same tensors: to set an attribute of it leaves the first one as it was.

    In a compiled function, the first one itself.
    """
    if encoding is None or torch.compiler.is_dynamo_compiling():
        return encoding
    copied = object.__new__(type(encoding))
    copied.__dict__.update(encoding.__dict__)
    return copied
