"""Results put together by what the implementation does, across requirements and backends: a cause is told once."""

from collections.abc import Sequence

from halfeven.conformance.report.groups import SEVERITY, Group, group
from halfeven.conformance.report.model import CONFORMING, Result

__all__ = ["UNKNOWN", "by_cause", "cause", "measured"]

#: Where nothing that is known computes so; such results have this in common and nothing else.
UNKNOWN = "no known model reproduces it"
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
    called = "formula" in result.configuration and "choices" not in result.configuration
    match result.outcome:
        case "explained" if called:
            return f"does what {measured(result.cause)} was measured to do" if _MEASURED in head else head
        case "differs" if called:
            return UNKNOWN
        case "crashed" | "timed out" if called:
            return head
        case _:
            return (tail if head.startswith(_AS) else result.cause) or UNKNOWN


def measured(said: str) -> str:
    """The profile or the release that a cause names, ``as torchao@0.18: ...``; empty where it names none."""
    head = said.partition(":")[0]
    return head.removeprefix(_AS).removesuffix(_MEASURED) if head.startswith(_AS) else ""


def by_cause(results: Sequence[Result]) -> list[Group]:
    """The results that differ, by cause: the most frequent first, of equals the gravest."""
    found = group((r for r in results if cause(r)), lambda r: (cause(r),))
    return sorted(found, key=lambda g: (-len(g.results), -SEVERITY.index(g.outcome), g.key))
