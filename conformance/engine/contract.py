"""What is said where an implementation breaks the contract of a call, or a property that has no arithmetic in it."""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from halfeven.conformance.codes import error_code, fault_code, other, property_code
from halfeven.conformance.engine.call import CHANGED
from halfeven.conformance.properties import CHECK
from halfeven.conformance.report.model import Cause, Result

__all__ = ["OWN", "broken", "by_kind", "fault", "formed", "raised"]

#: Of the checks that hold a backend to itself, the property that it lacks.
OWN = {"composition": "composition", "idempotence": "stays-quantized"}
_T = TypeVar("_T")
_OURS = "error in halfeven itself"
_RAISED = re.compile(r"raises ([\w.]+) where")
_TYPE = re.compile(r"[A-Za-z_][\w.]*")
_KINDS = 4  # of errors, and as many of faults, of one check that are told
_VALUES = re.compile(r"(?<!\w)'[^']*'(?!\w)|(?<![\w.])-?\d[\w.+-]*|\[[^]]*[\d,][^]]*\]|\([^)]*[\d,][^)]*\)")
"""What differs in the words of one error from call to call."""


def broken(result: Result, errors: Iterable[str] = ()) -> tuple[Cause, ...]:
    """The causes of a result that needs no explanation: a fault, ``errors``, a time-out, or a property of its check."""
    if result.outcome not in {"differs", "crashed", "timed out"} or result.cause.startswith(_OURS):
        return ()
    if result.cause.startswith(CHANGED):  # whatever was checked
        return (fault(result.cause),)
    if result.outcome == "differs" and not result.ended and (lacking := _lacks(result)) is not None:
        return (lacking,)
    if result.check == "zero-sign" and result.witness is not None:
        return (Cause(property_code("documented"), result.cause),)
    if result.outcome == "crashed" and not result.ended:
        return tuple(raised(words) for words in by_kind([result.cause, *errors]))
    cause = fault(result.cause)
    # How a process ended is what one wants to know; the details of other faults differ from check to check.
    return (Cause(cause.code, f"{cause.sentence}: {result.ended}") if result.ended else cause,)


def _lacks(result: Result) -> Cause | None:
    """The property that a check is about, where it is one that holds a backend to itself, or to any user's."""
    if result.check.startswith(CHECK):
        return Cause(property_code(result.check.removeprefix(CHECK)), result.cause)
    if result.check in OWN and result.witness is not None:
        return _of("property", property_code(OWN[result.check]))
    return None


def fault(words: str) -> Cause:
    """The cause where a call does what none may do.

    >>> fault("mutated input: this call wrote into an argument of an earlier call").code
    'HE503'
    """
    return _of("contract", fault_code(words))


def formed(form: str, words: str) -> Cause:
    """The cause where no number differs, but the answer's shape, its dtype, or that there is one.

    >>> formed("wrong dtype", "result is float32 where the document gives float16").code
    'HE502'
    """
    return Cause(error_code(form) if form == "no error" else fault_code(form), words)


def raised(words: str) -> Cause:
    """The cause where an error is the answer: ``RuntimeError: no kernel``, or in a sentence.

    >>> found = raised("RuntimeError: no kernel")
    >>> found.code, found.sentence
    ('HE403', 'raises RuntimeError: no kernel')
    """
    said = _RAISED.search(words)
    if said is not None:
        return Cause(error_code(said[1]), words)
    name = words.partition(":")[0]
    return Cause(error_code(name if _TYPE.fullmatch(name) else ""), f"raises {words}")


def by_kind(found: Iterable[_T], words: Callable[[_T], str] = str) -> tuple[_T, ...]:
    """The first of each kind of error or fault, at most 4: those whose words differ in values alone are of one kind.

    >>> by_kind(["ValueError: n=3", "ValueError: n=4", "ValueError: no axis"])
    ('ValueError: n=3', 'ValueError: no axis')
    >>> len(by_kind(["can't take float16 (no kernel)", "can't take float64 (no kernel)"]))
    2
    """
    first: dict[str, _T] = {}
    for one in found:
        first.setdefault(_VALUES.sub("", words(one)), one)
    return tuple(first.values())[:_KINDS]


def _of(kind: str, code: str) -> Cause:
    sentence = next(sentence for known, sentence in other()[kind].values() if known == code)
    return Cause(code, sentence)
