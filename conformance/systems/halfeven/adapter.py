"""This project's own functions: ``halfeven.optimized.affine``, with float codes and with integer codes."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from halfeven.conformance.backends.common import storage
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.configuration import Configuration
from halfeven.optimized import affine, kernels
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize
from halfeven.reference.profile import Operation

__all__ = ["load", "path"]


def path(device: str = "cpu") -> str:
    """Which kernels ran, and torch's version."""
    return f"{kernels.path(device)}; torch {torch.__version__}"


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
    dtype = getattr(torch, storage(Grid(qmin, qmax)))
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


def _script(c: Configuration, *, integer: bool) -> tuple[str, str]:
    zero, codes, reals = "-offset", "", ""
    if integer:
        zero, codes, reals = "zero_point", f", dtype=torch.{storage(c.grid)}", f", dtype=torch.{c.dtype}"
    blocks = f"block_size={c.block_size}"
    grid = f"qmin={c.grid.qmin}, qmax={c.grid.qmax}, {blocks}"
    call = {
        "quantize": f"quantize(x, scale, {zero}, {grid}{codes})",
        "dequantize": f"dequantize(q, scale, {zero}, {blocks}{reals})",
        "fake_quantize": f"quantize_dequantize(x, scale, {zero}, {grid})",
    }
    return "import torch\nfrom halfeven.optimized import affine", f"affine.{call[c.operation]}"


_FLOAT: dict[Operation, Callable[..., Tensor]] = {
    "quantize": _quantize,
    "dequantize": _dequantize,
    "fake_quantize": _fake_quantize,
}
_INTEGER: dict[Operation, Callable[..., Tensor]] = {
    "quantize": _quantize_integer,
    "dequantize": _dequantize_integer,
    "fake_quantize": affine.quantize_dequantize,
}


def load(name: str) -> partial[Backend]:
    """``halfeven`` (float codes, an offset) or ``halfeven.integer`` (integer codes, a zero point)."""
    integer = name == "halfeven.integer"
    return partial(
        Backend,
        operations=_INTEGER if integer else _FLOAT,
        granularities=("tensor", "channel", "token", "group", "block"),
        # In 16 bits AIMET widens the arithmetic, ONNX does not, and one function cannot do both.
        dtypes=("float32",) if integer else ("float32", "float64", "float16", "bfloat16"),
        path=path,
        script=partial(_script, integer=integer),
    )
