"""Mutants are seen by a call, or stand in the ledger with the reason why not: a seeded sample of both."""

import importlib.util
import os
import random
import re
import sys
from pathlib import Path

import pytest

from mutants import asked, asked_tools, kill
from mutants.asked import Row
from mutants.generator import Mutant, mutants
from mutants.kill import Asked, TimedOut, seconds_for
from mutants.ledger import EVERY, LEDGER, gone, is_new, read, reason
from mutants.run import Verdict, examine
from mutants.suite import every_mutant, verdicts

SEED = 20
SEEN, SURVIVING = 200, 25


def test_a_sample_is_seen_and_what_survives_is_in_the_ledger() -> None:
    drawn = random.Random(SEED)
    every = [m for part in every_mutant().values() for m in part]
    unknown = [m for m in every if reason(m, LEDGER) is None]
    rows = set(drawn.sample(sorted(LEDGER), SURVIVING))
    known = [m for m in every if rows & {m.key, (m.home, EVERY)}]
    sample = {*drawn.sample(unknown, SEEN), *known}
    found = verdicts(lambda m: m in sample, os.cpu_count() or 1, lambda _m, _v: None)
    assert len(found) == len(sample) > SEEN
    assert [(m.module, m.owner, m.change) for m, v in found.items() if is_new(m, v, LEDGER)] == []
    assert gone(list(found.items()), {row: LEDGER[row] for row in rows}) == set()


def test_every_row_of_the_ledger_is_a_mutant_that_there_is() -> None:
    every = [m for part in every_mutant().values() for m in part]
    assert len(every) > 9_000
    assert LEDGER.keys() - {m.key for m in every} - {(m.home, EVERY) for m in every} == set()


def test_what_is_asked_of_the_shared_tools_is_spelt_as_they_spell_it() -> None:
    rows = [row for kind in (*asked_tools.KINDS, asked.fused, asked.widths) for row in kind()]
    assert [row.name for row in rows if "keyword argument" in row.ask().message] == []


PLANTED = """
TABLE = {"a": 1, "b": 2}
TWICE = {k: 2 * v for k, v in TABLE.items()}

def least(a, b):
    if a > b:
        return b
    return a

def known(name, fallback=3):
    if name == "never asked":
        raise KeyError(name)
    return TWICE.get(name, fallback)

def count(n):
    while n > 0:
        n -= 1
    return n

def idle(n):
    return n + 1
"""


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> object:
    path = tmp_path / "planted.py"
    path.write_text(PLANTED)
    spec = importlib.util.spec_from_file_location("halfeven.planted", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "halfeven.planted", module)
    monkeypatch.setattr(kill, "_SECONDS", 0.2)
    kill.forget()
    yield module
    kill.forget()


def test_what_no_call_tells_survives_and_the_rest_is_seen(planted: object, tmp_path: Path) -> None:
    rows = [Row("least", planted.least, {"a": a, "b": b}) for a, b in ((1, 2), (2, 1))]
    rows += [Row("known", planted.known, {"name": name}) for name in ("a", "b", "c")]
    rows += [Row("count", planted.count, {"n": n}) for n in (0, 3)]
    made = mutants("halfeven.planted", PLANTED)
    told: list[tuple[Mutant, Verdict]] = []
    found = examine(Asked(rows, str(tmp_path)), made, 2, lambda m, v: told.append((m, v)))
    assert dict(told) == found
    assert set(found) == set(made)
    left = {m.key: v for m, v in found.items() if v != "seen"}
    assert left == {
        ("planted.least", "a > b -> a >= b"): "survives",  # of two equal numbers either is the least
        ("planted.known", "if name == 'never asked': -> if False:"): "survives",  # the hole
        ("planted.idle", "n + 1 -> n - 1"): "not run",
        ("planted.idle", "n + 1 -> n + 2"): "not run",
    }
    changes = {m.change for m, v in found.items() if v == "seen"}
    assert {"n -= 1 -> n += 1", "n -= 1 -> pass", "2 * v -> 2 / v"} <= changes  # a loop without an end; a table's table
    assert planted.TWICE == {"a": 2, "b": 4}
    assert planted.least(2, 1) == 1
    assert {m.key for m, v in found.items() if is_new(m, v, {("planted.idle", EVERY): "reason"})} == left.keys() - {
        key for key in left if key[0] == "planted.idle"
    }
    assert gone(list(found.items()), {("planted.idle", EVERY): "x", ("planted.least", EVERY): "y"}) == {
        ("planted.least", EVERY)
    }
    everything = {m.key: "reason" for m in made}
    assert {m.key for m, v in found.items() if is_new(m, v, {})} == set(left)
    assert gone(list(found.items()), everything) == everything.keys() - set(left)


def test_what_does_not_end_is_ended() -> None:
    with pytest.raises(TimedOut), seconds_for(0.05):
        all(True for _ in iter(int, 1))


def test_mutants_say_what_they_change_and_leave_words_alone() -> None:
    text = '''
def f(x: int = 3, *, axis=-1):
    """Words."""
    if x < 0 or not x:
        msg = f"x={x} is not accepted: give 1"
        raise ValueError(msg)
    with np.errstate(all="ignore"):
        return np.rint(x.astype(np.float32)[axis]) + 1
'''
    assert [m.change for m in mutants("m", text)] == [
        "axis=-1 -> axis=-2",
        "x=3 -> x=4",
        "if x < 0 or not x: -> if False:",
        "x < 0 or not x -> not x",
        "x < 0 or not x -> x < 0",
        "x < 0 -> x <= 0",
        "x < 0 -> x < 1",
        "not x -> x",
        "np.rint(x.astype(np.float32)[axis]) + 1 -> np.rint(x.astype(np.float32)[axis]) - 1",
        "np.rint(x.astype(np.float32)[axis]) -> x.astype(np.float32)[axis]",
        "np.rint(x.astype(np.float32)[axis]) -> np.floor(x.astype(np.float32)[axis])",
        "x.astype(np.float32) -> x",
        "x.astype(np.float32) -> x.astype(np.float64)",
        "np.rint(x.astype(np.float32)[axis]) + 1 -> np.rint(x.astype(np.float32)[axis]) + 2",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[a]\nf = ["1 -> 2"]', "a: no reason is not accepted"),
        ('[a]\nreason = "x"\nf = ["1 -> 2"]\n[b]\nreason = "y"\nf = ["1 -> 2"]', "stands twice: under 'x' too"),
    ],
)
def test_a_ledger_without_reasons_is_refused(text: str, said: str) -> None:
    with pytest.raises(ValueError, match=re.escape(said)):
        read(text)
