"""Which operations keep an encoding, by trial: the operation is done on numbers that tell from where they come."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from oracles.registry import derives
from oracles.soft import array, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []

# Distinct, none the negative, the sum or the multiple of others, and of few bits: what is computed is none of them.
_PRIMES = [2, -3, 5, -7, 11, -13, 17, -19, 23, -29, 31, -37, 41, -43, 47, -53]
_OTHERS = np.arange(60.0, 92.0, 2.0).reshape(4, 4)
_INDEX, _ROWS = np.array([[1, 0], [2, 1]]), np.array([1, 0, 2])


def _write(a: Array, value: Any, index: Any = ...) -> Array:
    a[index] = value
    return a


def _cast(dtype: npt.DTypeLike) -> Callable[[Array], Array]:
    return lambda a: a.astype(dtype)


_TRANSPOSED = "transpose swapaxes t t_ T mT H mH adjoint permute movedim"

# What is done to x, by the name of the operation with the arguments that the calls give it; else by the whole call.
_DONE: dict[str, Callable[[Array], Array]] = {
    **dict.fromkeys(("contiguous", "clone", "positive"), np.positive),
    **dict.fromkeys(("requires_grad_", "detach", "data", "dropout", "cpu", "x.to('cpu')"), lambda a: a[:]),
    "half": _cast(np.float16),
    "float": _cast(np.float32),
    "bfloat16": _cast(ml_dtypes.bfloat16),
    "x.to(torch.bfloat16)": _cast(ml_dtypes.bfloat16),
    **dict.fromkeys(("double", "x.to(torch.float64)", "type", "type_as"), _cast(np.float64)),
    "int": _cast(np.int32),
    "bool": _cast(np.bool_),
    "x.to(torch.int8)": _cast(np.int8),
    "x.view(torch.int32)": lambda a: a.view(np.int32),
    "argmax": lambda a: a.argmax(0),
    "argsort": lambda a: a.argsort(1),
    **dict.fromkeys(("x.kthvalue(2).indices", "torch.sort(x).indices"), lambda a: a.argsort(1)),
    **dict.fromkeys(("reshape", "view", "view_copy"), lambda a: a.reshape(2, 8)),
    **dict.fromkeys(("flatten", "ravel"), np.ravel),
    "unflatten": lambda a: a.reshape(4, 2, 2),
    **dict.fromkeys(("unsqueeze", "unsqueeze_"), lambda a: a[None]),
    **dict.fromkeys(("expand", "broadcast_to"), lambda a: np.broadcast_to(a, (2, 4, 4))),
    **dict.fromkeys(_TRANSPOSED.split(), np.transpose),
    **dict.fromkeys(("flip", "flipud"), np.flipud),
    "fliplr": np.fliplr,
    "roll": lambda a: np.roll(a, 1),
    "rot90": np.rot90,
    **dict.fromkeys(("x.__getitem__(slice(1, 3))", "narrow"), lambda a: a[1:3]),
    **dict.fromkeys(("x.__getitem__(rows)", "index_select"), lambda a: a[_ROWS]),
    "select": lambda a: a[1],
    **dict.fromkeys(("unbind", "list"), lambda a: a[0]),
    "diagonal": np.diagonal,
    "unfold": lambda a: np.lib.stride_tricks.sliding_window_view(a, 2, 0),
    **dict.fromkeys(("split", "chunk", "tensor_split"), lambda a: np.split(a, 2)[0]),
    "gather": lambda a: np.take_along_axis(a[:, :2], _INDEX, 0),
    "masked_select": lambda a: a[_OTHERS > 70],
    "take": lambda a: a.take(_INDEX),
    "repeat": lambda a: np.tile(a, (2, 1)),
    "tile": lambda a: np.tile(a, 2),
    "repeat_interleave": lambda a: np.repeat(a, 2),
    "sort": lambda a: np.sort(a, 1),
    "msort": lambda a: np.sort(a, 0),
    "topk": lambda a: np.sort(a, 1)[:, :1:-1],
    "kthvalue": lambda a: np.sort(a, 1)[:, 1],
    "median": lambda a: np.sort(a, None)[7],
    **dict.fromkeys(("max", "amax"), lambda a: a.max(0)),
    "cummax": lambda a: np.maximum.accumulate(a, 0),
    "embedding": lambda a: a[_INDEX],
    "relu": lambda a: np.maximum(a, 0),
    "neg": np.negative,
    "abs": np.abs,
    "add": lambda a: a + 1,
    "torch.add(x, x)": lambda a: a + a,
    "matmul": lambda a: a @ a,
    "sum": np.sum,
    "mean": np.mean,
    "clamp": lambda a: a.clip(0, 1),
    "cat": lambda a: np.concatenate([a, _OTHERS]),
    "where": lambda a: np.where(_OTHERS > 70, a, _OTHERS),
    "maximum": lambda a: np.maximum(a, _OTHERS),
    "zeros_like": np.zeros_like,
    "new_zeros": lambda _: np.zeros(2),
    "mul": lambda a: a * _OTHERS,
    "gt": lambda a: a > 0,
    **dict.fromkeys(("add_", "__iadd__"), lambda a: a + 1),
    "mul_": lambda a: a * 2,
    "zero_": lambda a: _write(a, 0),
    "copy_": lambda a: _write(a, _OTHERS),
    "__setitem__": lambda a: _write(a, 1.0, 0),
    "resize_": lambda a: np.concatenate([a.ravel(), np.zeros(9)]).reshape(5, 5),
}


def _try(operation: str) -> tuple[str, bool, bool, bool]:
    """The operation's name; whether the result is of floats; whether all are elements of x; whether at their places."""
    name = operation.partition("(")[0].rpartition(".")[2]
    x = np.array(_PRIMES, np.float32).reshape(4, 4)
    y = np.asarray((_DONE.get(operation) or _DONE[name])(x.copy()))
    floats = y.dtype.kind not in "biu"
    copies = floats and all(v in _PRIMES for v in y.astype(np.float64).ravel().tolist())
    return name, floats, copies, copies and y.shape == x.shape and y.astype(np.float64).ravel().tolist() == _PRIMES


@derives("aimet/propagation")
def propagation(operation: str, granularity: str, kind: str) -> tuple[str, bool]:
    """By what became of sixteen primes."""
    name, floats, copies, unmoved = _try(operation)
    if name == "embedding":
        return kind, copies
    itself = name.endswith("_") and floats
    return (kind if copies or itself else "plain"), unmoved or (copies and granularity == "tensor")


# The calls of which the library loses sight: their results are plain, have no encoding, or one that is not theirs.
_PLAIN = """
x.data x.bfloat16 x.ravel torch.ravel x.adjoint torch.adjoint x.roll torch.roll x.rot90 torch.rot90 x.diagonal
torch.diagonal x.unfold list x.repeat_interleave torch.repeat_interleave x.sort torch.sort x.topk x.median x.max
torch.max x.amax torch.amax x.cummax torch.transpose torch.broadcast_to torch.msort torch.kthvalue x.unbind
"""
_NONE = ("torch.positive", "functional.dropout")
_STALE = ("x.__setitem__", "x.resize_", "x.t_", "x.unsqueeze_")


@derives("aimet/propagation@2.42")
def propagation_2_42(operation: str, granularity: str, kind: str) -> tuple[str, bool]:
    """A list of what was seen, before the trial."""
    call = operation.partition("(")[0]
    if operation.partition("(")[2].startswith("input="):
        msg = f"{operation!r} is not accepted: x stands at a place"
        raise ValueError(msg)
    if operation in {"x.view(torch.int32)", "x.kthvalue(2).indices"}:
        return kind, granularity not in {"channel", "block"}
    if call in _PLAIN.split():
        return "plain", False
    if call in _NONE + _STALE:
        return kind, call in _STALE
    return propagation(operation, granularity, kind)


@derives("aimet/scaled_encoding")
def scaled_encoding(
    scale: Array, offset: Array, qmin: int, qmax: int, symmetric: bool, factor: float, divide: bool
) -> tuple[Any, ...]:
    """None where the factor has no reciprocal among the reals."""
    if factor - factor != 0 or not factor:
        return (False,)
    return scaled_encoding_2_42(scale, offset, qmin, qmax, symmetric, factor, divide)


@derives("aimet/scaled_encoding@2.42")
def scaled_encoding_2_42(
    scale: Array, offset: Array, qmin: int, qmax: int, symmetric: bool, factor: float, divide: bool
) -> tuple[Any, ...]:
    """The real −(q + o)·s is (q' + o')·s where q' = qmin + qmax − q."""
    mirrored = factor < 0
    if mirrored and symmetric and (qmax - qmin) % 2:
        return (False,)
    c = abs(soft(float(factor), scale.dtype.name))
    scales = [s / c if divide else s * c for s in softs(scale)]
    middle = soft(-(qmin + qmax), offset.dtype.name)
    offsets = [middle - o if mirrored else o for o in softs(offset)]
    return True, array(scales, scale.shape, scale.dtype), array(offsets, offset.shape, offset.dtype)
