"""Answered elements, each with its own parameters: what a model is held against, and where it came from."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfeven.conformance.bits import signed_bits
from halfeven.conformance.configuration import DTYPES, Case
from halfeven.conformance.engine.call import PLAIN, CallShape
from halfeven.reference import Grid
from halfeven.reference.blocks import Array, per_element
from halfeven.reference.model import (
    EvaluationModel,
    codes_of,
    compute_dtype,
    handed_back,
    quotients,
    reals_of,
    rounded_of,
    zero_of,
)
from halfeven.reference.profile import Operation, Profile
from halfeven.reference.rounding import cast_once

DType = np.dtype[Any]

__all__ = ["Elements", "Hits", "Observed", "elements_of", "flat", "same_codes", "same_reals"]


@dataclass(frozen=True, eq=False)
class Observed:
    """What a backend answered to a call, or to some of its elements.

    Attributes:
        case: what was asked.
        value: what came, of the shape of ``case.x``.
        where: flat indices at which it differs from what was expected, if known.
        shape: how the call was made.
        place: of a sample, the flat index of each element in its call.
        size: of a sample, the elements of the whole call.
        last: of a sample, the length of the call's last axis.
        traits: of a sample, what its call has as a whole, names of ``TRAITS``; None where that is not known.
    """

    case: Case
    value: Array
    where: Array | None = None
    shape: CallShape = PLAIN
    place: Array | None = None
    size: int = 0
    last: int = 0
    traits: tuple[str, ...] | None = None


@dataclass(frozen=True, eq=False)
class Elements:
    """Elements of answers of one operation, in one dtype of reals and one of scales.

    Attributes:
        operation: quantize, dequantize or fake_quantize.
        x: reals, or the codes that were dequantized.
        scale: the model's scale of each, in the dtype that it was given in.
        zero: the zero point or offset of each, as given, in float64.
        lo, hi: the ends of the grid, in float64.
        value: what was answered; codes in float64, reals in ``real``.
        real: the dtype of the reals.
        widened: the dtype in which a model computes that takes one wide enough for the grid.
        narrowed: the dtype to which codes are rounded at last, if they are.
        call: the number of the answer that each comes from.
        place, size, last: its flat index in that call, the call's elements, and the length of its last axis.
    """

    operation: Operation
    x: Array
    scale: Array
    zero: Array
    lo: Array
    hi: Array
    value: Array
    real: DType
    widened: DType
    narrowed: DType | None
    call: Array
    place: Array
    size: Array
    last: Array

    def __len__(self) -> int:
        """The number of elements."""
        return len(self.x)

    def at(self, where: Array) -> "Elements":
        """Some of them: indices or a mask."""
        arrays = ("x", "scale", "zero", "lo", "hi", "value", "call", "place", "size", "last")
        return replace(self, **{name: getattr(self, name)[where] for name in arrays})

    def compute(self, model: EvaluationModel) -> DType:
        """The dtype that the model computes in."""
        if model.compute == "widened":
            return self.widened
        x = self.x.dtype if self.operation != "dequantize" else self.real
        return compute_dtype(model, x, self.scale.dtype, Grid(0, 0))  # the grid is read where it is to be held

    def codes(self, model: EvaluationModel) -> Array:
        """The model's codes, in float64.

        Raises:
            ValueError: the model is not defined for these dtypes.
        """
        q = self._codes(model)
        with np.errstate(all="ignore"):
            return np.asarray((q if self.narrowed is None else q.astype(self.narrowed)).astype(np.float64))

    def reals(self, model: EvaluationModel, codes: Array | None = None) -> Array:
        """The reals of codes: of those given, else of ``x``; as dequantize or as fake quantize makes them."""
        t = self.real
        if self.operation == "fake_quantize" and model.product == "output":
            t = self.compute(model)
        q = self.x if codes is None else codes
        return cast_once(reals_of(model, q, self.scale, self.zero, t, (self.lo, self.hi)), self.real)

    def given_by(self, model: EvaluationModel) -> Array:
        """Which of the answers the model gives; none, where it is not defined for these dtypes."""
        try:
            match self.operation:
                case "quantize":
                    return same_codes(self.codes(model), self.value)
                case "dequantize":
                    return same_reals(self.reals(model), self.value)
                case _:
                    return same_reals(handed_back(model, self.x, self.reals(model, self._codes(model))), self.value)
        except (ValueError, TypeError):
            return np.zeros(len(self), bool)

    def _codes(self, model: EvaluationModel) -> Array:
        z = np.broadcast_to(zero_of(model, self.zero), self.x.shape)
        v = quotients(model, self.x, self.scale, z, self.lo, self.hi, self.compute(model))
        return codes_of(model, rounded_of(model, v, z, self.lo, self.hi), z, self.lo, self.hi)


def same_codes(a: Array, b: Array) -> Array:
    """Where two codes are equal, by value; NaN is NaN."""
    return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)))


def same_reals(a: Array, b: Array) -> Array:
    """Where two reals are equal, by bits; any NaN is any NaN."""
    return np.asarray((signed_bits(np.ascontiguousarray(a)) == signed_bits(b)) | (np.isnan(a) & np.isnan(b)))


def elements_of(profile: Profile, answers: Sequence[Observed]) -> list[Elements]:
    """The elements of all answers, those of the same dtypes together; what is no array of numbers is left out."""
    found: dict[tuple[Any, ...], list[Elements]] = {}
    for number, answer in enumerate(answers):
        c = answer.case.configuration
        real, value = DTYPES[c.dtype], answer.value
        numbers = value.dtype.kind in "iuf" or value.dtype in DTYPES.values()
        if not value.size or not numbers or (c.operation != "quantize" and value.dtype != real):
            continue
        one = _elements(profile, answer, number)
        key = (c.operation, one.x.dtype, one.scale.dtype, real, one.widened)
        found.setdefault(key, []).append(one)
    return [_together(parts) for parts in found.values()]


def flat(case: Case) -> Case:
    """The case as a vector in which every element has its own parameters."""
    c, shape = case.configuration, case.x.shape
    scale, zero = (
        np.array(np.broadcast_to(per_element(p, shape, c.block_size), shape)).ravel() for p in (case.scale, case.zero)
    )
    return Case(replace(c, shape=(case.x.size,), block_size=None), np.array(case.x).ravel(), scale, zero)


def _elements(profile: Profile, answer: Observed, number: int) -> Elements:
    case, c, n = flat(answer.case), answer.case.configuration, answer.case.x.size
    real, shape = DTYPES[c.dtype], answer.case.x.shape
    x = case.x.astype(np.float64) if c.operation == "dequantize" else profile.above_smallest(case.x, case.scale, None)
    codes = c.operation == "quantize"
    value = np.ascontiguousarray(answer.value).ravel()
    own = answer.place is None
    return Elements(
        c.operation,
        x,
        np.asarray(profile.model_scale(case.scale, c.grid)),
        case.zero.astype(np.float64),
        np.full(n, c.grid.qmin, np.float64),
        np.full(n, c.grid.qmax, np.float64),
        value.astype(np.float64) if codes else value,
        real,
        compute_dtype(_WIDENED, x.dtype, case.scale.dtype, c.grid) if c.operation != "dequantize" else real,
        x.dtype if codes and profile.codes == "input" else None,
        np.full(n, number),
        np.arange(n) if own else np.asarray(answer.place),
        np.full(n, answer.size or n),
        np.full(n, answer.last or (shape[-1] if shape and own else 1)),
    )


def _together(parts: Sequence[Elements]) -> Elements:
    arrays = ("x", "scale", "zero", "lo", "hi", "value", "call", "place", "size", "last")
    joined: dict[str, Any] = {name: np.concatenate([getattr(p, name) for p in parts]) for name in arrays}
    return replace(parts[0], **joined)


_WIDENED = EvaluationModel(compute="widened")


class Hits:
    """Which elements each of many models gives, as bits: they are asked hundreds of times."""

    def __init__(self, each: Sequence[Array], count: int) -> None:
        """A mask of ``count`` elements for each model."""
        self._lost = _packed(~np.stack(each) if each else np.zeros((0, count), bool))

    def all_of(self, mask: Array) -> Array:
        """The places of the models that give all elements of a mask."""
        return np.flatnonzero(~(self._lost & _packed(mask)).any(axis=1))


def _packed(masks: Array) -> Array:
    """The last axis as bits, 64 to a number."""
    padding = [(0, 0)] * (masks.ndim - 1) + [(0, -masks.shape[-1] % 64)]
    return np.packbits(np.pad(masks, padding), axis=-1).view(np.uint64)
