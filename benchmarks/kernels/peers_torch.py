"""Torch's own functions as peers."""

from typing import Any

import torch
from torch import Tensor

from kernels.cases import QMAX, QMIN, SCALE, ZERO_POINT, Case
from kernels.implementations import Call, Implementation, NotOffered, backward

__all__ = ["PEERS"]

_RECIPROCAL = "multiplies by 1/s"
_LATE = "multiplies by 1/s, rounds after adding z"


def _float32(case: Case) -> None:
    if case.dtype != torch.float32:
        msg = f"takes float32 only, not {case.table.dtype}"
        raise NotOffered(msg)


def _no_blocks(case: Case) -> None:
    if case.block:
        msg = "no blocks"
        raise NotOffered(msg)


def _flat(case: Case) -> tuple[Tensor, Tensor, int]:
    """Scale, zero point and axis per channel."""
    _no_blocks(case)
    return case.scale.reshape(-1), case.zero_point.reshape(-1), case.axis or 0


def _quantize(case: Case) -> Call:
    _float32(case)
    x = case.x
    if case.per_tensor:
        return lambda: torch.quantize_per_tensor(x, SCALE, ZERO_POINT, torch.qint8)
    s, z, axis = _flat(case)
    return lambda: torch.quantize_per_channel(x, s, z, axis, torch.qint8)


def _dequantize(case: Case) -> Call:
    _no_blocks(case)
    if case.per_tensor:
        made: Any = torch._make_per_tensor_quantized_tensor(case.codes, SCALE, ZERO_POINT)  # noqa: SLF001 - no other way in
    else:
        made = torch._make_per_channel_quantized_tensor(case.codes, *_flat(case))  # noqa: SLF001
    return made.dequantize


def _fake(case: Case, x: Tensor) -> Tensor:
    if case.per_tensor:
        return torch.fake_quantize_per_tensor_affine(x, SCALE, ZERO_POINT, QMIN, QMAX)
    return torch.fake_quantize_per_channel_affine(x, *_flat(case), QMIN, QMAX)


def _fake_quantize(case: Case) -> Call:
    _no_blocks(case)
    return lambda: _fake(case, case.x)


def _fake_backward(case: Case) -> Call:
    x = case.x.detach().requires_grad_()
    return backward(_fake(case, x), case.grad, x)


def _learnable_backward(case: Case) -> Call:
    if case.per_tensor:
        function, extra = torch._fake_quantize_learnable_per_tensor_affine, ()  # noqa: SLF001 - the name it has
    else:
        function, extra = torch._fake_quantize_learnable_per_channel_affine, (_flat(case)[2],)  # type: ignore[assignment]  # noqa: SLF001
    # The parameters must be flat leaves, or reshaping them would be measured too.
    given = (case.x, case.scale.reshape(-1), case.zero_point.float().reshape(-1))
    x, s, z = (t.detach().requires_grad_() for t in given)
    return backward(function(x, s, z, *extra, QMIN, QMAX), case.grad, x, s, z)


def _decomposed() -> Any:
    import torch.ao.quantization.fx._decomposed

    return torch.ops.quantized_decomposed


def _decomposed_quantize(case: Case) -> Call:
    ops, x = _decomposed(), case.x
    grid = (QMIN, QMAX, torch.int8)
    if case.per_tensor:
        return lambda: ops.quantize_per_tensor(x, SCALE, ZERO_POINT, *grid)
    if case.block:
        s, z, block = case.scale, case.zero_point, case.block
        return lambda: ops.quantize_per_channel_group(x, s, z, *grid, block)
    s, z, axis = _flat(case)
    return lambda: ops.quantize_per_channel(x, s, z, axis, *grid)


def _decomposed_dequantize(case: Case) -> Call:
    ops, q = _decomposed(), case.codes
    grid = (QMIN, QMAX, torch.int8)
    if case.per_tensor:
        return lambda: ops.dequantize_per_tensor(q, SCALE, ZERO_POINT, *grid, out_dtype=case.dtype)
    if case.block:
        s, z, block = case.scale, case.zero_point, case.block
        return lambda: ops.dequantize_per_channel_group(q, s, z, *grid, block, case.dtype)
    s, z, axis = _flat(case)
    return lambda: ops.dequantize_per_channel(q, s, z, axis, *grid, out_dtype=case.dtype)


def _reduced(case: Case, t: Tensor) -> tuple[Tensor, int | None]:
    """The tensor, and the dimension to reduce."""
    if case.block:
        return t.view(case.shape[0], -1, case.block), -1
    return t, None if case.axis is None else 1 - case.axis


def _aminmax(case: Case) -> Call:
    x, dim = _reduced(case, case.x)
    return (lambda: torch.aminmax(x)) if dim is None else (lambda: torch.aminmax(x, dim=dim))


def _amin_amax(case: Case) -> Call:
    x, dim = _reduced(case, case.x)
    dims = () if dim is None else (dim,)
    return lambda: (x.amin(dims), x.amax(dims))


def _amax(case: Case) -> Call:
    x, dim = _reduced(case, case.x)
    dims = () if dim is None else (dim,)
    return lambda: x.abs().amax(dims)


PEERS = (
    Implementation("torch.quantize_per_*", "torch", {"quantize": _quantize}, note=_LATE),
    Implementation("torch quantized tensor", "torch", {"dequantize": _dequantize}),
    Implementation(
        "torch.fake_quantize_per_*",
        "torch",
        {"fake quantize": _fake_quantize, "backward, x": _fake_backward},
        note=f"{_LATE}; gradients times a mask, so -0.0",
    ),
    Implementation(
        "torch learnable fake quantize",
        "torch",
        {"backward, x and parameters": _learnable_backward},
        note=f"{_LATE}; gradients times a mask, so -0.0; sums in float32",
    ),
    Implementation(
        "torch quantized_decomposed",
        "torch",
        {"quantize": _decomposed_quantize, "dequantize": _decomposed_dequantize},
        note=_RECIPROCAL,
    ),
    Implementation("torch.aminmax", "torch", {"aminmax": _aminmax}),
    Implementation("torch.amin, torch.amax", "torch", {"aminmax": _amin_amax}),
    Implementation("torch.abs, torch.amax", "torch", {"amax": _amax}),
)
