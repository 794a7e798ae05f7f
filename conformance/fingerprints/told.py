"""What is told of an operation: each choice as far as the models that remain decide it, region by region if need be."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.engine.explain import Part
from halfeven.conformance.fingerprints.cubes import holds
from halfeven.conformance.fingerprints.models import FIELDS, Asked, of_model
from halfeven.conformance.fingerprints.proof import Proved, proved
from halfeven.conformance.fingerprints.regions import Regional, explained, regional
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED, Fingerprint, Nearest, Witnessed
from halfeven.conformance.fingerprints.search import Search, Seen, alone, splitting, values
from halfeven.conformance.fingerprints.subject import Subject, differ
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES, has_own_operations

__all__ = ["told"]

_SHOWN = 6  # answers to NaN
_AGAIN = 4  # times that an input is asked for which a proof fails
_ENDS = ("overflow", "integer", "clamp")  # what shows at the ends of the grid and beyond


def told(subject: Subject, search: Search, name: str) -> Fingerprint:
    """Each choice with its value, or why it has none; with what gives all that was answered, or gives most of it."""
    a, asking = subject.asked, subject.asking
    about, read = f"{a.operation}, {a.dtype.name}, {a.grid}", FIELDS[a.operation]
    if subject.odd:
        asking.note(f"no known behaviour: it {subject.odd}")
    if not search.seen or subject.odd:
        return Fingerprint(name, about, dict.fromkeys(read, UNDECIDED), calls=asking.calls, refused=asking.notes())
    known = not (search.against and subject.takes_amax)  # no model multiplies by qmax / amax: a region would be chance
    apart = [seen for _, seen in subject.apart]
    if known and (subject.uneven or subject.elsewhere or search.against or apart):
        found = _in_parts(subject, [*search.seen, *subject.elsewhere, *apart], name, about)
        if found is not None:
            return found
    return _everywhere(subject, search, name, about)


def _in_parts(subject: Subject, seen: Sequence[Seen], name: str, about: str) -> Fingerprint | None:
    """What is told where no model gives all answers; None where nothing is known that does."""
    numbers = [s.at(np.flatnonzero(s.numbers)) for s in seen]
    elsewhere = bool(subject.uneven or subject.elsewhere)
    apart = bool(subject.apart) and not elsewhere
    for evidence in (seen, numbers):
        found = explained(evidence)
        parts = regional(found, evidence, apart=apart, calls=elsewhere)
        if parts is not None:
            fields = dict(parts.fields)
            if evidence is numbers and "nan" in fields:
                fields["nan"] = UNDECIDED
            return _by_region(subject, replace(parts, fields=fields), seen, name, about)
        if found is not None and found.parts and found.parts[0].model is None and not apart:
            return _by_factor(subject, found.parts[0], name, about)
    if not elsewhere:
        return None
    subject.asking.note(
        "the same is answered otherwise in other calls or places, and no region was found: it may depend on position, "
        "size, layout, the other elements, or the calls before"
    )
    fields = dict.fromkeys(FIELDS[subject.asked.operation], UNDECIDED)
    return Fingerprint(name, about, fields, calls=subject.asking.calls, refused=subject.asking.notes())


def _everywhere(subject: Subject, search: Search, name: str, about: str) -> Fingerprint:
    """What is told of all answers as one."""
    a, asking = subject.asked, subject.asking
    words, read = EvaluationModel.choices(), FIELDS[a.operation]
    nan, proof, known = _judged(subject, search)
    certain = bool(proof.pairs) and not proof.open
    decided = {n: known[n][0] for n in read if len(known[n]) == 1}
    left = {n: known[n] for n in read if len(known[n]) > 1}
    same = [n for n in left if certain and n not in proof.beyond]
    fields: dict[str, Any] = {n: decided.get(n, INDISTINGUISHABLE if n in same else UNDECIDED) for n in read}
    if search.against:  # what was found elsewhere says nothing of the arithmetic, nor the arithmetic of the ends
        lost = _ENDS if _arithmetic_stands(search) else read
        fields |= {n: UNDECIDED for n in lost if n in fields}
        decided = {n: v for n, v in decided.items() if n not in lost}
    if not nan:
        fields["nan"], said = _of_nan(search)
        asking.note(f"{said}, as no known behaviour does: NaN is left out of what agrees")
        decided.pop("nan", None)
    for where, _ in subject.apart:
        asking.note(f"{where} it answers otherwise than what is told, as no known behaviour that gives the rest")
    if subject.apart:
        fields |= {n: UNDECIDED for n in _ENDS if n in fields}
        decided = {n: v for n, v in decided.items() if n not in _ENDS}
    otherwise = search.against or subject.beyond or subject.apart or subject.rounded
    profiles = [] if otherwise else list(_profiles(search, nan=nan))
    return Fingerprint(
        name=name,
        about=about,
        fields=fields,
        alternatives={n: v for n, v in left.items() if n != "nan" or nan},
        witnesses={n: w for n in decided if (w := _witnessed(search, n)) is not None},
        proofs=dict.fromkeys(same, proof.words(a)) if same else {},
        profiles=tuple(profiles),
        nearest=_nearest(search, profiles, [seen for _, seen in subject.apart], nan=nan),
        calls=asking.calls,
        refused=(*asking.notes(), *(["proved nothing: " + proof.open] if proof.open and left else [])),
        words={n: words[n][v] for n, v in decided.items()},
    )


def _of_nan(search: Search) -> tuple[str, str]:
    """What becomes of NaN, where no model gives it: the value of the choice, and the same in a sentence."""
    given = {(_number(v), int(s.given.zero)): None for s in search.nan for v in s.value}
    first, *others = dict.fromkeys(value for value, _ in given)
    if not others:
        return f"gives {first}", f"gives {first} for NaN"
    some = ", ".join(f"{value} with zero point {zero}" for value, zero in [*given][:_SHOWN])
    return UNDECIDED, f"gives for NaN {some}{', ...' if len(given) > _SHOWN else ''}"


def _by_region(subject: Subject, parts: Regional, seen: Sequence[Seen], name: str, about: str) -> Fingerprint:
    """What is told where it depends on the region; the nearest behaviour is that of all the rest."""
    words = EvaluationModel.choices()
    return Fingerprint(
        name=name,
        about=about,
        fields=parts.fields,
        alternatives=parts.alternatives,
        nearest=Nearest(_textbook(parts.words), _share(parts.rest, seen)),
        calls=subject.asking.calls,
        refused=(*subject.asking.notes(), f"it is computed otherwise in one region: {parts.where}"),
        words={n: words[n][v] for n, v in parts.fields.items() if v in words[n]},
    )


def _by_factor(subject: Subject, part: Part, name: str, about: str) -> Fingerprint:
    """What is told where no model gives the answers, but one with a factor of its own for each scale."""
    fields = dict.fromkeys(FIELDS[subject.asked.operation], UNDECIDED)
    fields |= {n: new for n, (_, new) in part.changes.items() if n in fields}
    return Fingerprint(
        name=name,
        about=about,
        fields=fields,
        nearest=Nearest(_textbook(part.words), part.share),
        calls=subject.asking.calls,
        refused=subject.asking.notes(),
        words={"division": _textbook(part.words)},
    )


def _judged(subject: Subject, search: Search) -> tuple[bool, Proved, Mapping[str, tuple[Any, ...]]]:
    """Whether a model gives what came of NaN, what is proved of all that remains, and the values of each choice.

    Where a proof fails for an input, that input is asked. Where it holds, all that remains is one function, and each
    choice is judged with the others as in the simplest model.
    """
    nan = search.take_nan()
    if search.late:
        subject.asking.note("too many models to follow them through every answer: less is decided than was asked")
    if search.against or search.late:
        return nan, Proved(()), values(search.cubes)
    proof = proved(search, subject.pairs, nan=nan)
    straight = search.first().returned == "reals"
    for _ in range(_AGAIN if straight else 0):
        if proof.split is None or subject.uneven or subject.asking.spent:
            break
        seen = subject.seen(splitting([search.first()], subject.asked, *proof.split))
        if seen is None:
            break
        search.take(seen)
        proof = proved(search, subject.pairs, nan=nan)
    known = values(search.cubes)
    if not straight and proof.open:  # far beyond the grid little of the code is left in x + (x̂ - x)
        near, ends = proved(search, subject.pairs, far=False), (*_ENDS, "nan")
        if near.pairs and not near.open:
            own = {n: v for n, v in alone(search.cubes, search.first()).items() if n not in ends}
            return nan, replace(near, beyond=ends), {**known, **own}
    certain = bool(proof.pairs) and not proof.open
    return nan, proof, alone(search.cubes, search.first()) if certain else known


def _arithmetic_stands(search: Search) -> bool:
    """Whether, where nothing gives all answers, some model that remains gives those whose codes are amid the grid."""
    if search.asked.operation == "dequantize" or any(s.given.moderate for s in search.against):
        return False
    amid = []
    for s in search.seen:
        with np.errstate(all="ignore"):
            code = s.given.x.astype(np.float64) / s.given.step + s.given.zero
        grid = search.asked.grid
        amid.append(s.at(np.flatnonzero((code >= grid.qmin + 2) & (code <= grid.qmax - 2))))
    tried = dict.fromkeys([search.first(), *search.drawn(16, 0)])
    return any(_share(m, amid) == 1 for m in tried)


def _profiles(search: Search, *, nan: bool = True) -> Iterator[str]:
    """The profiles whose model remains; without ``nan``, whatever they do with NaN."""
    a, own = search.asked, EvaluationModel()
    for profile in PROFILES.values():
        if (
            (profile.parameters[0] == "amax") is a.per_real
            and a.operation in profile.operations
            and has_own_operations(profile.name)
        ):
            model = replace(own, **{n: getattr(profile.model, n) for n in FIELDS[a.operation]})
            model = model if nan else replace(model, nan=search.cubes[0]["nan"][0])
            known = any(holds(cube, model) for cube in search.cubes) and _fits(profile, a)
            if known and (not search.late or _share(model, search.seen, nan=nan) == 1):
                yield profile.name


def _fits(profile: Profile, asked: Asked) -> bool:
    return asked.dtype.name in profile.dtypes and profile.accepts(asked.grid)


def _said(model: EvaluationModel) -> str:
    return _textbook(EvaluationModel().against(model))


def _textbook(words: str) -> str:
    return words.replace("where the document", "where the textbook") or "the textbook"


def _nearest(search: Search, profiles: Sequence[str], apart: Sequence[Seen] = (), *, nan: bool = True) -> Nearest:
    """The model that gives most; where all is given, one that does, by the fewest changes to the textbook."""
    if not search.against:
        model = search.first()
        return Nearest(_said(model), _share(model, [*search.seen, *apart], nan=nan), next(iter(profiles), ""))
    tried = list(dict.fromkeys([search.first(), *search.drawn(16, 0)]))
    best = max(tried, key=lambda m: _share(m, search.seen[:3]))
    share = _share(best, search.seen, nan=nan)
    own = EvaluationModel()
    for name in own.changes(best):  # those alone without which it gives less
        fewer = replace(best, **{name: getattr(own, name)})
        if (of_fewer := _share(fewer, search.seen, nan=nan)) >= share:
            best, share = fewer, of_fewer
    return Nearest(_said(best), share)


def _share(model: EvaluationModel, seen: Sequence[Seen], *, nan: bool = True) -> float:
    same = every = 0
    for s in seen:
        judged = s.numbers | nan
        same += int((~differ(of_model(model, s.given), s.value) & judged).sum())
        every += int(judged.sum())
    return same / every if every else 0.0


def _witnessed(search: Search, name: str) -> Witnessed | None:
    """Of the inputs the first at which the model with another value of this choice gives something else."""
    model = search.first()
    values_: Any = EvaluationModel.choices()[name]
    for other in values_:
        if other == getattr(model, name):
            continue
        for seen in search.seen:
            instead = of_model(replace(model, **{name: other}), seen.given).astype(np.float64)
            told = np.flatnonzero(differ(instead, of_model(model, seen.given)))
            if told.size:
                return _shown(seen, int(told[0]), instead, str(other))
    return None


def _shown(seen: Seen, i: int, instead: Array, other: str) -> Witnessed:
    g = seen.given
    first = "q" if g.asked.operation == "dequantize" else "x"
    given = f"{first} {_number(g.x[i])}, scale {_number(g.scale)}, zero point {int(g.zero)}"
    return Witnessed(given, _number(seen.value[i]), _number(instead[i]), other)


def _number(value: Any) -> str:
    number = float(np.asarray(value).astype(np.float64))
    return f"{number:.0f}" if number.is_integer() and abs(number) < 2**24 else f"{number!r} ({number.hex()})"
