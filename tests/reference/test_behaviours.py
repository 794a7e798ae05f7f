"""Behaviours: a value is checked, words say a difference, and every choice is decided by a call of its formula."""

from dataclasses import dataclass, replace

import pytest

from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.systems import call_sets
from halfeven.reference import FORMULAS
from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.catalogue import Formula

CALLS = call_sets()


CHOOSING = [f for f in FORMULAS.values() if f.behaviour is not None and not f.version]


@dataclass(frozen=True)
class Toy(Behaviour):
    """Two choices."""

    sign: str = choice({"kept": "keeps the sign", "lost": "drops the sign"})
    rounding: str = roundings("the sum")


def test_a_behaviour_is_its_choices() -> None:
    assert Toy() == Toy(sign="kept", rounding="half-even")
    assert [n.sign for n in Toy().neighbours()] == ["lost", *["kept"] * 7]
    assert Toy().changes(Toy(sign="lost")) == {"sign": ("kept", "lost")}
    words = "drops the sign where the document keeps the sign"
    assert Toy().against(Toy(sign="lost")) == words
    assert Toy().against(Toy(sign="lost", rounding="floor")).startswith(f"{words}; rounds the sum, down where")
    with pytest.raises(ValueError, match="sign='gone' is not accepted: give one of 'kept', 'lost'"):
        Toy(sign="gone")


@pytest.mark.parametrize("formula", CHOOSING, ids=lambda f: f.id)
def test_every_choice_is_decided_by_a_call(formula: Formula) -> None:
    """Another choice than the document's, in the document or in a version, answers some call otherwise.

    Else no evidence could ever speak for the choice.
    """
    asked = [a for (name, _), c in CALLS.items() if name == formula.id for a in c.build()]
    own, kind = formula.behaviour, type(formula.behaviour)
    undecided = {(n, v) for n, words in kind.choices().items() for v in words if v != getattr(own, n)}
    for point in (f.behaviour for f in FORMULAS.versions(formula.id) if type(f.behaviour) is kind):
        known: dict[Behaviour, list[Answer]] = {}
        for name, value in sorted(undecided, key=str):
            here, function = replace(point, **{name: getattr(own, name)}), formula.at(replace(point, **{name: value}))
            if here not in known:
                known[here] = [answer_of(formula.at(here), a) for a in asked]
            if any(differences(k, answer_of(function, a)).differing for k, a in zip(known[here], asked, strict=True)):
                undecided.discard((name, value))
    assert undecided == set()


def test_there_are_behaviours_and_versions_are_points() -> None:
    versions = [f for f in FORMULAS.values() if f.version]
    points = [f for f in versions if f.behaviour is not None]
    assert len(CHOOSING) > 40
    assert len(points) > len(versions) / 2
    assert all(f.behaviour != FORMULAS[f.id.partition("@")[0]].behaviour for f in points)
