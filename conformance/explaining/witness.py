"""The witness of a report explained: ``report.json#id``, or ``report.json#HE101`` for one of that cause."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from halfeven.conformance.explaining.code import every_code
from halfeven.conformance.explaining.explanation import ValueExplanation, wrapped
from halfeven.conformance.explaining.numbers import real
from halfeven.conformance.explaining.value import explain_value
from halfeven.conformance.nearest import nearest
from halfeven.conformance.report import codec
from halfeven.conformance.report.causes import with_own_witness, words
from halfeven.conformance.report.model import Report, Result, Witness
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES

__all__ = ["WitnessExplanation", "explain_witness"]

_WIDTHS = {4: "float16", 8: "float32", 16: "float64"}


@dataclass(frozen=True)
class WitnessExplanation:
    """A result of a report, and its value explained where it is one of a quantizer on a grid."""

    result: Result
    value: ValueExplanation | None

    def to_dict(self) -> dict[str, Any]:
        """As what JSON has."""
        r = self.result
        found = {"id": r.name, "outcome": r.outcome, "cause": r.cause}
        return found | ({} if self.value is None else {"value": self.value.to_dict()})

    def __str__(self) -> str:
        """The result's cause, and the value."""
        return "\n".join(_lines(self)).rstrip()


def explain_witness(place: str) -> WitnessExplanation:
    """The witness that ``place`` names: the path of a report or of its folder, ``#``, and an id or a code.

    Raises:
        ValueError: there is no such result, or it has no witness; the message has the nearest.
        OSError: the report cannot be read.
    """
    path, mark, wanted = place.partition("#")
    if not mark or not wanted:
        msg = f"--from={place!r} is not accepted: give report.json#ID, the id of a result, or report.json#HE101"
        raise ValueError(msg)
    file = Path(path) / "report.json" if Path(path).is_dir() else Path(path)
    result = _found(codec.read_json(file), wanted)
    assert result.witness is not None
    return WitnessExplanation(result, _value(result, result.witness))


def _found(report: Report, wanted: str) -> Result:
    shown = [r for r in report.results if r.witness is not None]
    if own := with_own_witness(report.results, (wanted.upper(),)):
        return own[0]
    if wanted.upper() in every_code():
        by_code = [r for r in shown if _has(r, wanted.upper())]
        if not by_code:
            msg = f"{wanted} is not accepted: no witness of the report has this cause"
            raise ValueError(msg)
        return min(by_code, key=lambda r: "formula" in r.configuration)
    found = [r for r in shown if wanted in {r.id, r.name}]
    if len(found) == 1:
        return found[0]
    if found:
        msg = f"{wanted!r} is not accepted: several backends have it: {', '.join(r.name for r in found)}"
    elif any(wanted in {r.id, r.name} for r in report.results):
        msg = f"{wanted!r} is not accepted: that result has no witness"
    else:
        msg = f"{wanted!r} is not accepted{nearest(wanted, [r.id for r in shown])}"
    raise ValueError(msg)


def _has(result: Result, code: str) -> bool:
    if result.causes:
        return any(c.code == code for c in result.causes)
    return every_code()[code].sentence in result.cause  # of a report of before there were codes


def _value(result: Result, w: Witness) -> ValueExplanation | None:
    """The value of a witness, in the terms of its profile; None where it is a call of another kind."""
    c = result.configuration
    if not w.scale or "grid" not in c or result.profile not in PROFILES:
        return None
    x, parameter, zero = (text.partition(" (")[0] for text in (w.x, w.scale, w.zero))
    profile, grid = PROFILES[result.profile], Grid(c["grid"]["qmin"], c["grid"]["qmax"])
    held = _WIDTHS.get(len(parameter.removeprefix("0x")), c["dtype"])
    held = c["dtype"] if held == "float16" else held
    first = real("scale", parameter, held)
    amax = first if profile.parameters[0] == "amax" else None
    sign = -1 if profile.parameters[1:] == ("offset",) else 1
    try:
        return explain_value(
            x,
            first if amax is None else first / first.dtype.type(grid.qmax),
            sign * _whole(zero, held),
            operation=result.operation,  # type: ignore[arg-type]
            dtype=c["dtype"],
            scale_dtype=held,
            grid=grid,
            profile=result.profile,
            amax=amax,
            any_code=True,
            **{"code" if result.operation == "quantize" else "result": w.actual.partition(" (")[0]},
        )
    except ValueError:  # a zero point that is no whole number
        return None


def _whole(zero: str, dtype: str) -> int:
    return int(real("zero", zero, dtype if zero.startswith("0x") else "float64")) if zero else 0


def _lines(e: WitnessExplanation) -> Iterator[str]:
    r = e.result
    yield from wrapped(f"{r.name}: {r.outcome}")
    for c in r.causes:
        yield from wrapped(words((c.code, c.sentence, c.where)))
    if not r.causes:
        yield from wrapped(r.cause)
    yield ""
    if e.value is not None:
        yield str(e.value)
        return
    w = r.witness
    assert w is not None
    yield from wrapped(f"call: {w.x}")
    yield from wrapped(f"document: {w.expected}")
    yield from wrapped(f"backend: {w.actual}")
    yield ""
    yield w.script
