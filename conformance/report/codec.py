"""Reports as JSON files, and the plan and the journal, which keep what an interrupted run has finished.

What is read may be anybody's: it is checked against the schema and against itself, and refused with the file's name.
"""

import contextlib
import dataclasses
import json
import math
import os
from collections.abc import Iterator, Mapping
from numbers import Integral
from pathlib import Path
from typing import Any

from halfeven.conformance.report.causes import by_cause, showing, together
from halfeven.conformance.report.journal import Absent, Entry, Journal, Kept, Known, Plan
from halfeven.conformance.report.model import SCHEMA_VERSION, BackendRecord, Cause, Report, Result, Witness
from halfeven.conformance.report.schema import check, minor

__all__ = [
    "append",
    "from_dict",
    "read_journal",
    "read_json",
    "read_plan",
    "result_of",
    "to_dict",
    "write_json",
    "write_plan",
    "write_text",
]

_DIGITS = 1_000
#: The parts that are lines of a journal, but for results, and a field that no other has.
_PARTS = {"known": "record", "absent": "absent", "kept": "answers"}
_MINOR = int(SCHEMA_VERSION.partition(".")[2])
# What minor versions have added, and what a report meant before.
_ADDED: dict[str, dict[str, Any]] = {
    "report": {"require": "any", "missing": [], "causes": []},
    "backends": {"lacks": []},
    "results": {"ended": "", "asked": 0, "refused": 0, "causes": []},
}
#: What minor version 2 added to a witness.
_SINCE_2 = {"nearer": "", "unshown": "", "longer": ""}


def to_dict(report: Report) -> dict[str, Any]:
    """The report as plain JSON data; tuples become lists, the integers of NumPy become ints.

    Raises:
        TypeError: a value has no place in a report; the message says where it stands.
    """
    names = [f.name for f in dataclasses.fields(Report)]
    # What one looks for first stands first; the long list of results stands last.
    head = ("schema_version", "created", "command", "tier", "seed", "complete", "expected", "require")
    order = [*head, *(n for n in names if n not in (*head, "results"))]
    said = {name: _plain(getattr(report, name), name) for name in order}
    return said | {"causes": _causes(report), "results": _plain(report.results, "results")}


def from_dict(data: dict[str, Any], source: str = "report") -> Report:
    """The report of ``to_dict``'s data; ``source`` is what an error calls it.

    Of a later minor version the unknown fields are left out. ``data`` are not to be used afterwards.

    Raises:
        ValueError: the data do not follow the schema, or contradict themselves.
    """
    version = minor(data.get("schema_version") if isinstance(data, dict) else None, source)
    if version is not None and version <= _MINOR:
        _upgrade(data)
    check(data, source, pick=version is not None and version > _MINOR)
    fields = {name: value for name, value in data.items() if name != "causes"}  # these follow from the results
    report = Report(
        **{
            **fields,
            "backends": tuple(_backend(b) for b in data["backends"]),
            "results": tuple(result_of(r) for r in data["results"]),
            "not_run": tuple(dict(n) for n in data["not_run"]),
            "missing": tuple(data["missing"]),
        }
    )
    _check_whole(report, source)
    return report


def write_json(report: Report, path: str | os.PathLike[str]) -> None:
    """Write the report to ``path``, whole or not at all; folders are made as needed.

    Every element of a list stands on one line, so that two reports compare well line by line.

    Raises:
        TypeError, ValueError: the report does not follow the schema, or contradicts itself; then nothing is written.
        OSError: it cannot be written; the message names the path.
    """
    data = to_dict(report)
    source = f"the report for {path}"
    check(data, source)
    _check_whole(report, source)
    _write(_document(data), Path(path))


def read_json(path: str | os.PathLike[str]) -> Report:
    """Read a report.

    Raises:
        ValueError: it is no JSON, or does not follow the schema; the message names the path, the JSON pointer, the
            value and what is accepted.
        OSError: the file cannot be read.
    """
    return from_dict(_load(Path(path).read_bytes(), str(path)), str(path))


def write_text(text: str, path: str | os.PathLike[str]) -> None:
    """Write a text to ``path``, whole or not at all.

    Raises:
        OSError: it cannot be written; the message names the path.
    """
    _write(text.encode("utf-8", "backslashreplace"), Path(path))


def write_plan(plan: Plan, path: str | os.PathLike[str]) -> None:
    """Write what a run sets out to do, whole or not at all.

    Raises:
        TypeError, ValueError, OSError: as ``write_json``.
    """
    data = {f.name: _plain(getattr(plan, f.name), f.name) for f in dataclasses.fields(Plan)}
    check(data, f"the plan for {path}", "plan")
    _write(_document(data), Path(path))


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read the plan of a run.

    Raises:
        ValueError, OSError: as ``read_json``.
    """
    source = str(path)
    data = _load(Path(path).read_bytes(), source)
    version = minor(data.get("schema_version") if isinstance(data, dict) else None, source)
    check(data, source, "plan", pick=version is not None and version > _MINOR)
    return Plan(**{**data, "names": None if data["names"] is None else tuple(data["names"])})


def append(path: str | os.PathLike[str], entry: Entry) -> None:
    """Add one line to the journal, which is made as needed: a finished result, or what is known of a backend.

    One process writes a journal. A torn last line, left by a run that was killed, is cut off first.

    Raises:
        TypeError, ValueError: the entry does not follow the schema; then nothing is written.
        OSError: it cannot be written; the message names the path.
    """
    data = _plain(entry, "entry")
    source = f"result {entry.id!r}" if isinstance(entry, Result) else f"entry {type(entry).__name__}"
    check(data, source, _part(data))
    if isinstance(entry, Result):
        _check_result(entry, source)
    target = Path(path)
    with _named(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("ab+") as file:
            _cut_torn_line(file)
            file.write(_dumps(data) + b"\n")
            file.flush()


def read_journal(path: str | os.PathLike[str], plan: Plan | None = None) -> Journal:
    """The journal of a run; of several lines on one check the last counts.

    A torn last line is left out: its check did not finish. Where ``plan`` is of a later minor version, unknown fields
    are left out.

    Raises:
        ValueError: any other line is no JSON or no entry; the message names the path and the line.
        OSError: the file cannot be read.
    """
    pick = plan is not None and (minor(plan.schema_version, str(path)) or 0) > _MINOR
    journal = Journal()
    lines = Path(path).read_bytes().split(b"\n")
    for number, line in enumerate(lines[:-1], 1):  # what follows the last line's end is empty, or torn
        source = f"{path}, line {number}"
        data = _load(line, source)
        part = _part(data)
        if part == "result":
            _upgrade({"results": [data]})
        check(data, source, part, pick=pick)
        match part:
            case "known":
                journal.add(Known(_backend(data["record"]), data["waivers"]))
            case "absent":
                journal.add(Absent(**data))
            case "kept":
                journal.add(Kept(**data))
            case _:
                result = result_of(data)
                _check_result(result, source)
                journal.add(result)
    return journal


def _part(data: object) -> str:
    """Which of the schema's parts a line of the journal is."""
    keys = data.keys() if isinstance(data, dict) else ()
    return next((part for part, key in _PARTS.items() if key in keys), "result")


def _causes(report: Report) -> list[dict[str, Any]]:
    """One entry for each cause, however many checks it fails; ``shown`` is the result with a witness of it."""
    found = []
    for one in by_cause(report.results):
        code, sentence, where = one.key
        shares = [c.share for r in one.results for c in r.causes if c.key == one.key]
        entry = {"code": code, "sentence": sentence, "where": where, "share": next(filter(None, shares), "")}
        names = [r.backend for r in one.results]
        backends = {name: names.count(name) for name in sorted({*names})}
        found.append(entry | {"with": together(one), "backends": backends, "shown": showing(one).name})
    return found


def _upgrade(data: dict[str, Any]) -> None:
    """Give a report the fields that came later."""
    for part, added in _ADDED.items():
        records = [data] if part == "report" else data.get(part)
        for record in records if isinstance(records, list) else ():
            if isinstance(record, dict):
                for name, value in added.items():
                    record.setdefault(name, value)
    for result in data.get("results", ()) if isinstance(data.get("results"), list) else ():
        made = result.get("witness") if isinstance(result, dict) else None
        if isinstance(made, dict) and made.keys().isdisjoint(_SINCE_2):  # its script was not run alone
            made |= {**_SINCE_2, "reproduced": False}
        causes = result.get("causes") if isinstance(result, dict) else None
        for cause in causes if isinstance(causes, list) else ():
            if isinstance(cause, dict):
                cause.setdefault("witness", None)  # since 1.3


def _check_whole(report: Report, source: str) -> None:
    """A report that contradicts itself was not written by a run, or was damaged since."""
    seen = set()
    for i, r in enumerate(report.results):
        _check_result(r, source, f"/results/{i}")
        key = (r.backend, r.requirement, r.id)
        if key in seen:
            msg = f"{source}, at /results/{i}: {r.name} is not accepted: the report has it twice"
            raise ValueError(msg)
        seen.add(key)
    if not report.complete:
        return
    if report.missing:
        msg = f"{source}, at /complete: true is not accepted: {len(report.missing)} checks are missing"
        raise ValueError(msg)
    if (finished := len(report.results) + len(report.not_run)) < report.expected:
        msg = f"{source}, at /complete: true is not accepted: {report.expected} checks were planned, it has {finished}"
        raise ValueError(msg)


def _check_result(r: Result, source: str, where: str = "") -> None:
    said = ""
    if r.differing > r.points:
        said = f"{r.differing} of {r.points} points differ"
    elif r.outcome in {"exact", "as measured", "bounded"} and (not r.points or r.differing or r.steps):
        said = f"{r.points} points were compared, {r.differing} differ by {r.steps}"
    elif r.outcome in {"not run", "implementation-defined"} and (r.differing or r.steps):
        said = f"{r.differing} points differ by {r.steps}"
    elif r.outcome == "not run" and r.points:
        said = f"{r.points} points were compared"
    elif r.ended and r.outcome not in {"crashed", "timed out", "not run"}:
        said = f"the process that was asked ended ({r.ended})"
    if said:
        msg = f"{source}, at {where}/outcome: {r.outcome!r} is not accepted for {r.name}: {said}"
        raise ValueError(msg)


def _backend(data: Mapping[str, Any]) -> BackendRecord:
    lists = ("operations", "dtypes", "granularities", "lacks")
    return BackendRecord(**{**data, **{name: tuple(data[name]) for name in lists}})


def result_of(data: Mapping[str, Any]) -> Result:
    """A result of its fields as plain data."""
    causes = tuple(Cause(**{**c, "witness": _witness(c)}) for c in data["causes"])
    return Result(**{**data, "witness": _witness(data), "causes": causes})


def _witness(data: Mapping[str, Any]) -> Witness | None:
    return None if data["witness"] is None else Witness(**data["witness"])


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
        case BackendRecord() | Cause() | Result() | Witness() | Known() | Absent() | Kept():
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

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in found if keys.count(key) > 1)
            msg = f"{source}: the key {twice!r} is not accepted twice in one object"
            raise ValueError(msg)
        return found

    def integer(digits: str) -> int:
        if len(digits) > _DIGITS:
            msg = f"{source}: an integer of {len(digits):,} digits is not accepted: give at most {_DIGITS}"
            raise ValueError(msg)
        return int(digits)

    try:
        return json.loads(text.decode("utf-8"), parse_constant=refuse, object_pairs_hook=once, parse_int=integer)
    except UnicodeDecodeError as error:
        msg = f"{source} is not UTF-8 at byte {error.start}"
        raise ValueError(msg) from None
    except json.JSONDecodeError as error:
        msg = f"{source} is not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise ValueError(msg) from None
    except RecursionError:
        msg = f"{source} is not accepted: its values are nested too deeply to be read"
        raise ValueError(msg) from None


def _write(content: bytes, target: Path) -> None:
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    with _named(target):
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with temporary.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)


@contextlib.contextmanager
def _named(path: Path) -> Iterator[None]:
    """Errors of writing name the file: a full disk is otherwise an error without one."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


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
