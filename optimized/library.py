"""``torch.ops.halfeven``: the operators' schemas, and what torch is told of each: kernels, shapes, gradients, vmap."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized import arguments, batching, gradients, kernels
from halfeven.optimized.kernels import chunked
from halfeven.optimized.registration import OPS, Operator, register

__all__ = ["OPS", "SCHEMAS"]

_PARAMETERS = "Tensor scale, Tensor? zero_point"
_GRID = "int qmin, int qmax"
_NEEDS = "bool need_x, bool need_scale, bool need_zero_point"
SCHEMAS: dict[str, str] = {
    "quantize": f"(Tensor x, {_PARAMETERS}, {_GRID}, SymInt[]? block_size, ScalarType? dtype, bool offset) -> Tensor",
    "quantize_out": f"(Tensor x, {_PARAMETERS}, {_GRID}, SymInt[]? block_size, bool offset, Tensor(a!) out) -> ()",
    "dequantize": (
        f"(Tensor q, {_PARAMETERS}, SymInt[]? block_size, ScalarType? dtype, ScalarType? compute, bool offset)"
        " -> Tensor"
    ),
    "dequantize_out": (
        f"(Tensor q, {_PARAMETERS}, SymInt[]? block_size, ScalarType? compute, bool offset, Tensor(a!) out) -> ()"
    ),
    "quantize_dequantize": (
        f"(Tensor x, {_PARAMETERS}, {_GRID}, SymInt[]? block_size, float shift, bool offset) -> Tensor"
    ),
    "quantize_dequantize_out": (
        f"(Tensor x, {_PARAMETERS}, {_GRID}, SymInt[]? block_size, float shift, bool offset, Tensor(a!) out) -> ()"
    ),
    "quantize_backward": (
        f"(Tensor grad, Tensor x, {_PARAMETERS}, {_GRID}, SymInt[]? block_size, bool offset, {_NEEDS})"
        " -> (Tensor, Tensor, Tensor)"
    ),
    "dequantize_backward": (
        f"(Tensor grad, Tensor q, {_PARAMETERS}, SymInt[]? block_size, ScalarType? compute, bool offset,"
        " bool need_q, bool need_scale, bool need_zero_point) -> (Tensor, Tensor, Tensor)"
    ),
    "quantize_dequantize_backward": (
        f"(Tensor grad, Tensor x, {_PARAMETERS}, {_GRID}, SymInt[]? block_size, float shift, bool offset, {_NEEDS})"
        " -> (Tensor, Tensor, Tensor)"
    ),
    "aminmax": "(Tensor x, SymInt[]? block_size) -> (Tensor, Tensor)",
    "amax": "(Tensor x, SymInt[]? block_size) -> Tensor",
}


def _together(*tensors: Any) -> None:
    """Else a meta tensor among others would bring a call here that was to write a result."""
    devices = {t.device for t in tensors if isinstance(t, Tensor)}
    if len(devices) > 1:
        msg = f"tensors on {', '.join(sorted(map(str, devices)))} are not accepted: give all on one device"
        raise RuntimeError(msg)


def _like(x: Tensor, *given: Any) -> Tensor:
    _together(x, *given)
    return torch.empty_like(x, requires_grad=False)


def _codes(x: Tensor, *given: Any) -> Tensor:
    _together(x, *given)
    return torch.empty_like(x, dtype=given[-2] or x.dtype, requires_grad=False)


def _reals(q: Tensor, scale: Tensor, *given: Any) -> Tensor:
    _together(q, scale, *given)
    own = q.dtype if q.dtype.is_floating_point else scale.dtype
    return torch.empty_like(q, dtype=given[-3] or own, requires_grad=False)


def _nothing(*given: Any) -> None:
    _together(*given)


def _each_gradient(*tensors: Any) -> tuple[Tensor, ...]:
    _together(*tensors)
    x, scale, zero_point = tensors[1:4]
    wanted = zip(
        (x, scale, zero_point), tensors[-3:], (torch.preserve_format, *[torch.contiguous_format] * 2), strict=True
    )
    return tuple(
        x.new_empty((0,)) if t is None or not needed else torch.empty_like(t, memory_format=layout, requires_grad=False)
        for t, needed, layout in wanted
    )


def _end(x: Tensor, block_size: Sequence[int] | None) -> Tensor:
    return x.new_empty(() if block_size is None else arguments.block_shape(x.shape, block_size))


def _ends(x: Tensor, block_size: Sequence[int] | None) -> tuple[Tensor, Tensor]:
    return _end(x, block_size), _end(x, block_size)


# Shapes and dtypes of the results, for tracing.
_FAKE: dict[str, Callable[..., Any]] = {
    "quantize": _codes,
    "quantize_out": _nothing,
    "dequantize": _reals,
    "dequantize_out": _nothing,
    "quantize_dequantize": _like,
    "quantize_dequantize_out": _nothing,
    "quantize_backward": _each_gradient,
    "dequantize_backward": _each_gradient,
    "quantize_dequantize_backward": _each_gradient,
    "aminmax": _ends,
    "amax": _end,
}
# Where the block size stands among the arguments after the zero point.
_BLOCK_SIZE = {"quantize": 2, "dequantize": 0, "quantize_dequantize": 2}

register(
    {
        name: Operator(
            schema,
            chunked.IMPLEMENTATIONS[name],
            _FAKE[name],
            backward=gradients.GRADIENTS.get(name),
            keep=gradients.keep,
            vmap=batching.rule(name, _BLOCK_SIZE[name]) if name in _BLOCK_SIZE else None,
        )
        for name, schema in SCHEMAS.items()
    }
)
kernels.load()
