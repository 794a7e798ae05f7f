"""The roles of graphs: what one operator limits or rounds, the next one does not take back."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from halfeven.conformance.properties.affine import at, dtype_ends
from halfeven.conformance.properties.role import Role, Seen
from halfeven.conformance.requirement import Arguments
from halfeven.reference.blocks import Array

__all__ = ["GRAPHS"]

_MONOTONE = {"Identity", "Relu", "Clip"}  # nodes of one input, element by element, that keep order and zero
_PAIRS: dict[str, Callable[[Array, Array], Array]] = {"Add": np.add, "Mul": np.multiply}


def _reals(a: Arguments, name: str) -> Array:
    """The reals of codes, as float32 holds them; of those beyond it no property speaks."""
    codes, zero = np.asarray(a[name]).astype(np.float64), float(a[f"{name}_zero_point"])
    found = ((codes - zero) * _scale(a, name)).astype(np.float32).astype(np.float64)
    reals: Array = np.where(np.isfinite(found), found, np.nan)
    return reals


def _scale(a: Arguments, name: str) -> float:
    """A scale that is one.

    Raises:
        ValueError: it is none.
    """
    scale = float(a[f"{name}_scale"])
    if not np.finfo(np.float32).tiny <= scale < np.inf:
        msg = "a scale is none"
        raise ValueError(msg)
    return scale


def _onto_codes(data: str, exact: Callable[[Arguments], Array]) -> Role:
    """Codes of what ``exact`` gives of the reals of codes, before that is rounded."""

    def see(a: Arguments) -> Seen:
        x, zero = exact(a), np.asarray(a["y_zero_point"])
        low, high = dtype_ends(zero.dtype.name) or (None, None)
        grid = (np.full(x.shape, _scale(a, "y")), np.full(x.shape, float(zero)))
        return Seen(x, np.asarray(a[data]).dtype, *grid, low, high)

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        return {"codes": np.asarray(value)}

    return Role("quantize", see, read, at(()), (), data, frozenset({"grid"}))


def _one(a: Arguments) -> Array:
    if a["node"] not in _MONOTONE:
        msg = "it moves elements"
        raise ValueError(msg)
    return _reals(a, "x")


def _two(a: Arguments) -> Array:
    return _PAIRS[a["node"]](_reals(a, "a"), _reals(a, "b"))


def _twice() -> Role:
    """Two grids, one after the other."""

    def see(a: Arguments) -> Seen:
        x, scale = np.asarray(a["x"]), max(_scale(a, "x"), _scale(a, "y"))
        return Seen(x.astype(np.float64), x.dtype, np.full(x.shape, scale))

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        return {"reals": np.asarray(value)}

    return Role("fake_quantize", see, read, at(()), ("x", "x_scale", "y_scale"), "x", frozenset({"reals"}))


GRAPHS: dict[str, Role] = {
    "onnx/qdq-one-input": _onto_codes("x", _one),
    "onnx/qdq-two-inputs": _onto_codes("a", _two),
    "onnx/qdq-twice": _twice(),
}
