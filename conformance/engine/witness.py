"""Witnesses: the smallest call that shows a difference, found by asking, and the script that makes it."""

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.bits import signed_bits
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.call import PLAIN, Answer, Call, arguments_of, leaves, numbers
from halfeven.conformance.engine.evidence import Evidence, Finding, Judged
from halfeven.conformance.engine.fitting.elements import flat
from halfeven.conformance.engine.judge import differences
from halfeven.conformance.engine.own import own_witness
from halfeven.conformance.engine.script import script
from halfeven.conformance.engine.shrink import disturbed, shrunk
from halfeven.conformance.engine.tries import Trial, Tries, alike, case_of, operation_of, pair, pointed, trial_of
from halfeven.conformance.quote import NoScript
from halfeven.conformance.report.model import Witness
from halfeven.conformance.report.words import AFTER_OTHERS
from halfeven.conformance.requirement import Arguments

__all__ = ["hexadecimal", "shown", "spoken", "witness"]

_WORDS = 400  # of an argument in a witness
_LOOKED_AT = 16  # findings
_BEFORE = (1, 4, 32)  # calls made before, in the hope that they bring a difference back


def witness(e: Evidence, cause: str = "") -> Witness | None:
    """What shows the difference that ``cause`` is the name of; None where no call does.

    The call is asked again, alone and then after those before it, and made smaller as long as the difference stays.
    The script has not been run yet: ``demonstrate`` runs it alone.
    """
    if e.findings and all(f.own for f in e.findings) and (found := own_witness(e)) is not None:
        return found
    tries, last = Tries(e), None
    for t in _candidates(e, cause):
        last = last or t
        if t.actual.message.startswith("timed out"):
            return shown(e, t)
        for before in _histories(e, t):
            again = tries(t.call, before)
            if again is not None and alike(again, t):
                smallest = shrunk(again, tries)
                _learned(e, smallest)
                return shown(e, smallest)
        if tries.spent:
            break
    if last is None:
        return None
    return _bare(e, last, "the call alone did not differ when it was asked again")


def _learned(e: Evidence, t: Trial) -> None:
    """A smaller call of a function may differ for another reason than the larger: what is said must hold of it too."""
    if not operation_of(t.call) and not t.before and t.actual.kind != "ended":
        shown, difference = Judged(t.expected, t.actual, None, t.call), differences(t.expected, t.actual)
        if difference.differing:  # and it does not only change the process
            e.compared.append(shown)
            e.findings.append(Finding(shown, difference))


def _candidates(e: Evidence, cause: str) -> Iterator[Trial]:
    """The calls that differ, the one that the cause speaks of first."""
    # The document's own answer may take seconds: those that the cause speaks of first, then the smallest.
    some = sorted(e.spoilt, key=lambda s: (not any(f in cause for f in s[1].faults), numbers(s[0].named)))
    spoilt = (t for call, answer in some[:_LOOKED_AT] if (t := trial_of(e, call, answer)) is not None)
    first = next(spoilt, None)
    if first is not None and first.difference.words and first.difference.words in cause:
        yield first
    yield from _ordered(e)
    if first is not None:
        yield first
        yield from spoilt
    elif not e.findings:
        for call in e.history[::-1][:_LOOKED_AT]:
            [answer] = e.worker.answers([call])
            if (t := trial_of(e, call, answer)) is not None:
                yield t


def _ordered(e: Evidence) -> Iterator[Trial]:
    """What the findings show, the smallest calls first, those before that argue best for the document."""
    found = [f for f in e.findings if not f.own]
    if e.minimal_last and found:
        yield _trial(e, found.pop())
    others = []
    for f in sorted(found, key=_numbers)[:_LOOKED_AT]:
        if (t := _trial(e, f)).clear.rank == 0:
            yield t
        else:
            others.append(t)
    yield from sorted(others, key=lambda t: t.clear.rank)


def _numbers(f: Finding) -> int:
    call = f.compared.call
    return int(f.compared.actual.value.size) if f.compared.case is not None else numbers(call and call.named)


def _trial(e: Evidence, f: Finding) -> Trial:
    compared = f.compared
    call = compared.call or e.call(compared.case) if compared.case is not None else compared.call
    assert call is not None, "a function's finding has its call"
    at = 0 if f.difference.comparison is None else int(f.difference.comparison.where[0])
    return pointed(e, Trial(call, compared.expected, compared.actual, f.difference, at))


def _histories(e: Evidence, t: Trial) -> Iterator[tuple[Call, ...]]:
    """Calls to be made before: none, the same one, and those that were made before it."""
    yield ()
    if t.actual.kind == "ended":
        return
    yield (t.call,)
    place = next((i for i, call in enumerate(e.history) if call is t.call), 0)
    for count in _BEFORE:
        if place:
            yield tuple(e.history[max(place - count, 0) : place])


def shown(e: Evidence, t: Trial) -> Witness:
    """The witness with its script, and one that makes other calls first, which may play a part."""
    try:
        found = replace(_bare(e, t), script=script(e, t))
    except NoScript as reason:
        return _bare(e, t, str(reason))
    if t.before or t.actual.kind == "ended" or t.actual.faults:
        return found
    with contextlib.suppress(NoScript):
        return replace(found, longer=script(e, replace(t, before=disturbed(t))))
    return found


def _bare(e: Evidence, t: Trial, unshown: str = "") -> Witness:
    """The witness without a script, and why it has none."""
    found = _of_operation(e, t) if operation_of(t.call) else _of_function(t)
    return replace(found, unshown=" ".join(unshown.split()))


def _of_operation(e: Evidence, t: Trial) -> Witness:
    case, c = case_of(e, t.call), e.setting.configuration
    elements = flat(case)
    x, scale, zero = (a[t.at] for a in (elements.x, elements.scale, elements.zero)) if case.x.size else ("",) * 3
    found = pair(t)
    if found is not None:
        expected, actual = (_value(case.configuration, v) for v in found)
    else:
        expected, actual = _unspoilt(t), t.difference.words
    sizes = case.configuration.shape
    where = (
        f"element {tuple(int(j) for j in np.unravel_index(t.at, sizes))} of shape {sizes}"
        if case.x.size
        else (f"shape {sizes}")
    )
    where += f", {c.grid}/{c.dtype}, blocks {case.configuration.block_size or 'none'}"
    where += _how(t)
    return Witness(
        x=hexadecimal(x) if case.x.size else "no elements",
        scale=hexadecimal(scale) if case.x.size else "",
        zero=(hexadecimal(zero) if case.x.size else "") if len(e.setting.profile.parameters) > 1 else "none",
        expected=expected,
        actual=actual,
        quotient=t.clear.quotient,
        to_tie=t.clear.to_tie,
        where=where,
        nearer=t.clear.nearer,
    )


def _how(t: Trial) -> str:
    """How the call is made, where that is not plain."""
    shape = replace(t.call.shape, size=None, rank=None)
    found = f"; {shape}" if shape != PLAIN else ""
    return found + (f"; after {len(t.before)}{AFTER_OTHERS}" if t.before else "")


def _of_function(t: Trial) -> Witness:
    wanted, got = (_said(a, t.difference.leaf) for a in (t.expected, t.actual))
    return Witness(
        x=spoken(arguments_of(t.call.named)),
        scale="",
        zero="",
        expected=wanted,
        actual=got,
        where=t.difference.words + _how(t),
    )


def spoken(arguments: Arguments) -> str:
    """The arguments of a function by name, long ones cut."""
    return ", ".join(f"{name}={_short(value)}" for name, value in arguments.items())


def hexadecimal(value: Any) -> str:
    """``0x3f000000 (0.5)`` for a float, the number itself for an integer."""
    a = np.asarray(value)
    if a.dtype.kind in "iu":
        return str(int(a))
    bits = int(signed_bits(a)) & (2 ** (8 * a.dtype.itemsize) - 1)
    return f"0x{bits:0{2 * a.dtype.itemsize}x} ({float(a)!r})"


def _value(c: Configuration, value: Any) -> str:
    """A code as a number, whatever dtype holds it; a real by its bits."""
    number = float(value)
    whole = c.operation == "quantize" and number.is_integer() and not (number == 0 and np.signbit(number))
    return str(int(number)) if whole else hexadecimal(value)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        few = value.ravel()[:_WORDS]
        small = few  # numbers of ml_dtypes have words of their own
        if value.dtype.kind == "V":
            small = few.astype(np.int64 if value.dtype.name.startswith(("int", "uint")) else np.float64)
        listed = small.reshape(value.shape) if few.size == value.size else small
        text = f"{listed.tolist()} {value.dtype}"
        text += f" of shape {value.shape}" if not value.size and value.ndim > 1 else ""
    elif isinstance(value, tuple | list):
        text = f"({', '.join(map(_short, value))})"
    else:
        text = repr(value)
    return text if len(text) <= _WORDS else f"{text[:_WORDS]} ..."


def _unspoilt(t: Trial) -> str:
    """What is expected where the answer is none that a call may give."""
    case_ = t.difference.words.partition(": ")[0]
    said = {
        "wrong shape": f"shape {np.shape(t.expected.value)}",
        "wrong dtype": "a dtype that the document has for it",
        "wrong result": "an array",
        "mutated input": "arguments that stay as they are",
        "not deterministic": "the same answer again",
    }
    if case_.startswith("stale output"):
        return "a result of its own, every element written"
    return said.get(case_, "the process as it was" if case_.startswith("changed") else "an answer")


def _said(found: Answer, leaf: str) -> str:
    if found.kind == "raised":
        return found.error[0]
    if found.faults or found.kind == "ended":
        return found.faults[0] if found.faults else found.message
    values = dict(leaves(found.value))
    if leaf in values:
        return _short(values[leaf])
    return ", ".join(f"{name} = {_short(value)}" for name, value in values.items())
