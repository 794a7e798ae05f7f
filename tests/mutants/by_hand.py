"""The mutants that the suite is tested with: models one field away from a profile, and faults of a harness.

Each is an ordinary backend that claims the profile, computed in NumPy by the evaluation model with one thing changed.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.backends.protocol import Backend
from halfeven.conformance.bits import step
from halfeven.conformance.configuration import code_dtype
from halfeven.reference import Grid
from halfeven.reference.blocks import per_element
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES

Array = npt.NDArray[Any]
Result = Callable[..., Array]

__all__ = ["MUTANTS", "Mutant", "backend"]

_VECTOR = 16


@dataclass(frozen=True)
class Mutant:
    """One change: fields of the model, or hooks around its evaluation.

    Attributes:
        model: fields of the evaluation model to replace.
        grid, scale: what the quantizer takes for the grid and the scales that it is given.
        only: the operations that have the change; empty for all.
        zero: what the quantizer takes for the zero points that it is given.
        blocks: how a parameter reaches the elements, instead of i_d = floor(j_d / B_d).
        result: what the quantizer returns, from its input and its right result.
    """

    model: Mapping[str, str] = field(default_factory=dict)
    grid: Callable[[Grid], Grid] = lambda grid: grid
    scale: Callable[[Array], Array] = lambda scale: scale
    zero: Callable[[Array], Array] = lambda zero: zero
    only: tuple[str, ...] = ()
    blocks: Callable[[Array, tuple[int, ...], Any], Array] = per_element
    result: Callable[[Array, Array], Array] = lambda _x, value: value


def backend(name: str, profile: str, dtypes: tuple[str, ...] = ("float32",)) -> Backend:
    """The mutant ``name`` as a backend that claims ``profile``; ``name`` "none" is the profile itself.

    Raises:
        KeyError: no mutant or profile has this name.
    """
    mutant = Mutant() if name == "none" else MUTANTS[name]
    p = PROFILES[profile]
    operations = {
        o: _operation(p, mutant if not mutant.only or o in mutant.only else Mutant(), o, stale={}) for o in p.operations
    }
    granularities = ("tensor", "channel", "token", "group", "block")
    return Backend(name, profile, operations, granularities, dtypes, array="numpy")  # type: ignore[arg-type]


def _operation(profile: Profile, mutant: Mutant, operation: str, stale: dict[Any, Array]) -> Result:
    changed = dict(mutant.model)
    if "sign" in changed:
        changed["sign"] = "q+o" if profile.model.sign == "q-z" else "q-z"
    computed = replace(profile, model=replace(profile.model, **changed))  # type: ignore[arg-type]

    def parameters(shape: tuple[int, ...], scale: Array, zero: Array | None, blocks: Any) -> list[Array]:
        zeros = np.zeros(scale.shape, np.int32) if zero is None else mutant.zero(zero)
        return [np.broadcast_to(mutant.blocks(a, shape, blocks), shape) for a in (mutant.scale(scale), zeros)]

    def quantize(
        x: Array, scale: Array, zero: Array | None = None, *, qmin: int, qmax: int, block_size: Any = None
    ) -> Array:
        grid = mutant.grid(Grid(qmin, qmax))
        s, z = parameters(x.shape, scale, zero, block_size)
        if operation == "fake_quantize":
            return finish(x, computed.fake_quantize(x, s, z, grid))
        codes = computed.quantize(x, s, z, grid)
        return finish(x, codes if profile.codes == "input" else _integers(codes, code_dtype(Grid(qmin, qmax))))

    def dequantize(
        q: Array,
        scale: Array,
        zero: Array | None = None,
        *,
        qmin: int,
        qmax: int,
        dtype: np.dtype[Any],
        block_size: Any = None,
    ) -> Array:
        s, z = parameters(q.shape, scale, zero, block_size)
        return finish(q, computed.dequantize(q, s, z, Grid(qmin, qmax), dtype))

    def finish(x: Array, value: Array) -> Array:
        if mutant is MUTANTS["stale-output"]:
            return stale.setdefault((value.shape, value.dtype), value)
        return mutant.result(x, np.array(value))

    return dequantize if operation == "dequantize" else quantize


def _integers(codes: Array, dtype: "np.dtype[Any]") -> Array:
    return np.where(np.isfinite(codes), codes, 0).astype(np.int64).astype(dtype)


def _one_ulp_up(scale: Array) -> Array:
    return step(np.asarray(scale), np.asarray(1)).reshape(np.shape(scale))


def _wrong_axis(parameter: Array, shape: tuple[int, ...], blocks: Any) -> Array:
    """The parameters in order along the axis after the one they belong to."""
    if blocks is None or parameter.size < 2 or len(shape) < 2:
        return per_element(parameter, shape, blocks)
    axis = (int(np.argmax(parameter.shape)) + 1) % len(shape)
    index = np.arange(shape[axis]) % parameter.size
    along = [1] * len(shape)
    along[axis] = shape[axis]
    return parameter.ravel()[index].reshape(along)


def _tail(_x: Array, value: Array) -> Array:
    """Full vectors alone are written; the rest is what the memory held: here a page fresh from the system."""
    flat, written = np.zeros(value.size, value.dtype), value.size // _VECTOR * _VECTOR
    flat[:written] = value.ravel()[:written]
    return flat.reshape(value.shape)


def _memory_order(x: Array, value: Array) -> Array:
    """The result in the order of the input's memory, read as if it were contiguous."""
    if x.flags.c_contiguous or not x.flags.f_contiguous:
        return value
    return np.ascontiguousarray(value.T).reshape(value.shape)


def _overwrite(x: Array, value: Array) -> Array:
    if x.size and x.flags.writeable:
        x.flat[0] = x.dtype.type(2)
    return value


def _other_dtype(_x: Array, value: Array) -> Array:
    return value.astype(np.float32 if value.dtype == np.float64 else np.float64)


def _narrow(grid: Grid) -> Grid:
    return Grid(grid.qmin + 1, grid.qmax)


def _flat(_x: Array, value: Array) -> Array:
    return value.reshape(-1, 1)


_FIELDS: dict[str, dict[str, str]] = {
    **{
        r: {"rounding": r}
        for r in ("half-away", "half-up", "half-down", "half-to-zero", "toward-zero", "floor", "ceil")
    },
    "reciprocal": {"division": "reciprocal"},
    "zero-point-before-rounding": {"zero_point": "before-rounding"},
    "zero-point-after-rounding": {"zero_point": "after-rounding"},
    "zero-point-fused": {"zero_point": "fused", "division": "reciprocal"},
    "sign-flipped": {"sign": "flipped"},
    "clamp-before-zero-point": {"clamp": "before-zero-point"},
    "wrap": {"overflow": "wrap"},
    "int32-cast": {"integer": "int32"},
    "int64-cast": {"integer": "int64"},
    "end-past-the-grid": {"ends": "rounded"},
    "float64-arithmetic": {"compute": "float64"},
}

MUTANTS: dict[str, Mutant] = {
    **{name: Mutant(model=change) for name, change in _FIELDS.items()},
    "narrow-range": Mutant(grid=_narrow),
    "scale-one-ulp-off": Mutant(scale=_one_ulp_up),
    "wrong-axis": Mutant(blocks=_wrong_axis),
    "last-partial-block-untouched": Mutant(result=_tail),
    "transposed-layout": Mutant(result=_memory_order),
    "fake-by-reciprocal": Mutant(model={"division": "reciprocal"}, only=("fake_quantize",)),
    "zero-point-dropped-in-dequantize": Mutant(zero=np.zeros_like, only=("dequantize",)),
    "zero-sign-lost": Mutant(result=lambda _x, value: value + np.zeros((), value.dtype)),
    "mutated-input": Mutant(result=_overwrite),
    "wrong-dtype": Mutant(result=_other_dtype),
    "wrong-shape": Mutant(result=_flat),
    "stale-output": Mutant(),
}
