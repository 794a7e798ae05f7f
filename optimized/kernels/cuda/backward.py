"""The gradients on a GPU, by the kernels of ``backward.cu``; what is left of their sums is done by torch."""

import ctypes
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.arguments import Blocks
from halfeven.optimized.kernels import chunked
from halfeven.optimized.kernels.chunked.parts import narrow
from halfeven.optimized.kernels.cuda import launcher, programs, shares
from halfeven.optimized.kernels.cuda.layout import ForwardParameters, Steps
from halfeven.optimized.kernels.cuda.memory import DTYPES, NONE, check_places

__all__ = ["BACKWARD"]

_Int = ctypes.c_int64
_Pointer = ctypes.c_uint64

_Gradients = tuple[Tensor, Tensor, Tensor]
# The ends of the grid, the shift, and whether the zero point is an offset.
_Settings = tuple[int, int, float, bool]


class _Backward(ctypes.Structure):
    _fields_ = (
        ("x", _Pointer), ("g", _Pointer), ("dx", _Pointer),
        ("kept", _Int), ("reduced", _Int), ("len", _Int), ("row_shares", _Int), ("shares", _Int),
        ("x_len", _Int), ("g_len", _Int), ("dx_len", _Int), ("s_len", _Int), ("o_len", _Int), ("out_step", _Int),
        ("reduced_loops", ctypes.c_int32), ("loops", ctypes.c_int32),
        ("size", shares.Many), ("x_step", shares.Many), ("g_step", shares.Many), ("dx_step", shares.Many),
        ("s_step", shares.Many), ("o_step", shares.Many), ("out_at", shares.Many),
        ("parameters", ForwardParameters), ("to", shares.Results),
    )  # fmt: skip


def _quantize_backward(
    to: launcher.Launcher,
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    offset: bool,
    *needs: bool,
) -> _Gradients:
    compute = arguments.accepted_reals(x, scale, zero_point, qmin, qmax, block_size, result=x.dtype)
    arguments.check_gradient(grad, "x", x, x.dtype)
    given = ("Quantize", "x", compute, (qmin, qmax, 0.0, offset))
    return _gradients(to, given, (grad, x, scale, zero_point), block_size, needs)


def _quantize_dequantize_backward(
    to: launcher.Launcher,
    grad: Tensor,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    shift: float,
    offset: bool,
    *needs: bool,
) -> _Gradients:
    compute = arguments.accepted_reals(x, scale, zero_point, qmin, qmax, block_size, result=x.dtype)
    arguments.check_gradient(grad, "x", x, x.dtype)
    given = ("QuantizeDequantize", "x", compute, (qmin, qmax, shift, offset))
    return _gradients(to, given, (grad, x, scale, zero_point), block_size, needs)


def _dequantize_backward(
    to: launcher.Launcher,
    grad: Tensor,
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    compute: torch.dtype | None,
    offset: bool,
    *needs: bool,
) -> _Gradients:
    arguments.check_gradient(grad, "q", q, grad.dtype)
    compute = arguments.accepted_codes(q, scale, zero_point, block_size, compute, result=grad.dtype)
    given = ("Dequantize", "q", compute, (0, 0, 0.0, offset))
    return _gradients(to, given, (grad, q, scale, zero_point), block_size, needs)


def _gradients(
    to: launcher.Launcher,
    given: tuple[str, str, torch.dtype, _Settings],
    tensors: tuple[Tensor, Tensor, Tensor, Tensor | None],
    block_size: Blocks,
    needs: Sequence[bool],
) -> _Gradients:
    _, name, compute, settings = given
    grad, x, scale, zero_point = tensors
    for of, tensor, needed in zip((name, "scale", "zero_point"), (x, scale, zero_point), needs, strict=True):
        arguments.check_differentiable(of, tensor, needed)
    check_places({name: x, "grad": grad, "scale": scale} | ({} if zero_point is None else {"zero_point": zero_point}))
    dx = torch.empty_like(x, requires_grad=False) if needs[0] else x.new_empty((0,))
    # All elements that share a scale and a zero point have a sum of each.
    counts = _together(scale, zero_point)
    wanted = needs[1], needs[2] and zero_point is not None
    ds, do = (x.new_empty(counts, dtype=torch.float64) if each else None for each in wanted)
    if x.numel() == 0:
        for sums in (ds, do):
            if sums is not None:
                sums.zero_()
    elif any(needs):
        _launch(to, given, tensors, None if block_size is None else tuple(block_size), (dx, ds, do))
    dz = do if settings[-1] or do is None else -do
    nothing = x.new_empty((0,))
    return (
        dx,
        nothing if ds is None else _finished(ds, scale, x, compute),
        nothing if dz is None or zero_point is None else _finished(dz, zero_point, x, compute),
    )


def _together(scale: Tensor, zero_point: Tensor | None) -> Steps:
    """The shape that both broadcast to."""
    one, other = tuple(scale.shape), () if zero_point is None else tuple(zero_point.shape)
    ndim = max(len(one), len(other))
    pairs = zip((1,) * (ndim - len(one)) + one, (1,) * (ndim - len(other)) + other, strict=True)
    return tuple(b if a == 1 else a for a, b in pairs)


def _finished(sums: Tensor, parameter: Tensor, x: Tensor, compute: torch.dtype) -> Tensor:
    """Sums in float64 as the gradient of a parameter, of which several entries of ``sums`` may be."""
    # Of one term each even the sign of a zero is kept.
    total = sums if parameter.shape == x.shape and x.numel() else sums.sum_to_size(parameter.shape) + 0.0
    return narrow(narrow(total, compute), parameter.dtype)


def _launch(
    to: launcher.Launcher,
    given: tuple[str, str, torch.dtype, _Settings],
    tensors: tuple[Tensor, Tensor, Tensor, Tensor | None],
    block: Steps | None,
    results: tuple[Tensor, Tensor | None, Tensor | None],
) -> None:
    """Write dx, unless it has no element, and the sums that are wanted."""
    gradient, _, compute, (low, high, shift, is_offset) = given
    grad, x, s, o = tensors
    dx, ds, do = results
    to_dx = dx.numel() > 0
    none: tuple[Steps, Steps] = ((), ())
    counts = _together(s, o)
    parameters = (tuple(s.shape), s.stride()), none if o is None else (tuple(o.shape), o.stride())
    strides = x.stride(), grad.stride(), dx.stride() if to_dx else x.stride()
    pack = 16 // max(x.element_size(), grad.element_size())
    found = _cuts(tuple(x.shape), strides, parameters, counts, block, pack)
    program = programs.backward(gradient, *(DTYPES[dtype].name for dtype in (x.dtype, grad.dtype, compute)))
    for cut in found:
        n, (x_len, g_len, dx_len, s_len, o_len, out_step) = cut.inner
        at_x, at_g, at_dx, at_s, at_o, _ = cut.start
        job = _Backward(
            x=x.data_ptr() + at_x * x.element_size(),
            g=grad.data_ptr() + at_g * grad.element_size(),
            dx=dx.data_ptr() + at_dx * dx.element_size() if to_dx else 0,
            kept=cut.kept, reduced=cut.reduced, len=n,
            row_shares=cut.row_shares, shares=cut.shares,
            x_len=x_len, g_len=g_len, dx_len=dx_len, s_len=s_len, o_len=o_len, out_step=out_step,
            reduced_loops=cut.reduced_loops, loops=len(cut.loops),
            parameters=ForwardParameters(
                s=s.data_ptr() + at_s * s.element_size(),
                o=0 if o is None else o.data_ptr() + at_o * o.element_size(),
                low=low, high=high, shift=shift, is_offset=is_offset,
                s_dtype=DTYPES[s.dtype].number, o_dtype=NONE if o is None else DTYPES[o.dtype].number,
            ),
        )  # fmt: skip
        for d, (size, steps) in enumerate(cut.loops):
            job.size[d] = size
            job.x_step[d], job.g_step[d], job.dx_step[d], job.s_step[d], job.o_step[d], job.out_at[d] = steps
        shares.run(to, program, x, cut, job, (ds, do), torch.float64)


@lru_cache(maxsize=1024)
def _cuts(
    shape: Steps,
    strides: tuple[Steps, Steps, Steps],
    parameters: tuple[tuple[Steps, Steps], ...],
    counts: Steps,
    block: Steps | None,
    pack: int,
) -> tuple[shares.Cut, ...]:
    out = tuple(prod(counts[d + 1 :]) for d in range(len(counts)))
    found = shares.cuts(shape, strides, (*parameters, (counts, out)), block, pack)
    if found is None:
        raise _TooManyLoopsError
    return found


class _TooManyLoopsError(Exception):
    """More than the kernels know: torch operations serve."""


def _or_torch(name: str, launched: Callable[..., _Gradients]) -> Callable[..., _Gradients]:
    def run(to: launcher.Launcher, *given: Any) -> _Gradients:
        try:
            return launched(to, *given)
        except _TooManyLoopsError:
            own: _Gradients = chunked.IMPLEMENTATIONS[name](*given)
            return own

    return run


#: By the operators' names: what is launched on CUDA, given the launcher and then what the operator is given.
BACKWARD: dict[str, Callable[..., Any]] = {
    name: _or_torch(name, launched)
    for name, launched in (
        ("quantize_backward", _quantize_backward),
        ("dequantize_backward", _dequantize_backward),
        ("quantize_dequantize_backward", _quantize_dequantize_backward),
    )
}
