"""Calls of AIMET's quantizers in every mode, of their states, and of encodings that a range does not give exactly."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.aimet_affine import F32, boundaries, scalar
from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

MODES = ("trained", "frozen", "no-grad", "inference")
# Minimum and maximum of a grid; the first scale is 0.1 in float32, whose reciprocal is not exact.
_RANGES = (
    (-12.8, 12.7, -128, 127, True),
    (-3.0, 22.5, 0, 255, False),
    (-0.8, 0.7, -8, 7, True),
    (-1.3, 0.2, 0, 15, False),
)


@calls("aimet.forward", "modes")
def modes() -> Iterator[Arguments]:
    """Ties of every code and their neighbours, and the extremes, in every mode; one range, and one per channel."""
    for low, high, qmin, qmax, symmetric in _RANGES:
        scale = (high - low) / (qmax - qmin)
        codes = np.arange(round(low / scale) - 2, round(high / scale) + 3)
        x = boundaries(scale, codes[:: 1 + codes.size // 20], F32)
        grid = {"qmin": qmin, "qmax": qmax, "symmetric": symmetric}
        extremes = np.array([np.nan, np.inf, -np.inf, 3e38, -0.0, -1e-45], F32)
        for mode in MODES:
            given = {"min": scalar(low), "max": scalar(high), **grid, "mode": mode}
            yield {"tensor": x, **given}
            yield {"tensor": extremes, **given}
            ends = {"min": np.array([[low], [low / 3]], F32), "max": np.array([[high], [high / 3]], F32)}
            yield {"tensor": np.stack([x, x / 3])[:, ::3], **ends, **grid, "mode": mode}


@calls("aimet.forward", "narrow-dtypes")
def narrow_dtypes() -> Iterator[Arguments]:
    """float16 and bfloat16 tensors, whose ranges are float32."""
    for dtype in (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)):
        for low, high, qmin, qmax, symmetric in _RANGES:
            x = np.linspace(1.1 * low, 1.1 * high, 60).astype(dtype)
            given = {"tensor": x, "min": scalar(low), "max": scalar(high), "qmin": qmin, "qmax": qmax}
            yield from ({**given, "symmetric": symmetric, "mode": mode} for mode in MODES[:2])


@calls("aimet.load_state", "once")
def loaded_once() -> Iterator[Arguments]:
    """Grids, blocks and shifts unlike those of the quantizer that takes the state."""
    low, high = np.array([[-1.0, -0.3]], F32), np.array([[0.5, 0.7]], F32)
    for grid in ((-8, 7, True), (-3, 12, False), (0, 255, False)):
        given = dict(zip(("qmin", "qmax", "symmetric"), grid, strict=True))
        for blocks in ({}, {"block_size": (1, 4)}, {"zero_point_shift": 0.5}):
            yield {"min": low, "max": high, **given, **blocks}


@calls("aimet.load_state", "several")
def loaded_by_several() -> Iterator[Arguments]:
    """The same state for two and for three quantizers."""
    for given in loaded_once():
        yield from ({**given, "quantizers": n} for n in (2, 3))


def _scales(qmin: int, qmax: int) -> tuple[Array, Array]:
    """Scales that some range gives: of widths of every last digit. The offsets keep zero in the range."""
    n = F32.type(qmax - qmin)
    widths = (1 + np.arange(40) * 0.0131).astype(F32) * (2.0 ** (np.arange(40) % 7 - 3)).astype(F32)
    offsets = -(qmin + (np.arange(40) * 13) % (qmax - qmin + 1))
    return (widths / n).astype(F32), offsets.astype(F32)


@calls("aimet.from_encodings", "scales")
def scales() -> Iterator[Arguments]:
    """Scales of which some change in the last place on the way to a range and back."""
    for qmin, qmax in ((0, 255), (-128, 127), (-8, 7), (0, 15), (-32768, 32767)):
        scale, offset = _scales(qmin, qmax)
        grid = {"qmin": qmin, "qmax": qmax}
        yield {"scale": scale, "offset": offset, **grid, "symmetric": False}
        middle = np.full_like(offset, -round((qmin + qmax) / 2))
        yield {"scale": scale, "offset": middle, **grid, "symmetric": True}


@calls("aimet.from_encodings", "shifted")
def shifted() -> Iterator[Arguments]:
    """With a shift; the scales are those of powers of two, which every way gives exactly."""
    for qmin, qmax in ((-8, 7), (-2, 1)):
        scale = 2.0 ** np.arange(-3, 4).astype(F32)
        given = {"scale": scale, "offset": np.zeros_like(scale), "qmin": qmin, "qmax": qmax, "symmetric": True}
        yield {**given, "zero_point_shift": 0.5}
        yield given


@calls("aimet.encoding_range", "ends")
def ends() -> Iterator[Arguments]:
    """Both ends, of scales with long products."""
    for qmin, qmax in ((0, 255), (-128, 127), (-8, 7), (5, 9)):
        scale, offset = _scales(qmin, qmax)
        yield {"scale": scale, "offset": offset, "qmin": qmin, "qmax": qmax}


@calls("aimet.encoding_range", "shifted")
def shifted_ends() -> Iterator[Arguments]:
    """Half a code further."""
    yield from ({**given, "zero_point_shift": 0.5} for given in ends())
