"""The benchmark's machinery is honest: what it refuses, how it counts, what it keeps."""

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(autouse=True)
def modules(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.syspath_prepend(str(FOLDER))
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def the(name: str) -> ModuleType:
    return importlib.import_module(name)


def implementation(maker: Callable[[Any], Any], **given: Any) -> Any:
    return the("kernels.implementations").Implementation("tried", "torch", {"quantize": maker}, **given)


def measured(*implementations: Any) -> dict[str, Any]:
    cases, measure = the("kernels.cases"), the("kernels.measure")
    table = cases.Table("quantize", "float32", "tensor")
    budget = measure.Budget(seconds=0.0, least=2, most=2)
    return the("kernels.results").group(table, cases.COLUMNS[0], implementations, budget, lambda _: None)


class Clock:
    """Stands still but for what the calls add."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def takes(self, seconds: Callable[[], float]) -> Callable[[], None]:
        def call() -> None:
            self.now += seconds()

        return call


def codes(case: Any) -> torch.Tensor:
    c = torch.round(case.x / case.scale) + case.zero_point
    return c.clamp(-128, 127).to(torch.int8)


def test_ratios_are_of_the_same_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that slows down from round to round changes no ratio."""
    measure, results, clock, speed = the("kernels.measure"), the("kernels.results"), Clock(), [1.0]
    found = measure.measure(
        {"tried": clock.takes(lambda: 2 * speed[0])},
        clock.takes(lambda: speed[0]),
        measure.Budget(0, 5, 5),
        lambda _: speed.__setitem__(0, 3 * speed[0]),
        clock,
    )
    assert found.limit == [1.0, 3.0, 9.0, 27.0, 81.0]
    monkeypatch.setattr(results, "measure", lambda *_: found)
    assert measured(implementation(lambda case: lambda: codes(case)))["rows"][0]["ratio"] == [2.0, 2.0, 2.0]


def test_a_slow_call_sits_out_the_later_rounds() -> None:
    measure, clock = the("kernels.measure"), Clock()
    calls = {"slow": clock.takes(lambda: 21.0), "fast": clock.takes(lambda: 20.0)}
    found = measure.measure(calls, clock.takes(lambda: 1.0), measure.Budget(0, 9, 9), str, clock)
    assert {name: len(times) for name, times in found.calls.items()} == {"slow": 5, "fast": 9}
    assert len(found.limit) == 9


def test_ctrl_c_keeps_the_complete_rounds() -> None:
    measure, clock, calls = the("kernels.measure"), Clock(), iter(range(1000))

    def call() -> None:
        clock.now += 1.0
        if next(calls) == 5:  # two to warm up, one in each round
            raise KeyboardInterrupt

    found = measure.measure({"a": call}, clock.takes(lambda: 1.0), measure.Budget(0, 9, 9), str, clock)
    assert found.interrupted
    assert [len(found.calls["a"]), len(found.limit)] == [3, 3]


def test_the_copy_is_no_row() -> None:
    found = measured(implementation(lambda case: lambda: codes(case)))
    assert [row["name"] for row in found["rows"]] == ["tried"]
    assert found["copy"]["seconds"][1] > 0
    assert found["rows"][0]["differences"] == [0]
    assert found["rows"][0]["rounds"] == 2


@pytest.mark.parametrize(
    ("maker", "reason"),
    [
        (lambda case: lambda: case.out, "steps off"),  # computes nothing
        (lambda case: lambda: codes(case)[:4], "shapes"),
        (lambda case: lambda: codes(case) // 2, "steps off"),
        (lambda case: lambda: codes(case).float() + 0.5, "expected"),
        (lambda _: lambda: None, "1 tensors expected"),
        (lambda _: 1 / 0, "ZeroDivisionError"),
        (lambda _: lambda: open("/nowhere/at/all").read(), "'all'"),  # noqa: PTH123, SIM115
    ],
)
def test_what_computes_something_else_is_not_measured(maker: Any, reason: str) -> None:
    found = measured(implementation(maker))
    assert found["rows"] == []
    assert [one["name"] for one in found["not_run"]] == ["tried"]
    assert reason in found["not_run"][0]["reason"]


def one_off(case: Any) -> Callable[[], torch.Tensor]:
    wrong = codes(case)
    wrong[0, 0] -= wrong[0, 0].sign()
    return lambda: wrong


def test_a_peer_that_is_one_code_off_is_counted() -> None:
    assert measured(implementation(one_off))["rows"][0]["differences"] == [1]


@pytest.mark.parametrize("role", ["kernels", "fallback"])
def test_ours_must_be_exact(role: str) -> None:
    with pytest.raises(the("kernels.results").NotExact, match=r"\[1\] elements differ"):
        measured(implementation(one_off, role=role))


@pytest.mark.parametrize("operation", ["fake quantize", "dequantize", "backward, x and parameters", "aminmax", "amax"])
@pytest.mark.parametrize("layout", ["tensor", "axis 0", "axis -1", "blocks of 32"])
def test_the_fallback_is_exact_in_every_table(operation: str, layout: str) -> None:
    cases, measure = the("kernels.cases"), the("kernels.measure")
    table = cases.Table(operation, "float32", layout)
    ours = [i for i in the("kernels.peers").IMPLEMENTATIONS if i.role == "fallback"]
    budget = measure.Budget(seconds=0.0, least=1, most=1)
    found = the("kernels.results").group(table, cases.COLUMNS[0], ours, budget, lambda _: None)
    assert [any(row["differences"]) for row in found["rows"]] == [False]
    assert found["not_run"] == []


def run(out: Path, *arguments: str) -> dict[str, Any]:
    chosen = ("--tables", "^amax, float32, per (tensor|axis 0)", "--columns", "call", "--implementations", "torch.abs")
    assert the("speed").main([*chosen, "--rounds", "2", "--seconds", "0", "--out", str(out), *arguments]) == 0
    found: dict[str, Any] = json.loads((out / "results.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.parametrize("change", [{"interrupted": True}, {"others": 0.5}])
def test_a_run_is_resumed(tmp_path: Path, change: dict[str, Any]) -> None:
    """What is complete and undisturbed is kept as it is."""
    first = run(tmp_path)
    assert len(first["groups"]) == 2
    changed = first | {"groups": [first["groups"][0], first["groups"][1] | change]}
    (tmp_path / "results.json").write_text(json.dumps(changed), encoding="utf-8")
    assert ("†" if "interrupted" in change else "‡") in the("kernels.report").text(changed, tmp_path)
    again = run(tmp_path, "--resume")
    assert again["groups"][0] == first["groups"][0]
    assert again["groups"][1] != changed["groups"][1]
    assert len(again["groups"]) == 2


def test_another_machine_is_not_resumed(tmp_path: Path) -> None:
    content = run(tmp_path)
    content["machine"]["versions"]["torch"] = "0.1"
    (tmp_path / "results.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(AssertionError, match="2 == 0"):
        run(tmp_path, "--resume")


def test_the_report_names_no_machine_and_does_without_matplotlib(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    content = run(tmp_path)
    page = (tmp_path / "README.md").read_text(encoding="utf-8")
    assert "No plots: matplotlib is not installed" in page
    assert "torch.abs, torch.amax" in page
    assert list(tmp_path.glob("*.svg")) == []
    named = {importlib.import_module("socket").gethostname(), str(tmp_path), str(FOLDER)}
    assert [name for name in named if name in page or name in json.dumps(content)] == []
