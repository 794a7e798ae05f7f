"""The compiled schema against jsonschema, which reads the same file in its own way."""

import copy
import random
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, validators

from halfeven.conformance.report.codec import to_dict
from halfeven.conformance.report.model import Report
from halfeven.conformance.report.schema import DEEPEST, check, schema

# JSON Schema takes 3.0 for an integer, and NaN for a number; a report does not.
_ORACLE: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine_many(
        {
            "integer": lambda _, v: isinstance(v, int) and not isinstance(v, bool),
            "number": lambda _, v: isinstance(v, int | float) and not isinstance(v, bool) and abs(v) < float("inf"),
        }
    ),
)(schema())
VALUES = (
    None,
    True,
    "",
    "exact",
    "1.1",
    "ulp",
    0,
    -1,
    2**70,
    0.5,
    3.0,
    [],
    ["a"],
    [""],
    {},
    {"a": 1},
    {"a": {"b": 0.5}},
)
VALUES = (*VALUES, float("inf"), float("nan"), {"a": [None, {"b": "c"}]}, [[0.5]], "90%", "each")


def accepted(data: Any) -> bool:
    try:
        check(data, "report")
    except ValueError:
        return False
    return True


def places(value: Any, *path: Any) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from places(inner, *path, key)


def changed(data: Any, path: tuple[Any, ...], how: Any) -> Any:
    made = copy.deepcopy(data)
    inner = made
    for step in path[:-1]:
        inner = inner[step]
    if how is changed:
        del inner[path[-1]]
    else:
        inner[path[-1]] = how
    return made


def test_both_say_the_same_of_every_small_change(mixed: Report) -> None:
    data = to_dict(mixed)
    assert accepted(data)
    assert _ORACLE.is_valid(data)
    drawn = random.Random(0)
    tried = refused = 0
    for path in places(data):
        for how in (changed, *drawn.sample(VALUES, 5)):
            made = changed(data, path, how)
            said = accepted(made)
            assert said == _ORACLE.is_valid(made), (path, how)
            tried, refused = tried + 1, refused + (not said)
    assert tried > 1000
    assert tried // 4 < refused < tried


@pytest.mark.parametrize("part", ["plan", "known", "absent", "result", "backend"])
def test_every_part_is_closed_and_whole(part: str) -> None:
    rules = schema()["$defs"][part]
    assert rules["additionalProperties"] is False
    assert set(rules["required"]) == set(rules["properties"])


@pytest.mark.parametrize(("where", "name"), [("environment", "environment"), ("results", "configuration")])
def test_facts_and_settings_are_not_nested_without_end(where: str, name: str, mixed: Report) -> None:
    data = to_dict(mixed)
    place = data if where == "environment" else data["results"][0]
    for levels, good in ((DEEPEST // 2, True), (DEEPEST + 1, False), (5_000, False)):
        inner: Any = "x"
        for _ in range(levels):
            inner = {"a": inner}
        place[name] = {"a": inner}
        if good:
            check(data, "report")
        else:
            with pytest.raises(ValueError, match="nested deeper than"):
                check(data, "report")
