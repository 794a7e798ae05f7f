"""Sets of points: merged, listed, and kept by what a call gives; a choice that is not read stays open."""

from dataclasses import dataclass
from itertools import product

from halfeven.conformance.fingerprints.cubes import Tree, everything, holds, merged, points, size
from halfeven.reference.behaviour import Behaviour, choice


@dataclass(frozen=True)
class Toy(Behaviour):
    a: str = choice({"x": "does x", "y": "does y", "z": "does z"})
    b: str = choice({"p": "does p", "q": "does q"})
    c: str = choice({"0": "does 0", "1": "does 1"})


ALL = everything(Toy)


def test_everything_is_every_point() -> None:
    assert size([ALL]) == 12 == len(set(points([ALL], Toy)))
    assert all(holds(ALL, p) for p in points([ALL], Toy))


def test_merging_keeps_the_points() -> None:
    single = [{"a": (a,), "b": (b,), "c": (c,)} for a, b, c in product("xyz", "pq", "01")]
    assert size(merged(single)) == 12
    assert len(merged(single)) == 1
    some = single[:5]
    assert set(points(merged(some), Toy)) == set(points(some, Toy))
    assert len(merged(some)) < 5
    assert merged([]) == []


def test_a_call_keeps_what_gives_its_answer_and_leaves_open_what_it_does_not_read() -> None:
    tree = Tree(Toy, lambda p: p.b if p.a == "x" else p.a)
    found = [(part, answer) for part, answer in tree.leaves(ALL)]
    assert {answer for _, answer in found} == {"p", "q", "y", "z"}
    assert sum(size([part]) for part, _ in found) == 12
    assert tree.asked == 4  # not 12
    for part, answer in found:
        assert all((p.b if p.a == "x" else p.a) == answer for p in points([part], Toy))
    assert tree.reads(Toy()) == ("a", "b")
    assert tree.reads(Toy(a="y")) == ("a",)
    assert tree.asked == 4


def test_values_that_are_alike_are_asked_once() -> None:
    tree = Tree(Toy, lambda p: "x" if p.a == "x" else "other", {"a": lambda value: value == "x"})
    assert len(list(tree.leaves(ALL))) == 2 == tree.asked
