"""The formulas of a kind as functions of the data alone: each with all settings that its requirements call it with.

So an implementation of which nothing is claimed can be held against all of them: casts, scales, block scales.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.engine.call import leaves
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.properties import ROLES
from halfeven.conformance.properties.role import fitting
from halfeven.conformance.requirement import Arguments
from halfeven.conformance.systems import call_sets
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["Candidate", "candidates", "matches", "numbers_of", "same"]

_ROLES = {"cast": "cast", "scale": "choose", "block scale": "blocks"}
#: Formulas without a role, or with another: of which argument the data are.
_MORE: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "cast": {
        "aimet/float_cast": ("tensor",),
        "compressed-tensors/cast_to_fp4": ("x",),
        "compressed-tensors/round_to_power_2": ("x",),
    },
    "scale": {},
    "block scale": {
        "compressed-tensors/generate_mx_scales": ("x",),
        "torchao/choose_qparams_affine": ("input",),
        "torchao/choose_scale_float8": ("tensor",),
    },
}
#: Of formulas that are given the largest magnitudes, not the data.
_OF_AMAX = frozenset(
    {
        "aimet/float_scale",
        "compressed-tensors/generate_mx_scales",
        "torchao/amax_to_scale",
        "torchao/per_tensor_amax_to_scale",
    }
)
#: Formulas with a role of whose answers no fingerprint is told: what they take are codes, histograms or parameters, or
#: they do what another formula does, for a storage or a descriptor.
_LEFT_OUT = frozenset(
    {
        "aimet/encoding_range",
        "aimet/from_encodings",
        "aimet/histogram",
        "aimet/lpbq_scale",
        "aimet/lpbq_scaled",
        "aimet/percentile_encodings",
        "aimet/quantized_repr",
        "aimet/recalibrated_range",
        "aimet/scaled_encoding",
        "aimet/sqnr_encodings",
        "compressed-tensors/generate_mx_scales",
        "modelopt/fp8_quantize",
        "modelopt/int4_quantize",
        "modelopt/int8_quantize",
        "modelopt/mxfp4_quantize",
        "modelopt/mxfp8_quantize",
        "modelopt/nf4_quantize",
        "modelopt/nvfp4_quantize",
        "number-formats/convert",
        "number-formats/to_integer",
        "pytorch-quantization/described",
        "pytorch-quantization/described_amax",
        "pytorch-quantization/entropy_amax",
        "pytorch-quantization/mse_amax",
        "pytorch-quantization/percentile_amax",
        "torch/HistogramObserver",
        "torch/HistogramObserver._non_linear_param_search",
        "torch/MovingAverageMinMaxObserver",
        "torchao/choose_qparams_and_quantize_affine_hqq",
        "torchao/choose_qparams_and_quantize_scale_only_hqq",
        "torchao/from_hp_to_floatx_static",
        "torchao/from_hp_to_fpx",
    }
)
_UNITS = frozenset({"scale", "s"})  # of which one that is 1 leaves the cast alone
_OVER: Mapping[str, tuple[int, ...]] = {"scale": (0, 1), "block scale": (16, 32), "cast": (0,)}
_BIAS = 127.0  # of a scale that is an exponent alone
_ROWS = 2  # dimensions of the data
_MISFIT = (KeyError, ValueError, TypeError, IndexError, ArithmeticError, AttributeError)


@dataclass(frozen=True, eq=False)
class Candidate:
    """A formula at a point of its behaviour, with settings: a function of the data.

    Attributes:
        formula: a document's or a version's.
        point: of its behaviour; None where it has none.
        settings: its arguments but the data, in words that can be compared.
        arguments: what it is called with for the data.
    """

    formula: Formula
    point: Behaviour | None
    settings: Mapping[str, Any]
    arguments: Callable[[Array], Arguments] = field(repr=False)

    @property
    def family(self) -> str:
        """The document's formula."""
        return self.formula.id.partition("@")[0]

    @property
    def chosen(self) -> Mapping[str, Any]:
        """Its choices."""
        return {} if self.point is None else {key: getattr(self.point, key) for key in self.point.choices()}

    def near(self) -> Iterator["Candidate"]:
        """The same with one choice changed."""
        for point in () if self.point is None else self.point.neighbours():
            yield Candidate(self.formula, point, self.settings, self.arguments)

    def answer(self, x: Array) -> "tuple[Array, ...]":
        """The arrays that it gives, each as numbers, codes as reals too; none where it refuses."""
        function = self.formula.function if self.point is None else self.formula.at(self.point)
        try:
            arguments = self.arguments(x)
            found = answer_of(function, arguments)
        except _MISFIT:
            return ()
        if found.kind != "returned":
            return ()
        return (*numbers_of(found.value), *self._decoded(arguments, found.value, x.size))

    def _decoded(self, arguments: Arguments, value: Any, size: int) -> "tuple[Array, ...]":
        """What the codes stand for: floats, or scales that are powers of two."""
        role = ROLES.get(self.family)
        reals = None
        if role is not None and role.kind == "cast":
            reals = fitting(role.read, arguments, value)
        powers = [np.exp2(a - _BIAS) for a in numbers_of(value, bytes_alone=True) if a.size < size]
        return (*numbers_of(reals), *powers)


def numbers_of(value: Any, *, bytes_alone: bool = False) -> "tuple[Array, ...]":
    """The arrays of numbers in an answer, as float64, flat."""
    found = []
    for name, leaf in leaves(value):
        if not name.startswith("len(") and isinstance(leaf, np.ndarray | np.generic | int | float):
            a = np.asarray(leaf)
            numbers = a.dtype.kind in "biuf" or a.dtype in DTYPES.values() or a.dtype.name.startswith("float")
            if a.dtype == np.uint8 if bytes_alone else numbers:
                with np.errstate(all="ignore"):
                    found.append(a.astype(np.float64).reshape(-1))
    return tuple(found)


def matches(own: "tuple[Array, ...]", seen: "tuple[Array, ...]") -> float:
    """Of the numbers seen the share that a candidate gives: of each array the one of its own that gives most of it."""
    every = sum(a.size for a in seen)
    given = sum(max((int(same(a, b).sum()) for b in own if b.size == a.size), default=0) for a in seen)
    return given / every if every else 0.0


def same(a: Array, b: Array) -> Array:
    """Where numbers are the same, the sign of a zero too; any NaN is any NaN."""
    return np.asarray(((a == b) & (np.signbit(a) == np.signbit(b))) | (np.isnan(a) & np.isnan(b)))


@cache
def candidates(kind: str) -> tuple[Candidate, ...]:
    """All formulas and versions of a kind, with all settings; one for each that differs in them."""
    rows: dict[str, tuple[str, ...]] = dict(_MORE[kind])
    for name, role in ROLES.items():
        if role.kind == _ROLES[kind] and name not in _LEFT_OUT:
            two = role.reals if len(role.reals) == _ROWS and role.kind == "choose" else ()
            rows[name] = two or ((role.data,) if name != "compressed-tensors/generate_gparam" else ())
    rows["compressed-tensors/generate_gparam"] = ("updated_min_val", "updated_max_val")
    found: dict[Any, Candidate] = {}
    for (name, _), calls in sorted(call_sets().items(), key=lambda row: row[0]):  # in whatever order rooms came
        if name not in rows or (name == "compressed-tensors/generate_gparam" and kind != "scale"):
            continue
        for call in calls.build():
            for made in _made(kind, name, rows[name], call):
                key = made.formula.id, made.point, repr(sorted(made.settings.items(), key=str))
                found.setdefault(key, made)
    return tuple(found.values())


def _made(kind: str, name: str, data: tuple[str, ...], call: Arguments) -> Iterator[Candidate]:
    """The candidates of one call: its settings, for every version, whatever shares a parameter."""
    fixed: dict[str, Any] = {}
    for key, value in call.items():
        if key in data:
            continue
        if isinstance(value, np.ndarray):
            if key not in _UNITS or value.size != 1:
                return
            value = np.ones_like(value)  # noqa: PLW2901
        fixed[key] = value
    block = fixed.get("block_size")
    shape = np.shape(call[data[0]]) if not isinstance(call[data[0]], tuple | list) else ()
    if isinstance(block, tuple | list):
        if (shared := _shared(tuple(block), shape)) is None:
            return
        fixed["block_size"] = shared
    over = _OVER[kind] if name in _OF_AMAX or len(data) == _ROWS else (0,)
    for formula in FORMULAS.versions(name):
        for length in over:
            settings = {k: v for k, v in fixed.items() if not isinstance(v, np.ndarray)}
            settings |= (
                {"over": {0: "the tensor", 1: "each row"}.get(length, f"{length} elements")} if len(over) > 1 else {}
            )
            batches = data == ("batches",)
            yield Candidate(formula, formula.behaviour, settings, _caller(name, data, fixed, length, batches=batches))


def _shared(block: tuple[Any, ...], shape: tuple[int, ...]) -> Any:
    """What shares a parameter, for data of another shape: -1 stands for a whole dimension."""
    if len(block) != len(shape) or not all(isinstance(b, int) for b in block):
        return None
    whole = [b in (-1, n) for b, n in zip(block, shape, strict=True)]
    if all(whole):
        return ("whole", "whole")
    if len(block) != _ROWS or whole[0]:
        return None
    return (block[0], "whole" if whole[1] else block[1])


def _caller(
    name: str, data: tuple[str, ...], fixed: Mapping[str, Any], length: int, *, batches: bool
) -> Callable[[Array], Arguments]:
    def arguments(x: Array) -> Arguments:
        own = dict(fixed)
        if isinstance(own.get("block_size"), tuple):
            own["block_size"] = tuple(n if b == "whole" else b for b, n in zip(own["block_size"], x.shape, strict=True))
        if name in _OF_AMAX:
            return {**own, data[0]: _ends(x, length, amax=True)[0]}
        if len(data) == _ROWS:
            return {**own, **dict(zip(data, _ends(x, length), strict=True))}
        return {**own, data[0]: (x,) if batches else x}

    return arguments


def _ends(x: Array, length: int, *, amax: bool = False) -> tuple[Array, ...]:
    """The least and the greatest, or the largest magnitudes, of all the data (0), of each row (1), of so many."""
    parts = x.reshape({0: (1, -1), 1: x.shape}.get(length, (-1, max(length, 1))))
    ends = (np.abs(parts).max(axis=1),) if amax else (parts.min(axis=1), parts.max(axis=1))
    return tuple(e.reshape(()) if length == 0 else e for e in ends)
