"""Text for Markdown: cells, tables, fences, and how counts and differences are said."""

import re
import shlex
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

from tabulate import tabulate

from halfeven.conformance.report.groups import Group
from halfeven.conformance.report.model import BackendRecord, OutcomeName, Report, Result
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.share import EACH, unmet

__all__ = [
    "AFTER_OTHERS",
    "MEANING",
    "SHORT",
    "capped",
    "code",
    "count",
    "fence",
    "library",
    "not_run",
    "percent",
    "progress",
    "replay",
    "share",
    "shorten",
    "steps",
    "table",
    "text",
    "verdict",
]

MEANING: dict[OutcomeName, str] = {
    "exact": "every value compared is the one that the profile documents, bit for bit",
    "as measured": "every value compared is what a release was measured to do; no document says it",
    "bounded": "sums lie within the bound proved for any order of addition, which no document states; else as exact",
    "budgeted": "it differs by no more than a declared waiver allows, and only at ties",
    "implementation-defined": "the document is silent; the value seen is reported and never failed",
    "explained": "it differs from the profile it claims, and another model, which is named, reproduces it bit for bit",
    "differs": "it differs from the profile it claims, and no named model reproduces it",
    "timed out": "the backend came to no answer in the time it was given; the rest of the run went on",
    "crashed": "the backend raised, or returned something that is no answer; the rest of the run went on",
    "not run": "nothing was compared, for the reason given; it counts neither for nor against the backend",
}


#: How the place of a witness ends that other calls have to be made before.
AFTER_OTHERS = " other calls"

#: Where a column should not be as wide as the outcome's name.
SHORT: dict[OutcomeName, str] = {"implementation-defined": "impl.-defined"}


def text(value: object, limit: int = 160) -> str:
    """Words as one line of Markdown that neither breaks a table nor is taken for markup."""
    line = shorten(value, limit)
    line = line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    # An underscore inside a word, and a bracket without a target, are plain text already.
    return re.sub(r"([\\|*`]|(?<!\w)_|_(?!\w)|\](?=\())", r"\\\1", line)


def code(value: object, limit: int = 160) -> str:
    """Words as a code span that does not break a table; empty stays empty."""
    line = shorten(value, limit).replace("|", "\\|")
    if not line:
        return ""
    ticks = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    return f"{ticks} {line} {ticks}" if "`" in line else f"`{line}`"


def shorten(value: object, limit: int) -> str:
    """One line of at most ``limit`` characters."""
    line = printable(" ".join(str(value).split()), "")
    return line if len(line) <= limit else line[: limit - 4] + " ..."


def fence(source: str, language: str = "", limit: int = 60) -> str:
    """A fenced block; of a longer text the last ``limit`` lines, which is where a traceback says what happened."""
    lines = printable(source, "\n\t").strip("\n").split("\n")
    if len(lines) > limit:
        lines = [f"... {len(lines) - limit} lines are not shown", *lines[-limit:]]
    ticks = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", source)), default=0))
    return "\n".join([f"{ticks}{language}", *lines, ticks])


def count(number: int, one: str = "", many: str = "") -> str:
    """``1,234 checks``; ``many`` is ``one`` with an s, unless it is given."""
    noun = one if number == 1 else many or f"{one}s" if one else ""
    return f"{number:,} {noun}".rstrip()


def steps(found: Mapping[str, int]) -> str:
    """The largest differences in words: ``3 code steps, 1 ulp``; empty where there is none."""
    return ", ".join(
        f"{n:,} {unit.removesuffix('s') if n == 1 and unit.endswith('s') else unit}".rstrip()
        for unit, n in sorted(found.items())
    )


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> str:
    """A GitHub table; ``right`` names the columns that are flush right."""
    align = ["right" if h in right else "left" for h in headers]
    return tabulate(rows, list(headers), tablefmt="github", disable_numparse=True, colalign=align if rows else None)


def capped(
    rows: Sequence[Sequence[str]], headers: Sequence[str], limit: int, noun: str, right: Sequence[str] = ()
) -> str:
    """A table of at most ``limit`` rows, and a line that says how many are not shown and where they are."""
    shown = table(headers, rows[:limit], right)
    left = len(rows) - limit
    return shown if left <= 0 else f"{shown}\n\n{count(left, noun)} more not shown here; the JSON report has them all."


def library(record: BackendRecord) -> str:
    """The backend with its version in Markdown, and its library where that has another name."""
    known = record.library and record.library != record.name
    version = " ".join(filter(None, [record.library if known else "", record.version]))
    return code(record.name) + (f" ({text(version)})" if known else f" {text(version)}" if version else "")


def progress(report: Report) -> str:
    """What is wrong with the run as a whole: it was interrupted, or nothing ran; empty where all is well."""
    finished = len(report.results)
    said = []
    lost = finished + len(report.not_run) < report.expected
    if lost or not report.complete:
        said.append(f"Incomplete: {finished:,} of {count(report.expected, 'check')} finished.")
    if not report.ran:
        said.append("Nothing ran: no value was compared, so this run is a failure.")
    return " ".join(said)


def verdict(results: Group, require: str = EACH, lacks: Collection[str] = ()) -> str:
    """A backend's verdict in a word or two: conforms, differs, not judged or not run."""
    if not results.ran:
        return "not run"
    if results.parting:
        return "differs"
    open_ = results.counts["implementation-defined"] == len(results.ran)
    return "not judged" if open_ or unmet(results.results, require, lacks) else "conforms"


def not_run(results: Group) -> str:
    """The most frequent reason why checks were not run."""
    skipped = (r.detail or r.cause or "no reason was recorded" for r in results.results if r.outcome == "not run")
    reasons = Counter(skipped).most_common(1)
    return shorten(reasons[0][0], 120) if reasons else "no check finished"


def percent(part: int, whole: int) -> str:
    """A share that is 0% only where the part is 0, and 100% only where it is the whole: ``<1%``, ``>99%``."""
    if not 0 < part < whole:
        return "100%" if part else "0%"
    rounded = round(100 * part / whole)
    return "<1%" if rounded < 1 else ">99%" if rounded > 99 else f"{rounded}%"  # noqa: PLR2004 - percent


def share(results: Group, require: str = EACH, lacks: Collection[str] = ()) -> str:
    """Whether a backend conforms, in how many of its checks, and how many of them were not run.

    Without the share a backend that refuses most checks would look as good as one that passes them.
    """
    ran, skipped = len(results.ran), results.counts["not run"]
    if not ran:
        return f"nothing ran: {not_run(results)}"
    left = f"; {skipped:,}" if skipped else ""
    missed = unmet(results.results, require, lacks)
    if results.parting:
        died = ", ".join(f"{results.counts[o]:,} {o}" for o in ("timed out", "crashed") if results.counts[o])
        checks = f"the {count(ran, 'check')} that ran" if skipped else count(ran, "check")
        said = f"differs in {len(results.parting):,} of {checks}" + (f" ({died})" if died else "")
        left += f" of {ran + skipped:,}" if skipped else ""
    elif results.counts["implementation-defined"] == ran:
        said = f"not judged: the document leaves {_those(ran, skipped)} open"
    elif missed:
        return f"nothing differs in {_those(ran, skipped)}, too few to conform: {shorten(missed, 300)}"
    else:
        said = f"conforms in {_those(ran, skipped)}"
    if alike := results.counts["as measured"]:
        said += f"; {alike:,} as measured"
    # Most of it missing wants a reason; a few checks have theirs in the report.
    why = f": {not_run(results)}" if skipped > ran else ""
    return f"{said}{left} not run{why}" if skipped else said


def _those(ran: int, skipped: int) -> str:
    return f"the {ran:,} of {count(ran + skipped, 'check')} that ran" if skipped else count(ran, "check")


def replay(report: Report, result: Result) -> str:
    """The command that makes this result alone again, into a folder of its own."""
    try:
        words = shlex.split(report.command)
    except ValueError:  # an open quote: no shell has run this
        words = report.command.split()
    words = words[: words.index("--")] if "--" in words else words
    option = "--item" if words[:1] == ["halfeven"] else "--halfeven-item"
    for name, values in (("--resume", 0), ("--out", 1), ("--halfeven-out", 1), (option, 1), ("-k", 1)):
        while name in words:
            i = words.index(name)
            del words[i : i + 1 + values]
    words = [w for w in words if not w.startswith(("--out=", "--halfeven-out=", f"{option}="))]
    out = "--out" if option == "--item" else "--halfeven-out"
    return shlex.join([*words, option, f"{result.backend}::{result.id}", out, "halfeven-replay"])
