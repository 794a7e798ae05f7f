"""Codes explained: each has a sentence, each of an affine choice a reason and an example that is run."""

import re
from pathlib import Path

import pytest

from halfeven.conformance import codes
from halfeven.conformance.cli import main
from halfeven.conformance.explaining.code import every_code, explain_code
from halfeven.reference import FORMULAS
from halfeven.reference.model import EvaluationModel
from halfeven.reference.systems import PROFILES

LEDGER = Path(__file__).parents[1] / "codes.txt"
AFFINE = [codes.code_of(c, v) for c, words in EvaluationModel.choices().items() for v in words]


@pytest.mark.parametrize("code", AFFINE)
def test_an_affine_code_is_told_in_full(code: str) -> None:
    found = explain_code(code)
    assert " where the document " in found.sentence
    assert found.why.endswith(".")
    assert found.help
    assert found.example is not None, "tools: an example is an input that the two sides tell apart"
    document, does = found.example.results
    assert document != does
    changed = found.example.document.changes(found.example.does)
    assert [codes.code_of(name, value) for name, (_, value) in changed.items()] == [code]
    text = str(found)
    assert document in text
    assert does in text
    assert max(map(len, text.splitlines())) <= 110, text


def test_every_code_has_a_sentence_of_its_own_kind() -> None:
    known = every_code()
    listed = {line.split()[0] for line in LEDGER.read_text(encoding="utf-8").splitlines()}
    assert listed <= set(known)
    assert len(known) > 900
    for code, found in known.items():
        assert re.fullmatch(r"HE\d{3,4}", code)
        assert found.code == code
        assert found.sentence
        assert not found.sentence.endswith(".")
        assert str(found).startswith(f"{code} ")


def test_who_does_so() -> None:
    found = explain_code("HE101")
    assert {"torchao@0.18", "torch.quantize@2.13"} <= set(found.known)
    assert "onnx" not in found.known
    assert "claim torch.fake_quantize@2.13 or torch.quantize@2.13" in str(found)
    assert "onnx/QuantizeLinear: division" in found.choices
    eps = FORMULAS["torchao/choose_qparams_affine@0.17"].behaviour
    code = codes.code_of("eps", eps.eps, eps)
    assert "torchao/choose_qparams_affine@0.17" in explain_code(code).known
    for name in explain_code("HE161").known:
        if name in PROFILES:
            assert PROFILES[name].model.sign == "q+o"


def test_the_release_that_does_as_its_document_says_is_no_claim() -> None:
    assert "claim" not in str(explain_code("HE110"))


def test_one_that_is_unknown_gets_the_nearest() -> None:
    for wrong in ("HE177", "HE1", "HE99999", "HE-1", "101", ""):
        with pytest.raises(ValueError, match="halfeven list codes"):
            explain_code(wrong)


def test_what_a_profile_does_is_no_accusation(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["list", "codes", "--profile", "torchao@0.18"]) == 0
    shown = capsys.readouterr().out
    assert "multiplies by 1/s" in shown
    assert "where the document" not in shown
