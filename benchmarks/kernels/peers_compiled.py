"""The plain formulas through ``torch.compile``: compiled for the very shapes, and into ``out`` where there is one."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from kernels.cases import QMAX, QMIN, Case
from kernels.implementations import Call, Implementation

__all__ = ["PEERS"]


def _blocked(case: Case, *tensors: Tensor) -> tuple[Tensor, ...]:
    """The tensors with a dimension for the blocks; then the parameters, broadcasting to them, z a float."""
    s, z = case.scale, case.zero_point.float()
    if case.block:
        shape = (case.shape[0], -1, case.block)
        return *(t.view(shape) for t in tensors), s.unsqueeze(-1), z.unsqueeze(-1)
    return *tensors, s, z


def _codes(x: Tensor, s: Tensor, z: Tensor) -> Tensor:
    v = torch.round(x.float() / s) + z
    v = torch.where(v == v, v, z)  # noqa: PLR0124 - isnan, which is not vectorized
    return v.clamp(QMIN, QMAX)


def _quantize(x: Tensor, out: Tensor, s: Tensor, z: Tensor) -> Tensor:
    return out.copy_(_codes(x, s, z).to(torch.int8))


def _fake_quantize(x: Tensor, out: Tensor, s: Tensor, z: Tensor) -> Tensor:
    return out.copy_((((torch.round(x.float() / s) + z).clamp(QMIN, QMAX) - z) * s).to(out.dtype))


def _dequantize(q: Tensor, out: Tensor, s: Tensor, z: Tensor) -> Tensor:
    return out.copy_((q.float() - z) * s)


def _gradient_x(x: Tensor, grad: Tensor, s: Tensor, z: Tensor) -> Tensor:
    c = torch.round(x.float() / s) + z
    return torch.where((c >= QMIN) & (c <= QMAX), grad, torch.zeros((), dtype=grad.dtype))


def _gradients(x: Tensor, grad: Tensor, s: Tensor, z: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    u, g = x.float() / s, grad.float()
    r = torch.round(u)
    inside = (r + z >= QMIN) & (r + z <= QMAX)
    ds = g * torch.where(inside, r - u, (r + z).clamp(QMIN, QMAX) - z)
    dz = torch.where(inside, 0.0, -g * s)
    dx = torch.where(inside, g, 0.0).to(grad.dtype)
    return dx.reshape(x.shape[0], -1), ds.sum_to_size(s.shape), dz.sum_to_size(z.shape)


def _aminmax(x: Tensor, dims: tuple[int, ...]) -> tuple[Tensor, Tensor]:
    return x.amin(dims), x.amax(dims)


def _amax(x: Tensor, dims: tuple[int, ...]) -> Tensor:
    return x.abs().amax(dims)


def _compiled(formula: Callable[..., Any], *given: Any, reshape: Tensor | None = None) -> Call:
    import torch._inductor.config

    torch._inductor.config.compile_threads = 1  # noqa: SLF001 - so that no worker processes are started
    torch._dynamo.reset()  # noqa: SLF001 - each case is compiled by itself
    function = torch.compile(formula, dynamic=False)
    if reshape is None:
        return lambda: function(*given)
    return lambda: (function(*given), reshape)[1]


def _into_out(formula: Callable[..., Any], source: str) -> Callable[[Case], Call]:
    return lambda case: _compiled(formula, *_blocked(case, getattr(case, source), case.out), reshape=case.out)


def _of_gradient(formula: Callable[..., Any]) -> Callable[[Case], Call]:
    return lambda case: _compiled(formula, *_blocked(case, case.x, case.grad))


def _reduction(formula: Callable[..., Any]) -> Callable[[Case], Call]:
    def make(case: Case) -> Call:
        x = case.x.view(case.shape[0], -1, case.block) if case.block else case.x
        dims = (-1,) if case.block else (0, 1) if case.axis is None else (1 - case.axis,)
        return _compiled(formula, x, dims)

    return make


PEERS = (
    Implementation(
        "torch.compile, out=",
        "torch",
        {
            "quantize": _into_out(_quantize, "x"),
            "fake quantize": _into_out(_fake_quantize, "x"),
            "dequantize": _into_out(_dequantize, "codes"),
        },
        out=True,
    ),
    Implementation(
        "torch.compile",
        "torch",
        {
            "backward, x": _of_gradient(_gradient_x),
            "backward, x and parameters": _of_gradient(_gradients),
            "aminmax": _reduction(_aminmax),
            "amax": _reduction(_amax),
        },
        note="sums of gradients in float32",
    ),
)
