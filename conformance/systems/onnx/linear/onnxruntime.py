"""onnxruntime: sessions of one operator on the CPU. Arrays are NumPy's; refusals as in the formulas.

A type that its results cannot leave in is cast, exactly, to float32 or 8 bits first.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.configuration import Array
from halfeven.conformance.quote import Spelling
from halfeven.conformance.systems.onnx import spelling
from halfeven.conformance.systems.onnx.spelling import in_session

__all__ = ["ANSWERS"]

#: Failures of a kernel that is one for others, and of a release that is older than the opset or the dtype.
_NOT_OFFERED = (
    "IsPrimitiveDataType",
    "only supports precision",
    "ValidateOpsetForDomain",
    "Unsupported model IR version",
    "Invalid tensor data type",
)


def _number(name: str) -> int:
    """The number that ONNX has for a dtype."""
    import ml_dtypes
    import numpy as np
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, name, name))))


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that were set, dtypes as their numbers."""
    return {k: _number(v) if isinstance(v, str) else v for k, v in attributes.items() if v is not None}


def _run(nodes: Sequence[Any], inputs: Mapping[str, Array], outputs: Sequence[Any], opset: int) -> list[Any]:
    """One session of a graph; its checks of types are TypeErrors, those of shapes and values ValueErrors."""
    import onnxruntime as ort
    from onnx import helper, numpy_helper
    from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, InvalidGraph, RuntimeException
    from onnxruntime.capi.onnxruntime_pybind11_state import NotImplemented as NoKernel

    tensors = [numpy_helper.from_array(a, n) for n, a in inputs.items()]
    graph = helper.make_graph(nodes, "g", [], outputs, tensors)
    sets = [helper.make_opsetid("", opset)]  # an older release takes no newer version of a model than these need
    model = helper.make_model(graph, opset_imports=sets, ir_version=helper.find_min_ir_version_for(sets))
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return list(session.run(None, {}))
    except NoKernel as error:
        raise Unsupported(str(error).splitlines()[0]) from None
    except InvalidGraph as error:
        raise TypeError(str(error)) from None
    except (Fail, InvalidArgument, RuntimeException) as error:
        words = str(error)
        if any(said in words for said in _NOT_OFFERED):
            raise Unsupported(words.splitlines()[0]) from None
        if "Type Error" in words or "TypeInferenceError" in words:
            raise TypeError(words) from None
        if " was false" in words:  # a condition of the operator's own; any other failure is no refusal
            raise ValueError(words) from None
        raise


def _quantize_linear(
    x: Array, y_scale: Array, y_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    import ml_dtypes
    import numpy as np
    from onnx import helper

    to = attributes.get("output_dtype") or ("uint8" if y_zero_point is None else y_zero_point.dtype.name)
    stored = "float32" if to.startswith("float") else "int32"
    inputs = {"x": x, "s": y_scale} | ({} if y_zero_point is None else {"z": y_zero_point})
    node = helper.make_node("QuantizeLinear", list(inputs), ["q"], **_given(attributes))
    cast = helper.make_node("Cast", ["q"], ["y"], to=_number(stored))
    output = helper.make_tensor_value_info("y", _number(stored), x.shape)
    return _run([node, cast], inputs, [output], opset)[0].astype(np.dtype(getattr(ml_dtypes, to, to)))


def _dequantize_linear(
    x: Array, x_scale: Array, x_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    from onnx import helper

    inputs = {"x": x, "s": x_scale} | ({} if x_zero_point is None else {"z": x_zero_point})
    node = helper.make_node("DequantizeLinear", list(inputs), ["y"], **_given(attributes))
    to = attributes.get("output_dtype") or x_scale.dtype.name
    return _run([node], inputs, [helper.make_tensor_value_info("y", _number(to), x.shape)], opset)[0]


def _dynamic_quantize_linear(x: Array) -> Any:
    from onnx import helper

    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "y_scale", "y_zero_point"])
    types = {"y": ("uint8", x.shape), "y_scale": ("float32", []), "y_zero_point": ("uint8", [])}
    outputs = [helper.make_tensor_value_info(name, _number(t), shape) for name, (t, shape) in types.items()]
    return tuple(_run([node], {"x": x}, outputs, 11))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "onnxruntime": {
        "onnx/QuantizeLinear": Spelling(
            _quantize_linear, lambda passed: in_session(spelling.quantize_linear(passed, cast=True))
        ),
        "onnx/DequantizeLinear": Spelling(
            _dequantize_linear, lambda passed: in_session(spelling.dequantize_linear(passed))
        ),
        "onnx/DynamicQuantizeLinear": Spelling(
            _dynamic_quantize_linear, lambda passed: in_session(spelling.dynamic_quantize_linear(passed))
        ),
    },
}
