"""AIMET: ``aimet_torch.quantization.affine`` quantize, dequantize, quantize_dequantize.

Two backends are one library's two paths. Where the scale requires grad, as in a trainable quantizer, the
documented arithmetic runs; without, as in a frozen one, quantize_dequantize hands one scale, or one scale per
channel, to ``torch.fake_quantize_*``.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from torch import Tensor

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.backends.shim import shim, shimmed_import
from halfeven.conformance.configuration import Configuration
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape

__all__ = ["affine_backend", "load"]

_MODULE = "aimet_torch.quantization"


def _blocks(block_size: BlockSize | None, shape: Shape) -> BlockSize | None:
    """None where the parameters broadcast, which is how AIMET is called per tensor, channel and token."""
    if block_size is None:
        return None
    parts = parameter_shape(shape, block_size)
    broadcasts = all(p == 1 or b == 1 for p, b in zip(parts, block_size, strict=True))
    return None if broadcasts else block_size


class _Affine:
    """The functions of a module, with a scale that requires grad (``trainable``) or not."""

    def __init__(self, module: Any, *, trainable: bool) -> None:
        self.affine = module.affine
        self.module = module.__name__
        self.trainable = trainable

    def _scale(self, scale: Tensor) -> Tensor:
        return scale.detach().requires_grad_(self.trainable)

    def quantize(
        self, x: Tensor, scale: Tensor, offset: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        blocks = _blocks(block_size, tuple(x.shape))
        result: Tensor = self.affine.quantize(x, self._scale(scale), offset, qmin=qmin, qmax=qmax, block_size=blocks)
        return result.detach()

    def dequantize(self, q: Tensor, scale: Tensor, offset: Tensor, *, block_size: BlockSize | None = None) -> Tensor:
        blocks = _blocks(block_size, tuple(q.shape))
        result: Tensor = self.affine.dequantize(q, self._scale(scale), offset, block_size=blocks)
        return result.detach()

    def fake_quantize(
        self, x: Tensor, scale: Tensor, offset: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        result: Tensor = self.affine.quantize_dequantize(
            x, self._scale(scale), offset, qmin=qmin, qmax=qmax, block_size=_blocks(block_size, tuple(x.shape))
        )
        return result.detach()

    def script(self, c: Configuration) -> tuple[str, str]:
        scale = f"scale.detach().requires_grad_({self.trainable})"
        blocks = f"block_size={_blocks(c.block_size, c.shape)}"
        grid = f"qmin={c.grid.qmin}, qmax={c.grid.qmax}, {blocks}"
        call = {
            "quantize": f"quantize(x, {scale}, offset, {grid})",
            "dequantize": f"dequantize(q, {scale}, offset, {blocks})",
            "fake_quantize": f"quantize_dequantize(x, {scale}, offset, {grid})",
        }
        before = shim() if self.module == _MODULE else ""
        return f"{before}from {self.module} import affine", f"affine.{call[c.operation]}.detach()"

    def path(self) -> str:
        backend = sys.modules[f"{_MODULE}.affine.backends"].get_backend().__name__.rpartition(".")[2]
        if self.trainable:
            return f"{backend}, scale requires grad: true division"
        return f"{backend}, no grad: torch.fake_quantize_* for one scale or one per channel, else true division"


def affine_backend(
    module: Any, *, trainable: bool, path: Callable[[], str] | None = None, prelude: str = ""
) -> partial[Backend]:
    """The affine functions of ``module``, aimet-torch's or a drop-in replacement of it."""
    functions = _Affine(module, trainable=trainable)
    return partial(
        Backend,
        operations={
            "quantize": functions.quantize,
            "dequantize": functions.dequantize,
            "fake_quantize": functions.fake_quantize,
        },
        granularities=("tensor", "channel", "token", "group", "block"),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        path=path or functions.path,
        script=functions.script,
        prelude=prelude,
    )


def load(name: str) -> partial[Backend]:
    """``aimet.functional`` (the scale requires grad) or ``aimet.frozen``."""
    module = shimmed_import(_MODULE)
    return affine_backend(module, trainable=name == "aimet.functional", prelude=shim())
