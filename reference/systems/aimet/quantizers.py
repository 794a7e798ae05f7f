"""AIMET: quantizers as a user meets them: run in any mode, stored and loaded, made from an encoding."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.systems.aimet.affine import CODES, REALS, VALUES, dequantize, quantize, quantize_dequantize
from halfeven.reference.systems.aimet.encodings import SCALE_AND_OFFSET, scale_and_offset

__all__ = ["encoding_range", "forward", "from_encodings", "load_state"]


@dataclass(frozen=True)
class Forward(Behaviour):
    """The choices in running a quantizer."""

    untrained: str = choice({
        "alike": "computes alike in every mode",
        "fake-quantize": "multiplies by 1 / scale and maps NaN to qmin when no parameter is trained",
    })  # fmt: skip
    codes: str = choice({
        "values": "dequantizes codes to the values of QuantizeDequantize",
        "narrowed": "dequantizes codes in the tensor's dtype, scale and offset rounded to it",
    })  # fmt: skip


@dataclass(frozen=True)
class LoadState(Behaviour):
    """The choice of what loading does to a state."""

    state: str = choice({
        "unchanged": "leaves a state as it was, to load once more",
        "emptied": "takes all but min and max out of a state, so that the next to load it keeps its own",
    })  # fmt: skip


@dataclass(frozen=True)
class FromEncodings(Behaviour):
    """The choice of how a quantizer takes an encoding."""

    by: str = choice({
        "itself": "takes scale, offset and shift of an encoding as they are",
        "range": "takes minimum and maximum of an encoding without its shift, which round",
    })  # fmt: skip


@dataclass(frozen=True)
class EncodingRange(Behaviour):
    """The choices in giving the ends of an encoding's grid."""

    shift: str = choice({"moves": "moves both ends by zero_point_shift", "ignored": "ignores zero_point_shift"})
    order: str = choice({
        "sum-first": "multiplies the sum of offset and code by the scale",
        "products": "adds the products of offset and code with the scale",
    })  # fmt: skip


_FLOAT32 = AsComputed(dtype="float32")
_MEASURED = "aimet-torch 2.42, measured"
_F32 = np.dtype(np.float32)

Mode = Literal["trained", "frozen", "no-grad", "inference"]


@formula(
    "aimet/forward",
    equation=r"codes = \mathrm{clamp}(\lceil x / s \rfloor - o, q_{min}, q_{max}),\quad values = (codes + o) * s",
    basis=AsComputed(dtype="the tensor's, widened as in quantize_dequantize"),
    source="class QuantizeDequantize: equations; class QuantizedTensorBase: first paragraph",
    behaviour=Forward(),
    versions={"2.42": (Forward("fake-quantize", "narrowed"), _MEASURED)},
)
def forward(
    b: Forward,
    tensor: Array,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    mode: Mode = "trained",
) -> dict[str, Array]:
    """What ``Quantize`` and ``QuantizeDequantize`` give, and the former's result dequantized, in ``tensor.dtype``.

    Args:
        tensor: as in ``quantize``.
        min: as in ``scale_and_offset``, and so the next four; broadcasts to ``tensor``.
        max: in reals.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: the offset is minus the middle of the grid.
        mode: "trained" where the parameters require a gradient, "frozen" where not, "no-grad" and "inference" inside
            torch's contexts of these names; nothing depends on it.

    Raises:
        RuntimeError: the tensor's dtype does not hold the grid, or shapes that do not fit.
        ValueError: ``qmin`` is not below ``qmax``.
    """
    scale, offset = scale_and_offset(SCALE_AND_OFFSET, min, max, qmin, qmax, symmetric)
    codes = quantize(CODES, tensor, scale, offset, qmin=qmin, qmax=qmax)
    values = given = quantize_dequantize(VALUES, tensor, scale, offset, qmin=qmin, qmax=qmax)
    if b.untrained == "fake-quantize" and mode != "trained":
        values = _by_reciprocal(tensor, scale, offset, qmin, qmax)
    if b.codes == "narrowed":
        given = dequantize(REALS, codes, scale, offset)
    return {"codes": codes, "values": values, "values of the codes": given}


def _by_reciprocal(tensor: Array, scale: Array, offset: Array, qmin: int, qmax: int) -> Array:
    with np.errstate(all="ignore"):
        q = np.rint(tensor * (np.float32(1) / scale)) - offset
        q = np.where(np.isnan(q) | (q < qmin), _F32.type(qmin), np.where(q > qmax, _F32.type(qmax), q))
        values: Array = ((q.astype(_F32) + offset) * scale).astype(tensor.dtype)
    return values


@formula(
    "aimet/load_state",
    equation=r"state(load(state(quantizer))) = state(quantizer)",
    basis=Real(),
    source="class QuantizeDequantize: a module of torch; torch: load_state_dict",
    behaviour=LoadState(),
    versions={"2.42": (LoadState("emptied"), _MEASURED)},
)
def load_state(
    b: LoadState,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    block_size: BlockSize | None = None,
    zero_point_shift: float = 0.0,
    quantizers: int = 1,
) -> dict[str, Any]:
    """What the last of several quantizers is after each took one and the same state; and whether that is as it was.

    Each was made with 8 asymmetric bits. The result has the arguments' names, and ``state unchanged``.

    Args:
        min: of the quantizer whose state it is, as in ``scale_and_offset``, and so the next four.
        max: in reals.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: the offset is minus the middle of the grid.
        block_size: elements per block.
        zero_point_shift: 0.0 or 0.5 codes.
        quantizers: how many take the state, one after the other.
    """
    if b.state == "emptied" and quantizers > 1:
        qmin, qmax, symmetric, block_size, zero_point_shift = 0, 255, False, None, 0.0
    grid = {"qmin": qmin, "qmax": qmax, "symmetric": symmetric}
    blocks = {"block_size": block_size, "zero_point_shift": zero_point_shift}
    return {"min": min, "max": max, **grid, **blocks, "state unchanged": b.state == "unchanged"}


@formula(
    "aimet/from_encodings",
    equation=r"(s, o, \delta)' = (s, o, \delta)",
    basis=_FLOAT32,
    source="AffineQuantizerBase.from_encodings: a quantizer of these encodings",
    behaviour=FromEncodings(),
    versions={"2.42": (FromEncodings("range"), _MEASURED)},
)
def from_encodings(
    b: FromEncodings,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    symmetric: bool,
    zero_point_shift: float = 0.0,
) -> dict[str, Any]:
    """Scale, offset and shift of a quantizer that was made from an encoding: those of the encoding.

    Args:
        scale: real per code, float32 of any shape, not below the least scale of the grid.
        offset: in codes, float32 of the same shape; zero is in the range.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: whether the encoding is.
        zero_point_shift: 0.0 or 0.5 codes.
    """
    if b.by == "range":
        low, high = encoding_range(EncodingRange(), scale, offset, qmin, qmax)
        scale, offset = scale_and_offset(SCALE_AND_OFFSET, low, high, qmin, qmax, symmetric)
        zero_point_shift = 0.0
    return {"scale": scale, "offset": offset, "zero_point_shift": zero_point_shift}


@formula(
    "aimet/encoding_range",
    equation=r"\theta_{min} = (o + q_{min} + \delta) * s,\quad \theta_{max} = (o + q_{max} + \delta) * s",
    basis=_FLOAT32,
    source="class QuantizeDequantize: equation of the output, at qmin and qmax",
    behaviour=EncodingRange(),
    versions={"2.42": (EncodingRange(shift="ignored"), _MEASURED)},
)
def encoding_range(
    b: EncodingRange, scale: Array, offset: Array, qmin: int, qmax: int, zero_point_shift: float = 0.0
) -> tuple[Array, Array]:
    """The least and the greatest real of an encoding's grid, float32, of the shape of ``scale``.

    Args:
        scale: real per code, float32.
        offset: in codes, float32 of the same shape.
        qmin: the lowest code.
        qmax: the highest code.
        zero_point_shift: 0.0 or 0.5 codes, which move every real.
    """
    shift = np.float32(zero_point_shift if b.shift == "moves" else 0)
    with np.errstate(all="ignore"):
        if b.order == "products":
            ends = [offset * scale + (np.float32(q) + shift) * scale for q in (qmin, qmax)]
        else:
            ends = [(offset + np.float32(q) + shift) * scale for q in (qmin, qmax)]
    return np.asarray(ends[0]), np.asarray(ends[1])
