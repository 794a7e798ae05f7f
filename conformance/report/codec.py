"""Reports as JSON files, and the journal that keeps what an interrupted run has finished."""

import dataclasses
import json
import math
import os
from collections.abc import Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from halfeven.conformance.report.model import BackendRecord, Report, Result, Witness
from halfeven.conformance.report.schema import check_report, check_result

__all__ = ["append", "from_dict", "read_journal", "read_json", "to_dict", "write_json"]


def to_dict(report: Report) -> dict[str, Any]:
    """The report as plain JSON data; tuples become lists, the integers of NumPy become ints.

    Raises:
        TypeError: a value has no place in a report; the message says where it stands.
    """
    names = [f.name for f in dataclasses.fields(Report)]
    # What one looks for first stands first; the long list of results stands last.
    head = ("schema_version", "created", "command", "tier", "seed", "complete", "expected")
    order = [*head, *(n for n in names if n not in (*head, "results")), "results"]
    return {name: _plain(getattr(report, name), name) for name in order}


def from_dict(data: Mapping[str, Any], source: str = "report") -> Report:
    """The report of ``to_dict``'s data; ``source`` is what an error calls it.

    Raises:
        ValueError: the data do not follow the schema.
    """
    check_report(data, source)
    return Report(
        **{
            **data,
            "backends": tuple(_backend(b) for b in data["backends"]),
            "results": tuple(_result(r) for r in data["results"]),
            "not_run": tuple(dict(n) for n in data["not_run"]),
        }
    )


def write_json(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the report to ``path``, whole or not at all; folders are made as needed.

    Every element of a list stands on one line, so that two reports compare well line by line.

    Raises:
        TypeError, ValueError: the report does not follow the schema; then nothing is written.
    """
    target = Path(path)
    data = to_dict(report)
    check_report(data, f"the report for {target}")
    target.parent.mkdir(parents=True, exist_ok=True)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with temporary.open("wb") as file:
            file.write(_document(data))
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def read_json(path: str | os.PathLike[str]) -> Report:
    """Read a report.

    Raises:
        ValueError: it is no JSON, or does not follow the schema; the message names the path, the JSON pointer, the
            value and what is accepted.
        OSError: the file cannot be read.
    """
    return from_dict(_load(Path(path).read_bytes(), str(path)), str(path))


def append(path: str | os.PathLike[str], result: Result) -> None:
    """Add one finished result to the journal, which is made as needed. One process writes a journal.

    A torn last line, left by a run that was killed, is cut off first.

    Raises:
        TypeError, ValueError: the result does not follow the schema; then nothing is written.
    """
    data = _plain(result, "result")
    check_result(data, f"result {result.id!r}")
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("ab+") as file:
        _cut_torn_line(file)
        file.write(_dumps(data) + b"\n")
        file.flush()


def read_journal(path: str | os.PathLike[str]) -> list[Result]:
    """The results of a journal in the order of writing; a torn last line is left out: its check did not finish.

    Raises:
        ValueError: any other line is no JSON or no result; the message names the path and the line.
        OSError: the file cannot be read.
    """
    lines = Path(path).read_bytes().split(b"\n")
    results = []
    for number, line in enumerate(lines[:-1], 1):  # what follows the last line's end is empty, or torn
        source = f"{path}, line {number}"
        data = _load(line, source)
        check_result(data, source)
        results.append(_result(data))
    return results


def _backend(data: Mapping[str, Any]) -> BackendRecord:
    lists = ("operations", "dtypes", "granularities")
    return BackendRecord(**{**data, **{name: tuple(data[name]) for name in lists}})


def _result(data: Mapping[str, Any]) -> Result:
    witness = data["witness"]
    return Result(**{**data, "witness": None if witness is None else Witness(**witness)})


def _plain(value: object, where: str) -> Any:
    match value:
        case None | bool() | str():
            return value
        case Integral():
            return int(value)
        case float() if math.isfinite(value):
            return float(value)
        case Mapping():
            for key in value:
                if not isinstance(key, str):
                    msg = f"the key {key!r} of {where} is not accepted: give a string"
                    raise TypeError(msg)
            return {key: _plain(item, f"{where}/{key}") for key, item in value.items()}
        case list() | tuple():
            return [_plain(item, f"{where}/{i}") for i, item in enumerate(value)]
        case BackendRecord() | Result() | Witness():
            names = (f.name for f in dataclasses.fields(value))
            return {name: _plain(getattr(value, name), f"{where}/{name}") for name in names}
        case _:
            msg = (
                f"{where}={value!r} is not accepted: give a string (for a real its hex bit pattern), an integer, "
                "a boolean, None, or a list or mapping of these"
            )
            raise TypeError(msg)


def _dumps(data: object) -> bytes:
    # A lone surrogate (from a file name in a traceback) becomes \udcXX, which is how JSON spells it.
    return json.dumps(data, ensure_ascii=False, allow_nan=False).encode("utf-8", "backslashreplace")


def _document(data: Mapping[str, Any]) -> bytes:
    parts = []
    for key, value in data.items():
        if isinstance(value, list) and value:
            text = b"[\n  " + b",\n  ".join(_dumps(item) for item in value) + b"\n ]"
        else:
            text = _dumps(value)
        parts.append(_dumps(key) + b": " + text)
    return b"{\n " + b",\n ".join(parts) + b"\n}\n"


def _load(text: bytes, source: str) -> Any:
    def refuse(constant: str) -> None:
        msg = f"{source}: the number {constant} is not accepted: JSON has none, and reals are hex bit patterns"
        raise ValueError(msg)

    try:
        return json.loads(text.decode("utf-8"), parse_constant=refuse)
    except UnicodeDecodeError as error:
        msg = f"{source} is not UTF-8 at byte {error.start}"
        raise ValueError(msg) from None
    except json.JSONDecodeError as error:
        msg = f"{source} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise ValueError(msg) from None


def _cut_torn_line(file: Any) -> None:
    end = file.seek(0, os.SEEK_END)
    position = end
    while position:
        file.seek(position - 1)
        if file.read(1) == b"\n":
            break
        position -= 1
    if position < end:
        file.truncate(position)
    file.seek(0, os.SEEK_END)
