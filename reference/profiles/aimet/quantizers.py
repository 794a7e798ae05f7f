"""AIMET: quantizers as a user meets them: run in any mode, stored and loaded, made from an encoding."""

from typing import Any, Literal

import numpy as np

from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.profiles.aimet.affine import dequantize, quantize, quantize_dequantize
from halfeven.reference.profiles.aimet.encodings import scale_and_offset

__all__ = [
    "encoding_range",
    "encoding_range_2_42",
    "forward",
    "forward_2_42",
    "from_encodings",
    "from_encodings_2_42",
    "load_state",
    "load_state_2_42",
]

_FLOAT32 = AsComputed(dtype="float32")
_MEASURED = "aimet-torch 2.42, measured"
_F32 = np.dtype(np.float32)

Mode = Literal["trained", "frozen", "no-grad", "inference"]


@formula(
    "aimet.forward",
    equation=r"codes = \mathrm{clamp}(\lceil x / s \rfloor - o, q_{min}, q_{max}),\quad values = (codes + o) * s",
    basis=AsComputed(dtype="the tensor's, widened as in quantize_dequantize"),
    source="class QuantizeDequantize: equations; class QuantizedTensorBase: first paragraph",
)
def forward(
    tensor: Array,
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    mode: Mode = "trained",  # noqa: ARG001 - the equations know no mode
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
    scale, offset = scale_and_offset(min, max, qmin, qmax, symmetric)
    codes = quantize(tensor, scale, offset, qmin=qmin, qmax=qmax)
    values = quantize_dequantize(tensor, scale, offset, qmin=qmin, qmax=qmax)
    return {"codes": codes, "values": values, "values of the codes": values}


@formula(
    "aimet.forward@2.42",
    equation=(
        r"values = (\mathrm{clamp}(\lceil x * (1 / s) \rfloor - o, q_{min}, q_{max}) + o) * s"
        r" \text{ where not trained}"
    ),
    basis=AsComputed(dtype="float32 where not trained; the codes' values in the tensor's dtype"),
    source=_MEASURED,
)
def forward_2_42(
    tensor: Array,
    min: Array,  # noqa: A002
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    mode: Mode = "trained",
) -> dict[str, Array]:
    """``forward``, but values by ``torch.fake_quantize_*`` where no parameter is trained: a product, and NaN at qmin.

    The codes are dequantized in the tensor's dtype, scale and offset rounded to it.
    """
    scale, offset = scale_and_offset(min, max, qmin, qmax, symmetric)
    found = forward(tensor, min, max, qmin, qmax, symmetric)
    narrow = scale.astype(tensor.dtype), offset.astype(tensor.dtype)
    found["values of the codes"] = dequantize(found["codes"], *narrow)
    if mode != "trained":
        found["values"] = _by_reciprocal(tensor, scale, offset, qmin, qmax)
    return found


def _by_reciprocal(tensor: Array, scale: Array, offset: Array, qmin: int, qmax: int) -> Array:
    with np.errstate(all="ignore"):
        q = np.rint(tensor.astype(_F32) * (np.float32(1) / scale)) - offset
        q = np.where(np.isnan(q) | (q < qmin), _F32.type(qmin), np.where(q > qmax, _F32.type(qmax), q))
        values: Array = ((q + offset) * scale).astype(tensor.dtype)
    return values


@formula(
    "aimet.load_state",
    equation=r"state(load(state(quantizer))) = state(quantizer)",
    basis=Real(),
    source="class QuantizeDequantize: a module of torch; torch: load_state_dict",
)
def load_state(
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    block_size: BlockSize | None = None,
    zero_point_shift: float = 0.0,
    quantizers: int = 1,  # noqa: ARG001 - a state may be loaded as often as one likes
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
    grid = {"qmin": qmin, "qmax": qmax, "symmetric": symmetric}
    blocks = {"block_size": block_size, "zero_point_shift": zero_point_shift}
    return {"min": min, "max": max, **grid, **blocks, "state unchanged": True}


@formula(
    "aimet.load_state@2.42",
    equation=r"state(load_2(state(quantizer))) \ne state(quantizer)",
    basis=Real(),
    source=_MEASURED,
)
def load_state_2_42(
    min: Array,  # noqa: A002
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    block_size: BlockSize | None = None,
    zero_point_shift: float = 0.0,
    quantizers: int = 1,
) -> dict[str, Any]:
    """``load_state``, but the first takes all but min and max out of the state, and the others keep what they were."""
    if quantizers == 1:
        found = load_state(min, max, qmin, qmax, symmetric, block_size, zero_point_shift)
    else:
        found = load_state(min, max, 0, 255, False)
    return {**found, "state unchanged": False}


@formula(
    "aimet.from_encodings",
    equation=r"(s, o, \delta)' = (s, o, \delta)",
    basis=_FLOAT32,
    source="AffineQuantizerBase.from_encodings: a quantizer of these encodings",
)
def from_encodings(
    scale: Array,
    offset: Array,
    qmin: int,  # noqa: ARG001 - the grid decides nothing here
    qmax: int,  # noqa: ARG001
    symmetric: bool,  # noqa: ARG001
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
    return {"scale": scale, "offset": offset, "zero_point_shift": zero_point_shift}


@formula(
    "aimet.from_encodings@2.42",
    equation=(
        r"(s, o)' \text{ of } \theta_{min} = (o + q_{min}) * s,\ \theta_{max} = (o + q_{max}) * s;"
        r" \quad \delta' = 0"
    ),
    basis=_FLOAT32,
    source=_MEASURED,
)
def from_encodings_2_42(
    scale: Array, offset: Array, qmin: int, qmax: int, symmetric: bool, zero_point_shift: float = 0.0
) -> dict[str, Any]:
    """``from_encodings`` by way of minimum and maximum, which round, and without the ``zero_point_shift``."""
    low, high = encoding_range_2_42(scale, offset, qmin, qmax, zero_point_shift)
    s, o = scale_and_offset(low, high, qmin, qmax, symmetric)
    return {"scale": s, "offset": o, "zero_point_shift": 0.0}


@formula(
    "aimet.encoding_range",
    equation=r"\theta_{min} = (o + q_{min} + \delta) * s,\quad \theta_{max} = (o + q_{max} + \delta) * s",
    basis=_FLOAT32,
    source="class QuantizeDequantize: equation of the output, at qmin and qmax",
)
def encoding_range(
    scale: Array, offset: Array, qmin: int, qmax: int, zero_point_shift: float = 0.0
) -> tuple[Array, Array]:
    """The least and the greatest real of an encoding's grid, float32, of the shape of ``scale``.

    Args:
        scale: real per code, float32.
        offset: in codes, float32 of the same shape.
        qmin: the lowest code.
        qmax: the highest code.
        zero_point_shift: 0.0 or 0.5 codes, which move every real.
    """
    with np.errstate(all="ignore"):
        low = (offset + np.float32(qmin) + np.float32(zero_point_shift)) * scale
        high = (offset + np.float32(qmax) + np.float32(zero_point_shift)) * scale
    return np.asarray(low), np.asarray(high)


@formula(
    "aimet.encoding_range@2.42",
    equation=r"\theta_{min} = (o + q_{min}) * s,\quad \theta_{max} = (o + q_{max}) * s",
    basis=_FLOAT32,
    source=_MEASURED,
)
def encoding_range_2_42(
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    zero_point_shift: float = 0.0,  # noqa: ARG001 - the library leaves it out
) -> tuple[Array, Array]:
    """``encoding_range`` without the ``zero_point_shift``."""
    return encoding_range(scale, offset, qmin, qmax)
