"""compressed-tensors: ``quantize``, ``dequantize``, ``fake_quantize`` of its forward pass, with integer codes.

The strategy follows the granularity: ``tensor`` or ``channel`` where parameters broadcast, ``group`` along the last
dimension, ``block`` of a matrix. The formulas take parameters that broadcast, and so do not say the last two.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.backends.shim import shim, shimmed_import
from halfeven.conformance.configuration import Configuration
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape

__all__ = ["load"]

_MODULE = "compressed_tensors.quantization"
_MATRIX = 2


def _arguments(grid: Grid, shape: Shape, block_size: BlockSize | None) -> dict[str, Any]:
    """The ``QuantizationArgs`` of a call, as keywords."""
    if grid != Grid.from_bitwidth(grid.bits, signed=True):
        msg = f"qmin={grid.qmin}, qmax={grid.qmax} is not offered by compressed-tensors: it uses all signed codes"
        raise Unsupported(msg)
    return {"num_bits": grid.bits, "symmetric": False} | _strategy(shape, block_size)


def _strategy(shape: Shape, block_size: BlockSize | None) -> dict[str, Any]:
    if block_size is None:
        return {"strategy": "tensor"}
    parts = parameter_shape(shape, block_size)
    if all(p == 1 or b == 1 for p, b in zip(parts, block_size, strict=True)):
        return {"strategy": "channel"}
    size = block_size[-1]
    if len(shape) >= _MATRIX and all(b == 1 for b in block_size[:-1]) and shape[-1] % size == 0:
        return {"strategy": "group", "group_size": size}
    if len(shape) == _MATRIX:
        return {"strategy": "block", "block_structure": list(block_size)}
    msg = (
        f"block_size={block_size} of shape {shape} is not offered by compressed-tensors: it takes whole groups "
        "along the last of two dimensions or more, or blocks of a matrix"
    )
    raise Unsupported(msg)


class _Forward:
    """The functions, as the engine calls them."""

    def __init__(self, module: Any) -> None:
        self.args = module.QuantizationArgs
        self.quantize_, self.dequantize_, self.fake_quantize_ = module.quantize, module.dequantize, module.fake_quantize

    def quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        args = self.args(**_arguments(Grid(qmin, qmax), tuple(x.shape), block_size))
        result: Tensor = self.quantize_(x, scale, zero_point, args)
        return result

    def dequantize(
        self, q: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        args = self.args(**_arguments(Grid(qmin, qmax), tuple(q.shape), block_size))
        result: Tensor = self.dequantize_(q, scale, zero_point, args)
        return result

    def fake_quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        args = self.args(**_arguments(Grid(qmin, qmax), tuple(x.shape), block_size))
        result: Tensor = self.fake_quantize_(x, scale, zero_point, args)
        return result


def _script(c: Configuration) -> tuple[str, str]:
    given = ", ".join(f"{k}={v!r}" for k, v in _arguments(c.grid, c.shape, c.block_size).items())
    x = "q" if c.operation == "dequantize" else "x"
    imports = f"{shim()}from {_MODULE} import QuantizationArgs\nfrom {_MODULE}.lifecycle import forward"
    return imports, f"forward.{c.operation}({x}, scale, zero_point, QuantizationArgs({given}))"


def load(_name: str) -> partial[Backend]:
    """The one backend of compressed-tensors; on the CPU its Triton kernels are not used."""
    shimmed_import("compressed_tensors")
    module = shimmed_import(_MODULE)
    functions = _Forward(module)
    return partial(
        Backend,
        operations={
            "quantize": functions.quantize,
            "dequantize": functions.dequantize,
            "fake_quantize": functions.fake_quantize,
        },
        granularities=("tensor", "channel", "token", "group", "block"),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        path=lambda: f"python, eager torch, {torch.backends.cpu.get_cpu_capability()}",
        script=_script,
        prelude=shim(),
    )
