"""The judge: an answer against the one expected, bit for bit, or within the bound of a sum whose order is open.

A pure function of both; it asks nothing.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.engine.call import Answer, Call, arguments_of, breaches, leaves
from halfeven.conformance.engine.compare import Gap, compare_codes, compare_reals
from halfeven.reference.blocks import Array
from halfeven.reference.sums import Bound, Open

__all__ = ["Difference", "Sums", "answer_of", "differences", "in_form", "reference_answer"]


_FEW = 4  # ranges that a sum may lie in


@dataclass(frozen=True)
class Sums:
    """The values that were judged by a proved bound, because no document states the order of their sums.

    Attributes:
        bounded: how many there are; of ``unproved`` more the bound excludes nothing, and they were not judged.
        share: the largest part of a bound that a value needed, of those within, and of how many terms that one is.
        terms: the most terms of a sum.
    """

    bounded: int = 0
    unproved: int = 0
    share: tuple[float, int] = (0.0, 0)
    terms: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        """Both together."""
        counts = (self.bounded + other.bounded, self.unproved + other.unproved)
        return Sums(*counts, max(self.share, other.share), max(self.terms, other.terms))


@dataclass(frozen=True, eq=False)
class Difference:
    """How an answer differs from the one expected; of the first leaf that differs the comparison, if there is one.

    Attributes:
        points: the values compared, and how many of them are ``differing``.
        steps: the largest difference, in ``unit``.
        words: what differs first.
        form: where it is no number that differs: ``wrong shape``, ``wrong dtype``, ``no error``; else empty.
        leaf: where in the result it is.
        sums: the points that were judged by a bound.
    """

    points: int
    differing: int = 0
    steps: int = 0
    unit: str = ""
    words: str = ""
    leaf: str = ""
    comparison: Gap | None = None
    sums: Sums = Sums()
    form: str = ""


def answer_of(function: Callable[..., Any], arguments: Mapping[str, Any]) -> Answer:
    """The answer of a function of NumPy's, such as a formula; it gets copies.

    >>> answer_of(lambda x: -x, {"x": 3}).value
    -3
    """
    try:
        with np.errstate(all="ignore"):
            value = function(**_copies(arguments))
            return Answer("returned", value, open=_open(function, arguments))
    except Unsupported as reason:
        return Answer("unsupported", message=str(reason))
    except Exception as error:  # noqa: BLE001 - whatever is raised is the answer
        types = tuple(t.__name__ for t in type(error).__mro__ if issubclass(t, BaseException))
        return Answer("raised", error=types, message=str(error))


def _open(function: Callable[..., Any], arguments: Mapping[str, Any]) -> dict[str, Open]:
    """What else is right of a formula's result, where the order of a sum decides."""
    if (found := getattr(function, "open", None)) is None:
        return {}
    given = inspect.signature(function).bind(**arguments)
    given.apply_defaults()
    results: Mapping[str, Open] = found(**_copies(given.arguments))
    return {leaf: result for leaf, result in results.items() if not result.is_exact}


def reference_answer(function: Callable[..., Any], call: Call) -> Answer:
    """What a formula's function gives for a call of it."""
    return answer_of(function, arguments_of(call.named))


def differences(expected: Answer, actual: Answer) -> Difference:
    """Compare two answers: arrays by dtype, shape and bits (any NaN is any NaN), errors by their type."""
    if spoilt := breaches(actual):
        return Difference(1, 1, words=spoilt[0])
    if actual.kind == "ended":
        return Difference(1, 1, words=actual.message)
    if "raised" in {expected.kind, actual.kind}:
        return _raised(expected, actual)
    wanted, got = (dict(leaves(a.value)) for a in (expected, actual))
    if wanted.keys() != got.keys():
        said = [", ".join(found) or "nothing" for found in (wanted, got)]
        return Difference(1, 1, words=f"returns {said[1]} where the document gives {said[0]}")
    found = [_leaf(name, value, got[name], expected.open.get(name)) for name, value in wanted.items()]
    first = next((f for f in found if f.differing), Difference(0))
    points, differing = sum(f.points for f in found), sum(f.differing for f in found)
    sums = sum((f.sums for f in found), Sums())
    return Difference(
        points, differing, first.steps, first.unit, first.words, first.leaf, first.comparison, sums, first.form
    )


def in_form(expected: Answer, actual: Answer) -> Answer:
    """An answer in the shapes and dtypes that are expected, so that what else differs shows.

    Floats are rounded to the dtype, integers of its width are read by their bits; other numbers that it does not have
    stay as they are, and so do arrays of another size.

    >>> in_form(Answer("returned", np.uint8([1, 255])), Answer("returned", np.int8([[1, -1]]))).value
    array([  1, 255], dtype=uint8)
    """
    if {expected.kind, actual.kind} != {"returned"}:
        return actual
    return replace(actual, value=_formed(expected.value, actual.value))


def _formed(expected: Any, actual: Any) -> Any:
    match actual:
        case Mapping() if isinstance(expected, Mapping) and expected.keys() == actual.keys():
            return {key: _formed(expected[key], value) for key, value in actual.items()}
        case tuple() | list() if isinstance(expected, tuple | list) and len(expected) == len(actual):
            return type(actual)(map(_formed, expected, actual))
    if not (_is_array(expected) and _is_array(actual)):
        return actual
    e, a = np.asarray(expected), np.asarray(actual)
    if e.size != a.size or a.dtype.kind not in "biufV":  # ml_dtypes are of kind V, but for some
        return actual
    with np.errstate(all="ignore"):
        cast = a.reshape(e.shape).astype(e.dtype)
        same = all(
            np.array_equal(cast.astype(t).ravel(), a.astype(t).ravel(), equal_nan=True) for t in (a.dtype, np.float64)
        )
    bits = e.dtype.kind in "iu" and a.dtype.kind in "iu" and e.dtype.itemsize == a.dtype.itemsize
    return cast if bits or same or (_is_float(e) and _is_float(a)) else actual


def _raised(expected: Answer, actual: Answer) -> Difference:
    if expected.kind == "raised" and expected.error[0] in actual.error:
        return Difference(1)
    does = f"raises {actual.error[0]}" if actual.kind == "raised" else "returns a result"
    says = f"raises {expected.error[0]}" if expected.kind == "raised" else "gives a result"
    said = f": {actual.message.splitlines()[0]}" if actual.message.strip() else ""
    form = "" if actual.kind == "raised" else "no error"
    return Difference(1, 1, words=f"{does} where the document {says}{said}", form=form)


def _leaf(name: str, expected: Any, actual: Any, sums: Open | None) -> Difference:
    if not _is_array(expected) and not _is_array(actual):
        same = type(expected) is type(actual) and (expected == actual or (expected != expected and actual != actual))  # noqa: PLR0124 - NaN
        words = "" if same else _differs(name, repr(actual), repr(expected))
        return Difference(1) if same else Difference(1, 1, words=words, leaf=name)
    e, a = np.asarray(expected), np.asarray(actual)
    if e.shape != a.shape:
        return Difference(
            1, 1, words=_differs(name, f"of shape {a.shape}", f"{e.shape}"), leaf=name, form="wrong shape"
        )
    if e.dtype != a.dtype:
        every = max(e.size, 1)
        return Difference(every, every, words=_differs(name, f"{a.dtype}", f"{e.dtype}"), leaf=name, form="wrong dtype")
    comparison = compare_reals(e, a) if _is_float(e) else compare_codes(e, a)
    points, judged = max(e.size, 1), Sums()
    if sums is not None:
        comparison, judged = _within(sums, a, comparison)
        points = e.size - judged.unproved
    if not comparison.differing:
        return Difference(points, sums=judged)
    i = int(comparison.where[0])
    at = f"{name}{[int(j) for j in np.unravel_index(i, e.shape)] if e.shape else ''}"
    words = _differs(at, _shown(a.ravel()[i]), _shown(e.ravel()[i]))
    if sums is not None:
        words = _out_of_bound(at, a.ravel()[i], sums.allowed[i])
    return Difference(points, comparison.differing, comparison.steps, comparison.unit, words, name, comparison, judged)


def _within(sums: Open, actual: Array, comparison: Gap) -> tuple[Gap, Sums]:
    """What is left of a comparison where the order of sums is open, and how much of the bounds was needed."""
    shares, proved = sums.shares(actual).ravel(), sums.proved.ravel()
    wrong = shares > 1
    fine = proved & ~wrong
    counts = sums.counts.ravel()
    share = max(zip(shares[fine].tolist(), counts[fine].tolist(), strict=True), default=(0.0, 0))
    found = Sums(int(proved.sum()), int((~proved).sum()), share, int(counts.max(initial=0)))
    where = comparison.where[wrong[comparison.where]]
    return replace(comparison, where=where, steps=comparison.steps if where.size else 0), found


def _out_of_bound(at: str, actual: Any, allowed: tuple[Bound, ...]) -> str:
    ranges = [_shown(np.float64(b.low)) if b.low == b.high else f"{b.low!r} to {b.high!r}" for b in allowed[:_FEW]]
    said = f"{at} is {_shown(actual)} where the sum, in any order, is {' or '.join(ranges)}"
    return said if len(allowed) <= _FEW else f"{said}, ..."


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray | np.generic)


def _differs(leaf: str, actual: str, expected: str) -> str:
    return f"{leaf} is {actual} where the document gives {expected}"


def _shown(value: Any) -> str:
    return f"{float(value)!r} ({float(value).hex()})" if _is_float(np.asarray(value)) else str(value)


def _is_float(a: Array) -> bool:
    return a.dtype.name.startswith(("bfloat", "float"))


def _copies(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copied(value) for name, value in arguments.items()}


def _copied(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return np.array(value)
    return type(value)(map(_copied, value)) if isinstance(value, tuple | list) else value
