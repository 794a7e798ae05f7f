"""brevitas: ``IntQuant``, whose ``to_int`` gives codes and whose ``forward`` gives reals. Parameters broadcast."""

from functools import partial
from typing import Any

import torch
from torch import Tensor

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.configuration import Configuration
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape

__all__ = ["load"]

_GRIDS: dict[Grid, tuple[bool, bool, int]] = {
    Grid(qmin + narrow if signed else 0, qmin + 2**bits - 1 - (narrow and not signed)): (narrow, signed, bits)
    for bits in range(16, 0, -1)
    for narrow in (True, False)
    for signed, qmin in ((False, 0), (True, -(2 ** (bits - 1))))
    if bits > 1 or not narrow
}


def _grid(grid: Grid) -> tuple[bool, bool, int]:
    """(narrow_range, signed, bit_width) of a grid."""
    if grid not in _GRIDS:
        msg = f"qmin={grid.qmin}, qmax={grid.qmax} is not offered by brevitas: it has full and narrow ranges"
        raise Unsupported(msg)
    return _GRIDS[grid]


def _broadcasts(block_size: BlockSize | None, shape: Shape) -> None:
    if block_size is None:
        return
    parts = parameter_shape(shape, block_size)
    if not all(p == 1 or b == 1 for p, b in zip(parts, block_size, strict=True)):
        msg = f"block_size={block_size} of shape {shape} is not offered by brevitas's IntQuant: parameters broadcast"
        raise Unsupported(msg)


class _IntQuant:
    """The module's two methods, as the engine calls them."""

    def __init__(self, quant: Any, identity: Any) -> None:
        self.quant, self.identity = quant, identity

    def _asked(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, grid: Grid, block_size: BlockSize | None
    ) -> tuple[Any, tuple[Tensor, ...]]:
        _broadcasts(block_size, tuple(x.shape))
        narrow_range, signed, bit_width = _grid(grid)
        module = self.quant.IntQuant(narrow_range, signed, self.identity())
        return module, (scale, zero_point.to(x.dtype), torch.tensor(float(bit_width)), x)

    def quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        module, arguments = self._asked(x, scale, zero_point, Grid(qmin, qmax), block_size)
        result: Tensor = module.to_int(*arguments)
        return result

    def fake_quantize(
        self, x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int, block_size: BlockSize | None = None
    ) -> Tensor:
        module, arguments = self._asked(x, scale, zero_point, Grid(qmin, qmax), block_size)
        result: Tensor = module(*arguments)
        return result


def _script(c: Configuration) -> tuple[str, str]:
    _broadcasts(c.block_size, c.shape)
    narrow_range, signed, bit_width = _grid(c.grid)
    method = ".to_int" if c.operation == "quantize" else ""
    imports = (
        "import torch\nfrom brevitas.core.function_wrapper import Identity\nfrom brevitas.core.quant import IntQuant"
    )
    arguments = f"scale, zero_point.to(x.dtype), torch.tensor({float(bit_width)}), x"
    return imports, f"IntQuant({narrow_range}, {signed}, Identity()){method}({arguments})"


def load(_name: str) -> partial[Backend]:
    """The one backend of brevitas."""
    brevitas = quiet_import("brevitas")
    wrapper = quiet_import("brevitas.core.function_wrapper")
    functions = _IntQuant(quiet_import("brevitas.core.quant"), wrapper.Identity)
    native = "native" if brevitas.NATIVE_STE_BACKEND_LOADED else "python"
    return partial(
        Backend,
        operations={"quantize": functions.quantize, "fake_quantize": functions.fake_quantize},
        granularities=("tensor", "channel", "token"),
        dtypes=("float32", "float64", "float16", "bfloat16"),
        path=lambda: f"{native} straight-through functions, {torch.backends.cpu.get_cpu_capability()}",
        script=_script,
    )
