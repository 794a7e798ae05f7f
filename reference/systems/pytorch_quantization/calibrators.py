"""pytorch-quantization: ``MaxCalibrator``, as a function of all the batches that it collects."""

from collections.abc import Sequence
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import Real, formula

__all__ = ["MAX", "MaxCalibrator", "max_calibrator", "max_calibrator_amaxs", "reduce_amax"]


@dataclass(frozen=True)
class MaxCalibrator(Behaviour):
    """The choices in finding the largest magnitude."""

    magnitude: str = choice({
        "absolute": "takes the largest magnitude",
        "signed": "takes the largest value, ignoring the size of negative ones",
    })  # fmt: skip
    axis: str = choice({
        "refused": "refuses an axis outside the rank",
        "left-out": "leaves out an axis outside the rank",
        "from-start": "leaves out a negative axis and one outside the rank",
    })  # fmt: skip
    every_axis: str = choice({
        "each": "gives each element an amax where every axis is named",
        "one": "gives all elements one amax where every axis is named",
    })  # fmt: skip
    finite: str = choice({"any": "takes NaN and infinities", "required": "refuses NaN and infinities"})


@dataclass(frozen=True)
class MaxCalibratorAmaxs(MaxCalibrator):
    """The choices, those in keeping the amax of each batch too."""

    first: str = choice({
        "own": "keeps the first amax as it was",
        "running": "changes the first amax with the running maximum",
    })  # fmt: skip
    bfloat16: str = choice({"taken": "takes bfloat16 batches", "refused": "refuses bfloat16 batches"})


MAX = MaxCalibrator()

Axis = int | Sequence[int] | None
_CPU = "pytorch-quantization 2.1.3 on a CPU: measured"
_MODELOPT = {"axis": "left-out", "every_axis": "one", "finite": "required"}
_EQUATION = r"\mathrm{amax}_c = \max_{t} \max_{i \in c} |x^{(t)}_i|"


def reduce_amax(x: Array, axis: Axis, name: str = "batches", b: MaxCalibrator = MAX) -> Array:
    """The largest magnitude per entry along ``axis``, other dimensions of size 1; 0-d where it is one number.

    ``name`` is what errors call ``x``.

    Raises:
        ValueError: an entry of ``axis`` is outside [-rank, rank) (the document).
        RuntimeError: ``x`` is empty.
    """
    if x.size == 0:
        msg = f"{name} of shape {x.shape} is not accepted: an empty one has no maximum"
        raise RuntimeError(msg)
    named = () if axis is None else tuple(axis) if isinstance(axis, Sequence) else (axis,)
    least = 0 if b.axis == "from-start" else -x.ndim
    known = {a % x.ndim for a in named if least <= a < x.ndim}
    if b.axis == "refused" and not all(-x.ndim <= a < x.ndim for a in named):
        msg = f"axis={axis} is not accepted for {name} of rank {x.ndim}: give one in [{-x.ndim}, {x.ndim})"
        raise ValueError(msg)
    if b.every_axis == "one" and len(known) == x.ndim:
        known = set()
    others = tuple(d for d in range(x.ndim) if d not in known)
    amax: Array = np.max(np.abs(x) if b.magnitude == "absolute" else x, axis=others, keepdims=True)
    return amax.reshape(()) if amax.size == 1 else amax


@formula(
    "pytorch-quantization/max_calibrator",
    equation=_EQUATION,
    basis=Real(),
    source="ScaledQuantDescriptor: calib_method, axis; pytorch_quantization.calib.MaxCalibrator: measured",
    behaviour=MAX,
    versions={
        "2.1.3": (MaxCalibrator(axis="from-start"), _CPU),
        "modelopt-0.47": (MaxCalibrator(**_MODELOPT), "nvidia-modelopt 0.47, MaxCalibrator: measured"),
    },
)
def max_calibrator(b: MaxCalibrator, batches: Sequence[Array], axis: Axis = None) -> Array | None:
    """The amax of all ``batches``, in their dtype; NaN stays; None of no batch.

    Args:
        batches: float arrays, in reals.
        axis: the dimension or dimensions whose indices have an amax each; None is one amax for all.

    Returns:
        The other dimensions have size 1; 0-d where it is one number.

    Raises:
        ValueError: an entry of ``axis`` is outside [-rank, rank) (the document).
        AssertionError: NaN or an infinity (modelopt 0.47).
        RuntimeError: a batch is empty, or its amax has another shape than the first one's.
    """
    found: Array | None = None
    for x in batches:
        amax = reduce_amax(x, axis, b=b)
        if b.finite == "required" and not np.isfinite(amax).all():
            msg = f"batches with the amax {amax} is not accepted: give finite values"
            raise AssertionError(msg)
        if found is not None and amax.shape != found.shape:
            msg = f"batches with amax of shape {found.shape}, then {amax.shape} is not accepted: give one shape"
            raise RuntimeError(msg)
        found = amax if found is None else np.asarray(np.maximum(found, amax))
    return found


@formula(
    "pytorch-quantization/max_calibrator_amaxs",
    equation=r"\mathrm{amax}^{(t)}_c = \max_{i \in c} |x^{(t)}_i|",
    basis=Real(),
    source="pytorch_quantization.calib.MaxCalibrator, track_amax: measured",
    behaviour=MaxCalibratorAmaxs(),
    versions={
        "2.1.3": (MaxCalibratorAmaxs(axis="from-start", first="running", bfloat16="refused"), _CPU),
        "2.2.1": (
            MaxCalibratorAmaxs(first="running", bfloat16="refused"),
            "pytorch-quantization 2.2.1 on a CPU: measured",
        ),
        "modelopt-0.47": (
            MaxCalibratorAmaxs(**_MODELOPT, bfloat16="refused"),
            "nvidia-modelopt 0.47, MaxCalibrator, track_amax: measured",
        ),
    },
)
def max_calibrator_amaxs(b: MaxCalibratorAmaxs, batches: Sequence[Array], axis: Axis = None) -> tuple[Array, ...]:
    """The amax of each batch; arguments and errors as in ``max_calibrator``.

    Where the first amax shares the memory of the running maximum it is that of all batches.
    """
    amax = max_calibrator(b, batches, axis)
    if b.bfloat16 == "refused" and any(x.dtype == ml_dtypes.bfloat16 for x in batches):
        msg = "batches of dtype bfloat16 is not accepted: give float32, float16 or float64"
        raise TypeError(msg)
    amaxs = tuple(reduce_amax(x, axis, b=b) for x in batches)
    return (amax, *amaxs[1:]) if amax is not None and b.first == "running" else amaxs
