"""The flat form of a bundle, for a device without libraries: a plain-text index, and the bytes of the arrays.

docs/protocol.md has the grammar. Every token is free of blanks, so ``fscanf`` reads them one by one.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, BinaryIO
from urllib.parse import quote, unquote

import ml_dtypes
import numpy as np

from halfeven.conformance.engine.batch import DTYPES, Other
from halfeven.conformance.engine.call import Answer, Call, Dtype
from halfeven.conformance.engine.memory import Array, Strided
from halfeven.conformance.engine.sound import Damaged, refuse, sound
from halfeven.conformance.workers.names import names_of

__all__ = ["ALIGNED", "Data", "answer_lines", "answers_of", "call_lines"]

ALIGNED = 64
_DEEPEST = 32
_RANKS = 64


class Data:
    """The bytes next to an index, as they grow: memory that several arrays share is there once."""

    def __init__(self, file: BinaryIO) -> None:  # noqa: D107 - what they are written into
        self._file, self._size = file, 0
        self._held: dict[int, tuple[int, Array]] = {}  # what is held keeps its id

    def put(self, memory: Array) -> int:
        """Where its first byte lies."""
        if id(memory) not in self._held:
            self._held[id(memory)] = self._size, memory
            data = np.ascontiguousarray(memory).reshape(-1).view(np.uint8).data
            self._file.write(data)
            self._file.write(bytes(-len(data) % ALIGNED))
            self._size += len(data) + -len(data) % ALIGNED
        return self._held[id(memory)][0]


def call_lines(numbered: Iterable[tuple[int, Call]], data: Data) -> Iterator[str]:
    """The lines of each call: first how it is made, then a line per argument."""
    for number, call in numbered:
        arguments = [*zip(names_of(call), call.positional, strict=False), *call.named.items()]
        s = call.shape
        yield f"call {number} {call.formula} {s.threads} {s.mode} {s.repeats} {len(arguments)}"
        for name, value in arguments:
            yield f"{name} {' '.join(_tokens(value, data))}"


def answer_lines(numbered: Iterable[tuple[int, Answer]], data: Data) -> Iterator[str]:
    """A line per answer."""
    for number, a in numbered:
        match a.kind:
            case "returned":
                said = [*_tokens(a.value, data)]
            case "raised":
                said = [str(len(a.error)), *map(_word, a.error), _word(a.message)]
            case _:
                said = [_word(a.message)]
        yield " ".join([f"answer {number} {a.kind}", *said, str(len(a.faults)), *map(_word, a.faults)])


def answers_of(index: bytes, data: bytes, bundle: str, calls: int) -> list[Answer]:
    """The answers in an index and the bytes that it speaks of.

    Raises:
        Damaged: they are no answers to that bundle, or not all of them in order; the message has the line.
    """
    lines = iter(enumerate(index.split(b"\n"), 1))
    line, found = 1, []
    try:
        _expect(next(lines), b"halfeven-answers 1", "it is no index of answers of version 1")
        _expect(next(lines), b"bundle " + bundle.encode(), "it answers another bundle")
        for number in range(calls):
            line, text = next(lines)
            found.append(_answer(_Tokens(text, data), number, calls))
            sound(found[-1])
        line, text = next(lines)
        if text.split() != [b"end", b"%d" % calls]:
            refuse(f"where 'end {calls}' should be there is {text[:80].decode('ascii', 'replace')!r}")
        if any(rest.strip() for _, rest in lines):
            refuse("more follows after the end")
    except StopIteration:
        msg = f"line {line}: cut short: {len(found)} of {calls} answers are there"
        raise Damaged(msg) from None
    except (LookupError, TypeError, ValueError, OverflowError, RecursionError, struct.error) as error:
        msg = f"line {line}: {f'{error}'[:200] or type(error).__name__}"
        raise Damaged(msg) from None
    return found


def _expect(line: tuple[int, bytes], wanted: bytes, reason: str) -> None:
    if line[1].split() != wanted.split():
        refuse(reason)


def _answer(t: "_Tokens", number: int, calls: int) -> Answer:
    if t.word() != "answer":
        refuse(f"answer {number} of {calls} is missing")
    if (given := t.number()) != number:
        what = "doubled, or in another order" if given < number else "missing, or in another order"
        refuse(f"answer {given} comes where answer {number} should: one is {what}")
    kind: Any = t.word()
    fields: dict[str, Any] = {}
    match kind:
        case "returned":
            fields["value"] = t.value(_DEEPEST)
        case "raised":
            fields["error"] = tuple(t.text() for _ in range(t.count()))
            fields["message"] = t.text()
        case _:
            fields["message"] = t.text()
    faults = tuple(t.text() for _ in range(t.count())) if t.left else ()
    if t.left:
        refuse("more follows after the answer")
    return Answer(kind, faults=faults, **fields)


class _Tokens:
    """The words of one line, one after the other."""

    def __init__(self, line: bytes, data: bytes) -> None:
        self._words, self._at, self._data = line.decode("ascii").split(), 0, data

    @property
    def left(self) -> bool:
        return self._at < len(self._words)

    def word(self) -> str:
        if not self.left:
            refuse("the line is cut short")
        self._at += 1
        return self._words[self._at - 1]

    def number(self) -> int:
        return int(self.word())

    def count(self) -> int:
        """A number of words that follow: no more than there are."""
        if not 0 <= (n := self.number()) <= len(self._words) - self._at:
            refuse(f"{n} words are announced, {len(self._words) - self._at} are there")
        return n

    def text(self) -> str:
        word = self.word()
        if len(word) < 2 or word[0] != '"' or word[-1] != '"':  # noqa: PLR2004 - the two quotes
            refuse(f"{word[:80]!r} is no text: it stands in quotes, with %20 for a blank")
        return unquote(word[1:-1])

    def value(self, depth: int) -> Any:
        if depth == 0:
            refuse(f"a value is nested deeper than {_DEEPEST}")
        kind = self.word()
        if kind in {"tuple", "list"}:
            inner = [self.value(depth - 1) for _ in range(self.count())]
            return tuple(inner) if kind == "tuple" else inner
        if kind == "map":
            return {self.value(depth - 1): self.value(depth - 1) for _ in range(self.count())}
        if kind not in _READ:
            refuse(f"{kind[:80]!r} is no kind of value: there are tuple, list, map, {', '.join(_READ)}")
        return _READ[kind](self)

    def array(self) -> Array:
        dtype = self.dtype()
        if not 0 <= (rank := self.count()) <= _RANKS:
            refuse(f"rank {rank} is not accepted: give {_RANKS} or less")
        shape = [self.number() for _ in range(rank)]
        start = self.number()
        size = dtype.itemsize
        for n in shape:
            size *= n
        if min(shape, default=0) < 0 or start < 0 or start + size > len(self._data):
            refuse(f"an array of {size} bytes from byte {start} on reaches out of the file of {len(self._data)} bytes")
        return np.frombuffer(self._data[start : start + size], np.uint8).view(dtype).reshape(shape)

    def scalar(self) -> Any:
        dtype = self.dtype()
        bits = self.word()
        self.word()  # as a number, for who reads
        if len(bits) != 2 * dtype.itemsize:
            refuse(f"{bits[:40]!r} has not the {2 * dtype.itemsize} hexadecimal digits of {dtype}")
        return np.frombuffer(bytes.fromhex(bits)[::-1], np.uint8).view(dtype)[0]

    def float(self) -> float:
        bits, _ = bytes.fromhex(self.word()), self.word()
        return float(struct.unpack(">d", bits)[0])

    def dtype(self) -> "np.dtype[Any]":
        if (name := self.word()) not in DTYPES:
            refuse(f"dtype {name[:80]!r} is not accepted: give one of {', '.join(DTYPES)}")
        return DTYPES[name]

    def whole(self) -> int:
        return int(self.word())

    def bool(self) -> bool:
        return {"0": False, "1": True}[self.word()]


_READ: dict[str, Any] = {
    "none": lambda _: None,
    "bool": _Tokens.bool,
    "int": _Tokens.whole,
    "float": _Tokens.float,
    "text": _Tokens.text,
    "bytes": lambda t: bytes.fromhex(t.text()),
    "dtype": lambda t: Dtype(t.word()),
    "scalar": _Tokens.scalar,
    "array": _Tokens.array,
    "other": lambda t: Other(t.text(), t.text()),
}


def _tokens(value: Any, data: Data) -> Iterator[str]:
    match value:
        case Strided():
            place = [*value.shape, *value.strides, data.put(value.memory), value.memory.size, value.offset]
            yield from ("strided", value.memory.dtype.name, str(len(value.shape)), *map(str, place))
        case np.ndarray():
            yield from ("array", value.dtype.name, str(value.ndim), *map(str, value.shape), str(data.put(value)))
        case np.generic():
            yield from ("scalar", value.dtype.name, value.tobytes()[::-1].hex(), _number(value))
        case tuple() | list() | Mapping():
            kind = "map" if isinstance(value, Mapping) else type(value).__name__
            yield from (kind, str(len(value)))
            inner = [part for pair in value.items() for part in pair] if isinstance(value, Mapping) else value
            for part in inner:
                yield from _tokens(part, data)
        case _:
            yield from _single(value)


def _single(value: Any) -> tuple[str, ...]:
    found: tuple[str, ...]
    match value:
        case None:
            found = ("none",)
        case bool():
            found = ("bool", str(int(value)))
        case int():
            found = ("int", str(value))
        case float():
            found = ("float", np.float64(value).tobytes()[::-1].hex(), repr(value))
        case str():
            found = ("text", _word(value))
        case bytes():
            found = ("bytes", f'"{value.hex()}"')
        case Dtype():
            found = ("dtype", value.name)
        case Other():
            found = ("other", _word(value.type), _word(value.words))
        case _:
            found = ("other", _word(type(value).__name__), _word(f"{value!r:.200}"))
    return found


def _word(text: str) -> str:
    return f'"{quote(text, safe="/:;,.=()[]<>+*!?_-", errors="backslashreplace")}"'


def _number(value: Any) -> str:
    """A scalar for who reads; a device goes by the bits."""
    a = np.asarray(value)
    real = a.dtype.kind == "f" or a.dtype == np.dtype(ml_dtypes.bfloat16)
    return repr(float(a)) if real else _word(str(value)).strip('"')
