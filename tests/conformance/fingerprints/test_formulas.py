"""The fingerprint of every formula in the catalogue is the formula, and that of every version is the version."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import fingerprint
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED
from halfeven.reference import FORMULAS
from halfeven.reference.catalogue import Formula

PAGE = Path(__file__).parents[3] / "docs/fingerprint.md"
CHOOSING = [f for f in FORMULAS.values() if f.behaviour is not None and not f.version]
#: Choices of which several values remain: no input that was tried tells them apart, and the programs are not one.
OPEN = {
    "torch/fake_quantize_per_tensor_affine@2.13": {"subtract"},
    "torch/fake_quantize_per_channel_affine@2.13": {"nan", "subtract"},
    "torchao/from_hp_to_floatx@0.17": {"power"},
    "torchao/from_hp_to_intx@0.11": {"choosing"},
    "torchao/from_hp_to_intx@0.17": {"choosing"},
    "torchao/from_hp_to_intx_static@0.11": {"primitives"},
    "torchao/from_hp_to_intx_static@0.17": {"primitives"},
}


def test_the_page_says_how_many_are_asked() -> None:
    asked = [f for c in CHOOSING for f in FORMULAS.versions(c.id) if type(f.behaviour) is type(c.behaviour)]
    assert f"all {len(asked)} formulas and versions that have choices" in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("documented", CHOOSING, ids=lambda f: f.id)
def test_the_fingerprint_of_a_formula_is_the_formula(documented: Formula) -> None:
    for formula in FORMULAS.versions(documented.id):
        if type(formula.behaviour) is not type(documented.behaviour):
            continue
        found = fingerprint(formula.function, array="numpy", formula=documented.id)
        assert found.explained
        assert formula.id in found.profiles
        assert found.calls < 200
        open_ = {n for n, v in found.fields.items() if v == UNDECIDED}
        assert open_ <= OPEN.get(formula.id, set())
        for name, value in found.fields.items():
            own = getattr(formula.behaviour, name)
            assert value == own or (value in {UNDECIDED, INDISTINGUISHABLE} and own in found.alternatives[name])
        assert set(found.proofs) == {n for n, v in found.fields.items() if v == INDISTINGUISHABLE}


def test_a_point_that_nobody_documents_is_found() -> None:
    formula = FORMULAS["gguf/Q8_0.quantize"]
    assert formula.behaviour is not None
    for point in list(formula.behaviour.neighbours())[:4]:
        found = fingerprint(formula.at(point), array="numpy", formula=formula.id)
        assert found.fields == {name: getattr(point, name) for name in point.choices()}
        changed = next(iter(formula.behaviour.changes(point)))
        assert found.words[changed] == point.choices()[changed][getattr(point, changed)]


def test_what_no_point_gives_has_a_nearest_one() -> None:
    formula = FORMULAS["gguf/Q8_0.quantize"]

    def off(**given):
        codes = np.array(formula.function(**given))
        if codes.size:
            codes.reshape(-1)[-1] ^= 1
        return codes

    found = fingerprint(off, array="numpy", formula=formula.id)
    assert found.nearest is not None
    assert 0 < found.nearest.share < 1
    assert found.profiles == ()


def test_a_witness_decides_each_choice() -> None:
    formula = FORMULAS["torchao/choose_qparams_affine_with_min_max"]
    assert formula.behaviour is not None
    point = next(formula.behaviour.neighbours())
    found = fingerprint(formula.at(point), array="numpy", formula=formula.id)
    assert set(found.witnesses) == {n for n, v in found.fields.items() if v not in {UNDECIDED, INDISTINGUISHABLE}}


def test_a_function_of_other_arguments_is_not_accepted() -> None:
    with pytest.raises(TypeError, match="torchao/choose_qparams_affine is called by keyword, with input, "):
        fingerprint(lambda x, s: x / s, array="numpy", formula="torchao/choose_qparams_affine")


def test_a_function_that_only_raises_is_not_asked_every_call() -> None:
    def nowhere(**given: Any) -> Any:
        return given["x"]

    found = fingerprint(nowhere, array="numpy", formula="torchao/choose_qparams_affine")
    assert found.calls <= 18
    assert found.profiles == ()
    assert set(found.fields.values()) == {UNDECIDED}
    assert any("KeyError" in note for note in found.refused)
