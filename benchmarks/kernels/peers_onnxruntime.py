"""onnxruntime: models of one operator or two, inputs and outputs bound to the memory of torch's tensors."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from kernels.cases import Case
from kernels.implementations import Call, Implementation, NotOffered

__all__ = ["PEERS"]

_NODES = {
    "quantize": "y = QuantizeLinear{} (x, s, z)",
    "fake quantize": "q = QuantizeLinear{0} (x, s, z)\ny = DequantizeLinear{0} (q, s, z)",
    "dequantize": "y = DequantizeLinear{} (x, s, z)",
    "aminmax": "y = ReduceMin{0} (x)\nv = ReduceMax{0} (x)",
}
_WORDS = {torch.float32: "float", torch.int8: "int8"}
_NUMPY = {torch.float32: np.float32, torch.int8: np.int8}


def _attributes(case: Case) -> str:
    if case.table.operation == "aminmax":
        return "<keepdims = 0>"
    if case.block:
        return f"<axis = 1, block_size = {case.block}>"
    return "" if case.axis is None else f"<axis = {case.axis}>"


def _session(case: Case, first: Tensor, outputs: dict[str, Tensor]) -> Any:
    import onnxruntime
    from onnx.parser import parse_model

    word = _WORDS[first.dtype]
    parameters = "" if "v" in outputs else ", float[] s, int8[] z"
    results = ", ".join(f"{_WORDS[t.dtype]}[] {name}" for name, t in outputs.items())
    body = _NODES[case.table.operation].format(_attributes(case))
    text = f'<ir_version: 10, opset_import: ["" : 21]> g ({word}[] x{parameters}) => ({results}) {{ {body} }}'
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = torch.get_num_threads(), 1
    # Threads that spin while they wait would slow the other implementations down.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(
        parse_model(text).SerializeToString(), options, providers=["CPUExecutionProvider"]
    )


def _make(case: Case) -> Call:
    first = case.codes if case.table.operation == "dequantize" else case.x
    if first.dtype not in _WORDS:
        msg = f"its CPU provider has no {case.table.dtype}"
        raise NotOffered(msg)
    if case.table.operation == "aminmax":
        if not case.per_tensor:
            msg = "measured per tensor only"
            raise NotOffered(msg)
        inputs, outputs = {"x": first}, {"y": torch.zeros(()), "v": torch.zeros(())}
    else:
        s, z = case.scale, case.zero_point.to(torch.int8)
        if case.axis is not None:
            s, z = s.reshape(-1), z.reshape(-1)
        inputs, outputs = {"x": first, "s": s, "z": z}, {"y": case.out}
    session = _session(case, first, outputs)
    binding = session.io_binding()
    for bind, tensors in ((binding.bind_input, inputs), (binding.bind_output, outputs)):
        for name, t in tensors.items():
            bind(name, "cpu", 0, _NUMPY[t.dtype], tuple(t.shape), t.data_ptr())
    found = tuple(outputs.values())
    keep = inputs  # the binding knows addresses only

    def call() -> tuple[Tensor, ...]:
        session.run_with_iobinding(binding)
        return found if keep else ()

    return call


PEERS = (Implementation("onnxruntime, bound", "onnxruntime", dict.fromkeys(_NODES, _make), out=True),)
