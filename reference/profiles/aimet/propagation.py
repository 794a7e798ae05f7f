"""AIMET: which results of operations on a quantized tensor still know their encoding, and which one."""

from math import isfinite

import numpy as np

from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula

__all__ = ["propagation", "propagation_2_42", "scaled_encoding", "scaled_encoding_2_42"]

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

# Where the library parts: by name, or with the first word of one of two spellings.
_PLAIN_2_42 = """
    data bfloat16 ravel adjoint roll rot90 diagonal unfold list repeat_interleave sort topk median max amax cummax
    torch.transpose torch.broadcast_to torch.msort torch.kthvalue x.unbind
        """
_LOST_2_42 = "positive dropout"
_STALE_2_42 = "__setitem__ resize_ t_ unsqueeze_"


def _name(operation: str) -> str:
    return operation.partition("(")[0].rpartition(".")[2]


@formula(
    "aimet.propagation",
    equation=(
        r"kept = \begin{cases} 1 & y_j = x_j \text{ for all } j \\ [\text{one scale}] &"
        r" \text{each } y_j \text{ is some } x_i \\ 0 & \text{else} \end{cases}"
    ),
    basis=Real(),
    source="class QuantizedTensorBase: first paragraph (that values are not changed; the operations: measured)",
)
def propagation(operation: str, granularity: str, kind: str) -> tuple[str, bool]:
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
    """
    name = _name(operation)
    if operation.endswith(".indices") or "torch.int" in operation:
        return "plain", False
    if name in _UNMOVED.split():
        return kind, True
    if name in _COPIES.split():
        return kind, granularity == "tensor"
    return (kind, False) if name in _WRITES.split() else ("plain", False)


@formula(
    "aimet.propagation@2.42",
    equation=r"kept = \text{by the operation's spelling}",
    basis=Real(),
    source="aimet-torch 2.42, measured",
)
def propagation_2_42(operation: str, granularity: str, kind: str) -> tuple[str, bool]:
    """``propagation``, save that some spellings give plain tensors, and some writes leave the encoding.

    Raises:
        ValueError: a call with keywords only.
    """
    name, spelling = _name(operation), operation.partition("(")[0]
    if "input=" in operation:
        msg = f"operation={operation!r} is not accepted: give x by position"
        raise ValueError(msg)
    if operation in {"x.kthvalue(2).indices", "x.view(torch.int32)"}:
        return kind, granularity == "tensor"
    if name in _LOST_2_42.split():
        return kind, False
    if name in _STALE_2_42.split():
        return kind, True
    plain = {name, spelling}.intersection(_PLAIN_2_42.split())
    return ("plain", False) if plain else propagation(operation, granularity, kind)


@formula(
    "aimet.scaled_encoding",
    equation=r"s' = s \cdot |c|,\quad o' = \begin{cases} o & c > 0 \\ -q_{max} - q_{min} - o & c < 0 \end{cases}",
    basis=AsComputed(dtype="the scale's"),
    source="class QuantizedTensorBase: first paragraph (the formula: measured)",
)
def scaled_encoding(
    scale: Array, offset: Array, qmin: int, qmax: int, symmetric: bool, factor: float, divide: bool
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
    if factor == 0 or not isfinite(factor):
        return (False,)
    return scaled_encoding_2_42(scale, offset, qmin, qmax, symmetric, factor, divide)


@formula(
    "aimet.scaled_encoding@2.42",
    equation=r"s' = s \cdot |c|,\quad o' = \begin{cases} -q_{max} - q_{min} - o & c < 0 \\ o & \text{else} \end{cases}",
    basis=AsComputed(dtype="the scale's"),
    source="aimet-torch 2.42, measured",
)
def scaled_encoding_2_42(
    scale: Array, offset: Array, qmin: int, qmax: int, symmetric: bool, factor: float, divide: bool
) -> tuple[bool] | tuple[bool, Array, Array]:
    """``scaled_encoding``, save that any factor is taken, 0 and infinities and NaN too."""
    if factor < 0 and symmetric and (qmin + qmax) % 2 != 0:
        return (False,)
    size = scale.dtype.type(abs(factor))
    s = scale / size if divide else scale * size
    o = (-qmax - qmin) - offset if factor < 0 else offset
    return True, np.asarray(s), np.asarray(o)
