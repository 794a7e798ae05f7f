"""What is written follows the schema, and the page of the protocol says what is there."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from jsonschema import Draft202012Validator
from samples import ANSWERS, CALLS, OFFER

from halfeven.conformance import workers
from halfeven.conformance.engine import batch
from halfeven.conformance.engine.batch import dump
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.engine.memory import plain
from halfeven.conformance.workers import folder
from halfeven.conformance.workers.folder import FORMATS, Plan, write_bundle
from halfeven.conformance.workers.greeting import greeting

SCHEMA = json.loads((Path(workers.__file__).parent / "protocol.schema.json").read_text(encoding="utf-8"))
PAGE = (Path(__file__).parents[3] / "docs/protocol.md").read_text(encoding="utf-8")


def follows(name: str, data: Any) -> bool:
    return Draft202012Validator({**SCHEMA["$defs"], "$ref": f"#/$defs/{name}", "$defs": SCHEMA["$defs"]}).is_valid(data)


def manifest(items: list[Call] | list[Answer], of: dict[str, Any] | None = None) -> Any:
    data = dump(items, of)
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])
    return json.loads(header["__metadata__"]["halfeven"])


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_manifests_follow_the_schema() -> None:
    assert follows("manifest", manifest(CALLS, {"calls": [0, 1, 2]}))
    assert follows("manifest", manifest(ANSWERS, {"bundle": "0" * 64, "calls": [0, 1, 2]}))
    assert follows("manifest", manifest([Call("onnx:quantize", (float("nan"), -0.0, 5e-324, float("-inf"), 1j))]))


@pytest.mark.parametrize(
    ("field", "value"),
    [("formula", None), ("positional", []), ("shape", {"mode": "none"}), ("named", {"map": [[1, 2]]}), ("other", 1)],
)
def test_the_schema_refuses_what_is_no_call(field: str, value: Any) -> None:
    data = manifest(CALLS)
    data["calls"][0][field] = value
    assert not follows("manifest", data)


@pytest.mark.parametrize("form", FORMATS)
def test_bundles_follow_the_schema(tmp_path: Path, form: folder.Format) -> None:
    written = write_bundle(tmp_path / "b", Plan(OFFER), CALLS, form)
    data = json.loads((written.folder / "bundle.json").read_text(encoding="utf-8"))
    assert follows("bundle", data)
    assert not follows("bundle", data | {"bundle": "x"})


def test_greetings_follow_the_schema() -> None:
    assert follows("greeting", json.loads(json.dumps(greeting(OFFER))))
    assert not follows("greeting", {"name": "npu"})


def test_the_schema_knows_every_dtype() -> None:
    assert SCHEMA["$defs"]["dtype"]["enum"] == [*batch.DTYPES]


def test_the_page_speaks_of_this_version() -> None:
    assert f"\nVersion {folder.VERSION}. " in PAGE
    assert folder.VERSION == batch.VERSION == SCHEMA["$defs"]["manifest"]["properties"]["version"]["const"]


def test_the_page_names_every_field() -> None:
    named = set(re.findall(r"`(\w+)`", PAGE))
    for kind in ("call", "answer"):
        assert {*SCHEMA["$defs"][kind]["properties"]} <= named


def test_the_flat_example_of_the_page_is_what_is_written(tmp_path: Path) -> None:
    x, s, z = np.zeros((3, 4), np.float32), np.float32(1), np.int32(0)
    given = {"block_size": None, "qmin": -128, "qmax": 127}
    write_bundle(tmp_path / "b", Plan(OFFER), [Call("onnx:quantize", (plain(x), plain(s), plain(z)), given)], "flat")
    written = (tmp_path / "b/calls.txt").read_text(encoding="ascii")
    assert "".join(f"    {line}\n" for line in written.splitlines()) in PAGE
