"""The JSON schema of a report, held against data by a compiled form of it, and what is said where they disagree.

Of JSON Schema there is what ``schema.json`` uses. It is compiled to functions once, since a report may have hundreds
of thousands of results: to tests that say yes or no, quickly, and to checks that say what is wrong and where.
"""

import functools
import json
import math
import re
from collections.abc import Callable, Mapping
from importlib import resources
from typing import Any

from halfeven.conformance.report.model import SCHEMA_VERSION

__all__ = ["DEEPEST", "check", "minor", "schema"]

DEEPEST = 64
"""The levels of nested values that are accepted in a fact or a setting."""
_LONGEST = 120
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda v: isinstance(v, str),
    "boolean": lambda v: isinstance(v, bool),
    "null": lambda v: v is None,
    # JSON Schema takes 3.0 for an integer. Counts and settings of a report are ints, or the file was not written by us.
    "integer": lambda v: isinstance(v, int) and not isinstance(v, bool),
    "number": lambda v: isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v),
    "array": lambda v: isinstance(v, list),
    "object": lambda v: isinstance(v, dict),
}
_RECURSIVE = {"fact", "setting"}
_ANNOTATIONS = {"$schema", "$id", "$defs", "title", "description"}
_Check = Callable[[Any, int], None]
_Test = Callable[[Any, int], bool]
# The types that JSON has in Python. Of a number it is to be seen besides whether it is finite.
_PYTHON: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "null": (type(None),),
    "integer": (int,),
    "number": (int, float),
    "array": (list,),
    "object": (dict,),
}


class _Refused(Exception):  # noqa: N818 - it becomes a ValueError that names the source
    """What is wrong with a value; on its way up the path to the value is put together, from its end."""

    def __init__(self, value: object, said: str) -> None:
        self.value, self.said = value, said
        self.path: list[str] = []


@functools.cache
def schema() -> dict[str, Any]:
    """The schema as data; it is shared, so do not change it."""
    text = resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def minor(version: object, source: str) -> int | None:
    """The minor version of a file; None where it has none of the right form, which ``check`` then says.

    Raises:
        ValueError: it is of another major version, which this program does not read.
    """
    major = SCHEMA_VERSION.partition(".")[0]
    if not isinstance(version, str) or not re.fullmatch(r"[0-9]{1,9}\.[0-9]{1,9}", version):
        return None
    if version.partition(".")[0] != major:
        msg = f"{source} has schema_version {version!r}, which this program does not read: it reads {major}.x"
        raise ValueError(msg)
    return int(version.partition(".")[2])


def check(data: object, source: str, part: str = "", *, pick: bool = False) -> None:
    """Hold ``data``, which come from or go to ``source``, against the schema or one of its ``$defs``.

    With ``pick``, unknown fields are taken out of ``data``, as a later minor version has some; else they are refused.

    Raises:
        ValueError: they do not follow it; the message names the source, the JSON pointer, the value and what is
            accepted.
    """
    if _tested(part)(data, 0):
        return
    try:
        _compiled(part, pick)(data, 0)
    except _Refused as refused:
        pointer = "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in reversed(refused.path))
        where = pointer or "/ (the whole document)"
        msg = f"{source}, at {where}: {_short(refused.value)} is not accepted: {refused.said}"
        raise ValueError(msg) from None


@functools.cache
def _tested(part: str) -> _Test:
    return _test(schema()["$defs"][part] if part else schema())


def _test(rules: Mapping[str, Any]) -> _Test:
    """Whether a value follows the rules for certain: where it says no, ``_compile`` has the last word."""
    if "$ref" in rules:
        name = rules["$ref"].rpartition("/")[2]
        return _test_again(name) if name in _RECURSIVE else _tested(name)
    if "enum" in rules:
        known = frozenset(rules["enum"])
        return lambda v, _: type(v) is str and v in known
    names = [rules["type"]] if isinstance(rules["type"], str) else rules["type"]
    types = frozenset(t for name in names for t in _PYTHON[name])
    return _test_nested(rules, types) if types & {list, dict} else _test_plain(rules, types)


def _test_again(name: str) -> _Test:
    def test(v: Any, depth: int) -> bool:  # compiled when it is needed: a fact may hold facts
        return _tested(name)(v, depth)

    return test


def _test_plain(rules: Mapping[str, Any], types: frozenset[type]) -> _Test:
    if "pattern" in rules:
        form = re.compile(rules["pattern"].removeprefix("^").removesuffix("$"))
        return lambda v, _: type(v) is str and form.fullmatch(v) is not None
    if "minLength" in rules:
        return lambda v, _: type(v) is str and v != ""
    if "minimum" in rules:
        low = rules["minimum"]
        return lambda v, _: type(v) in types and low <= v < math.inf
    return lambda v, _: type(v) in types


def _test_nested(rules: Mapping[str, Any], types: frozenset[type]) -> _Test:
    """Of a list, an object, or a fact, which may be either and hold others."""
    below = rules.get("additionalProperties")
    fields = {key: _test(rule) for key, rule in rules.get("properties", {}).items()}
    item = _test(rules["items"]) if "items" in rules else None
    other = _test(below) if isinstance(below, dict) else None

    def test(v: Any, depth: int) -> bool:
        kind = type(v)
        if kind not in types or depth > DEEPEST:
            good = False
        elif kind is list:
            good = item is not None and all(item(i, depth + 1) for i in v)
        elif kind is dict and other is not None:
            good = all(other(i, depth + 1) for i in v.values())
        elif kind is dict:
            good = v.keys() == fields.keys() and all(fields[key](i, depth + 1) for key, i in v.items())
        else:
            good = kind is not float or math.isfinite(v)
        return good

    return test


@functools.cache
def _compiled(part: str, pick: bool) -> _Check:
    return _compile(schema()["$defs"][part] if part else schema(), pick)


def _compile(rules: Mapping[str, Any], pick: bool) -> _Check:
    if "$ref" in rules:
        return _referred(rules["$ref"].rpartition("/")[2], pick)
    if unknown := rules.keys() - _ANNOTATIONS - _RULES.keys() - {"properties", "required"}:
        msg = f"schema.json uses {', '.join(sorted(unknown))}, which is not implemented"
        raise NotImplementedError(msg)
    checks = [_RULES[key](rules, pick) for key in rules if key in _RULES]

    def all_of(value: Any, depth: int) -> None:
        for one in checks:
            one(value, depth)

    return checks[0] if len(checks) == 1 else all_of


def _referred(name: str, pick: bool) -> _Check:
    def test(value: Any, depth: int) -> None:  # compiled when it is needed: a fact may hold facts
        _compiled(name, pick)(value, depth)

    return test


def _type(rule: str | list[str]) -> _Check:
    names = [rule] if isinstance(rule, str) else rule
    tests = [_TYPES[name] for name in names]
    said = f"give {' or '.join(names)}"
    only = tests[0]

    def one(value: Any, _: int) -> None:
        if not only(value):
            raise _Refused(value, said)

    def any_of(value: Any, _: int) -> None:
        if not any(test(value) for test in tests):
            raise _Refused(value, said)

    return one if len(tests) == 1 else any_of


def _among(accepted: list[str]) -> _Check:
    known = set(accepted)
    said = "give one of " + ", ".join(json.dumps(v) for v in accepted)

    def test(value: Any, _: int) -> None:
        if not isinstance(value, str) or value not in known:
            raise _Refused(value, said)

    return test


def _at_least(least: int) -> _Check:
    def test(value: Any, _: int) -> None:
        if value < least:
            raise _Refused(value, f"give {least} or more")

    return test


def _not_empty(value: Any, _: int) -> None:
    if not value:
        raise _Refused(value, "give a string that is not empty")


def _matches(pattern: str) -> _Check:
    form = re.compile(pattern.removeprefix("^").removesuffix("$"))

    def test(value: Any, _: int) -> None:
        if not form.fullmatch(value):
            raise _Refused(value, f"give a string that matches {pattern}")

    return test


def _items(inner: _Check) -> _Check:
    def test(value: Any, depth: int) -> None:
        if not isinstance(value, list):
            return
        _deep(value, depth)
        for i, item in enumerate(value):
            _below(inner, item, str(i), depth)

    return test


def _open(inner: _Check) -> _Check:
    def test(value: Any, depth: int) -> None:
        if not isinstance(value, dict):
            return
        _deep(value, depth)
        for key, item in value.items():
            _below(inner, item, key, depth)

    return test


def _closed(rules: Mapping[str, Any], pick: bool) -> _Check:
    fields = {key: _compile(rule, pick) for key, rule in rules["properties"].items()}
    required = rules["required"]
    names = fields.keys()

    def test(value: Any, depth: int) -> None:
        if not isinstance(value, dict):  # null, where the type allows it
            return
        if value.keys() != names:
            if lacking := [key for key in required if key not in value]:
                raise _Refused(value, "it lacks " + ", ".join(map(repr, lacking)))
            unknown = [key for key in value if key not in names]
            if unknown and not pick:
                said = f"it has the unknown {', '.join(map(repr, unknown))}; known are {', '.join(names)}"
                raise _Refused(value, said)
            for key in unknown:
                del value[key]
        for key, item in value.items():
            _below(fields[key], item, key, depth)

    return test


def _below(inner: _Check, value: Any, step: str, depth: int) -> None:
    try:
        inner(value, depth + 1)
    except _Refused as refused:
        refused.path.append(step)
        raise


def _deep(value: Any, depth: int) -> None:
    if depth > DEEPEST:
        raise _Refused(value, f"it is nested deeper than {DEEPEST} levels")


_RULES: dict[str, Callable[[Mapping[str, Any], bool], _Check]] = {
    "type": lambda rules, _: _type(rules["type"]),
    "enum": lambda rules, _: _among(rules["enum"]),
    "minimum": lambda rules, _: _at_least(rules["minimum"]),
    "minLength": lambda *_: _not_empty,
    "pattern": lambda rules, _: _matches(rules["pattern"]),
    "items": lambda rules, pick: _items(_compile(rules["items"], pick)),
    "additionalProperties": lambda rules, pick: (
        _open(_compile(rules["additionalProperties"], pick)) if rules["additionalProperties"] else _closed(rules, pick)
    ),
}


def _short(value: object) -> str:
    try:
        text = json.dumps(value, default=repr)
    except RecursionError:
        text = "..."
    return text if len(text) <= _LONGEST else text[: _LONGEST - 4] + " ..."
