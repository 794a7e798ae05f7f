"""An implementation and one of its operations: how it is called, and the codes and zero points that it has."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from halfeven.conformance.backends.offer import keywords
from halfeven.conformance.configuration import DTYPES, Configuration
from halfeven.conformance.engine.call import PLAIN, Answer, Call, CallShape
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.engine.shapes import laid_out
from halfeven.conformance.fingerprints.asking import Asking
from halfeven.conformance.fingerprints.models import Asked, Given, same_codes, unsigned_zeros
from halfeven.conformance.fingerprints.search import Seen
from halfeven.reference import Grid
from halfeven.reference.blocks import Array
from halfeven.reference.systems import PROFILES

__all__ = ["Subject", "differ", "oddity", "own_grid", "own_zero"]

_LIMITED = 4  # inputs that have the last code: so many that it is no rounding


@dataclass(eq=False)
class Subject:
    """An implementation and one of its operations.

    Attributes:
        asking: what answers, under its limits.
        asked: the operation, and the codes that it has.
        handed: the grid that it is told; another one where it does not keep to it.
        zeros: the zero points that it is asked with.
        fixed: the zero point that it has, whatever it is told.
        beyond: codes from the greatest to the one that an amax is taken for, where it is told that.
        given: whether the grid was named, and no other is asked.
        uneven: the calls in which equal inputs have different answers.
        odd: why it is no quantizer at all, in words, as seen in the first calls; empty where it may be one.
        elsewhere: calls in which something is done that no model does that gives the others.
        apart: such calls with what is peculiar to them, in words, such as a small scale: the rest is told without them.
        pairs: of scale and zero point that were asked.
        rounded: whether some of its reals have more bits than the dtype that was asked for, to which they are rounded.
    """

    asking: Asking
    asked: Asked
    handed: Grid
    zeros: list[int]
    fixed: int | None = None
    beyond: int = 0
    given: bool = False
    odd: str = ""
    uneven: list[Seen] = field(default_factory=list)
    elsewhere: list[Seen] = field(default_factory=list)
    apart: list[tuple[str, Seen]] = field(default_factory=list)
    pairs: list[tuple[float, int]] = field(default_factory=list)
    rounded: bool = False

    @property
    def takes_amax(self) -> bool:
        """Whether it is told the real of the greatest code, not the scale."""
        return PROFILES[self.asking.worker.offer.profile].parameters[0] == "amax"

    def seen(self, given: Given, shape: CallShape = PLAIN) -> Seen | None:
        """Ask; what came, where it is an array of the right shape.

        A ``shape`` says how the input lies in memory; one of rank 2 has rows.
        """
        a, offer = self.asked, self.asking.worker.offer
        rows = given.x.reshape((-1, 8) if shape.rank == 2 else (-1,))  # noqa: PLR2004 - dimensions
        grid = self.handed if given.asked.grid == a.grid else given.asked.grid
        c = Configuration(a.operation, a.dtype.name, grid, rows.shape)
        zero = np.asarray(given.zero if self.fixed is None else 0, np.int32)
        if self.fixed is not None:
            given = replace(given, zero=self.fixed)
        handed = given.scale
        if self.takes_amax:
            top = grid.qmax + self.beyond
            handed = np.asarray(given.step * top, a.scale_dtype)
            own = top / handed if a.per_real else handed / top
            given = replace(given, scale=np.asarray(own, a.scale_dtype))
        x = plain(rows) if shape == PLAIN else laid_out(rows, shape.layout, shape.offset)
        arrays = (x, plain(handed), plain(zero))
        call = Call(
            f"{offer.profile}:{a.operation}", arrays, keywords(offer, c), shape=shape, reason="splits what remains"
        )
        found = next(iter(self.asking.answers([call])), None)
        value = None if found is None else self._value(found, rows.shape)
        if value is None:
            if given.zero and given.zero in self.zeros:
                self.zeros.remove(int(given.zero))
            return None
        if given.asked == a:
            self.pairs.append((float(given.scale), int(given.zero)))
        seen = Seen(given, value, shape)
        if not _consistent(seen):
            self.uneven.append(seen)
        return seen

    def _value(self, answer: Answer, shape: tuple[int, ...]) -> Array | None:
        if answer.kind != "returned":
            return None
        value, a = answer.value, self.asked
        if not isinstance(value, np.ndarray) or value.shape != shape:
            self.asking.note(f"returned {_form(value)} where an array of shape {shape} is expected")
            return None
        if value.dtype.kind not in "iufb" and value.dtype not in DTYPES.values():
            self.asking.note(f"returned an array of {value.dtype} where numbers are expected")
            return None
        value = np.ascontiguousarray(value).reshape(-1)
        if a.operation != "quantize" and value.dtype != a.dtype:
            with np.errstate(all="ignore"):
                narrow = value.astype(a.dtype)
                lossless = same_codes(narrow, value)
            self.rounded |= not lossless
            more = "" if lossless else ", with more bits: what is told is of them rounded"
            self.asking.note(f"returned {value.dtype} for {a.dtype}{more}")
            return narrow
        return unsigned_zeros(value) if a.operation == "quantize" else value


def own_grid(seen: Sequence[Seen], handed: Grid) -> Grid | None:
    """The codes that answers keep to, where these are others than those that they were told to keep to."""
    codes = []
    for s in seen:
        near = s.near
        if s.given.asked.operation == "dequantize" or not near.any():
            return None
        value = s.value[near].astype(np.float64)
        if s.given.asked.operation == "fake_quantize":
            value = np.rint(value / s.given.step) + s.given.zero
        codes.append(value)
    every = np.concatenate(codes) if codes else np.empty(0)
    if not every.size or not np.array_equal(every, np.rint(every)):  # NaN, too
        return None
    low, high = every.min(), every.max()
    limited = min((every == low).sum(), (every == high).sum()) >= _LIMITED and high - low < 1 << 16
    found = Grid(int(low), int(high)) if limited and low < high else handed
    return None if found == handed else found


def own_zero(seen: Sequence[Seen]) -> int | None:
    """The zero point that there is whatever is told; None where it is the one that is told.

    It is the code of 0, where two zero points make no difference, or where only one is taken and is not the code of 0.
    """
    if len(seen) < 2 or seen[0].given.asked.operation == "fake_quantize":  # noqa: PLR2004 - two scales
        return None
    first, one, *others = seen
    for other in others:
        _, here, there = np.intersect1d(one.given.x, other.given.x, return_indices=True)
        if differ(one.value[here], other.value[there]).any():
            return None
    dequantizes = first.given.asked.operation == "dequantize"
    at, of = (first.value, first.given.x) if dequantizes else (first.given.x, first.value)
    found = np.unique(of[at == 0].astype(np.float64))
    if found.size != 1 or not found[0].is_integer() or (not others and found[0] == first.given.zero):
        return None
    return int(found[0])


def oddity(seen: Sequence[Seen]) -> str:
    """What tells that calls are no quantizer's: nothing depends on x, or codes are no integers; empty for nothing."""
    if not seen:
        return ""
    numbers = [s.at(np.flatnonzero(s.numbers)) for s in seen]
    if not any(differ(s.value, np.broadcast_to(s.value[:1], s.value.shape)).any() for s in numbers):
        return "gives one answer for every input of a call"
    for s in numbers if seen[0].given.asked.operation == "quantize" else ():
        value = s.value[s.near].astype(np.float64)
        if not np.array_equal(value, np.rint(value), equal_nan=True):
            return "gives numbers that are no integers, where codes are expected"
    return ""


def differ(a: Array, b: Array) -> Array:
    """Where two answers differ: -0.0 is not 0.0, which of codes is not kept, and any NaN is any NaN."""
    one, other = a.astype(np.float64), b.astype(np.float64)
    same = (one == other) & (np.signbit(one) == np.signbit(other))
    return np.asarray(~(same | (np.isnan(one) & np.isnan(other))))


def _consistent(seen: Seen) -> bool:
    """Whether equal inputs have equal answers, at whatever place."""
    x = seen.given.x.view(f"u{seen.given.x.dtype.itemsize}")
    order = np.argsort(x, kind="stable")
    x, value = x[order], seen.value[order]
    return not differ(value[1:], value[:-1])[x[1:] == x[:-1]].any()


def _form(value: Any) -> str:
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else type(value).__name__
