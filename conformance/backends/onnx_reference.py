"""onnx: ``onnx.reference.ReferenceEvaluator`` on ``QuantizeLinear``, ``DequantizeLinear``, and on the pair."""

from functools import lru_cache
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.common import installed, quiet_import
from halfeven.conformance.backends.onnx_model import REALS, TYPES, Model, attributes, code_type, fitted, script_model
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.configuration import Array
from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.profiles import Operation

__all__ = ["load"]


def _run(
    operation: Operation, value: Array, scale: Array, zero_point: Array, grid: tuple[int, int], blocks: BlockSize | None
) -> Array:
    code, stored = code_type(*grid)
    axis, length, form = attributes(blocks, value.shape)
    native = np.dtype(getattr(ml_dtypes, code, stored))
    z = fitted(zero_point, grid, stored).astype(native)
    s, z = (scale, z) if form is None else (scale.reshape(form), z.reshape(form))
    evaluator = _evaluator(Model(operation, REALS[scale.dtype.name], code, code, axis, length))
    given = {"q": value.astype(native)} if operation == "dequantize" else {"x": value}
    with np.errstate(all="ignore"):
        result: Array = evaluator.run(None, {**given, "s": s, "z": z})[0]
    return result.astype(stored) if operation == "quantize" else result


def _quantize(
    x: Array, scale: Array, zero_point: Array, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Array:
    return _run("quantize", x, scale, zero_point, (qmin, qmax), block_size)


def _dequantize(
    q: Array, scale: Array, zero_point: Array, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Array:
    return _run("dequantize", q, scale, zero_point, (qmin, qmax), block_size)


def _fake_quantize(
    x: Array, scale: Array, zero_point: Array, *, qmin: int, qmax: int, block_size: BlockSize | None = None
) -> Array:
    return _run("fake_quantize", x, scale, zero_point, (qmin, qmax), block_size)


@lru_cache(maxsize=256)
def _evaluator(model: Model) -> Any:
    from onnx.parser import parse_model
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(parse_model(model.text()))


def _script(
    operation: Operation,
    *,
    qmin: int,
    qmax: int,
    block_size: BlockSize | None = None,
    shape: Shape = (),
    dtype: str = "float32",
) -> tuple[str, str]:
    del dtype  # the script reads it off the scale
    line, inputs = script_model(operation, (qmin, qmax), block_size, shape, cast=False)
    stored = f".astype(np.{code_type(qmin, qmax)[1]})" if operation == "quantize" else ""
    head = "import ml_dtypes\nimport numpy as np\nimport onnx.parser\nfrom onnx.reference import ReferenceEvaluator"
    return f"{head}\n{line}", f"ReferenceEvaluator(parse(scale)).run(None, {inputs})[0]{stored}"


def load(name: str) -> Backend:
    """The one backend of onnx."""
    quiet_import("onnx.reference")
    return Backend(
        name=name,
        profile="onnx",
        operations={"quantize": _quantize, "dequantize": _dequantize, "fake_quantize": _fake_quantize},
        granularities=("tensor", "channel", "token", "group"),
        dtypes=("float32", "float16", "bfloat16"),
        grids=tuple(TYPES),
        array="numpy",
        library="onnx",
        version=installed("onnx") or "",
        path=lambda: f"python on NumPy {np.__version__}, opset 21 (25 for 2 bits)",
        script=_script,
    )
