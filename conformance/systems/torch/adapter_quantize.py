"""torch: ``quantize_per_tensor``, ``quantize_per_channel``, and ``dequantize`` of quantized tensors.

Codes come out by ``int_repr``; for ``dequantize`` the quantized tensor is made of the codes as they are.
"""

import warnings
from functools import partial

import torch
from torch import Tensor

from halfeven.conformance.backends.common import one_each
from halfeven.conformance.backends.protocol import Backend, Unsupported, channel_axis
from halfeven.conformance.configuration import Configuration
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize

__all__ = ["load"]

# The quantized dtypes that int_repr shows one code per element of; they always use their whole range.
_DTYPES = {
    Grid(-128, 127): "qint8",
    Grid(0, 255): "quint8",
    Grid(-(2**31), 2**31 - 1): "qint32",
}
_IMAGES = 4  # dimensions of a tensor that can be channels-last
_CODES = (torch.int8, torch.uint8, torch.int32)


def _dtype(grid: Grid) -> str:
    if (name := _DTYPES.get(grid)) is None:
        ends = f"qmin={grid.qmin}, qmax={grid.qmax}"
        msg = f"{ends} is not offered by torch.quantize_*: qint8, quint8 and qint32 use all codes"
        raise Unsupported(msg)
    return name


def _axis(x: Tensor, scale: Tensor, block_size: BlockSize) -> int:
    axis = channel_axis(block_size, tuple(x.shape))
    one_each(scale.numel(), x.shape[axis], "torch.quantize_per_channel")
    if axis > 1 and x.dim() == _IMAGES and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        msg = f"axis={axis} of a channels-last tensor is not offered by torch.quantize_per_channel: it takes 0 or 1"
        raise Unsupported(msg)
    return axis


def _quantize(
    x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Tensor:
    dtype = getattr(torch, _dtype(Grid(qmin, qmax)))
    with warnings.catch_warnings():
        # torch announces once per process that these functions will go.
        warnings.filterwarnings("ignore", message="torch.quantize_per_tensor", category=UserWarning)
        if block_size is None:
            return torch.quantize_per_tensor(x, scale, zero_point, dtype).int_repr()
        axis = _axis(x, scale, block_size)
        return torch.quantize_per_channel(x, scale.reshape(-1), zero_point.reshape(-1), axis, dtype).int_repr()


def _dequantize(q: Tensor, scale: Tensor, zero_point: Tensor, *, block_size: BlockSize | None = None) -> Tensor:
    if q.dtype not in _CODES:
        msg = f"codes of {q.dtype} are not offered by torch's quantized tensors: they are int8, uint8 or int32"
        raise Unsupported(msg)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="torch.quantize_per_tensor", category=UserWarning)
        if block_size is None:
            made = torch._make_per_tensor_quantized_tensor(q, scale.item(), int(zero_point.item()))  # noqa: SLF001 - no other way in
        else:
            axis = _axis(q, scale, block_size)
            parameters = scale.reshape(-1), zero_point.reshape(-1), axis
            made = torch._make_per_channel_quantized_tensor(q, *parameters)  # noqa: SLF001
    return made.dequantize()


def _script(c: Configuration) -> tuple[str, str]:
    codes = f"torch.{_dtype(c.grid)}"
    if c.block_size is None:
        quantized = f"torch.quantize_per_tensor(x, scale, zero_point, {codes})"
        made = "torch._make_per_tensor_quantized_tensor(q, scale.item(), zero_point.item())"
    else:
        parameters = f"scale.reshape(-1), zero_point.reshape(-1), {channel_axis(c.block_size, c.shape)}"
        quantized = f"torch.quantize_per_channel(x, {parameters}, {codes})"
        made = f"torch._make_per_channel_quantized_tensor(q, {parameters})"
    return "import torch", f"{quantized}.int_repr()" if c.operation == "quantize" else f"{made}.dequantize()"


def load(name: str) -> partial[Backend]:
    """Either function, by the name that it has in torch."""
    return partial(
        Backend,
        operations={"quantize": _quantize, "dequantize": _dequantize},
        granularities=("channel",) if name == "torch.quantize_per_channel" else ("tensor",),
        dtypes=("float32",),
        grids=tuple(_DTYPES),
        path=lambda: f"quantized engine {torch.backends.quantized.engine}, {torch.backends.cpu.get_cpu_capability()}",
        script=_script,
    )
