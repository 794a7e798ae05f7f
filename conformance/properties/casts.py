"""The roles of further formulas that round, or limit, with no scale of their own: formats, whole numbers, ranges."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from halfeven.conformance.properties.elements import of_code, of_projected
from halfeven.conformance.properties.role import Kind, Path, Role, Seen, picked, place
from halfeven.conformance.requirement import Arguments
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode, format_of
from halfeven.reference.systems.p3109 import STOCHASTIC, Format

__all__ = ["CASTS"]

_WHOLE = np.dtype(np.uint8)  # as whole numbers codes are in no unit
_ONE_SIDED = {"TowardPositive", "TowardNegative"}


def _rounding(
    kind: Kind,
    data: str,
    see: Callable[[Arguments], Seen],
    decoded: Callable[[Arguments, Array], Array] | None = None,
    element: Callable[[Arguments, str], str] | None = None,
    *,
    path: Path = (),
    reals: tuple[str, ...] = (),
    traits: tuple[str, ...] = (),
) -> Role:
    """A formula that rounds its data, or limits them.

    Args:
        kind: what it does.
        data: the argument that holds them.
        see: the call.
        decoded: the reals of its codes, where it gives codes.
        element: one of them as Python over that of the code.
        path: where in the result they are.
        reals: the arguments in the unit of the data.
        traits: what else a property may need.
    """

    def read(a: Arguments, value: Any) -> Mapping[str, Array]:
        found = picked(value, path)
        return {"reals": found if decoded is None else decoded(a, found)}

    def shown(a: Arguments, value: Any, _: str, i: int) -> str:
        return place(value, path, i) if element is None else element(a, place(value, path, i))

    return Role(kind, see, read, shown, reals, data, frozenset(traits + (("reals",) if reals else ())))


def _held(x: Array, given: Array, inside: Array | bool, **more: Any) -> Seen:
    """Data of which only those ``inside`` have a place in what they are rounded to; the others are no numbers to it."""
    return Seen(np.where(inside, x, np.nan), given.dtype, **more)


def _format(a: Arguments) -> Format:
    return Format(a["width"], a["precision"], a.get("signed", True), a.get("extended", True))


def _projected(a: Arguments) -> Seen:
    rounding = a.get("rounding", "NearestTiesToEven")
    if rounding in STOCHASTIC:
        msg = "what it rounds to is drawn"
        raise ValueError(msg)
    f, x = _format(a), np.asarray(a["x"])
    last = float(f.numbers(np.asarray(f.last)))
    real = x.astype(np.float64)
    return _held(real, x, f.signed | (real >= 0), odd=f.signed and rounding not in _ONE_SIDED, most=min(1.0, last))


def _numbers(a: Arguments, codes: Array) -> Array:
    f = _format(a)
    found: Array = FORMULAS["p3109/Decode"].function(codes, f.width, f.precision, signed=f.signed, extended=f.extended)
    return found


def _converted(a: Arguments) -> Seen:
    target = format_of(a["target"])
    if target.specials == "e8m0":
        msg = "it has neither a zero nor a sign"
        raise ValueError(msg)
    return Seen(decode(np.asarray(a["codes"]), a["source"], "float64"), _WHOLE, most=min(1.0, target.max))


def _cut(a: Arguments) -> Seen:
    x, bits = np.asarray(a["x"]), int(a["dtype"].removeprefix("u").removeprefix("int"))
    real, end = x.astype(np.float64), 2.0 ** (bits if a["dtype"].startswith("u") else bits - 1)
    least = -1.0 if a["dtype"].startswith("u") else -end
    return _held(real, x, (real > least) & (real < end), odd=not a["dtype"].startswith("u"))


def _repr(a: Arguments) -> Seen:
    x = np.asarray(a["tensor"])
    real = x.astype(np.float64)
    return _held(real, x, (real >= a["qmin"]) & (real <= a["qmax"]))


def _power(a: Arguments) -> Seen:
    x = np.asarray(a["x"])
    with np.errstate(invalid="ignore"):
        tiny = np.abs(x.astype(np.float64)) < float(np.finfo(np.float16 if x.dtype == np.float16 else np.float32).tiny)
    return _held(x.astype(np.float64), x, ~tiny | (x == 0), odd=True)


def _clipped(a: Arguments) -> Seen:
    x = np.asarray(a["inputs"])
    low, high = np.asarray(a["clip_value_min"]).astype(np.float64), np.asarray(a["clip_value_max"]).astype(np.float64)
    if low.size > 1 or high.size > 1 or not (np.isfinite(low) & np.isfinite(high) & (low <= high)):
        msg = "there is not one range"
        raise ValueError(msg)
    inside, odd = bool(low <= 0) and bool(high >= 0), bool(low == -high)
    return Seen(x.astype(np.float64), x.dtype, odd=odd, has_zero=inside)


CASTS: dict[str, Role] = {
    "aimet/quantized_repr": _rounding("cast", "tensor", _repr, path=(1,)),
    "compressed-tensors/round_to_power_2": _rounding(
        "fake_quantize", "x", _power, reals=("x",), traits=("odd", "kept")
    ),
    "number-formats/convert": _rounding(
        "cast",
        "codes",
        _converted,
        lambda a, codes: decode(codes, a["target"], "float64"),
        lambda a, code: of_code(format_of(a["target"]), code),
    ),
    "number-formats/to_integer": _rounding("cast", "x", _cut, traits=("odd", "kept")),
    "p3109/Project": _rounding(
        "cast", "x", _projected, _numbers, lambda a, code: of_projected(_format(a), code), traits=("odd", "kept")
    ),
    "pytorch-quantization/clip": _rounding(
        "fake_quantize",
        "inputs",
        _clipped,
        reals=("inputs", "clip_value_min", "clip_value_max"),
        traits=("odd", "kept"),
    ),
}
