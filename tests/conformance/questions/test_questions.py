"""Questions on a toy set of backends, and the pages of the repository against their record."""

import dataclasses
import json
from pathlib import Path

import pytest

from halfeven.conformance.cli import main
from halfeven.conformance.commands.questions import asked
from halfeven.conformance.explaining.given import TEXTBOOK
from halfeven.conformance.questions.asking import _given, _predicted, columns
from halfeven.conformance.questions.pages import QUESTIONS, RECORD, Answers, pages, write
from halfeven.conformance.questions.question import FunctionQuestion, OperationQuestion, Row
from halfeven.reference import FORMULAS, Grid
from halfeven.reference.model import EvaluationModel

ROOT = Path(__file__).parents[3]
TOYS = """
import numpy as np
from halfeven.conformance import Unsupported
from halfeven.reference import FORMULAS

class Right:
    profile, array = "onnx", "numpy"
    granularities = ("tensor",)

    def quantize(self, x, scale, zero_point, *, qmin, qmax):
        with np.errstate(all="ignore"):
            v = np.rint(self.quotient(x, scale)).astype(np.float64) + zero_point
            return np.clip(np.nan_to_num(v, nan=qmin), qmin, qmax).astype(np.int8)

    def quotient(self, x, scale):
        return x / scale

class Reciprocal(Right):
    def quotient(self, x, scale):
        return x * (np.float32(1) / scale)

class Away(Right):
    def quotient(self, x, scale):
        v = x / scale
        return np.trunc(v + np.copysign(np.float32(0.5), v))

class Odd(Right):
    def quotient(self, x, scale):
        return x / scale + np.float32(7)

class Raises(Right):
    def quotient(self, x, scale):
        raise RuntimeError("no kernel")

class Refuses(Right):
    def quotient(self, x, scale):
        raise Unsupported("not on this device")

class Dies(Right):
    def quotient(self, x, scale):
        import os
        os._exit(3)

class Dynamic:
    profile, array = "onnx", "numpy"
    functions = {"onnx/DynamicQuantizeLinear": lambda x: (np.zeros(x.shape, np.uint8), np.float32(1), np.uint8(0))}
"""


@pytest.fixture
def toys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toys.py").write_text(TOYS, encoding="utf-8")
    return tmp_path


def test_rows_are_made_of_answers(toys: Path) -> None:
    names = ["Right", "Reciprocal", "Away", "Odd", "Raises", "Refuses", "Dies"]
    found = asked([f"toys:{n}" for n in names], ["division", "nan", "empty"], 30.0)
    assert found.absent == {}
    by = dict(zip(names, found.rows["division"], strict=True))
    assert by["Right"].cells == by["Right"].document == ("15", "100", "-15", "30")
    assert by["Right"].does == "divides by s"
    assert not by["Right"].surprising
    assert by["Reciprocal"].cells[0] == "16"
    assert by["Reciprocal"].does == "multiplies by 1/s (HE101)"
    assert by["Reciprocal"].surprising
    assert by["Reciprocal"].witnesses == ("halfeven explain 1.55 0.1: document 15, answer 16",)
    assert by["Away"].does == "divides by s; rounds ties away from zero (HE111)"
    assert by["Odd"].cells[0] == "22"
    assert by["Odd"].does == "does what none of these choices says"
    assert "RuntimeError" in by["Raises"].note
    assert by["Refuses"].note == "not offered: not on this device"
    assert by["Dies"].note
    assert not by["Dies"].cells
    nan = found.rows["nan"][0]
    assert nan.cells == ("-128", "-128")
    assert nan.document == ("", ""), "no integer is NaN: the document says nothing"
    assert found.rows["empty"][0].cells == ("comes back empty",)


def test_functions_are_asked_with_their_own_arguments(toys: Path) -> None:
    found = asked(["toys:Dynamic", "toys:Right"], ["scale-of-zeros", "division"], 30.0)
    [row] = found.rows["scale-of-zeros"]
    at = dict(zip(columns(QUESTIONS["scale-of-zeros"]), zip(row.cells, row.document, strict=True), strict=True))
    assert at["zeros"] == ("1", "0")
    assert row.surprising
    assert row.witnesses[0].startswith("onnx/DynamicQuantizeLinear(x=0 (float32[1, 64])): document 0, answer 1")
    assert len(found.rows["division"]) == 1, "it has no such operation"


def test_what_is_not_there_is_said_to_be_not_run(toys: Path) -> None:
    found = asked(["toys:Right", "toys:Nothing"], ["ties"], 30.0)
    assert "Nothing" in found.absent["toys:Nothing"]
    made = pages(found)
    assert "## Not run" in made["README.md"]
    assert "`toys:Nothing`" in made["ties.md"]


def test_a_page_says_who_does_what(toys: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["questions", "toys:Right", "toys:Reciprocal", "--question", "division"]) == 0
    shown = capsys.readouterr().out
    assert "# Does it divide by the scale, or multiply by 1/s?" in shown
    assert "- **multiplies by 1/s (HE101)**" in shown
    assert "**16**" in shown
    assert "**15**" not in shown
    assert "`halfeven explain 1.55 0.1`: document 15, answer 16" in shown
    assert main(["questions", "toys:Right", "--question", "division", "--out", "pages"]) == 0
    assert {p.name for p in Path("pages").iterdir()} == {"README.md", "division.md", RECORD}


def test_a_question_that_is_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["questions", "torch", "--question", "divison"]) == 2
    assert "did you mean division" in capsys.readouterr().err


def read(folder: Path) -> Answers:
    """The record in a folder."""
    record = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    rows = {
        name: [Row(**{k: tuple(v) if isinstance(v, list) else v for k, v in row.items()}) for row in found]
        for name, found in record["rows"].items()
    }
    return Answers(rows, record["absent"])


def test_the_record_is_read_as_it_was_written(toys: Path) -> None:
    found = asked(["toys:Right", "toys:Raises"], ["division", "nan"], 30.0)
    write(found, toys / "out")
    again = read(toys / "out")
    assert pages(again) == pages(found)
    assert again.rows["division"] == found.rows["division"]


@pytest.mark.parametrize("name", QUESTIONS)
def test_a_question_is_one(name: str) -> None:
    q = QUESTIONS[name]
    assert q.name == name
    assert q.title.endswith("?")
    assert q.why.endswith(".")
    if isinstance(q, FunctionQuestion):
        for asked_ in q.asked:
            assert asked_.formula in FORMULAS
            assert asked_.inputs
    if isinstance(q, OperationQuestion):
        assert set(q.choices) <= set(EvaluationModel.choices())


def test_the_inputs_of_a_question_tell_its_first_choice_apart() -> None:
    """Of the textbook, another value of the choice gives other answers: else the page would decide nothing."""
    for q in QUESTIONS.values():
        if isinstance(q, OperationQuestion) and q.choices and q.x:
            given = _given(q, q.operations[0], Grid(-128, 127))
            own = _predicted(TEXTBOOK, given)
            values = TEXTBOOK.model.choices()[q.choices[0]]
            others = [
                _predicted(
                    dataclasses.replace(TEXTBOOK, model=dataclasses.replace(TEXTBOOK.model, **{q.choices[0]: v})), given
                )
                for v in values
            ]
            assert any(o != own for o in others), q.name


def test_the_pages_of_the_repository_are_those_of_its_record() -> None:
    folder = ROOT / "reports/questions"
    found = read(folder)
    assert set(found.rows) == set(QUESTIONS), "halfeven questions all --out reports/questions"
    made = pages(found)
    assert {p.name for p in folder.iterdir()} == {*made, RECORD}
    for name, page in made.items():
        assert (folder / name).read_text(encoding="utf-8") == page, name
    for name, rows in found.rows.items():
        assert rows, name
        for r in rows:
            assert r.note or len(r.cells) == len(columns(QUESTIONS[name])), (name, r.backend)


def test_a_record_that_lacks_a_row_makes_another_page() -> None:
    found = read(ROOT / "reports/questions")
    less = Answers({**found.rows, "division": found.rows["division"][1:]}, found.absent)
    assert pages(less)["division.md"] != pages(found)["division.md"]
