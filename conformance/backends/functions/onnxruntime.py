"""onnxruntime: sessions of one operator on the CPU. Arrays are NumPy's; refusals as in the formulas.

A type that its results cannot leave in is cast, exactly, to float32 or 8 bits first.
"""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.configuration import Array

__all__ = ["FUNCTIONS"]


def _quantize_linear(
    x: Array, y_scale: Array, y_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    import ml_dtypes
    import numpy as np
    import onnxruntime as ort
    from onnx import helper, numpy_helper

    from halfeven.conformance.backends.protocol import Unsupported

    def dtype(name: str) -> Any:
        return np.dtype(getattr(ml_dtypes, name, name))

    def number(name: str) -> Any:
        return helper.np_dtype_to_tensor_dtype(dtype(name))

    to = attributes.get("output_dtype") or ("uint8" if y_zero_point is None else y_zero_point.dtype.name)
    stored = "float32" if to.startswith("float") else "int32"
    given = {k: number(v) if isinstance(v, str) else v for k, v in attributes.items() if v is not None}
    inputs = {"x": x, "s": y_scale} | ({} if y_zero_point is None else {"z": y_zero_point})
    node = helper.make_node("QuantizeLinear", list(inputs), ["q"], **given)
    cast = helper.make_node("Cast", ["q"], ["y"], to=number(stored))
    output = helper.make_tensor_value_info("y", number(stored), x.shape)
    tensors = [numpy_helper.from_array(a, n) for n, a in inputs.items()]
    graph = helper.make_graph([node, cast], "g", [], [output], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {})[0].astype(dtype(to))
    except Exception as error:  # noqa: BLE001 - its errors share no other type
        words = str(error)
        if type(error).__name__ == "NotImplemented" or "IsPrimitiveDataType" in words:
            raise Unsupported(words.splitlines()[0]) from None  # no kernel, or one for other types
        if type(error).__name__ == "InvalidGraph" or "Type Error" in words or "TypeInferenceError" in words:
            raise TypeError(words) from None
        raise ValueError(words) from None


def _dequantize_linear(
    x: Array, x_scale: Array, x_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    import ml_dtypes
    import numpy as np
    import onnxruntime as ort
    from onnx import helper, numpy_helper

    from halfeven.conformance.backends.protocol import Unsupported

    def dtype(name: str) -> Any:
        return np.dtype(getattr(ml_dtypes, name, name))

    def number(name: str) -> Any:
        return helper.np_dtype_to_tensor_dtype(dtype(name))

    given = {k: number(v) if isinstance(v, str) else v for k, v in attributes.items() if v is not None}
    inputs = {"x": x, "s": x_scale} | ({} if x_zero_point is None else {"z": x_zero_point})
    node = helper.make_node("DequantizeLinear", list(inputs), ["y"], **given)
    output = helper.make_tensor_value_info("y", given.get("output_dtype", number(x_scale.dtype.name)), x.shape)
    graph = helper.make_graph([node], "g", [], [output], [numpy_helper.from_array(a, n) for n, a in inputs.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return session.run(None, {})[0]
    except Exception as error:  # noqa: BLE001 - its errors share no other type
        words = str(error)
        if type(error).__name__ == "NotImplemented" or "IsPrimitiveDataType" in words:
            raise Unsupported(words.splitlines()[0]) from None  # no kernel, or one for other types
        if type(error).__name__ == "InvalidGraph" or "Type Error" in words or "TypeInferenceError" in words:
            raise TypeError(words) from None
        raise ValueError(words) from None


def _dynamic_quantize_linear(x: Array) -> Any:
    import onnxruntime as ort
    from onnx import helper, numpy_helper

    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "y_scale", "y_zero_point"])
    outputs = [
        helper.make_tensor_value_info("y", 2, x.shape),
        helper.make_tensor_value_info("y_scale", 1, []),
        helper.make_tensor_value_info("y_zero_point", 2, []),
    ]
    graph = helper.make_graph([node], "g", [], outputs, [numpy_helper.from_array(x, "x")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=13)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    try:
        session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    except Exception as error:  # noqa: BLE001 - its errors share no other type
        raise TypeError(str(error)) from None
    return tuple(session.run(None, {}))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "onnx.quantize_linear": _quantize_linear,
    "onnx.dequantize_linear": _dequantize_linear,
    "onnx.dynamic_quantize_linear": _dynamic_quantize_linear,
}
