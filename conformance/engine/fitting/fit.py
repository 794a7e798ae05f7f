"""Which models give a set of answers, for each of the operations; nothing that gives them is left out."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import product

import ml_dtypes
import numpy as np

from halfeven.conformance.engine.fitting.boxes import Box, Found, common, least, model_of
from halfeven.conformance.engine.fitting.coder import Coder, Row, Rows
from halfeven.conformance.engine.fitting.elements import Elements, Hits, same_codes, same_reals
from halfeven.conformance.engine.fitting.options import decode_options
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel, zero_of

__all__ = ["Fit", "Work"]

_LIKELY = 0.3  # the share of the answers that a way back to codes explains, and that is worth a look
_NONE = 10**6
_ROWS = 128  # integers made of quotients, of which all that may come is tried; what is known leaves a few dozen
_WORK = 1024  # of them in all searches for one explanation: half a minute
_MAKING = 32  # what it costs to make them, as many as these

#: What is left of the quotients and of the products, where others are known to fail.
Among = tuple[Sequence[Box], Sequence[Box]]


@dataclass(eq=False)
class Work:
    """The rows that may still be tried: a count, since no clock may decide what is found."""

    left: int = _WORK

    @contextmanager
    def half(self) -> Iterator["Work"]:
        """At most half of what is left, of which the rest comes back."""
        given = Work(self.left // 2)
        self.left -= given.left
        yield given
        self.left += given.left

    @classmethod
    def of_turn(cls, turn: int) -> "Work":
        """Of an explanation that is sought anew half of what the one before took: all of them together take two."""
        return cls(_WORK >> turn)


@dataclass(eq=False)
class _Decoder:
    """Reals of codes, all that makes them, and the elements that they are; of fake quantizing, the codes behind."""

    model: EvaluationModel
    boxes: list[Box]
    hits: Array
    codes: Array
    certain: Array


class Fit:
    """A search of the models that give some elements (of several pairs of dtypes).

    Masks are over all the elements, in the order of the groups.
    """

    def __init__(
        self, base: EvaluationModel, groups: Sequence[Elements], among: Among | None = None, work: Work | None = None
    ) -> None:
        """``base`` says how the zero point enters, and which models come first; ``among`` what else may be.

        ``work`` is what several searches may do together.
        """
        self._base, self._groups, self._among, self._work = base, groups, among, work or Work()
        self._coder = Coder(base, groups, among and among[0])
        self._operation = groups[0].operation
        self._decoders: list[_Decoder] = []
        self._by_codes: dict[bytes, Rows] = {}
        self._target = np.concatenate([g.value for g in groups])
        if self._operation == "quantize":
            self._rows = self._coder.rows(self._target, np.ones(len(self), bool))
        else:
            self._decoders = self._decoded()

    def __len__(self) -> int:
        """The number of elements."""
        return sum(map(len, self._groups))

    def found(self, mask: Array) -> Found | None:
        """What gives all the elements of a mask: of several, one that holds the model nearest to the base."""
        match self._operation:
            case "dequantize":
                some = [Found((tuple(row.boxes),)) for row in self._decoders if row.hits[mask].all()]
                return min(some, key=lambda f: f.nearest(self._base)[0], default=None)
            case "quantize":
                return self._best(mask)
            case _:
                return self._faked(mask)

    def left(self, mask: Array) -> Among:
        """What need be tried with more elements than a mask's: the quotients and the products that give all of them."""
        decoders = [d for d in self._decoders if d.hits[mask].all()]
        if self._operation == "dequantize":
            return (), [box for d in decoders for box in d.boxes]
        sets = [(self._rows, mask)] if self._operation == "quantize" else []
        if self._work.left > 0:
            sets += [(self._rows_of(d), mask & d.certain) for d in decoders]
        made = {id(r.made): r.made for rows, some in sets for r in rows.giving(some)}
        return [box for m in made.values() for box in m.boxes], [box for d in decoders for box in d.boxes]

    def likeliest(self, mask: Array, count: int) -> list[EvaluationModel]:
        """The models that give the most of a mask's elements."""
        if self._operation == "dequantize":
            return [d.model for d in sorted(self._decoders, key=lambda d: -int(d.hits[mask].sum()))[:count]]
        found = []
        decoder = self._decoder
        codes = self._target if decoder is None else decoder.codes
        behind = () if decoder is None else decoder.boxes[:1]
        for row in sorted(self._coded.every, key=lambda r: -int(r.hits[mask].sum()))[:count]:
            best = max(self._coder.ends(row), key=lambda e: int((same_codes(e[1], codes) | row.nan)[mask].sum()))
            found.append(model_of(self._base, common(row.made.boxes[0], row.boxes[0], best[0][0], *behind) or {}))
        return found

    def possible(self) -> Callable[[Array], bool]:
        """Whether some models that agree give all of a mask's elements, as far as the stages before the last say."""
        of_reals = self._operation == "dequantize"
        hits = Hits([d.hits for d in self._decoders], len(self)) if of_reals else self._coded.hits
        return lambda mask: hits.all_of(mask).size > 0

    @property
    def _coded(self) -> Rows:
        """Rows of codes: of the answers, or of those behind the reals in the likeliest way."""
        if self._operation == "quantize":
            return self._rows
        return Rows(self._base, [], len(self)) if self._decoder is None else self._rows_of(self._decoder)

    @property
    def _decoder(self) -> _Decoder | None:
        """What most of the reals come of, if they are reals."""
        return max(self._decoders, key=lambda d: int(d.hits.sum()), default=None)

    def _best(self, mask: Array) -> Found | None:
        """What gives the codes of a mask."""
        found, lowest = None, _NONE
        for cost, some in self._coder.each(self._cheapest(self._rows, mask), mask, self._target):
            if cost >= lowest:
                break
            if (own := some.nearest(self._base)[0]) < lowest:
                found, lowest = some, own
        return found

    def _faked(self, mask: Array) -> Found | None:
        for decoder in sorted(self._decoders, key=lambda r: least(self._base, r.boxes)):
            if self._work.left <= 0:
                return None
            if not decoder.hits[mask].all():
                continue
            found, lowest = None, _NONE
            known = mask & decoder.certain
            rows = self._cheapest(self._rows_of(decoder), known)
            for cost, coder in self._coder.each(rows, known, decoder.codes, mask & ~decoder.certain):
                if cost >= lowest:
                    break
                first, *others = coder.stages
                both = tuple(b for one, other in product(first, decoder.boxes) if (b := common(one, other)) is not None)
                if not both:
                    continue
                whole = Found((both, *others))
                whole_cost, model = whole.nearest(self._base)
                if whole_cost < lowest and self._gives(model, mask):
                    found, lowest = whole, whole_cost
            if found is not None:
                return found
        return None

    def _cheapest(self, rows: Rows, mask: Array) -> list[tuple[int, Row]]:
        some = rows.cheapest(mask, max(min(_ROWS, self._work.left), 0))
        self._work.left -= len(some)
        return some

    def _rows_of(self, decoder: _Decoder) -> Rows:
        key = decoder.codes.tobytes() + decoder.certain.tobytes()
        if key not in self._by_codes:
            self._work.left -= _MAKING
            self._by_codes[key] = self._coder.rows(decoder.codes, decoder.certain)
        return self._by_codes[key]

    def _gives(self, model: EvaluationModel, mask: Array) -> bool:
        return bool(np.concatenate([g.given_by(model) for g in self._groups])[mask].all())

    def _decoded(self) -> list[_Decoder]:
        """All ways of making reals of codes, each once; of fake quantizing, all ways back to codes."""
        known: dict[bytes, _Decoder] = {}
        behind = self._operation == "fake_quantize"
        for option in decode_options(self._base, self._groups) if self._among is None else self._among[1]:
            model = model_of(self._base, option)
            try:
                found = [_codes_behind(g, model) if behind else _reals(g, model) for g in self._groups]
            except (ValueError, TypeError):  # fused in float64
                continue
            codes, certain, hits = (np.concatenate(a) for a in zip(*found, strict=True))
            if behind and hits.mean() < _LIKELY:
                continue
            key = b"".join(a.tobytes() for a in (codes, certain, hits))
            if key in known:
                known[key].boxes.append(option)
            else:
                known[key] = _Decoder(model, [option], hits, codes, certain)
        return list(known.values())


def _reals(g: Elements, model: EvaluationModel) -> tuple[Array, Array, Array]:
    """The reals, and which of them are the ones answered."""
    found = g.reals(model)
    hits = same_reals(found, g.value)
    return found, hits, hits


def _codes_behind(g: Elements, model: EvaluationModel) -> tuple[Array, Array, Array]:
    """The codes of which the model makes the reals of ``g``; where there is just one; and where there is any."""
    with np.errstate(all="ignore"):
        s, value = g.scale.astype(np.float64), g.value.astype(np.float64)
        z = np.broadcast_to(zero_of(model, g.zero), value.shape)
        near = np.rint(value * s if model.division == "multiply-by-q-per-real" else value / s) + z
        odd = ~np.isfinite(near)
        near = np.where(odd, z, near)
        tried = np.stack([near, near - 1, near + 1])
        reals = [g.reals(model, c) for c in tried]
        given = np.stack([r == g.value for r in reals])
        codes = np.take_along_axis(tried, given.argmax(axis=0)[None], axis=0)[0]
        # NaN comes of NaN, but where it comes of any code: 16 bits hold no large zero point.
        nan = np.isnan(g.value) & ~np.isnan(reals[0])
        apart = np.abs(near - z) * float(ml_dtypes.finfo(g.value.dtype).eps) < 1  # type: ignore[no-untyped-call]
        certain = ((given.sum(axis=0) == 1) & apart & ~odd) | nan
        return np.where(np.isnan(g.value), np.nan, codes), certain, given.any(axis=0) | odd
