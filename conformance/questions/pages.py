"""The pages: one per question, and one that lists them; a function of the answers alone."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from halfeven.conformance.questions.affine import AFFINE
from halfeven.conformance.questions.asking import columns
from halfeven.conformance.questions.functions import FUNCTIONS
from halfeven.conformance.questions.question import OperationQuestion, Question, Row
from halfeven.conformance.report.words import code, table, text

__all__ = ["LAST", "QUESTIONS", "RECORD", "Answers", "pages", "write"]

_ALL: tuple[Question, ...] = (*AFFINE, *FUNCTIONS)
QUESTIONS: dict[str, Question] = {q.name: q for q in _ALL}
RECORD = "answers.json"
_MADE = "*Made by `halfeven questions` of what the backends answer.*"
LAST = "[All questions](README.md)"
_WIDE = 28  # characters of a cell


@dataclass(frozen=True)
class Answers:
    """What came of all questions.

    Attributes:
        rows: by the question's name.
        absent: the backends that were not asked, each with the reason.
    """

    rows: Mapping[str, Sequence[Row]]
    absent: Mapping[str, str]


def write(found: Answers, folder: Path) -> None:
    """The answers as a record, and the pages."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {"rows": {n: [asdict(r) for r in rows] for n, rows in found.rows.items()}, "absent": dict(found.absent)}
    (folder / RECORD).write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    for name, page in pages(found).items():
        (folder / name).write_text(page, encoding="utf-8")


def pages(found: Answers) -> dict[str, str]:
    """Every page by its file's name; the first lists the questions."""
    made = {f"{name}.md": _page(QUESTIONS[name], rows, found.absent) for name, rows in found.rows.items()}
    return {"README.md": _first(found), **made}


def _first(found: Answers) -> str:
    lines = ["# Which rounding does X use?", "", _MADE, ""]
    lines += ["Each page asks every backend the same, on the same inputs.", ""]
    rows = []
    for name, answers in found.rows.items():
        asked, differ = len({r.backend for r in answers}), len({r.backend for r in answers if r.surprising})
        rows.append([f"[{QUESTIONS[name].title}]({name}.md)", str(asked), str(differ)])
    lines += [table(["question", "backends", "differ from their document"], rows, right=("backends",)), ""]
    return "\n".join([*lines, *_absent(found.absent)]).rstrip() + "\n"


def _page(question: Question, answers: Sequence[Row], absent: Mapping[str, str]) -> str:
    lines = [f"# {question.title}", "", _MADE, "", question.why, ""]
    lines += [*_summary(answers)]
    lines += [
        *(_operation_table if isinstance(question, OperationQuestion) else _function_table)(question, answers),
        "",
    ]
    differing = [r for r in answers if r.surprising]
    if differing:
        lines += ["## Where a library differs from its document", ""]
        lines += [
            f"- {' '.join(filter(None, (code(r.backend), text(r.version))))}, {text(r.what)}: {_differing(w)}"
            for r in differing
            for w in r.witnesses
        ]
        lines.append("")
    lines += ["## Calls", "", *_calls(question, answers), "", *_absent(absent), "", LAST]
    return "\n".join(lines).rstrip() + "\n"


def _differing(witness: str) -> str:
    """The call, which can be copied, and what came of it."""
    call, _, came = witness.rpartition(": document ")
    return f"{code(call, 400)}: document {text(came)}"


def _summary(answers: Sequence[Row]) -> Iterator[str]:
    """What most do, and who does otherwise."""
    counts = Counter(r.does for r in answers if r.does)
    for does, number in counts.most_common():
        names = list(dict.fromkeys(r.backend for r in answers if r.does == does))
        yield f"- **{text(does)}**: {', '.join(map(code, names))} ({number})"
    if counts:
        yield ""


def _operation_table(question: Question, answers: Sequence[Row]) -> Iterator[str]:
    heads = ["backend", "version", "operation", *columns(question)]
    rows = [[code(r.backend), text(r.version), text(r.what), *_cells(r, len(heads) - 3)] for r in answers]
    yield table(heads, rows) if rows else "No backend that is installed was asked."


def _function_table(question: Question, answers: Sequence[Row]) -> Iterator[str]:
    """One table per set of columns would say the same inputs again: a table for each thing that was asked."""
    heads = ["backend", "asked", *columns(question)]
    rows = [[code(r.backend), text(r.what), *_cells(r, len(heads) - 2)] for r in answers]
    yield table(heads, rows) if rows else "No backend that is installed was asked."


def _cells(row: Row, number: int) -> list[str]:
    if row.note:
        return [text(row.note, 80), *[""] * (number - 1)]
    said = [*row.document, *[""] * number]
    shown = [f"**{text(c, _WIDE)}**" if s and c != s else text(c, _WIDE) for c, s in zip(row.cells, said, strict=False)]
    return [*shown, *[""] * (number - len(shown))]


def _calls(question: Question, answers: Sequence[Row]) -> Iterator[str]:
    yield "An answer in bold is another than that of the document which the backend claims."
    yield ""
    if isinstance(question, OperationQuestion):
        zero = f", zero point {question.zero}" if question.zero else ""
        yield (
            f"x: {', '.join(question.x) or 'no elements'} in {question.dtype}; scale {question.scale}{zero}; codes of"
            " int8 unless the row says more. A backend is handed the scale in the dtype that its document names, or as"
            " amax, scale * 127."
        )
        return
    yield "Of an array the distinct numbers are shown; a semicolon separates results. The first call of each row:"
    yield ""
    for call in dict.fromkeys(r.call for r in answers if r.call):
        yield f"- {code(call, 300)}"


def _absent(absent: Mapping[str, str]) -> Iterator[str]:
    if absent:
        yield "## Not run"
        yield ""
        yield from (f"- {code(name)}: {text(why, 200)}" for name, why in absent.items())
