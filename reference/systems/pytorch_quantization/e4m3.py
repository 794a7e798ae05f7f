"""pytorch-quantization: ``scaled_e4m3``, a cast to float8_e4m3fn and back with amax at its largest value, 448.

A number over a tensor is, in torch, the tensor's reciprocal times the number: 448 / amax is rounded twice.
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, formula

__all__ = ["SCALED_E4M3", "ScaledE4M3", "scaled_e4m3"]


@dataclass(frozen=True)
class ScaledE4M3(Behaviour):
    """The choices in a scaled cast to float8_e4m3fn."""

    scale: str = choice(
        {"reciprocal": "multiplies the rounded reciprocal of amax by 448", "divide": "divides 448 by amax"}
    )
    back: str = choice(
        {"divide": "divides by the scale", "reciprocal": "multiplies by the rounded reciprocal of the scale"}
    )
    overflow: str = choice({"saturate": "gives 448 for what is beyond it", "nan": "gives NaN for what is beyond 448"})
    tiny_inputs: str = choice(
        {"zero": "gives 0 for an input below 2^-24", "cast": "treats an input below 2^-24 like any other"}
    )
    tiny_amax: str = choice({"used": "uses an amax however small", "one": "takes 1 for an amax of 2^-24 and below"})
    dtypes: str = choice(
        {"float32": "refuses inputs of another dtype than float32", "any": "takes inputs of every float dtype"}
    )
    amax: str = choice({"checked": "refuses a negative amax and NaN", "any": "takes a negative amax and NaN"})


SCALED_E4M3 = ScaledE4M3()

_F32 = np.float32
_EPSILON = _F32(2.0**-24)


def _e4m3(b: ScaledE4M3, x: Array) -> Array:
    """The nearest value of float8_e4m3fn, ties to the even code; NaN stays."""
    held = np.clip(x, _F32(-448), _F32(448)) if b.overflow == "saturate" else x
    return held.astype(ml_dtypes.float8_e4m3fn).astype(_F32)


@formula(
    "pytorch-quantization/scaled_e4m3",
    equation=r"s = (1 / \mathrm{amax}) * 448,\quad \hat x = \mathrm{e4m3}(x * s) / s,"
    r"\quad \hat x = 0 \text{ where } |x| < 2^{-24}",
    basis=AsComputed(dtype="float32, every operation rounded; the product is then rounded to float8_e4m3fn"),
    source="pytorch_quantization.tensor_quant.ScaledE4M3Function.forward: measured",
    behaviour=SCALED_E4M3,
    versions={
        "2.2.1": (ScaledE4M3(amax="any"), "pytorch-quantization 2.2.1 on a CPU: measured"),
        "modelopt-0.47": (
            ScaledE4M3(back="reciprocal", tiny_inputs="cast", tiny_amax="one", dtypes="any", amax="any"),
            "nvidia-modelopt 0.47, ScaledE4M3Function on a CPU: measured",
        ),
    },
)
def scaled_e4m3(b: ScaledE4M3, inputs: Array, amax: Array | None = None, E: int = 4, M: int = 3) -> Array:  # noqa: N803 - the names it has
    """``inputs``, float32, rounded to the values of float8_e4m3fn over the scale; without ``amax`` the scale is 1.

    Args:
        inputs: float32 of any shape.
        amax: floats of 0 or more, in reals, that broadcast with ``inputs``; taken to float32.
        E: exponent bits: 4.
        M: mantissa bits: 3.

    Returns:
        The dtype of ``inputs``, of the shape to which ``inputs`` and ``amax`` broadcast.

    Raises:
        NotImplementedError: another exponent or mantissa than 4 and 3 bits.
        RuntimeError: ``inputs`` is not float32, or ``amax`` does not broadcast with it.
        ValueError: ``amax`` has a negative value or NaN.
    """
    if b.amax == "checked" and amax is not None and not (amax >= 0).all():
        msg = f"amax={amax} is not accepted: give values of 0 or more"
        raise ValueError(msg)
    if (E, M) != (4, 3):
        msg = f"E={E}, M={M} is not accepted: give 4 and 3"
        raise NotImplementedError(msg)
    if b.dtypes == "float32" and inputs.dtype != _F32:
        msg = f"inputs of dtype {inputs.dtype} is not accepted: give float32"
        raise RuntimeError(msg)
    x = inputs.astype(_F32)
    with np.errstate(all="ignore"):
        y = _e4m3(b, x) if amax is None else _scaled(b, x, amax)
        if b.tiny_inputs == "zero":
            y = np.where(np.abs(x) < _EPSILON, _F32(0), y)
        return np.asarray(y).astype(inputs.dtype)


def _scaled(b: ScaledE4M3, x: Array, amax: Array) -> Array:
    try:
        np.broadcast_shapes(x.shape, amax.shape)
    except ValueError:
        msg = f"amax of shape {amax.shape} is not accepted: it does not broadcast with inputs of shape {x.shape}"
        raise RuntimeError(msg) from None
    a = amax.astype(_F32)
    if b.tiny_amax == "one":
        a = np.where(a <= _EPSILON, _F32(1), a)
    scale = _F32(448) / a if b.scale == "divide" else _F32(1) / a * _F32(448)
    y = _e4m3(b, x * scale)
    return np.asarray(y * (_F32(1) / scale) if b.back == "reciprocal" else y / scale)
