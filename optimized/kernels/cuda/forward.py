"""The forward operators on a GPU: checked, laid out, launched.

What a call's dtypes, shapes, strides and settings decide is decided once, and kept: of a call that is made again only
the addresses are looked at.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor

from halfeven.optimized import arguments
from halfeven.optimized.arguments import Blocks, dtypes
from halfeven.optimized.arguments.memory import check_out, extent
from halfeven.optimized.kernels.cuda import launcher, programs
from halfeven.optimized.kernels.cuda.layout import ForwardRows, ForwardStrided, laid_out
from halfeven.optimized.kernels.cuda.memory import DTYPES, NONE, check_places

__all__ = ["FORWARD"]

Launcher = launcher.Launcher
_Size = tuple[int, int, int]
_MOST_PLANS = 4096


class _Call(NamedTuple):
    """A call of an operator.

    Attributes:
        x, scale, zero_point, out: the tensors; ``out`` is None where the result is to be made.
        block_size: as the operator has it.
        settings: the ends of the grid, the shift, and whether the zero point is an offset.
        dtypes: those that are asked for, of the result and of the arithmetic.
    """

    x: Tensor
    scale: Tensor
    zero_point: Tensor | None
    out: Tensor | None
    block_size: Blocks
    settings: tuple[int, int, float, bool] = (0, 0, 0.0, False)
    dtypes: tuple[torch.dtype | None, torch.dtype | None] = (None, None)

    @property
    def key(self) -> tuple[Any, ...]:
        """All but the addresses."""
        block = None if self.block_size is None else tuple(self.block_size)
        tensors = (self.x, self.scale, self.zero_point, self.out)
        forms = [None if t is None else (t.dtype, t.shape, t.stride(), t.device) for t in tensors]
        return *forms, block, self.settings, self.dtypes


@dataclass(frozen=True)
class _Prepared:
    """A launch: ``job`` lacks the addresses, ``after`` is by how many bytes each operand begins later."""

    kernel: str
    sizes: tuple[_Size, _Size]
    job: ForwardRows | ForwardStrided
    after: tuple[int, int, int, int]


@dataclass(frozen=True)
class _Plan:
    """What calls of one key come to.

    Attributes:
        program: what is launched.
        result: the dtype of what is made.
        extents: of x, out, scale and zero point the bytes from the first element to the end of the last.
        in_place: whether ``out`` may be x, as it lies.
        launches: what is started, one after the other.
    """

    program: programs.Program
    result: torch.dtype
    extents: tuple[int, int, int, int]
    in_place: bool
    launches: tuple[_Prepared, ...]


_Checked = Callable[[_Call], tuple[programs.Program, torch.dtype]]


def _computed(to: Launcher, name: str, call: _Call, checked: _Checked) -> Tensor:
    """The result. Of a call that is like one before, but for addresses, these alone are checked.

    Args:
        to: what launches.
        name: of the operator's first argument.
        call: the arguments.
        checked: refuses them, or gives the program and the dtype of the result.
    """
    x, out = call.x, call.out
    key = (checked, to.device(x), *call.key)  # the device as the driver counts, too
    plan = to.plans.get(key)
    if plan is None:
        program, result = checked(call)
        made = torch.empty_like(x, dtype=result, requires_grad=False) if out is None else out
        check_places(_named(name, call, made))
        if x.numel() == 0:
            return made
        plan = _plan(to, call, made, program, result)
        if len(to.plans) >= _MOST_PLANS:
            to.plans.clear()
        if not math.isnan(call.settings[2]):  # it is like no shift before
            to.plans[key] = plan
    else:
        made = torch.empty_like(x, dtype=plan.result, requires_grad=False) if out is None else out
    _launch(to, name, call, made, plan)
    return made


def _named(name: str, call: _Call, made: Tensor) -> dict[str, Tensor]:
    tensors = {name: call.x, "out": made, "scale": call.scale, "zero_point": call.zero_point}
    return {n: t for n, t in tensors.items() if t is not None}


def _plan(to: Launcher, call: _Call, out: Tensor, program: programs.Program, result: torch.dtype) -> _Plan:
    x, s, o = call.x, call.scale, call.zero_point
    none: tuple[int, ...] = ()
    parts = laid_out(
        tuple(x.shape),
        (out.stride(), x.stride()),
        ((tuple(s.shape), s.stride()), (none, none) if o is None else (tuple(o.shape), o.stride())),
        None if call.block_size is None else tuple(call.block_size),
        16 // min(x.element_size(), out.element_size()),
        to.gpu(x).processors,
    )
    items = [0 if t is None else t.element_size() for t in (out, x, s, o)]
    launches = []
    for part in parts:
        job = type(part.job).from_buffer_copy(part.job)
        given = job.parameters
        given.s_dtype, given.o_dtype = DTYPES[s.dtype].number, NONE if o is None else DTYPES[o.dtype].number
        given.low, given.high, given.shift, given.is_offset = call.settings
        at_out, at_x, at_s, at_o = (n * item for n, item in zip(part.start, items, strict=True))
        launches.append(_Prepared(part.kernel, (part.grid, part.threads), job, (at_x, at_out, at_s, at_o)))
    return _Plan(
        program,
        result,
        (extent(x), extent(out), extent(s), 0 if o is None else extent(o)),
        (x.dtype, x.shape, x.stride()) == (out.dtype, out.shape, out.stride()),
        tuple(launches),
    )


def _launch(to: Launcher, name: str, call: _Call, made: Tensor, plan: _Plan) -> None:
    """Launch, if the addresses are accepted."""
    x, s, o = call.x, call.scale, call.zero_point
    at_x, at_out, at_s = x.data_ptr(), made.data_ptr(), s.data_ptr()
    at_o = 0 if o is None else o.data_ptr()
    tensors = (x, made, s) if o is None else (x, made, s, o)
    for t, at, size in zip(tensors, (at_x, at_out, at_s, at_o), plan.extents, strict=False):
        item = t.element_size()
        if at % item or t.storage_offset() * item + size > t.untyped_storage().nbytes():
            check_places(_named(name, call, made))
    if call.out is not None:
        end = at_out + plan.extents[1]
        read = zip((at_x, at_s, at_o), (plan.extents[0], *plan.extents[2:]), strict=True)
        near = [at for at, size in read if at < end and at_out < at + size]
        if near and not (plan.in_place and near == [at_x] == [at_out]):
            inputs = {n: t for n, t in _named(name, call, made).items() if n != "out"}
            check_out(made, plan.result, inputs)
    for launch in plan.launches:
        job = type(launch.job).from_buffer_copy(launch.job)
        after = launch.after
        job.x, job.out = at_x + after[0], at_out + after[1]
        job.parameters.s, job.parameters.o = at_s + after[2], at_o + after[3]
        to.start(plan.program, x, launch.kernel, launch.sizes, job)


def _quantized(call: _Call) -> tuple[programs.Program, torch.dtype]:
    x, (qmin, qmax, *_) = call.x, call.settings
    arguments.check_reals("x", x)
    arguments.check_grid(qmin, qmax)
    compute = dtypes.compute_dtype(x.dtype, qmin, qmax)
    asked = call.dtypes[0] if call.out is None else call.out.dtype
    result = dtypes.codes_dtype(x.dtype, asked, qmin, qmax)
    arguments.check_parameters(("x", x), call.scale, call.zero_point, call.block_size, call.out, result)
    return _program("Quantize", x.dtype, compute, result), result


def _on_grid(call: _Call) -> tuple[programs.Program, torch.dtype]:
    x, (qmin, qmax, shift, _) = call.x, call.settings
    arguments.check_reals("x", x)
    arguments.check_grid(qmin, qmax)
    compute = dtypes.compute_dtype(x.dtype, qmin, qmax)
    arguments.check_parameters(("x", x), call.scale, call.zero_point, call.block_size, call.out, x.dtype)
    return _program("QuantizeDequantizeShifted" if shift else "QuantizeDequantize", x.dtype, compute, x.dtype), x.dtype


def _reals(call: _Call) -> tuple[programs.Program, torch.dtype]:
    q = call.x
    arguments.check_codes(q)
    asked, compute = call.dtypes
    reals = dtypes.reals_dtype(q.dtype, call.scale.dtype, asked if call.out is None else call.out.dtype)
    compute = dtypes.reals_compute_dtype(compute, reals)
    arguments.check_parameters(("q", q), call.scale, call.zero_point, call.block_size, call.out, reals)
    return _program("Dequantize", q.dtype, compute, reals), reals


def _program(operation: str, x: torch.dtype, compute: torch.dtype, out: torch.dtype) -> programs.Program:
    return programs.forward(operation, *(DTYPES[dtype].name for dtype in (x, compute, out)))


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
    settings = (qmin, qmax, 0.0, offset)
    return _computed(to, "x", _Call(x, scale, zero_point, None, block_size, settings, (dtype, None)), _quantized)


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
    _computed(to, "x", _Call(x, scale, zero_point, out, block_size, (qmin, qmax, 0.0, offset)), _quantized)


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
    return _computed(to, "x", _Call(x, scale, zero_point, None, block_size, (qmin, qmax, shift, offset)), _on_grid)


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
    _computed(to, "x", _Call(x, scale, zero_point, out, block_size, (qmin, qmax, shift, offset)), _on_grid)


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
    settings = (0, 0, 0.0, offset)
    return _computed(to, "q", _Call(q, scale, zero_point, None, block_size, settings, (dtype, compute)), _reals)


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
    settings = (0, 0, 0.0, offset)
    _computed(to, "q", _Call(q, scale, zero_point, out, block_size, settings, (None, compute)), _reals)


#: By the operators' names: what is launched on CUDA, given the launcher and then what the operator is given.
FORWARD: dict[str, Callable[..., Any]] = {
    "quantize": _quantize,
    "quantize_out": _quantize_out,
    "dequantize": _dequantize,
    "dequantize_out": _dequantize_out,
    "quantize_dequantize": _quantize_dequantize,
    "quantize_dequantize_out": _quantize_dequantize_out,
}
