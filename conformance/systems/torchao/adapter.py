"""torchao: ``quantize_affine``, ``dequantize_affine``, ``_fake_quantize_affine`` of ``quant_primitives``.

Integer zero-point domain. Codes of fewer than 8 bits, and of 16 unsigned bits, lie in the next wider dtype that
torchao takes, with ``quant_min`` and ``quant_max``.
"""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from halfeven.conformance.backends.common import quiet_import, storage
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.configuration import Configuration
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape

__all__ = ["load"]

_MODULE = "torchao.quantization.quant_primitives"
_DTYPES = ("int8", "uint8", "int16", "int32")


def _blocks(block_size: BlockSize | None, shape: Shape) -> BlockSize:
    """Torchao's block size: the whole shape per tensor; it cuts no short blocks."""
    if block_size is None:
        return shape
    if 0 in parameter_shape(shape, block_size):
        msg = f"block_size={block_size} of shape {shape} is not offered by torchao: it takes no empty zero point"
        raise Unsupported(msg)
    # A block of a dimension's whole length must say that length, so that torchao reduces the dimension.
    whole = tuple(min(n, b) for n, b in zip(shape, block_size, strict=True))
    if any(b and n % b for n, b in zip(shape, whole, strict=True)):
        msg = f"block_size={block_size} of shape {shape} is not offered by torchao: it cuts no short blocks"
        raise Unsupported(msg)
    return whole


def _code_dtype(grid: Grid) -> str:
    return storage(grid, _DTYPES, library="torchao")


def _fake_name(module: Any) -> str:
    """Fake quantize lost its public name after 0.11."""
    return next(name for name in ("_fake_quantize_affine", "fake_quantize_affine") if hasattr(module, name))


class _Primitives:
    """The functions, as the engine calls them."""

    def __init__(self, module: Any) -> None:
        self.module = module

    def quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        blocks, dtype = _blocks(block_size, tuple(x.shape)), getattr(torch, _code_dtype(Grid(qmin, qmax)))
        result: Tensor = self.module.quantize_affine(x, blocks, scale, zero_point, dtype, qmin, qmax)
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
        blocks, code = _blocks(block_size, tuple(q.shape)), getattr(torch, _code_dtype(Grid(qmin, qmax)))
        result: Tensor = self.module.dequantize_affine(
            q.to(code), blocks, scale, zero_point, code, qmin, qmax, output_dtype=dtype
        )
        return result

    def fake_quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        blocks, dtype = _blocks(block_size, tuple(x.shape)), getattr(torch, _code_dtype(Grid(qmin, qmax)))
        function = getattr(self.module, _fake_name(self.module))
        result: Tensor = function(x, blocks, scale, zero_point, dtype, qmin, qmax)
        return result

    def script(self, c: Configuration) -> tuple[str, str]:
        code = f"torch.{_code_dtype(c.grid)}"
        tail = f"{_blocks(c.block_size, c.shape)}, scale, zero_point, {code}, {c.grid.qmin}, {c.grid.qmax}"
        call = {
            "quantize": f"quantize_affine(x, {tail})",
            "dequantize": f"dequantize_affine(q.to({code}), {tail}, output_dtype=torch.{c.dtype})",
            "fake_quantize": f"{_fake_name(self.module)}(x, {tail})",
        }
        package = _MODULE.rpartition(".")[0]
        return f"import torch\nfrom {package} import quant_primitives", f"quant_primitives.{call[c.operation]}"


def _path() -> str:
    """The affine primitives are Python; the compiled extensions serve other functions."""
    extensions = [p for p in torch.ops.loaded_libraries if "torchao" in p]
    loaded = f"{len(extensions)} compiled extensions loaded" if extensions else "compiled extensions not loaded"
    return f"python, eager torch ({loaded}), {torch.backends.cpu.get_cpu_capability()}"


def load(_name: str) -> partial[Backend]:
    """The one backend of torchao."""
    primitives = _Primitives(quiet_import(_MODULE))
    return partial(
        Backend,
        operations={
            "quantize": primitives.quantize,
            "dequantize": primitives.dequantize,
            "fake_quantize": primitives.fake_quantize,
        },
        granularities=("tensor", "channel", "token", "group", "block"),
        dtypes=("float32", "float16", "bfloat16"),
        path=_path,
        script=primitives.script,
    )
