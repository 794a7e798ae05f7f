"""One explanation for all answers of an operation: the model that gives them, models by regions, or the nearest."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from math import comb, log2
from typing import Any

import numpy as np

from halfeven.conformance.codes import other
from halfeven.conformance.engine.fitting.elements import Elements, Observed, elements_of
from halfeven.conformance.engine.fitting.factor import factors
from halfeven.conformance.engine.fitting.fit import Fit, Work
from halfeven.conformance.engine.fitting.readings import READINGS, read
from halfeven.conformance.engine.fitting.sample import Sample
from halfeven.conformance.engine.fitting.where import Where, facts_of, wheres
from halfeven.conformance.engine.region import Facts, Region, words_of
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES, has_own_operations, system_of

__all__ = ["Explanation", "Part", "explain"]

_FAR = ("overflow", "integer", "clamp", "ends", "nan")  # choices that show far beyond the grid, or of NaN
_ROUNDS = 12  # of adding to the sample what a model fails
_BITS = 20.0  # what it takes to believe in a region: that chance puts all that differs into it, one in so many
_CALLS = 10.0  # and where nothing known is done in it, that chance makes just these calls fail
_ENOUGH = 64  # elements that are counted on the side that has fewer: the ways of a million take seconds
_LIKELIEST = 12
_REGIONS = 60  # that are looked into, of those that are possible: those by which what fails is split best
_HALF = 0.5  # of a region's elements, which fail at least where nothing known gives them


@dataclass(frozen=True)
class Part:
    """What is done in one region.

    Attributes:
        where: the regions that hold together, such as the last n mod 8 elements; none if it is everywhere, or the rest.
        model: the model found there; None if there is none.
        profile: the name of a profile that computes so, if one does.
        changes: the choices that make a difference to an answer seen, each as (the claimed profile's, the one found).
        words: the same in words.
        share: of the answers in the region, those that the model gives.
        mask: which elements are in the region, in the order of the groups of dtypes; None without a model.
        reading: an argument that is read otherwise than given, one of ``READINGS``; empty for none.
    """

    where: tuple[Region, ...]
    model: EvaluationModel | None
    profile: str
    changes: Mapping[str, tuple[Any, Any]]
    words: str
    share: float
    reading: str = ""
    mask: Array | None = field(default=None, compare=False, repr=False)

    @property
    def place(self) -> str:
        """The region in words; empty if it is everywhere, or the rest."""
        return words_of(self.where)

    def given(self, groups: Sequence[Elements]) -> Array:
        """Which of some elements the part gives, wherever they are; none where it has no model."""
        if self.model is None:
            return np.zeros(sum(map(len, groups)), bool)
        return np.concatenate([g.given_by(self.model) for g in read(groups, self.reading)])


@dataclass(frozen=True)
class Explanation:
    """What gives the answers.

    Attributes:
        parts: what is done, region by region; empty where nothing gives all answers.
        share: of all answers, those that the parts give.
        nearest: where nothing gives all, the model that gives the most.
    """

    parts: tuple[Part, ...]
    share: float
    nearest: Part | None = None

    @property
    def words(self) -> str:
        """What is done otherwise than claimed, each part with its region; empty where no part says so."""
        said = [(f"{p.place}: " if p.where else "", p.words) for p in self.parts]
        return "; ".join(f"{where}{words}" for where, words in said if words)


def explain(
    profile: Profile,
    answers: Sequence[Observed],
    work: Work | None = None,
    elsewhere: Sequence[EvaluationModel] = (),
) -> Explanation | None:
    """What gives all answers of a backend for one operation, whatever the calls were.

    A part of a share of 1.0 gives every answer of its region: each was checked. Profiles that are known by name come
    first, those of the same system before all; then what is done elsewhere, and the fewest changes of the one claimed.
    No clock limits the search,
    so that what is said does not depend on the machine: it ends with the models of a sample and with 60 regions.

    Args:
        profile: what is claimed; its model comes first where several give the answers, and the words are against it.
        answers: of one operation and dtype.
        work: what several explanations may take together.
        elsewhere: models that other answers of the backend follow, tried before any is sought.

    Returns:
        None where there is nothing to explain: no answer holds numbers of the dtype that it should.
    """
    groups = elements_of(profile, answers)
    if not groups:
        return None
    search = _Search(profile, groups, facts_of(groups, answers), work or Work(), elsewhere)
    everywhere = np.ones(search.size, bool)
    claimed = search.given(profile.model)
    if claimed.all():
        return Explanation((search.part((), everywhere, profile.model),), 1.0)
    if np.isnan(search.x[~claimed]).all():
        return _of_nan(search, claimed)
    if search.work.left <= 0:  # spent on other pieces: then only what is known is tried
        part = search.known(everywhere)
        return Explanation((), 0.0) if part is None else Explanation((part,), 1.0)
    if (part := search.whole(everywhere)) is not None:
        return Explanation((part,), 1.0)
    one = _by_reading(search) or _as_difference(search) or _by_factor(search)
    return one or _by_region(search) or _nearest(search)


class _Search:
    """All elements, a sample of them that tells much, and what is known of models."""

    def __init__(
        self,
        profile: Profile,
        groups: list[Elements],
        facts: Facts,
        work: Work,
        elsewhere: Sequence[EvaluationModel],
    ) -> None:
        self.profile, self.groups, self.facts, self.work, self.elsewhere = profile, groups, facts, work, elsewhere
        self.size = sum(map(len, groups))
        self.x = np.concatenate([g.x.astype(np.float64) for g in groups])
        self._given: dict[EvaluationModel, Array] = {}
        self.sample = Sample(groups, ~self.given(profile.model), profile.model)
        self._fits: dict[str, Fit] = {}

    def given(self, model: EvaluationModel) -> Array:
        """Which elements the model gives."""
        if model not in self._given:
            self._given[model] = np.concatenate([g.given_by(model) for g in self.groups])
        return self._given[model]

    def fit(self, sign: str = "") -> Fit:
        """The search in the sample as it is; with the zero point as the profile has it, unless a sign is given."""
        if sign not in self._fits:
            base = replace(self.profile.model, sign=sign) if sign else self.profile.model
            self._fits[sign] = Fit(base, self.sample.elements(), work=self.work)
        return self._fits[sign]

    def look(self, *wheres_: Array) -> None:
        """Take more elements into the sample."""
        for where in wheres_:
            self.sample = self.sample.more(where, where.size)
        self._fits.clear()

    def whole(self, mask: Array) -> Part | None:
        """The one model that gives all of a region."""
        if (found := self.known(mask)) is not None:
            return found
        own = self.profile.model
        other = {"q-z": "q+o", "q+o": "q-z"}.get(own.sign, "")
        for sign in ("", other) if other and mask.all() else ("",):
            if (model := self._fitted(mask, sign)) is not None:
                return self.part((), mask, model)
        return None

    def known(self, mask: Array) -> Part | None:
        """The claimed model, or that of a profile or of other answers, where it gives all of a region."""
        some = (self.profile.model, *(m for _, m in _named(self.profile)), *self.elsewhere)
        found = next((m for m in some if self._gives(m, mask)), None)
        return None if found is None else self.part((), mask, found)

    def _fitted(self, mask: Array, sign: str) -> EvaluationModel | None:
        """The nearest model that gives a region: one of the sample, if need be of a sample with all that it fails."""
        base = replace(self.profile.model, sign=sign) if sign else self.profile.model
        fit, sample = self.fit(sign), self.sample
        for _ in range(_ROUNDS):
            known = mask[sample.where]
            found = fit.found(known)
            if found is None:
                return None
            model = found.nearest(base)[1]
            if self._gives(model, mask):
                return model
            sample = sample.more(np.flatnonzero(mask & ~self.given(model)))
            fit = Fit(base, sample.elements(), fit.left(known), self.work)
        return None

    @cached_property
    def most(self) -> EvaluationModel:
        """The model that gives the most answers, of those that give the most of the sample."""
        everywhere = np.ones(len(self.fit()), bool)
        named = (m for _, m in _named(self.profile))
        tried = [self.profile.model, *named, *self.fit().likeliest(everywhere, _LIKELIEST)]
        return max(dict.fromkeys(tried), key=lambda m: float(self.given(m).mean()))

    def part(self, where: tuple[Region, ...], mask: Array, model: EvaluationModel) -> Part:
        """The model with those choices alone that make a difference in a region, and who computes so."""
        claimed = self.profile.model
        kept = next(m for m in _between(claimed, model) if self._gives(m, mask) or m == model)
        share = float(self.given(kept)[mask].mean())
        return Part(where, kept, self.name(kept, mask), claimed.changes(kept), claimed.against(kept), share, mask=mask)

    def name(self, model: EvaluationModel, mask: Array) -> str:
        """The profile that gives what the model gives, of several the one most like it; empty if none does."""
        if model == self.profile.model:
            return self.profile.name
        if not self._gives(model, mask):
            return next((name for name, known in _named(self.profile) if known == model), "")
        found = [(name, known) for name, known in _named(self.profile) if self._gives(known, mask)]
        own = system_of(self.profile.name)
        alike = [(system_of(name) != own, len(model.changes(known)), name) for name, known in found]
        return min(alike)[-1] if alike else ""

    def _gives(self, model: EvaluationModel, mask: Array) -> bool:
        if model not in self._given:  # the sample tells most models
            known = mask[self.sample.where]
            given = np.concatenate([g.given_by(model) for g in self.sample.elements()])
            if not given[known].all():
                return False
        return bool(self.given(model)[mask].all())


def _of_nan(search: _Search, claimed: Array) -> Explanation:
    """Where NaN alone differs nothing else is said of it: no arithmetic was seen."""
    everywhere, own = np.ones(search.size, bool), search.profile.model
    for value in own.choices()["nan"]:
        model = replace(own, nan=str(value))
        if search.given(model).all():
            return Explanation((search.part((), everywhere, model),), 1.0)
    rest = ~np.isnan(search.x)
    lost = Part((Region("nan"),), None, "", {}, "gives what no known model gives", float(claimed[~rest].mean()))
    parts = (search.part((), rest, own), lost) if rest.any() else (lost,)
    return Explanation(parts, float(claimed.mean()))


def _by_reading(search: _Search) -> Explanation | None:
    """One model for all answers, where an argument is read otherwise than it is given."""
    tried = (search.profile.model, search.most)
    for reading in READINGS:
        groups = read(search.groups, reading)
        known = [(m, np.concatenate([g.given_by(m) for g in groups])) for m in tried]
        if not any(given.sum() > search.given(m).sum() for m, given in known):
            continue
        as_read = _Search(search.profile, groups, search.facts, search.work, search.elsewhere)
        part = as_read.whole(np.ones(search.size, bool))
        if part is not None:
            words = "; ".join(filter(None, (other()["reading"][reading][1], part.words)))
            return Explanation((replace(part, profile="", reading=reading, words=words),), 1.0)
    return None


def _as_difference(search: _Search) -> Explanation | None:
    """One model for all answers, where fake quantization hands back x + (x̂ - x), which shows far beyond the grid."""
    if search.groups[0].operation != "fake_quantize":
        return None
    everywhere, claimed, most = np.ones(search.size, bool), search.profile.model, search.most
    near = replace(most, **{name: getattr(claimed, name) for name in _FAR})  # what shows far away alone says nothing
    for model in dict.fromkeys((claimed, near, most, *(m for _, m in _named(search.profile)))):
        passed = replace(model, returned="difference")
        if search.given(passed).all():
            return Explanation((search.part((), everywhere, passed),), 1.0)
    return None


def _by_factor(search: _Search) -> Explanation | None:
    """A product by another factor than 1/s: there is no model of it, since each scale has its own."""
    found = factors(search.profile.model, search.groups)
    if found is None:
        return None
    model, ulps = found
    claimed = search.profile.model
    own = "1/s" if claimed.division == "reciprocal" else claimed.division
    rest = replace(claimed, division="reciprocal").against(model)
    words = f"multiplies by a factor that is not 1/s, of some scales {ulps:,} ulp from it or more"
    changes = {**claimed.changes(model), "division": (own, "another factor")}
    return Explanation((Part((), None, "", changes, "; ".join(filter(None, (words, rest))), 1.0),), 1.0)


def _by_region(search: _Search) -> Explanation | None:
    """Two models, each in its region; or one that is right outside of a region."""
    best = search.most
    failing = ~search.given(best)
    if not failing.any():
        return None
    sample = search.sample
    search.look(sample.spread(failing, 300), sample.spread(~failing, 100), sample.tails())
    # Most are right outside of a region that holds all that fails, and best of all nothing else.
    places = wheres(search.facts, failing)
    every = sorted(places, key=lambda w: (bool((failing & ~w.mask).any()), -round(float(failing[w.mask].mean()), 1)))
    for place in _looked_into(search, every, failing):
        inside, outside = search.whole(place.mask), search.whole(~place.mask)
        if inside is None or outside is None or inside.model is None or outside.model is None:
            continue
        one, other_ = search.given(inside.model), search.given(outside.model)
        for model, given in ((inside.model, one), (outside.model, other_)):
            if given.all():  # which the sample of the search for one model did not show
                return Explanation((search.part((), np.ones(search.size, bool), model),), 1.0)
        told, told_else = one & ~other_ & place.mask, other_ & ~one & ~place.mask
        if _bits(int(told.sum()), int(told_else.sum()), place.mask) >= _BITS:
            region = place.region.within(search.facts, told, told_else)
            if not inside.words and (differing := place.region.others(search.facts, ~one)) is not None:
                mask = differing.mask(search.facts)  # what is said is where it differs
                parts = (search.part((), ~mask, inside.model), search.part((differing,), mask, outside.model))
                return Explanation(parts, 1.0)
            return Explanation((outside, replace(inside, where=(region,))), 1.0)
    return _without_model(search, every, best, failing)


def _bits(inside: int, outside: int, mask: Array) -> float:
    """How unlikely it is by chance that so many elements which tell two models apart lie as they do, each on its side.

    Either those inside alone, were any element as likely to be one of them, or both, were their places given.
    """
    fewer = min(inside, outside, _ENOUGH)
    return max(inside * log2(mask.size / mask.sum()), log2(comb(fewer + max(inside, outside), fewer)))


def _looked_into(search: _Search, every: Sequence[Where], failing: Array) -> list[Where]:
    """The regions inside and outside of which a model may remain, in order, and no more than are looked into."""
    possible, where = search.fit().possible(), search.sample.where
    some = [w for w in every if possible(w.mask[where]) and possible(~w.mask[where])]
    if len(some) <= _REGIONS:
        return some
    differing = ~search.given(search.profile.model)
    kept = sorted(some, key=lambda w: max(w.split(failing), w.split(differing)), reverse=True)[:_REGIONS]
    return [w for w in some if w in kept]


def _without_model(
    search: _Search, every: Sequence[Where], best: EvaluationModel, failing: Array
) -> Explanation | None:
    """A model that is right everywhere but in a region in which none is: the tightest of those that hold all it fails.

    In a region of calls each has to fail, in one of elements most.
    """
    holding = [w for w in every if not (failing & ~w.mask).any() and _is_lost(search, w, failing)]
    if not holding:
        return None
    place = min(holding, key=lambda w: int(w.mask.sum()))
    rest = search.part((), ~place.mask, best)
    share = float((~failing)[place.mask].mean())
    region = place.region.within(search.facts, failing, ~failing & ~place.mask)
    lost = Part((region,), None, "", {}, "does what no known model does", share)
    return Explanation((rest, lost), float((~failing).mean()))


def _is_lost(search: _Search, place: Where, failing: Array) -> bool:
    """Whether what fails is in a region because of that: no chance puts it there, and little of the region agrees."""
    mask, call = place.mask, search.facts.call
    if place.region.is_of_calls:
        inside = np.unique(call[mask])
        lost = log2(comb(np.unique(call).size, inside.size))
        return bool(lost >= _CALLS and np.isin(inside, call[failing]).all())
    return bool(failing[mask].mean() >= _HALF and _bits(int(failing.sum()), 0, mask) >= _BITS)


def _nearest(search: _Search) -> Explanation:
    """The model that gives the most answers, with those choices alone without which it gives fewer."""
    everywhere = np.ones(search.size, bool)
    best = search.most
    if search.given(best).all():
        return Explanation((search.part((), everywhere, best),), 1.0)
    claimed, given = search.profile.model, search.given(best)
    for name in claimed.changes(best):
        fewer = replace(best, **{name: getattr(claimed, name)})
        if search.given(fewer).sum() >= given.sum():
            best, given = fewer, search.given(fewer)
    name = search.name(best, everywhere)
    share = float(given.mean())
    return Explanation((), 0.0, Part((), best, name, claimed.changes(best), claimed.against(best), share))


def _named(profile: Profile) -> Iterator[tuple[str, EvaluationModel]]:
    """The models of the other profiles, the same system's first, with the parameters as this one hands them over."""
    system = system_of(profile.name)
    for known in sorted(PROFILES.values(), key=lambda p: (system_of(p.name) != system, "@" not in p.name, p.name)):
        if (
            has_own_operations(known.name)
            and known.name != profile.name
            and known.parameters[0] == profile.parameters[0]
        ):
            model = replace(known.model, sign=profile.model.sign)
            if model != profile.model:
                yield known.name, model


def _between(claimed: EvaluationModel, found: EvaluationModel) -> Iterator[EvaluationModel]:
    """The claimed model with some of the choices found, the fewest first; the one found comes last."""
    changed = claimed.changes(found)
    for away in range(len(changed) + 1):
        for names in combinations(changed, away):
            yield replace(claimed, **{n: getattr(found, n) for n in names})
