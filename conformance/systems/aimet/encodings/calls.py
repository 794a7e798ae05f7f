"""Calls of AIMET's grids, and of scale and offset from a minimum and a maximum."""

from collections.abc import Iterator

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Arguments, calls

__all__ = ["GRIDS", "RANGES"]

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


def _pair(ranges: "tuple[tuple[float, float], ...] | list[tuple[float, float]]", dtype: object = _F32) -> Arguments:
    pairs = np.asarray(ranges, np.float64).reshape(-1, 2).astype(np.dtype(dtype))  # type: ignore[call-overload]
    return {"min": pairs[:, 0].copy(), "max": pairs[:, 1].copy()}


def _on_grids(pair: Arguments, symmetric: bool, grids: tuple[tuple[int, int], ...] = GRIDS) -> Iterator[Arguments]:
    for qmin, qmax in grids:
        yield {**pair, "qmin": qmin, "qmax": qmax, "symmetric": symmetric}


@calls("aimet/grid", "bitwidths")
def _grid_bitwidths() -> Iterator[Arguments]:
    for bitwidth in range(33):
        for signed in (False, True):
            yield {"bitwidth": bitwidth, "signed": signed}


@calls("aimet/grid", "steps")
def _grid_steps() -> Iterator[Arguments]:
    for num_steps in (0, 1, 2, 3, 4, 5, 14, 15, 254, 255, 256, 65534, 65535, 2**24, 2**32):
        for signed in (False, True):
            yield {"num_steps": num_steps, "signed": signed}


@calls("aimet/grid", "refusals")
def _grid_refusals() -> Iterator[Arguments]:
    for signed in (False, True):
        yield {"bitwidth": 4.5, "signed": signed}
        yield {"num_steps": 15.5, "signed": signed}
        yield {"bitwidth": 8, "num_steps": 15, "signed": signed}
        yield {"signed": signed}
        yield {"num_steps": -1, "signed": signed}


@calls("aimet/bitwidth_grid", "bitwidths")
def _bitwidths() -> Iterator[Arguments]:
    for bitwidth in range(1, 33):
        for symmetric in (False, True):
            yield {"bitwidth": bitwidth, "symmetric": symmetric}


@calls("aimet/bitwidth_grid", "refusals")
def _bitwidth_refusals() -> Iterator[Arguments]:
    for bitwidth in (0, -1, 4.5, 8.0):
        for symmetric in (False, True):
            yield {"bitwidth": bitwidth, "symmetric": symmetric}


@calls("aimet/min_scale", "steps")
def _min_scale() -> Iterator[Arguments]:
    for n in (1, 2, 3, 15, 255, 65535, 83886, 83887, 2**17 - 1, 2**24 - 1, 2**31, 2**32 - 1):
        yield {"num_steps": n}


@calls("aimet/scale_and_offset", "symmetric")
def _symmetric() -> Iterator[Arguments]:
    yield from _on_grids(_pair(RANGES), symmetric=True)


@calls("aimet/scale_and_offset", "asymmetric")
def _asymmetric() -> Iterator[Arguments]:
    yield from _on_grids(_pair(RANGES), symmetric=False)
    for shape in ((), (1,), (2, 1), (0,), (1, 3, 1)):  # ranks
        low = np.linspace(-1, -0.3, int(np.prod(shape)), dtype=_F32).reshape(shape)
        yield {"min": low, "max": np.asarray(low + _F32(1.7)), "qmin": 0, "qmax": 255, "symmetric": False}


@calls("aimet/scale_and_offset", "ties")
def _ties() -> Iterator[Arguments]:
    """Minima at half codes of a scale of 1/16 and one float32 on either side: the maximum keeps the width."""
    low = np.repeat(-(np.arange(10, dtype=_F32) + _F32(0.5)) / _F32(16), 3)
    low[0::3] = np.nextafter(low[0::3], _DOWN)
    low[2::3] = np.nextafter(low[2::3], _UP)
    for qmin, qmax in ((0, 15), (-8, 7), (-9, 6), (-20, 20)):
        high = low + _F32(qmax - qmin) / _F32(16)
        yield {"min": low, "max": high, "qmin": qmin, "qmax": qmax, "symmetric": False}


@calls("aimet/scale_and_offset", "zero-outside")
def _zero_outside() -> Iterator[Arguments]:
    ranges = ((0.5, 2.0), (-3.0, -1.0), (1e-3, 1e3), (-7.0, -6.875), (100.0, 101.0), (-0.0, 1.0), (-1e-9, 1.0))
    for symmetric in (False, True):
        yield from _on_grids(_pair(ranges), symmetric, GRIDS[:9])


@calls("aimet/scale_and_offset", "swapped")
def _swapped() -> Iterator[Arguments]:
    for symmetric in (False, True):
        yield from _on_grids(_pair(((1.0, -1.0), (2.0, -0.5), (-0.5, -2.0))), symmetric, GRIDS[:6])


@calls("aimet/scale_and_offset", "tiny")
def _tiny() -> Iterator[Arguments]:
    for qmin, qmax in ((0, 255), (-128, 127), (0, 65535), (-(2**16), 2**16 - 1), (0, 2**24 - 1), (0, 2**32 - 1)):
        n = qmax - qmin
        least = _F32(min(2.0**-23, 0.01 / n))
        edge = [float(least * _F32(n) * k) for k in (_F32(0.5), _F32(1), _F32(1) + _F32(2**-23), _F32(2))]
        ranges = [(0.0, 0.0), (-1e-45, 1e-45), (0.0, 1e-38), *((-e, 0.0) for e in edge), *((0.0, e) for e in edge)]
        for symmetric in (False, True):
            yield {**_pair(ranges), "qmin": qmin, "qmax": qmax, "symmetric": symmetric}


@calls("aimet/scale_and_offset", "non-finite")
def _non_finite() -> Iterator[Arguments]:
    inf, nan = float("inf"), float("nan")
    ranges = ((nan, nan), (nan, 1.0), (-1.0, nan), (-inf, inf), (-1.0, inf), (-inf, 1.0), (inf, inf), (-3e38, 3e38))
    for symmetric in (False, True):
        yield from _on_grids(_pair(ranges), symmetric, GRIDS[:4])


@calls("aimet/scale_and_offset", "every-bitwidth")
def _every_bitwidth() -> Iterator[Arguments]:
    for bitwidth in range(1, 33):
        half = 2 ** (bitwidth - 1)
        for symmetric, qmin, qmax in ((True, -half, half - 1), (False, 0, 2**bitwidth - 1), (False, -half, half - 1)):
            yield {**_pair(RANGES[:7]), "qmin": qmin, "qmax": qmax, "symmetric": symmetric}


@calls("aimet/scale_and_offset", "dtypes")
def _dtypes() -> Iterator[Arguments]:
    for dtype in (np.float64, np.float16, ml_dtypes.bfloat16):
        for symmetric in (False, True):
            yield from _on_grids(_pair(RANGES[:8], dtype), symmetric, GRIDS[:6])


@calls("aimet/scale_and_offset", "refusals")
def _refusals() -> Iterator[Arguments]:
    one, three = np.ones(2, _F32), np.ones(3, _F32)
    for symmetric in (False, True):
        yield {"min": -one, "max": one, "qmin": 4, "qmax": 4, "symmetric": symmetric}
        yield {"min": -one, "max": one, "qmin": 5, "qmax": 4, "symmetric": symmetric}
        yield {"min": -one, "max": three, "qmin": 0, "qmax": 15, "symmetric": symmetric}


@calls("aimet/recalibrated_range", "ends")
def _ends() -> Iterator[Arguments]:
    for symmetric in (False, True):
        yield from _on_grids(_pair((*RANGES, (0.5, 2.0), (-3.0, -1.0), (0.0, 0.0), (1.0, -1.0))), symmetric)


@calls("aimet/recalibrated_range", "shifted")
def _shifted() -> Iterator[Arguments]:
    for symmetric in (False, True):
        for call in _on_grids(_pair(RANGES), symmetric, GRIDS[:8]):
            yield {**call, "zero_point_shift": 0.5}


@calls("aimet/recalibrated_range", "least-scale")
def _least_scale() -> Iterator[Arguments]:
    for n in (83886, 83887, 2**24 - 1):
        yield {**_pair([(-1e-9, 1e-9), (-1e-5, 0.0)]), "qmin": 0, "qmax": n, "symmetric": False}


@calls("aimet/recalibrated_range", "float64")
def _float64() -> Iterator[Arguments]:
    """Minima whose quotient by the scale is a tie in float32, and none in float64."""
    low = (-(np.arange(10) + 0.5) / 16)[:, None] * (1 + np.array([-1, 0, 1]) * 2.0**-30)
    high = low.astype(_F32) + _F32(15) / _F32(16)
    for qmin, qmax in ((0, 15), (-8, 7)):
        yield {"min": low, "max": high.astype(np.float64), "qmin": qmin, "qmax": qmax, "symmetric": False}


@calls("aimet/recalibrated_range", "refusals")
def _range_refusals() -> Iterator[Arguments]:
    one = np.ones(2, _F32)
    for shift in (0.25, -0.5, 1.0):
        call = {"min": -one, "max": one, "qmin": 0, "qmax": 15}
        yield {**call, "symmetric": False, "zero_point_shift": shift}
    yield {"min": -one, "max": one, "qmin": 4, "qmax": 3, "symmetric": False}
