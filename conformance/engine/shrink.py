"""The smallest call that shows the same difference, found by asking: fewer elements, plain memory, simpler values."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from math import prod
from typing import Any

import numpy as np

from halfeven.conformance.engine.call import PLAIN, Call, leaves
from halfeven.conformance.engine.memory import Array, Strided, plain
from halfeven.conformance.engine.tries import Trial, Tries, alike, operation_of
from halfeven.reference.blocks import parameter_shape

__all__ = ["disturbed", "shrunk"]

# A vector kernel may treat the element in a full vector otherwise than the one left over.
_COPIES = (1, 64)
_PAIR = 2
_ENDS = 2  # of a process: each costs a new one
_FEW = 64  # elements of an argument that is cut one by one


def shrunk(t: Trial, tries: Tries) -> Trial:
    """The smallest trial like ``t`` that was found within the bounds of ``tries``.

    A call that ends its process is hardly shrunk, one that never returns not at all.
    """
    if t.actual.kind == "ended":
        return t if t.actual.message.startswith("timed out") else _among(t, tries, _alone(t), _ENDS)
    if t.before:
        return _fewer_before(t, tries)
    found = _among(t, tries, _alone(t)) if operation_of(t.call) else t
    if found is not t:
        return _among(found, tries, _simpler(found))
    while (smaller := _among(t, tries, _candidates(t))) is not t:
        t = smaller
    return t


def _among(t: Trial, tries: Tries, calls: Iterator[Call], most: int = 1 << 30) -> Trial:
    """The first of the calls that shows the same."""
    for _, call in zip(range(most), calls, strict=False):
        if tries.spent:
            break
        found = tries(call, t.before)
        if found is not None and alike(found, t):
            return found
    return t


def _fewer_before(t: Trial, tries: Tries) -> Trial:
    """The same with fewer calls before it."""
    size = len(t.before)
    while size and not tries.spent:
        size = -(-size // 2)
        for start in range(0, len(t.before), size):
            fewer = (*t.before[:start], *t.before[start + size :])
            found = tries(t.call, fewer)
            if found is not None and alike(found, t):
                t = found
                break
        else:
            if size == 1:
                break
            continue
        size = len(t.before)
    return t


def disturbed(t: Trial) -> tuple[Call, ...]:
    """Calls like it, first with all of its arguments changed, then one by one: whoever remembers answers otherwise."""
    changed = [(path, other) for path, a in reversed([*_arrays(t.call)][:3]) if (other := _disturbed(a)) is not None]
    every = t.call
    for path, other in changed:
        every = _changed(every, path, other)
    ones = [_changed(t.call, path, other) for path, other in changed]
    calls = [every, *ones] if len(ones) > 1 else ones
    return tuple(replace(call, shape=replace(call.shape, repeats=1)) for call in calls)


def _disturbed(a: Strided) -> Strided | None:
    """The array with other values in the same places; None of one that has none."""
    values = a.view()
    if values.dtype.kind == "b" or not values.size:
        return None
    other = replace(a, memory=a.memory.copy())
    changed = values + values.dtype.type(1) if values.dtype.kind in "iu" else values * values.dtype.type(2)
    other.view()[...] = np.flip(changed) if values.ndim else changed
    return other


def _candidates(t: Trial) -> Iterator[Call]:
    yield from _plainer(t.call)
    if not operation_of(t.call):
        yield from _cut_function(t)
        return
    if prod(t.call.positional[0].shape) > _FEW:  # one value in every place is short, however many there are
        yield from _simpler(t)
    yield from _beside_one(t)
    yield from _cut_operation(t)
    yield from _simpler(t)


def _beside_one(t: Trial) -> Iterator[Call]:
    """Of a call with one parameter the element shown and one other, of which the rest may be without a part."""
    x, *parameters = t.call.positional
    values = x.view().ravel()
    if values.size <= _PAIR or t.call.named.get("block_size") is not None or values.dtype.kind in "iu":
        return
    numbers = values.astype(np.float64)
    for peculiar in (np.isnan(numbers), np.isinf(numbers), numbers == 0):
        if peculiar.any() and not peculiar[t.at]:
            both = [t.at, int(np.argmax(peculiar))]
            for two in (both, both[::-1]):
                yield replace(t.call, positional=(plain(values[two]), *parameters))


def _alone(t: Trial) -> Iterator[Call]:
    """The element shown alone, then in a full vector: per tensor, or in one row or two."""
    if not operation_of(t.call) or t.call.positional[0].view().size == 0:
        return
    x, *parameters = (a.view() for a in t.call.positional)
    at = np.unravel_index(t.at, x.shape) if x.ndim else ()
    held = [_of_element(p, at, t.call.named.get("block_size")) for p in parameters]
    value = x[at]
    shape = replace(PLAIN, repeats=t.call.shape.repeats)
    blocks = "block_size" in t.call.named
    ways = (PLAIN,) if shape == PLAIN else (PLAIN, shape)
    for way, form, copies in product(ways, (None, 1, 2) if blocks else (None,), _COPIES):
        sizes = (copies,) if form is None else (form, copies)
        arrays = [
            np.full(sizes, value, x.dtype),
            *(np.full(() if form is None else (form, 1), v, v.dtype) for v in held),
        ]
        named = {**t.call.named, "block_size": None if form is None else (1, copies)} if blocks else t.call.named
        yield replace(t.call, positional=tuple(map(plain, arrays)), named=named, shape=way)


def _of_element(p: Array, at: Sequence[Any], block_size: Sequence[int] | None) -> Any:
    if block_size is None or not p.ndim:
        return p.ravel()[0]
    return p[tuple(int(i) // b for i, b in zip(at, block_size, strict=True))]


def _plainer(call: Call) -> Iterator[Call]:
    """The same values in a plainer call, all of it at once and then each way of calling alone."""
    values = _mapped(call, lambda a: plain(a.view()))
    unlike = any(isinstance(a, Strided) and not a.plain for _, a in _arrays(call))
    if call.shape != PLAIN and unlike:
        yield replace(values, shape=PLAIN)
    for name in ("mode", "threads", "repeats"):
        if getattr(call.shape, name) != getattr(PLAIN, name):
            yield replace(call, shape=replace(call.shape, **{name: getattr(PLAIN, name)}))
    if unlike:
        yield replace(values, shape=replace(call.shape, layout="contiguous", offset=0, parameters="fresh"))
        for path, a in _arrays(call):
            if not a.plain:
                yield _changed(call, path, plain(a.view()))
    cut = _mapped(call, _trimmed)
    if sum(a.memory.size for _, a in _arrays(cut)) < sum(a.memory.size for _, a in _arrays(call)):
        yield cut


def _trimmed(a: Strided) -> Strided:
    """The view over no more memory than it needs; it begins as far past a multiple of 64 bytes as before."""
    if a.plain or not prod(a.shape):
        return a
    low, high = a.reach
    step = max(64 // a.memory.itemsize, 1)
    start = low - low % step
    end = min(max(high + 1, a.offset + prod(a.shape)), a.memory.size)
    return Strided(a.memory[start:end], a.shape, a.strides, a.offset - start)


def _cut_operation(t: Trial) -> Iterator[Call]:
    """Fewer elements around the one shown, whole blocks of them; fewer dimensions; no blocks."""
    call, block_size = t.call, t.call.named.get("block_size")
    x, *parameters = call.positional
    if not prod(x.shape):
        return
    if block_size is not None and prod(parameters[0].shape) == 1:
        scalars = (plain(p.view().reshape(())) for p in parameters)
        yield replace(call, positional=(x, *scalars), named={**call.named, "block_size": None})
    if block_size is None and len(x.shape) > 1:
        yield replace(call, positional=(plain(x.view().reshape(-1)), *parameters))
    at = [int(i) for i in np.unravel_index(t.at, x.shape)]
    for d, (n, i) in enumerate(zip(x.shape, at, strict=True)):
        block = n if block_size is None else block_size[d]
        for low, high in _parts(n, i, 1 if block >= n else block):
            sizes = [*x.shape[:d], high - low, *x.shape[d + 1 :]]
            cut = [_sliced(x, d, low, high)]
            named = call.named
            if block_size is not None:
                whole = block >= n
                cut += [p if whole else _sliced(p, d, low // block, -(-high // block)) for p in parameters]
                blocks = (*block_size[:d], min(block, high - low), *block_size[d + 1 :])
                if cut[1].shape != parameter_shape(tuple(sizes), blocks):
                    continue
                named = {**call.named, "block_size": blocks}
            yield replace(call, positional=(cut[0], *(cut[1:] or parameters)), named=named)


def _parts(n: int, i: int, step: int) -> Iterator[tuple[int, int]]:
    """Ranges of ``n`` indices that hold ``i``, the shortest first; they begin at a multiple of ``step``."""
    own = i - i % step
    seen = {(0, n)}
    for length in (1, *(2**k for k in range(1, n.bit_length())), n - step, n - 1):
        size = -(-length // step) * step
        for low, high in ((own, own + size), (max(own + step - size, 0), own + step), (0, size), (n - size, n)):
            part = max(low - low % step, 0), min(high, n)
            if part[0] <= i < part[1] and part not in seen:
                seen.add(part)
                yield part


def _sliced(a: Strided, d: int, low: int, high: int) -> Strided:
    shape = (*a.shape[:d], high - low, *a.shape[d + 1 :])
    if not prod(shape):
        return plain(np.empty(shape, a.memory.dtype))
    found = Strided(a.memory, shape, a.strides, a.offset + low * a.strides[d])
    return plain(found.view()) if a.plain else _trimmed(found)


def _simpler(t: Trial) -> Iterator[Call]:
    """Simpler values: a zero point of 0; one scale; the element shown in every place."""
    x, *parameters = t.call.positional
    if len(parameters) > 1 and parameters[1].view().any():
        yield replace(t.call, positional=(x, parameters[0], _filled(parameters[1], 0)))
    for i, p in enumerate(parameters, 1):
        first = p.view().ravel()[:1]
        if prod(p.shape) > 1 and (p.view() != first).any():
            yield _changed(t.call, (i,), _filled(p, first[0]))
    if prod(x.shape) > 1:
        value = x.view().ravel()[t.at]
        if (x.view() != value).any():
            yield _changed(t.call, (0,), _filled(x, value))


def _filled(a: Strided, value: Any) -> Strided:
    memory = a.memory.copy()
    found = replace(a, memory=memory)
    if prod(a.shape):
        found.view()[...] = value
    return found


def _cut_function(t: Trial) -> Iterator[Call]:
    """Arguments left out; lists made shorter; arrays with fewer indices, those of one length together."""
    for name in t.call.named:
        yield replace(t.call, named={k: v for k, v in t.call.named.items() if k != name})
    for name, value in t.call.named.items():
        if isinstance(value, tuple | list) and len(value) > 1:
            for kept in (value[:1], value[-1:], value[: len(value) // 2], value[1:], value[:-1]):
                yield replace(t.call, named={**t.call.named, name: kept})
    lengths = sorted({n for _, a in _arrays(t.call) for n in a.shape if n > 1}, reverse=True)
    for n in lengths:
        for low, high in dict.fromkeys([*_shown(t, n), *_ranges(n)]):
            cut = _mapped(t.call, partial(_all_cut, n=n, low=low, high=high))
            sized = {name: _sized(value, n, high - low) for name, value in cut.named.items()}
            if any(value is not cut.named[name] for name, value in sized.items()):
                yield replace(cut, named=sized)
            yield cut
            for path, a in _arrays(t.call):
                for d in (d for d, size in enumerate(a.shape) if size == n):
                    yield _changed(t.call, path, _sliced(a, d, low, high))


def _shown(t: Trial, n: int) -> Iterator[tuple[int, int]]:
    """Along the dimensions of ``n`` indices the one of the element shown."""
    found = dict(leaves(t.actual.value)).get(t.difference.leaf)
    if isinstance(found, np.ndarray) and t.difference.comparison is not None and t.at < found.size:
        for size, i in zip(found.shape, np.unravel_index(t.at, found.shape), strict=True):
            if size == n:
                yield int(i), int(i) + 1


def _sized(value: Any, n: int, size: int) -> Any:
    """A size of blocks, or a shape, that is as long as arrays that are cut is so afterwards."""
    if (
        isinstance(value, tuple | list)
        and n in (ints := [v for v in value if type(v) is int])
        and len(ints) == len(value)
    ):
        return type(value)(size if v == n else v for v in value)
    return value


def _all_cut(a: Strided, n: int, low: int, high: int) -> Strided:
    for d, size in enumerate(a.shape):
        a = _sliced(a, d, low, high) if size == n else a
    return a


def _ranges(n: int) -> list[tuple[int, int]]:
    found = [(0, 1), (n - 1, n), (0, n // 2), (n // 2, n), (0, 3 * n // 4), (n // 4, n)]
    found += [(i, i + 1) for i in range(1, n - 1)] if n <= _FEW else []
    found += [(0, n - 1), (1, n)]
    return [f for f in dict.fromkeys(found) if 0 < f[1] - f[0] < n]


def _arrays(call: Call) -> Iterator[tuple[tuple[Any, ...], Strided]]:
    """The arrays of a call, each with the way to it."""

    def within(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Strided]]:
        match value:
            case Strided():
                yield path, value
            case tuple() | list():
                for i, inner in enumerate(value):
                    yield from within(inner, (*path, i))
            case Mapping():
                for key, inner in value.items():
                    yield from within(inner, (*path, key))

    yield from within(call.positional, ())
    yield from within(call.named, ())


def _changed(call: Call, path: tuple[Any, ...], new: Strided) -> Call:
    """The call with another array at the end of the way; positional ones begin with a number."""

    def put(value: Any, way: tuple[Any, ...]) -> Any:
        if not way:
            return new
        if isinstance(value, Mapping):
            return {k: put(v, way[1:]) if k == way[0] else v for k, v in value.items()}
        return type(value)(put(v, way[1:]) if i == way[0] else v for i, v in enumerate(value))

    if isinstance(path[0], int):
        return replace(call, positional=put(call.positional, path))
    return replace(call, named=put(call.named, path))


def _mapped(call: Call, change: Callable[[Strided], Strided]) -> Call:
    def each(value: Any) -> Any:
        match value:
            case Strided():
                return change(value)
            case tuple() | list():
                return type(value)(map(each, value))
            case Mapping():
                return {k: each(v) for k, v in value.items()}
        return value

    return replace(call, positional=each(call.positional), named=each(call.named))
