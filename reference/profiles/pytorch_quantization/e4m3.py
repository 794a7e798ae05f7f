"""pytorch-quantization: ``scaled_e4m3``, a cast to float8_e4m3fn and back with amax at its largest value, 448.

A number over a tensor is, in torch, the tensor's reciprocal times the number: 448 / amax is rounded twice.
"""

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array

__all__ = ["scaled_e4m3", "scaled_e4m3_2_2_1", "scaled_e4m3_modelopt_0_47"]

_F32 = np.float32
_EPSILON = _F32(2.0**-24)


def _e4m3(x: Array) -> Array:
    """The nearest value of float8_e4m3fn, ties to the even code; beyond 448 it is 448; NaN stays."""
    return np.clip(x, _F32(-448), _F32(448)).astype(ml_dtypes.float8_e4m3fn).astype(_F32)


@formula(
    "pytorch_quantization.scaled_e4m3",
    equation=r"s = (1 / \mathrm{amax}) * 448,\quad \hat x = \mathrm{e4m3}(x * s) / s,"
    r"\quad \hat x = 0 \text{ where } |x| < 2^{-24}",
    basis=AsComputed(dtype="float32, every operation rounded; the product is then rounded to float8_e4m3fn"),
    source="pytorch_quantization.tensor_quant.ScaledE4M3Function.forward: measured",
)
def scaled_e4m3(inputs: Array, amax: Array | None = None, E: int = 4, M: int = 3) -> Array:  # noqa: N803 - the names it has
    """``inputs``, float32, rounded to the values of float8_e4m3fn over the scale; without ``amax`` the scale is 1.

    Args:
        inputs: float32 of any shape.
        amax: floats of 0 or more, in reals, that broadcast with ``inputs``; taken to float32.
        E: exponent bits: 4.
        M: mantissa bits: 3.

    Returns:
        float32, of the shape to which ``inputs`` and ``amax`` broadcast.

    Raises:
        NotImplementedError: another exponent or mantissa than 4 and 3 bits.
        RuntimeError: ``inputs`` is not float32, or ``amax`` does not broadcast with it.
        ValueError: ``amax`` has a negative value or NaN.
    """
    if amax is not None and not (amax >= 0).all():
        msg = f"amax={amax} is not accepted: give values of 0 or more"
        raise ValueError(msg)
    return scaled_e4m3_2_2_1(inputs, amax, E, M)


@formula(
    "pytorch_quantization.scaled_e4m3@2.2.1",
    equation=r"s = (1 / \mathrm{amax}) * 448,\quad \hat x = \mathrm{e4m3}(x * s) / s,"
    r"\quad \hat x = 0 \text{ where } |x| < 2^{-24}",
    basis=AsComputed(dtype="as scaled_e4m3"),
    source="pytorch-quantization 2.2.1 on a CPU: measured",
)
def scaled_e4m3_2_2_1(inputs: Array, amax: Array | None = None, E: int = 4, M: int = 3) -> Array:  # noqa: N803
    """``scaled_e4m3``, but a negative amax, whose sign cancels, and NaN pass."""
    _check_format(E, M)
    if inputs.dtype != _F32:
        msg = f"inputs of dtype {inputs.dtype} is not accepted: give float32"
        raise RuntimeError(msg)
    with np.errstate(all="ignore"):
        if amax is None:
            y = _e4m3(inputs)
        else:
            _check_shapes(inputs, amax)
            scale = _F32(1) / amax.astype(_F32) * _F32(448)
            y = _e4m3(inputs * scale) / scale
        return np.where(np.abs(inputs) < _EPSILON, _F32(0), y)


@formula(
    "pytorch_quantization.scaled_e4m3@modelopt-0.47",
    equation=r"s = (1 / \mathrm{amax}) * 448,\quad \hat x = \mathrm{e4m3}(x * s) * (1 / s)",
    basis=AsComputed(dtype="float32, every operation rounded, then rounded to the inputs' dtype"),
    source="nvidia-modelopt 0.47, ScaledE4M3Function on a CPU: measured",
)
def scaled_e4m3_modelopt_0_47(inputs: Array, amax: Array | None = None, E: int = 4, M: int = 3) -> Array:  # noqa: N803
    """Any float dtype passes; the inverted scale multiplies; an amax up to 2**-24 has scale 448; tiny inputs stay."""
    _check_format(E, M)
    with np.errstate(all="ignore"):
        x = inputs.astype(_F32)
        if amax is None:
            return _e4m3(x).astype(inputs.dtype)
        _check_shapes(inputs, amax)
        a = amax.astype(_F32)
        scale = _F32(1) / np.where(a <= _EPSILON, _F32(1), a) * _F32(448)
        return np.asarray(_e4m3(x * scale) * (_F32(1) / scale)).astype(inputs.dtype)


def _check_format(exponent: int, mantissa: int) -> None:
    if (exponent, mantissa) != (4, 3):
        msg = f"E={exponent}, M={mantissa} is not accepted: give 4 and 3"
        raise NotImplementedError(msg)


def _check_shapes(inputs: Array, amax: Array) -> None:
    try:
        np.broadcast_shapes(inputs.shape, amax.shape)
    except ValueError:
        msg = f"amax of shape {amax.shape} is not accepted: it does not broadcast with inputs of shape {inputs.shape}"
        raise RuntimeError(msg) from None
