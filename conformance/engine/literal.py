"""Python source that makes an array or a tensor, bit for bit, for scripts that stand alone."""

import math
from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.engine.call import Dtype
from halfeven.conformance.engine.memory import Strided
from halfeven.reference.blocks import Array

__all__ = ["array_source", "commented", "source", "tensor_source"]

_SHOWN = 4


def source(value: Any, *, tensors: bool, memory: str = "") -> str:  # noqa: PLR0911 - one per kind of value
    """Python for an argument of a call; its arrays are NumPy's, or torch's ``tensors``, in their layout.

    ``memory`` is the variable that has the array's memory, where there is one.
    """
    match value:
        case Strided():
            if value.plain and not memory:
                return source(value.view(), tensors=tensors)
            memory, size = memory or source(value.memory, tensors=tensors), value.memory.itemsize
            if tensors:
                return f"torch.as_strided({memory}, {value.shape}, {value.strides}, {value.offset})"
            strides = tuple(s * size for s in value.strides)
            return f"np.lib.stride_tricks.as_strided({memory}[{value.offset}:], {value.shape}, {strides})"
        case np.ndarray():
            return tensor_source(array_source(value), value) if tensors else array_source(value)
        case Dtype(name):
            return f"torch.{name}" if tensors else f"np.dtype({name!r})"
        case tuple() | list():
            inner = "".join(f"{source(v, tensors=tensors)}, " for v in value)
            return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
        case Mapping():
            return "{" + ", ".join(f"{k!r}: {source(v, tensors=tensors)}" for k, v in value.items()) + "}"
        case float() if not math.isfinite(value):
            return f"float({str(value)!r})"
    return repr(value)


def commented(line: str, value: Any) -> str:
    """A line that makes an array, with the first values of its floats after it."""
    a = value.view() if isinstance(value, Strided) else None
    if a is None or not a.size or a.dtype.kind in "iub":
        return line
    shown = a.ravel()[: 1 if _one_value(a) else _SHOWN].astype(np.float64)
    return f"{line}  # {', '.join(map(repr, shown.tolist()))}{' ...' if a.size > _SHOWN and not _one_value(a) else ''}"


def array_source(a: Array) -> str:
    """Python that makes the array, floats by their bits."""
    dtype = f"np.{a.dtype.name}" if hasattr(np, a.dtype.name) else f"ml_dtypes.{a.dtype.name}"
    if not a.size:
        return f"np.empty({a.shape}, {dtype})"
    if a.dtype.kind in "iub":
        return f"np.array({a.tolist()}, {dtype})"
    unsigned = _bits(a)
    if _one_value(a):
        return f"np.full({a.shape}, {hex(int(unsigned.flat[0]))}, np.{unsigned.dtype.name}).view({dtype})"
    digits = np.array2string(unsigned, separator=", ", formatter={"int": hex}, threshold=10**6, max_line_width=10**6)
    digits = digits.replace("\n", "")
    return f"np.array({digits}, np.{unsigned.dtype.name}).view({dtype})"


def tensor_source(source: str, a: Array) -> str:
    """Python that makes a tensor of the array that ``source`` makes."""
    if a.dtype == ml_dtypes.bfloat16:
        return f"torch.from_numpy({source}.view(np.int16)).view(torch.bfloat16)"
    if a.dtype.name.startswith("float8"):
        return f"torch.from_numpy({source}.view(np.uint8)).view(torch.{a.dtype.name})"
    return f"torch.from_numpy({source})"


def _bits(a: Array) -> Array:
    bits: Array = np.array(a, order="C").view(f"uint{8 * a.dtype.itemsize}")  # ascontiguousarray makes 0-d arrays 1-d
    return bits


def _one_value(a: Array) -> bool:
    unsigned = _bits(a)
    return a.size > 1 and bool((unsigned == unsigned.flat[0]).all())
