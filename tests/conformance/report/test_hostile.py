"""Reports that nobody's run has written: each is refused in one line that names the file, with status 2."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance import cli
from halfeven.conformance.report.codec import read_json, to_dict, write_json
from halfeven.conformance.report.markdown import to_markdown
from halfeven.conformance.report.model import Report

REPORTS = Path(__file__).parents[3] / "reports"


def _set(*path: Any) -> Callable[[Any], Any]:
    """Put the last of ``path`` at the place that the others lead to."""

    def change(data: Any) -> Any:
        inner = data
        for step in path[:-2]:
            inner = inner[step]
        inner[path[-2]] = path[-1]
        return data

    return change


def _result(**changes: Any) -> Callable[[Any], Any]:
    def change(data: Any) -> Any:
        data["results"][0] |= changes
        return data

    return change


def _twice(data: Any) -> Any:
    data["results"].append(data["results"][0])
    return data


def _text(old: str, new: str) -> Callable[[Any], bytes]:
    def change(data: Any) -> bytes:
        text = json.dumps(data)
        assert old in text
        return text.replace(old, new, 1).encode()

    return change


def _deep(key: str, levels: int) -> Callable[[Any], bytes]:
    nested = '{"a": ' * levels + "1" + "}" * levels
    return _text(f'"{key}": {{', f'"{key}": {{"deep": {nested}, ')


HOSTILE: dict[str, tuple[Callable[[Any], Any], str]] = {
    **{f"cut at {n}": (lambda d, n=n: json.dumps(d).encode()[:n], "is not JSON") for n in (1, 2, 100, 1000, 3000)},
    "empty": (lambda _: b"", "is not JSON"),
    "NUL": (lambda d: json.dumps(d).encode() + b"\x00", "is not JSON"),
    "BOM": (lambda d: b"\xef\xbb\xbf" + json.dumps(d).encode(), "is not JSON"),
    "UTF-16": (lambda d: json.dumps(d).encode("utf-16"), "is not UTF-8"),
    "bad UTF-8": (lambda d: json.dumps(d).encode().replace(b"quick", b"\xff"), "is not UTF-8"),
    "list": (lambda d: [d], "give object"),
    "null": (lambda _: None, "give object"),
    "NaN": (_set("results", 0, "seconds", float("nan")), "NaN"),
    "too large a number": (_text('"seconds": 0.25', '"seconds": 1e999'), "/results/0/seconds"),
    "wrong type": (_set("seed", "7"), "/seed"),
    "major version": (_set("schema_version", "2.0"), "does not read"),
    "no version": (lambda d: {k: v for k, v in d.items() if k != "schema_version"}, "schema_version"),
    "version with a line's end": (_set("schema_version", "1.0\n"), "/schema_version"),
    "version of ten thousand digits": (_set("schema_version", "1." + "9" * 10_000), "/schema_version"),
    "environment 50 deep": (_deep("environment", 100), "nested deeper than"),
    "environment 500 deep": (_deep("environment", 500), "nested"),
    "environment 200,000 deep": (_deep("environment", 200_000), "nested too deeply"),
    "configuration 5,000 deep": (_deep("configuration", 5_000), "nested"),
    "integer of 5,001 digits": (_text('"points": 1000', '"points": ' + "9" * 5_001), "an integer of 5,001 digits"),
    "duplicate key": (
        _text('"complete": true', '"complete": false, "complete": true'),
        "'complete' is not accepted twice",
    ),
    "duplicate result": (_twice, "has it twice"),
    "exact of nothing": (_result(points=0), "0 points were compared"),
    "exact that differs": (_result(differing=99), "99 differ"),
    "exact by steps": (_result(steps=2), "differ by 2"),
    "more differ than there are": (_result(outcome="differs", differing=1001), "1001 of 1000 points differ"),
    "not run, with points": (_result(outcome="not run"), "1000 points were compared"),
    "open, with differences": (_result(outcome="implementation-defined", differing=1), "1 points differ"),
    "exact of a process that died": (_result(ended="signal 9"), "ended (signal 9)"),
    "complete with too little": (_set("expected", 26), "26 checks were planned, it has 10"),
    "complete with something missing": (_set("missing", ["a::b"]), "1 checks are missing"),
    "unknown field": (_set("verdict", "conforms"), "unknown 'verdict'"),
    "require": (_set("require", "most"), "/require"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_report_is_status_2_and_one_line(
    name: str, mixed: Report, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change, said = HOSTILE[name]
    good, bad = tmp_path / "good.json", tmp_path / "bad.json"
    write_json(mixed, good)
    made = change(to_dict(mixed))
    bad.write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
    for arguments in ([good, bad], [bad, good]):
        status = cli.main(["diff", *map(str, arguments)])
        shown = capsys.readouterr()
        lines = shown.err.splitlines()
        assert (status, shown.out, len(lines)) == (2, "", 1), shown.err[:2000]
        assert lines[0].startswith("halfeven: ")
        assert "bad.json" in lines[0]
        assert said in lines[0]
        assert len(lines[0]) < 2_000


def test_a_later_minor_version_is_read_without_what_is_new(mixed: Report, tmp_path: Path) -> None:
    data = to_dict(mixed) | {"schema_version": "1.99", "kernels": {"deep": [1.5]}}
    data["results"][1] |= {"new": None}
    data["results"][1]["witness"] |= {"call": {"a": 1}}
    data["backends"][0] |= {"driver": "550"}
    path = tmp_path / "later.json"
    path.write_text(json.dumps(data))
    read = read_json(path)
    assert read.results == mixed.results
    assert read.backends == mixed.backends
    path.write_text(json.dumps(data | {"schema_version": "1.1"}))
    with pytest.raises(ValueError, match="unknown 'kernels'"):
        read_json(path)


def test_a_report_of_the_first_minor_version_is_read(mixed: Report, tmp_path: Path) -> None:
    data = to_dict(mixed) | {"schema_version": "1.0"}
    for part, added in (("results", "ended"), ("backends", "lacks")):
        for record in data[part]:
            del record[added]
    del data["require"], data["missing"]
    path = tmp_path / "earlier.json"
    path.write_text(json.dumps(data))
    read = read_json(path)
    assert read.results == mixed.results
    assert (read.require, read.missing) == ("any", ())


def test_the_published_reports_are_read() -> None:
    paths = sorted(REPORTS.glob("*/report.json"))
    assert len(paths) > 8
    assert all(read_json(path).results for path in paths)


def test_an_open_quote_in_the_command_stops_no_page(mixed: Report, tmp_path: Path) -> None:
    assert "To see it again" in to_markdown(replace(mixed, command="halfeven run 'torchao --out x"))
