"""pytorch-quantization: ``tensor_quant``, ``fake_tensor_quant``. Codes per real, s = qmax / amax, no zero point."""

from typing import Any

import numpy as np

from halfeven.reference.blocks import BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile

__all__ = ["PYTORCH_QUANTIZATION", "SMALLEST_AMAX", "fake_tensor_quant", "tensor_quant"]

MODEL = EvaluationModel(division="multiply-by-q-per-real", compute="float32", sign="none")

SMALLEST_AMAX = np.float32(2.0**-24)
"""At this amax and below every finite value has the code 0, and the scale returned is 1."""

_HALF = np.dtype(np.float16)
_BASIS = AsComputed(dtype="float32; codes and scale are then rounded to float16 where the input is")


@formula(
    "pytorch_quantization.tensor_quant",
    equation=r"s = q_{max} / \mathrm{amax},\quad q = \mathrm{clamp}(\lceil x * s \rfloor,\ q_{min},\ q_{max})",
    basis=_BASIS,
    source="pytorch_quantization.tensor_quant.TensorQuantFunction",
)
def quantize(x: Array, amax: Array, _zero: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x``, held in ``x.dtype``; ``amax`` is the absolute maximum that the code qmax stands for."""
    with np.errstate(all="ignore"):
        a = per_element(amax, x.shape, block_size).astype(np.float32)
        qmin, qmax = np.float32(grid.qmin), np.float32(grid.qmax)
        s = np.where(a <= SMALLEST_AMAX, np.float32(0), qmax / a)
        q = np.rint(x.astype(np.float32) * s)
        return np.where(q < qmin, qmin, np.where(q > qmax, qmax, q)).astype(x.dtype)


@formula(
    "pytorch_quantization.fake_tensor_quant",
    equation=r"s = q_{max} / \mathrm{amax},\quad \hat x = \mathrm{clamp}(\lceil x * s \rfloor,\ q_{min},\ q_{max}) / s",
    basis=_BASIS,
    source="pytorch_quantization.tensor_quant.FakeTensorQuantFunction",
)
def fake_quantize(x: Array, amax: Array, zero: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """``x`` on the grid, in ``x.dtype``: the codes over the scale, both rounded to ``x.dtype`` first."""
    q = quantize(x, amax, zero, grid, block_size)
    with np.errstate(all="ignore"):
        a = per_element(amax, x.shape, block_size).astype(np.float32)
        s = np.where(a <= SMALLEST_AMAX, np.float32(1), np.float32(grid.qmax) / a).astype(x.dtype)
        return np.asarray(q / s)


def _codes_per_real(amax: Array, grid: Grid) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.float32(grid.qmax) / amax.astype(np.float32))


def _grids() -> tuple[Grid, ...]:
    widths = range(2, 17)
    return tuple(Grid.from_bitwidth(b, signed=True, narrow=narrow) for narrow in (True, False) for b in widths)


PYTORCH_QUANTIZATION = Profile(
    name="pytorch-quantization",
    title="clamp(round(x * s), qmin, qmax) with s = qmax / amax; q / s",
    source="pytorch-quantization: pytorch_quantization.tensor_quant",
    model=MODEL,
    parameters=("amax",),
    dtypes=("float32", "float16"),
    codes="input",
    bits=(2, 16),
    grids=_grids(),
    numpy={
        "quantize": "np.clip(np.rint(x * (s := np.float32(qmax) / amax)), qmin, qmax)",
        "fake_quantize": "np.clip(np.rint(x * (s := np.float32(qmax) / amax)), qmin, qmax) / s",
    },
    model_scale=_codes_per_real,
    transcriptions={"quantize": quantize, "fake_quantize": fake_quantize},
)


# The documented signatures; amax broadcasts to the input.


def tensor_quant(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> tuple[Array, Array]:
    """The codes of ``inputs``, held in its dtype, and the scale, so that codes / scale dequantizes.

    Raises:
        TypeError: ``inputs`` has a negative value and ``unsigned`` is set.
        ValueError: ``amax`` has a negative value, or is so small that float16 does not hold the scale.
    """
    grid = _checked(inputs, amax, num_bits, unsigned, narrow_range)
    with np.errstate(all="ignore"):
        a = amax.astype(np.float32)
        scale = np.where(a <= SMALLEST_AMAX, np.float32(1), np.float32(grid.qmax) / a).astype(inputs.dtype)
    if inputs.dtype == _HALF and np.isinf(scale).any():
        msg = f"amax={amax} is not accepted: the scale is too large for float16"
        raise ValueError(msg)
    return quantize(inputs, amax, np.zeros(()), grid), scale


def fake_tensor_quant(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """``inputs`` on the grid, in its dtype; errors as in ``tensor_quant``, but for the scale in float16."""
    grid = _checked(inputs, amax, num_bits, unsigned, narrow_range)
    return fake_quantize(inputs, amax, np.zeros(()), grid)


def _checked(inputs: Array, amax: Array, num_bits: int, unsigned: bool, narrow_range: bool) -> Grid:
    lowest: Any
    if unsigned and (lowest := np.min(inputs, initial=0)) < 0:
        msg = f"inputs with the value {lowest} is not accepted with unsigned=True: give values of 0 or more"
        raise TypeError(msg)
    if (amax < 0).any():
        msg = f"amax={amax} is not accepted: give values of 0 or more"
        raise ValueError(msg)
    return Grid.from_bitwidth(num_bits, signed=not unsigned, narrow=narrow_range and not unsigned)
