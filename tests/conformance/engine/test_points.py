"""A difference is explained as a point: what one choice changes is found, and what no choice does is not."""

import random
import time
from dataclasses import replace
from itertools import count

import numpy as np
import pytest

from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.engine.points import nearest_point
from halfeven.conformance.requirement import Arguments
from halfeven.conformance.systems import call_sets
from halfeven.reference import FORMULAS
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.catalogue import Formula

CHOOSING = [f for f in FORMULAS.values() if f.behaviour is not None and not f.version]


def asked(formula: Formula, behaviour: Behaviour) -> list[tuple[Arguments, Answer]]:
    calls = [a for (name, _), c in call_sets().items() if name == formula.id for a in c.build()]
    return [(a, answer_of(formula.at(behaviour), a)) for a in calls]


@pytest.mark.parametrize("formula", CHOOSING[::3], ids=lambda f: f.id)
def test_one_choice_that_is_another_is_found(formula: Formula) -> None:
    assert formula.behaviour is not None
    near = random.Random(formula.id).choice(list(formula.behaviour.neighbours()))
    found = nearest_point(formula, asked(formula, near))
    assert found is not None
    assert len(formula.behaviour.changes(found)) == 1
    assert "where the document" in formula.behaviour.against(found)


def test_a_release_with_one_choice_more_is_found_though_it_is_far_from_the_document() -> None:
    formula = FORMULAS["bitsandbytes/quantize_4bit"]
    release = FORMULAS["bitsandbytes/quantize_4bit@0.50"].behaviour
    assert release is not None
    swapped = replace(release, halves="low-first")
    rows = asked(formula, swapped)
    begin = time.process_time()
    assert nearest_point(formula, rows, 600.0) is None  # four choices
    assert time.process_time() - begin < 300
    assert nearest_point(formula, rows, 600.0, [release]) == swapped


def test_a_release_has_time_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    formula = FORMULAS["bitsandbytes/quantize_4bit"]
    release = FORMULAS["bitsandbytes/quantize_4bit@0.50"].behaviour
    assert release is not None
    rows, now = asked(formula, release), count()
    monkeypatch.setattr(time, "process_time", lambda: next(now))  # a second for each point that is looked at
    assert nearest_point(formula, rows, 4.0) is None
    assert nearest_point(formula, rows, 8.0, [release]) == release


def test_the_document_itself_is_no_difference() -> None:
    formula = FORMULAS["torch/MinMaxObserver.calculate_qparams"]
    assert formula.behaviour is not None
    assert nearest_point(formula, asked(formula, formula.behaviour)) == formula.behaviour


def test_what_no_choice_does_has_no_point() -> None:
    formula = FORMULAS["torch/MinMaxObserver.calculate_qparams"]
    assert formula.behaviour is not None
    rows = asked(formula, formula.behaviour)
    given, seen = rows[0]
    first, *others = seen.value
    off = replace(seen, value=(np.asarray(first) + 1, *others))
    assert nearest_point(formula, [(given, off), *rows[1:]]) is None


def test_a_formula_without_a_behaviour_has_no_point() -> None:
    formula = next(f for f in FORMULAS.values() if f.behaviour is None)
    assert nearest_point(formula, []) is None
