import copy
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from jsonschema import Draft202012Validator

from halfeven.conformance.report import codec
from halfeven.conformance.report.codec import append, from_dict, read_journal, read_json, to_dict, write_json
from halfeven.conformance.report.model import (
    SCHEMA_VERSION,
    BackendRecord,
    Cause,
    OutcomeName,
    Report,
    Result,
    Witness,
)
from halfeven.conformance.report.schema import schema


def test_the_schema_is_itself_valid_and_closed() -> None:
    Draft202012Validator.check_schema(schema())
    definitions = schema()["$defs"]
    for record, part in (
        (Report, schema()),
        (Result, definitions["result"]),
        (Witness, definitions["witness"]),
        (BackendRecord, definitions["backend"]),
        (Cause, definitions["cause"]),
    ):
        names = set(record.__dataclass_fields__)
        names |= {"causes"} if record is Report else set()  # they follow from the results
        assert set(part["properties"]) == set(part["required"]) == names
        assert part["additionalProperties"] is False


def test_the_schema_and_the_model_name_the_same_outcomes() -> None:
    assert tuple(schema()["$defs"]["result"]["properties"]["outcome"]["enum"]) == get_args(OutcomeName)


def test_round_trip(mixed: Report, tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    write_json(mixed, path)
    assert read_json(path) == mixed
    assert from_dict(to_dict(mixed)) == mixed
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]


def test_who_reads_while_it_is_written_sees_a_whole_file(mixed: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("kept")
    with path.open() as reader:
        write_json(mixed, path)
        assert reader.read() == "kept"


def test_each_result_has_its_own_line(mixed: Report, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    write_json(mixed, path)
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if '"outcome"' in line]
    assert len(lines) == len(mixed.results)


def test_strange_text_survives(mixed: Report, result: Any, tmp_path: Path) -> None:
    text = "a|b\n\u2028 −x̂ \x00 \udc80 " + '"\\'
    strange = replace(mixed, results=(result(detail=text, points=2**70),), expected=1)
    write_json(strange, tmp_path / "report.json")
    assert read_json(tmp_path / "report.json") == strange


def test_numpy_integers_and_tuples_become_plain(result: Any) -> None:
    made = result(points=np.int64(5), configuration={"shape": (2, np.int32(3))})
    data = codec._plain(made, "result")
    assert json.loads(json.dumps(data))["configuration"] == {"shape": [2, 3]}
    assert type(data["points"]) is int


@pytest.mark.parametrize("value", [np.float32(0.5), math.nan, math.inf, b"x", {1: 2}, {"a": object()}, np.bool_(1)])
def test_a_value_without_a_place_is_refused(result: Any, report: Any, value: Any) -> None:
    with pytest.raises(TypeError, match=r"results/0/configuration/scale"):
        to_dict(report(result(configuration={"scale": value})))


def test_a_real_in_a_configuration_is_refused_and_nothing_is_written(result: Any, report: Any, tmp_path: Path) -> None:
    path = tmp_path / "report.json"
    path.write_text("kept")
    with pytest.raises(ValueError, match=r"/results/0/configuration/scale: 0\.5 is not accepted"):
        write_json(report(result(configuration={"scale": 0.5})), path)
    assert path.read_text() == "kept"
    assert len(list(tmp_path.iterdir())) == 1


def test_a_write_that_fails_half_way_keeps_the_old_file(
    mixed: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "report.json"
    path.write_text("kept")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_json(mixed, path)
    assert path.read_text() == "kept"
    assert len(list(tmp_path.iterdir())) == 1


def _drop(data: Any, *path: Any) -> None:
    for part in path[:-1]:
        data = data[part]
    del data[path[-1]]


def _put(data: Any, value: Any, *path: Any) -> None:
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = value


MUTATIONS: dict[str, tuple[Any, list[str]]] = {
    "missing at the top": (lambda d: _drop(d, "expected"), ["/ (the whole document)", "lacks 'expected'"]),
    "missing in a result": (lambda d: _drop(d, "results", 1, "cause"), ["/results/1", "lacks 'cause'"]),
    "missing in a witness": (lambda d: _drop(d, "results", 1, "witness", "x"), ["/results/1/witness", "'x'"]),
    "unknown outcome": (
        lambda d: _put(d, "wrong", "results", 2, "outcome"),
        ["/results/2/outcome", '"wrong"', '"implementation-defined"'],
    ),
    "unknown field": (lambda d: _put(d, 1, "results", 0, "atol"), ["/results/0", "unknown 'atol'", "known are id"]),
    "unknown field at the top": (lambda d: _put(d, 1, "verdict"), ["unknown 'verdict'"]),
    "negative count": (lambda d: _put(d, -1, "results", 0, "points"), ["/results/0/points", "-1", "give 0 or more"]),
    "count as a float": (lambda d: _put(d, 3.0, "results", 0, "steps"), ["/results/0/steps", "3.0", "integer"]),
    "count as a boolean": (lambda d: _put(d, True, "results", 0, "steps"), ["/results/0/steps", "integer"]),
    "a real as a number": (lambda d: _put(d, 0.5, "results", 1, "witness", "x"), ["/results/1/witness/x", "0.5"]),
    "unknown unit": (lambda d: _put(d, "percent", "results", 0, "unit"), ["/results/0/unit", '"ulp"']),
    "no name": (lambda d: _put(d, "", "backends", 0, "name"), ["/backends/0/name", "not empty"]),
    "wrong kind of list": (lambda d: _put(d, {}, "results"), ["/results", "give array"]),
    "no version": (lambda d: _drop(d, "schema_version"), ["lacks 'schema_version'"]),
    "version of the wrong form": (lambda d: _put(d, "1", "schema_version"), ["/schema_version", "matches"]),
    "next major version": (lambda d: _put(d, "2.0", "schema_version"), ["'2.0'", "does not read", "1.x"]),
}


@pytest.mark.parametrize("name", MUTATIONS)
def test_a_bad_file_is_refused_by_path_pointer_value_and_what_is_accepted(
    name: str, mixed: Report, tmp_path: Path
) -> None:
    mutate, said = MUTATIONS[name]
    data = copy.deepcopy(to_dict(mixed))
    mutate(data)
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r".") as caught:
        read_json(path)
    message = str(caught.value)
    assert str(path) in message
    for part in said:
        assert part in message


def test_a_witness_of_a_cause_is_kept_and_before_1_3_there_is_none(apart: Result, report: Any, tmp_path: Path) -> None:
    made = report(apart)
    data = to_dict(made)
    assert from_dict(data) == made
    append(tmp_path / "journal.jsonl", apart)
    [read] = read_journal(tmp_path / "journal.jsonl").results.values()
    assert read == apart
    shown = [c.witness for c in apart.causes]
    assert None in shown
    assert [c.witness for c in read.causes] == [c.witness for c in from_dict(data).results[0].causes] == shown
    for cause in data["results"][0]["causes"]:
        del cause["witness"]
    [old] = from_dict(data | {"schema_version": "1.2"}).results
    assert old == apart
    assert [c.witness for c in old.causes] == [None, None]


def test_a_later_minor_version_is_read(mixed: Report) -> None:
    assert from_dict(to_dict(mixed) | {"schema_version": "1.9"}).schema_version == "1.9"
    assert SCHEMA_VERSION.startswith("1.")


@pytest.mark.parametrize("constant", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_lacks_are_refused(mixed: Report, tmp_path: Path, constant: str) -> None:
    path = tmp_path / "bad.json"
    data = to_dict(mixed)
    data["results"][0]["seconds"] = float(constant.replace("Infinity", "inf"))
    path.write_text(json.dumps(data))
    with pytest.raises(ValueError, match=f"bad.json: the number {constant} is not accepted"):
        read_json(path)


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"[]", b"null"])
def test_a_file_that_is_no_report(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.json"):
        read_json(path)


def test_journal(mixed: Report, tmp_path: Path) -> None:
    path = tmp_path / "new" / "journal.jsonl"
    for count, item in enumerate(mixed.results, 1):
        append(path, item)
        assert len(read_journal(path).results) == count  # it is on disk at once
    assert tuple(read_journal(path).results.values()) == mixed.results


def test_a_torn_last_line_loses_only_itself(mixed: Report, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first, second, third = mixed.results[:3]
    append(path, first)
    length = path.stat().st_size
    append(path, second)
    whole = path.read_bytes()
    for cut in (length + 1, length + 50, len(whole) - 1):
        path.write_bytes(whole[:cut])
        assert [*read_journal(path).results.values()] == [first]
        append(path, third)
        assert [*read_journal(path).results.values()] == [first, third]
    path.write_bytes(whole[: length - 1])
    assert read_journal(path).results == {}
    append(path, third)
    assert [*read_journal(path).results.values()] == [third]


def test_a_bad_line_in_the_middle_of_a_journal_is_refused(mixed: Report, tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    append(path, mixed.results[0])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"id": \n' + whole)
    with pytest.raises(ValueError, match=r"journal\.jsonl, line 2 is not JSON"):
        read_journal(path)
    path.write_bytes(whole + whole.replace(b'"exact"', b'"wrong"'))
    with pytest.raises(ValueError, match=r'line 2, at /outcome: "wrong" is not accepted'):
        read_journal(path)


def test_the_journal_refuses_what_a_report_would(result: Any, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="/unit"):
        append(tmp_path / "journal.jsonl", result(unit="percent"))
    assert not (tmp_path / "journal.jsonl").exists()


def test_each_cause_has_one_entry_however_many_checks_it_fails(result: Any, report: Any) -> None:
    reciprocal = Cause("HE101", "multiplies by 1/s where the document divides by s")
    nearest = Cause("HE998", "no known behaviour", "uint8", "98% of the answers")
    results = [result(f"r{i}", "differs", check=f"r{i}", causes=(reciprocal,)) for i in range(5)]
    results += [result("both", "differs", "onnxruntime", check="both", causes=(reciprocal, nearest))]
    data = to_dict(report(*results, result("fine")))
    assert [(c["code"], c["where"], c["share"], c["with"], c["backends"]) for c in data["causes"]] == [
        ("HE101", "", "", [], {"onnxruntime": 1, "torchao": 5}),
        ("HE998", "uint8", "98% of the answers", ["HE101"], {"onnxruntime": 1}),
    ]
    assert data["causes"][0]["shown"] == "torchao::torchao/quantize/int8/float32/per-tensor/r0"
    assert from_dict(data).results[0].causes == (reciprocal,)
