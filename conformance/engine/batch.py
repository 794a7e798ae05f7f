"""A batch of calls or answers as bytes, the same in a pipe and on a disk: one file in the safetensors format.

Its tensors are the memories of the arrays, as vectors; all else is JSON in its metadata, under ``halfeven``. The page
docs/protocol.md describes both for who reads or writes them in another language.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from json.encoder import encode_basestring_ascii
from typing import Any, TypeVar

import ml_dtypes
import numpy as np

from halfeven.conformance.engine.call import PLAIN, Answer, Call, CallShape, Dtype
from halfeven.conformance.engine.exhaustive.patterns import Patterns
from halfeven.conformance.engine.memory import Array, Strided
from halfeven.conformance.engine.sound import Damaged, sound

__all__ = ["DTYPES", "VERSION", "Damaged", "Other", "dump", "load", "opened", "pieces"]

VERSION = 1
_HEAD = 8  # bytes: the length of the header, little-endian
_NAMES = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "bool")
_TENSORS = {
    **dict(zip(_NAMES, ("F64", "F32", "F16", "BF16", "F8_E4M3", "F8_E5M2", "BOOL"), strict=True)),
    **{f"{kind}{bits}": f"{kind[0].upper()}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)},
}
_NARROW = (
    "int2",
    "uint2",
    "int4",
    "uint4",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
)
_BYTES = (
    *_NARROW,
    "float8_e4m3b11fnuz",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "complex64",
    "complex128",
)
#: Every dtype that an array may have, by name; what safetensors has no name for is stored as bytes, U8.
DTYPES: dict[str, "np.dtype[Any]"] = {name: np.dtype(getattr(ml_dtypes, name, name)) for name in (*_TENSORS, *_BYTES)}
_NAME_OF = {dtype: name for name, dtype in DTYPES.items()}
# What else is right of an answer is the judge's to say, not the sender's.
_FIELDS = {kind: [f.name for f in fields(kind) if f.name != "open"] for kind in (Call, Answer)}
_AS_THEY_ARE = frozenset({type(None), bool, int, str})
_T = TypeVar("_T", Call, Answer)


@dataclass(frozen=True)
class Other:
    """A value that has no form outside its process: what it is, in words.

    Attributes:
        type: its type's name.
        words: its ``repr``, shortened.
    """

    type: str
    words: str


def dump(items: Sequence[Call] | Sequence[Answer], of: Mapping[str, Any] | None = None) -> bytes:
    """``pieces`` as one."""
    return b"".join(pieces(items, of))


def pieces(items: Sequence[Call] | Sequence[Answer], of: Mapping[str, Any] | None = None) -> list[Any]:
    """The bytes of a batch, in order, without a copy of the arrays. Arrays that share their memory share it there too.

    ``of`` says, in JSON's own types, what the batch is a part of: on a disk, which calls of which bundle.

    >>> [found] = load(dump([Call("onnx:quantize", (Dtype("float16"), 0.5))]), Call)
    >>> found.positional
    (Dtype(name='float16'), 0.5)
    """
    kind = "answers" if items and isinstance(items[0], Answer) else "calls"
    names = _FIELDS[Answer if kind == "answers" else Call]
    encoder = _Encoder()
    encode = encoder.encode
    rows = [{name: encode(getattr(item, name)) for name in names} for item in items]
    said = {} if of is None else {"of": of}
    text = encoder.header(json.dumps({"version": VERSION, **said, kind: rows})).encode("utf-8", "backslashreplace")
    text += b" " * (-len(text) % _HEAD)
    return [len(text).to_bytes(_HEAD, "little"), text, *(m.view(np.uint8).data for m in encoder.memories)]


class _Encoder:
    """Values as JSON has them; the memories that they lie in are gathered on the way."""

    def __init__(self) -> None:
        self.memories: list[Array] = []  # they live here, so that an id is one memory's
        self._numbers: dict[int, tuple[str, str]] = {}  # by id: its name in the batch, and its dtype's

    def header(self, manifest: str) -> str:
        """The header: the manifest, and where each memory lies."""
        entries, position = [f'"__metadata__":{{"halfeven":{encode_basestring_ascii(manifest)}}}'], 0
        for memory, (name, dtype) in zip(self.memories, self._numbers.values(), strict=True):
            end = position + memory.nbytes
            stored = _TENSORS.get(dtype, "U8")
            size = memory.nbytes if stored == "U8" else memory.size
            entries.append(f'"{name}":{{"dtype":"{stored}","shape":[{size}],"data_offsets":[{position},{end}]}}')
            position = end
        return f"{{{','.join(entries)}}}"

    def encode(self, value: Any) -> Any:
        """A value in JSON's own types."""
        if type(value) in _AS_THEY_ARE:
            return value
        form = _FORMS.get(type(value)) or next((f for kind, f in _FORMS.items() if isinstance(value, kind)), _other)
        return form(self, value)

    def strided(self, value: Strided) -> Any:
        """The place of a view in its memory."""
        name, dtype = self._placed(value.memory)
        return {"strided": [name, dtype, value.shape, value.strides, value.offset]}

    def array(self, value: Any) -> Any:
        """An array or a scalar, in memory of its own."""
        name, dtype = self._placed(np.asarray(value, order="C").reshape(-1))
        return {"array" if isinstance(value, np.ndarray) else "scalar": [name, dtype, np.shape(value)]}

    def sequence(self, value: Any) -> Any:
        """A tuple or a list."""
        return {"tuple" if isinstance(value, tuple) else "list": [*map(self.encode, value)]}

    def mapping(self, value: Mapping[Any, Any]) -> Any:
        """Pairs, since a key may be anything."""
        return {"map": [[self.encode(k), self.encode(v)] for k, v in value.items()]}

    def _placed(self, memory: Array) -> tuple[str, str]:
        found = self._numbers.get(id(memory))
        if found is None:
            if (dtype := _NAME_OF.get(memory.dtype)) is None:
                msg = f"dtype={memory.dtype.name!r} is not accepted in a batch: give one of {', '.join(DTYPES)}"
                raise TypeError(msg)
            found = self._numbers[id(memory)] = f"m{len(self.memories)}", dtype
            self.memories.append(memory)
        return found


def _other(_: _Encoder, value: Any) -> Any:
    return {"other": [type(value).__name__, _words(value)]}


@lru_cache(maxsize=1024)
def _unlike(shape: CallShape) -> dict[str, Any]:
    """What a call's shape has that a plain one has not."""
    return {f.name: given for f in fields(shape) if (given := getattr(shape, f.name)) != f.default}


#: By type, and by what a type derives from, the first that fits: float64 of NumPy is a float too.
_FORMS: dict[type, Callable[[_Encoder, Any], Any]] = {
    Strided: _Encoder.strided,
    np.ndarray: _Encoder.array,
    np.generic: _Encoder.array,
    **dict.fromkeys((int, str), lambda _, value: value),
    float: lambda _, value: {"float": float.hex(value)},
    bytes: lambda _, value: {"bytes": value.hex()},
    Dtype: lambda _, value: {"dtype": value.name},
    Patterns: lambda _, p: {"patterns": [p.dtype, p.first, p.count, p.piece, p.rank]},
    tuple: _Encoder.sequence,
    list: _Encoder.sequence,
    dict: _Encoder.mapping,
    Mapping: _Encoder.mapping,
    CallShape: lambda _, value: _unlike(value),
    Other: lambda _, value: {"other": [value.type, value.words]},
}


def load(data: bytes | memoryview, kind: type[_T]) -> list[_T]:
    """The calls or answers of ``dump``; their arrays lie in ``data`` and cannot be written to.

    Raises:
        Damaged: the bytes are no batch of this kind; the message has the reason.
    """
    return opened(data, kind)[0]


def opened(data: bytes | memoryview, kind: type[_T]) -> tuple[list[_T], Any]:
    """What ``load`` gives, and what the batch says that it is a part of, which nobody has looked at yet.

    Raises:
        Damaged: the bytes are no batch of this kind; the message has the reason.
    """
    try:
        return _load(memoryview(data), kind)
    except Damaged:
        raise
    except (LookupError, TypeError, AttributeError, ValueError, RecursionError, OverflowError) as error:
        msg = f"no batch of calls or answers: {type(error).__name__}: {str(error)[:200]}"
        raise Damaged(msg) from None


def _load(data: memoryview, kind: type[_T]) -> tuple[list[_T], Any]:
    length = int.from_bytes(data[:_HEAD], "little")
    if len(data) < _HEAD + length:
        msg = f"cut short: {len(data)} bytes of {_HEAD + length} or more"
        raise Damaged(msg)
    header = json.loads(str(data[_HEAD : _HEAD + length], "utf-8"))
    manifest = json.loads(header.pop("__metadata__")["halfeven"])
    if manifest["version"] != VERSION:
        msg = f"version {manifest['version']!r} is not read here: this is version {VERSION}"
        raise Damaged(msg)
    body = data[_HEAD + length :]
    if (ends := max((t["data_offsets"][1] for t in header.values()), default=0)) != len(body):
        msg = f"cut short or too long: the arrays take {ends} bytes, {len(body)} are there"
        raise Damaged(msg)
    rows = manifest["answers" if kind is Answer else "calls"]
    decode = _Decoder(header, body).decode
    items = [kind(**{name: decode(value) for name, value in row.items()}) for row in rows]
    for item in items:
        sound(item)
    return items, manifest.get("of")


class _Decoder:
    """The other way: values over the memories that lie in ``body``."""

    def __init__(self, header: Mapping[str, Any], body: memoryview) -> None:
        self._header, self._body = header, body
        self._memories: dict[tuple[str, str], Array] = {}

    def decode(self, value: Any) -> Any:
        """The value that ``_Encoder.encode`` made this of."""
        if type(value) is not dict:
            return value
        if len(value) == 1:
            [(tag, inner)] = value.items()
            if (made := _VALUES.get(tag)) is not None:
                return made(self, inner)
        return CallShape(**value) if value else PLAIN

    def strided(self, inner: Any) -> Strided:
        """A view."""
        name, dtype, shape, strides, offset = inner
        return Strided(self._memory(name, dtype), tuple(shape), tuple(strides), offset)

    def array(self, inner: Any) -> Array:
        """An array."""
        name, dtype, shape = inner
        return self._memory(name, dtype).reshape(shape)

    def scalar(self, inner: Any) -> Any:
        """A scalar of NumPy's."""
        name, dtype, _ = inner
        return self._memory(name, dtype)[0]

    def _memory(self, name: str, dtype: str) -> Array:
        found = self._memories.get((name, dtype))
        if found is None:
            begin, end = self._header[name]["data_offsets"]
            if not 0 <= begin <= end:
                msg = f"array {name} lies at {begin} to {end}"
                raise Damaged(msg)
            found = np.frombuffer(self._body[begin:end], np.uint8).view(DTYPES[dtype])
            self._memories[name, dtype] = found
        return found


_VALUES: dict[str, Callable[[_Decoder, Any], Any]] = {
    "strided": _Decoder.strided,
    "array": _Decoder.array,
    "scalar": _Decoder.scalar,
    "float": lambda _, digits: float.fromhex(digits),
    "bytes": lambda _, digits: bytes.fromhex(digits),
    "dtype": lambda _, name: Dtype(_word(name)),
    "patterns": lambda _, inner: Patterns(*inner),
    "tuple": lambda d, inner: tuple(map(d.decode, inner)),
    "list": lambda d, inner: [*map(d.decode, inner)],
    "map": lambda d, inner: {d.decode(k): d.decode(v) for k, v in inner},
    "other": lambda _, inner: Other(*map(_word, inner)),
}


def _word(value: Any) -> str:
    if not isinstance(value, str):
        msg = f"{value!r:.80} is no word"
        raise Damaged(msg)
    return value


def _words(value: Any) -> str:
    try:
        return f"{value!r:.200}"
    except Exception as error:  # noqa: BLE001 - a value that cannot say what it is
        return f"({type(error).__name__})"
