"""What the two ONNX backends share: the models that they run, of one operator (or the pair), parameters as inputs.

``axis`` and ``block_size`` become ONNX's attributes: one scale, one per index along an axis, or blocks along one
axis with every other dimension cut into single indices.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.common import one_each
from halfeven.conformance.backends.protocol import Backend, Unsupported, channel_axis
from halfeven.conformance.configuration import Array, Configuration
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape, parameter_shape
from halfeven.reference.profile import OPERATIONS, Operation

__all__ = ["TYPES", "Model", "attributes", "backend", "code_type", "fitted"]

# The words of ONNX's text form. A type that NumPy has no dtype for travels in its storage.
_REALS = {"float32": "float", "float16": "float16", "bfloat16": "bfloat16"}
TYPES: dict[Grid, tuple[str, str]] = {
    Grid(-128, 127): ("int8", "int8"),
    Grid(0, 255): ("uint8", "uint8"),
    Grid(-32768, 32767): ("int16", "int16"),
    Grid(0, 65535): ("uint16", "uint16"),
    Grid(-8, 7): ("int4", "int8"),
    Grid(0, 15): ("uint4", "uint8"),
    Grid(-2, 1): ("int2", "int8"),
    Grid(0, 3): ("uint2", "uint8"),
}
# Of TensorProto.DataType.
_NUMBERS = {"uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "uint4": 21, "int4": 22, "uint2": 25, "int2": 26}


def _code_type(grid: Grid) -> tuple[str, str]:
    """ONNX's type for a grid, and the NumPy dtype that its codes travel in.

    Raises:
        Unsupported: no type has exactly these codes.
    """
    if (found := TYPES.get(grid)) is None:
        types = ", ".join(code for code, _ in TYPES.values())
        msg = f"qmin={grid.qmin}, qmax={grid.qmax} is not offered by ONNX: its types are {types}"
        raise Unsupported(msg)
    return found


def code_type(grid: Grid) -> "np.dtype[Any]":
    """The dtype of a grid's codes, ml_dtypes' own where NumPy has none.

    Raises:
        Unsupported: no type has exactly these codes.
    """
    code, stored = _code_type(grid)
    return np.dtype(getattr(ml_dtypes, code, stored))


def attributes(block_size: BlockSize | None, shape: Shape) -> tuple[int | None, int, Shape | None]:
    """ONNX's ``axis`` and ``block_size``, and the shape in which it takes the parameters (None: as they are).

    Raises:
        Unsupported: the blocks are longer than one along two dimensions that hold several; or an empty tensor
            leaves fewer parameters than the axis has indices.
    """
    if block_size is None:
        return None, 0, None
    parts = parameter_shape(shape, block_size)
    if all(p == 1 for p in parts):
        return None, 0, ()
    try:
        axis = channel_axis(block_size, shape)
    except Unsupported:
        long = [d for d, b in enumerate(block_size) if b > 1]
        if len(long) != 1:
            msg = f"block_size={block_size} of shape {shape} is not offered by ONNX: its blocks lie along one axis"
            raise Unsupported(msg) from None
        return long[0], block_size[long[0]], None
    one_each(math.prod(parts), shape[axis], "ONNX")
    return axis, 0, (-1,)


@dataclass(frozen=True)
class Model:
    """What one model is made of.

    Attributes:
        real: ONNX's word for the dtype of the reals, and of the scale.
        code: ONNX's word for the type of the codes.
        stored: the type in which codes and zero point enter and leave the model; another than ``code`` puts a Cast
            next to the operator, which keeps every code.
    """

    operation: Operation
    real: str
    code: str
    stored: str
    axis: int | None
    block_size: int

    @property
    def opset(self) -> int:
        """21, where 16 bits, 4 bits and blocks came; 25 for 2 bits."""
        return 25 if self.code.endswith("int2") else 21

    def text(self) -> str:
        """The model in ONNX's text form."""
        given = [] if self.axis is None else [f"axis = {self.axis}"]
        given += [f"block_size = {self.block_size}"] if self.block_size else []
        attribute = f" <{', '.join(given)}>" if given else ""
        cast = self.stored != self.code
        z, codes = ("zc", "qc") if cast else ("z", "q")
        to_code, to_stored = f"Cast <to = {_NUMBERS[self.code]}>", f"Cast <to = {_NUMBERS[self.stored]}>"
        nodes = [f"zc = {to_code} (z)"] if cast else []
        if self.operation == "dequantize":
            first, last = f"{self.stored}[] q", f"{self.real}[] y"
            nodes += [f"qc = {to_code} (q)"] if cast else []
        else:
            first = f"{self.real}[] x"
            last = f"{self.real}[] y" if self.operation == "fake_quantize" else f"{self.stored}[] q"
            nodes += [f"{codes} = QuantizeLinear{attribute} (x, s, {z})"]
        if self.operation == "quantize":
            nodes += [f"q = {to_stored} (qc)"] if cast else []
        else:
            nodes += [f"y = DequantizeLinear{attribute} ({codes}, s, {z})"]
        body = "\n".join(nodes)
        head = f'<ir_version: {13 if self.opset > 24 else 10}, opset_import: ["" : {self.opset}]>'  # noqa: PLR2004 - the opset
        return f"{head} g ({first}, {self.real}[] s, {self.stored}[] z) => ({last}) {{ {body} }}"


def backend(
    run: Callable[[Model, dict[str, Array]], Array],
    *,
    cast: bool,
    dtypes: tuple[str, ...],
    path: Callable[[], str],
    imports: str,
    runner: str,
) -> partial[Backend]:
    """What the two backends share.

    Args:
        run: the output of a model for its inputs by name.
        cast: codes and zero point enter the model in their storage; else in ml_dtypes' own types.
        dtypes: the float dtypes it takes.
        path: says which path really ran.
        imports: the lines that a script begins with.
        runner: a script's expression for the object that runs the model ``parse(scale)``.
    """
    return partial(
        Backend,
        operations={o: partial(_call, o, run, cast) for o in OPERATIONS},
        granularities=("tensor", "channel", "token", "group"),
        dtypes=dtypes,
        grids=tuple(TYPES),
        array="numpy",
        path=path,
        script=partial(_script, cast=cast, imports=imports, runner=runner),
    )


def _call(
    operation: Operation,
    run: Callable[[Model, dict[str, Array]], Array],
    cast: bool,
    value: Array,
    scale: Array,
    zero_point: Array,
    *,
    qmin: int,
    qmax: int,
    block_size: BlockSize | None = None,
) -> Array:
    grid = Grid(qmin, qmax)
    code, stored = _code_type(grid)
    axis, length, form = attributes(block_size, value.shape)
    entering = np.dtype(stored if cast else getattr(ml_dtypes, code, stored))
    z = fitted(zero_point, grid, entering)
    s, z = (scale, z) if form is None else (scale.reshape(form), z.reshape(form))
    given = {"q": value.astype(entering)} if operation == "dequantize" else {"x": value}
    model = Model(operation, _REALS[scale.dtype.name], code, entering.name, axis, length)
    result = run(model, {**given, "s": s, "z": z})
    return result.astype(stored, copy=False) if operation == "quantize" else result


def fitted(zero_point: Array, grid: Grid, dtype: "np.dtype[Any]") -> Array:
    """The zero point in the codes' type, which it has in ONNX.

    Raises:
        Unsupported: a zero point is no code of the grid.
    """
    if zero_point.size and (zero_point.min() < grid.qmin or zero_point.max() > grid.qmax):
        ends = f"{grid.qmin} to {grid.qmax}"
        msg = f"zero_point={zero_point.tolist()} is not offered by ONNX: it has the codes' type, {ends}"
        raise Unsupported(msg)
    return zero_point.astype(dtype)


def _script(c: Configuration, *, cast: bool, imports: str, runner: str) -> tuple[str, str]:
    """The model is parsed for the dtype of the scale, which the script holds."""
    code, stored = _code_type(c.grid)
    axis, length, form = attributes(c.block_size, c.shape)
    entering = stored if cast else code
    text = Model(c.operation, "REAL", code, entering, axis, length).text()
    parse = f"def parse(s): return onnx.parser.parse_model(text.replace('REAL', {_REALS!r}[s.dtype.name]))"
    reshape = "" if form is None else f".reshape({form})"
    dtype = f"{'np' if entering == stored else 'ml_dtypes'}.{entering}"
    first = f"'q': q.astype({dtype})" if c.operation == "dequantize" else "'x': x"
    inputs = f"{{{first}, 's': scale{reshape}, 'z': zero_point{reshape}.astype({dtype})}}"
    last = f".astype(np.{stored})" if c.operation == "quantize" and not cast else ""
    return f"{imports}\ntext = {text!r}\n{parse}", f"{runner}.run(None, {inputs})[0]{last}"
