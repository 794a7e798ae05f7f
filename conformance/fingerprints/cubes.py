"""Sets of behaviours, and what a call decides of them.

A set of points is held as cubes: of each choice the values that it may have, every combination of them. A function
that is asked with a point notes which choices it reads, so what it gives is a tree: each node is a choice, each leaf an
answer. A call then keeps of a cube the leaves that give the answer seen, and the choices that were not read stay open.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from math import prod
from typing import Any

from halfeven.reference.behaviour import Behaviour

__all__ = ["Cube", "Tree", "everything", "holds", "merged", "points", "size"]

#: Of each choice the values that it may have.
Cube = Mapping[str, tuple[Any, ...]]


def everything(kind: type[Behaviour]) -> Cube:
    """All points of a behaviour."""
    return {name: tuple(words) for name, words in kind.choices().items()}


def size(cubes: Iterable[Cube]) -> int:
    """How many points there are; the cubes have none in common."""
    return sum(prod(map(len, cube.values())) for cube in cubes)


def holds(cube: Cube, point: Behaviour) -> bool:
    """Whether a point is in the cube."""
    return all(getattr(point, name) in values for name, values in cube.items())


def points(cubes: Iterable[Cube], kind: type[Behaviour]) -> Iterator[Behaviour]:
    """Every point, one after the other."""
    for cube in cubes:
        chosen: list[dict[str, Any]] = [{}]
        for name, values in cube.items():
            chosen = [{**c, name: v} for c in chosen for v in values]
        yield from (kind(**c) for c in chosen)


def merged(cubes: Sequence[Cube]) -> list[Cube]:
    """The same points in fewer cubes: those that differ in one choice alone become one."""
    if len(cubes) <= 1:
        return list(cubes)
    columns = {name: [cube[name] for cube in cubes] for name in cubes[0]}
    names = [name for name, column in columns.items() if column.count(column[0]) < len(column)]
    if not names:
        return [cubes[0]]
    known = _Numbered()
    found: list[tuple[int, ...]] = list(zip(*(known.numbers(columns[name]) for name in names), strict=True))
    while True:
        before = len(found)
        for place in range(len(names)):
            alike: dict[tuple[int, ...], list[int]] = {}
            for f in found:
                alike.setdefault(f[:place] + f[place + 1 :], []).append(f[place])
            if len(alike) < len(found):
                found = [(*rest[:place], known.union(some), *rest[place:]) for rest, some in alike.items()]
        if len(found) == before:
            return [{**cubes[0], **{n: known.values[i] for n, i in zip(names, f, strict=True)}} for f in found]


class _Numbered:
    """Each tuple of values by a number: many cubes have the same, and numbers are looked up faster."""

    def __init__(self) -> None:
        self.values: list[tuple[Hashable, ...]] = []
        self._known: dict[tuple[Hashable, ...], int] = {}

    def numbers(self, some: Sequence[tuple[Hashable, ...]]) -> list[int]:
        for values in set(some) - self._known.keys():
            self._known[values] = len(self.values)
            self.values.append(values)
        return [self._known[values] for values in some]

    def union(self, numbers: Sequence[int]) -> int:
        if len(numbers) == 1:
            return numbers[0]
        return self.numbers([tuple(sorted({v for i in numbers for v in self.values[i]}, key=repr))])[0]


@dataclass(eq=False)
class Tree:
    """What one call gives, by the choices that it reads.

    Attributes:
        kind: the behaviour.
        evaluate: the answer of a point; it gets points of a subclass, whose choices note that they are read.
        alike: of a choice what its values are told apart by in this call, where some of them are known to do the same.
        asked: how many points it was asked for.
    """

    kind: type[Behaviour]
    evaluate: Callable[[Behaviour], Any]
    alike: Mapping[str, Callable[[Any], Hashable]] = field(default_factory=dict)
    asked: int = 0
    _root: dict[str, Any] = field(default_factory=dict)

    def at(self, point: Behaviour) -> Any:
        """What the point gives."""
        return self._leaf(point)[1]

    def reads(self, point: Behaviour) -> tuple[str, ...]:
        """The choices that the call reads there, in their order."""
        return self._leaf(point)[0]

    def leaves(self, cube: Cube) -> Iterator[tuple[Cube, Any]]:
        """The parts of a cube, and what each gives."""
        waiting: list[tuple[dict[str, Any], int, Cube]] = [(self._root, 0, cube)]
        while waiting:
            node, depth, part = waiting.pop()
            while "leaf" not in node:
                if not node:
                    self._grow(node, depth, {name: values[0] for name, values in part.items()})
                    continue
                name, after = node["name"], node["next"]
                depth += 1
                values = part[name]
                if len(values) == 1:
                    node = after.setdefault(self._branch(name, values[0]), {})
                    continue
                first, *others = self._parted(name, values).items()
                for key, some in reversed(others):
                    waiting.append((after.setdefault(key, {}), depth, {**part, name: some}))
                part = {**part, name: first[1]}
                node = after.setdefault(first[0], {})
            yield part, node["leaf"]

    def _parted(self, name: str, values: tuple[Hashable, ...]) -> Mapping[Hashable, tuple[Hashable, ...]]:
        """The values that do the same, by what tells them from others."""
        if name not in self.alike:
            return {v: (v,) for v in values}
        found: dict[Hashable, tuple[Hashable, ...]] = {}
        for v in values:
            key = self.alike[name](v)
            found[key] = (*found.get(key, ()), v)
        return found

    def _grow(self, node: dict[str, Any], depth: int, chosen: Mapping[str, Hashable]) -> None:
        """Ask for what a point gives, from a node on that nothing is known of."""
        order: dict[str, Hashable] = {}
        answer = self.evaluate(_noting(self.kind, chosen, order))
        self.asked += 1
        for name in list(order)[depth:]:  # the same choices are read up to here
            node["name"], node["next"] = name, {}
            node = node["next"].setdefault(self._branch(name, order[name]), {})
        node["leaf"] = answer

    def _branch(self, name: str, value: Hashable) -> Hashable:
        return self.alike[name](value) if name in self.alike else value

    def _leaf(self, point: Behaviour) -> tuple[tuple[str, ...], Any]:
        """The choices read, and the answer."""
        node, read = self._root, list[str]()
        while "leaf" not in node:
            if not node:
                self._grow(node, len(read), {name: getattr(point, name) for name in self.kind.choices()})
                continue
            name = node["name"]
            read.append(name)
            node = node["next"].setdefault(self._branch(name, getattr(point, name)), {})
        return tuple(read), node["leaf"]


@cache
def _kind_that_notes(kind: Any) -> type[Behaviour]:
    names = frozenset(kind.choices())

    class Noting(kind):  # type: ignore[misc]
        def __getattribute__(self, name: str) -> Any:
            value = object.__getattribute__(self, name)
            if name in names:
                object.__getattribute__(self, "_order").setdefault(name, value)
            return value

    return Noting


def _noting(kind: type[Behaviour], chosen: Mapping[str, Hashable], order: dict[str, Hashable]) -> Behaviour:
    """A point that notes in ``order`` each choice that is looked at."""
    noting: Any = kind  # mypy does not take a class for hashable
    made: Behaviour = object.__new__(_kind_that_notes(noting))
    for name, value in (*chosen.items(), ("_order", order)):
        object.__setattr__(made, name, value)
    return made
