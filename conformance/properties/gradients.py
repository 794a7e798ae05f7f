"""The roles of formulas that give the gradient of a quantizer, and what its forward does."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from halfeven.conformance.properties.affine import Element, Ends, at, bits_ends, dtype_ends, given_ends, spread
from halfeven.conformance.properties.role import Role, Seen, place
from halfeven.conformance.requirement import Arguments
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS

__all__ = ["GRADIENTS"]

_MOST = 2.0**20  # of scales that are not far from 1


def _gradient(
    x: str,
    gradient: str,
    ends: Ends,
    *,
    scale: str = "scale",
    zero: str = "zero_point",
    leaf: str = "dx",
    negated: bool = False,
    several: bool = True,
) -> Role:
    """A formula with the parameters of its forward, which rounds and limits codes.

    Args:
        x: the name of the argument that was quantized.
        gradient: that of the gradient from above.
        scale: that of the scale.
        zero: that of the zero point or the offset.
        ends: the ends of the grid.
        leaf: ``dx`` where the slope inside is 1, ``mask`` where it is another.
        negated: whether it has an offset, x̂ = (q + o) * s.
        several: whether the result has parameters' gradients after the input's.
    """

    def see(a: Arguments) -> Seen:
        data = np.asarray(a[x])
        s, g = spread(a, data, a[scale]), np.asarray(a[gradient]).astype(np.float64)
        z = np.zeros(data.shape) if a.get(zero) is None else spread(a, data, a[zero])
        low, high = ends(a) or (None, None)
        shift = a.get("zero_point_shift", 0.0)
        zeros = (-z if negated else z) - shift
        return Seen(data.astype(np.float64), data.dtype, s, zeros, low, high, np.broadcast_to(g, data.shape))

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        if not several:
            return {leaf: np.asarray(value)}
        names = (leaf, "the gradient of the scale", "the gradient of the zero point")
        return {name: np.asarray(v) for name, v in zip(names, value, strict=True) if v is not None}

    return Role("gradient", see, read, _of(several), (gradient,), x, frozenset({"reals", "limits"}))


def _range(x: str, gradient: str, low: str, high: str, *, several: bool = False) -> Role:
    """A formula whose forward limits reals to a range: to [low, high], or where both are one name to [-low, low]."""

    def see(a: Arguments) -> Seen:
        data, g = np.asarray(a[x]), np.asarray(a[gradient]).astype(np.float64)
        most = spread(a, data, a[high])
        least = -most if low == high else spread(a, data, a[low])
        if np.any(least > most):
            msg = "the range is empty"
            raise ValueError(msg)
        width = np.where(most > least, most - least, np.nan)  # as a grid of two codes, so wide as the range
        return Seen(data.astype(np.float64), data.dtype, width, -least / width, 0, 1, g, slack=0)

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        names = ("dx", "the gradient of the lower end", "the gradient of the upper end")
        return {n: np.asarray(v) for n, v in zip(names, value, strict=True)} if several else {"dx": np.asarray(value)}

    return Role("gradient", see, read, _of(several), (gradient,), x, frozenset({"reals", "limits"}))


def _float_range() -> Role:
    """A formula whose forward limits its input to the numbers of a float format times the scale."""

    def see(a: Arguments) -> Seen:
        data, g = np.asarray(a["tensor"]), np.asarray(a["gradient"]).astype(np.float64)
        width = 2 * FLOAT_FORMATS[a["dtype"]].max * spread(a, data, a["scale"])
        middle = np.full(data.shape, 0.5)
        return Seen(data.astype(np.float64), data.dtype, width, middle, 0, 1, np.broadcast_to(g, data.shape), slack=0)

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        return {"dx": np.asarray(value)}

    return Role("gradient", see, read, at(()), ("gradient",), "tensor", frozenset({"reals", "limits"}))


def _of_codes() -> Role:
    """The gradients of a dequantizer, which limits nothing."""

    def see(a: Arguments) -> Seen:
        data, g = np.asarray(a["tensor"]), np.asarray(a["gradient"]).astype(np.float64)
        s = np.asarray(a["scale"]).astype(np.float64)
        if not np.all((s >= 1 / _MOST) & (s <= _MOST)):
            msg = "a scale is none, or far from 1"
            raise ValueError(msg)
        return Seen(data.astype(np.float64), data.dtype, gradient=np.broadcast_to(g, data.shape) * _MOST)

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        names = ("dx", "the gradient of the scale", "the gradient of the offset")
        return {n: np.asarray(v) for n, v in zip(names, value, strict=True) if v is not None}

    return Role("gradient", see, read, at((0,)), ("gradient",), "tensor", frozenset({"reals"}))


def _of_a_range() -> Role:
    """The gradients of the ends of a range, from those of the scale and the offset that it gives."""
    leaves = {"dx": 1, "d min": 0}

    def see(a: Arguments) -> Seen:
        low, high = np.asarray(a["min"]), np.asarray(a["max"])
        steps = a["qmax"] - a["qmin"]
        step = np.maximum(np.abs(high.astype(np.float64) - low) / steps, np.finfo(np.float32).eps)
        g = np.abs(a["scale_gradient"].astype(np.float64)) + np.abs(a["offset_gradient"].astype(np.float64))
        return Seen(high.astype(np.float64), high.dtype, step / steps, gradient=g)

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        return {name: np.asarray(value[place]) for name, place in leaves.items()}

    def element(_: Arguments, value: Any, leaf: str, i: int) -> str:
        return place(value, (leaves[leaf],), i)

    given = ("scale_gradient", "offset_gradient")
    return Role("gradient", see, read, element, given, "max", frozenset({"reals"}))


def _of(several: bool) -> Element:
    """The gradient of the input, which may be the first of several."""
    return at((0,) if several else ())


def _torchao(a: Arguments) -> tuple[float, float] | None:
    whole = dtype_ends(a["quant_dtype"])
    low, high = a.get("quant_min"), a.get("quant_max")
    return None if whole is None else (whole[0] if low is None else low, whole[1] if high is None else high)


_QUANT, _QMIN = given_ends("quant_min", "quant_max"), given_ends("qmin", "qmax")
_PQ, _LEARNT = "pytorch-quantization", "torch/_fake_quantize_learnable_per"

GRADIENTS: dict[str, Role] = {
    "aimet/quantize_gradient": _gradient("tensor", "gradient", _QMIN, zero="offset", negated=True, leaf="mask"),
    "aimet/quantize_dequantize_gradient": _gradient("tensor", "gradient", _QMIN, zero="offset", negated=True),
    "aimet/float_gradient": _float_range(),
    "aimet/dequantize_gradient": _of_codes(),
    "aimet/range_gradient": _of_a_range(),
    # It is divided by the scale and multiplied again.
    "brevitas/IntQuant.backward": _gradient("x", "grad", bits_ends("bit_width"), leaf="mask"),
    **{
        f"{_PQ}/{name}_backward": _range("inputs", "grad_outputs", "amax", "amax")
        for name in ("tensor_quant", "fake_tensor_quant", "legacy_fake_tensor_quant", "scaled_e4m3")
    },
    f"{_PQ}/fake_affine_tensor_quant_backward": _range("inputs", "grad_outputs", "min_range", "max_range"),
    f"{_PQ}/clip_backward": _range("inputs", "grad_outputs", "clip_value_min", "clip_value_max", several=True),
    **{
        f"torch/fake_quantize_per_{kind}_affine.backward": _gradient("x", "grad", _QUANT, several=False)
        for kind in ("tensor", "channel")
    },
    **{f"{_LEARNT}_{kind}_affine.backward": _gradient("x", "grad", _QUANT) for kind in ("tensor", "channel")},
    "torchao/fake_quantize_affine_gradients": _gradient("input", "grad", _torchao),
}
