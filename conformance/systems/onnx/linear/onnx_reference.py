"""onnx: its operators by ``onnx.reference`` after ``onnx.checker``. Arrays are NumPy's; refusals as in the formulas."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.configuration import Array
from halfeven.conformance.quote import Spelling
from halfeven.conformance.systems.onnx import spelling
from halfeven.conformance.systems.onnx.spelling import evaluated

__all__ = ["ANSWERS"]

_IR_VERSION = 13


def _number(name: str) -> int:
    """The number that ONNX has for a dtype."""
    import ml_dtypes
    import numpy as np
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, name, name))))


def _given(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The attributes that were set, dtypes as their numbers."""
    return {k: _number(v) if isinstance(v, str) else v for k, v in attributes.items() if v is not None}


def _run(node: Any, inputs: Mapping[str, Array], outputs: Sequence[Any], opset: int) -> list[Any]:
    """One evaluation of a node; what the checker refuses is a TypeError, an axis out of bounds a ValueError."""
    from onnx import checker, helper, numpy_helper, shape_inference
    from onnx.reference import ReferenceEvaluator

    tensors = [numpy_helper.from_array(a, n) for n, a in inputs.items()]
    graph = helper.make_graph([node], "g", [], outputs, tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=_IR_VERSION)
    try:
        checker.check_model(model, full_check=True)
    except (checker.ValidationError, shape_inference.InferenceError) as error:
        raise TypeError(str(error)) from None
    evaluator = ReferenceEvaluator(model)
    try:
        return list(evaluator.run(None, {}))
    except IndexError as error:  # an axis, or an index along it, beyond the shape
        raise ValueError(str(error)) from None
    except AssertionError as error:  # a zero point of another shape than the scale
        raise ValueError(str(error)) from None


def _quantize_linear(
    x: Array, y_scale: Array, y_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    from onnx import helper

    given = _given(attributes)
    to = given.get("output_dtype", _number("uint8" if y_zero_point is None else y_zero_point.dtype.name))
    inputs = {"x": x, "s": y_scale} | ({} if y_zero_point is None else {"z": y_zero_point})
    node = helper.make_node("QuantizeLinear", list(inputs), ["y"], **given)
    return _run(node, inputs, [helper.make_tensor_value_info("y", to, x.shape)], opset)[0]


def _dequantize_linear(
    x: Array, x_scale: Array, x_zero_point: Array | None = None, *, opset: int = 25, **attributes: Any
) -> Any:
    from onnx import helper

    if opset < 19:  # noqa: PLR2004 - the first that it has
        msg = f"opset={opset} is not offered: onnx.reference has DequantizeLinear from opset 19 on"
        raise Unsupported(msg)
    given = _given(attributes)
    inputs = {"x": x, "s": x_scale} | ({} if x_zero_point is None else {"z": x_zero_point})
    node = helper.make_node("DequantizeLinear", list(inputs), ["y"], **given)
    output = helper.make_tensor_value_info("y", given.get("output_dtype", _number(x_scale.dtype.name)), x.shape)
    return _run(node, inputs, [output], opset)[0]


def _dynamic_quantize_linear(x: Array) -> Any:
    from onnx import helper

    node = helper.make_node("DynamicQuantizeLinear", ["x"], ["y", "y_scale", "y_zero_point"])
    types = {"y": ("uint8", x.shape), "y_scale": ("float32", []), "y_zero_point": ("uint8", [])}
    outputs = [helper.make_tensor_value_info(name, _number(t), shape) for name, (t, shape) in types.items()]
    return tuple(_run(node, {"x": x}, outputs, 11))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "onnx.reference": {
        "onnx/QuantizeLinear": Spelling(
            _quantize_linear, lambda passed: evaluated(spelling.quantize_linear(passed, cast=False), _IR_VERSION)
        ),
        "onnx/DequantizeLinear": Spelling(
            _dequantize_linear, lambda passed: evaluated(spelling.dequantize_linear(passed), _IR_VERSION)
        ),
        "onnx/DynamicQuantizeLinear": Spelling(
            _dynamic_quantize_linear, lambda passed: evaluated(spelling.dynamic_quantize_linear(passed), _IR_VERSION)
        ),
    },
}
