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
    names = tuple(cubes[0])
    found = [tuple(cube[name] for name in names) for cube in cubes]
    while True:
        before = len(found)
        for place in range(len(names)):
            if all(f[place] == found[0][place] for f in found):
                continue
            alike: dict[tuple[Any, ...], list[tuple[Hashable, ...]]] = {}
            for f in found:
                alike.setdefault(f[:place] + f[place + 1 :], []).append(f[place])
            found = [(*rest[:place], _union(values), *rest[place:]) for rest, values in alike.items()]
        if len(found) == before:
            return [dict(zip(names, f, strict=True)) for f in found]


def _union(values: Sequence[tuple[Hashable, ...]]) -> tuple[Hashable, ...]:
    return values[0] if len(values) == 1 else tuple(sorted({v for some in values for v in some}, key=repr))


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
        return self._leaf({name: getattr(point, name) for name in self.kind.choices()})[1]

    def reads(self, point: Behaviour) -> tuple[str, ...]:
        """The choices that the call reads there, in their order."""
        return self._leaf({name: getattr(point, name) for name in self.kind.choices()})[0]

    def leaves(self, cube: Cube) -> Iterator[tuple[Cube, Any]]:
        """The parts of a cube, and what each gives."""
        waiting: list[Cube] = [cube]
        while waiting:
            part = waiting.pop()
            read, answer = self._leaf({name: values[0] for name, values in part.items()})
            rest = dict(part)
            for name in read:
                if len(rest[name]) > 1:
                    same, others = self._parted(name, rest[name])
                    if others:
                        waiting.append({**rest, name: others})
                    rest[name] = same
            yield rest, answer

    def _parted(self, name: str, values: tuple[Hashable, ...]) -> tuple[tuple[Hashable, ...], tuple[Hashable, ...]]:
        """The values that do the same as the first, and the others."""
        if name not in self.alike:
            return values[:1], values[1:]
        keys = [self.alike[name](v) for v in values]
        return tuple(v for v, k in zip(values, keys, strict=True) if k == keys[0]), tuple(
            v for v, k in zip(values, keys, strict=True) if k != keys[0]
        )

    def _branch(self, name: str, value: Hashable) -> Hashable:
        return self.alike[name](value) if name in self.alike else value

    def _leaf(self, chosen: Mapping[str, Hashable]) -> tuple[tuple[str, ...], Any]:
        """The choices read, and the answer: known, or asked for now."""
        node = self._root
        read: list[str] = []
        while "leaf" not in node:
            if not node:
                order: dict[str, Hashable] = {}
                answer = self.evaluate(_noting(self.kind, chosen, order))
                self.asked += 1
                for name in list(order)[len(read) :]:  # the same choices are read up to here
                    node["name"], node["next"] = name, {}
                    node = node["next"].setdefault(self._branch(name, order[name]), {})
                node["leaf"] = answer
                return tuple(order), answer
            read.append(node["name"])
            node = node["next"].setdefault(self._branch(node["name"], chosen[node["name"]]), {})
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
