"""How an operator of ``torch.ops.halfeven`` is made known to torch: its schema, what runs, shapes, gradient, vmap."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch._C import _are_functorch_transforms_active as transforms_active  # of torch.func; as fast as a call can be

__all__ = ["OPS", "REGISTERED", "Operator", "register", "transforms_active"]

_TORCH: Any = torch.library  # its functions have no types
# It must live as long as the process, or the operators vanish.
_LIBRARY: Any = _TORCH.Library("halfeven", "FRAGMENT")
OPS: Any = torch.ops.halfeven
#: What ``register`` was given, in its order.
REGISTERED: list[str] = []


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:  # noqa: ARG001
    """Save for a gradient the tensors, which come first, and the other arguments as ``ctx.settings``."""
    ctx.save_for_backward(*(value for value in inputs if isinstance(value, Tensor)))
    ctx.settings = [value for value in inputs if not isinstance(value, Tensor)]


@dataclass(frozen=True)
class Operator:
    """An operator, less its name.

    Attributes:
        schema: its arguments and results, as in ``(Tensor x) -> Tensor``.
        implementation: what runs on a device for which nothing is registered apart.
        fake: results of the same shapes, dtypes and devices, for tracing.
        backward: a gradient per argument from (ctx, a gradient per result), or None: not differentiable.
        keep: (ctx, arguments, results), saves what ``backward`` needs.
        vmap: (info, a dimension per argument, *arguments) to the results and the dimension of each, or None.
        cuda: what runs on CUDA in its stead, or None.
    """

    schema: str
    implementation: Callable[..., Any]
    fake: Callable[..., Any]
    backward: Callable[..., tuple[Any, ...]] | None = None
    keep: Callable[[Any, tuple[Any, ...], Any], None] = _keep
    vmap: Callable[..., Any] | None = None
    cuda: Callable[..., Any] | None = None


def register(operators: Mapping[str, Operator]) -> None:
    """Define the operators ``torch.ops.halfeven.*``, by their names. None may have been defined before."""
    for name, operator in operators.items():
        REGISTERED.append(name)
        _LIBRARY.define(name + operator.schema, tags=(torch.Tag.pt2_compliant_tag,))
        # A kernel that was compiled for a device goes before it.
        _LIBRARY.impl(name, operator.implementation, "CompositeExplicitAutograd")
        if operator.cuda is not None:
            _LIBRARY.impl(name, operator.cuda, "CUDA")
        full = f"halfeven::{name}"
        _TORCH.register_fake(full, operator.fake, lib=_LIBRARY)
        if operator.backward is not None:
            _TORCH.register_autograd(full, operator.backward, setup_context=operator.keep, lib=_LIBRARY)
        if operator.vmap is not None:
            _TORCH.register_vmap(full, operator.vmap, lib=_LIBRARY)
