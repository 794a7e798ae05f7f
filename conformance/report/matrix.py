"""The matrix over all committed reports: what each backend does with each aspect of the profile it claims."""

import os
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from urllib.parse import quote

from halfeven.conformance.report.causes import words
from halfeven.conformance.report.codec import read_json
from halfeven.conformance.report.groups import Group, aspect, backends, group
from halfeven.conformance.report.model import OPERATIONS, BackendRecord, Report, Result
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.words import MEANING, SHORT, code, count, progress, table, text

__all__ = ["matrix", "write_matrix"]

_INTRODUCTION = (
    "Each row is a library as installed from its public package, held against the profile in its row. "
    "This page is generated from the reports in the folders next to it."
)
#: Pages that a folder of reports may have besides, and what they answer.
_BESIDE = {
    "questions/README.md": "Which rounding does each really do?",
    "exhaustive.md": "Are all inputs of a dtype right?",
    "performance/README.md": "How fast are the kernels?",
}
_CAUSES = 2  # named in a row of the functions
_ASPECTS = 3  # named in a row of the differences
_DIFFERENCES = 200


def matrix(reports: Sequence[Report], links: Sequence[str] = (), beside: Sequence[str] = ()) -> str:
    """The matrix as Markdown.

    Args:
        reports: one per run; their order is the order of the rows.
        links: for each report the path to link to, relative to the matrix; without it there are no links.
        beside: the other pages to link to, of those that there are.
    """
    if links and len(links) != len(reports):
        msg = f"links={links!r} is not accepted: give one for each of the {len(reports)} reports, or none"
        raise ValueError(msg)
    rows = [
        (_name(record, link), record, results)
        for report, link in zip(reports, links or [""] * len(reports), strict=True)
        for record, results in backends(report)
    ]
    problems = [
        f"- {text(link or report.command)}: {progress(report)}"
        for report, link in zip(reports, links or [""] * len(reports), strict=True)
        if progress(report)
    ]
    parts = [
        "# What real libraries do",
        " ".join([_INTRODUCTION, *(f"[{_BESIDE[page]}]({page})" for page in beside)]),
        *(["**Incomplete:**\n\n" + "\n".join(problems)] if problems else []),
        _overview(rows),
        *(_operation(operation, rows) for operation in OPERATIONS),
        _functions(rows),
        _differences(rows),
        _legend(rows),
    ]
    return printable("\n\n".join(part for part in parts if part) + "\n")


def write_matrix(reports_dir: str | os.PathLike[str]) -> Path:
    """Read ``*/report.json`` under the folder and write the matrix to its ``README.md``; the same reports, same bytes.

    It links the folder's other pages.

    Raises:
        FileNotFoundError: there is no report.
        ValueError: a report does not follow the schema.
    """
    root = Path(reports_dir)
    paths = sorted(root.glob("*/report.json"), key=lambda path: path.parent.name)
    if not paths:
        msg = f"reports_dir={str(root)!r} is not accepted: it has no */report.json"
        raise FileNotFoundError(msg)
    target = root / "README.md"
    links = [f"{p.parent.name}/report.md" if p.with_name("report.md").exists() else f"{p.parent.name}/" for p in paths]
    beside = [page for page in _BESIDE if (root / page).exists()]
    content = matrix([read_json(path) for path in paths], links, beside)
    target.write_text(content, encoding="utf-8", newline="\n")
    return target


_Rows = Sequence[tuple[str, BackendRecord, Group]]


def _name(record: BackendRecord, link: str) -> str:
    name = code(record.name)
    return f"[{name}]({quote(link)})" if link else name


def _version(record: BackendRecord) -> str:
    return text(" ".join(filter(None, [record.library, record.version])))


def _cell(results: Group) -> str:
    if not results.results:
        return ""
    word = SHORT.get(results.outcome, results.outcome)
    return f"{word} {len(results.parting):,}/{len(results.ran):,}" if results.parting else word


def _part(results: Group, operation: str, name: str | None = None) -> Group:
    of_operation = (r for r in _of_operations(results) if r.operation == operation)
    return Group((), tuple(r for r in of_operation if name in (None, aspect(r.requirement))))


def _overview(rows: _Rows) -> str:
    body = [
        (
            name,
            _version(record),
            code(record.profile),
            *(_cell(_part(results, operation)) for operation in OPERATIONS),
            _cell(Group((), tuple(_of_functions(results)))),
            f"{results.points:,}",
        )
        for name, record, results in rows
    ]
    headers = ("backend", "library", "profile", *OPERATIONS, "functions", "points compared")
    return "## Overview\n\n" + table(headers, body, ("points compared",)) if body else "There is no backend."


def _operation(operation: str, rows: _Rows) -> str:
    of_operation = (r for _, _, g in rows for r in _of_operations(g) if r.operation == operation)
    aspects = sorted({aspect(r.requirement) for r in of_operation})
    body = []
    for name, record, results in rows:
        part = _part(results, operation)
        by = {g.key[0]: g for g in group(part.results, lambda r: (aspect(r.requirement),))}
        if by:
            cells = (_cell(by[a]) if a in by else "" for a in aspects)
            body.append((name, code(record.profile), *cells))
    return f"## {operation}\n\n" + table(("backend", "profile", *map(text, aspects)), body) if body else ""


def _of_operations(results: Group) -> Iterable[Result]:
    return (r for r in results.results if "formula" not in r.configuration)


def _of_functions(results: Group) -> Iterable[Result]:
    """The results of documented functions, some of which bear the name of an operation."""
    return (r for r in results.results if "formula" in r.configuration)


def _functions(rows: _Rows) -> str:
    """One row for each backend and function: what is exact, what is as measured, what differs, and as which version."""
    body = []
    for name, record, results in rows:
        for part in group(_of_functions(results), lambda r: (r.operation,)):
            outcomes = Counter(g.outcome for g in group(part.results, lambda r: (r.requirement,)))
            causes = "; ".join(text(c, 120) for c in part.causes[:_CAUSES])
            body.append(
                (
                    name,
                    code(record.profile),
                    code(part.key[0]),
                    _cell(part),
                    f"{outcomes['exact']:,}",
                    f"{outcomes['as measured'] or ''}",
                    causes,
                    f"{part.points:,}",
                )
            )
    headers = ("backend", "profile", "function", "outcome", "exact", "as measured", "cause", "points compared")
    right = ("exact", "as measured", "points compared")
    return f"## Documented functions\n\n{table(headers, body, right)}" if body else ""


def _differences(rows: _Rows) -> str:
    body = []
    for name, record, results in rows:
        for part in group(results.parting, lambda r: (r.operation, _said(r))):
            w = part.shown.witness
            shown = (w.x, w.scale, w.zero, w.expected, w.actual) if w else ("no witness", "", "", "", "")
            body.append(
                (
                    name,
                    code(record.profile),
                    part.key[0],
                    _some(aspect(r.requirement) for r in part.results),
                    part.outcome,
                    text(part.key[1]),
                    *(code(value) if w else value for value in shown),
                )
            )
    if not body:
        return ""
    headers = ("backend", "profile", "operation", "seen in", "outcome", "cause")
    left = len(body) - _DIFFERENCES
    more = f"\n\n{count(left, 'difference')} more not shown here; the JSON reports have them all." if left > 0 else ""
    shown_table = table((*headers, "x", "scale", "zero", "expected", "actual"), body[:_DIFFERENCES])
    return f"## Differences found\n\nOne witness for each cause; the reports have the scripts.\n\n{shown_table}{more}"


def _said(result: Result) -> str:
    """The causes with their codes; of an older report its cause."""
    return "; ".join(words((c.code, c.sentence, c.where)) for c in result.causes) or result.cause


def _some(names: Iterable[str]) -> str:
    distinct = sorted(set(names))
    more = [f"and {len(distinct) - _ASPECTS} more"] if len(distinct) > _ASPECTS else []
    return ", ".join([*map(text, distinct[:_ASPECTS]), *more])


def _legend(rows: _Rows) -> str:
    occurring = {r.outcome for _, _, results in rows for r in results.results}
    body = [(SHORT.get(outcome, outcome), meaning) for outcome, meaning in MEANING.items() if outcome in occurring]
    fractions = "`differs 3/12`: 3 of the 12 checks that ran part from the profile. "
    empty = "An empty cell: the backend does not offer it, or the profile states nothing there."
    return f"## Legend\n\n{table(('cell', 'meaning'), body)}\n\n{fractions}{empty}" if body else ""
