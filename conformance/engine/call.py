"""Calls and answers: what is asked and what came, as values that can be sent anywhere (``batch``) and asked again."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal

import numpy as np

from halfeven.conformance.engine.memory import Strided, strided
from halfeven.reference.sums import Open

__all__ = [
    "CHANGED",
    "MODES",
    "PLAIN",
    "Answer",
    "Call",
    "CallShape",
    "Dtype",
    "Kind",
    "Mode",
    "arguments_of",
    "breaches",
    "leaves",
    "numbers",
    "sent",
]

Mode = Literal["grad", "no_grad", "inference", "requires_grad"]
MODES: tuple[Mode, ...] = ("grad", "no_grad", "inference", "requires_grad")
Kind = Literal["returned", "unsupported", "raised", "ended"]


@dataclass(frozen=True)
class Dtype:
    """A dtype as an argument: the backend gets it as its arrays' own kind has it.

    Attributes:
        name: as NumPy, ml_dtypes and torch spell it, such as ``bfloat16``.
    """

    name: str


@dataclass(frozen=True)
class CallShape:
    """How a call is made, apart from its values; the defaults are the plain call.

    Attributes:
        size: elements of the first array; None where the values decide it.
        rank: its dimensions, likewise.
        layout: how it lies in memory: contiguous, transposed, stepped, ...
        offset: where it begins, in elements past a multiple of 64 bytes.
        parameters: how the other arrays lie: fresh, stepped, ...
        block: what shares a parameter: tensor, channel, group 32, ...
        threads: one, or all that there are.
        mode: how torch records gradients.
        repeats: how often the same call is made.
        each: whether it stands for many, one for each index of the first dimension of every array.
    """

    size: int | None = None
    rank: int | None = None
    layout: str = "contiguous"
    offset: int = 0
    parameters: str = "fresh"
    block: str = "tensor"
    threads: Literal["one", "all"] = "one"
    mode: Mode = "grad"
    repeats: int = 1
    each: bool = False

    def __str__(self) -> str:
        """What is not plain about it, in words.

        >>> print(CallShape(layout="transposed", threads="all"))
        layout transposed, threads all
        """
        said = [f"{f.name} {value}" for f in fields(self) if (value := getattr(self, f.name)) != f.default]
        return ", ".join(said) or "plain"


PLAIN = CallShape()
#: How a fault begins that says what a call changed of the process around it.
CHANGED = "changed the process"


@dataclass(frozen=True, eq=False)
class Call:
    """All that is needed to ask it again, in another process, on another machine, from a file.

    Attributes:
        formula: a formula's id, such as ``onnx/QuantizeLinear``; or an operation of a profile, ``onnx:quantize``.
        positional, named: arrays are ``Strided`` (the first may be ``Patterns``), NumPy's scalars stay; dtypes are
            ``Dtype``; else bools, ints, floats, strings, bytes, None, and tuples, lists and mappings of all these.
        shape: how it is made.
        reason: why it is asked, in words.
    """

    formula: str
    positional: tuple[Any, ...] = ()
    named: Mapping[str, Any] = field(default_factory=dict)
    shape: CallShape = PLAIN
    reason: str = ""


@dataclass(frozen=True, eq=False)
class Answer:
    """What came of a call.

    Attributes:
        kind: it returned; it is not offered; it raised; or the process ended, or was ended, before it had answered.
        value: what was returned: arrays (contiguous copies), scalars and words, in tuples, lists and mappings.
        error: of what was raised its type, and the types it derives from, the nearest first.
        message: of the error or the refusal; or how it ended: ``timed out after 10 s``, ``signal 11 (SIGSEGV)``.
        traceback: of what was raised.
        faults: what the call did that no call may: in words, such as ``mutated input: ...``.
        printed: what the backend wrote meanwhile, where that is known.
        seconds: how long it took; of calls that stand for many, the backend's own time.
        open: of an answer that a formula gives, what else is right where the order of a sum decides, by the place in
            the value.
    """

    kind: Kind
    value: Any = None
    error: tuple[str, ...] = ()
    message: str = ""
    traceback: str = ""
    faults: tuple[str, ...] = ()
    printed: str = ""
    seconds: float = 0.0
    open: Mapping[str, Open] = field(default_factory=dict)


def breaches(answer: Answer) -> tuple[str, ...]:
    """The faults that spoil the answer; what a call changed of its process is told apart from what it answered."""
    return tuple(fault for fault in answer.faults if not fault.startswith(CHANGED))


def sent(value: Any) -> Any:
    """An argument as a ``Call`` holds it: arrays with the memory that they are views of."""
    match value:
        case np.ndarray():
            return strided(value)
        case tuple() | list():
            return type(value)(map(sent, value))
        case Mapping():
            return {key: sent(inner) for key, inner in value.items()}
    return value


def arguments_of(value: Any) -> Any:
    """The other way: an argument of a ``Call`` with NumPy's arrays, copies in their layout, for the reference."""
    match value:
        case Strided():
            return value.view(value.memory.copy())
        case tuple() | list():
            return type(value)(map(arguments_of, value))
        case Mapping():
            return {key: arguments_of(inner) for key, inner in value.items()}
    return value


def leaves(value: Any, path: str = "result") -> Iterator[tuple[str, Any]]:
    """The values in a result, each by its place in it: ``result[0]``, ``result['scale']``."""
    match value:
        case Mapping():
            for key, inner in value.items():
                yield from leaves(inner, f"{path}[{key!r}]")
        case tuple() | list():
            yield f"len({path})", len(value)
            for i, inner in enumerate(value):
                yield from leaves(inner, f"{path}[{i}]")
        case Strided():
            yield path, value.view()
        case _:
            yield path, value


def numbers(value: Any) -> int:
    """The numbers in an argument, or in all of a call's."""
    match value:
        case Strided() | np.ndarray():
            return int(np.prod(value.shape))
        case Mapping():
            return sum(map(numbers, value.values()))
        case tuple() | list():
            return sum(map(numbers, value))
    return 1
