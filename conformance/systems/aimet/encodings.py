"""What the documents require of AIMET's grids, scales and offsets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, measured

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS", "GRIDS", "RANGES"]

_F32 = np.float32
_UP, _DOWN = _F32(np.inf), _F32(-np.inf)

RANGES: tuple[tuple[float, float], ...] = (
    (-1.0, 1.0),
    (-1.0, 2.0),
    (-0.1, 3.7),
    (-5.25, 0.3),
    (0.0, 1.0),
    (-1.0, 0.0),
    (-2.7182817, 3.1415927),
    (-1e-3, 1e-3),
    (-12345.678, 54321.1),
    (-1.5e38, 1.5e38),
)
"""Minimum and maximum of ranges with zero in them."""

GRIDS: tuple[tuple[int, int], ...] = (
    (-128, 127),
    (0, 255),
    (-127, 127),
    (-8, 7),
    (0, 15),
    (-2, 1),
    (0, 3),
    (-1, 1),
    (-1, 0),
    (0, 1),
    (1, 4),
    (-1, 4),
    (-4, 1),
    (0, 5),
    (-3, 8),
    (5, 9),
    (-9, -5),
    (-32768, 32767),
    (0, 65535),
)
"""Grids of even and odd centre, with zero at an end, inside and outside."""


def _pair(ranges: tuple[tuple[float, float], ...] | list[tuple[float, float]], dtype: object = _F32) -> Arguments:
    pairs = np.asarray(ranges, np.float64).reshape(-1, 2).astype(np.dtype(dtype))  # type: ignore[call-overload]
    return {"min": pairs[:, 0].copy(), "max": pairs[:, 1].copy()}


def _on_grids(pair: Arguments, symmetric: bool, grids: tuple[tuple[int, int], ...] = GRIDS) -> Iterator[Arguments]:
    for qmin, qmax in grids:
        yield {**pair, "qmin": qmin, "qmax": qmax, "symmetric": symmetric}


@documented("aimet/grid", "quantize: parameters bitwidth and signed", aspect="from-bitwidth")
def bitwidths() -> Calls:
    """A bitwidth b gives 2^b codes: the non-negative integers from 0, or as many below zero as from zero on where the
    codes are signed."""
    for bitwidth in range(33):
        for signed in (False, True):
            yield {"bitwidth": bitwidth, "signed": signed}


@documented("aimet/grid", "quantize: parameters num_steps and signed (halves: measured)", aspect="from-num-steps")
def steps() -> Calls:
    """A number of steps gives one code more than steps; of an odd number of signed steps the greater half lies below
    zero."""
    for num_steps in (0, 1, 2, 3, 4, 5, 14, 15, 254, 255, 256, 65534, 65535, 2**24, 2**32):
        for signed in (False, True):
            yield {"num_steps": num_steps, "signed": signed}
    yield {"num_steps": 5}


@documented("aimet/grid", "quantize: the overloads, bitwidth (int) and num_steps (int)")
def refusals() -> Calls:
    """The grid is given in one way, by an integer that is not negative; else the call is an error."""
    for signed in (False, True):
        yield {"bitwidth": 4.5, "signed": signed}
        yield {"num_steps": 15.5, "signed": signed}
        yield {"bitwidth": 8, "num_steps": 15, "signed": signed}
        yield {"signed": signed}
        yield {"num_steps": -1, "signed": signed}
        yield {"bitwidth": True, "signed": signed}


@documented(
    "aimet/bitwidth_grid", "QuantizeDequantize: parameters bitwidth and symmetric (signs: measured)", aspect="two-modes"
)
def _bitwidths() -> Calls:
    """A symmetric quantizer of b bits has the signed grid, an asymmetric one the unsigned grid."""
    for bitwidth in range(1, 33):
        for symmetric in (False, True):
            yield {"bitwidth": bitwidth, "symmetric": symmetric}


@documented("aimet/bitwidth_grid", "QuantizeDequantize: bitwidth (int)", aspect="refusals")
def bitwidth_refusals() -> Calls:
    """A bitwidth that is no integer, or leaves no step, is an error."""
    for bitwidth in (0, -1, 4.5, 8.0, True):
        for symmetric in (False, True):
            yield {"bitwidth": bitwidth, "symmetric": symmetric}


@measured("aimet/min_scale", "aimet-torch 2.42: the scale of a range without width", aspect="two-limits")
def min_scale() -> Calls:
    """The least scale is 2^-23, or 0.01 over the number of steps where that is less."""
    for n in (1, 2, 3, 15, 255, 65535, 83886, 83887, 2**17 - 1, 2**24 - 1, 2**31, 2**32 - 1):
        yield {"num_steps": n}


@measured(
    "aimet/scale_and_offset", "aimet-torch 2.42 (QuantizeDequantize: scale and offset are derived from min and max)"
)
def _symmetric() -> Calls:
    """A symmetric scale is the width of the range over the number of steps, and the offset is minus the middle of the
    grid, rounded half to even: the range's own middle has no say."""
    yield from _on_grids(_pair(RANGES), symmetric=True)


@documented(
    "aimet/scale_and_offset", "QuantizeDequantize: the equation, and variables min and max (arithmetic: measured)"
)
def asymmetric() -> Calls:
    """Scale and offset of an asymmetric quantizer derive from its minimum and maximum: the width over the number of
    steps, and the minimum in codes less the lowest code."""
    yield from _on_grids(_pair(RANGES), symmetric=False)
    for first, second in ((np.float64, _F32), (_F32, np.float64)):
        low, high = np.array([-0.03, -0.13], _F32).astype(first), np.array([0.27, 1.17], _F32).astype(second)
        yield {"min": low, "max": high, "qmin": 0, "qmax": 15, "symmetric": False}
    for shape in ((), (1,), (2, 1), (0,), (1, 3, 1)):  # ranks
        low = np.linspace(-1, -0.3, int(np.prod(shape)), dtype=_F32).reshape(shape)
        yield {"min": low, "max": np.asarray(low + _F32(1.7)), "qmin": 0, "qmax": 255, "symmetric": False}


@measured("aimet/scale_and_offset", "aimet-torch 2.42", aspect="offset-rounding")
def ties() -> Calls:
    """The minimum in codes is rounded to the nearest integer, of two equally near to the even one, before the lowest
    code is subtracted."""
    # Minima at half codes of a scale of 1/16 and one float32 on either side: the maximum keeps the width.
    low = np.repeat(-(np.arange(10, dtype=_F32) + _F32(0.5)) / _F32(16), 3)
    low[0::3] = np.nextafter(low[0::3], _DOWN)
    low[2::3] = np.nextafter(low[2::3], _UP)
    for qmin, qmax in ((0, 15), (-8, 7), (-9, 6), (-20, 20)):
        high = low + _F32(qmax - qmin) / _F32(16)
        yield {"min": low, "max": high, "qmin": qmin, "qmax": qmax, "symmetric": False}


@measured("aimet/scale_and_offset", "aimet-torch 2.42", aspect="zero-in-range")
def zero_outside() -> Calls:
    """A range without zero is moved until zero is on its edge and keeps its width."""
    ranges = ((0.5, 2.0), (-3.0, -1.0), (1e-3, 1e3), (-7.0, -6.875), (100.0, 101.0), (-0.0, 1.0), (-1e-9, 1.0))
    for symmetric in (False, True):
        yield from _on_grids(_pair(ranges), symmetric, GRIDS[:9])


@measured("aimet/scale_and_offset", "aimet-torch 2.42", aspect="swapped-ends")
def swapped() -> Calls:
    """A maximum below the minimum gives the scale of the same width: a scale is never negative."""
    for symmetric in (False, True):
        yield from _on_grids(_pair(((1.0, -1.0), (2.0, -0.5), (-0.5, -2.0))), symmetric, GRIDS[:6])


@measured("aimet/scale_and_offset", "aimet-torch 2.42", aspect="least-scale")
def tiny() -> Calls:
    """A scale is never below the least scale of its grid."""
    for qmin, qmax in ((0, 255), (-128, 127), (0, 65535), (-(2**16), 2**16 - 1), (0, 2**24 - 1), (0, 2**32 - 1)):
        n = qmax - qmin
        least = _F32(min(2.0**-23, 0.01 / n))
        edge = [float(least * _F32(n) * k) for k in (_F32(0.5), _F32(1), _F32(1) + _F32(2**-23), _F32(2))]
        ranges = [(0.0, 0.0), (-1e-45, 1e-45), (0.0, 1e-38), *((-e, 0.0) for e in edge), *((0.0, e) for e in edge)]
        for symmetric in (False, True):
            yield {**_pair(ranges), "qmin": qmin, "qmax": qmax, "symmetric": symmetric}


@measured("aimet/scale_and_offset", "aimet-torch 2.42")
def non_finite() -> Calls:
    """A range that is not finite gives a scale and an asymmetric offset that are not, never a number that hides it."""
    inf, nan = float("inf"), float("nan")
    ranges = ((nan, nan), (nan, 1.0), (-1.0, nan), (-inf, inf), (-1.0, inf), (-inf, 1.0), (inf, inf), (-3e38, 3e38))
    for symmetric in (False, True):
        yield from _on_grids(_pair(ranges), symmetric, GRIDS[:4])


@measured("aimet/scale_and_offset", "aimet-torch 2.42 (QuantizeDequantize: parameter bitwidth)")
def every_bitwidth() -> Calls:
    """Scale and offset follow for every bitwidth from 1 to 32, with the grid's ends rounded to float32."""
    for bitwidth in range(1, 33):
        half = 2 ** (bitwidth - 1)
        for symmetric, qmin, qmax in ((True, -half, half - 1), (False, 0, 2**bitwidth - 1), (False, -half, half - 1)):
            yield {**_pair(RANGES[:7]), "qmin": qmin, "qmax": qmax, "symmetric": symmetric}


@measured("aimet/scale_and_offset", "aimet-torch 2.42")
def dtypes() -> Calls:
    """Scale and offset are float32, computed in float32 from a minimum and a maximum of any float dtype; only a float64
    minimum is divided in float64."""
    for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
        for symmetric in (False, True):
            yield from _on_grids(_pair(RANGES[:8], dtype), symmetric, GRIDS[:6])


@measured("aimet/scale_and_offset", "aimet-torch 2.42")
def _refusals() -> Calls:
    """A grid of one code or none, and a minimum and maximum of unlike shapes, are errors."""
    one, three = np.ones(2, _F32), np.ones(3, _F32)
    for symmetric in (False, True):
        yield {"min": -one, "max": one, "qmin": 4, "qmax": 4, "symmetric": symmetric}
        yield {"min": -one, "max": one, "qmin": 5, "qmax": 4, "symmetric": symmetric}
        yield {"min": -one, "max": three, "qmin": 0, "qmax": 15, "symmetric": symmetric}


@documented("aimet/recalibrated_range", "QuantizeDequantize: the equation, at qmin and qmax")
def ends() -> Calls:
    """The range that a quantizer covers is its scale times the lowest and the highest code moved by the offset, which
    is not the range it was given."""
    for symmetric in (False, True):
        yield from _on_grids(_pair((*RANGES, (0.5, 2.0), (-3.0, -1.0), (0.0, 0.0), (1.0, -1.0))), symmetric)


@measured("aimet/recalibrated_range", "aimet-torch 2.42", aspect="shift")
def shifted() -> Calls:
    """A shift of half a code moves both ends of the range by half a scale."""
    for symmetric in (False, True):
        for call in _on_grids(_pair(RANGES), symmetric, GRIDS[:8]):
            yield {**call, "zero_point_shift": 0.5}


@measured("aimet/recalibrated_range", "aimet-torch 2.42")
def least_scale() -> Calls:
    """Of more than 83,886 steps the least scale is a hundredth over the steps, less than float32's machine epsilon."""
    for n in (83886, 83887, 2**24 - 1):
        yield {**_pair([(-1e-9, 1e-9), (-1e-5, 0.0)]), "qmin": 0, "qmax": n, "symmetric": False}


@measured("aimet/recalibrated_range", "aimet-torch 2.42")
def float64() -> Calls:
    """The offset of a minimum of float64 is found in float64, the range in float32."""
    # Minima whose quotient by the scale is a tie in float32, and none in float64.
    low = (-(np.arange(10) + 0.5) / 16)[:, None] * (1 + np.array([-1, 0, 1]) * 2.0**-30)
    high = low.astype(_F32) + _F32(15) / _F32(16)
    for qmin, qmax in ((0, 15), (-8, 7)):
        yield {"min": low, "max": high.astype(np.float64), "qmin": qmin, "qmax": qmax, "symmetric": False}


@measured("aimet/recalibrated_range", "aimet-torch 2.42", aspect="refusals")
def range_refusals() -> Calls:
    """A shift other than 0 and one half, and a grid of no step, are errors."""
    one = np.ones(2, _F32)
    for shift in (0.25, -0.5, 1.0):
        call = {"min": -one, "max": one, "qmin": 0, "qmax": 15}
        yield {**call, "symmetric": False, "zero_point_shift": shift}
    yield {"min": -one, "max": one, "qmin": 4, "qmax": 3, "symmetric": False}


def grid(bitwidth: Any = None, num_steps: Any = None, signed: bool = False) -> tuple[int, int]:
    """What the two largest reals become: the grid's ends."""
    import torch
    from aimet_torch.quantization import affine

    x = torch.tensor([-1e300, 1e300], dtype=torch.float64)
    given = {"bitwidth": bitwidth, "num_steps": num_steps}
    given = {name: value for name, value in given.items() if value is not None}
    q = affine.quantize(x, torch.tensor(1.0), torch.tensor(0.0), **given, signed=signed)
    return int(q[0]), int(q[1])


def bitwidth_grid(bitwidth: Any, symmetric: bool) -> tuple[int, int]:
    """The ends that a quantizer keeps."""
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize((), bitwidth, symmetric)
    return quantizer.qmin, quantizer.qmax


def answered_min_scale(num_steps: int) -> float:
    """The library's own function; a quantizer of one number shows it in float32."""
    from aimet_torch.common.quantsim import _get_minimum_scale

    return float(_get_minimum_scale(num_steps))


def scale_and_offset(min: Tensor, max: Tensor, qmin: int, qmax: int, symmetric: bool) -> tuple[Tensor, Tensor]:  # noqa: A002
    """A quantizer with its minimum and maximum assigned."""
    import torch
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize(tuple(min.shape), qmin, qmax, symmetric)
    quantizer.min, quantizer.max = torch.nn.Parameter(min.clone()), torch.nn.Parameter(max.clone())
    return quantizer.get_scale().detach(), quantizer.get_offset().detach()


def recalibrated_range(
    min: Tensor,  # noqa: A002
    max: Tensor,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    zero_point_shift: float = 0.0,
) -> tuple[Tensor, Tensor]:
    """The range that such a quantizer says it has."""
    import torch
    from aimet_torch.quantization import affine

    quantizer = affine.QuantizeDequantize(tuple(min.shape), qmin, qmax, symmetric, zero_point_shift=zero_point_shift)
    quantizer.min, quantizer.max = torch.nn.Parameter(min.clone()), torch.nn.Parameter(max.clone())
    return quantizer.get_min().detach(), quantizer.get_max().detach()


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/grid": grid,
        "aimet/bitwidth_grid": bitwidth_grid,
        "aimet/min_scale": answered_min_scale,
        "aimet/scale_and_offset": scale_and_offset,
        "aimet/recalibrated_range": recalibrated_range,
    },
}
