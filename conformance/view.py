"""A function with a document's own arguments, seen as an operation on a grid, for which boundaries can be built."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from halfeven.conformance.arrays import as_it_lies, placed
from halfeven.conformance.backends.protocol import ArrayKind, Unsupported
from halfeven.conformance.configuration import DTYPES, Array, Configuration, Granularity, code_dtype
from halfeven.conformance.quote import NoScript, Spelt, spelt
from halfeven.reference import FORMULAS, Grid
from halfeven.reference.blocks import BlockSize, parameter_shape
from halfeven.reference.catalogue import AffineView
from halfeven.reference.profile import OPERATIONS
from halfeven.reference.systems import PROFILES

__all__ = ["granularities", "offered", "operation", "script"]

_GRID = Grid(-128, 127)
_SHAPE = (4, 6)
#: By x (or q), scale and zero point; what is computed from one in the first is no other one in the second.
_FILLS = ((1, 2, 3), (6, 4, 7))
_BLOCKS: dict[Granularity, BlockSize | None] = {
    "tensor": None,
    "channel": (4, 1),
    "token": (1, 6),
    "group": (1, 3),
    "block": (2, 3),
}


@dataclass(frozen=True)
class operation:  # noqa: N801 - it is called as the function that it stands for
    """``fn`` as the operation of its view: a method as backends have them, for arrays of the kind ``array``.

    It raises Unsupported for what the document has no arguments for.
    """

    fn: Callable[..., Any]
    view: AffineView
    array: ArrayKind

    def __call__(
        self, *arrays: Any, qmin: int, qmax: int, block_size: BlockSize | None = None, dtype: Any = "float32"
    ) -> Any:
        """Hand the arrays over as the document's arguments."""
        x, scale, *zero = map(as_it_lies, arrays)
        reals = DTYPES[str(dtype).removeprefix("torch.")]
        grid = Grid(qmin, qmax)
        try:
            given = self.view.arguments(x, scale, *(zero or [np.zeros_like(scale)]), grid, block_size, reals)
        except ValueError as reason:
            raise Unsupported(str(reason)) from None
        if self.array == "torch":
            given = {name: to_backend(value, arrays[0].device) for name, value in given.items()}
        found = self.view.result(self.fn(**given))
        below_a_byte = isinstance(found, np.ndarray) and found.dtype.name.startswith(("int", "uint"))
        return found.astype(np.int32) if below_a_byte and found.dtype.kind == "V" else found

    def around(self, fn: Callable[..., Any]) -> "operation":
        """The same of another function, such as the compiled one."""
        return replace(self, fn=fn)


def to_backend(value: Any, device: torch.device) -> Any:
    """An argument with torch's tensors for its arrays; on the CPU over the same memory.

    Raises:
        Unsupported: torch has no such tensor.
    """
    if isinstance(value, np.ndarray | np.generic):
        try:
            return placed(np.asarray(value), device)
        except TypeError:  # such as int4
            msg = f"torch has no tensor of {value.dtype}"
            raise Unsupported(msg) from None
    return type(value)(to_backend(v, device) for v in value) if isinstance(value, tuple | list) else value


def granularities(view: AffineView) -> tuple[Granularity, ...]:
    """What may share a scale, as far as the document has arguments for it."""
    return tuple(name for name, block_size in _BLOCKS.items() if _accepts(view, block_size))


def offered(functions: Mapping[str, Callable[..., Any]], profile: str) -> dict[str, Any]:
    """The part of a backend that its functions give: those of them that are operations of ``profile``.

    Args:
        functions: by the formula's id the function that stands for the library's.
        profile: the profile claimed.

    Returns:
        What ``Backend`` takes: operations, granularities, dtypes and path; nothing where no function is one.
    """
    own = {
        view.operation: (view, fn)
        for formula, fn in functions.items()
        if (view := FORMULAS[formula].affine) and view.profile == profile.partition("@")[0]
    }
    if not own:
        return {}
    shared = [granularities(view) for view, _ in own.values()]
    return {
        "operations": {name: operation(own[name][1], own[name][0], "torch") for name in OPERATIONS if name in own},
        "granularities": tuple(g for g in shared[0] if all(g in others for others in shared)),
        "dtypes": PROFILES[profile].dtypes,
        "path": lambda: f"as torch dispatches, {torch.backends.cpu.get_cpu_capability()}",
    }


def _accepts(view: AffineView, block_size: BlockSize | None) -> bool:
    x = np.zeros(_SHAPE, np.int8 if view.operation == "dequantize" else np.float32)
    shape = () if block_size is None else parameter_shape(_SHAPE, block_size)
    try:
        view.arguments(x, np.ones(shape, np.float32), np.zeros(shape, np.int32), _GRID, block_size, x.dtype)
    except ValueError:
        return False
    return True


def script(of: operation, c: Configuration) -> Spelt:
    """How its function is called with the document's arguments on ``x`` (or ``q``), the scale and the zero point."""
    view = of.view
    profile, shape = PROFILES[view.profile], () if c.block_size is None else parameter_shape(c.shape, c.block_size)
    codes = c.operation == "dequantize"
    held = code_dtype(c.grid) if codes and profile.codes == "integer" else DTYPES[c.dtype]
    scale = DTYPES[c.dtype if profile.scale_dtype == "input" else "float32"]
    names = ["q" if codes else "x", *profile.parameters]
    dtypes = (held, scale, np.dtype(np.int32))
    shapes = (c.shape, shape, shape)

    def filled(values: Sequence[int]) -> list[Array]:
        return [np.full(s, v, d) for s, v, d in zip(shapes, values, dtypes, strict=True)]

    def given(arrays: list[Array]) -> Mapping[str, Any]:
        arrays = [*arrays[: len(names)], *(np.zeros(shape, np.int32) for _ in arrays[len(names) :])]
        return view.arguments(*arrays, c.grid, c.block_size, DTYPES[c.dtype])

    try:
        one, other = (given(filled(values)) for values in _FILLS)
    except ValueError as reason:
        raise NoScript(str(reason)) from None
    arrays = dict(zip(names, filled(_FILLS[0]), strict=False))
    python = _TORCH if of.array == "torch" else _NUMPY
    return spelt(of.fn, {key: _spelt(key, (one[key], other[key]), arrays, python) for key in one})


@dataclass(frozen=True)
class _Python:
    """How an array of one kind is made of another, in Python."""

    zeros: str
    repeat: str
    expand: str
    cast: str


_TORCH = _Python(
    "torch.zeros({shape}, dtype=torch.{dtype})",
    "{name}.repeat_interleave({times}, {axis})",
    "{name}.expand({shape})",
    "{name}.to(torch.{dtype})",
)
_NUMPY = _Python(
    "np.zeros({shape}, {dtype})",
    "np.repeat({name}, {times}, {axis})",
    "np.broadcast_to({name}, {shape})",
    "{name}.astype({dtype})",
)


def _spelt(key: str, given: tuple[Any, Any], arrays: Mapping[str, Array], python: _Python) -> str:
    """Python for an argument: a constant, or the array it is, in another shape or dtype perhaps.

    ``given`` is the argument with the arrays filled in one way, and in another.
    """
    value, other = given
    if isinstance(value, tuple | list):
        inside = ", ".join(_spelt(key, both, arrays, python) for both in zip(value, other, strict=True))
        return f"[{inside}]" if isinstance(value, list) else f"({inside}{',' * (len(value) == 1)})"
    if not isinstance(value, int | float | np.ndarray | np.generic):
        return repr(value)
    first, second = (np.unique(np.asarray(v, np.float64)).tolist() for v in given)
    if first == second and isinstance(value, np.ndarray) and not any(first):  # a zero point that the document has not
        return python.zeros.format(shape=value.shape, dtype=_dtype(value, python))
    if first == second and not isinstance(value, np.ndarray):
        return repr(value)
    fills = zip(arrays, zip(*_FILLS, strict=True), strict=False)
    found = next((name for name, fill in fills if (first, second) == ([fill[0]], [fill[1]])), None)
    if found is None:
        msg = f"{key} is none of the arrays {', '.join(arrays)}"
        raise NoScript(msg)
    if not isinstance(value, np.ndarray | np.generic):
        return f"{found}.item()"
    name = _reshaped(found, value, arrays[found], python)
    return name if value.dtype == arrays[found].dtype else python.cast.format(name=name, dtype=_dtype(value, python))


def _reshaped(name: str, value: Any, array: Array, python: _Python) -> str:
    """Python that gives ``array``, called ``name``, the shape of ``value``."""
    if value.ndim == array.ndim and value.size != array.size:  # each element has its block's
        times = [n // max(p, 1) for n, p in zip(value.shape, array.shape, strict=True)]
        for axis, t in enumerate(times):
            name = python.repeat.format(name=name, times=t, axis=axis) if t > 1 else name
        return name
    if value.size != array.size:
        return python.expand.format(name=name, shape=value.shape)
    return name if value.shape == array.shape else f"{name}.reshape({value.shape})"


def _dtype(value: Any, python: _Python) -> str:
    name: str = value.dtype.name
    return name if python is _TORCH else f"{'np' if hasattr(np, name) else 'ml_dtypes'}.{name}"
