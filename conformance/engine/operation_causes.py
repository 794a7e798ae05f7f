"""Why the answers to an operation differ: the model, or the models by region, that give all of them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from halfeven.conformance.codes import code_of, other, reading_code, region_code
from halfeven.conformance.configuration import Array, Case, Granularity
from halfeven.conformance.engine.evidence import Evidence, Judged
from halfeven.conformance.engine.explain import Explanation, Part, explain
from halfeven.conformance.engine.fitting.elements import Elements, Observed, elements_of
from halfeven.conformance.engine.fitting.factor import factors
from halfeven.conformance.engine.fitting.fit import Work
from halfeven.conformance.engine.fitting.where import facts_of
from halfeven.conformance.engine.kept import Sample, Subject, shared
from halfeven.conformance.engine.piecewise import is_whole, piecewise
from halfeven.conformance.engine.region import Region, of_shapes, words_of
from halfeven.conformance.engine.told import Deciding, Told, choices, fewest, said, unknown
from halfeven.conformance.engine.tries import Trial, case_of
from halfeven.conformance.report.model import Cause, OutcomeName
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES

__all__ = ["OperationWhy"]

_READING = "an argument read otherwise"


@dataclass(frozen=True, eq=False)
class OperationWhy:
    """The explanation of all answers to one operation in one dtype.

    Attributes:
        profile: the one claimed.
        subject: what was asked.
        samples: what is kept of the answers.
        is_doubted: whether fresh answers have refuted what was found.
        turn: how often it was sought before.
    """

    profile: Profile
    subject: Subject
    samples: Sequence[Sample]
    is_doubted: bool = False
    turn: int = 0

    @cached_property
    def explanation(self) -> Explanation | None:
        """The search, once; where nothing gives all answers, piece by piece."""
        answers = [a for s in self.samples for a in s.observed(self.subject)]
        whole = explain(self.profile, answers, Work.of_turn(self.turn))
        if whole is None or is_whole(whole):
            return whole
        return piecewise(self.profile, answers, whole, Work.of_turn(self.turn)) or whole

    @property
    def parts(self) -> tuple[Part, ...]:
        """What gives the answers, region by region."""
        found = self.explanation
        return found.parts if found is not None and not self.is_doubted else ()

    @property
    def key(self) -> object:
        """What it says."""
        return tuple((p.where, p.profile, p.words) for p in self.parts if p.words) or self.region

    @cached_property
    def region(self) -> Region | None:
        """What the calls have in common that differ, in case nothing gives all answers."""
        bad, good = ([c for s in self.samples for c in getattr(s, side)] for side in ("differing", "agreeing"))
        return None if self.is_doubted else of_shapes(bad, good)

    @cached_property
    def pieces(self) -> Sequence[tuple[Grid, Granularity]]:
        """The grids and granularities of which something is said that is not said of all."""
        answers = [a for s in self.samples for a in s.observed(self.subject)]
        configurations = (a.case.configuration for a in answers)
        seen = dict.fromkeys((c.grid, c.granularity) for c in configurations if c.granularity != "any")
        regions = [{r.kind: r.of for r in p.where} for p in self.parts if p.words]
        told = [r for r in regions if "granularity" in r]
        return [(g, how) for g, how in seen if any(g in r.get("grids", (g,)) and how in r["granularity"] for r in told)]

    def doubted(self) -> "OperationWhy":
        """Without the models that were refuted."""
        return replace(self, is_doubted=True)

    def told(self, sample: Sample, outcome: OutcomeName, differs: str) -> Told:
        """The parts that a result's differing answers need, and of each the choices that matter there."""
        del outcome, differs
        answers = sample.observed(self.subject)
        needed = self._needed(answers)
        if needed is None:
            return self._unknown()
        found = tuple(dict.fromkeys(c for part in needed for c in self._causes(part, answers)))
        profiles = list(dict.fromkeys(p.profile for p in needed))
        if len(profiles) == 1 and profiles[0] and not any(map(self._place, needed)):
            return Told("explained", f"as {profiles[0]}: {said(found)}", found)
        return Told("differs", said(found), found)

    def deciding(self, sample: Sample, cause: Cause) -> Deciding | None:
        """Single elements that the choice alone gives; where there are none, those that need it beside others."""
        answers = [a for a in sample.observed(self.subject) if a.where is not None and len(a.where)]
        for shows in self._tests(cause):
            found = [case for a in answers for case in _elements(a, shows(a))]
            if found:
                return Deciding(found, partial(_decides, shows))
        return None

    def refuted(self, compared: Sequence[Judged]) -> Mapping[int, Array]:
        """What no part gives."""
        asked = [a for a in compared if a.case is not None]
        seen = [_seen(a) for a in asked]
        groups = elements_of(self.profile, seen)
        if not groups:
            return {}
        call, place = (np.concatenate([getattr(g, name) for g in groups]) for name in ("call", "place"))
        if self.region is None or any(p.words for p in self.parts):
            given = self._foretold(groups, seen)
        else:
            given = self._as_claimed(groups) | np.array([self.region.holds(a.shape) for a in asked])[call]
        call, place = call[~given], place[~given]
        return {id(asked[number]): place[call == number] for number in np.unique(call).tolist()}

    def _foretold(self, groups: Sequence[Elements], seen: Sequence[Observed]) -> Array:
        """Which answers come as the parts say, each in its region; what a part without a model says is nothing."""
        facts, own = facts_of(groups, seen), self._as_claimed(groups)
        given = [(p if p.model is None else self._whole(p)).given(groups) for p in self.parts]
        if any(_is_factor(p) for p in self.parts):
            return own | self._has_factors(seen)
        # Of several regions that hold an element the innermost says what is done there.
        depth, good = np.full(facts.call.size, -1), own
        for part, gives in zip(self.parts, given, strict=True):
            mask = np.logical_and.reduce([np.ones(facts.call.size, bool), *(r.mask(facts) for r in part.where)])
            level = len(part.where)
            told = gives | (part.model is None)
            good = np.where(mask & (depth < level), told, good | (mask & (depth == level) & told))
            depth = np.where(mask, np.maximum(depth, level), depth)
        either = np.logical_or.reduce([*given, np.zeros(facts.call.size, bool)])
        # Of a limit it is known only between which numbers it lies.
        return np.asarray(good | (either & np.logical_or.reduce([r.open(facts) for p in self.parts for r in p.where])))

    def _as_claimed(self, groups: Sequence[Elements]) -> Array:
        """Which answers the profile gives."""
        return Part((), self.profile.model, "", {}, "", 1.0).given(groups)

    def _has_factors(self, seen: Sequence[Observed]) -> bool:
        """Whether there are factors for all answers, these too: each scale has its own, so no model foretells them."""
        known = [a for s in self.samples for a in s.observed(self.subject)]
        return factors(self.profile.model, elements_of(self.profile, [*known, *seen])) is not None

    def _whole(self, part: Part) -> Part:
        """A part with all that it says: of a profile that it names all choices, not only those that mattered."""
        if not part.profile or part.profile == self.profile.name:
            return part
        return replace(part, model=replace(PROFILES[part.profile].model, sign=self.profile.model.sign))

    def _needed(self, answers: Sequence[Observed]) -> list[Part] | None:
        """The parts that give the answers that differ, the one that gives most of them first; None where some stay."""
        wrong = [np.asarray([], int) if a.where is None else a.where for a in answers]
        left = {(i, int(w)) for i, some in enumerate(wrong) for w in some}
        if not left:
            return None
        gives = {}
        for place, part in enumerate(self.parts):
            masks = [self._given(part, a) if len(w) else np.zeros(0, bool) for a, w in zip(answers, wrong, strict=True)]
            gives[place] = {(i, w) for i, w in left if masks[i][w]}
        needed = []
        while left and gives:
            best = max(gives, key=lambda p: len(gives[p] & left))
            covered = gives.pop(best) & left
            if covered:
                needed.append(self.parts[best])
                left -= covered
        lost = [p for p in self.parts if p.model is None and p.words]
        return None if left and not lost else [*needed, *(lost if left else [])]

    def _causes(self, part: Part, answers: Sequence[Observed]) -> tuple[Cause, ...]:
        if part.model is None or not part.words:
            return _without_model(self.profile.model, part)
        wanted = [self._given(part, a) for a in answers]

        def fits(names: tuple[str, ...]) -> bool:
            given = (self._given(self._with(part, names), a) for a in answers)
            return all((g | ~w).all() for g, w in zip(given, wanted, strict=True))

        return self._named(part, fewest(_names(part), fits))

    def _named(self, part: Part, names: Sequence[str]) -> tuple[Cause, ...]:
        """The causes that some of a part's choices are."""
        assert part.model is not None, "it has choices"
        where = self._place(part)
        found = choices(self.profile.model, part.model, [n for n in names if n != _READING], where)
        if _READING not in names:
            return found
        return (Cause(reading_code(part.reading), other()["reading"][part.reading][1], where), *found)

    def _with(self, part: Part, names: Sequence[str]) -> Part:
        """The part with some of its choices, and else as claimed."""
        changed = {n: getattr(part.model, n) for n in names if n != _READING}
        model = replace(self.profile.model, **changed)
        return replace(part, model=model, reading=part.reading if _READING in names else "")

    def _tests(self, cause: Cause) -> Iterator[Callable[[Observed], Array]]:
        """Which elements show a cause: given with it alone, those that need it first; then given beside others."""
        parts = (p for p in self.parts if p.model is not None)
        found = next(((p, n) for p in parts for n in _names(p) if self._named(p, (n,)) == (cause,)), None)
        if found is None:
            return
        part, name = found
        only, rest = self._with(part, (name,)), self._with(part, [n for n in _names(part) if n != name])
        yield partial(self._given_but, only, rest)
        yield partial(self._given, only)
        yield partial(self._given_but, part, rest)

    def _given_but(self, part: Part, other: Part, seen: Observed) -> Array:
        """Which of the answers a part gives, and another does not."""
        return np.asarray(self._given(part, seen) & ~self._given(other, seen))

    def _place(self, part: Part) -> str:
        """Where a part holds, in words: that which has no words of its own is what the others leave."""
        level = len(part.where)
        inner = [p for p in self.parts if len(p.where) > level and all(map(_holds, part.where, p.where))]
        others = list(dict.fromkeys(p.where[level:] for p in inner))
        if len(others) == 1 and len(others[0]) == 1:
            said = others[0][0].outside
        else:
            said = f"outside of {' and of '.join(map(words_of, others))}" if others else ""
        return ": ".join(filter(None, (part.place, said)))

    def _unknown(self) -> Told:
        words, share = self._nearest()
        if (region := self.region) is not None:
            only = Cause(region.code, "gives other answers", region.words)
            return Told("differs", f"differs only with {region.words}", (only,))
        cause = unknown(words, share)
        return Told("differs", said([cause]), (cause,))

    def _nearest(self) -> tuple[str, float]:
        """What gives the most of the answers, in words, and how many; of what was refuted as of any other."""
        found = self.explanation
        if found is None:
            return "", 0.0
        if found.nearest is not None:
            return found.nearest.words, found.nearest.share
        answers = [a for s in self.samples for a in s.observed(self.subject)]
        given = [np.logical_or.reduce([self._given(part, a) for part in found.parts]) for a in answers]
        tried = [(found.words, float(np.concatenate(given).mean()) if given else 0.0)]
        groups, claimed = elements_of(self.profile, answers), self.profile.model
        for model in dict.fromkeys(p.model for p in found.parts if p.model is not None and p.words and groups):
            everywhere = np.concatenate([g.given_by(model) for g in groups])
            tried.append((claimed.against(model), float(everywhere.mean())))
        words, share = max(tried, key=lambda pair: pair[1])
        return words, share if words else 0.0

    def _given(self, part: Part, seen: Observed) -> Array:
        """Which of the answers a part gives in its own region, as a vector of booleans."""
        groups = elements_of(self.profile, [seen])
        if not groups:
            return np.zeros(seen.value.size, bool)
        facts = facts_of(groups, [seen])
        return np.asarray(
            np.logical_and.reduce([part.given(groups), *(r.mask(facts) | r.open(facts) for r in part.where)])
        )


def _names(part: Part) -> list[str]:
    """The choices of a part, an argument read otherwise the first."""
    return [*((_READING,) if part.reading else ()), *part.changes]


def _elements(seen: Observed, shown: Array) -> Iterator[Case]:
    """Those elements of an answer that differ and are shown, each alone."""
    case = seen.case
    for i in np.asarray(seen.where)[shown[seen.where]]:
        scale, zero = (p[i : i + 1].reshape(()) for p in (case.scale, case.zero))
        yield Case(replace(case.configuration, shape=(1,)), case.x[i : i + 1], scale, zero)


def _decides(shows: Callable[[Observed], Array], e: Evidence, t: Trial) -> bool:
    """Whether the element that a trial shows is such a one."""
    if t.difference.comparison is None:
        return False
    return bool(shows(Observed(case_of(e, t.call), np.asarray(t.actual.value), shape=t.call.shape))[t.at])


def _seen(asked: Judged) -> Observed:
    assert asked.case is not None, "an operation's"
    said: Any = shared(asked.case, asked.shape)
    configuration = replace(asked.case.configuration, granularity=said)
    return Observed(replace(asked.case, configuration=configuration), asked.actual.value, shape=asked.shape)


def _holds(outer: Region, inner: Region) -> bool:
    """Whether a region is another one, or of some of what that is of."""
    return outer.kind == inner.kind and {*inner.of} <= {*outer.of}


def _is_factor(part: Part) -> bool:
    """Whether it multiplies by another factor than 1/s, for which there is no model."""
    return part.model is None and "division" in part.changes


def _without_model(claimed: EvaluationModel, part: Part) -> tuple[Cause, ...]:
    """The causes of a part that has no model: the choices that are known of it, or where it is."""
    if part.changes:
        first, *_ = part.words.split("; ")
        known = claimed.choices()
        return tuple(
            Cause(
                code_of(name, does, claimed),
                first if does == "another factor" else f"{known[name][does]} where the document {known[name][says]}",
                part.place,
            )
            for name, (says, does) in part.changes.items()
        )
    code = part.where[-1].code if part.where else region_code("")
    return (Cause(code, part.words or "gives other answers", part.place),)
