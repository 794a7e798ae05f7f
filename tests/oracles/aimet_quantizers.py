"""AIMET's quantizers as a user meets them, number by number."""

from math import isnan
from typing import Any

import numpy as np
import numpy.typing as npt

from oracles.aimet_affine import dequantize, quantize, quantize_dequantize
from oracles.aimet_encodings import between, scale_and_offset
from oracles.exact import FORMATS
from oracles.registry import derives
from oracles.soft import array, form, soft, softs

Array = npt.NDArray[Any]

__all__: list[str] = []


@derives("aimet/forward")
def forward(
    tensor: Array,
    min: Array,  # noqa: A002
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    mode: str = "trained",
) -> dict[str, Array]:
    """The three results are one map of the tensor, in every mode."""
    if mode not in {"trained", "frozen", "no-grad", "inference"}:
        raise ValueError(mode)
    scale, offset = scale_and_offset(min, max, qmin, qmax, symmetric)
    grid = {"qmin": qmin, "qmax": qmax}
    once, again = (quantize_dequantize(tensor, scale, offset, **grid) for _ in range(2))
    return {"codes": quantize(tensor, scale, offset, **grid), "values": once, "values of the codes": again}


@derives("aimet/forward@2.42")
def forward_2_42(
    tensor: Array,
    min: Array,  # noqa: A002
    max: Array,  # noqa: A002
    qmin: int,
    qmax: int,
    symmetric: bool,
    mode: str = "trained",
) -> dict[str, Array]:
    """Where not trained, each element times the reciprocal in float32, in float64 if it is; the reals in float32."""
    scale, offset = scale_and_offset(min, max, qmin, qmax, symmetric)
    found = forward(tensor, min, max, qmin, qmax, symmetric, mode)
    own = form(tensor.dtype)
    s_own, o_own = (array((v.to(own) for v in softs(p)), p.shape, tensor.dtype) for p in (scale, offset))
    found["values of the codes"] = dequantize(found["codes"], s_own, o_own)
    if mode == "trained":
        return found
    single, values = FORMATS["float32"], []
    wide = FORMATS["float64"] if tensor.dtype == np.float64 else single
    lowest, highest = soft(float(qmin), "float32"), soft(float(qmax), "float32")
    spread = (np.broadcast_to(p, tensor.shape) for p in (scale, offset))
    for x, s, o in zip(softs(tensor), *map(softs, spread), strict=True):
        code = (x.to(wide) * (soft(1.0, "float32") / s).to(wide)).rint().to(single) - o
        held = lowest if isnan(code.value) else between(code, lowest, highest)
        values.append(((held + o) * s).to(own))
    found["values"] = array(values, tensor.shape, tensor.dtype)
    return found


@derives("aimet/load_state")
def load_state(**given: Any) -> dict[str, Any]:
    """All that was given comes back, save how often."""
    kept = {"block_size": None, "zero_point_shift": 0.0, **given, "state unchanged": True}
    kept.pop("quantizers", None)
    order = ("min", "max", "qmin", "qmax", "symmetric", "block_size", "zero_point_shift", "state unchanged")
    return {name: kept[name] for name in order}


@derives("aimet/load_state@2.42")
def load_state_2_42(**given: Any) -> dict[str, Any]:
    """A second quantizer finds two entries left, and is else one of 8 asymmetric bits."""
    found = load_state(**given)
    if given.get("quantizers", 1) > 1:
        found |= {"qmin": 0, "qmax": 2**8 - 1, "symmetric": False, "block_size": None, "zero_point_shift": 0.0}
    return found | {"state unchanged": False}


@derives("aimet/from_encodings")
def from_encodings(scale: Array, offset: Array, **given: Any) -> dict[str, Any]:
    """Number by number the same."""
    same = {"scale": softs(scale), "offset": softs(offset)}
    arrays = {name: array(values, scale.shape, "float32") for name, values in same.items()}
    return {**arrays, "zero_point_shift": given.get("zero_point_shift", 0.0)}


@derives("aimet/from_encodings@2.42")
def from_encodings_2_42(scale: Array, offset: Array, qmin: int, qmax: int, symmetric: bool, **_: Any) -> dict[str, Any]:
    """The range of the encoding, and what follows from it."""
    low, high = encoding_range(scale, offset, qmin, qmax)
    s, o = scale_and_offset(low, high, qmin, qmax, symmetric)
    return {"scale": s, "offset": o, "zero_point_shift": 0.0}


@derives("aimet/encoding_range")
def encoding_range(
    scale: Array, offset: Array, qmin: int, qmax: int, zero_point_shift: float = 0.0
) -> tuple[Array, Array]:
    """The places of both ends, and what is there."""
    ends = []
    for code in (qmin, qmax):
        places = [o + soft(float(code), "float32") + soft(zero_point_shift, "float32") for o in softs(offset)]
        reals = [place * s for place, s in zip(places, softs(scale), strict=True)]
        ends.append(array(reals, scale.shape, "float32"))
    return ends[0], ends[1]


@derives("aimet/encoding_range@2.42")
def encoding_range_2_42(
    scale: Array, offset: Array, qmin: int, qmax: int, zero_point_shift: float = 0.0
) -> tuple[Array, Array]:
    """As if there were no shift."""
    return encoding_range(scale, offset, qmin, qmax, 0 * zero_point_shift)
