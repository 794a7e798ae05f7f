"""onnxruntime: sessions of ``QuantizeLinear``, ``DequantizeLinear``, and of the pair; no graph optimisation."""

from functools import lru_cache, partial
from typing import Any

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.configuration import Array
from halfeven.conformance.systems.onnx.adapter_model import Model, backend

__all__ = ["load"]

_IMPORTS = """import numpy as np
import onnx.parser
import onnxruntime
options = onnxruntime.SessionOptions()
options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL"""


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


def _run(model: Model, inputs: dict[str, Array]) -> Array:
    result: Array = _session(model).run(None, inputs)[0]
    return result


def load(_name: str) -> partial[Backend]:
    """The one backend of onnxruntime, on its CPU provider."""
    quiet_import("onnx")
    quiet_import("onnxruntime")
    return backend(
        _run,
        cast=True,
        dtypes=("float32", "float16"),  # it has no kernel for bfloat16
        path=lambda: "CPUExecutionProvider, opset 21 (25 for 2 bits), no graph optimisation, 1 thread",
        imports=_IMPORTS,
        runner="onnxruntime.InferenceSession(parse(scale).SerializeToString(), options)",
    )
