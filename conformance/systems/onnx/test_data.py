"""Calls as ONNX's own test data: a folder per model, with inputs and documented outputs, that its test drivers run.

An operation's call becomes the operator's, with the zero point in the codes' type. Layouts are not kept, since a tensor
in such a file has none; and what is to be refused is left out, since a driver expects no refusal.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.configuration import Array
from halfeven.conformance.engine.call import Answer, Call, Dtype, arguments_of
from halfeven.conformance.systems.onnx.adapter_model import attributes, code_type, fitted
from halfeven.reference import Grid

__all__ = ["KIND", "write"]

KIND = "halfeven"
_OPERATORS = {
    "onnx/QuantizeLinear": ("x", "y_scale", "y_zero_point"),
    "onnx/DequantizeLinear": ("x", "x_scale", "x_zero_point"),
    "onnx/DynamicQuantizeLinear": ("x",),
}
_OPERATIONS = {"onnx:quantize": "onnx/QuantizeLinear", "onnx:dequantize": "onnx/DequantizeLinear"}
_OPSET, _DYNAMIC = 25, 11
_IR = 13  # of opset 25


@dataclass(frozen=True)
class _Case:
    operator: str
    inputs: Mapping[str, Array]
    attributes: Mapping[str, Any]
    outputs: tuple[Array, ...]
    opset: int

    @property
    def model(self) -> tuple[Any, ...]:
        """What one model serves: the operator, its attributes, and the types and ranks that enter and leave."""
        given = tuple(sorted(self.attributes.items()))
        entering = tuple((name, a.dtype.name, a.ndim) for name, a in self.inputs.items())
        return self.operator, given, entering, tuple((a.dtype.name, a.ndim) for a in self.outputs), self.opset


def write(folder: Path, calls: Sequence[Call], answers: Sequence[Answer]) -> tuple[int, int]:
    """Write ``folder/halfeven/test_*/``, each with ``model.onnx`` and ``test_data_set_*``; how many of each.

    Raises:
        ValueError: a formula is no operator of ONNX, onnx is not installed, or the folder holds something.
    """
    try:
        import onnx
    except ImportError as error:
        msg = "--format=onnx needs onnx, which is not installed: pip install halfeven[onnx]"
        raise ValueError(msg) from error
    if foreign := {c.formula for c in calls} - {*_OPERATORS, *_OPERATIONS}:
        msg = f"--format=onnx is not accepted for {min(foreign)}: give {', '.join([*_OPERATORS, *_OPERATIONS])}"
        raise ValueError(msg)
    folder.mkdir(parents=True, exist_ok=True)
    if any(folder.iterdir()):
        msg = f"--out: {folder} holds something: name a folder that is empty or not there yet"
        raise ValueError(msg)
    models: dict[tuple[Any, ...], tuple[Path, set[bytes]]] = {}
    count = 0
    for case in _cases(calls, answers):
        if case.model not in models:
            operator = case.operator.partition("/")[2].lower()
            path = folder / KIND / f"test_{operator}_{len(models):03}"
            path.mkdir(parents=True)
            (path / "model.onnx").write_bytes(_model(case).SerializeToString())
            (path / "data.json").write_text(json.dumps({"rtol": 0.0, "atol": 0.0}), encoding="ascii")
            models[case.model] = path, set()
        path, seen = models[case.model]
        named = zip(("input", "output"), (case.inputs.values(), case.outputs), strict=True)
        data = {
            f"{kind}_{i}.pb": onnx.numpy_helper.from_array(np.ascontiguousarray(a).reshape(a.shape)).SerializeToString()
            for kind, arrays in named
            for i, a in enumerate(arrays)
        }
        content = hashlib.sha256(b"".join(data.values())).digest()
        if content not in seen:  # calls that differ in layout and mode alone
            held = path / f"test_data_set_{len(seen)}"
            held.mkdir()
            for name, bytes_ in data.items():
                (held / name).write_bytes(bytes_)
            seen.add(content)
            count += 1
    return len(models), count


def _holds_nan(call: Call) -> bool:
    """Whether an operation is given NaN, of which ONNX is silent: its drivers know one right output."""
    x = call.positional[0].view()
    return x.dtype.kind not in "iu" and bool(np.isnan(x).any())


def _cases(calls: Sequence[Call], answers: Sequence[Answer]) -> Iterator[_Case]:
    for call, answer in zip(calls, answers, strict=True):
        if answer.kind == "returned" and not (call.formula in _OPERATIONS and _holds_nan(call)):
            try:
                yield _operation(call, answer) if call.formula in _OPERATIONS else _operator(call, answer)
            except Unsupported:  # no types of ONNX's have these codes or blocks
                continue


def _operator(call: Call, answer: Answer) -> _Case:
    named = arguments_of(call.named)
    given = {name: np.asarray(named[name]) for name in _OPERATORS[call.formula] if named.get(name) is not None}
    others = {n: _attribute(v) for n, v in named.items() if n not in {*given, "opset"} and v is not None}
    opset = named.get("opset", _DYNAMIC if call.formula.endswith("/DynamicQuantizeLinear") else _OPSET)
    outputs = answer.value if isinstance(answer.value, tuple | list) else (answer.value,)
    return _Case(call.formula, given, others, tuple(map(np.asarray, outputs)), opset)


def _operation(call: Call, answer: Answer) -> _Case:
    x, scale, zero = map(np.asarray, arguments_of(call.positional))
    codes = Grid(call.named["qmin"], call.named["qmax"])
    dtype = code_type(codes)
    axis, length, form = attributes(call.named.get("block_size"), x.shape)
    z = fitted(zero, codes, dtype)
    s, z = (scale, z) if form is None else (scale.reshape(form), z.reshape(form))
    others = ({} if axis is None else {"axis": axis}) | ({"block_size": length} if length else {})
    formula = _OPERATIONS[call.formula]
    quantizes = formula == "onnx/QuantizeLinear"
    given = dict(zip(_OPERATORS[formula], (x if quantizes else x.astype(dtype), s, z), strict=True))
    value = np.asarray(answer.value)
    return _Case(formula, given, others, (value.astype(dtype) if quantizes else value,), _OPSET)


def _attribute(value: Any) -> Any:
    return _number(value.name if isinstance(value, Dtype) else value) if isinstance(value, Dtype | str) else value


def _number(name: str) -> int:
    import ml_dtypes
    from onnx import helper

    return int(helper.np_dtype_to_tensor_dtype(np.dtype(getattr(ml_dtypes, name, name))))


def _model(case: _Case) -> Any:
    from onnx import helper

    def told(name: str, a: Array) -> Any:
        dims = [f"{name}{d}" for d in range(a.ndim)]
        return helper.make_tensor_value_info(name, _number(a.dtype.name), dims)

    names = [f"out{i}" for i in range(len(case.outputs))]
    node = helper.make_node(case.operator.partition("/")[2], [*case.inputs], names, **case.attributes)
    outputs = [told(n, a) for n, a in zip(names, case.outputs, strict=True)]
    graph = helper.make_graph([node], "halfeven", [told(n, a) for n, a in case.inputs.items()], outputs)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", case.opset)], ir_version=_IR)
