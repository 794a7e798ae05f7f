"""Results put together by what the implementation does, across requirements and backends: a cause is told once."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from halfeven.conformance.report.groups import SEVERITY, Group
from halfeven.conformance.report.model import CONFORMING, Cause, Result, Witness

__all__ = [
    "UNKNOWN",
    "by_cause",
    "cause",
    "entries",
    "measured",
    "showing",
    "together",
    "with_own_witness",
    "witnessed",
    "words",
]

#: Where nothing that is known computes so; such results have this in common and nothing else.
UNKNOWN = "no known behaviour gives these answers"
_AS = "as "
_MEASURED = " was measured to do"


def cause(result: Result) -> str:
    """What the implementation does, without what differs from check to check; empty for a result that conforms.

    Of an operation that is the model found; of a documented function the choices of its behaviour. Where no choice
    says it, a release that was measured to do the same is the cause, or the error raised.
    """
    if result.outcome in CONFORMING or result.outcome == "not run":
        return ""
    head, _, tail = result.cause.partition(": ")
    told = {"choices", "property"} & result.configuration.keys()
    called = "formula" in result.configuration and not told
    match result.outcome:
        case "explained" if called:
            return f"does what {measured(result.cause)} was measured to do" if _MEASURED in head else head
        case "differs" if called:
            return UNKNOWN
        case "crashed" | "timed out" if called:
            return head
        case _:
            return (tail if head.startswith(_AS) else result.cause) or UNKNOWN


def words(key: Sequence[str]) -> str:
    """A cause of ``by_cause`` in one line: its code, what is done, and where."""
    code, sentence, where = key
    return f"{code}  {sentence}".strip() + (f" ({where})" if where else "")


def together(found: Group) -> list[str]:
    """The codes that every result of a cause has too: it was seen with them alone."""
    codes = [{c.code for c in entries(r)} - {found.key[0]} for r in found.results]
    return sorted(set.intersection(*codes)) if codes else []


def with_own_witness(results: Iterable[Result], key: Sequence[str]) -> list[Result]:
    """The results of which this cause has a witness of its own, in place of theirs; of ``key`` a code is enough."""
    pairs = ((r, c) for r in results for c in r.causes if c.witness is not None)
    return [replace(r, witness=c.witness) for r, c in pairs if c.key[: len(key)] == (*key,)]


def witnessed(result: Result, cause: Cause, witness: Witness | None) -> Result:
    """The result with another witness of one of its causes."""
    return replace(result, causes=tuple(replace(c, witness=witness) if c is cause else c for c in result.causes))


def showing(found: Group) -> Result:
    """The result to show of a cause: with the witness that differs by this cause, where others stand beside it."""
    return Group(found.key, tuple(with_own_witness(found.results, found.key)) or found.results).shown


def measured(said: str) -> str:
    """The profile or the release that a cause names, ``as torchao@0.18: ...``; empty where it names none."""
    head = said.partition(":")[0]
    return head.removeprefix(_AS).removesuffix(_MEASURED) if head.startswith(_AS) else ""


def entries(result: Result) -> tuple[Cause, ...]:
    """The causes of a result that differs; of an older report its cause in words, without a code."""
    if result.outcome in CONFORMING or result.outcome == "not run":
        return ()
    return result.causes or (Cause("", cause(result)),)


def by_cause(results: Sequence[Result]) -> list[Group]:
    """The results that differ, by cause: the most frequent first, of equals the gravest.

    The key of a group is the cause's code, its sentence, and where it is so. A result with several causes is in the
    groups of all.
    """
    by: dict[tuple[str, ...], list[Result]] = {}
    for result in results:
        for c in entries(result):
            by.setdefault(c.key, []).append(result)
    found = [Group(key, tuple(some)) for key, some in by.items()]
    return sorted(found, key=lambda g: (-len(g.results), -SEVERITY.index(g.outcome), g.key))
