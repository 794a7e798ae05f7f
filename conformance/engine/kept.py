"""What is kept of an item's answers for the stage that concludes: a bounded choice of them, as a journal holds it.

Of an operation, single elements: those that differ, their neighbours, the ends of tensors, and of those that agree the
ones nearest to a tie, which tell most. Of a documented function, whole calls, the small ones.
"""

import base64
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import zip_longest
from typing import Any

import numpy as np

from halfeven.conformance.configuration import Array, Case, Configuration
from halfeven.conformance.engine import batch
from halfeven.conformance.engine.call import Answer, Call, CallShape, arguments_of, breaches, numbers
from halfeven.conformance.engine.company import traits_of
from halfeven.conformance.engine.contract import by_kind
from halfeven.conformance.engine.evidence import Evidence, Judged
from halfeven.conformance.engine.fitting.elements import Observed
from halfeven.conformance.engine.memory import Strided
from halfeven.reference import Grid
from halfeven.reference.blocks import BlockSize, Shape
from halfeven.reference.profile import OPERATIONS

__all__ = ["Sample", "Subject", "decoded", "encoded", "sampled", "shared"]

_ELEMENTS, _EACH = 512, 8  # of an item of an operation; of one call at least
_CALLS = 48  # that differ, and as many that agree
_CANDIDATES = 512  # places looked at in a call
_LARGEST = 1 << 26  # bytes of what is kept of one check, unpacked
_WHOLE = 12  # calls of a function that differ, and as many that agree
_NUMBERS = 4096  # in one of them
_SHAPES = 200
_WORDS, _TYPES, _BYTES = 600, 16, 1 << 21  # of a message, of an error's ancestry, of a call and its answer
_ALL_BYTES = 1 << 24  # of all that is kept of a check

Subject = tuple[str, str, str]
"""What has one explanation: a backend, an operation (``onnx:quantize``) or a formula's id, and a dtype."""


@dataclass(frozen=True, eq=False)
class Sample:
    """A bounded choice of what one item was answered.

    Attributes:
        name: the result's, ``backend::id``.
        calls: of an operation the chosen elements of calls made alike, each with its own parameters; else whole calls.
        answers: what came of them.
        open: whether something differs, and why is still to be found.
        differing, agreeing: how the calls were made whose answers differ, and the others.
        raised: of an operation errors of calls that raised while others differed, of a few kinds.
        refuted: of a function the versions of it that do not give all its answers, those that are not kept included.
    """

    name: str
    calls: tuple[Call, ...] = ()
    answers: tuple[Answer, ...] = ()
    open: bool = False
    differing: tuple[CallShape, ...] = ()
    agreeing: tuple[CallShape, ...] = ()
    raised: tuple[str, ...] = ()
    refuted: tuple[str, ...] = ()

    @property
    def backend(self) -> str:
        """Whose answers they are."""
        return self.name.partition("::")[0]

    @property
    def subjects(self) -> list[Subject]:
        """What these answers are evidence about."""
        return list(dict.fromkeys(self._subject(call) for call in self.calls))

    def observed(self, subject: Subject) -> list[Observed]:
        """The elements that tell of an operation."""
        pairs = zip(self.calls, self.answers, strict=True)
        return [_observed(call, answer) for call, answer in pairs if self._subject(call) == subject]

    def _subject(self, call: Call) -> Subject:
        return self.backend, call.formula, str(call.named.get("dtype", "")) if ":" in call.formula else ""


@dataclass(frozen=True)
class _Alike:
    """What elements have in common that are kept in one call; ``size``, ``last``, ``traits`` are the whole call's."""

    grid: Grid
    granularity: str
    dtypes: tuple[Any, ...]
    shape: CallShape
    size: int
    last: int
    traits: tuple[str, ...]


def sampled(
    e: Evidence,
    name: str,
    *,
    is_open: bool,
    wrong: Mapping[int, Array] | None = None,
    against: Mapping[str, Judged] | None = None,
) -> Sample | None:
    """What to keep of the evidence; None where nothing was compared.

    Args:
        e: all of an item's evidence.
        name: the result's.
        is_open: whether the cause of what differs is still to be found.
        wrong: by ``id`` what else differs, and where, from an explanation: of such a sample it is not told which
            elements differ from the document.
        against: by version of a function the smallest call that refutes it.
    """
    if not e.compared:
        return None
    differ = {id(f.compared): f.difference.comparison for f in e.findings if not f.own}
    nowhere: Array = np.zeros(0, np.int64)
    places = {key: nowhere if gap is None else gap.where for key, gap in differ.items()} | dict(wrong or {})
    bad, good = ([a for a in e.compared if (id(a) in places) is differs] for differs in (True, False))
    if e.item.configuration is None:
        refuting = [a for a in e.compared if id(a) in (wrong or {})]  # they would be lost among those that differ
        chosen = {
            id(a): a for a in (*_small(refuting), *_small(bad), *_small(good), *(against or {}).values())
        }.values()
        calls = [(_plainly(a), a.actual) for a in chosen if a.call is not None]
    else:
        asked = [*_spread(bad, _CALLS), *_spread(good, _CALLS)]
        each = max(_EACH, _ELEMENTS // max(len(asked), 1))
        calls = _elements(e, [(a, places.get(id(a), nowhere)) for a in asked], each, told=wrong is None)
    short = ((call, _shortened(answer)) for call, answer in calls)
    kept = [*_with_a_form(short)]
    # What an explanation did not foretell may be the document's own answer.
    sides = ([a.shape for a in e.compared if (id(a) in differ) is differs] for differs in (True, False))
    differing, agreeing = (tuple(dict.fromkeys(some))[:_SHAPES] for some in sides)
    made, answers = tuple(c for c, _ in kept), tuple(a for _, a in kept)
    raised = tuple(words[:_WORDS] for words in by_kind(e.raised))
    return Sample(name, made, answers, is_open, differing, agreeing, raised, tuple(against or {}))


def encoded(sample: Sample) -> str:
    """A sample as text, for a journal or another process; its name is not in it."""
    said = {
        "open": sample.open,
        "raised": list(sample.raised),
        "refuted": list(sample.refuted),
        **{side: [_unlike(s) for s in getattr(sample, side)] for side in ("differing", "agreeing")},
    }
    calls, answers = batch.dump(sample.calls, said), batch.dump(sample.answers)
    return base64.b85encode(zlib.compress(len(calls).to_bytes(8, "little") + calls + answers, 6)).decode("ascii")


def decoded(name: str, text: str) -> Sample:
    """The other way.

    Raises:
        ValueError: it is not what ``encoded`` wrote.
    """
    try:
        unpacking = zlib.decompressobj()
        data = unpacking.decompress(base64.b85decode(text), _LARGEST)
        if unpacking.unconsumed_tail:
            msg = f"more than {_LARGEST:,} bytes"
            raise ValueError(msg)  # noqa: TRY301 - said as all else that is damaged
        length = int.from_bytes(data[:8], "little")
        calls, said = batch.opened(data[8 : 8 + length], Call)
        answers = batch.load(data[8 + length :], Answer) if calls else []
        differing, agreeing = (tuple(CallShape(**s) for s in said[side]) for side in ("differing", "agreeing"))
        raised, refuted = (_texts(said.get(key, ())) for key in ("raised", "refuted"))
        found = Sample(name, tuple(calls), tuple(answers), bool(said["open"]), differing, agreeing, raised, refuted)
        for subject in found.subjects:
            if ":" in subject[1]:
                found.observed(subject)
    except (zlib.error, LookupError, TypeError, AttributeError, ValueError) as error:
        msg = f"the answers kept of {name} are damaged: {type(error).__name__}: {error}"
        raise ValueError(msg) from None
    if len(calls) != len(answers):
        msg = f"the answers kept of {name} are damaged: {len(calls)} calls have {len(answers)} answers"
        raise ValueError(msg)
    return found


def _texts(said: object) -> tuple[str, ...]:
    """What a journal has of texts: older ones have one or none."""
    match said:
        case str():
            return (said,) if said else ()
        case list() | tuple():
            return tuple(map(str, said))
        case _:
            msg = f"{said!r} is no list of texts"
            raise ValueError(msg)


def shared(case: Case, shape: CallShape) -> str:
    """What shares a parameter in a call, as far as its values tell: one parameter is the tensor's, however it is given.

    >>> from halfeven.conformance.engine.call import PLAIN
    >>> c = Configuration("quantize", "float32", Grid(0, 1), (2, 1), "channel")
    >>> shared(Case(c, np.zeros((2, 1)), np.ones((1, 1)), np.zeros((1, 1))), PLAIN)
    'tensor'
    """
    if case.scale.size == 1:
        return "tensor"
    named = case.configuration.granularity
    return named if named != "any" else shape.block.partition(" ")[0]


def _unlike(shape: CallShape) -> dict[str, Any]:
    plain = asdict(CallShape())
    return {name: value for name, value in asdict(shape).items() if value != plain[name]}


def _shortened(answer: Answer) -> Answer:
    """An answer without what a backend may say at any length."""
    message, error = answer.message[:_WORDS], answer.error[:_TYPES]
    faults = (breaches(answer) or answer.faults)[:1]
    return replace(answer, message=message, error=error, traceback="", printed="", faults=faults)


def _with_a_form(pairs: Iterable[tuple[Call, Answer]]) -> Iterator[tuple[Call, Answer]]:
    """Those that can be written down, in few bytes: some dtypes and objects are their process's own."""
    left = _ALL_BYTES
    for call, answer in pairs:
        try:
            data = batch.dump([call]), batch.dump([answer])
            batch.load(data[0], Call)
            batch.load(data[1], Answer)
        except (TypeError, ValueError):
            continue
        if (size := sum(map(len, data))) <= min(_BYTES, left):
            left -= size
            yield call, answer


def _small(asked: Sequence[Judged]) -> list[Judged]:
    """Of a function's calls small ones, of every kind of call, and the smallest of every kind of answer."""
    size = {id(a): numbers(a.call.named) + numbers(a.actual.value) for a in asked if a.call is not None}
    known = [a for a in asked if id(a) in size]
    few = [a for a in known if size[id(a)] <= _NUMBERS]
    smallest: dict[tuple[Any, ...], Judged] = {}
    for a in sorted(known, key=lambda a: size[id(a)]):
        smallest.setdefault(_kind(a), a)
    chosen = {id(a): a for a in (*smallest.values(), *_spread(few, _WHOLE))}.values()
    return sorted(chosen, key=lambda a: numbers(a.call and a.call.named))


def _kind(asked: Judged) -> tuple[Any, ...]:
    """A result, an error of a type, or one that a fault spoils, to arrays of these dtypes: each may have its cause."""
    answer, call = asked.actual, asked.call
    named = {} if call is None else call.named
    dtypes = [(name, v.memory.dtype.name) for name, v in named.items() if isinstance(v, Strided)]
    return answer.kind, *answer.error[:1], *(fault.partition(":")[0] for fault in breaches(answer)), *dtypes


def _plainly(asked: Judged) -> Call:
    """The call without the memory around its arrays."""
    assert asked.call is not None, "a function's"
    return Call(asked.call.formula, (), dict(arguments_of(asked.call.named)), asked.shape, asked.call.reason)


def _spread(asked: Sequence[Judged], limit: int) -> list[Judged]:
    """So many of them, of every way of calling before any comes again."""
    by: dict[CallShape, list[Judged]] = {}
    for a in asked:
        by.setdefault(a.shape, []).append(a)
    turns = zip_longest(*(_evenly(some, limit) for some in by.values()))
    every = [a for turn in turns for a in turn if a is not None]
    return every[:limit] if len(by) <= limit else _evenly(every[: len(by)], limit)


def _evenly(some: Sequence[Any], limit: int) -> list[Any]:
    if len(some) <= limit:
        return list(some)
    return [some[i] for i in np.linspace(0, len(some) - 1, limit).astype(int)]


def _few(places: Array, limit: int) -> Array:
    return np.array(_evenly(places.tolist(), limit), np.int64)


def _elements(
    e: Evidence, asked: Iterable[tuple[Judged, Array]], each: int, *, told: bool
) -> list[tuple[Call, Answer]]:
    """The chosen elements, those of calls made alike in one call; its first ones differ, and ``told`` is how many."""
    found: dict[_Alike, list[tuple[bool, Array, Array, Array, Array, Array]]] = {}
    for a, wrong in asked:
        case, values = a.case, np.ascontiguousarray(a.actual.value).ravel()
        if case is None or not values.size:
            continue
        last = case.x.shape[-1] if case.x.ndim else 1
        c = case.configuration
        dtypes = (case.x.dtype, case.scale.dtype, case.zero.dtype, values.dtype)
        key = _Alike(c.grid, shared(case, a.shape), dtypes, a.shape, values.size, last, traits_of(c.operation, case.x))
        few = _few(wrong, -(-3 * each // 4))
        nans = e.open_nans(case)
        untold = wrong if nans is None else np.append(wrong, np.flatnonzero(nans))
        for differs, places in ((True, few), (False, _agreeing(case, wrong, untold, each - len(few)))):
            if len(places):
                found.setdefault(key, []).append((differs, *_at(case, places), values[places], places))
    c = e.setting.configuration
    return [
        _call(f"{e.item.offer.profile}:{c.operation}", c.dtype, key, sorted(rows, key=lambda r: not r[0]), told=told)
        for key, rows in found.items()
    ]


def _call(formula: str, dtype: str, of: _Alike, rows: list[tuple[Any, ...]], *, told: bool) -> tuple[Call, Answer]:
    differing = sum(len(row[-1]) for row in rows if row[0]) if told else None
    x, scale, zero, value, place = (np.concatenate([row[i] for row in rows]) for i in range(1, 6))
    named = {
        "dtype": dtype,
        "qmin": of.grid.qmin,
        "qmax": of.grid.qmax,
        "granularity": of.granularity,
        "size": of.size,
        "last": of.last,
        "traits": of.traits,
        "differing": differing,
        "place": place.astype(np.int64),
    }
    return Call(formula, (x, scale, zero), named, of.shape), Answer("returned", value)


def _observed(call: Call, answer: Answer) -> Observed:
    x, scale, zero = (np.asarray(a) for a in call.positional)
    n, operation = call.named, call.formula.partition(":")[2]
    c = Configuration(
        next(o for o in OPERATIONS if o == operation), n["dtype"], Grid(n["qmin"], n["qmax"]), x.shape, n["granularity"]
    )
    return Observed(
        Case(c, x, scale, zero),
        np.asarray(answer.value),
        None if n["differing"] is None else np.arange(n["differing"]),
        call.shape,
        np.asarray(n["place"]),
        int(n["size"]),
        int(n["last"]),
        tuple(n["traits"]) if "traits" in n else None,  # older journals have none
    )


def _at(case: Case, places: Array) -> tuple[Array, Array, Array]:
    """The input and the parameters of single elements."""
    shape = case.x.shape or (1,)
    coordinates = np.unravel_index(places, shape)
    block = case.configuration.block_size
    scale, zero = (_parameter(p, shape, block, coordinates) for p in (case.scale, case.zero))
    return case.x.reshape(shape)[coordinates], scale, zero


def _parameter(p: Array, shape: Shape, block: BlockSize | None, at: tuple[Array, ...]) -> Array:
    if not p.ndim:
        return np.full(len(at[0]), p)
    if block is None:
        return np.broadcast_to(p, shape)[at]
    return np.asarray(p[tuple(i // b for i, b in zip(at, block, strict=True))])


def _agreeing(case: Case, wrong: Array, untold: Array, count: int) -> Array:
    """Of the places that agree those that tell most: next to one that differs, at an end, near a tie, and any.

    ``untold`` are all that differ, and those of which nothing is expected.
    """
    size = case.x.size
    agrees = np.ones(size, bool)
    agrees[untold] = False
    some = _few(wrong, _CANDIDATES // 4)
    next_to = np.stack([some - 1, some + 1], 1).ravel()
    ends = np.stack([size - 1 - np.arange(min(size, 16)), np.arange(min(size, 16))], 1).ravel()
    spread = np.linspace(0, size - 1, min(size, _CANDIDATES)).astype(int)
    x, scale, _ = (a.astype(np.float64) for a in _at(case, spread))
    with np.errstate(all="ignore"):
        quotient = x / scale
        distance = np.abs(quotient - np.floor(quotient) - 0.5)
    to_tie = spread[np.argsort(np.where(np.isfinite(distance), distance, np.inf), kind="stable")]
    special = spread[~np.isfinite(distance)]
    return np.asarray(_first(count, lambda i: 0 <= i < size and agrees[i], next_to, ends, to_tie, special, spread), int)


def _first(count: int, fits: Callable[[int], bool], *lists: Array) -> list[int]:
    """So many places, from each list in turn."""
    found: dict[int, None] = {}
    for place in _in_turn(lists):
        if len(found) >= count:
            break
        if fits(place):
            found[place] = None
    return list(found)


def _in_turn(lists: Sequence[Array]) -> Iterator[int]:
    for turn in zip_longest(*(some.tolist() for some in lists)):
        yield from (place for place in turn if place is not None)
