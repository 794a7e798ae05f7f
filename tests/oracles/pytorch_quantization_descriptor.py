"""The descriptor as a plain dict: which values it takes, what is left of them, and the way through its two texts.

A round trip is the identity, so its derivation makes none; only the losses of a version are taken away.
"""

import json
from math import isnan
from operator import mul
from typing import Any

import numpy as np

from oracles.pytorch_quantization_calibrators import running
from oracles.pytorch_quantization_e4m3 import scaled_strict
from oracles.pytorch_quantization_tensor_quant import (
    fake_tensor_quant,
    held,
    operate,
    pack,
    tensor_quant,
)
from oracles.registry import derives
from oracles.soft import Array, soft

__all__ = ["accepted", "properties"]

KEYS = (
    ("num_bits", 8),
    ("name", None),
    ("fake_quant", True),
    ("axis", None),
    ("amax", None),
    ("learn_amax", False),
    ("scale_amax", None),
    ("calib_method", "max"),
    ("unsigned", False),
    ("narrow_range", False),
)
BOOLEANS = {"fake_quant", "learn_amax", "unsigned", "narrow_range"}


def _single(value: Any) -> Any:
    """Every number of a nested list rounded to float32."""
    if isinstance(value, list | tuple):
        return tuple(map(_single, value))
    return soft(float(value), "float32").value


def _flat(value: Any) -> list[float]:
    return [v for part in value for v in _flat(part)] if isinstance(value, tuple) else [value]


def _type_fits(key: str, value: Any) -> bool:  # noqa: PLR0911 - one for each kind of field
    if key in BOOLEANS:
        return value is True or value is False
    if value is None:
        return key in {"name", "axis", "amax", "scale_amax"}
    match key:
        case "num_bits":
            return isinstance(value, int) or (isinstance(value, tuple) and list(value) == [4, 3])
        case "name" | "calib_method":
            return isinstance(value, str)
        case "axis":
            return all(isinstance(a, int) for a in value) if isinstance(value, tuple) else isinstance(value, int)
        case "amax":
            return type(value) in {float, list, np.ndarray} or isinstance(value, np.float64)
        case _:
            return isinstance(value, float)


def accepted(given: dict[str, Any], loose: bool = False) -> dict[str, Any]:
    """All ten values, amax as nested tuples of float32 values; the errors of a strict or a loose look."""
    names = [k for k, _ in KEYS]
    looked_at = {"num_bits", "name", "amax"} if loose else set(names)
    if any(k not in names or (k in looked_at and not _type_fits(k, v)) for k, v in given.items()):
        msg = f"{given}"
        raise TypeError(msg)
    full = {k: given.get(k, default) for k, default in KEYS}
    if full["learn_amax"] and full["axis"] is not None:
        msg = f"axis={full['axis']}"
        raise TypeError(msg)
    if isinstance(full["num_bits"], int) and full["num_bits"] < (0 if loose else 1):
        msg = f"num_bits={full['num_bits']}"
        raise ValueError(msg)
    if full["amax"] is not None:
        full["amax"] = _single(full["amax"].tolist() if isinstance(full["amax"], np.ndarray) else full["amax"])
    bad_amax = full["amax"] is not None and any(isnan(a) or a < 0 for a in _flat(full["amax"]))
    if not loose and (bad_amax or full["calib_method"] not in {"max", "histogram"}):
        msg = f"amax={full['amax']}, calib_method={full['calib_method']!r}"
        raise ValueError(msg)
    return full


def _shape(value: Any) -> tuple[int, ...]:
    return (len(value), *_shape(value[0])) if isinstance(value, tuple) and value else (0,) * isinstance(value, tuple)


def properties(full: dict[str, Any]) -> dict[str, Any]:
    """The same with amax as an array."""
    amax = full["amax"]
    return {**full, "amax": None if amax is None else pack(_flat(amax), _shape(amax), "float32")}


@derives("pytorch-quantization/descriptor")
def descriptor(**kwargs: Any) -> dict[str, Any]:
    """As given, or its default."""
    return properties(accepted(kwargs))


derives("pytorch-quantization/descriptor_round_trip", "pytorch-quantization/descriptor_yaml_round_trip")(descriptor)


@derives("pytorch-quantization/descriptor_round_trip@2.2.1")
def round_trip_2_2_1(**kwargs: Any) -> dict[str, Any]:
    """As given, but for two."""
    return {**properties(accepted(kwargs)), "calib_method": "max", "narrow_range": False}


@derives("pytorch-quantization/descriptor@2.2.1")
def descriptor_2_2_1(**kwargs: Any) -> dict[str, Any]:
    """The loose look."""
    return properties(accepted(kwargs, loose=True))


@derives("pytorch-quantization/descriptor_assign")
def assign(attribute: str, value: Any) -> None:
    """Each of the ten is read-only."""
    if attribute in dict(KEYS):
        msg = f"{attribute}={value!r}"
        raise AttributeError(msg)


@derives("pytorch-quantization/descriptor_dict")
def as_dict(**kwargs: Any) -> dict[str, Any]:
    """The ten without those at their default."""
    full = accepted(kwargs)
    return {k: full[k] for k, default in KEYS if full[k] != default}


@derives("pytorch-quantization/descriptor_dict@2.2.1")
def as_dict_2_2_1(**kwargs: Any) -> dict[str, Any]:
    """The first two always, two others never."""
    full = accepted(kwargs)
    always, never = ("num_bits", "name"), ("calib_method", "narrow_range")
    return {k: full[k] for k, default in KEYS if k in always or (full[k] != default and k not in never)}


@derives("pytorch-quantization/descriptor_from_yaml")
def from_yaml(yaml_str: str) -> dict[str, Any]:
    """A key up to its first colon, a JSON value after it."""
    given = {}
    for line in yaml_str.split("\n"):
        if line:
            at = line.index(":")
            value = json.loads(line[at + 1 :])
            listed = isinstance(value, list) and line[:at] != "amax"
            given[line[:at]] = tuple(value) if listed else value
    return properties(accepted(given))


@derives("pytorch-quantization/described_amax")
def described_amax(inputs: Array, **kwargs: Any) -> Array:
    """The descriptor's entries, a one, or the magnitudes of the inputs; then the factor."""
    full = accepted(kwargs)
    if full["amax"] is not None:
        amax: Any = properties(full)["amax"]
    elif full["learn_amax"]:
        amax = pack([1.0], (), "float32")
    else:
        amax = running((inputs,), full["axis"])
    if full["scale_amax"] is None:
        return np.asarray(amax)
    factor = soft(full["scale_amax"], "float32").value
    return pack([operate(mul, a, factor, "float32") for a in held(amax)], amax.shape, "float32")


@derives("pytorch-quantization/described_amax@2.2.1")
def described_amax_2_2_1(inputs: Array, **kwargs: Any) -> Array:
    """The axes that are dimensions by number; no factor where amax is learnt."""
    axis = kwargs.get("axis")
    named = list(axis) if isinstance(axis, tuple) else [axis]
    kept = tuple(d for d in range(inputs.ndim) if d in named)
    changed = {**kwargs, "axis": kept or None}
    if kwargs.get("learn_amax"):
        changed.pop("scale_amax", None)
    return described_amax(inputs, **changed)


@derives("pytorch-quantization/described")
def described(inputs: Array, **kwargs: Any) -> Any:
    """By width and mode, one of three."""
    full = accepted(kwargs)
    amax = described_amax(inputs, **kwargs)
    if isinstance(full["num_bits"], tuple):
        return scaled_strict(inputs, amax)
    if not full["fake_quant"]:
        return tensor_quant(inputs, amax, full["num_bits"], full["unsigned"])
    return fake_tensor_quant(inputs, amax, full["num_bits"], full["unsigned"], full["narrow_range"])
