"""The report as Markdown: the verdicts first, then the counts, the requirements, and a witness for each difference."""

from collections import Counter
from collections.abc import Sequence

from halfeven.conformance.codes import NEAREST
from halfeven.conformance.codes import UNKNOWN as UNKNOWN_CODE
from halfeven.conformance.report.causes import UNKNOWN, by_cause, cause, entries, measured, showing, together, words
from halfeven.conformance.report.groups import SEVERITY, Group, aspect, backends, flatten, group, largest
from halfeven.conformance.report.model import CONFORMING, BackendRecord, OutcomeName, Report, Result
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.share import EACH, unmet
from halfeven.conformance.report.words import (
    MEANING,
    SHORT,
    capped,
    code,
    count,
    fence,
    library,
    progress,
    replay,
    steps,
    table,
    text,
)
from halfeven.conformance.requirements import requirements
from halfeven.reference.systems import PROFILES

__all__ = ["to_markdown", "verdict"]

_ROWS = 60  # of any one table
_WITNESSES = 48  # of the whole report
_PER_BACKEND = (3, 12)  # the fewest and the most of one backend
_CAUSES = 2  # of one requirement
_NAMES = 4  # of backends with one cause
_ALSO = 6  # requirements other than the one whose witness is shown

#: Outcomes that need no table, and how their list begins.
_AGREEING: dict[OutcomeName, str] = {
    "exact": "Exact, bit for bit, in every check",
    "as measured": "As a release was measured to do, where no document says what is right, in every check",
}

_Backends = list[tuple[BackendRecord, Group]]


def to_markdown(report: Report) -> str:
    """The report for a reader: a few hundred lines at most; the JSON has every result."""
    found = backends(report)
    problem = progress(report)
    parts = [
        *([f"**{problem}**"] if problem else []),
        "# Conformance report",
        "\n".join(f"- {verdict(record, results, report.require)}" for record, results in found)
        or "Nothing was tested.",
        _made_by(report),
        *_causes(report),
        "## Outcomes\n\nChecks by backend and operation.",
        _outcomes(found),
        *(_requirements(record, results) for record, results in found if results.ran),
        *_witnesses(report, found),
        *_not_run(report, found),
        "## Environment",
        table(("fact", "value"), [(text(k), text(v)) for k, v in flatten(report.environment).items()]),
        _paths(found),
        _legend({r.outcome for r in report.results}),
    ]
    return printable("\n\n".join(part for part in parts if part) + "\n", "\n\t")


def verdict(record: BackendRecord, results: Group, require: str = EACH) -> str:
    """One sentence: whether the backend conforms to the profile it claims, how often it parts, and what it does."""
    name, profile = library(record), f"profile {code(record.profile)}"
    skipped, ran = results.counts["not run"], len(results.ran)
    tail = f" ({count(skipped, 'check')} not run)" if skipped and results.ran else ""
    share = f" in the {ran:,} of {count(ran + skipped, 'check')} that ran" if skipped else ""
    match results.outcome:
        case "not run":
            return f"{name} did not run against {profile}: nothing was compared."
        case outcome if outcome in CONFORMING and (missed := unmet(results.results, require, record.lacks)):
            return f"{name} is not judged against {profile}: nothing differs{share}; {text(missed, 300)}."
        case "exact" if results.counts["exact"] == ran:
            points = count(results.points, "value")
            return f"{name} conforms to {profile}{share}: {count(ran, 'check')} exact, {points} compared{tail}."
        case outcome if outcome in CONFORMING:
            kinds: tuple[OutcomeName, ...] = ("exact", "as measured", "bounded", "budgeted", "implementation-defined")
            parts = ", ".join(f"{results.counts[o]:,} {o}" for o in kinds if results.counts[o])
            return f"{name} conforms to {profile}{share}: of {count(ran, 'check')} {parts}{tail}."
        case _:
            said = f"{name} differs from {profile}: {len(results.parting):,} of {count(ran, 'check')}"
            return f"{said}{tail}{_explanation(results)}."


def _causes(report: Report) -> list[str]:
    """One row for each cause, however many checks it fails."""
    rows = []
    for found in by_cause(report.results):
        code_, sentence, where = found.key
        also, names = together(found), sorted({r.backend for r in found.results})
        shares = {c.share: None for r in found.results for c in r.causes if (c.code, c.sentence, c.where) == found.key}
        said = sentence + (f" (with {', '.join(also)})" if also and code_ else "")
        more = f" and {len(names) - _NAMES} more" if len(names) > _NAMES else ""
        rows.append(
            (
                code(code_),
                text(said, 200),
                text("; ".join(filter(None, (where, *(f"gives {s}" for s in shares if s)))), 120),
                f"{len(found.results):,}",
                ", ".join(map(code, names[:_NAMES])) + more,
            )
        )
    headers = ("code", "what it does", "where", "checks", "backends")
    tail = "`halfeven explain CODE` tells more of each."
    return [f"## Causes\n\n{capped(rows, headers, _ROWS, 'cause', ('checks',))}\n\n{tail}"] if rows else []


def _explanation(results: Group) -> str:
    """``; reproduces `torchao@0.18` bit for bit``, and how many of the differences are of another kind."""
    explained = Group((), tuple(r for r in results.parting if r.outcome == "explained"))
    died: tuple[OutcomeName, ...] = ("timed out", "crashed")
    rest = ((results.counts["differs"], "not explained"), *((results.counts[o], o) for o in died))
    said = [f"{n:,} {words}" for n, words in rest if n and (explained.results or any(results.counts[o] for o in died))]
    if explained.results:
        models = list(dict.fromkeys(map(_model, explained.causes))) or ["a model that is not named"]
        more = f" or {count(len(models) - _CAUSES, 'other model')}" if len(models) > _CAUSES else ""
        where = f" in {len(explained.results):,} of them" if said else ""
        said.insert(0, f"reproduces {' or '.join(models[:_CAUSES])}{more} bit for bit{where}")
    return "".join(f"; {part}" for part in said)


def _model(said: str) -> str:
    """The profile or release that a cause names, ``as torchao@0.18: ...``; else the cause itself."""
    name = measured(said)
    return code(name) if name else text(said)


def _made_by(report: Report) -> str:
    when = f" on {text(report.created)}" if report.created else ""
    return f"Made by {code(report.command)}{when}; tier {code(report.tier)}, seed {report.seed}."


def _outcomes(found: _Backends) -> str:
    occurring: Counter[OutcomeName] = Counter()
    for _, results in found:
        occurring += results.counts
    columns = [outcome for outcome in MEANING if occurring[outcome]]
    rows = []
    for record, results in found:
        for part in group(results.results, lambda r: (r.operation,)):
            counts = [f"{part.counts[o]:,}" if part.counts[o] else "" for o in columns]
            rows.append((code(record.name), code(record.profile), text(part.key[0]), *counts, f"{part.points:,}"))
    names = [SHORT.get(outcome, outcome) for outcome in columns]
    headers = ("backend", "profile", "operation", *names, "points")
    return capped(rows, headers, _ROWS, "row", (*names, "points")) if rows else "There is no result."


def _requirements(record: BackendRecord, results: Group) -> str:
    rows = [
        (
            code(part.key[0]),
            part.outcome,
            f"{len(part.parting):,} of {len(part.ran):,}" if part.ran else "",
            f"{part.points:,}" if part.ran else "",
            f"{part.differing:,}" if part.differing else "",
            steps(largest(part.results)),
            _cause(part),
        )
        for part in _worst_first(results)
        if part.outcome not in _AGREEING
    ]
    headers = ("requirement", "outcome", "checks that part", "points", "differing", "largest step", "cause")
    right = ("checks that part", "points", "differing")
    parts = [f"## {library(record)} against profile {code(record.profile)}"]
    parts += [capped(rows, headers, _ROWS, "requirement", right)] if rows else []
    return "\n\n".join([*parts, *_agreeing(record, results)])


def _worst_first(results: Group) -> list[Group]:
    found = group(results.results, lambda r: (r.requirement,))
    return sorted(found, key=lambda g: SEVERITY.index(g.outcome), reverse=True)


def _agreeing(record: BackendRecord, results: Group) -> list[str]:
    """What agrees needs no table: one line for each operation or function, with its aspects.

    What a document says, and what was only measured, are told apart.
    """
    requirements = group(results.results, lambda r: (r.operation, r.requirement))
    parts = []
    for outcome, head in _AGREEING.items():
        agreeing = (r for g in requirements if g.outcome == outcome for r in g.results)
        lines = [
            f"- {code(part.key[0])}: {', '.join(sorted({aspect(r.requirement) for r in part.results}))} "
            f"({count(part.points, 'point')})"
            for part in group(agreeing, lambda r: (r.operation,))
        ]
        parts += [f"{head} of {code(record.name)}:", "\n".join(lines)] if lines else []
    return parts


def _cause(part: Group) -> str:
    if part.outcome == "implementation-defined":
        seen = sorted({r.detail for r in part.results if r.outcome == "implementation-defined" and r.detail})
        return text("seen: " + "; ".join(seen)) if seen else ""
    causes = part.causes
    more = [f"and {len(causes) - _CAUSES} more"] if len(causes) > _CAUSES else []
    return "; ".join([*map(text, causes[:_CAUSES]), *more])


def _witnesses(report: Report, found: _Backends) -> list[str]:
    parting = [(record, _differences(results)) for record, results in found]
    parting = [(record, differences) for record, differences in parting if differences]
    if not parting:
        return []
    least, most = _PER_BACKEND
    limit = max(least, min(most, _WITNESSES // len(parting)))
    scripts = any(w.reproduced for _, some in parting for g in some if (w := showing(g).witness) is not None)
    alone = " Each script was run alone, and showed its difference." if scripts else ""
    parts = [f"## Witnesses\n\nOne for each backend and cause.{alone}"]
    for record, differences in parting:
        parts += [f"### {library(record)}", *_shown_once(report, _first_of_each(differences)[:limit])]
        if len(differences) > limit:
            left = count(len(differences) - limit, "difference")
            parts.append(f"{left} of {code(record.name)} more not shown here; the JSON report has them all.")
    return parts


def _differences(results: Group) -> list[Group]:
    """What is shown once: a cause, whatever requirements it breaks; else each requirement has its own."""
    known = [g for g in by_cause(results.parting) if g.key[0] not in {"", UNKNOWN_CODE, NEAREST}]
    told = {c for g in known for c in g.key[:1]}
    rest = [r for r in results.parting if not {c.code for c in entries(r)} & told]
    return [*known, *group(rest, _same)]


def _same(result: Result) -> tuple[str, str, str]:
    found = cause(result)
    known = found not in {"", UNKNOWN} and "formula" not in result.configuration and not result.causes
    return ("", "", found) if known else ("", result.requirement, result.cause)


def _first_of_each(differences: list[Group]) -> list[Group]:
    """The worst first; before that, each cause once before any comes again, so that a cap hides no cause."""
    seen: Counter[tuple[str, ...]] = Counter()
    ranked = sorted(differences, key=lambda g: tuple(MEANING).index(g.outcome), reverse=True)
    turn = []
    for g in ranked:
        what = g.key if g.key[0] else g.key[2:]
        seen[what] += 1
        turn.append((seen[what], g))
    return [g for _, g in sorted(turn, key=lambda pair: pair[0])]


def _shown_once(report: Report, differences: list[Group]) -> list[str]:
    """The witnesses; causes of which the same call is shown stand over it together."""
    by: dict[tuple[object, ...], list[Group]] = {}
    for g in differences:
        r = showing(g)
        by.setdefault((r.name, r.witness) if g.key[0] else (r.name, *g.key), []).append(g)
    return [_witness(report, first, rest) for first, *rest in by.values()]


def _witness(report: Report, difference: Group, others: Sequence[Group] = ()) -> str:
    result = showing(difference)
    w = result.witness
    known = difference.key[0]
    parts = [
        f"#### {text('; with '.join(words(g.key) for g in (difference, *others)), 400)}"
        if known
        else f"#### {code(result.requirement)}: {difference.outcome}"
    ]
    checks = count(len(difference.results), "check")
    far = steps(largest(difference.results))
    said = f"{text(result.cause)}. " if result.cause and not known else ""
    also = sorted({r.requirement for r in difference.results} - ({result.requirement} if not known else set()))
    more = f" and {len(also) - _ALSO:,} more" if len(also) > _ALSO else ""
    parts += _sentence(result)
    parts += [f"Breaks{'' if known else ' also'}: {', '.join(map(code, also[:_ALSO]))}{more}."] if also else []
    parts.append(f"{said}In {checks}" + (f", by at most {far}." if far else "."))
    if w is None:
        if result.outcome not in {"timed out", "crashed"}:
            parts.append("No single element shows it, so there is no witness.")
    else:
        rows = [
            ("x" if w.scale else "arguments", w.x),
            ("scale", w.scale),
            ("zero", w.zero),
            ("expected", w.expected),
            ("actual", w.actual),
            ("exact quotient", w.quotient),
            ("distance to the nearest tie", w.to_tie),
            ("where", w.where),
        ]
        parts.append(table(("", "value"), [(name, code(value)) for name, value in rows if value]))
        if w.nearer:
            parts.append(f"{text(w.nearer)}.")
        if w.reproduced:
            parts.append(fence(w.script, "python"))
        elif w.unshown:
            parts.append(f"No script: {text(w.unshown)}.")
    if result.detail:
        parts.append(fence(result.detail, "text", 30))
    parts.append(f"To see it again:\n\n{fence(replay(report, result), 'sh')}")
    return "\n\n".join(parts)


def _sentence(result: Result) -> list[str]:
    """The requirement in words, and where the document says it; a report may be older than its requirements."""
    known = {r.id: r for r in requirements(result.profile)} if result.profile in PROFILES else {}
    found = known.get(result.requirement)
    if found is None:
        return []
    where = f" ({text(found.source)}; {found.basis})" if found.source else f" ({found.basis})"
    return [f"> {text(found.text, 400)}{where}"]


def _not_run(report: Report, found: _Backends) -> list[str]:
    rows = []
    for record, results in found:
        skipped = [r for r in results.results if r.outcome == "not run"]
        for part in group(skipped, lambda r: (r.detail or r.cause or "no reason was recorded",)):
            aspects = sorted({f"{r.operation}: {aspect(r.requirement)}" for r in part.results})
            rows.append((code(record.name), text(", ".join(aspects), 80), f"{len(part.results):,}", text(part.key[0])))
    for entry in report.not_run:
        what = ", ".join(value for key, value in entry.items() if key != "reason")
        rows.append((code(what), "", "", text(entry.get("reason", "no reason was recorded"))))
    if not rows:
        return []
    body = capped(rows, ("backend", "what", "checks", "reason"), _ROWS, "reason", ("checks",))
    return [f"## What did not run, and why\n\n{body}"]


def _paths(found: _Backends) -> str:
    rows = [
        (code(b.name), text(b.library), text(b.version), text(b.device), text(b.path), text(", ".join(b.dtypes)))
        for b, _ in found
    ]
    return table(("backend", "library", "version", "device", "path that ran", "dtypes"), rows) if rows else ""


def _legend(occurring: set[OutcomeName]) -> str:
    outcomes = [(outcome, meaning) for outcome, meaning in MEANING.items() if outcome in occurring]
    meanings = f"{table(('outcome', 'meaning'), outcomes)}\n\n" if outcomes else ""
    return (
        f"## How to read this\n\n{meanings}"
        "A check compares bits; no tolerance is used. A difference in codes is counted in code steps, a difference in "
        "reals in ulp. The outcome of a row is the worst one among its checks.\n\n"
        "A witness is one element that shows the difference: its input and parameters as bit patterns with the decimal "
        "next to them, what the profile documents (expected) and what the backend gave (actual). The exact quotient is "
        "x / scale as a fraction; where its distance to the nearest tie is 0, the rounding rule decides.\n\n"
        "What to do next: run a witness's script. If the backend means to follow another document, claim that profile. "
        "If it means this one, the cause names what to change; then compare two reports with `halfeven diff`."
    )
