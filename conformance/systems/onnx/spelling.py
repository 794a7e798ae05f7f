"""How scripts build the models that the backends of ONNX run: each graph as the lines that make it."""

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from halfeven.conformance.quote import Spelt

__all__ = [
    "Graph",
    "dequantize_linear",
    "dynamic_quantize_linear",
    "evaluated",
    "in_session",
    "node",
    "quantize_linear",
]

_OPSET, _DYNAMIC = 25, 11
_NOT_ATTRIBUTES = frozenset({"opset", "x", "x_scale", "x_zero_point", "y_scale", "y_zero_point"})
_REFUSALS = ("Fail", "InvalidArgument", "InvalidGraph", "RuntimeException")
_PLAIN = (
    "options = onnxruntime.SessionOptions()",
    "options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL",
)


@dataclass(frozen=True)
class Graph:
    """A graph, all that it is made of as Python.

    Attributes:
        nodes: the calls that make them.
        outputs: by name the type and the shape.
        constants: by name the array.
        inputs: the names of arrays that are given to it.
        opset: that of the model.
        first: lines that come before.
        result: what becomes of the list of its outputs.
    """

    nodes: Sequence[str]
    outputs: Mapping[str, tuple[str, str]]
    constants: Mapping[str, str]
    inputs: Sequence[str] = ()
    opset: int = _OPSET
    first: Sequence[str] = ()
    result: str = "{}[0]"

    def lines(self, ir_version: int) -> list[str]:
        """The lines that make ``model``."""
        held, given = (
            ", ".join(f"{name!r}: {array}" for name, array in some.items())
            for some in (self.constants, {name: name for name in self.inputs})
        )
        of_each = f"helper.make_tensor_value_info(name, {_type_of_array('a')}, a.shape)"
        return [
            *self.first,
            *_listed("nodes", self.nodes),
            f"inputs = [{of_each} for name, a in {{{given}}}.items()]" if self.inputs else "inputs = []",
            *_listed("outputs", [_typed(name, *of) for name, of in self.outputs.items()]),
            f"constants = [numpy_helper.from_array(a, name) for name, a in {{{held}}}.items()]",
            'graph = helper.make_graph(nodes, "g", inputs, outputs, constants)',
            f'opset = helper.make_opsetid("", {self.opset})',
            f"model = helper.make_model(graph, opset_imports=[opset], ir_version={ir_version})",
        ]


def in_session(graph: Graph, ir_version: int | None = None, *, optimized: bool = False) -> Spelt:
    """The graph in a session of ONNX Runtime; its version is the least that has the operators, if none is given."""
    from onnx import helper

    version = ir_version or int(helper.find_min_ir_version_for([helper.make_opsetid("", graph.opset)]))
    options = "" if optimized else "options, "
    made = f'onnxruntime.InferenceSession(model.SerializeToString(), {options}providers=["CPUExecutionProvider"])'
    steps = [*graph.lines(version), *(() if optimized else _PLAIN), f"session = {made}"]
    given = ", ".join(f"{name!r}: {name}" for name in graph.inputs)
    return Spelt(
        f"import onnxruntime\n{_header(steps)}",
        graph.result.format(f"session.run(None, {{{given}}})"),
        "\n".join(steps),
        ", ".join(f"onnxruntime.capi.onnxruntime_pybind11_state.{name}" for name in _REFUSALS),
    )


def evaluated(graph: Graph, ir_version: int) -> Spelt:
    """The graph by the reference of onnx, after its checker."""
    steps = [*graph.lines(ir_version), "checker.check_model(model, full_check=True)"]
    header = f"{_header(steps, 'checker')}\nfrom onnx.reference import ReferenceEvaluator"
    called = graph.result.format("ReferenceEvaluator(model).run(None, {})")
    return Spelt(header, called, "\n".join(steps), "checker.ValidationError, IndexError, AssertionError")


def quantize_linear(passed: Mapping[str, str], *, cast: bool) -> Graph:
    """QuantizeLinear with these arguments; ``cast``: its result leaves as float32 or int32, and is turned back."""
    attributes, inputs = _attributes(passed), _inputs(passed, "y_scale", "y_zero_point")
    if "output_dtype" in attributes or "z" not in inputs:
        name = str(ast.literal_eval(passed.get("output_dtype", "None")) or "uint8")
        first, to, dtype = [], _type_of(name), _dtype_of(name)
        stored = _type_of("float32" if name.startswith("float") else "int32")
    else:
        dtype = f"{inputs['z']}.dtype"
        kind = f'TensorProto.FLOAT if {dtype}.name.startswith("float") else TensorProto.INT32'
        first, stored, to = [f"stored = {kind}"] if cast else [], "stored", _type_of_array(inputs["z"])
    nodes = [node("QuantizeLinear", inputs, ["q" if cast else "y"], **attributes)]
    nodes += [node("Cast", ["q"], ["y"], to=stored)] if cast else []
    outputs = {"y": (stored if cast else to, f"{inputs['x']}.shape")}
    result = f"{{}}[0].astype({dtype})" if cast else "{}[0]"
    return Graph(nodes, outputs, inputs, opset=_opset(passed), first=first, result=result)


def dequantize_linear(passed: Mapping[str, str]) -> Graph:
    """DequantizeLinear with these arguments."""
    attributes, inputs = _attributes(passed), _inputs(passed, "x_scale", "x_zero_point")
    to = attributes.get("output_dtype", _type_of_array(inputs["s"]))
    nodes = [node("DequantizeLinear", inputs, ["y"], **attributes)]
    return Graph(nodes, {"y": (to, f"{inputs['x']}.shape")}, inputs, opset=_opset(passed))


def dynamic_quantize_linear(passed: Mapping[str, str]) -> Graph:
    """DynamicQuantizeLinear with these arguments."""
    x = passed["x"]
    byte = _type_of("uint8")
    outputs = {"y": (byte, f"{x}.shape"), "y_scale": (_type_of("float32"), "[]"), "y_zero_point": (byte, "[]")}
    nodes = [node("DynamicQuantizeLinear", ["x"], outputs)]
    return Graph(nodes, outputs, {"x": x}, opset=_DYNAMIC, result="tuple({})")


def node(operator: str, inputs: Iterable[str], outputs: Iterable[str], **attributes: str) -> str:
    """A node, its attributes as Python.

    >>> node("Cast", ["q"], ["y"], to="TensorProto.INT32")
    "helper.make_node('Cast', ['q'], ['y'], to=TensorProto.INT32)"
    """
    words = "".join(f", {key}={text}" for key, text in attributes.items())
    return f"helper.make_node({operator!r}, {[*inputs]}, {[*outputs]}{words})"


def _inputs(passed: Mapping[str, str], scale: str, zero_point: str) -> dict[str, str]:
    z = passed.get(zero_point, "None")
    return {"x": passed["x"], "s": passed[scale]} | ({} if z == "None" else {"z": z})


def _opset(passed: Mapping[str, str]) -> int:
    return int(passed.get("opset", _OPSET))


def _attributes(passed: Mapping[str, str]) -> dict[str, str]:
    """The arguments that are attributes, if they are set: dtypes as ONNX's types."""
    found = {}
    for key, text in passed.items():
        if key not in _NOT_ATTRIBUTES and text != "None":
            value = ast.literal_eval(text)
            found[key] = _type_of(value) if isinstance(value, str) else text
    return found


def _type_of(name: str) -> str:
    """ONNX's type for a dtype, as Python."""
    import ml_dtypes
    import numpy as np
    from onnx import helper

    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return str(helper.tensor_dtype_to_string(helper.np_dtype_to_tensor_dtype(dtype)))


def _dtype_of(name: str) -> str:
    import numpy as np

    return f"{'np' if hasattr(np, name) else 'ml_dtypes'}.{name}"


def _type_of_array(array: str) -> str:
    return f"helper.np_dtype_to_tensor_dtype({array}.dtype)"


def _typed(name: str, kind: str, shape: str) -> str:
    return f"helper.make_tensor_value_info({name!r}, {kind}, {shape})"


def _header(steps: Iterable[str], *others: str) -> str:
    types = ["TensorProto"] if any("TensorProto." in line for line in steps) else []
    return f"from onnx import {', '.join([*types, *others, 'helper', 'numpy_helper'])}"


def _listed(name: str, items: Sequence[str]) -> list[str]:
    """A list as lines: one of two entries or more has a line for each."""
    if len(items) <= 1:
        return [f"{name} = [{''.join(items)}]"]
    return [f"{name} = [", *(f"    {item}," for item in items), "]"]
