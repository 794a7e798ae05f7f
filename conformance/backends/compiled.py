"""``torch.compile`` of a function, which says when it compiled nothing, and counts what it compiled."""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import torch

from halfeven.conformance.backends.protocol import Unsupported

__all__ = ["compiled"]

_MANY = 1 << 20
_SAID = 300


def compiled(function: Callable[..., Any], count: list[int]) -> Callable[..., Any]:
    """``function`` under ``torch.compile``, as a user has it: what cannot be traced runs as it is.

    ``count[0]`` is the number of graphs that were compiled. The function raises Unsupported where compiling fails, or
    where of a call nothing was compiled: else an answer of the eager function would pass for the compiled one's.
    """
    ran = [0]

    def counted(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Callable[..., Any]:
        from torch._inductor.compile_fx import compile_fx

        count[0] += 1
        made = compile_fx(graph, inputs)

        def run(*arguments: Any) -> Any:
            ran[0] += 1
            return made(*arguments)  # type: ignore[operator]

        return run

    inner = torch.compile(function, backend=counted)

    @functools.wraps(function)
    def call(*positional: Any, **named: Any) -> Any:
        from torch._dynamo.exc import TorchDynamoException
        from torch._inductor.exc import InductorError

        ran[0] = 0
        try:
            # Past its limits torch would go on without compiling: a suite has more shapes than any program.
            with torch._dynamo.config.patch(recompile_limit=_MANY, accumulated_recompile_limit=_MANY):  # noqa: SLF001
                found = inner(*positional, **named)
        except (TorchDynamoException, InductorError) as error:
            msg = f"torch.compile fails: {' '.join(f'{type(error).__name__}: {error}'.split()):.{_SAID}}"
            raise Unsupported(msg) from error
        if not ran[0]:
            msg = "torch.compile compiled nothing of this call"
            raise Unsupported(msg)
        return found

    return call
