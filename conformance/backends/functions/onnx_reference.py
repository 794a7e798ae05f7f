"""onnx: its operators by ``onnx.reference`` after ``onnx.checker``. Arrays are NumPy's; refusals as in the formulas."""

from collections.abc import Callable
from typing import Any

from halfeven.conformance.configuration import Array

__all__ = ["FUNCTIONS"]


def _quantize_linear(
    x: Array, y_scale: Array, y_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    import ml_dtypes
    import numpy as np
    from onnx import checker, helper, numpy_helper, shape_inference
    from onnx.reference import ReferenceEvaluator

    def number(name: str) -> Any:
        return helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, name, name)))

    given = {k: number(v) if isinstance(v, str) else v for k, v in attributes.items() if v is not None}
    to = given.get("output_dtype", number("uint8" if y_zero_point is None else y_zero_point.dtype.name))
    inputs = {"x": x, "s": y_scale} | ({} if y_zero_point is None else {"z": y_zero_point})
    node = helper.make_node("QuantizeLinear", list(inputs), ["y"], **given)
    output = helper.make_tensor_value_info("y", to, x.shape)
    graph = helper.make_graph([node], "g", [], [output], [numpy_helper.from_array(a, n) for n, a in inputs.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise TypeError(str(error)) from None
    try:
        return ReferenceEvaluator(model).run(None, {})[0]
    except (IndexError, AssertionError) as error:
        raise ValueError(str(error)) from None


def _dequantize_linear(
    x: Array, x_scale: Array, x_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    import ml_dtypes
    import numpy as np
    from onnx import checker, helper, numpy_helper, shape_inference
    from onnx.reference import ReferenceEvaluator

    from halfeven.conformance.backends.protocol import Unsupported

    if opset < 19:  # noqa: PLR2004 - the first that it has
        msg = f"opset={opset} is not offered: onnx.reference has DequantizeLinear from opset 19 on"
        raise Unsupported(msg)

    def number(name: str) -> Any:
        return helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, name, name)))

    given = {k: number(v) if isinstance(v, str) else v for k, v in attributes.items() if v is not None}
    inputs = {"x": x, "s": x_scale} | ({} if x_zero_point is None else {"z": x_zero_point})
    node = helper.make_node("DequantizeLinear", list(inputs), ["y"], **given)
    output = helper.make_tensor_value_info("y", given.get("output_dtype", number(x_scale.dtype.name)), x.shape)
    graph = helper.make_graph([node], "g", [], [output], [numpy_helper.from_array(a, n) for n, a in inputs.items()])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise TypeError(str(error)) from None
    try:
        return ReferenceEvaluator(model).run(None, {})[0]
    except (IndexError, AssertionError) as error:
        raise ValueError(str(error)) from None


def _dynamic_quantize_linear(x: Array) -> Any:
    from onnx import checker, helper, numpy_helper, shape_inference
    from onnx.reference import ReferenceEvaluator

    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "y_scale", "y_zero_point"])
    outputs = [
        helper.make_tensor_value_info("y", 2, x.shape),
        helper.make_tensor_value_info("y_scale", 1, []),
        helper.make_tensor_value_info("y_zero_point", 2, []),
    ]
    graph = helper.make_graph([node], "g", [], outputs, [numpy_helper.from_array(x, "x")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=13)
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise TypeError(str(error)) from None
    return tuple(ReferenceEvaluator(model).run(None, {}))


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "onnx.quantize_linear": _quantize_linear,
    "onnx.dequantize_linear": _dequantize_linear,
    "onnx.dynamic_quantize_linear": _dynamic_quantize_linear,
}
