"""onnxruntime: sessions of ``QuantizeLinear``, ``DequantizeLinear``, and of the pair; no graph optimisation."""

from functools import lru_cache
from typing import Any

from halfeven.conformance.backends.common import installed, quiet_import
from halfeven.conformance.backends.onnx_model import REALS, TYPES, Model, attributes, code_type, fitted, script_model
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.configuration import Array
from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.profiles import Operation

__all__ = ["load"]

_OPTIONS = """options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL"""


def _run(
    operation: Operation, value: Array, scale: Array, zero_point: Array, grid: tuple[int, int], blocks: BlockSize | None
) -> Array:
    code, stored = code_type(*grid)
    axis, length, form = attributes(blocks, value.shape)
    z = fitted(zero_point, grid, stored)
    s, z = (scale, z) if form is None else (scale.reshape(form), z.reshape(form))
    session = _session(Model(operation, REALS[scale.dtype.name], code, stored, axis, length))
    name = "q" if operation == "dequantize" else "x"
    result: Array = session.run(None, {name: value, "s": s, "z": z})[0]
    return result


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
def _session(model: Model) -> Any:
    import onnxruntime
    from onnx.parser import parse_model

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4  # what fails is raised too; a model without shapes is warned about
    serialized = parse_model(model.text()).SerializeToString()
    return onnxruntime.InferenceSession(serialized, options, providers=["CPUExecutionProvider"])


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
    line, inputs = script_model(operation, (qmin, qmax), block_size, shape, cast=True)
    head = f"import numpy as np\nimport onnx.parser\nimport onnxruntime\n{_OPTIONS}\n{line}"
    return head, f"onnxruntime.InferenceSession(parse(scale).SerializeToString(), options).run(None, {inputs})[0]"


def load(name: str) -> Backend:
    """The one backend of onnxruntime, on its CPU provider."""
    quiet_import("onnx")
    quiet_import("onnxruntime")
    return Backend(
        name=name,
        profile="onnx",
        operations={"quantize": _quantize, "dequantize": _dequantize, "fake_quantize": _fake_quantize},
        granularities=("tensor", "channel", "token", "group"),
        dtypes=("float32", "float16"),  # it has no kernel for bfloat16
        grids=tuple(TYPES),
        array="numpy",
        library="onnxruntime",
        version=installed("onnxruntime") or "",
        path=lambda: "CPUExecutionProvider, opset 21 (25 for 2 bits), no graph optimisation, 1 thread",
        script=_script,
    )
