"""onnx: ``onnx.reference.ReferenceEvaluator`` on ``QuantizeLinear``, ``DequantizeLinear``, and on the pair."""

from functools import lru_cache, partial
from typing import Any

import numpy as np

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.configuration import Array
from halfeven.conformance.systems.onnx.adapter_model import Model, backend

__all__ = ["load"]

_IMPORTS = """import ml_dtypes
import numpy as np
import onnx.parser
from onnx.reference import ReferenceEvaluator"""


@lru_cache(maxsize=256)
def _evaluator(model: Model) -> Any:
    from onnx.parser import parse_model
    from onnx.reference import ReferenceEvaluator

    return ReferenceEvaluator(parse_model(model.text()))


def _run(model: Model, inputs: dict[str, Array]) -> Array:
    with np.errstate(all="ignore"):
        result: Array = _evaluator(model).run(None, inputs)[0]
    return result


def load(_name: str) -> partial[Backend]:
    """The one backend of onnx."""
    quiet_import("onnx.reference")
    return backend(
        _run,
        cast=False,
        dtypes=("float32", "float16", "bfloat16"),
        path=lambda: f"python on NumPy {np.__version__}, opset 21 (25 for 2 bits)",
        imports=_IMPORTS,
        runner="ReferenceEvaluator(parse(scale))",
    )
