"""pytorch-quantization: ``MaxCalibrator``, as a function of all the batches that it collects."""

from collections.abc import Sequence

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import Real, formula
from halfeven.reference.profiles.profile import Array

__all__ = [
    "max_calibrator",
    "max_calibrator_amaxs",
    "max_calibrator_amaxs_2_2_1",
    "max_calibrator_amaxs_modelopt_0_47",
    "max_calibrator_modelopt_0_47",
    "reduce_amax",
]

Axis = int | Sequence[int] | None
_EQUATION = r"\mathrm{amax}_c = \max_{t} \max_{i \in c} |x^{(t)}_i|"


def reduce_amax(x: Array, axis: Axis, name: str = "batches") -> Array:
    """The largest magnitude per entry along ``axis``, other dimensions of size 1; 0-d where it is one number.

    ``name`` is what errors call ``x``.

    Raises:
        ValueError: an entry of ``axis`` is outside [-rank, rank).
        RuntimeError: ``x`` is empty.
    """
    if x.size == 0:
        msg = f"{name} of shape {x.shape} is not accepted: an empty one has no maximum"
        raise RuntimeError(msg)
    kept = () if axis is None else tuple(axis) if isinstance(axis, Sequence) else (axis,)
    for a in kept:
        if not -x.ndim <= a < x.ndim:
            msg = f"axis={axis} is not accepted for {name} of rank {x.ndim}: give one in [{-x.ndim}, {x.ndim})"
            raise ValueError(msg)
    others = tuple(d for d in range(x.ndim) if d not in kept and d - x.ndim not in kept)
    amax: Array = np.max(np.abs(x), axis=others, keepdims=True)
    return amax.reshape(()) if amax.size == 1 else amax


@formula(
    "pytorch_quantization.max_calibrator",
    equation=_EQUATION,
    basis=Real(),
    source="ScaledQuantDescriptor: calib_method, axis; pytorch_quantization.calib.MaxCalibrator: measured",
)
def max_calibrator(batches: Sequence[Array], axis: Axis = None) -> Array | None:
    """The amax of all ``batches``, in their dtype; NaN stays; None of no batch.

    Args:
        batches: float arrays, in reals.
        axis: the dimension or dimensions whose indices have an amax each; None is one amax for all.

    Returns:
        The other dimensions have size 1; 0-d where it is one number.

    Raises:
        ValueError: an entry of ``axis`` is outside [-rank, rank).
        RuntimeError: a batch is empty, or its amax has another shape than the first one's.
    """
    found: Array | None = None
    for x in batches:
        amax = reduce_amax(x, axis)
        if found is not None and amax.shape != found.shape:
            msg = f"batches with amax of shape {found.shape}, then {amax.shape} is not accepted: give one shape"
            raise RuntimeError(msg)
        found = amax if found is None else np.asarray(np.maximum(found, amax))
    return found


@formula(
    "pytorch_quantization.max_calibrator_amaxs",
    equation=r"\mathrm{amax}^{(t)}_c = \max_{i \in c} |x^{(t)}_i|",
    basis=Real(),
    source="pytorch_quantization.calib.MaxCalibrator, track_amax: measured",
)
def max_calibrator_amaxs(batches: Sequence[Array], axis: Axis = None) -> tuple[Array, ...]:
    """The amax of each batch; arguments and errors as in ``max_calibrator``."""
    max_calibrator(batches, axis)
    return tuple(reduce_amax(x, axis) for x in batches)


@formula(
    "pytorch_quantization.max_calibrator_amaxs@2.2.1",
    equation=r"\mathrm{amax}^{(1)} = \mathrm{amax}",
    basis=Real(),
    source="pytorch-quantization 2.2.1 on a CPU: measured",
)
def max_calibrator_amaxs_2_2_1(batches: Sequence[Array], axis: Axis = None) -> tuple[Array | None, ...]:
    """The first amax changes with the running maximum, whose memory it shares; bfloat16 batches are refused."""
    _check_dtype(batches)
    return (max_calibrator(batches, axis), *max_calibrator_amaxs(batches, axis)[1:])


@formula(
    "pytorch_quantization.max_calibrator@modelopt-0.47",
    equation=_EQUATION,
    basis=Real(),
    source="nvidia-modelopt 0.47, MaxCalibrator: measured",
)
def max_calibrator_modelopt_0_47(batches: Sequence[Array], axis: Axis = None) -> Array | None:
    """NaN and infinities are refused; an axis outside the rank is left out; all axes named are as none."""
    found: Array | None = None
    for x in batches:
        kept = () if axis is None else tuple(axis) if isinstance(axis, Sequence) else (axis,)
        known = tuple(sorted({a % x.ndim for a in kept if -x.ndim <= a < x.ndim}))
        amax = reduce_amax(x, known if len(known) < x.ndim else ())
        if not np.isfinite(amax).all():
            msg = f"batches with the amax {amax} is not accepted: give finite values"
            raise AssertionError(msg)
        if found is not None and amax.shape != found.shape:
            msg = f"batches with amax of shape {found.shape}, then {amax.shape} is not accepted: give one shape"
            raise RuntimeError(msg)
        found = amax if found is None else np.asarray(np.maximum(found, amax))
    return found


@formula(
    "pytorch_quantization.max_calibrator_amaxs@modelopt-0.47",
    equation=r"\mathrm{amax}^{(t)}_c = \max_{i \in c} |x^{(t)}_i|",
    basis=Real(),
    source="nvidia-modelopt 0.47, MaxCalibrator, track_amax: measured",
)
def max_calibrator_amaxs_modelopt_0_47(batches: Sequence[Array], axis: Axis = None) -> tuple[Array | None, ...]:
    """NaN, infinities and bfloat16 are refused; an axis outside the rank is left out; all axes named are as none."""
    max_calibrator_modelopt_0_47(batches, axis)
    _check_dtype(batches)
    return tuple(max_calibrator_modelopt_0_47((x,), axis) for x in batches)


def _check_dtype(batches: Sequence[Array]) -> None:
    if any(x.dtype == ml_dtypes.bfloat16 for x in batches):
        msg = "batches of dtype bfloat16 is not accepted: give float32, float16 or float64"
        raise TypeError(msg)
