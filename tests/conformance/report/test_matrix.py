from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.report.codec import write_json
from halfeven.conformance.report.matrix import matrix, write_matrix
from halfeven.conformance.report.model import Report


def cells(text: str, heading: str) -> list[list[str]]:
    """The table under a heading."""
    part = text.split(f"## {heading}\n")[1].split("\n## ", maxsplit=1)[0]
    return [[c.strip() for c in line.split("|")[1:-1]] for line in part.splitlines() if line.startswith("|")]


def test_rows_are_backends_and_columns_aspects(mixed: Report) -> None:
    head, _, torchao, onnx = cells(matrix([mixed]), "quantize")
    assert head == ["backend", "profile", "grid", "huge", "layout", "nan", "nearest-code", "odd-zero-point", "ties"]
    seen = dict(zip(head, torchao, strict=True))
    assert seen["odd-zero-point"] == "explained 2/2"
    assert seen["nearest-code"] == "exact"
    assert seen["nan"] == "impl.-defined"
    assert seen["layout"] == ""
    assert dict(zip(head, onnx, strict=True))["grid"] == "not run"
    assert dict(zip(head, onnx, strict=True))["huge"] == "crashed 1/1"
    assert [r[0] for r in cells(matrix([mixed]), "dequantize")[2:]] == ["`torchao`"]
    assert "## fake_quantize" not in matrix([mixed])


def test_overview_has_versions_profiles_and_links(mixed: Report) -> None:
    rows = cells(matrix([mixed], ["torchao-0.18.0/"]), "Overview")
    assert rows[2] == [
        "[`torchao`](torchao-0.18.0/)",
        "torchao 0.18.0",
        "`torchao`",
        "explained 2/5",
        "exact",
        "",
        "",
        "6,000",
    ]


def test_each_difference_has_one_witness(mixed: Report) -> None:
    rows = cells(matrix([mixed]), "Differences found")
    assert len(rows) == 2 + 3  # two checks of one cause are one row
    found = {r[5]: r for r in rows[2:]}
    assert found[
        "as torchao@0.18: adds the zero point before rounding where the document adds the zero point after rounding"
    ][3:] == [
        "odd-zero-point",
        "explained",
        "as torchao@0.18: adds the zero point before rounding where the document adds the zero point after rounding",
        "`0x3f000000 (0.5)`",
        "`0x3f800000 (1.0)`",
        "`1`",
        "`1`",
        "`2`",
    ]
    assert found["RuntimeError: no kernel"][6] == "no witness"


def test_write_matrix_reads_the_folders_and_is_deterministic(
    mixed: Report, result: Any, report: Any, tmp_path: Path
) -> None:
    write_json(report(result("a")), tmp_path / "b-2" / "report.json")
    write_json(mixed, tmp_path / "a-1" / "report.json")
    path = write_matrix(tmp_path)
    first = path.read_bytes()
    assert path == tmp_path / "README.md"
    assert first.index(b"(a-1/)") < first.index(b"(b-2/)")
    assert write_matrix(tmp_path).read_bytes() == first
    (tmp_path / "b-2" / "report.md").touch()
    assert b"(b-2/report.md)" in write_matrix(tmp_path).read_bytes()
    write_json(report(result("a", "differs")), tmp_path / "b-2" / "report.json")
    assert write_matrix(tmp_path).read_bytes() != first


def test_other_pages_of_the_folder_are_linked(mixed: Report, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    write_json(mixed, tmp_path / "a" / "report.json")
    assert "](exhaustive.md)" not in write_matrix(tmp_path).read_text()
    (tmp_path / "exhaustive.md").touch()
    text = write_matrix(tmp_path).read_text()
    assert "](exhaustive.md)" in text
    assert "](questions/README.md)" not in text


def test_a_report_that_is_not_whole_is_named(result: Any, report: Any) -> None:
    text = matrix([report(result("a"), complete=False, expected=5), report(result("a"))], ["x-1", "y-2"])
    assert "- x-1: Incomplete: 1 of 5 checks finished." in text
    assert "- y-2" not in text


def test_a_folder_without_reports_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no \*/report.json"):
        write_matrix(tmp_path)
    assert not (tmp_path / "README.md").exists()


def test_links_must_match_the_reports(mixed: Report) -> None:
    with pytest.raises(ValueError, match="one for each of the 1 reports"):
        matrix([mixed], ["a", "b"])


def test_documented_functions_have_a_row_each(result: Any, report: Any) -> None:
    of = {"operation": "choose_qparams_affine", "check": "some", "configuration": {"formula": "f"}}
    part = result("eps", "explained", **of, cause="as torchao.choose_qparams_affine@0.18: A smaller eps.")
    text = matrix([report(result("symmetric", **of), part, result("nearest-code"))])
    rows = cells(text, "Documented functions")
    assert rows[2] == [
        "`torchao`",
        "`torchao`",
        "`choose_qparams_affine`",
        "explained 1/2",
        "1",
        "",
        "as torchao.choose_qparams_affine@0.18: A smaller eps.",
        "2,000",
    ]
    assert cells(text, "Overview")[2][3:7] == ["exact", "", "", "explained 1/2"]
    assert "## choose_qparams_affine" not in text
