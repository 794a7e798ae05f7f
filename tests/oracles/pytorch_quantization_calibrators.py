"""``MaxCalibrator``: each entry's magnitudes gathered by index over all batches, the largest found by comparing."""

from math import isfinite, isnan
from typing import Any

import numpy as np

from oracles.pytorch_quantization_tensor_quant import pack
from oracles.registry import derives
from oracles.soft import Array

__all__ = ["running", "tracked"]


def _kinds(batches: tuple[Array, ...]) -> None:
    if "bfloat16" in {x.dtype.name for x in batches}:
        msg = "bfloat16"
        raise TypeError(msg)


def _largest(numbers: list[float]) -> float:
    best = 0.0
    for v in numbers:
        if isnan(v):
            return v
        best = max(best, abs(v))
    return best


def _one(x: Array, axis: Any) -> Array:
    if 0 in x.shape:
        msg = f"x of shape {x.shape}"
        raise RuntimeError(msg)
    named = [] if axis is None else list(axis) if isinstance(axis, tuple | list) else [axis]
    if any(a + x.ndim < 0 or a >= x.ndim for a in named):
        msg = f"axis={axis}"
        raise ValueError(msg)
    kept = {a + x.ndim if a < 0 else a for a in named}
    shape = tuple(n if d in kept else 1 for d, n in enumerate(x.shape))
    gathered: dict[tuple[int, ...], list[float]] = {}
    for index in np.ndindex(*x.shape):
        gathered.setdefault(tuple(i if d in kept else 0 for d, i in enumerate(index)), []).append(float(x[index]))
    numbers = [_largest(gathered[index]) for index in np.ndindex(*shape)]
    return pack(numbers, () if len(numbers) == 1 else shape, x.dtype.name)


def _all(parts: list[Array]) -> Array | None:
    if len({p.shape for p in parts}) > 1:
        msg = f"shapes {[p.shape for p in parts]}"
        raise RuntimeError(msg)
    if not parts:
        return None
    numbers = [_largest([float(p[index]) for p in parts]) for index in np.ndindex(*parts[0].shape)]
    return pack(numbers, parts[0].shape, parts[0].dtype.name)


@derives("pytorch-quantization/max_calibrator")
def running(batches: tuple[Array, ...], axis: Any = None) -> Array | None:
    """The largest of the batches' own."""
    return _all([_one(x, axis) for x in batches])


@derives("pytorch-quantization/max_calibrator_amaxs")
def tracked(batches: tuple[Array, ...], axis: Any = None) -> tuple[Array, ...]:
    """The batches' own."""
    running(batches, axis)
    return tuple(_one(x, axis) for x in batches)


@derives("pytorch-quantization/max_calibrator_amaxs@2.2.1")
def tracked_2_2_1(batches: tuple[Array, ...], axis: Any = None) -> tuple[Array, ...]:
    """The first one is the largest of all."""
    _kinds(batches)
    return _first_of_all([_one(x, axis) for x in batches])


def _first_of_all(parts: list[Array]) -> tuple[Array, ...]:
    largest = _all(parts)
    return () if largest is None else (largest, *parts[1:])


def _from_start(x: Array, axis: Any) -> Array:
    named = list(axis) if isinstance(axis, tuple | list) else [axis]
    return _one(x, [d for d in range(x.ndim) if d in named])


@derives("pytorch-quantization/max_calibrator@2.1.3")
def running_2_1_3(batches: tuple[Array, ...], axis: Any = None) -> Array | None:
    """Only an axis counted from the start is one."""
    return _all([_from_start(x, axis) for x in batches])


@derives("pytorch-quantization/max_calibrator_amaxs@2.1.3")
def tracked_2_1_3(batches: tuple[Array, ...], axis: Any = None) -> tuple[Array, ...]:
    """The first one is the largest of all, and only an axis counted from the start is one."""
    _kinds(batches)
    return _first_of_all([_from_start(x, axis) for x in batches])


def _modelopt(x: Array, axis: Any) -> Array:
    named = [] if axis is None else list(axis) if isinstance(axis, tuple | list) else [axis]
    reduced = [d for d in range(x.ndim) if d not in named and d - x.ndim not in named]
    found = _one(x, [d for d in range(x.ndim) if d not in reduced] if reduced else None)
    if not all(isfinite(float(v)) for v in found.ravel()):
        msg = f"amax={found}"
        raise AssertionError(msg)
    return found


@derives("pytorch-quantization/max_calibrator@modelopt-0.47")
def running_modelopt(batches: tuple[Array, ...], axis: Any = None) -> Array | None:
    """Where no dimension is left to reduce, all are."""
    return _all([_modelopt(x, axis) for x in batches])


@derives("pytorch-quantization/max_calibrator_amaxs@modelopt-0.47")
def tracked_modelopt(batches: tuple[Array, ...], axis: Any = None) -> tuple[Array, ...]:
    """The batches' own."""
    running_modelopt(batches, axis)
    _kinds(batches)
    return tuple(_modelopt(x, axis) for x in batches)
