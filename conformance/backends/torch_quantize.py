"""torch: ``quantize_per_tensor``, ``quantize_per_channel``, and ``dequantize`` of quantized tensors.

Codes come out by ``int_repr``; for ``dequantize`` the quantized tensor is made of the codes as they are.
"""

import warnings

import torch
from torch import Tensor

from halfeven.conformance.backends.common import installed, no_blocks, one_each
from halfeven.conformance.backends.protocol import Backend, Unsupported, channel_axis
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.profiles import Operation

__all__ = ["load"]

# The quantized dtypes that int_repr shows one code per element of; they always use their whole range.
_DTYPES = {
    Grid(-128, 127): "qint8",
    Grid(0, 255): "quint8",
    Grid(-(2**31), 2**31 - 1): "qint32",
}
_IMAGES = 4  # dimensions of a tensor that can be channels-last
_CODES = (torch.int8, torch.uint8, torch.int32)


def _dtype(qmin: int, qmax: int) -> str:
    if (name := _DTYPES.get(Grid(qmin, qmax))) is None:
        msg = f"qmin={qmin}, qmax={qmax} is not offered by torch.quantize_*: qint8, quint8 and qint32 use all codes"
        raise Unsupported(msg)
    return name


def _axis(x: Tensor, scale: Tensor, block_size: BlockSize) -> int:
    axis = channel_axis(block_size, tuple(x.shape))
    one_each(scale.numel(), x.shape[axis], "torch.quantize_per_channel")
    if axis > 1 and x.dim() == _IMAGES and x.is_contiguous(memory_format=torch.channels_last) and not x.is_contiguous():
        msg = f"axis={axis} of a channels-last tensor is not offered by torch.quantize_per_channel: it takes 0 or 1"
        raise Unsupported(msg)
    return axis


def _quantized(
    x: Tensor, scale: Tensor, zero_point: Tensor, qmin: int, qmax: int, block_size: BlockSize | None
) -> Tensor:
    dtype = getattr(torch, _dtype(qmin, qmax))
    with warnings.catch_warnings():
        # torch announces once per process that these functions will go.
        warnings.filterwarnings("ignore", message="torch.quantize_per_tensor", category=UserWarning)
        if block_size is None:
            return torch.quantize_per_tensor(x, scale, zero_point, dtype)
        axis = _axis(x, scale, block_size)
        return torch.quantize_per_channel(x, scale.reshape(-1), zero_point.reshape(-1), axis, dtype)


def _quantize(
    x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Tensor:
    return _quantized(x, scale, zero_point, qmin, qmax, block_size).int_repr()


def _fake_quantize(
    x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Tensor:
    return _quantized(x, scale, zero_point, qmin, qmax, block_size).dequantize()


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


def _script(
    operation: Operation,
    *,
    qmin: int,
    qmax: int,
    block_size: BlockSize | None = None,
    shape: Shape = (),
    dtype: str = "float32",
) -> tuple[str, str]:
    del dtype
    codes = f"torch.{_dtype(qmin, qmax)}"
    if block_size is None:
        made = "torch._make_per_tensor_quantized_tensor(q, scale.item(), zero_point.item())"
        quantized = f"torch.quantize_per_tensor(x, scale, zero_point, {codes})"
    else:
        parameters = f"scale.reshape(-1), zero_point.reshape(-1), {channel_axis(block_size, shape)}"
        made = f"torch._make_per_channel_quantized_tensor(q, {parameters})"
        quantized = f"torch.quantize_per_channel(x, {parameters}, {codes})"
    call = {
        "quantize": f"{quantized}.int_repr()",
        "dequantize": f"{made}.dequantize()",
        "fake_quantize": f"{quantized}.dequantize()",
    }
    return "import torch", call[operation]


def _only_tensor(
    operation: Operation,
    *,
    qmin: int,
    qmax: int,
    block_size: BlockSize | None = None,
    shape: Shape = (),
    dtype: str = "float32",
) -> tuple[str, str]:
    no_blocks(block_size, "torch.quantize_per_tensor")
    return _script(operation, qmin=qmin, qmax=qmax, block_size=block_size, shape=shape, dtype=dtype)


def load(name: str) -> Backend:
    """Either function, by the name that it has in torch."""
    per_channel = name == "torch.quantize_per_channel"
    return Backend(
        name=name,
        profile="torch.quantize",
        operations={"quantize": _quantize, "dequantize": _dequantize, "fake_quantize": _fake_quantize},
        granularities=("channel",) if per_channel else ("tensor",),
        dtypes=("float32",),
        grids=tuple(_DTYPES),
        library="torch",
        version=installed("torch") or "",
        path=lambda: f"quantized engine {torch.backends.quantized.engine}, {torch.backends.cpu.get_cpu_capability()}",
        script=_script if per_channel else _only_tensor,
    )
