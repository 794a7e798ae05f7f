"""Calls of the gradients: the ends and their neighbours, NaN on either side, dtypes, sums that no order can change."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.calls.pytorch_quantization_tensor_quant import around, every
from halfeven.conformance.calls.registry import Arguments, calls

__all__: list[str] = []

P = "pytorch_quantization."
MASKED = (
    P + "tensor_quant_backward",
    P + "fake_tensor_quant_backward",
    P + "legacy_fake_tensor_quant_backward",
    P + "scaled_e4m3_backward",
)
AFFINE = P + "fake_affine_tensor_quant_backward"
CLIP, CLIP_BACKWARD = P + "clip", P + "clip_backward"
F32 = np.dtype(np.float32)


def _gradients(n: int) -> np.ndarray:
    return np.resize(np.array([3, -1.5, 0.25, -0.0, 7e30], F32), n)


@every("ends", MASKED)
def ends() -> Iterator[Arguments]:
    """An amax itself passes, of either sign; what is a float beyond does not."""
    for amax in (1.0, 0.7, 127.0, 1e-30, 0.0, 2.0**-25):
        inputs = np.concatenate([around([amax, amax * 128 / 127, amax / 2]), np.array([0.0, -0.0], F32)])
        yield {"inputs": inputs, "amax": np.asarray(amax, F32), "grad_outputs": _gradients(inputs.size)}


@every("not-finite", MASKED)
def not_finite() -> Iterator[Arguments]:
    """NaN and infinite inputs do not pass; a NaN or infinite gradient passes inside, and leaves nothing outside."""
    inputs = np.array([np.nan, np.inf, -np.inf, 0.5, 0.5, 0.5, 2, 2, 2], F32)
    gradients = np.array([1, 1, 1, np.nan, np.inf, -np.inf, np.nan, np.inf, -np.inf], F32)
    for amax in (1.0, np.inf):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32), "grad_outputs": gradients}


@every("per-channel", MASKED)
def channels() -> Iterator[Arguments]:
    """Each element against its own entry."""
    inputs = (np.arange(-6, 6, dtype=F32) / np.float32(3)).reshape(2, 2, 3)
    for shape in ((), (1,), (3,), (2, 1, 1), (1, 2, 3)):
        amax = (np.arange(1, int(np.prod(shape)) + 1, dtype=F32) / np.float32(3)).reshape(shape)
        yield {"inputs": inputs, "amax": amax, "grad_outputs": _gradients(12).reshape(2, 2, 3)}
    for empty in ((), (0, 2)):
        yield {"inputs": np.ones(empty, F32), "amax": np.asarray(1, F32), "grad_outputs": np.ones(empty, F32)}


@every("dtypes", MASKED[:3])
def dtypes() -> Iterator[Arguments]:
    """0.7 rounds up in float16 and down in bfloat16: an amax without dimensions is rounded as the inputs are."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        inputs = around([0.7, 0.3, 1.1], np.dtype(dtype))
        for shape in ((), (1,)):
            amax = np.full(shape, 0.7, F32)
            yield {"inputs": inputs, "amax": amax, "grad_outputs": np.ones(inputs.size, dtype)}


@calls(P + "scaled_e4m3_backward", "no-amax")
def no_amax() -> Iterator[Arguments]:
    """447, 448 and 449, their neighbours, NaN."""
    inputs = np.append(around([447, 448, 449]), np.array([np.nan, np.inf, 0], F32))
    yield {"inputs": inputs, "amax": None, "grad_outputs": np.ones(inputs.size, F32)}


@calls(AFFINE, "ends")
def affine_ends() -> Iterator[Arguments]:
    """Both ends of the range pass."""
    for low, high in ((-1.0, 1.0), (0.1, 0.7), (-3.0, -0.2), (1.0, -1.0)):
        inputs = np.append(around([low, high, 0.3]), np.array([np.nan, np.inf, -np.inf, 0], F32))
        limits = {"min_range": np.asarray(low, F32), "max_range": np.asarray(high, F32)}
        yield {"inputs": inputs, **limits, "grad_outputs": _gradients(inputs.size)}


def _bounds(low: Any, high: Any) -> Arguments:
    return {"clip_value_min": np.asarray(low, F32), "clip_value_max": np.asarray(high, F32)}


@calls(CLIP, "bounds")
def clips() -> Iterator[Arguments]:
    """The bounds and their neighbours, bounds in the other order, NaN anywhere, a bound per row."""
    inputs = np.append(around([0.3, 0.7, 5]), np.array([np.nan, np.inf, -np.inf], F32))
    for low, high in ((0.3, 0.7), (-0.7, 0.3), (0.7, 0.3), (np.nan, 1.0), (-1.0, np.nan), (-np.inf, np.inf)):
        yield {"inputs": inputs, **_bounds(low, high)}
    yield {"inputs": np.array([[-2, 2], [-2, 2]], F32), **_bounds([[-1], [-3]], [[1], [0.5]])}


@calls(CLIP, "refusals")
def clip_refusals() -> Iterator[Arguments]:
    """Bounds that are Python numbers."""
    inputs = np.ones(2, F32)
    yield {"inputs": inputs, "clip_value_min": 0.0, "clip_value_max": 1.0}
    yield {"inputs": inputs, "clip_value_min": np.asarray(0, F32), "clip_value_max": 1.0}


@calls(CLIP_BACKWARD, "ends")
def clip_ends() -> Iterator[Arguments]:
    """Neither bound passes; the gradients are small integers, so that every order gives one sum."""
    plain = np.array([0, 0.3, 0.5, 0.7, 1], F32)
    yield {"inputs": plain, **_bounds(0.3, 0.7), "grad_outputs": np.arange(1, 6, dtype=F32)}
    inputs = np.append(around([0.3, 0.7, 5]), np.array([np.inf, -np.inf, 0.0], F32))
    gradients = np.resize(np.array([1, -2, 3, 5, -8], F32), inputs.size)
    for low, high in ((0.3, 0.7), (-0.7, 0.7), (0.7, 0.3)):
        yield {"inputs": inputs, **_bounds(low, high), "grad_outputs": gradients}


@calls(CLIP_BACKWARD, "not-finite")
def clip_not_finite() -> Iterator[Arguments]:
    """A NaN input counts for both bounds; an infinite gradient outside leaves NaN."""
    inputs = np.array([np.nan, 0.5, 2, -2], F32)
    for gradients in ([1, 2, 4, 8], [1, np.inf, 4, 8], [1, 2, np.inf, 8], [1, np.nan, 2, 3]):
        yield {"inputs": inputs, **_bounds(-1, 1), "grad_outputs": np.array(gradients, F32)}
    for gradients in ([1, -np.inf, np.inf, 8], [1, np.inf, np.inf, 8]):
        yield {"inputs": np.zeros(4, F32), **_bounds(-1, -1), "grad_outputs": np.array(gradients, F32)}


@calls(CLIP_BACKWARD, "refusals")
def clip_backward_refusals() -> Iterator[Arguments]:
    """A bound per element."""
    ones = np.ones(2, F32)
    yield {"inputs": ones, **_bounds([0, 0], 1), "grad_outputs": ones}
    yield {"inputs": ones, **_bounds(0, [1, 1]), "grad_outputs": ones}
