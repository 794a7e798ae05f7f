"""The JSON schema of a report, and what is said about a value that it does not accept."""

import functools
import json
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator, validators
from jsonschema.exceptions import ValidationError, best_match

from halfeven.conformance.report.model import SCHEMA_VERSION

__all__ = ["check_report", "check_result", "schema"]

_LONGEST = 120
_RECURSIVE = ("fact", "setting")

# JSON Schema takes 3.0 for an integer. Counts and settings of a report are ints, or the file was not written by us.
_Strict: Any = validators.extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine(
        "integer", lambda _, value: isinstance(value, int) and not isinstance(value, bool)
    ),
)


@functools.cache
def schema() -> dict[str, Any]:
    """The schema as data; it is shared, so do not change it."""
    text = resources.files(__package__).joinpath("schema.json").read_text(encoding="utf-8")
    return dict(json.loads(text))


def check_report(data: object, source: str) -> None:
    """Check a whole report that was read from, or goes to, ``source``.

    Raises:
        ValueError: ``data`` is not of schema version 1; the message names the source, the JSON pointer, the
            value and what is accepted.
    """
    version = data.get("schema_version") if isinstance(data, dict) else None
    major = SCHEMA_VERSION.partition(".")[0]
    if isinstance(version, str) and version.partition(".")[0] != major:
        msg = f"{source} has schema_version {version!r}, which this program does not read: it reads {major}.x"
        raise ValueError(msg)
    _check(_validators()[0], data, source)


def check_result(data: object, source: str) -> None:
    """Check one result, as it stands in a journal.

    Raises:
        ValueError: as for ``check_report``.
    """
    _check(_validators()[1], data, source)


@functools.cache
def _validators() -> tuple[Any, Any]:
    whole = schema()
    definitions = {name: whole["$defs"][name] for name in _RECURSIVE}
    part = {"$schema": whole["$schema"], **_inlined(whole["$defs"]["result"]), "$defs": definitions}
    return _Strict({**_inlined(whole), "$defs": definitions}), _Strict(part)


def _inlined(part: Any) -> Any:
    """The schema without its references, as far as it goes: looking each one up takes most of the time otherwise."""
    match part:
        case {"$ref": str(reference)} if (name := reference.rpartition("/")[2]) not in _RECURSIVE:
            return _inlined(schema()["$defs"][name])
        case dict():
            return {key: _inlined(value) for key, value in part.items() if key != "$defs"}
        case list():
            return [_inlined(value) for value in part]
        case _:
            return part


def _check(validator: Any, data: object, source: str) -> None:
    error = best_match(validator.iter_errors(data))
    if error is not None:
        pointer = "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in error.absolute_path)
        where = pointer or "/ (the whole document)"
        msg = f"{source}, at {where}: {_short(error.instance)} is not accepted: {_accepted(error)}"
        raise ValueError(msg)


def _accepted(error: ValidationError) -> str:
    value: Any = error.validator_value
    given: Any = error.instance
    match error.validator:
        case "enum":
            said = "give one of " + ", ".join(json.dumps(v) for v in value)
        case "type":
            said = "give " + (" or ".join(value) if isinstance(value, list) else f"{value}")
        case "required":
            said = "it lacks " + ", ".join(repr(v) for v in value if v not in given)
        case "additionalProperties" if value is False:
            known: Any = dict(error.schema)["properties"] if isinstance(error.schema, dict) else {}
            unknown = ", ".join(repr(v) for v in given if v not in known)
            said = f"it has the unknown {unknown}; known are {', '.join(known)}"
        case "minimum":
            said = f"give {value} or more"
        case "minLength":
            said = "give a string that is not empty"
        case "pattern":
            said = f"give a string that matches {value}"
        case _:
            said = error.message
    return said


def _short(value: object) -> str:
    text = json.dumps(value, default=repr)
    return text if len(text) <= _LONGEST else text[: _LONGEST - 4] + " ..."
