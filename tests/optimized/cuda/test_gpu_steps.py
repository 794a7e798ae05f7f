"""``make gpu`` where there is no GPU: how its steps end, and its checks on a driver that stands in for a GPU's."""

import importlib
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
from ptx.driver import StandIn
from ptx.emulate import WHY_NOT

from halfeven.optimized.kernels.cuda import nvrtc, programs

ROOT = Path(__file__).parents[3]
PATHS = [str(ROOT / name) for name in ("tools", "tests", "benchmarks")]
_WHY_NOT = nvrtc.why_missing() or WHY_NOT
with_compilers = pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}")
without_gpu = pytest.mark.skipif(torch.cuda.is_available(), reason="not run: here is a GPU")
OnCuda = Callable[..., Any]
_MACHINE = {"gpu": "a"}


@pytest.fixture
def the(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    for path in PATHS:
        monkeypatch.syspath_prepend(path)
    return importlib.import_module


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


class Step:
    """Runs parts, each of which is a name and what becomes of it, and notes what was run."""

    def __init__(self, steps: ModuleType, folder: Path) -> None:
        self.steps, self.path, self.clock = steps, folder / "out/step.jsonl", Clock()
        self.said: list[str] = []
        self.ran: list[str] = []

    def __call__(self, parts: dict[str, Any], machine: dict[str, Any] = _MACHINE) -> int:
        self.said, self.ran = [], []
        made = [self.steps.Part(n.strip("?"), self._running(n, found), n.endswith("?")) for n, found in parts.items()]
        status: int = self.steps.run("step", made, self.path, machine, 10, self.said.append, clock=self.clock)
        return status

    def _running(self, name: str, found: Any) -> Callable[[Any], tuple[str, Any]]:
        def run(left: Callable[[], float]) -> tuple[str, Any]:
            self.ran.append(name)
            if isinstance(found, BaseException):
                raise found
            if isinstance(found, float):
                self.clock.now += found
                if left() <= 0:
                    raise self.steps.CutError
                return "", None
            return found, 3

        return run


@pytest.fixture
def step(the: Callable[[str], ModuleType], tmp_path: Path) -> Step:
    return Step(the("gpu.steps"), tmp_path)


def test_a_step_has_a_status_for_each_way_it_ends(step: Step) -> None:
    missing = step.steps.NotRunError("no such thing")
    assert step({"a": "", "b": 1.0}) == 0
    assert step.said[-1] == "step: passed (2 passed)"
    assert step({"a": "", "c": missing}) == 77
    assert step.said == ["step, a: passed", "step, c: NOT RUN: no such thing", step.said[-1]]
    assert step.said[-1] == "step: NOT RUN (1 passed, 1 NOT RUN); this is no pass"
    assert step({"a": "", "d": 11.0, "c": missing}) == 75
    assert step({"a": "", "e": "3 differ", "c": missing}) == 1
    assert step({"f": ValueError("bad\nthing"), "g": ""}) == 1
    assert (step.ran, step.said[0]) == (["f", "g"], "step, f: failed: ValueError: bad thing")


def test_what_a_machine_may_lack_lets_a_step_pass_but_not_alone(step: Step) -> None:
    missing = step.steps.NotRunError("one GPU alone")
    assert step({"a": "", "b?": missing}) == 0
    assert step.said[-1] == "step: passed (1 passed, 1 NOT RUN)"
    assert step({"b?": missing}) == 77
    assert step({}) == 77
    assert step({"a": "", "c?": "it differs"}) == 1


def test_a_step_goes_on_where_it_was_cut(step: Step) -> None:
    assert step({"a": "", "b": 11.0, "c": ""}) == 75
    assert step.ran == ["a", "b"], "nothing begins when the time is over"
    assert step({"a": "", "b": 1.0, "c": ""}) == 0
    assert step.ran == ["b", "c"]
    assert [(line["part"], line["outcome"]) for line in step.steps.read(step.path)] == [(p, "passed") for p in "abc"]
    assert step({"a": "", "b": 1.0, "c": ""}, {"gpu": "another"}) == 0
    assert step.ran == ["a", "b", "c"], "what another machine has shown says nothing of this one"


def test_what_failed_stays_failed_and_what_was_not_run_is_run(step: Step) -> None:
    step({"a": "3 differ", "b": step.steps.NotRunError("not yet")})
    assert (step({"a": "3 differ", "b": ""}), step.ran) == (1, ["b"])


def test_an_interruption_keeps_what_has_ended(step: Step) -> None:
    with pytest.raises(KeyboardInterrupt):
        step({"a": "", "b": KeyboardInterrupt()})
    assert (step({"a": "", "b": ""}), step.ran) == (0, ["b"])


@without_gpu
@pytest.mark.parametrize("name", ["correct", "fast", "libraries"])
def test_without_a_gpu_nothing_is_passed(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "gpu", name, str(tmp_path / "out")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(PATHS)}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert (ran.returncode, ran.stderr) == (77, "")
    assert ran.stdout.startswith(f"{name}: NOT RUN: there is no GPU that torch can use (torch ")
    assert "passed" not in ran.stdout
    assert not (tmp_path / "out").exists(), "results of an earlier day stay"


def test_the_page(step: Step, the: Callable[[str], ModuleType], tmp_path: Path) -> None:
    step({"a|b": "3 differ", "c": ""})
    step.path.rename(step.path.with_name("correct.jsonl"))
    the("gpu.page").write(tmp_path / "out")
    text = (tmp_path / "out/README.md").read_text(encoding="utf-8")
    assert "| a\\|b | failed | 0.0 | 3 differ |\n| c | passed | 0.0 | 3 |" in text
    assert text.count("Not run.") == 2


class Emulated:
    """As if the memory of the CPU were a GPU's."""

    def __init__(self, on_cuda: OnCuda, take: Callable[[torch.Tensor], torch.Tensor]) -> None:
        self.on_cuda, self.take = on_cuda, take

    def call(self, name: str, *given: Any) -> Any:
        return self.on_cuda(name, *given, out=given[-1] if name.endswith("_out") else None)


@pytest.fixture
def emulated(the: Callable[[str], ModuleType], on_cuda: OnCuda, pretended: Any) -> Emulated:
    return Emulated(on_cuda, the("gpu.places").CPU.take)


def found(parity: ModuleType, place: Any, names: str) -> dict[str, tuple[str, int]]:
    return {name: run(lambda: 1.0) for name, run in parity.calls(place) if name in names.split("; ")}


_SOME = "quantize-float32-int8; quantize_dequantize-float32-float32-(-8, 7)-backward; amax and aminmax, BF16"


@with_compilers
def test_the_same_calls_are_the_same(the: Callable[[str], ModuleType], emulated: Emulated, stand_in: StandIn) -> None:
    came = found(the("gpu.parity"), emulated, _SOME)
    assert len(came) == 3
    assert {words for words, _ in came.values()} == {""}
    assert all(n > 30 for _, n in came.values())
    assert stand_in.launched
    assert stand_in.faults == {}


@with_compilers
@pytest.mark.parametrize(
    ("program", "file", "old", "new"),
    [
        (programs.forward("Quantize", "F32", "F32", "I8"), "cuda/device.h", "? -to[k] :", "? to[k] :"),
        (
            programs.backward("QuantizeDequantize", "F32", "F32", "F32"),
            "cuda/backward.cu",
            "ds += other.ds;",
            "ds = other.ds;",
        ),
        (programs.reduce("BF16", magnitudes=False), "core/keys.h", "return a < b ? a : b;", "return a < b ? b : a;"),
    ],
    ids=["forward", "backward", "reduce"],
)
def test_a_wrong_kernel_is_found(
    program: programs.Program, file: str, old: str, new: str,
    the: Callable[[str], ModuleType], emulated: Emulated, mutated: Callable[..., None],
) -> None:  # fmt: skip
    mutated(program, file, old, new)
    names = dict(zip(("cuda/forward.cu", "cuda/backward.cu", "cuda/reduce.cu"), _SOME.split("; "), strict=True))
    ((words, n),) = found(the("gpu.parity"), emulated, names[program.name]).values()
    assert f"of {n} calls differ: " in words


def test_what_is_written_beside_the_result_is_found(the: Callable[[str], ModuleType]) -> None:
    """By torch operations, on the CPU: the place is another one, the comparison the same."""
    places, parity = the("gpu.places"), the("gpu.parity")
    assert {words for words, _ in found(parity, places.Gpu("cpu", torch_path=True), _SOME).values()} == {""}

    class Beside(places.Gpu):  # type: ignore[misc, name-defined]
        def call(self, name: str, *given: Any) -> Any:
            came = super().call(name, *given)
            if name.endswith("_out"):
                places.memory(given[-1])[-1:] = 1
            return came

    words, n = found(parity, Beside("cpu", torch_path=True), "quantize-float32-int8")["quantize-float32-int8"]
    assert f"of {n} calls differ: " in words


_ONE = (2**23 + 2**22, 2**23 + 2**22 + 2**14)  # as bits, subnormals times scales: all codes are 0
_TIES = (0x3F000000, 0x3F000000 + 2**14)


@with_compilers
@pytest.mark.parametrize("i", range(4))
def test_a_sweep_of_some_inputs(i: int, the: Callable[[str], ModuleType], emulated: Emulated) -> None:
    parity = the("gpu.parity")
    for bits in (_ONE, _TIES):
        came = parity.sweep(emulated, parity.SWEEPS[i], lambda: 1.0, bits=range(*bits), at_once=5000)
        assert came == ("", 2**14)
    with pytest.raises(the("gpu.steps").CutError):
        parity.sweep(emulated, parity.SWEEPS[i], lambda: 0.0)


def test_a_sweep_finds_one_input(the: Callable[[str], ModuleType]) -> None:
    places, parity = the("gpu.places"), the("gpu.parity")

    class OneOff(places.Gpu):  # type: ignore[misc, name-defined]
        def call(self, name: str, x: torch.Tensor, *given: Any) -> torch.Tensor:
            found: torch.Tensor = super().call(name, x, *given)
            return torch.where(x == 0.5, found + 1, found)

    came = parity.sweep(OneOff("cpu"), parity.SWEEPS[0], lambda: 1.0, bits=range(*_TIES), at_once=2**13)
    assert came == ("1 of 16,384 differ", 2**14)


@without_gpu
def test_a_run_on_a_device_that_is_not_there(the: Callable[[str], ModuleType], tmp_path: Path) -> None:
    suite, steps = the("gpu.suite"), the("gpu.steps")
    part = {p.name: p for p in suite.libraries(tmp_path, "cuda")}["torch.float8"]
    assert steps.run("step", [part], tmp_path / "step.jsonl", _MACHINE, 60, lambda _: None) == 77
    (line,) = steps.read(tmp_path / "step.jsonl")
    assert "nothing ran" in line["words"]


def test_a_run_is_cut_and_resumed(the: Callable[[str], ModuleType], tmp_path: Path) -> None:
    """On the CPU, where there is such a device: of a backend that differs, as if it were ours."""
    suite, steps = the("gpu.suite"), the("gpu.steps")
    given = ("torch.float8", "cpu", tmp_path / "out")
    planned = tmp_path / "out/planned.json"

    def once_planned() -> float:
        for _ in range(2400):
            if planned.exists():
                break
            time.sleep(0.05)
        return 0.1

    with pytest.raises(steps.CutError):
        suite._run(*given, once_planned, conforms=True)
    assert planned.exists()
    words, came = suite._run(*given, lambda: 300.0, conforms=True)
    assert (words, came["explained"] > 0) == ("it differs: see its report", True)
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["report.json", "report.md"]


def test_that_a_backend_differs_is_a_failure_of_ours_alone(the: Callable[[str], ModuleType], tmp_path: Path) -> None:
    suite = the("gpu.suite")
    assert [p.run.keywords for p in suite.ours(tmp_path, "cuda")] == [{"conforms": True}] * 3
    assert {p.name: p.run.keywords for p in suite.libraries(tmp_path, "cuda")}["torch.float8"] == {}


def measured(ratio: float, call: bool = False, **table: str) -> dict[str, Any]:
    """A group as the benchmark has it."""
    ours = {"name": "halfeven, out=", "role": "kernels", "ratio": [ratio] * 3, "seconds": [1e-5 * ratio] * 3}
    peer = {"name": "torch", "role": "peer", "ratio": [2.0] * 3, "seconds": [1.0] * 3}
    rows = [row | {"gigabytes_per_second": 1.0, "differences": [0], "rounds": 9} for row in (ours, peer)]
    given = {"operation": "quantize", "dtype": "float32", "layout": "tensor"} | table
    column = {"size": "call" if call else "1 GiB"}
    return {"table": given, "column": column, "rows": rows, "bytes": 5, "copy": {}, "not_run": []}


def test_targets_of_a_gpu(the: Callable[[str], ModuleType]) -> None:
    speed = the("gpu.speed")
    assert speed._wanting(measured(1.1)) == ""
    assert speed._wanting(measured(1.2)) == "0.83 of the copy's bandwidth, 0.9 are wanted"
    assert speed._wanting(measured(1.2, operation="aminmax")) == ""
    assert speed._wanting(measured(0.99, call=True)) == ""
    assert speed._wanting(measured(1.5, call=True)) == "a call takes 15.0 µs, at most 10 are wanted"
    assert speed._wanting(measured(1.0) | {"rows": []}).startswith("the kernels were not measured")
    assert speed.row(measured(1.2))["peer"] == ["ahead", "torch"]


def test_speed_is_measured_beside_a_copy(the: Callable[[str], ModuleType], monkeypatch: pytest.MonkeyPatch) -> None:
    """On the CPU: what runs there is compared at one shape, and measured at another."""
    speed, cases, steps = the("gpu.speed"), the("kernels.cases"), the("gpu.steps")
    monkeypatch.setattr(speed, "clock", the("time").perf_counter)
    monkeypatch.setattr(speed, "_CHECKED", (16, 64))
    monkeypatch.setattr(speed, "IMPLEMENTATIONS", the("kernels.ours").OURS)
    table, column = cases.TABLES[0], cases.Column("1 GiB", (256, 1024), 1)
    _, came = speed._measured(table, column, "cpu", lambda: "", 0.0, lambda: 1.0)
    assert [r["name"] for r in came["rows"]] == ["halfeven, out=", "halfeven", "halfeven without a compiler, out="]
    assert came["bytes"] == 256 * 1024 * 5
    assert all(r["rounds"] and r["differences"] == [0] for r in came["rows"])
    with pytest.raises(steps.NotRunError, match="no kernels"):
        speed._measured(table, column, "cpu", lambda: "no kernels", 0.0, lambda: 1.0)


def test_every_table_has_a_part(the: Callable[[str], ModuleType]) -> None:
    names = [p.name for p in the("gpu.speed").parts("cuda", lambda: "")]
    assert len(names) == len(set(names)) > 40
    assert "quantize, bfloat16, blocks of 32" in names
    assert "aminmax, float32, per tensor, a call" in names
