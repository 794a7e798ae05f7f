"""``torch.ops.halfeven``: the operators' schemas, and what torch is told of each: kernels, shapes, gradients, vmap."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments, kernels
from halfeven.optimized.arguments import Blocks, dtypes
from halfeven.optimized.kernels import chunked, cuda
from halfeven.optimized.operators import batching, gradients
from halfeven.optimized.operators.registration import OPS, Operator, register

__all__ = ["OPERATORS", "OPS"]  # OPS, so that whoever takes it from here has the operators in it


def _together(*tensors: Any) -> None:
    """Else a meta tensor among others would bring a call here that was to write a result."""
    devices = {t.device for t in tensors if isinstance(t, Tensor)}
    if len(devices) > 1:
        msg = f"tensors on {', '.join(sorted(map(str, devices)))} are not accepted: give all on one device"
        raise RuntimeError(msg)


def _like(x: Tensor, *given: Any) -> Tensor:
    _together(x, *given)
    return torch.empty_like(x, requires_grad=False)


def _codes(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    _qmin: int,
    _qmax: int,
    _block_size: Blocks,
    dtype: torch.dtype | None,
    _offset: bool,
) -> Tensor:
    _together(x, scale, zero_point)
    return torch.empty_like(x, dtype=dtype, requires_grad=False)


def _reals(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    _block_size: Blocks,
    dtype: torch.dtype | None,
    _compute: torch.dtype | None,
    _offset: bool,
) -> Tensor:
    _together(q, scale, zero_point)
    return torch.empty_like(q, dtype=dtypes.reals_dtype(q.dtype, scale.dtype, dtype), requires_grad=False)


def _nothing(*given: Any) -> None:
    _together(*given)


def _each_gradient(grad: Tensor, x: Tensor, scale: Tensor, zero_point: Tensor | None, *rest: Any) -> tuple[Tensor, ...]:
    _together(grad, x, scale, zero_point)
    *_, need_x, need_scale, need_zero_point = rest
    wanted = (
        (x, need_x, torch.preserve_format),
        (scale, need_scale, torch.contiguous_format),
        (zero_point, need_zero_point, torch.contiguous_format),
    )
    return tuple(
        x.new_empty((0,)) if t is None or not needed else torch.empty_like(t, memory_format=layout, requires_grad=False)
        for t, needed, layout in wanted
    )


def _end(x: Tensor, block_size: Blocks) -> Tensor:
    return x.new_empty(() if block_size is None else arguments.block_counts(x.shape, block_size))


def _ends(x: Tensor, block_size: Blocks) -> tuple[Tensor, Tensor]:
    return _end(x, block_size), _end(x, block_size)


_X = "Tensor x, Tensor scale, Tensor? zero_point, int qmin, int qmax, SymInt[]? block_size"
_Q = "Tensor q, Tensor scale, Tensor? zero_point, SymInt[]? block_size"
_NEEDS = "bool need_scale, bool need_zero_point"
_THREE = "(Tensor, Tensor, Tensor)"
# The schema of each, and what has the shapes and dtypes of its results, for tracing.
_TABLE: dict[str, tuple[str, Callable[..., Any]]] = {
    "quantize": (f"({_X}, ScalarType? dtype, bool offset) -> Tensor", _codes),
    "quantize_out": (f"({_X}, bool offset, Tensor(a!) out) -> ()", _nothing),
    "dequantize": (f"({_Q}, ScalarType? dtype, ScalarType? compute, bool offset) -> Tensor", _reals),
    "dequantize_out": (f"({_Q}, ScalarType? compute, bool offset, Tensor(a!) out) -> ()", _nothing),
    "quantize_dequantize": (f"({_X}, float shift, bool offset) -> Tensor", _like),
    "quantize_dequantize_out": (f"({_X}, float shift, bool offset, Tensor(a!) out) -> ()", _nothing),
    "quantize_backward": (f"(Tensor grad, {_X}, bool offset, bool need_x, {_NEEDS}) -> {_THREE}", _each_gradient),
    "dequantize_backward": (
        f"(Tensor grad, {_Q}, ScalarType? compute, bool offset, bool need_q, {_NEEDS}) -> {_THREE}",
        _each_gradient,
    ),
    "quantize_dequantize_backward": (
        f"(Tensor grad, {_X}, float shift, bool offset, bool need_x, {_NEEDS}) -> {_THREE}",
        _each_gradient,
    ),
    "aminmax": ("(Tensor x, SymInt[]? block_size) -> (Tensor, Tensor)", _ends),
    "amax": ("(Tensor x, SymInt[]? block_size) -> Tensor", _end),
}


def _operator(name: str, schema: str, fake: Callable[..., Any]) -> Operator:
    own, on_cuda = chunked.IMPLEMENTATIONS[name], cuda.IMPLEMENTATIONS.get(name)
    if name not in gradients.GRADIENTS:
        return Operator(schema, own, fake, cuda=on_cuda)
    after_zero_point = schema.partition(" block_size")[0].count(",") - 3
    return Operator(
        schema,
        own,
        fake,
        backward=gradients.GRADIENTS[name],
        keep=gradients.keep_parameters,
        vmap=batching.rule(name, after_zero_point),
        cuda=on_cuda,
    )


OPERATORS = {name: _operator(name, *row) for name, row in _TABLE.items()}
register(OPERATORS)
kernels.load()
