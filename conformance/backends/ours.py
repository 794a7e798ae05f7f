"""This project's own functions: ``halfeven.optimized.affine``, with float codes and with integer codes."""

from typing import Any

import torch
from torch import Tensor

from halfeven.conformance.backends.common import installed, storage
from halfeven.conformance.backends.protocol import Backend
from halfeven.optimized import affine
from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.profiles import Operation

__all__ = ["load"]

_IMPORTS = "import torch\nfrom halfeven.optimized import affine"


def _quantize(
    x: Tensor, scale: Tensor, offset: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Tensor:
    return affine.quantize(x, scale, -offset, qmin=qmin, qmax=qmax, block_size=block_size)


def _dequantize(q: Tensor, scale: Tensor, offset: Tensor, *, block_size: BlockSize | None = None) -> Tensor:
    return affine.dequantize(q, scale, -offset, block_size=block_size)


def _fake_quantize(
    x: Tensor, scale: Tensor, offset: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Tensor:
    return affine.quantize_dequantize(x, scale, -offset, qmin=qmin, qmax=qmax, block_size=block_size)


def _quantize_integer(
    x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Tensor:
    dtype = getattr(torch, storage(qmin, qmax))
    return affine.quantize(x, scale, zero_point, qmin=qmin, qmax=qmax, block_size=block_size, dtype=dtype)


def _dequantize_integer(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor,
    *,
    block_size: BlockSize | None = None,
    dtype: torch.dtype | None = None,
) -> Tensor:
    return affine.dequantize(q, scale, zero_point, block_size=block_size, dtype=dtype)


def _script(
    operation: Operation,
    *,
    qmin: int,
    qmax: int,
    block_size: BlockSize | None = None,
    shape: Shape = (),
    dtype: str = "float32",
) -> tuple[str, str]:
    del shape, dtype
    grid = f"qmin={qmin}, qmax={qmax}, block_size={block_size}"
    call = {
        "quantize": f"affine.quantize(x, scale, -offset, {grid})",
        "dequantize": f"affine.dequantize(q, scale, -offset, block_size={block_size})",
        "fake_quantize": f"affine.quantize_dequantize(x, scale, -offset, {grid})",
    }
    return _IMPORTS, call[operation]


def _script_integer(
    operation: Operation,
    *,
    qmin: int,
    qmax: int,
    block_size: BlockSize | None = None,
    shape: Shape = (),
    dtype: str = "float32",
) -> tuple[str, str]:
    del shape
    grid = f"qmin={qmin}, qmax={qmax}, block_size={block_size}"
    call = {
        "quantize": f"affine.quantize(x, scale, zero_point, {grid}, dtype=torch.{storage(qmin, qmax)})",
        "dequantize": f"affine.dequantize(q, scale, zero_point, block_size={block_size}, dtype=torch.{dtype})",
        "fake_quantize": f"affine.quantize_dequantize(x, scale, zero_point, {grid})",
    }
    return _IMPORTS, call[operation]


def load(name: str) -> Backend:
    """``halfeven`` (float codes, an offset) or ``halfeven.integer`` (integer codes, a zero point)."""
    integer = name == "halfeven.integer"
    common: dict[str, Any] = {
        "name": name,
        "granularities": ("tensor", "channel", "token", "group", "block"),
        # In 16 bits AIMET widens the arithmetic, ONNX does not, and one function cannot do both.
        "dtypes": ("float32", "float64") if integer else ("float32", "float64", "float16", "bfloat16"),
        "library": "halfeven",
        "version": installed("halfeven") or "",
        "path": lambda: f"eager torch {torch.__version__}, {torch.backends.cpu.get_cpu_capability()}",
    }
    if integer:
        return Backend(
            profile="onnx",
            operations={
                "quantize": _quantize_integer,
                "dequantize": _dequantize_integer,
                "fake_quantize": affine.quantize_dequantize,
            },
            script=_script_integer,
            **common,
        )
    return Backend(
        profile="aimet",
        operations={"quantize": _quantize, "dequantize": _dequantize, "fake_quantize": _fake_quantize},
        script=_script,
        **common,
    )
