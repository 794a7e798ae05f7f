"""Witnesses of reports explained: what the report expected is what the explanation computes."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from halfeven.conformance.cli import main
from halfeven.conformance.explaining.witness import explain_witness
from halfeven.conformance.report import codec
from halfeven.conformance.report.model import Cause

REPORTS = sorted((Path(__file__).parents[3] / "reports").glob("*/report.json"))
TORCH = next(p for p in REPORTS if p.parent.name.startswith("torch-"))


@pytest.mark.parametrize("path", REPORTS, ids=lambda p: p.parent.name)
def test_what_was_expected_is_what_is_explained(path: Path) -> None:
    explained = 0
    names = {}
    for r in codec.read_json(path).results:
        if r.witness is not None and r.witness.scale:
            names.setdefault((r.backend, r.requirement), r)
    for r in [*names.values()][:8]:
        found = explain_witness(f"{path}#{r.name}")
        assert found.result.name == r.name
        if found.value is not None and r.outcome == "explained":
            want = r.witness.expected.partition(" (")[0]
            assert found.value.result.partition(" ")[0] == want or want in found.value.result, r.name
            assert found.value.wanted, r.name
            explained += 1
    if path == TORCH:
        assert explained > 3


def test_a_folder_and_a_code(capsys: pytest.CaptureFixture[str]) -> None:
    found = explain_witness(f"{TORCH.parent}#HE101")
    assert "multiplies by 1/s" in found.result.cause
    assert found.value is not None
    assert "HE101" in {c for change in found.value.changes for c in change.codes}
    assert main(["explain", "--from", f"{TORCH}#{found.result.name}"]) == 0
    shown = capsys.readouterr().out
    assert found.result.name in shown
    assert "\nHE101  multiplies by 1/s where the document divides by s" in shown


def test_a_code_has_the_witness_that_is_its_own(tmp_path: Path) -> None:
    report = codec.read_json(TORCH)
    r = next(r for r in report.results if r.witness is not None and r.witness.scale and r.causes)
    assert r.witness is not None
    own = replace(r.witness, x="0x40a00000 (5.0)")
    causes = (*r.causes, Cause("HE701", "uses the narrow grid", witness=own))
    codec.write_json(replace(report, results=(replace(r, causes=causes),), expected=1), tmp_path / "report.json")
    assert explain_witness(f"{tmp_path}#HE701").result.witness == own
    assert explain_witness(f"{tmp_path}#{r.causes[0].code}").result.witness == r.witness


def test_the_witness_of_a_function_is_shown_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    report = codec.read_json(TORCH)
    r = next(r for r in report.results if r.witness is not None and not r.witness.scale)
    assert main(["explain", "--from", f"{TORCH}#{r.name}"]) == 0
    shown = capsys.readouterr().out
    assert "call: " in shown
    assert "document: " in shown


def test_what_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    shown = [r for r in codec.read_json(TORCH).results if r.witness is not None]
    none = next(r for r in codec.read_json(TORCH).results if r.witness is None)
    [(twice, _), *_] = Counter(r.id for r in shown).most_common(1)
    for place, said in (
        (f"{TORCH}#HE183", "no witness of the report has this cause"),
        (f"{TORCH}#{none.name}", "has no witness"),
        (f"{TORCH}#{twice}", "several backends have it"),
        (f"{TORCH}#{shown[0].id[:-3]}", "did you mean"),
        (f"{TORCH}#", "give report.json#ID"),
        ("nothing.json#HE101", "nothing.json"),
    ):
        assert main(["explain", "--from", place]) == 2
        assert said in capsys.readouterr().err
