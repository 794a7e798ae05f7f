"""The forward operators on a GPU: checked, laid out, launched."""

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.arguments import Blocks, dtypes
from halfeven.optimized.kernels.cuda import launcher, programs
from halfeven.optimized.kernels.cuda.layout import laid_out
from halfeven.optimized.kernels.cuda.memory import DTYPES, NONE, check_places

__all__ = ["FORWARD"]

Launcher = launcher.Launcher


def _quantize(
    to: Launcher,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    dtype: torch.dtype | None,
    offset: bool,
) -> Tensor:
    arguments.check_reals("x", x)
    program = _quantizing(x.dtype, dtype, qmin, qmax)
    arguments.check_parameters(("x", x), scale, zero_point, block_size, None, x.dtype)
    out = torch.empty_like(x, dtype=dtype, requires_grad=False)
    _launch(to, program, "x", (x, out, scale, zero_point), block_size, (qmin, qmax, 0.0, offset))
    return out


def _quantize_out(
    to: Launcher,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    offset: bool,
    out: Tensor,
) -> None:
    arguments.check_reals("x", x)
    program = _quantizing(x.dtype, out.dtype, qmin, qmax)
    arguments.check_parameters(("x", x), scale, zero_point, block_size, out, out.dtype)
    _launch(to, program, "x", (x, out, scale, zero_point), block_size, (qmin, qmax, 0.0, offset))


def _quantize_dequantize(
    to: Launcher,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    shift: float,
    offset: bool,
) -> Tensor:
    arguments.check_reals("x", x)
    program = _on_grid(x.dtype, qmin, qmax, shift != 0)
    arguments.check_parameters(("x", x), scale, zero_point, block_size, None, x.dtype)
    out = torch.empty_like(x, requires_grad=False)
    _launch(to, program, "x", (x, out, scale, zero_point), block_size, (qmin, qmax, shift, offset))
    return out


def _quantize_dequantize_out(
    to: Launcher,
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    block_size: Blocks,
    shift: float,
    offset: bool,
    out: Tensor,
) -> None:
    arguments.check_reals("x", x)
    program = _on_grid(x.dtype, qmin, qmax, shift != 0)
    arguments.check_parameters(("x", x), scale, zero_point, block_size, out, x.dtype)
    _launch(to, program, "x", (x, out, scale, zero_point), block_size, (qmin, qmax, shift, offset))


def _dequantize(
    to: Launcher,
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    dtype: torch.dtype | None,
    compute: torch.dtype | None,
    offset: bool,
) -> Tensor:
    arguments.check_codes(q)
    reals = dtypes.reals_dtype(q.dtype, scale.dtype, dtype)
    compute = dtypes.reals_compute_dtype(compute, reals)
    arguments.check_parameters(("q", q), scale, zero_point, block_size, None, reals)
    out = torch.empty_like(q, dtype=reals, requires_grad=False)
    program = _program("Dequantize", q.dtype, compute, reals)
    _launch(to, program, "q", (q, out, scale, zero_point), block_size, (0, 0, 0.0, offset))
    return out


def _dequantize_out(
    to: Launcher,
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    block_size: Blocks,
    compute: torch.dtype | None,
    offset: bool,
    out: Tensor,
) -> None:
    arguments.check_codes(q)
    reals = dtypes.reals_dtype(q.dtype, scale.dtype, out.dtype)
    compute = dtypes.reals_compute_dtype(compute, reals)
    arguments.check_parameters(("q", q), scale, zero_point, block_size, out, reals)
    program = _program("Dequantize", q.dtype, compute, reals)
    _launch(to, program, "q", (q, out, scale, zero_point), block_size, (0, 0, 0.0, offset))


@lru_cache
def _quantizing(x: torch.dtype, dtype: torch.dtype | None, qmin: int, qmax: int) -> programs.Program:
    arguments.check_grid(qmin, qmax)
    compute = dtypes.compute_dtype(x, qmin, qmax)
    return _program("Quantize", x, compute, dtypes.codes_dtype(x, dtype, qmin, qmax))


@lru_cache
def _on_grid(x: torch.dtype, qmin: int, qmax: int, shifted: bool) -> programs.Program:
    arguments.check_grid(qmin, qmax)
    compute = dtypes.compute_dtype(x, qmin, qmax)
    return _program("QuantizeDequantizeShifted" if shifted else "QuantizeDequantize", x, compute, x)


@lru_cache
def _program(operation: str, x: torch.dtype, compute: torch.dtype, out: torch.dtype) -> programs.Program:
    return programs.forward(operation, *(DTYPES[dtype].name for dtype in (x, compute, out)))


def _launch(
    to: Launcher,
    program: programs.Program,
    name: str,
    tensors: tuple[Tensor, Tensor, Tensor, Tensor | None],
    block_size: Blocks,
    settings: tuple[int, int, float, bool],
) -> None:
    """Start what writes the second of ``tensors``: all were checked, but for the memory behind them."""
    x, out, s, o = tensors
    check_places({name: x, "out": out, "scale": s} | ({} if o is None else {"zero_point": o}))
    if x.numel() == 0:
        return
    none: tuple[int, ...] = ()
    parts = laid_out(
        tuple(x.shape),
        (out.stride(), x.stride()),
        ((tuple(s.shape), s.stride()), (none, none) if o is None else (tuple(o.shape), o.stride())),
        None if block_size is None else tuple(block_size),
        16 // min(x.element_size(), out.element_size()),
        to.gpu(x).processors,
    )
    low, high, shift, is_offset = settings
    for part in parts:
        at_out, at_x, at_s, at_o = part.start
        job = type(part.job).from_buffer_copy(part.job)
        job.x = x.data_ptr() + at_x * x.element_size()
        job.out = out.data_ptr() + at_out * out.element_size()
        given = job.parameters
        given.s = s.data_ptr() + at_s * s.element_size()
        given.o = 0 if o is None else o.data_ptr() + at_o * o.element_size()
        given.s_dtype, given.o_dtype = DTYPES[s.dtype].number, NONE if o is None else DTYPES[o.dtype].number
        given.low, given.high, given.shift, given.is_offset = low, high, shift, is_offset
        to.start(program, x, part.kernel, (part.grid, part.threads), job)


#: By the operators' names: what is launched on CUDA, given the launcher and then what the operator is given.
FORWARD: dict[str, Callable[..., Any]] = {
    "quantize": _quantize,
    "quantize_out": _quantize_out,
    "dequantize": _dequantize,
    "dequantize_out": _dequantize_out,
    "quantize_dequantize": _quantize_dequantize,
    "quantize_dequantize_out": _quantize_dequantize_out,
}
