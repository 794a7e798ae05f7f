"""Where a difference lies, when it is not in the values: the levels of the call shape that it needs."""

from dataclasses import fields

from halfeven.conformance.engine.call import PLAIN, CallShape
from halfeven.conformance.engine.evidence import Evidence

__all__ = ["of_shapes", "region"]

_SAID = {
    "size": "tensors of {} elements",
    "rank": "rank {}",
    "layout": "layout {}",
    "offset": "arrays that begin {} elements past a multiple of 64 bytes",
    "parameters": "parameters {}",
    "block": "blocks: {}",
    "threads": "threads: {}",
    "mode": "mode {}",
    "repeats": "calls made {} times",
}
_FEW = 4


def region(e: Evidence) -> str:
    """``only with layout transposed``: what every call that differs has and no other; empty where there is no such."""
    failing = {id(f.compared) for f in e.findings}
    bad = [a.shape for a in e.compared if id(a) in failing]
    return of_shapes(bad, [a.shape for a in e.compared if id(a) not in failing])


def of_shapes(bad: list[CallShape], others: list[CallShape]) -> str:
    """The same of the shapes of the calls that differ, and of the others."""
    good = [s for s in others if s.size != 0]  # an empty call tells nothing
    if not bad or not good or PLAIN in bad:
        return ""
    found = [words for f in fields(CallShape) if (words := _levels(f.name, bad, good))]
    return f"differs only with {found[0]}" if found else "differs in some call shapes and not in others"


def _levels(name: str, bad: list[CallShape], good: list[CallShape]) -> str:
    differing, exact = ({level for s in shapes if (level := getattr(s, name)) is not None} for shapes in (bad, good))
    if not differing or not exact:
        return ""
    if differing & exact:
        return ""
    if name == "size" and min(differing) > max(exact):
        return f"tensors of {min(differing):,} elements or more"
    levels = sorted(differing, key=lambda level: (str(type(level)), level))
    some = ", ".join(map(str, levels[:_FEW])) + (", ..." if len(levels) > _FEW else "")
    return _SAID[name].format(some)
