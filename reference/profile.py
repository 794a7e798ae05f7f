"""What a profile is: the operations of a documented system, as an evaluation model and what enters it."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from halfeven.reference import model as evaluation
from halfeven.reference.blocks import Array, BlockSize, Shape, parameter_shape, per_channel, per_element
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.readings import Readings

Operation = Literal["quantize", "dequantize", "fake_quantize"]
OPERATIONS: tuple[Operation, ...] = ("quantize", "dequantize", "fake_quantize")


__all__ = ["OPERATIONS", "Array", "Operation", "Profile", "along_axis", "integers"]


def along_axis(parameter: Array, shape: Shape, axis: int) -> Array:
    """A list of parameters, one per index along ``axis``, with one entry per block of ``blocks.per_channel``.

    Raises:
        ValueError: ``axis`` is outside [-D, D), or the list is not as long as that dimension.
    """
    expected = parameter_shape(shape, per_channel(shape, axis))
    if parameter.shape != (shape[axis],):
        needed = f"axis {axis} of shape {shape} needs ({shape[axis]},)"
        msg = f"parameters of shape {parameter.shape} are not accepted: {needed}"
        raise ValueError(msg)
    return parameter.reshape(expected) if 0 not in expected else np.empty(expected, parameter.dtype)


def integers(codes: Array, dtype: npt.DTypeLike) -> Array:
    """Codes held as floats, as the integer ``dtype`` that a documented signature returns.

    Raises:
        ValueError: a code is NaN; what an integer type makes of it no document says.
    """
    if np.isnan(codes).any():
        msg = "NaN among the codes is not accepted: no integer stands for it"
        raise ValueError(msg)
    return codes.astype(np.int64).astype(dtype)


def _same(parameter: Array, _grid: Grid) -> Array:
    return parameter


@dataclass(frozen=True)
class Profile:
    """One documented system.

    Attributes:
        name: the word a user types; a library's measured behaviour, where it diverges from its document, is
            ``name@version``.
        title: one line that says what the system computes.
        source: the document.
        model: the documented behaviour as a value.
        operations: those that the document has.
        parameters: the documented names of the two parameters, in the order in which a backend receives them;
            the first is ``scale`` (real per code) or ``amax``, the second ``zero_point``, ``offset`` or absent.
        dtypes: the input dtypes that the document allows.
        scale_dtype: the dtype of the scales handed over: the input's own, or float32 for every input.
        codes: what quantize returns: the grid's integer type, or floats of the input's dtype.
        bits: the narrowest and the widest grid that the document allows.
        within: the codes of the document's widest integer, where a grid of such a width may reach beyond them.
        grids: the grids that the document allows where they are not all of the widths in ``bits``.
        partial_blocks: whether the last block of a dimension may be short.
        model_scale: the model's scale from the first documented parameter.
        smallest: at this first parameter and below, every x is multiplied by 0 before it is quantized.
        readings: the models that the document admits as well, where it leaves something open.
    """

    name: str
    title: str
    source: str
    model: EvaluationModel
    operations: tuple[Operation, ...] = OPERATIONS
    parameters: tuple[str, ...] = ("scale", "zero_point")
    dtypes: tuple[str, ...] = ("float32",)
    scale_dtype: Literal["input", "float32"] = "float32"
    codes: Literal["integer", "input"] = "integer"
    bits: tuple[int, int] = (1, 16)
    within: Grid | None = None
    grids: tuple[Grid, ...] | None = None
    partial_blocks: bool = False
    model_scale: Callable[[Array, Grid], Array] = _same
    smallest: float = -np.inf
    readings: Readings | None = None

    def real_per_code(self, parameter: Array, grid: Grid) -> Array:
        """The reals that one code spans, float64 of the parameter's shape: the scale, or amax / qmax."""
        wide = np.asarray(parameter, np.float64)
        return wide / grid.qmax if self.parameters[0] == "amax" else wide

    def quantize(self, x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
        """The codes of ``x``, as floats (NaN stays NaN where the model says so).

        Args:
            x: reals, of one of ``dtypes`` and any shape.
            scale: the first documented parameter, real per code or amax in reals; broadcasts to ``x`` or, with
                ``block_size``, has one entry per block.
            zero: the zero point or offset, in codes and shaped as ``scale``; not read where there is none.
            grid: the codes that the result is limited to.
            block_size: elements per block, one entry per dimension of ``x``.

        Returns:
            ``x``'s shape; floats of ``x``'s dtype where ``codes`` is "input", else of one that holds the codes.

        Raises:
            ValueError: the parameters do not fit ``x`` and ``block_size``.
        """
        given = self.above_smallest(x, scale, block_size)
        q = evaluation.quantize(self.model, given, self.model_scale(scale, grid), zero, grid, block_size)
        with np.errstate(all="ignore"):
            return q.astype(x.dtype) if self.codes == "input" else q

    def dequantize(
        self,
        q: Array,
        scale: Array,
        zero: Array,
        grid: Grid,
        dtype: "np.dtype[Any]",
        block_size: BlockSize | None = None,
    ) -> Array:
        """The reals of the codes ``q``, in ``dtype`` and ``q``'s shape; codes outside ``grid`` are not limited.

        Parameters and errors as in ``quantize``; ``q`` is integers, or floats that hold codes.
        """
        return evaluation.dequantize(self.model, q, self.model_scale(scale, grid), zero, dtype, block_size, grid)

    def fake_quantize(
        self, x: Array, scale: Array, zero: Array, grid: Grid, block_size: BlockSize | None = None
    ) -> Array:
        """``x`` on the grid: reals of ``x``'s shape and dtype. Arguments and errors as in ``quantize``."""
        given = self.above_smallest(x, scale, block_size)
        return evaluation.fake_quantize(self.model, given, self.model_scale(scale, grid), zero, grid, block_size)

    def accepts(self, grid: Grid) -> bool:
        """Whether the document allows ``grid``: one of ``grids`` or, without them, of a width in ``bits``."""
        if self.grids is not None:
            return grid in self.grids
        if self.within is not None and not (grid.qmin in self.within and grid.qmax in self.within):
            return False
        return self.bits[0] <= grid.bits <= self.bits[1]

    def above_smallest(self, x: Array, parameter: Array, block_size: BlockSize | None) -> Array:
        """``x``, multiplied by 0 where its first parameter is ``smallest`` or below."""
        if np.isneginf(self.smallest):
            return x
        with np.errstate(all="ignore"):
            return np.where(per_element(parameter, x.shape, block_size) <= self.smallest, x * x.dtype.type(0), x)
