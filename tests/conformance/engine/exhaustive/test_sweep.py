"""One wrong input among all is found, whatever it is about; and what was judged is not asked again."""

import json
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.conformance.backends.offer import offer
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.engine.call import Answer
from halfeven.conformance.engine.conclude import concluded
from halfeven.conformance.engine.demonstrate import demonstrated
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.exhaustive import inputs, lemmas, pairs, patterns, scales, sweep
from halfeven.conformance.engine.exhaustive.journal import FOLDER, Progress, clear, progress
from halfeven.conformance.engine.exhaustive.parameters import scale_of
from halfeven.conformance.engine.exhaustive.patterns import layout
from halfeven.conformance.engine.exhaustive.sweep import Chunk
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.report.model import Result
from halfeven.conformance.workers.inside import Inside
from halfeven.conformance.workers.record import Recorder
from halfeven.reference import Grid

Fn = Callable[..., Any]
INT8 = Grid(-128, 127)
CHUNK = 1 << 17
TENTH = 0x3DCCCCCD


def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    return (torch.round(x / scale) + zero_point).clamp(qmin, qmax).to(torch.int8)


def fake_quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    return ((torch.round(x / scale) + zero_point).clamp(qmin, qmax) - zero_point) * scale


def bits(x: Any) -> Any:
    return x.view(torch.int32)


def item_of(
    fn: Fn, check: str, operation: Any = "quantize", dtype: str = "float32", shard: str = ""
) -> tuple[Item, Inside]:
    worker = Inside(Backend("tested", "onnx", {operation: fn}, dtypes=(dtype,), grids=(INT8,)))
    [item] = [i for i in plan(worker.offer, "exhaustive", shard=shard) if i.check == check]
    return item, worker


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of sixteen chunks below one half, and two sets of parameters."""
    monkeypatch.setattr(inputs, "_CHUNK", CHUNK)
    monkeypatch.setattr(inputs, "sets", lambda _: [(0.1, 0), (1 / 3, 3)])
    whole = inputs._Line.numbers

    def some(line: Any) -> Iterator[Chunk]:
        chunks = [c for c in whole(line) if 0x3EE00000 <= int(c.name.rpartition(" ")[2], 16) < 0x3F000000]
        assert len(chunks) == 16
        yield from chunks

    monkeypatch.setattr(inputs._Line, "numbers", some)


def concluded_alone(item: Item, worker: Any, **given: Any) -> Result:
    """As ``run`` does, but without a probe before it."""
    found = answered(item, worker, gate=False, **given)
    [result], _ = concluded([found.result], [found.sample] if found.sample else [], {item.offer.name: worker})
    return result


def all_inputs(fn: Fn, operation: Any = "quantize", **given: Any) -> Result:
    item, worker = item_of(fn, "all-inputs", operation)
    return concluded_alone(item, worker, **given)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(("fn", "operation"), [(quantize, "quantize"), (fake_quantize, "fake_quantize")])
def test_the_right_one_is_exact(fn: Fn, operation: str) -> None:
    result = all_inputs(fn, operation)
    assert (result.outcome, result.points, result.differing) == ("exact", 32 * CHUNK, 0)
    assert "all inputs for scale 0.100000001, zero_point 0: 2,097,152 inputs, 0 differ" in result.detail


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("operation", ["quantize", "fake_quantize"])
@pytest.mark.parametrize("pattern", [0x3EE00000, 0x3EFFFFFF, 0x3EE7FFFF, 0x3EF12345])
def test_one_wrong_pattern_is_found_and_shown(operation: str, pattern: int) -> None:
    right = quantize if operation == "quantize" else fake_quantize

    def wrong(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        found = right(x, scale, zero_point, **grid)
        return torch.where((bits(x) == pattern) & (zero_point == 3), found + 1, found).to(found.dtype)

    result = all_inputs(wrong, operation)
    assert (result.outcome, result.points, result.differing) == ("differs", 32 * CHUNK, 1)
    assert result.witness is not None
    assert result.witness.x.startswith(f"{pattern:#010x}")
    assert result.witness.scale.startswith("0x3eaaaaab")
    [shown] = demonstrated([result])
    assert shown.witness is not None
    assert shown.witness.reproduced, shown.witness.unshown


@pytest.mark.usefixtures("small")
def test_a_known_behaviour_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    scales = np.random.default_rng(1).uniform(0.004, 0.01, 6)
    monkeypatch.setattr(inputs, "sets", lambda _: [(float(s), 0) for s in scales])

    def reciprocal(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        return (torch.round(x * (1 / scale)) + zero_point).clamp(qmin, qmax).to(torch.int8)

    result = all_inputs(reciprocal)
    assert 0 < result.differing < 100
    assert result.outcome in {"explained", "differs"}
    assert "multiplies by 1/s" in result.cause


@pytest.mark.usefixtures("small")
def test_what_is_everywhere_wrong_is_counted() -> None:
    def noise(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        return quantize(x, scale, zero_point, **grid) + (bits(x) % 2).to(torch.int8)

    assert all_inputs(noise).differing == 16 * CHUNK


@pytest.mark.usefixtures("small")
def test_faults_of_a_sweep_are_told() -> None:
    def in_place(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        return quantize(x.clamp_(-0.45, 0.45), scale, zero_point, **grid)

    def unwritten(x: Any, *_: Any, **grid: Any) -> Any:
        found = quantize(x, *_, **grid)
        given = torch.empty_like(found)
        given[: len(found) // 2] = found[: len(found) // 2]
        return given

    def refuses(*_: Any, **__: Any) -> Any:
        msg = "no such grid"
        raise Unsupported(msg)

    def raises(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    assert "mutated input" in all_inputs(in_place).cause
    assert "wrong shape" in all_inputs(lambda *a, **g: quantize(*a, **g)[:-1]).cause
    assert "wrong dtype" in all_inputs(lambda *a, **g: fake_quantize(*a, **g).double(), "fake_quantize").cause
    assert all_inputs(unwritten).outcome == "differs"
    assert all_inputs(raises).outcome == "crashed"
    assert (all_inputs(refuses).outcome, all_inputs(refuses).detail) == ("not run", "no such grid")


def test_only_a_worker_that_sweeps_is_asked() -> None:
    item, worker = item_of(quantize, "all-inputs")
    recorder = Recorder(offer(worker.backend))
    result = concluded_alone(item, recorder)
    assert result.outcome == "not run"
    assert "only of a backend in Python" in result.detail
    assert recorder.calls == []


@pytest.mark.usefixtures("small")
def test_what_was_judged_is_not_asked_again(tmp_path: Path) -> None:
    made: list[int] = []
    stop = 11

    def counts(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        if x.numel() == CHUNK:  # else some inputs are asked about once more, since others differ
            made.append(int(bits(x)[0]))
        if len(made) == stop:
            raise KeyboardInterrupt
        found = quantize(x, scale, zero_point, **grid)
        return torch.where(bits(x) == 0x3EF12345, found + 1, found).to(found.dtype)

    with pytest.raises(KeyboardInterrupt):
        all_inputs(counts, folder=tmp_path)
    [path] = (tmp_path / FOLDER).glob("*.jsonl")
    assert len(path.read_text().splitlines()) == stop
    assert progress(tmp_path) == Progress((stop - 1) * CHUNK, 2 << 32)
    with path.open("a") as file:  # a process that was killed while it wrote
        file.write('{"chunk": "scale 0.3')
    stop = -1
    made.clear()
    result = all_inputs(counts, folder=tmp_path)
    assert result.differing == 2
    assert result.points == 32 * CHUNK
    assert len(made) == 32 - 10
    made.clear()
    again = all_inputs(counts, folder=tmp_path)
    assert (again.differing, again.points) == (2, 32 * CHUNK)
    assert made == []
    path.write_text(json.dumps({"another": "run"}) + "\n" + path.read_text().partition("\n")[2])
    made.clear()
    all_inputs(counts, folder=tmp_path)
    assert len(made) == 32
    clear(tmp_path)
    assert [*(tmp_path / FOLDER).iterdir()] == []


@pytest.mark.usefixtures("small")
def test_a_sweep_that_was_killed_goes_on(tmp_path: Path) -> None:
    made: list[int] = []
    here = os.getpid()

    def one_wrong(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        if x.numel() == CHUNK:
            made.append(int(bits(x)[0]))
        if len(made) == 7 and os.getpid() != here:
            os.kill(os.getpid(), signal.SIGKILL)
        found = quantize(x, scale, zero_point, **grid)
        return torch.where((bits(x) == 0x3EE12345) & (zero_point == 0), found + 1, found).to(found.dtype)

    process = multiprocessing.get_context("fork").Process(
        target=all_inputs, args=(one_wrong,), kwargs={"folder": tmp_path}
    )
    process.start()
    process.join()
    assert process.exitcode == -signal.SIGKILL
    result = all_inputs(one_wrong, folder=tmp_path)
    assert len(made) == 32 - 6
    assert (result.outcome, result.differing, result.points) == ("differs", 1, 32 * CHUNK)  # found before the kill
    assert result.witness is not None
    assert result.witness.x.startswith("0x3ee12345")


def test_every_nan() -> None:
    def one_is_not(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        found = quantize(torch.nan_to_num(x, 0.0), scale, zero_point, **grid)
        return torch.where(bits(x) == 0x7FABCDEF, 5, found).to(found.dtype)

    item, worker = item_of(one_is_not, "every-nan")
    result = concluded_alone(item, worker)
    assert result.outcome == "implementation-defined"
    assert "every NaN gives 0, 5 (scale 0.100000001, zero_point 0)" in result.detail
    assert result.points == 4 * 2 * (2**23 - 1)


PAIRED = {"float16": (0x3A12, 0x0455), "bfloat16": (0x3D12, 0x3D15)}


def one_pair(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
    found = quantize(x, scale, zero_point, **grid)
    number, by = PAIRED["bfloat16" if x.dtype == torch.bfloat16 else "float16"]
    hit = (x.view(torch.int16) == number) & (scale.view(torch.int16) == by) & (zero_point == 3)
    return torch.where(hit, found - 1, found).to(found.dtype)


def few_lines(dtype: str, monkeypatch: pytest.MonkeyPatch) -> int:
    """Take few scales of the 16-bit dtype, that of the wrong pair among them; how many."""
    count, scales = 16, pairs.line_scales
    first = PAIRED[dtype][1] // count * count - layout(dtype).normal
    monkeypatch.setattr(
        pairs, "line_scales", lambda d, *, subnormal: scales(d, subnormal=subnormal)[first : first + count]
    )
    return count


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_all_pairs(dtype: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(pairs.line_scales(dtype, subnormal=False)) == {"float16": 30 << 10, "bfloat16": 254 << 7}[dtype]
    lines, of = few_lines(dtype, monkeypatch), layout(dtype)
    judged = 2 * lines * (of.total - 2 * (of.sign - of.infinity - 1) - 2 * (of.normal - 1))
    item, worker = item_of(quantize, "all-pairs", dtype=dtype)
    result = concluded_alone(item, worker)
    assert (result.outcome, result.points) == ("exact", judged)
    item, worker = item_of(one_pair, "all-pairs", dtype=dtype)
    result = concluded_alone(item, worker)
    assert (result.outcome, result.differing, result.points) == ("differs", 1, judged)
    assert result.witness is not None
    shown = int(result.witness.x[:6], 16), int(result.witness.scale[:6], 16)
    assert (shown, result.witness.zero) == (PAIRED[dtype], "3")


def test_one_significand() -> None:
    bad = 0x3C123457
    place = (bad & 0x7FFFFF) % (1 << 17) + 1

    def wrong(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        off = bits(scale.reshape(1))[0] == bad
        return quantize(torch.nextafter(x, x + 1) if off else x, scale, zero_point, **grid)

    assert np.float32(scale_of(np.array(0x923457))).view(np.uint32) == bad
    results = []
    for part in (place, place + 1):
        item, worker = item_of(wrong, "every-scale", shard=f"{part}/{1 << 17}")
        results.append(concluded_alone(item, worker))
    found, other = results
    assert (found.outcome, found.differing, found.points) == ("differs", 255, 64 * 510)
    assert found.witness is not None
    assert found.witness.scale.startswith(f"{bad:#010x}")
    assert (other.outcome, other.differing) == ("exact", 0)
    assert f"64 of 8,388,608 significands of the scale (shard {place + 1}/131072)" in other.detail


@pytest.mark.parametrize("place", [0, 301, 509])
def test_one_input_of_one_significand(place: int) -> None:
    bad, shard = 0x3C123457, f"{(0x123457 % (1 << 17)) + 1}/{1 << 17}"
    item, worker = item_of(quantize, "every-scale", shard=shard)
    deciding = scales.deciding(Evidence(item, worker).setting, np.array([bad], np.uint32).view(np.float32), 0)[0]
    pattern = int(deciding.view(np.int32)[0, place])

    def wrong(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        found = quantize(x, scale, zero_point, **grid)
        hit = (bits(x) == pattern) & (bits(scale.reshape(1)) == bad)
        return torch.where(hit, 7, found).to(found.dtype)

    item, worker = item_of(wrong, "every-scale", shard=shard)
    result = concluded_alone(item, worker)
    assert (result.outcome, result.differing, result.points) == ("differs", 1, 64 * 510)
    assert result.witness is not None
    assert result.witness.x.startswith(f"{pattern & 0xFFFFFFFF:#010x}")


def test_the_lemmas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lemmas, "_SCALES", 6)
    monkeypatch.setattr(lemmas, "_INPUTS", 1 << 14)

    def falls(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        return quantize(torch.where(x.abs() > 1e30, -x, x), scale, zero_point, **grid)

    def by_size(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
        return quantize(torch.nextafter(x, 2 * x) if scale < 2.0**-60 else x, scale, zero_point, **grid)

    said = {}
    for fn in (quantize, falls, by_size):
        for check in ("monotone", "powers-of-two"):
            item, worker = item_of(fn, check)
            result = concluded_alone(item, worker)
            said[fn.__name__, check] = result.outcome, result.cause
    assert said["quantize", "monotone"] == said["quantize", "powers-of-two"] == ("exact", "")
    assert said["falls", "monotone"] == ("differs", "a larger input gets a lower code")
    assert said["falls", "powers-of-two"][0] == "exact"
    assert said["by_size", "monotone"][0] == "exact"
    assert said["by_size", "powers-of-two"] == ("differs", "x * 2^k with s * 2^k gets another code than x with s")


def test_the_plan_has_all_inputs_in_its_own_tier_alone() -> None:
    made = offer(Backend("t", "onnx", {"quantize": quantize}, dtypes=("float32", "float16"), grids=(INT8,)))
    names = {tier: {i.id for i in plan(made, tier)} for tier in ("quick", "exhaustive")}  # type: ignore[arg-type]
    assert names["quick"] < names["exhaustive"]
    assert {n.removeprefix("onnx/quantize/") for n in names["exhaustive"] - names["quick"]} == {
        *(
            f"nearest-code/int8/float32/per-tensor/{c}"
            for c in ("all-inputs", "every-scale", "monotone", "powers-of-two")
        ),
        "nearest-code/int8/float16/per-tensor/all-pairs",
        "nan/int8/float32/per-tensor/every-nan",
        "subnormals/int8/float16/per-tensor/subnormal-pairs",
    }


def test_rows_are_asked_where_a_backend_has_no_tensors() -> None:
    def rows(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int, block_size: Any) -> Any:
        assert block_size == (1, x.shape[1])
        assert scale.shape == (x.shape[0], 1)
        return quantize(x, scale, zero_point, qmin=qmin, qmax=qmax)

    worker = Inside(Backend("rows", "onnx", {"quantize": rows}, ("channel",), grids=(INT8,)))
    [item] = [i for i in plan(worker.offer, "exhaustive", shard="1/131072") if i.check == "every-scale"]
    assert concluded_alone(item, worker).outcome == "exact"
    e = Evidence(item, worker)
    line = inputs._Line(e, np.asarray(0.1, np.float32), 3)
    chunk = next(line.numbers())
    [answer] = worker.answers([chunk.call()])
    assert (answer.kind, answer.faults) == ("returned", ())


def one_input(x: Any, scale: Any, zero_point: Any, **grid: Any) -> Any:
    """Wrong at one input of those of ``small``, at one of the inputs that decide, and at one pair of 16 bits."""
    if x.dtype != torch.float32:
        return one_pair(x, scale, zero_point, **grid)
    found = quantize(x, scale, zero_point, **grid)
    of_all = (bits(x) == 0x3EF12345) & (zero_point == 3)
    of_scale = (bits(x) == FIRST) & (bits(scale.reshape(1)) == SIGNIFICANT)
    return torch.where(of_all | of_scale, found + 1, found).to(found.dtype)


SIGNIFICANT = 0x3C000000  # 2^-7, the first significand of any first shard
FIRST = int(np.nextafter(np.float32(0.5 / 128), np.float32(1)).view(np.int32))  # the lowest input of code 1


def of_itself(differing: Fn) -> Fn:
    return lambda _, actual, *, codes: differing(actual, actual, codes=codes)


def but_one(numbers: Fn) -> Fn:
    return lambda line: (c for c in numbers(line) if not c.name.endswith("0x3ef00000"))


def lower_alone(deciding: Fn) -> Fn:
    return lambda *given: [np.repeat(a[:, ::2], 2, axis=1) for a in deciding(*given)]


def few_judged(without: Fn) -> Fn:
    return lambda of, total, sign, _, lines: without(of, total, sign, 0x3E00, lines)


#: What breaks a check: of whom which function, and what is made of it.
BROKEN: dict[str, tuple[str, Any, str, Callable[[Fn], Any]]] = {
    "a vector is taken for one value": (
        "all-inputs",
        patterns.Encoder,
        "_constant",
        lambda _: staticmethod(lambda a, _: bool(a[0] == a[-1])),
    ),
    "a call is left out": ("all-inputs", inputs._Line, "numbers", but_one),
    "inputs are compared with themselves": ("all-inputs", sweep, "differing", of_itself),
    "of two inputs the lower is asked twice": ("every-scale", scales, "deciding", lower_alone),
    "boundaries are compared with themselves": ("every-scale", sweep, "differing", of_itself),
    "a number is taken for subnormal": ("all-pairs", pairs, "_without_subnormals", few_judged),
    "pairs are compared with themselves": ("all-pairs", sweep, "differing", of_itself),
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_check_misses_what_the_whole_one_finds(broken: str, monkeypatch: pytest.MonkeyPatch) -> None:
    check, owner, name, breaks = BROKEN[broken]
    dtype = "bfloat16" if check == "all-pairs" else "float32"
    if dtype == "bfloat16":
        few_lines(dtype, monkeypatch)
    item, worker = item_of(one_input, check, dtype=dtype, shard=f"1/{1 << 17}")
    result = concluded_alone(item, worker)
    assert (result.outcome, result.differing) == ("differs", 1)
    monkeypatch.setattr(owner, name, breaks(getattr(owner, name)))
    result = concluded_alone(item, worker)
    assert (result.outcome, result.differing) == ("exact", 0)


def test_the_time_above_is_all_but_the_functions_own() -> None:
    def answer(process: int) -> Answer:
        return Answer("returned", {"spent": np.array([5.0, 2.0, process])})

    assert sweep._above(answer(os.getpid()), 8.0) == 3.0  # asked in this process: its time has the function's in it
    assert sweep._above(answer(os.getpid() + 1), 1.0) == 3.0
