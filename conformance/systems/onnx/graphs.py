"""ONNX graphs between codes: what is required, the calls, and ONNX Runtime's answers, optimized and not."""

import ast
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.configuration import Array
from halfeven.conformance.quote import Spelling, Spelt
from halfeven.conformance.requirement import Calls, documented
from halfeven.conformance.systems.onnx import spelling

__all__ = ["ANSWERS"]

_ONE, _TWO, _TWICE = "onnx/qdq-one-input", "onnx/qdq-two-inputs", "onnx/qdq-twice"
_SOURCE = "ONNX: a graph's value is that of its nodes, in order"
_TYPES = (("int8", -128, 127), ("uint8", 0, 255))
_NODES = ("Identity", "Relu", "Clip", "Reshape", "Transpose", "MaxPool")


def _scalar(value: float, dtype: str = "float32") -> Array:
    return np.array(value, dtype)


def _grids(dtype: str, low: int, high: int) -> Iterator[dict[str, Array]]:
    """Two grids: the same; of zero points at the ends; the second finer, coarser, moved."""
    middle = low + 128
    for s, z, s2, z2 in (
        (0.5, middle + 3, 0.5, middle + 3),
        (0.1, low, 0.1, low),
        (0.1, high, 0.1, high),
        (0.1, middle + 3, 0.3, middle + 5),
        (0.05, middle, 0.1, low),
        (0.1, high, 0.05, high),
        (0.5, middle, 1.0, middle + 1),
    ):
        yield {
            "x_scale": _scalar(s),
            "x_zero_point": _scalar(z, dtype),
            "y_scale": _scalar(s2),
            "y_zero_point": _scalar(z2, dtype),
        }


def _every(dtype: str, low: int, high: int) -> Array:
    """Every code, so placed that neighbours differ in both directions."""
    codes = (np.arange(256) * 37) % 256 + low
    assert codes.max() == high
    return codes.astype(dtype).reshape(2, 8, 16)


@documented(_ONE, _SOURCE)
def composed() -> Calls:
    """A node between DequantizeLinear and QuantizeLinear gives the codes of the three operators one after the other."""
    for kind in _TYPES:
        for grids in _grids(*kind):
            for node in _NODES:
                yield {"x": _every(*kind), **grids, "node": node}


@documented(_ONE, _SOURCE)
def infinite_reals() -> Calls:
    """So does one under a scale so large that reals are infinite: an infinity saturates."""
    for dtype, low, high in _TYPES:
        for node in _NODES[:-1]:
            yield from _far(_every(dtype, low, high), _scalar(low + 131, dtype), node)


@documented(_ONE, _SOURCE)
def infinite_maxima() -> Calls:
    """And so does MaxPool, whose maximum of two infinities of one sign is that infinity."""
    for dtype, low, high in _TYPES:
        yield from _far(_every(dtype, low, high), _scalar(low + 131, dtype), "MaxPool")


def _far(x: Array, z: Array, node: str) -> Calls:
    for s in (2e37, 3e38):
        scales = {"x_scale": _scalar(s), "x_zero_point": z, "y_scale": _scalar(s), "y_zero_point": z}
        yield {"x": x, **scales, "node": node}


def _pairs(dtype: str, low: int, high: int) -> Iterator[dict[str, Array]]:
    """Each eighth code with every other code, some in each call."""
    codes = np.arange(low, high + 1)
    for part in np.split(codes[::8], 16):
        a, b = np.meshgrid(part, codes)
        yield {"a": a.astype(dtype), "b": b.astype(dtype)}


def _of_two(node: str, scales: tuple[float, float, float], zeros: tuple[int, int, int]) -> Calls:
    for dtype, low, high in _TYPES:
        given: dict[str, Any] = {"node": node}
        for name, s, z in zip(("a", "b", "y"), scales, zeros, strict=True):
            given |= {f"{name}_scale": _scalar(s), f"{name}_zero_point": _scalar(low + 128 + z, dtype)}
        for pair in _pairs(dtype, low, high):
            yield pair | given


@documented(_TWO, _SOURCE)
def exact_sums() -> Calls:
    """Sums that no scale rounds, and no tie: the codes of Add."""
    yield from _of_two("Add", (1, 1, 1), (0, 0, 0))
    yield from _of_two("Add", (0.5, 1, 0.25), (3, -4, 8))


@documented(_TWO, _SOURCE)
def ties_of_sums() -> Calls:
    """A sum half-way between two codes is rounded to the even multiple of the scale, before the zero point is added."""
    yield from _of_two("Add", (1, 1, 2), (0, 0, 0))
    yield from _of_two("Add", (0.5, 0.25, 0.5), (3, 5, 1))


@documented(_TWO, _SOURCE)
def rounded_sums() -> Calls:
    """The sum of reals is rounded to float32, and then the quotient by the scale."""
    yield from _of_two("Add", (0.1, 0.3, 0.2), (3, 5, 7))
    yield from _of_two("Add", (0.05, 0.05, 0.1), (0, 0, 0))


@documented(_TWO, _SOURCE)
def ties_of_products() -> Calls:
    """A product half-way between two codes is rounded to the even multiple of the scale, before the zero point."""
    yield from _of_two("Mul", (1, 1, 2), (0, 0, 0))
    yield from _of_two("Mul", (0.5, 0.25, 0.5), (3, 5, 1))


@documented(_TWO, _SOURCE)
def rounded_products() -> Calls:
    """The product of reals is rounded to float32, and then the quotient by the scale."""
    yield from _of_two("Mul", (0.1, 0.3, 0.2), (3, 5, 7))


def _line() -> Array:
    return np.concatenate([np.linspace(-40, 40, 401), [np.inf, -np.inf, -0.0, 3e38]]).astype(np.float32)


def _two_grids(*pairs: tuple[float, int, float, int]) -> Calls:
    for dtype, low, _ in _TYPES:
        for s, z, s2, z2 in pairs:
            first = {"x_scale": _scalar(s), "x_zero_point": _scalar(low + 128 + z, dtype)}
            yield {"x": _line(), **first, "y_scale": _scalar(s2), "y_zero_point": _scalar(low + 128 + z2, dtype)}


@documented(_TWICE, _SOURCE)
def same_grid() -> Calls:
    """Reals that went through a grid go through the same one unchanged."""
    yield from _two_grids((0.1, 0, 0.1, 0), (0.5, 3, 0.5, 3), (0.3, -128, 0.3, -128))


@documented(_TWICE, _SOURCE)
def two_grids() -> Calls:
    """Reals that go through two grids are multiples of the second scale, less its zero point, of the nearest multiples
    of the first."""
    yield from _two_grids((0.1, 0, 0.05, 0), (0.05, 0, 0.1, 0), (0.1, 0, 0.15, 20), (0.1, -30, 0.1, 20))


_ELEMENTS = {"int8": 3, "uint8": 2}  # of TensorProto.DataType
_OPSET, _IR_VERSION = 21, 10
_Node = tuple[str, str, str, Mapping[str, Any]]  # operator, names of inputs, of the output, attributes
_OF_ONE = {  # what a node between has beside its input
    "Clip": {"least": ("0", "float32"), "most": ("6", "float32")},
    "Reshape": {"shape": ("[-1]", "int64")},
}
_ATTRIBUTES: dict[str, dict[str, Any]] = {"Transpose": {"perm": [0, 2, 1]}, "MaxPool": {"kernel_shape": [2]}}


def _session(
    optimized: bool, nodes: list[_Node], inputs: dict[str, Array], constants: dict[str, Array], real: bool
) -> Any:
    """The output ``y`` of a graph, of which the data are inputs and the parameters constants, as exporters write it."""
    import onnxruntime as ort
    from onnx import helper, numpy_helper

    given = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(a.dtype), a.shape) for n, a in inputs.items()
    ]
    tensors = [numpy_helper.from_array(np.asarray(a), n) for n, a in constants.items()]
    zero = constants["y_zero_point"].dtype.name
    if zero not in _ELEMENTS:
        msg = f"y_zero_point of {zero} is not offered here: int8 and uint8"
        raise Unsupported(msg)
    output = helper.make_tensor_value_info("y", 1 if real else _ELEMENTS[zero], None)
    made = [helper.make_node(operator, names.split(), [to], **more) for operator, names, to, more in nodes]
    graph = helper.make_graph(made, "g", given, [output], tensors)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", _OPSET)], ir_version=_IR_VERSION)
    options = ort.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return session.run(None, inputs)[0]


def _spelt(nodes: list[_Node], inputs: tuple[str, ...], constants: Mapping[str, str], *, optimized: bool) -> Spelt:
    """The same for a script; it ends in reals where its last node is no QuantizeLinear."""
    made = [
        spelling.node(operator, names.split(), [to], **{k: repr(v) for k, v in more.items()})
        for operator, names, to, more in nodes
    ]
    coded = nodes[-1][0] == "QuantizeLinear"
    to = "helper.np_dtype_to_tensor_dtype(y_zero_point.dtype)" if coded else "TensorProto.FLOAT"
    graph = spelling.Graph(made, {"y": (to, "None")}, constants, inputs, _OPSET)
    return spelling.in_session(graph, _IR_VERSION, optimized=optimized)


def _through_one(node: str) -> list[_Node]:
    beside = "".join(f" {name}" for name in _OF_ONE.get(node, {}))
    return [
        ("DequantizeLinear", "x x_scale x_zero_point", "d", {}),
        (node, f"d{beside}", "r", _ATTRIBUTES.get(node, {})),
        ("QuantizeLinear", "r y_scale y_zero_point", "y", {}),
    ]


def _one_input(optimized: bool, x: Array, node: str, **parameters: Array) -> Any:
    beside = {name: np.array(ast.literal_eval(v), dtype) for name, (v, dtype) in _OF_ONE.get(node, {}).items()}
    return _session(optimized, _through_one(node), {"x": x}, parameters | beside, real=False)


def _spelt_one_input(optimized: bool, passed: Mapping[str, str]) -> Spelt:
    node = ast.literal_eval(passed["node"])
    constants = {name: text for name, text in passed.items() if name not in ("x", "node")}
    constants |= {name: f"np.array({v}, np.{dtype})" for name, (v, dtype) in _OF_ONE.get(node, {}).items()}
    return _spelt(_through_one(node), ("x",), constants, optimized=optimized)


def _of_both(node: str) -> list[_Node]:
    return [
        ("DequantizeLinear", "a a_scale a_zero_point", "u", {}),
        ("DequantizeLinear", "b b_scale b_zero_point", "v", {}),
        (node, "u v", "r", {}),
        ("QuantizeLinear", "r y_scale y_zero_point", "y", {}),
    ]


def _two_inputs(optimized: bool, a: Array, b: Array, node: str, **parameters: Array) -> Any:
    return _session(optimized, _of_both(node), {"a": a, "b": b}, parameters, real=False)


def _spelt_two_inputs(optimized: bool, passed: Mapping[str, str]) -> Spelt:
    constants = {name: text for name, text in passed.items() if name not in ("a", "b", "node")}
    return _spelt(_of_both(ast.literal_eval(passed["node"])), ("a", "b"), constants, optimized=optimized)


_TWO_GRIDS: list[_Node] = [
    ("QuantizeLinear", "x x_scale x_zero_point", "q", {}),
    ("DequantizeLinear", "q x_scale x_zero_point", "d", {}),
    ("QuantizeLinear", "d y_scale y_zero_point", "r", {}),
    ("DequantizeLinear", "r y_scale y_zero_point", "e", {}),
    ("Identity", "e", "y", {}),
]


def _twice(optimized: bool, x: Array, **parameters: Array) -> Any:
    return _session(optimized, _TWO_GRIDS, {"x": x}, parameters, real=True)


def _spelt_twice(optimized: bool, passed: Mapping[str, str]) -> Spelt:
    constants = {name: text for name, text in passed.items() if name != "x"}
    return _spelt(_TWO_GRIDS, ("x",), constants, optimized=optimized)


def _answers(*, optimized: bool) -> dict[str, Callable[..., Any]]:
    return {
        _ONE: Spelling(partial(_one_input, optimized), partial(_spelt_one_input, optimized)),
        _TWO: Spelling(partial(_two_inputs, optimized), partial(_spelt_two_inputs, optimized)),
        _TWICE: Spelling(partial(_twice, optimized), partial(_spelt_twice, optimized)),
    }


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "onnxruntime": _answers(optimized=False),
    "onnxruntime.graphs": _answers(optimized=True),
}
