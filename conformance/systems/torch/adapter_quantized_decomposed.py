"""torch: ``torch.ops.quantized_decomposed``, the operators that an exported graph holds."""

import math
from functools import partial
from typing import Any

import torch
from torch import Tensor

from halfeven.conformance.backends.common import (
    group_size,
    no_blocks,
    one_each,
    quiet_import,
    storage,
    token_blocks,
)
from halfeven.conformance.backends.protocol import Backend, Unsupported, channel_axis
from halfeven.conformance.configuration import Configuration, Granularity
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape

__all__ = ["load"]

_PREFIX = "torch.quantized_decomposed.per_"
_MODULE = "torch.ao.quantization.fx._decomposed"
_GRANULARITY: dict[str, Granularity] = {
    "tensor": "tensor",
    "channel": "channel",
    "token": "token",
    "channel_group": "group",
}
# All but per token refuse float64.
_DTYPES = ("float32", "float16", "bfloat16")
# The kinds whose dequantize takes the dtype of the reals by keyword only.
_BY_KEYWORD = {"tensor", "channel"}


def _extra(kind: str, block_size: BlockSize | None, shape: Shape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """What stands before the grid (an axis), and after the dtype (a group size)."""
    function = f"quantized_decomposed.quantize_per_{kind}"
    match kind:
        case "tensor":
            no_blocks(block_size, function)
            return (), ()
        case "channel":
            axis = channel_axis(block_size or (), shape)
            one_each(math.prod(parameter_shape(shape, block_size or ())), shape[axis], function)
            return (axis,), ()
        case "token":
            token_blocks(block_size, shape, function)
            one_each(math.prod(parameter_shape(shape, block_size or ())), math.prod(shape[:-1]), function)
            return (), ()
        case _:
            return (), (group_size(block_size, shape, function),)


class _Operators:
    """The operators of one kind, as the engine calls them."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.ops: Any = torch.ops.quantized_decomposed

    def quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        axis, group = _extra(self.kind, block_size, tuple(x.shape))
        if group and bool(x.isnan().any()):
            msg = "x with NaN is not offered by quantized_decomposed.quantize_per_channel_group: it refuses NaN"
            raise Unsupported(msg)
        s, z = (scale.reshape(-1), zero_point.reshape(-1)) if axis else (scale, zero_point)
        function = getattr(self.ops, f"quantize_per_{self.kind}")
        code = getattr(torch, storage(Grid(qmin, qmax)))
        result: Tensor = function(x, s, z, *axis, qmin, qmax, code, *group)
        return result

    def dequantize(
        self,
        q: Tensor,
        scale: Tensor,
        zero_point: Tensor,
        *,
        qmin: int,
        qmax: int,
        block_size: BlockSize | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> Tensor:
        axis, group = _extra(self.kind, block_size, tuple(q.shape))
        s, z = (scale.reshape(-1), zero_point.reshape(-1)) if axis else (scale, zero_point)
        function = getattr(self.ops, f"dequantize_per_{self.kind}")
        if self.kind in _BY_KEYWORD:
            result: Tensor = function(q, s, z, *axis, qmin, qmax, q.dtype, out_dtype=dtype)
        else:
            result = function(q, s, z, qmin, qmax, q.dtype, *group, dtype)
        return result

    def script(self, c: Configuration) -> tuple[str, str]:
        axis, group = _extra(self.kind, c.block_size, c.shape)
        parameters = ("scale.reshape(-1)", "zero_point.reshape(-1)") if axis else ("scale", "zero_point")
        given: list[object] = [*parameters, *axis, c.grid.qmin, c.grid.qmax, f"torch.{storage(c.grid)}", *group]
        keyword = "out_dtype=" if self.kind in _BY_KEYWORD else ""
        match c.operation:
            case "dequantize":
                given = ["q", *given, f"{keyword}torch.{c.dtype}"]
            case _:
                given = ["x", *given]
        call = f"torch.ops.quantized_decomposed.{c.operation}_per_{self.kind}"
        return f"import torch\nimport {_MODULE}", f"{call}({', '.join(map(str, given))})"


def load(name: str) -> partial[Backend]:
    """The operators of one kind: per_tensor, per_channel, per_token, per_channel_group."""
    quiet_import(_MODULE)
    kind = name.removeprefix(_PREFIX)
    operators = _Operators(kind)
    return partial(
        Backend,
        operations={"quantize": operators.quantize, "dequantize": operators.dequantize},
        granularities=(_GRANULARITY[kind],),
        dtypes=_DTYPES,
        path=lambda: f"composite operators, eager, {torch.backends.cpu.get_cpu_capability()}",
        script=operators.script,
    )
