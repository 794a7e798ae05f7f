"""torch: ``fake_quantize_per_tensor_affine`` and ``fake_quantize_per_channel_affine``.

The overloads that take the scale and the zero point as tensors. A scale is float32 in both whatever the input is.
"""

from functools import partial

import torch
from torch import Tensor

from halfeven.conformance.backends.common import no_blocks, one_each
from halfeven.conformance.backends.protocol import Backend, channel_axis
from halfeven.conformance.configuration import Configuration
from halfeven.reference.blocks import BlockSize

__all__ = ["load"]


def _per_tensor(
    x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Tensor:
    no_blocks(block_size, "torch.fake_quantize_per_tensor_affine")
    return torch.fake_quantize_per_tensor_affine(x, scale, zero_point, qmin, qmax)


def _per_channel(
    x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize
) -> Tensor:
    axis = channel_axis(block_size, tuple(x.shape))
    one_each(scale.numel(), x.shape[axis], "torch.fake_quantize_per_channel_affine")
    return torch.fake_quantize_per_channel_affine(x, scale.reshape(-1), zero_point.reshape(-1), axis, qmin, qmax)


def _script(c: Configuration) -> tuple[str, str]:
    ends = f"{c.grid.qmin}, {c.grid.qmax}"
    if c.block_size is None:
        return "import torch", f"torch.fake_quantize_per_tensor_affine(x, scale, zero_point, {ends})"
    parameters = f"scale.reshape(-1), zero_point.reshape(-1), {channel_axis(c.block_size, c.shape)}"
    return "import torch", f"torch.fake_quantize_per_channel_affine(x, {parameters}, {ends})"


def load(name: str) -> partial[Backend]:
    """Either function, by the name that it has in torch."""
    per_channel = name == "torch.fake_quantize_per_channel_affine"
    return partial(
        Backend,
        operations={"fake_quantize": _per_channel if per_channel else _per_tensor},
        granularities=("channel",) if per_channel else ("tensor",),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        path=lambda: f"native kernel, {torch.backends.cpu.get_cpu_capability()}",
        script=_script,
    )
