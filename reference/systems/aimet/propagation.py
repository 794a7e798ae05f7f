"""AIMET: which results of operations on a quantized tensor still know their encoding, and which one."""

from dataclasses import dataclass
from math import isfinite

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula

__all__ = ["propagation", "scaled_encoding"]

_MEASURED = "aimet-torch 2.42, measured"


@dataclass(frozen=True)
class Propagation(Behaviour):
    """The choices of what keeps an encoding."""

    spellings: str = choice({
        "alike": "treats every spelling of an operation alike",
        "apart": "gives plain tensors for some operations, and for some spellings of others",
    })  # fmt: skip
    same_values: str = choice({
        "kept": "keeps the encoding wherever all elements stay",
        "lost": "loses the encoding in positive and dropout, which change nothing",
    })  # fmt: skip
    writes: str = choice({
        "lost": "drops the encoding after every write in place, and moves it with the elements",
        "kept": "keeps the encoding after some writes in place",
    })  # fmt: skip
    integers: str = choice(
        {"plain": "gives plain tensors for integers", "encoded": "gives integers of a view and of kthvalue an encoding"}
    )
    keywords: str = choice({"taken": "takes x by keyword", "refused": "refuses x by keyword"})


@dataclass(frozen=True)
class ScaledEncoding(Behaviour):
    """The choices in scaling an encoding."""

    factor: str = choice({
        "usable": "has no encoding for a factor of 0, infinity or NaN",
        "any": "scales an encoding by a factor of 0, infinity and NaN, too",
    })  # fmt: skip
    mirror: str = choice({
        "exact": "has no encoding for a symmetric grid without a mirror and a negative factor",
        "any": "mirrors a symmetric grid that has no mirror, too",
    })  # fmt: skip
    quotient: str = choice(
        {"divide": "divides the scale", "reciprocal": "multiplies the scale by the rounded reciprocal of the divisor"}
    )


_UNMOVED = """
    contiguous requires_grad_ clone detach positive data dropout embedding
    half float double bfloat16 to cpu type type_as
        """
_COPIES = """
    reshape view flatten unflatten ravel unsqueeze expand broadcast_to view_copy unsqueeze_
    transpose swapaxes t T mT H mH adjoint permute movedim flip fliplr flipud roll rot90 t_
    __getitem__ select narrow diagonal unfold split chunk tensor_split unbind list
    gather index_select masked_select take repeat repeat_interleave tile
    sort msort topk kthvalue median max amax cummax
        """
_WRITES = "add_ mul_ zero_ copy_ resize_ __setitem__ __iadd__"

# Where 2.42 differs: by name, or with the first word of one of two spellings.
_PLAIN = """
    data bfloat16 ravel adjoint roll rot90 diagonal unfold list repeat_interleave sort topk median max amax cummax
    torch.transpose torch.broadcast_to torch.msort torch.kthvalue x.unbind
        """
_INTEGERS = ("x.kthvalue(2).indices", "x.view(torch.int32)")
_LOST = "positive dropout"
_STALE = "__setitem__ resize_ t_ unsqueeze_"


def _name(operation: str) -> str:
    return operation.partition("(")[0].rpartition(".")[2]


@formula(
    "aimet/propagation",
    equation=(
        r"kept = \begin{cases} 1 & y_j = x_j \text{ for all } j \\ [\text{one scale}] &"
        r" \text{each } y_j \text{ is some } x_i \\ 0 & \text{else} \end{cases}"
    ),
    basis=Real(),
    source="class QuantizedTensorBase: first paragraph (that values are not changed; the operations: measured)",
    behaviour=Propagation(),
    versions={"2.42": (Propagation("apart", "lost", "kept", "encoded", "refused"), _MEASURED)},
)
def propagation(b: Propagation, operation: str, granularity: str, kind: str) -> tuple[str, bool]:
    """What kind of tensor ``operation`` makes of x, and whether that has the encoding of x.

    A result of elements of x, each at its place, has it; one of elements elsewhere, if all of x share a scale. The rows
    of an embedding bring their scales along. Integers, and results that are computed, are plain tensors; x itself keeps
    its kind, and after a write into it no encoding.

    Args:
        operation: a call in torch's words, of ``x`` of shape (4, 4).
        granularity: what shares a scale: "tensor", "channel" (a row) or "block" (two rows).
        kind: of x: "quantized" or "dequantized".

    Returns:
        "quantized", "dequantized" or "plain", of the first if there are several results; whether an encoding is kept.

    Raises:
        ValueError: a call with keywords only (2.42).
    """
    name, spelling = _name(operation), operation.partition("(")[0]
    if b.keywords == "refused" and "input=" in operation:
        msg = f"operation={operation!r} is not accepted: give x by position"
        raise ValueError(msg)
    integers = operation.endswith(".indices") or "torch.int" in operation
    measured = (
        (b.integers == "encoded" and operation in _INTEGERS, (kind, granularity == "tensor")),
        (b.same_values == "lost" and name in _LOST.split(), (kind, False)),
        (b.writes == "kept" and name in _STALE.split(), (kind, True)),
        (b.spellings == "apart" and not {name, spelling}.isdisjoint(_PLAIN.split()), ("plain", False)),
    )
    documented = (
        (integers, ("plain", False)),
        (name in _UNMOVED.split(), (kind, True)),
        (name in _COPIES.split(), (kind, granularity == "tensor")),
        (name in _WRITES.split(), (kind, False)),
    )
    return next((result for holds, result in (*measured, *documented) if holds), ("plain", False))


@formula(
    "aimet/scaled_encoding",
    equation=r"s' = s \cdot |c|,\quad o' = \begin{cases} o & c > 0 \\ -q_{max} - q_{min} - o & c < 0 \end{cases}",
    basis=AsComputed(dtype="the scale's"),
    source="class QuantizedTensorBase: first paragraph (the formula: measured)",
    behaviour=ScaledEncoding(),
    versions={"2.42": (ScaledEncoding(factor="any"), _MEASURED)},
)
def scaled_encoding(
    b: ScaledEncoding,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    symmetric: bool,
    factor: float,
    divide: bool,
) -> tuple[bool] | tuple[bool, Array, Array]:
    """Scale and offset once a dequantized tensor is multiplied by ``factor``, or divided by it.

    A negative factor mirrors the grid, of which a symmetric one with an odd qmin + qmax has no mirror; 0 and what is
    not finite leave nothing to divide by.

    Args:
        scale: real per code.
        offset: minus the zero point, in codes.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: whether the encoding is marked so.
        factor: a Python number; rounded to the dtype of ``scale``.
        divide: whether to divide.

    Returns:
        Whether there is an encoding, and where there is one, its scale and its offset.
    """
    if b.factor == "usable" and (factor == 0 or not isfinite(factor)):
        return (False,)
    if b.mirror == "exact" and factor < 0 and symmetric and (qmin + qmax) % 2 != 0:
        return (False,)
    size = scale.dtype.type(abs(factor))
    quotient = scale * (scale.dtype.type(1) / size) if b.quotient == "reciprocal" else scale / size
    o = (-qmax - qmin) - offset if factor < 0 else offset
    return True, np.asarray(quotient if divide else scale * size), np.asarray(o)
