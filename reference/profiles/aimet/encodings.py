"""AIMET: the grid of a quantizer, and how scale and offset follow from its learnable minimum and maximum.

The documents say that both are derived and not how: the arithmetic is measured, aimet-torch 2.42.
"""

import math

import numpy as np

from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.profiles.profile import Array

__all__ = [
    "bitwidth_grid",
    "bitwidth_grid_2_42",
    "grid",
    "grid_2_42",
    "min_scale",
    "recalibrated_range",
    "scale_and_offset",
]

_FLOAT32 = AsComputed(dtype="float32")


@formula(
    "aimet.grid",
    equation=(
        r"n = 2^{bitwidth} - 1 \text{ or } num\_steps; \quad [q_{min}, q_{max}] = "
        r"[-\lceil n/2 \rceil, \lfloor n/2 \rfloor] \text{ if signed, else } [0, n]"
    ),
    basis=Real(),
    source="aimet_torch.quantization.affine.quantize, parameters bitwidth, num_steps and signed",
)
def grid(bitwidth: int | None = None, num_steps: int | None = None, signed: bool = False) -> tuple[int, int]:
    """The codes (qmin, qmax) of ``bitwidth`` bits, or of ``num_steps`` steps; 0 of either is the one code 0 (measured).

    Args:
        bitwidth: width of the codes.
        num_steps: codes less one; give one of the two.
        signed: half of the codes are below zero.

    Raises:
        TypeError: not exactly one of the two is given, or it is no int.
        RuntimeError: it is negative (measured).
    """
    given = [n for n in (bitwidth, num_steps) if n is not None]
    if len(given) != 1 or not isinstance(given[0], int) or isinstance(given[0], bool):
        msg = f"bitwidth={bitwidth!r}, num_steps={num_steps!r} is not accepted: give one of them, an int"
        raise TypeError(msg)
    if given[0] < 0:
        msg = f"bitwidth={bitwidth}, num_steps={num_steps} is not accepted: give 0 or more"
        raise RuntimeError(msg)
    n = given[0] if bitwidth is None else 2**bitwidth - 1
    return (-math.ceil(n / 2), math.floor(n / 2)) if signed else (0, n)


@formula(
    "aimet.grid@2.42",
    equation=r"\text{a bitwidth goes before num\_steps, and may be a fraction where the codes are signed}",
    basis=Real(),
    source="aimet-torch 2.42, measured",
)
def grid_2_42(bitwidth: float | None = None, num_steps: float | None = None, signed: bool = False) -> tuple[int, int]:
    """``grid``, but ``bitwidth`` goes before ``num_steps``, and either may be a fraction where the codes are signed.

    Raises:
        KeyError: neither is given.
        AttributeError: a number that is no int, and unsigned.
        RuntimeError: it is negative.
    """
    if bitwidth is None and num_steps is None:
        msg = "bitwidth=None, num_steps=None is not accepted: give one of them"
        raise KeyError(msg)
    n = 2**bitwidth - 1 if bitwidth is not None else num_steps
    if n is None or n < 0:
        msg = f"bitwidth={bitwidth}, num_steps={num_steps} is not accepted: give 0 or more"
        raise RuntimeError(msg)
    if not signed and not isinstance(n, int):
        msg = f"bitwidth={bitwidth}, num_steps={num_steps} is not accepted with signed=False: give an int"
        raise AttributeError(msg)
    return (-math.ceil(n / 2), math.floor(n / 2)) if signed else (0, int(n))


@formula(
    "aimet.bitwidth_grid",
    equation=r"[-2^{b-1}, 2^{b-1} - 1] \text{ if symmetric, else } [0, 2^b - 1]",
    basis=Real(),
    source="aimet_torch.v2.quantization.affine.QuantizeDequantize, parameters bitwidth and symmetric (grid: measured)",
)
def bitwidth_grid(bitwidth: int, symmetric: bool) -> tuple[int, int]:
    """The codes (qmin, qmax) of a quantizer.

    Args:
        bitwidth: width of the codes.
        symmetric: half of the codes are below zero; else they start at 0.

    Raises:
        TypeError: ``bitwidth`` is no int.
        ValueError: ``bitwidth`` is below 1.
    """
    if not isinstance(bitwidth, int) or isinstance(bitwidth, bool):
        msg = f"bitwidth={bitwidth!r} is not accepted: give an int"
        raise TypeError(msg)
    if bitwidth < 1:
        msg = f"bitwidth={bitwidth} is not accepted: give 1 or more"
        raise ValueError(msg)
    return (-(2 ** (bitwidth - 1)), 2 ** (bitwidth - 1) - 1) if symmetric else (0, 2**bitwidth - 1)


@formula(
    "aimet.bitwidth_grid@2.42",
    equation=r"\text{a fraction } b \text{ is accepted: } n = 2^b - 1",
    basis=Real(),
    source="aimet-torch 2.42, measured",
)
def bitwidth_grid_2_42(bitwidth: float, symmetric: bool) -> tuple[float, float]:
    """``bitwidth_grid``, but a fraction of bits is accepted: 2^bitwidth - 1 steps, halved where symmetric.

    Raises:
        ValueError: ``bitwidth`` is not above 0.
    """
    n = 2**bitwidth - 1
    if n <= 0:
        msg = f"bitwidth={bitwidth} is not accepted: give more than 0"
        raise ValueError(msg)
    return (-math.ceil(n / 2), math.floor(n / 2)) if symmetric else (0, n)


@formula(
    "aimet.min_scale",
    equation=r"s_{min} = \min(2^{-23},\ 0.01 / n)",
    basis=AsComputed(dtype="float64"),
    source="aimet-torch 2.42, measured",
)
def min_scale(num_steps: int) -> float:
    """The least scale, real per code, of a grid of ``num_steps`` steps (1 or more), a Python float.

    float32's eps, unless that spans more than 0.01.
    """
    return min(2.0**-23, 0.01 / num_steps)


@formula(
    "aimet.scale_and_offset",
    equation=(
        r"s = \max(|\theta_{max} - \theta_{min}| / n, s_{min}); \quad "
        r"o = -\lceil (q_{min} + q_{max}) / 2 \rfloor \text{ if symmetric, else } "
        r"\mathrm{clamp}(\lceil \theta_{min} / s \rfloor - q_{min}, -q_{max}, -q_{min})"
    ),
    basis=_FLOAT32,
    source="aimet_torch.v2.quantization.affine.QuantizeDequantize, variables min and max (arithmetic: measured)",
)
def scale_and_offset(min: Array, max: Array, qmin: int, qmax: int, symmetric: bool) -> tuple[Array, Array]:  # noqa: A002 - the document's names
    """Scale, real per code, and offset, in codes, both float32 in the shape of ``min`` and ``max``.

    The scale is computed in float32; the quotient that becomes the offset in float64 where ``min`` is float64.

    Args:
        min: in reals, any float dtype and shape.
        max: likewise, of the same shape.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: the offset is minus the middle of the grid; else it follows from ``min``.

    Raises:
        ValueError: ``qmin`` is not below ``qmax``.
        RuntimeError: ``min`` and ``max`` differ in shape.
    """
    n = _num_steps(qmin, qmax)
    if min.shape != max.shape:
        msg = f"min of shape {min.shape} and max of shape {max.shape} are not accepted: give one shape"
        raise RuntimeError(msg)
    t = np.promote_types(min.dtype, np.float32)
    with np.errstate(all="ignore"):
        scale = (max.astype(np.float32) - min.astype(np.float32)) / np.float32(n)
        scale = np.maximum(np.abs(scale), np.float32(min_scale(n)))
        if symmetric:
            return np.asarray(scale), np.full(min.shape, -round((qmin + qmax) / 2), np.float32)
        offset = np.rint(min.astype(t) / scale.astype(t)) - t.type(qmin)
        # Zero stays inside the range; an offset of -0.0 stays what it is, which np.clip does not promise.
        lo, hi = t.type(-qmax), t.type(-qmin)
        offset = np.where(offset < lo, lo, np.where(offset > hi, hi, offset))
    return np.asarray(scale), offset.astype(np.float32)


@formula(
    "aimet.recalibrated_range",
    equation=r"\hat\theta_{min} = s (o + q_{min} + \delta), \quad \hat\theta_{max} = s (o + q_{max} + \delta)",
    basis=_FLOAT32,
    source="aimet-torch 2.42, measured: get_min and get_max of a quantizer",
)
def recalibrated_range(
    min: Array,  # noqa: A002 - the document's names
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    zero_point_shift: float = 0.0,
) -> tuple[Array, Array]:
    """The least and the greatest real on the grid, float32; they differ from ``min`` and ``max`` where these are not.

    Args:
        min: as in ``scale_and_offset``, and so the next four.
        max: in reals.
        qmin: the lowest code.
        qmax: the highest code.
        symmetric: the offset is minus the middle of the grid.
        zero_point_shift: 0.0 or 0.5 codes; moves every real.

    Raises:
        ValueError: ``qmin`` is not below ``qmax``, or another ``zero_point_shift``.
        RuntimeError: ``min`` and ``max`` differ in shape.
    """
    if zero_point_shift not in {0.0, 0.5}:
        msg = f"zero_point_shift={zero_point_shift} is not accepted: give 0.0 or 0.5"
        raise ValueError(msg)
    scale, offset = scale_and_offset(min, max, qmin, qmax, symmetric)
    with np.errstate(all="ignore"):
        low = scale * (offset + np.float32(qmin) + np.float32(zero_point_shift))
        high = scale * (offset + np.float32(qmax) + np.float32(zero_point_shift))
    return np.asarray(low), np.asarray(high)


def _num_steps(qmin: int, qmax: int) -> int:
    if qmin >= qmax:
        msg = f"qmin={qmin} is not below qmax={qmax}: a quantizer needs two codes or more"
        raise ValueError(msg)
    return qmax - qmin
