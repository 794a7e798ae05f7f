"""What is left of a program when choices are known: equal texts are equal functions, and different choices show."""

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.fingerprints.formulas import program
from halfeven.conformance.fingerprints.residual import residual
from halfeven.conformance.systems import call_sets
from halfeven.reference import FORMULAS
from halfeven.reference.catalogue import Formula
from halfeven.reference.model import EvaluationModel, quantize

CHOOSING = [f for f in FORMULAS.values() if f.behaviour is not None and not f.version][::6]


def test_a_choice_that_is_not_read_leaves_no_trace() -> None:
    plain = EvaluationModel()
    assert residual(quantize, {"model": plain}) == residual(quantize, {"model": replace(plain, inverse="float16")})
    assert residual(quantize, {"model": plain}) != residual(quantize, {"model": replace(plain, rounding="floor")})
    by = replace(plain, division="reciprocal")
    assert residual(quantize, {"model": by}) != residual(quantize, {"model": replace(by, inverse="float16")})


@pytest.mark.parametrize("formula", CHOOSING, ids=lambda f: f.id)
def test_points_of_one_program_give_the_same(formula: Formula) -> None:
    """Of every formula: where two neighbours leave the same text, no call of its requirements tells them apart."""
    asked = [a for (name, _), c in call_sets().items() if name == formula.id for a in islice(c.build(), 12)]
    assert formula.behaviour is not None
    for near in formula.behaviour.neighbours():
        if program(formula.id, near) == program(formula.id, formula.behaviour):
            for a in asked:
                one, other = (answer_of(formula.at(point), a) for point in (near, formula.behaviour))
                assert not differences(one, other).differing


def test_a_loop_and_a_branch_that_is_open_are_kept() -> None:
    text = residual(quantize, {})
    assert "model" in text
    assert "with np.errstate" in residual(_open, {"a": 1}) or "numpy" in residual(_open, {"a": 1})
    assert residual(_open, {"a": 1}) == residual(_open, {"a": 2})
    assert residual(_open, {"a": 1}) != residual(_open, {"a": 3})


def _open(a, x):
    found = []
    with np.errstate(all="ignore"):
        for one in x:
            if a in {1, 2}:
                found.append(one)
            else:
                found.append(-one)
    return found
