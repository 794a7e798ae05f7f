"""onnxruntime: graphs of several nodes, optimized as by default; it speaks NumPy, and has no operations."""

from functools import partial

from halfeven.conformance.backends.common import quiet_import
from halfeven.conformance.backends.protocol import Backend

__all__ = ["load"]


def load(_name: str) -> partial[Backend]:
    """The backend of graphs; what it answers stands in the room of the formulas."""
    quiet_import("onnx")
    quiet_import("onnxruntime")
    return partial(Backend, array="numpy", path=lambda: "CPUExecutionProvider, opset 21, sessions as they come")
