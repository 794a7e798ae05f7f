"""torchao: ``quantize_affine``, ``dequantize_affine``, ``_fake_quantize_affine`` of ``quant_primitives``.

Integer zero-point domain. Codes of fewer than 8 bits, and of 16 unsigned bits, lie in the next wider dtype that
torchao takes, with ``quant_min`` and ``quant_max``.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from halfeven.conformance.backends.common import installed, quiet_import, storage
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape
from halfeven.reference.profiles import Operation

__all__ = ["load"]

_MODULE = "torchao.quantization.quant_primitives"
_DTYPES = ("int8", "uint8", "int16", "int32")
# The name lost its underscore-free form in 0.12.
_FAKE = ("_fake_quantize_affine", "fake_quantize_affine")


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


def _code_dtype(qmin: int, qmax: int) -> str:
    return storage(qmin, qmax, _DTYPES, library="torchao")


class _Primitives:
    """The functions, as the engine calls them."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.fake = next((n for n in _FAKE if hasattr(module, n)), None)

    def quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        blocks, dtype = _blocks(block_size, tuple(x.shape)), getattr(torch, _code_dtype(qmin, qmax))
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
        blocks, code = _blocks(block_size, tuple(q.shape)), getattr(torch, _code_dtype(qmin, qmax))
        result: Tensor = self.module.dequantize_affine(
            q.to(code), blocks, scale, zero_point, code, qmin, qmax, output_dtype=dtype
        )
        return result

    def fake_quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        blocks, dtype = _blocks(block_size, tuple(x.shape)), getattr(torch, _code_dtype(qmin, qmax))
        assert self.fake is not None
        result: Tensor = getattr(self.module, self.fake)(x, blocks, scale, zero_point, dtype, qmin, qmax)
        return result

    def script(
        self,
        operation: Operation,
        *,
        qmin: int,
        qmax: int,
        block_size: BlockSize | None = None,
        shape: Shape = (),
        dtype: str = "float32",
    ) -> tuple[str, str]:
        code = f"torch.{_code_dtype(qmin, qmax)}"
        tail = f"{_blocks(block_size, shape)}, scale, zero_point, {code}, {qmin}, {qmax}"
        call = {
            "quantize": f"primitives.quantize_affine(x, {tail})",
            "dequantize": f"primitives.dequantize_affine(q.to({code}), {tail}, output_dtype=torch.{dtype})",
            "fake_quantize": f"primitives.{self.fake}(x, {tail})",
        }
        return f"import torch\nfrom {_MODULE.rpartition('.')[0]} import quant_primitives as primitives", call[operation]


def _path() -> str:
    """The affine primitives are Python; the compiled extensions serve other functions."""
    extensions = [p for p in torch.ops.loaded_libraries if "torchao" in p]
    loaded = f"{len(extensions)} compiled extensions loaded" if extensions else "compiled extensions not loaded"
    return f"python, eager torch ({loaded}), {torch.backends.cpu.get_cpu_capability()}"


def load(name: str) -> Backend:
    """The one backend of torchao."""
    primitives = _Primitives(quiet_import(_MODULE))
    operations: dict[Operation, Callable[..., Tensor]] = {
        "quantize": primitives.quantize,
        "dequantize": primitives.dequantize,
    }
    if primitives.fake:
        operations["fake_quantize"] = primitives.fake_quantize
    return Backend(
        name=name,
        profile="torchao",
        operations=operations,
        granularities=("tensor", "channel", "token", "group", "block"),
        dtypes=("float32", "float16", "bfloat16"),
        library="torchao",
        version=installed("torchao") or "",
        path=_path,
        script=primitives.script,
    )
