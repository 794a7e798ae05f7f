"""The calls of a documented function beyond its own: the same values in every call shape, and longer arrays of them.

The own calls have the hard values, for which the formula's arguments fit together; how they are handed over is up to
the table of call shapes, and how many there are of them to ``LARGEST``.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice, product
from math import prod
from typing import Any, Literal

import numpy as np

from halfeven.conformance.engine.call import Call, CallShape, leaves
from halfeven.conformance.engine.company import in_its_shape
from halfeven.conformance.engine.judge import answer_of
from halfeven.conformance.engine.memory import Array, Strided
from halfeven.conformance.engine.operation_calls import Asked, in_one_storage
from halfeven.conformance.engine.shapes import function_rows, laid_out, possible
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.requirement import Arguments, CallSet
from halfeven.reference.catalogue import FORMULAS

__all__ = [
    "LARGEST",
    "ORDINARY",
    "SIZES",
    "Own",
    "function_calls",
    "grown",
    "grown_call",
    "own_calls",
    "shaped_call",
]

#: Elements along an axis, and how many calls of such a size are made in the quick tier.
SIZES: Mapping[int, int] = {131: 8, 1024: 6, 1103: 6, 5003: 4, 65_536: 2, 70_001: 3, (1 << 20) + 1: 2}
_MATRIX, _MATRICES = (48, 64), 6  # elements along the first axis and the last, and so many calls
#: The most elements of a formula that is searched, or goes element by element; measured, about 0.1 s a call.
#: Of AIMET's two that go row by row, each row in Python: 65,536 rows are 23 s of its own, near what a call may take.
LARGEST: Mapping[str, int] = {
    "aimet/histogram": 8704,
    "aimet/lpbq_encoding_dict": 131,
    "aimet/sqnr_encodings": 8704,
    "pytorch-quantization/descriptor": 5003,
    "pytorch-quantization/descriptor_dict": 5003,
    "pytorch-quantization/descriptor_round_trip": 5003,
    "pytorch-quantization/descriptor_yaml_round_trip": 1103,
    "torch/HistogramObserver._non_linear_param_search": 8704,
}
#: Numbers as they occur, where no value is chosen: of one sign sums are largest next to their bound.
ORDINARY: Mapping[str, Callable[[np.random.Generator, int], Array]] = {
    "normal": lambda draw, n: draw.normal(size=n),
    "uniform, of one sign": lambda draw, n: draw.uniform(size=n),
    "activations": lambda draw, n: np.maximum(draw.normal(size=n), 0) * draw.lognormal(size=n),
}
#: Which arguments those are put for; ``True`` where it is a gradient from above, whose size is about 1.
_DATA = {name: "grad" in name for name in ("x", "tensor", "input", "inputs", "grad", "gradient", "grad_outputs")}
_PARAMETERS = 160  # that have a sum each: an exact one is made of each
_FEW = 8  # of them where sums have a bound each
#: The first arguments of formulas that may reduce their data, to a greatest, a least, or codes by these.
_REDUCED = ("x", "A", "tensor", "input", "inputs", "input_float", "hp_tensor", "data_hp", "batches")
_SUMMED = 1103  # elements of such a call that is a sum
_FLOATS = {"float16", "bfloat16", "float32", "float64"}
#: Elements of the calls whose greatest or least is in one place, and how many of such a size.
ONE_PLACE: Mapping[int, int] = {131: 12, 1103: 12, 70_001: 6, (1 << 20) + 1: 2}
#: Blocks of the formulas that tell no size, and the elements in which each lane of such a block has its turn.
BLOCKS = (16, 32, 64, 128, 256)
_LANES = 256 * 34
_BLOCKED = 2 * len(BLOCKS)  # calls
_PER_BLOCK = 4  # of each size that is told
# Formulas that are gradients: whoever answers hands the arguments to autograd, which then has no others to look at.
_GRADIENTS = ("backward", "gradient", "gradients")
_MOST = 1 << 21  # elements of a call
_PER_ROW = 2  # calls in each call shape
_STANDARD = 6  # times as many in the standard tier
_TRIED = 16  # own calls, to find one that the formula answers where it is longer
_LEAST = 2  # elements, for a layout to be one
_KINDS = 6  # of calls whose data are asked in other company


@dataclass(frozen=True, eq=False)
class Own:
    """One of a function's own calls with arrays in it, to which the formula has an answer.

    Attributes:
        arguments: by keyword.
        rank: of the largest array.
    """

    arguments: Arguments
    rank: int


def function_calls(
    formula: str,
    sets: Sequence[CallSet],
    tier: Tier = "quick",
    seed: int = 0,
    *,
    negative: bool = False,
    function: Callable[..., Any] | None = None,
    own: Sequence[Own] = (),
) -> Iterator[Asked]:
    """The calls of a formula in every call shape, and longer ones; its own calls in the plain shape are not among them.

    Args:
        formula: its id.
        sets: its own calls, of the requirements that are judged.
        tier: how much.
        seed: of what is drawn.
        negative: whether strides may be negative, as NumPy's can.
        function: what gives the expected answers; by default the formula.
        own: the ``own_calls`` of the sets, where they are known.
    """
    reference = function or FORMULAS[formula].function
    if not (own := own or own_calls(sets, reference, seed)):
        return
    times = _STANDARD if tier == "standard" else 1
    yield from _in_shapes(formula, reference, own, times, seed, negative=negative)
    yield from _longer(formula, reference, own, times)
    if formula.endswith(_GRADIENTS):
        yield from _ordinary(formula, reference, own, times, seed)
    else:
        yield from _one_place(formula, reference, own, times, seed)
        yield from _every_lane(formula, reference, own, times, seed)
    yield from _in_company(formula, reference, own, times)


def own_calls(sets: Sequence[CallSet], function: Callable[..., Any], seed: int = 0) -> list[Own]:
    """The own calls with arrays that the formula answers, those of different kinds next to each other."""
    kinds: dict[str, list[Own]] = {}
    for arguments in (a for s in sets for a in s.build()):
        arrays = [a for a in _arrays(arguments) if a.size]
        if arrays and answer_of(function, arguments).kind == "returned":
            largest = max(arrays, key=lambda a: a.size)
            kinds.setdefault(_kind(arguments), []).append(Own(arguments, largest.ndim))
    draw = np.random.default_rng(seed)
    for found in kinds.values():  # the largest have the most values in them
        draw.shuffle(found)
        found.sort(key=lambda o: max(a.size for a in _arrays(o.arguments)) < 8)  # noqa: PLR2004
    return [
        found[turn]
        for turn in range(max(map(len, kinds.values()), default=0))
        for found in kinds.values()
        if turn < len(found)
    ]


def _in_shapes(
    formula: str, reference: Callable[..., Any], own: Sequence[Own], times: int, seed: int, *, negative: bool
) -> Iterator[Asked]:
    ranks = tuple(sorted({o.rank for o in own}))
    for design in range(times):
        taken = dict.fromkeys(ranks, design * len(own) // times)
        for shape in function_rows(ranks, negative=negative, seed=seed + design):
            if shape.mode == "requires_grad" and formula.endswith(_GRADIENTS):
                continue
            alike = [o for o in own if o.rank == shape.rank]
            for _ in range(min(_PER_ROW, len(alike))):
                taken[shape.rank or 0] += 1
                arguments = alike[taken[shape.rank or 0] % len(alike)].arguments
                yield shaped_call(formula, reference, arguments, shape)


def _longer(formula: str, reference: Callable[..., Any], own: Sequence[Own], times: int) -> Iterator[Asked]:
    """Longer calls, along the last axis and the first, of as many kinds as there are."""
    threads: tuple[Literal["one", "all"], ...] = ("one", "all")
    start = 0
    for size, count in SIZES.items():
        if size > LARGEST.get(formula, _MOST):
            return
        candidates = ((o, axis) for o in (*own[start:], *own[:start]) for axis in (-1, 0))
        tried = (
            grown_call(formula, reference, o.arguments, size, axis) for o, axis in islice(candidates, 4 * count * times)
        )
        for i, found in enumerate(islice((t for t in tried if t), count * times)):
            shape = replace(found.call.shape, threads=threads[i % 2])
            yield Asked(replace(found.call, shape=shape), found.expected)
        start = (start + count) % len(own)
    if LARGEST.get(formula, _MOST) < prod(_MATRIX):
        return
    matrices = (_matrix(formula, reference, o.arguments) for o in own if o.rank > 1)
    yield from islice((m for m in islice(matrices, 4 * _MATRICES * times) if m), _MATRICES * times)


def _ordinary(
    formula: str, reference: Callable[..., Any], own: Sequence[Own], times: int, seed: int
) -> Iterator[Asked]:
    """Gradients of ordinary numbers, of each kind of them and in each size; sums, where elements share a parameter."""
    taken = [o for o in own if _drawn_for(o.arguments, "normal", np.random.default_rng(seed))]
    taken = [o for o in taken if 0 < _summed(reference, o.arguments) <= _FEW] or taken
    draw = np.random.default_rng(seed)
    for turn, (size, kind) in enumerate(product([*SIZES] * times, ORDINARY)):
        candidates = islice((taken[(turn + i) % len(taken)] for i in range(len(taken))), _TRIED)
        ways = (longer for o in candidates for longer in islice(grown(o.arguments, size), 1))
        drawn = (given for longer in ways if (given := _drawn_for(longer, kind, draw)))
        if found := _answered(formula, reference, drawn, size, f"{kind} numbers, as they occur"):
            yield found


def _drawn_for(arguments: Mapping[str, Any], kind: str, draw: np.random.Generator) -> dict[str, Any]:
    """The call with numbers of a kind for its data, half of them as large as its own are; empty where it has none."""
    largest = max((a.size for a in _arrays(arguments)), default=0)
    drawn = {}
    for name, value in arguments.items():
        if name in _DATA and isinstance(value, np.ndarray) and value.size == largest:
            size = np.abs(value.astype(np.float64))
            usual = size[(size > 0) & np.isfinite(size)]
            typical = 1.0 if _DATA[name] or not usual.size else float(np.median(usual))
            drawn[name] = (ORDINARY[kind](draw, value.size) * typical).astype(value.dtype).reshape(value.shape)
    return {**arguments, **drawn} if drawn else {}


def _one_place(
    formula: str, reference: Callable[..., Any], own: Sequence[Own], times: int, seed: int
) -> Iterator[Asked]:
    """Long arrays whose greatest or least stands in one place: longer arrays of the same values have it everywhere.

    Whoever reduces a vector, and loses its tail or the border of a chunk, loses it. Nothing is asked of a formula that
    reduces nothing.
    """
    draw = np.random.default_rng(seed)
    taken = [o for o in own if _all_floats(o.arguments)]
    draw.shuffle(taken)
    summed = getattr(reference, "open", None) is not None  # an exact sum of each is slow
    misses, turn = 0, 0
    for size, count in ONE_PLACE.items():
        made = 0
        while taken and made < count * times and size <= (_SUMMED if summed else LARGEST.get(formula, _MOST)):
            o = taken[turn % len(taken)]
            axes = (-1, 0) if turn % 4 else (0, -1)
            longer = (given for axis in axes for given in grown(o.arguments, size, axis))
            found = _answered(
                formula, reference, (_in_one_place(g, turn, draw) for g in longer), size, "its greatest in one place"
            )
            turn += 1
            if found is not None and (made or _reduces(reference, found)):
                made += 1
                yield found
                continue
            taken.remove(o)
            misses += 1
            if misses > _TRIED:
                return


def _every_lane(
    formula: str, reference: Callable[..., Any], own: Sequence[Own], times: int, seed: int
) -> Iterator[Asked]:
    """Rows of blocks, each with its greatest in another lane: who reduces a block may lose the last, or one of each."""
    draw = np.random.default_rng([seed, 1])
    by: dict[int, list[Own]] = {}  # each size has as many turns as another
    for o in own if LARGEST.get(formula, _MOST) >= _LANES else ():
        if _all_floats(o.arguments):
            by.setdefault(_block(o.arguments), []).append(o)
    for some in by.values():
        draw.shuffle(some)
    for turn in range(_BLOCKED * times):
        for block, some in by.items():
            if block and turn >= _PER_BLOCK * times:
                continue
            o = some[turn % len(some)]
            size = block or BLOCKS[turn % len(BLOCKS)]
            peaked = (_peaks(g, size, turn, draw) for g in grown(o.arguments, _LANES))
            found = _answered(formula, reference, peaked, _LANES, "each block with its greatest in another lane")
            if found is not None and _reduces(reference, found):
                yield found


def _in_company(formula: str, reference: Callable[..., Any], own: Sequence[Own], times: int) -> Iterator[Asked]:
    """The own data in calls that somebody may look at as a whole, of as many kinds as there are."""
    taken = [o for o in own if _all_floats(o.arguments) and max(a.size for a in _arrays(o.arguments)) > _LEAST]
    for o in taken[: _KINDS * times]:
        name, value = next(iter(o.arguments.items()))
        for words, x in in_its_shape(value) if isinstance(value, np.ndarray) else ():
            if found := _answered(formula, reference, iter([{**o.arguments, name: x}]), value.size, f"calls {words}"):
                yield found


def _block(arguments: Mapping[str, Any]) -> int:
    """The elements of a block, where one number says so; else 0."""
    named = (n for key, n in arguments.items() if ("block" in key or "group" in key) and type(n) is int and n > 1)
    return next(named, 0)


def _peaks(arguments: Mapping[str, Any], size: int, turn: int, draw: np.random.Generator) -> dict[str, Any]:
    """The call with ordinary numbers for its data, and in each block one that is twice as large or more."""
    name, value = next(iter(arguments.items()))
    data = max(_arrays(value), key=lambda a: a.size)
    block = min(size, data.size)
    typical = _typical([data])
    drawn = draw.uniform(-typical, typical, data.size)
    number = np.arange(data.size // block)
    lanes = (number - number.size if turn % 2 else -1 - number) % block  # the last of the last block, or of the first
    drawn[number * block + lanes] = typical * (2 + number % 8 / 8) * (-1.0) ** (number + turn)
    changed = drawn.astype(data.dtype).reshape(data.shape)
    if not isinstance(value, tuple | list):
        return {**arguments, name: changed}
    return {**arguments, name: type(value)(changed if v is data else v for v in value)}


def _typical(arrays: Sequence[Array]) -> float:
    """The usual size of what stands in them, of which a multiple is finite in their dtype."""
    with np.errstate(all="ignore"):
        size = np.abs(np.concatenate([a.ravel().astype(np.float64) for a in arrays]))
        usual = size[(size > 0) & np.isfinite(size)]
        top = 2.0**14 if any(a.dtype == np.float16 for a in arrays) else 2.0**100
        return min(float(np.median(usual)), top) if usual.size else 1.0


def _all_floats(arguments: Mapping[str, Any]) -> bool:
    name, value = next(iter(arguments.items()))
    arrays = _arrays(value)
    return name in _REDUCED and bool(arrays) and all(a.size and a.dtype.name in _FLOATS for a in arrays)


def _in_one_place(arguments: Mapping[str, Any], turn: int, draw: np.random.Generator) -> dict[str, Any]:
    """The call with ordinary numbers for its data, and one that is twice as large, of either sign."""
    name, value = next(iter(arguments.items()))
    arrays = _arrays(value)
    typical = _typical(arrays)
    drawn = [np.asarray(draw.uniform(-typical, typical, a.shape)) for a in arrays]
    most = max(range(len(arrays)), key=lambda i: (arrays[i].size, (i + turn) % len(arrays)))
    n = arrays[most].size
    places = (n - 1, n // 2, n - n % 8 if n % 8 else n - 8, 1 << 16, int(draw.integers(n)), n - 2)
    drawn[most].flat[min(places[turn // 2 % len(places)], n - 1)] = 2 * typical * (-1) ** turn
    cast = iter([d.astype(a.dtype) for d, a in zip(drawn, arrays, strict=True)])
    return {**arguments, name: type(value)(cast) if isinstance(value, tuple | list) else next(cast)}


def _reduces(reference: Callable[..., Any], asked: Asked) -> bool:
    """Whether one element decides more of the answer than what stands in its place."""
    given = {name: _viewed(value) for name, value in asked.call.named.items()}
    name, value = next(iter(given.items()))
    data = max(a.size for a in _arrays(value))
    halved = [np.where(np.abs(a) == np.abs(a).max(), a / 2, a).astype(a.dtype) for a in _arrays(value)]
    cast = iter(halved)
    other = answer_of(reference, {**given, name: type(value)(cast) if isinstance(value, tuple | list) else next(cast)})
    pairs = zip(dict(leaves(asked.expected.value)).values(), dict(leaves(other.value)).values(), strict=False)
    for e, a in ((np.asarray(e), np.asarray(a)) for e, a in pairs):
        changed = e.size if e.shape != a.shape else int((e != a).sum())
        if changed > 1 or (changed and e.size < data):
            return True
    return False


def _viewed(value: Any) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(map(_viewed, value))
    return value.view() if isinstance(value, Strided) else value


def _matrix(formula: str, reference: Callable[..., Any], arguments: Arguments) -> Asked | None:
    """The call with arrays that are longer along both of their ends."""
    both = (wide for longer in grown(arguments, _MATRIX[1]) for wide in grown(longer, _MATRIX[0], 0))
    return _answered(formula, reference, both, prod(_MATRIX), "arrays longer along both ends")


def grown_call(formula: str, reference: Callable[..., Any], arguments: Arguments, size: int, axis: int) -> Asked | None:
    """The call with longer arrays for which the formula has an answer, if there is one."""
    return _answered(formula, reference, grown(arguments, size, axis), size, "longer arrays of the same values")


def _answered(
    formula: str, reference: Callable[..., Any], ways: Iterator[dict[str, Any]], size: int, reason: str
) -> Asked | None:
    """The first of these arguments to which the formula has an answer, laid out plainly."""
    for given in ways:
        if _summed(reference, given) > _PARAMETERS:
            continue
        if (found := answer_of(reference, given)).kind == "returned":
            laid = {name: _laid_out(value, CallShape(), "contiguous") for name, value in given.items()}
            return Asked(Call(formula, (), laid, CallShape(size=size), reason), found)
    return None


def _summed(reference: Callable[..., Any], given: Mapping[str, Any]) -> int:
    """How many parameters may have a sum: those of the arrays that are smaller than the largest."""
    if getattr(reference, "open", None) is None:
        return 0
    sizes = [a.size for a in _arrays(given)]
    return max((n for n in sizes if n < max(sizes)), default=0)


def grown(arguments: Arguments, size: int, axis: int = -1) -> Iterator[dict[str, Any]]:
    """Ways to give the call arrays of ``size`` elements along an axis: whichever the formula has an answer to.

    The largest array is repeated, and with it the others that are as long; rows mix, so that neighbours differ. Counts
    such as a block's that were that long grow too, or do not. Some formulas take whole blocks only: a multiple.
    """
    largest = max((a for a in _arrays(arguments) if a.ndim), key=lambda a: a.size, default=None)
    if largest is None or largest.shape[axis] < _LEAST or largest.size // largest.shape[axis] * size > _MOST:
        return
    n = largest.shape[axis]
    lengths = dict.fromkeys((size, -(-size // n) * n))
    for length, ranks, counts in product(lengths, ((largest.ndim,), range(9)), (True, False)):
        if length > n:
            yield {
                name: _counts(_longer_arrays(value, n, length, axis, ranks), n, length, axis, largest.ndim) if counts
                else _longer_arrays(value, n, length, axis, ranks)
                for name, value in arguments.items()
            }  # fmt: skip


def _longer_arrays(value: Any, n: int, length: int, axis: int, ranks: Sequence[int]) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_longer_arrays(v, n, length, axis, ranks) for v in value)
    if not isinstance(value, np.ndarray) or not value.ndim or value.ndim not in ranks or value.shape[axis] != n:
        return value
    turn, at = np.divmod(np.arange(length), n)
    rows = np.moveaxis(value, axis, 0)[(at + turn) % n]  # of another order in every turn
    if rows.ndim > 1 and rows.shape[1] > 1:
        across = (np.arange(rows.shape[1]) + turn[:, None]) % rows.shape[1]
        rows = rows[np.arange(length)[:, None], across]
    return np.ascontiguousarray(np.moveaxis(rows, 0, axis))


def _counts(value: Any, n: int, length: int, axis: int, rank: int) -> Any:
    """Tuples of counts, one for each dimension, in which the one of this axis was as long as the array."""
    whole = isinstance(value, tuple | list) and len(value) == rank and all(type(v) is int for v in value)
    if not whole or value[axis] != n:
        return value
    changed = list(value)
    changed[axis] = length
    return type(value)(changed)


def shaped_call(formula: str, reference: Callable[..., Any], arguments: Arguments, shape: CallShape) -> Asked:
    """One of the own calls in a shape; where its arrays have no such layout, in one that they have."""
    first = next(name for name, value in arguments.items() if any(a.size for a in _arrays(value)))
    layout = shape.layout if all(_has(a, shape.layout) for a in _arrays(arguments[first])) else "stepped"
    values, expected = arguments, answer_of(reference, arguments)
    if layout.startswith("expanded"):
        still = {**arguments, first: _still(arguments[first], 0 if layout.endswith("front") else -1)}
        found = answer_of(reference, still)
        if found.kind == "returned":
            values, expected = still, found
        else:
            layout = "stepped"
    given = {}
    for name, value in values.items():
        others = {"stepped": "stepped", "alike": layout}.get(shape.parameters, "contiguous")
        given[name] = _laid_out(value, shape, layout if name == first else others.replace("expanded", "stepped"))
    if shape.parameters == "in the input's storage":
        given = _together(given)
    largest = max(_arrays(values), key=lambda a: a.size)
    shape = replace(shape, layout=layout, size=largest.size, rank=largest.ndim)
    return Asked(Call(formula, (), given, shape, "the same values in this call shape"), expected)


def _has(a: Array, layout: str) -> bool:
    return (a.size >= _LEAST and possible({"rank": a.ndim, "layout": layout})) or layout == "contiguous"


def _still(value: Any, axis: int) -> Any:
    """With the first of every array's axis in all its places."""
    if isinstance(value, np.ndarray):
        return np.array(np.broadcast_to(np.take(value, [0], axis), value.shape))
    return type(value)(_still(v, axis) for v in value) if isinstance(value, tuple | list) else value


def _laid_out(value: Any, shape: CallShape, layout: str) -> Any:
    if isinstance(value, tuple | list):
        return type(value)(_laid_out(v, shape, layout) for v in value)
    if not isinstance(value, np.ndarray):
        return value
    return laid_out(value, layout if _has(value, layout) else "contiguous", shape.offset)


def _together(given: dict[str, Any]) -> dict[str, Any]:
    """The arrays among the arguments that have the dtype of the first, in the memory of one."""
    names = [name for name, value in given.items() if isinstance(value, Strided)]
    if len(names) < _LEAST:
        return given
    return {**given, **dict(zip(names, in_one_storage([given[n] for n in names]), strict=True))}


def _arrays(value: Any) -> list[Array]:
    match value:
        case np.ndarray():
            return [value]
        case Mapping():
            return [a for v in value.values() for a in _arrays(v)]
        case tuple() | list():
            return [a for v in value for a in _arrays(v)]
    return []


def _kind(value: Any) -> str:
    """What calls have in common: the arguments that are no arrays, the arrays' dtypes and ranks."""
    match value:
        case np.ndarray():
            return f"{value.dtype}{value.ndim}"
        case Mapping():
            return ", ".join(f"{k}={_kind(v)}" for k, v in value.items())
        case tuple() | list() if _arrays(value):
            return f"[{', '.join(map(_kind, value))}]"
    return repr(value)
