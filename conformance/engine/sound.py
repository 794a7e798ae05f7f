"""Whether calls and answers that came from elsewhere are what their types say: nothing later looks again."""

import math
from collections.abc import Mapping
from typing import Any, NoReturn, get_args

from halfeven.conformance.engine.call import MODES, Answer, Call, CallShape, Kind
from halfeven.conformance.engine.memory import Strided

__all__ = ["Damaged", "refuse", "sound"]

_DEEPEST = 32
_LARGEST = 1 << 26  # elements that a view may have more than its memory, where it repeats some
_REPEATS = 1000
_RANKS = 64  # of NumPy


class Damaged(ValueError):  # noqa: N818 - it says what the bytes are
    """The bytes are no batch: cut short, of another kind, of a version that is not read here, or inconsistent."""


def sound(item: Call | Answer) -> None:
    """Refuse what no call and no answer can be.

    Raises:
        Damaged: a field is of another type, a view reaches out of its memory, or a value is nested too deep.
    """
    if isinstance(item, Answer):
        _answer(item)
    else:
        _call(item)


def _call(c: Call) -> None:
    words = isinstance(c.formula, str) and isinstance(c.reason, str)
    if not words or not isinstance(c.positional, tuple) or not isinstance(c.named, Mapping):
        refuse("a call lacks its formula or its arguments")
    if not all(isinstance(name, str) for name in c.named):
        refuse("an argument has no name")
    if not isinstance(c.shape, CallShape):
        refuse("a call lacks its shape")
    _shape(c.shape)
    for value in (*c.positional, *c.named.values()):
        _value(value, _DEEPEST, strided=True)


def _shape(s: CallShape) -> None:
    numbers = (s.offset, s.repeats, *(n for n in (s.size, s.rank) if n is not None))
    whole = all(type(n) is int and n >= 0 for n in numbers) and 1 <= s.repeats <= _REPEATS
    words = all(isinstance(w, str) for w in (s.layout, s.parameters, s.block))
    if not whole or not words or type(s.each) is not bool or s.threads not in {"one", "all"} or s.mode not in MODES:
        refuse(f"a call is made in a way that there is not: {s!r:.200}")


def _answer(a: Answer) -> None:
    if a.kind not in get_args(Kind):
        refuse(f"an answer of the kind {a.kind!r:.40}: there are {', '.join(get_args(Kind))}")
    words = (a.message, a.traceback, a.printed)
    listed = (a.error, a.faults)
    if not all(isinstance(w, str) for w in words) or not all(
        isinstance(t, tuple) and all(isinstance(w, str) for w in t) for t in listed
    ):
        refuse("an answer's words are none")
    if a.kind == "raised" and not a.error:
        refuse("an answer raised, and does not say what")
    if type(a.seconds) not in {int, float} or not 0 <= a.seconds < math.inf:
        refuse(f"an answer took {a.seconds!r:.40} seconds")
    _value(a.value, _DEEPEST, strided=False)


def _value(value: Any, depth: int, *, strided: bool) -> None:
    if depth == 0:
        refuse(f"a value is nested deeper than {_DEEPEST}")
    match value:
        case Strided():
            if not strided:
                refuse("an answer's array is a view: write its values, in order")
            _inside(value)
        case tuple() | list():
            for inner in value:
                _value(inner, depth - 1, strided=strided)
        case Mapping():
            for key, inner in value.items():
                if not isinstance(key, str | int | bool | float | bytes | None):
                    refuse("a key of a mapping is no word and no number")
                _value(inner, depth - 1, strided=strided)


def _inside(a: Strided) -> None:
    """Refuse a view that reaches out of its memory."""
    numbers = (*a.shape, *a.strides, a.offset)
    if len(a.shape) != len(a.strides) or len(a.shape) > _RANKS or not all(type(n) is int for n in numbers):
        refuse(f"an array of shape {a.shape!r:.80} has the strides {a.strides!r:.80}")
    low, high = a.reach
    if min(a.shape, default=1) < 0 or (0 not in a.shape and not 0 <= low <= high < a.memory.size):
        refuse(f"an array of shape {a.shape!r:.80} reaches out of its memory of {a.memory.size} elements")
    if math.prod(a.shape) > max(a.memory.size, _LARGEST) or any(abs(n) >= 1 << 62 for n in numbers):
        refuse(f"an array of shape {a.shape!r:.80} repeats its memory too often")


def refuse(reason: str) -> NoReturn:
    """Say what the bytes are not.

    Raises:
        Damaged: always.
    """
    raise Damaged(reason)
