"""The launcher, with a driver that runs the emulation: what is launched, where, and with which bits as a result."""

import itertools
import threading
from collections.abc import Callable
from dataclasses import replace
from math import prod
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from ptx.driver import Pretended, StandIn, differing
from ptx.emulate import WHY_NOT
from ptx.launch_cases import KINDS, Call, Kind, calls

from halfeven.optimized.kernels.cuda import driver, forward, launcher, layout, nvrtc

_WHY_NOT = nvrtc.why_missing() or WHY_NOT
pytestmark = [
    pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}"),
    pytest.mark.usefixtures("pretended"),
]
OnCuda = Callable[..., Any]


def on_cpu(call: Call) -> torch.Tensor:
    """What the kernels of the CPU write, all of the memory around the result with it."""
    x = call.x.clone() if call.out is call.x else call.x
    like = torch.empty(0, dtype=call.out.dtype).set_(call.out.untyped_storage().clone())
    out = like.as_strided(call.out.shape, call.out.stride(), call.out.storage_offset())
    x = out if call.out is call.x else x
    getattr(torch.ops.halfeven, f"{call.kind.operator}_out").default(x, *call.given[1:-1], out)
    return like.as_strided((out.untyped_storage().nbytes() // out.element_size(),), (1,), 0)


def launched_like_the_cpu(call: Call, stand_in: StandIn, on_cuda: OnCuda) -> str:
    """What is wrong with a call, "" for nothing."""
    wanted = on_cpu(call)
    stand_in.faults.clear()
    on_cuda(f"{call.kind.operator}_out", *call.given, out=call.out)
    found = call.out.as_strided((wanted.numel(),), (1,), 0)
    wrong = differing(found, wanted)
    return "; ".join(
        [f"{wrong} of {call.x.numel()} differ"] * bool(wrong) + [f"{n} {f}" for f, n in stand_in.faults.items()]
    )


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_same_bits_as_on_the_cpu(kind: Kind, stand_in: StandIn, on_cuda: OnCuda) -> None:
    wrong = {name: found for name, call in calls(kind) if (found := launched_like_the_cpu(call, stand_in, on_cuda))}
    assert wrong == {}
    assert {launched.kernel for launched in stand_in.launched} == {"rows", "columns", "strided"}
    assert stand_in.library.stand_in_depth() == 0


@pytest.mark.parametrize("kind", [KINDS[0], KINDS[2], KINDS[5]], ids=str)
def test_results_that_are_made(kind: Kind, on_cuda: OnCuda) -> None:
    """The operators without ``out``."""
    for name, call in itertools.islice(calls(kind), 0, None, 9):
        given = list(call.given[:-1])
        if kind.operator != "quantize_dequantize":
            given.insert(-2 if kind.operator == "dequantize" else -1, kind.out)
        wanted = getattr(torch.ops.halfeven, kind.operator).default(*given)
        found = on_cuda(kind.operator, *given)
        assert (name, differing(found, wanted), found.stride()) == (name, 0, wanted.stride())


def test_arithmetic_in_the_dtype_asked_for(on_cuda: OnCuda) -> None:
    q, scale = torch.arange(-128, 128, dtype=torch.int8), torch.tensor(0.1)
    for compute in (torch.bfloat16, torch.float64):
        asked = (q, scale, None, None, torch.float16, compute, False)
        assert differing(on_cuda("dequantize", *asked), torch.ops.halfeven.dequantize.default(*asked)) == 0
    x = torch.linspace(-9, 9, 500)
    given = (x, scale, None, -(2**31), 2**31 - 1, None, torch.int32, False)
    assert differing(on_cuda("quantize", *given), torch.ops.halfeven.quantize.default(*given)) == 0


# One thing changed in how a call is laid out: what was there, and what is in its place.
MUTANTS = (
    ("if -d > len(shape) or shape[d] == 1", "if -d > len(shape)"),
    ("after_block = tuple(b * step for step in own)", "after_block = tuple(step for step in own)"),
    ("tuple(whole * step for step in after_block)", "tuple((whole - 1) * step for step in after_block)"),
    ("        if n % b:", "        if n % b > n:"),
    ("(n % b, own + none)", "(b, own + none)"),
    ("if loop[0] > 1]", "if loop[0] > 2]"),
    ("step == of * found[-1][0]", "step == of * found[0][0]"),
    ("if found and all(", "if found and any("),
    ("inner[1][:2] == (1, 1)", "inner[1][:1] == (1,)"),
    ("inner[1][:2] == (1, 1)", "inner[1][1:2] == (1,)"),
    ("and len(others) <= 2", "and len(others) <= 3"),
    ("if inner[1][2:] == (0, 0):", "if inner[1][2:3] == (0,):"),
    ("if inner[1][2:] == (0, 0):", "if inner[1][3:] == (0,):"),
    ("        if rows[1][2:] == (0, 0):", "        if rows[1][2:3] == (0,):"),
    ("        if rows[1][2:] == (0, 0):", "        if rows[1][3:] == (0,):"),
    ("s + i * of for", "s + of for"),
    ("for i in range(n):", "for i in range(n - 1):"),
    ("(inner if columns else rows)", "(rows if columns else inner)"),
    ("x_outer=of_outer[1], x_row=of_row[1]", "x_outer=of_outer[0], x_row=of_row[0]"),
    ("s_outer=of_outer[2]", "s_outer=of_outer[3]"),
    ("o_outer=of_outer[3]", "o_outer=of_outer[2]"),
)


@pytest.mark.parametrize(("old", "new"), MUTANTS, ids=range(len(MUTANTS)))
def test_mutants_of_the_layout_are_caught(
    old: str, new: str, stand_in: StandIn, on_cuda: OnCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = Path(layout.__file__).read_text(encoding="utf-8")
    assert text.count(old) == 1
    mutant: dict[str, Any] = {"__name__": layout.__name__}
    exec(compile(text.replace(old, new), "mutant", "exec"), mutant)
    monkeypatch.setattr(forward, "laid_out", mutant["laid_out"])

    def caught(call: Call) -> bool:
        try:
            return bool(launched_like_the_cpu(call, stand_in, on_cuda))
        except (IndexError, RuntimeError):
            return True

    assert any(caught(call) for _, call in calls(KINDS[2]))


@pytest.mark.parametrize("shape", [(2**33,), (2**20, 1), (2**20, 5), (3, 2**20, 2), (2**17, 2**17), (1, 7, 2**33)])
def test_grids_are_those_that_a_gpu_accepts(shape: tuple[int, ...]) -> None:
    """Of tensors that nobody has the memory for, too; where more is to be done than a grid has threads, they go on."""
    strides = tuple(prod(shape[d + 1 :]) for d in range(len(shape)))
    spread = ((1,) * len(shape), (0,) * len(shape))
    for d in range(len(shape)):
        of_one = (tuple(n if e == d else 1 for e, n in enumerate(shape)), tuple(int(e == d) for e in range(len(shape))))
        (found,) = layout.laid_out(shape, (strides, strides), (of_one, spread), None, 16, 132)
        x, y, z = found.grid
        assert 1 <= x * y * z <= 132 * 32
        assert max(y, z) <= 65535
        assert 1 <= prod(found.threads) <= 256
        assert isinstance(found.job, layout.ForwardRows)
        assert found.job.outer * found.job.rows * found.job.len == prod(shape)


def quantized(on_cuda: OnCuda, x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = on_cuda("quantize", x, torch.tensor(0.5), None, -128, 127, None, torch.int8, False)
    return found


def test_launched_on_the_current_stream_of_the_device_of_x(
    stand_in: StandIn, pretended: Pretended, on_cuda: OnCuda
) -> None:
    first, second = torch.ones(3), torch.ones(4)
    pretended.second.add(second.untyped_storage().data_ptr())
    pretended.streams = (11, 0)
    assert quantized(on_cuda, first).tolist() == [2] * 3
    assert quantized(on_cuda, second).tolist() == [2] * 4
    pretended.streams = (12, 2**63)
    quantized(on_cuda, first), quantized(on_cuda, second)
    assert [(found.device, found.stream) for found in stand_in.launched] == [(0, 11), (1, 0), (0, 12), (1, 2**63)]
    assert len(stand_in.loads) == 2, "once for each device"
    assert stand_in.library.stand_in_depth() == 0


def test_one_load_for_all_threads(stand_in: StandIn, on_cuda: OnCuda) -> None:
    together = threading.Barrier(4)
    to = launcher.ready()
    assert to is not None
    program = forward._program("Quantize", torch.float32, torch.float32, torch.int8)

    def load() -> None:
        together.wait()
        assert set(to._load(0, program, 7)) == {"rows", "columns", "strided"}

    threads = [threading.Thread(target=load) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(stand_in.loads) == 1


def test_capture_takes_what_is_loaded(stand_in: StandIn, on_cuda: OnCuda) -> None:
    stand_in.says(capturing=1)
    with pytest.raises(RuntimeError, match=r"forward.cu \(Quantize, F32, F32, I8\) is not loaded yet.*once before"):
        quantized(on_cuda, torch.ones(3))
    stand_in.says()
    quantized(on_cuda, torch.ones(3))
    stand_in.says(capturing=1)
    assert quantized(on_cuda, torch.ones(5)).tolist() == [2] * 5


def test_what_the_driver_says_is_passed_on(stand_in: StandIn, on_cuda: OnCuda) -> None:
    stand_in.says(status=200)
    words = r"Quantize, F32.*sm_90: .*to load the kernels.*INVALID_IMAGE: device kernel image.*HALFEVEN_KERNELS=torch"
    with pytest.raises(RuntimeError, match=words):
        quantized(on_cuda, torch.ones(3))
    stand_in.says()
    quantized(on_cuda, torch.ones(3))
    stand_in.says(status=719)
    with pytest.raises(RuntimeError, match="to launch a kernel, and says status 719"):
        quantized(on_cuda, torch.ones(3))
    assert stand_in.library.stand_in_depth() == 0


def test_a_kernel_that_is_not_there(stand_in: StandIn) -> None:
    program = forward._program("Quantize", torch.float32, torch.float32, torch.int8)
    to = launcher.ready()
    assert to is not None
    with pytest.raises(RuntimeError, match="to find the kernel rows_"):
        to._load(0, replace(program, kernels=("rows_",)), 7)


def test_no_such_device(stand_in: StandIn) -> None:
    with pytest.raises(RuntimeError, match="to find device 2, and says status 101"):
        driver.Driver(stand_in.library).functions(2, b"", ())


def short(shape: tuple[int, ...]) -> torch.Tensor:
    """A tensor whose storage was made smaller."""
    found = torch.zeros(shape)
    found.untyped_storage().resize_(4)
    return found


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"x": short((3, 4))}, "x of shape .* its storage of 4 bytes ends before"),
        ({"scale": short((4,))}, "scale of shape .* its storage of 4 bytes"),
        ({"x": torch.frombuffer(bytearray(49), dtype=torch.float32, offset=1).view(3, 4)}, "x is .* no multiple of 4"),
        ({"x": torch.zeros(3, 4, dtype=torch.int32)}, "x of dtype"),
        ({"qmin": 128}, "qmin <= qmax"),
        ({"qmax": 128}, "do not hold the grid"),
        ({"scale": torch.ones(3)}, "does not broadcast"),
        ({"zero_point": torch.ones(4, device="meta")}, "zero_point on meta"),
        ({"block": (2,)}, "block_size"),
        ({"out": torch.zeros(4, 3, dtype=torch.int8)}, "out of shape"),
        ({"out": torch.zeros(3, 1, dtype=torch.int8).expand(3, 4)}, "out of shape .* share memory"),
    ],
)
def test_refused_before_anything_is_launched(
    changed: dict[str, Any], words: str, stand_in: StandIn, on_cuda: OnCuda
) -> None:
    given = {
        "x": torch.zeros(3, 4), "scale": torch.ones(4), "zero_point": None, "qmin": -128, "qmax": 127, "block": None,
        "offset": False, "out": torch.zeros(3, 4, dtype=torch.int8),
    }  # fmt: skip
    with pytest.raises((RuntimeError, TypeError, ValueError), match=words):
        on_cuda("quantize_out", *(given | changed).values())
    assert stand_in.launched == []


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"x": short((3, 4))}, "x of shape .* its storage of 4 bytes ends before"),
        ({"scale": short((4,))}, "scale of shape .* its storage of 4 bytes"),
        ({"x": torch.frombuffer(bytearray(49), dtype=torch.float32, offset=1).view(3, 4)}, "x is .* no multiple of 4"),
        (
            {"x": torch.zeros(48, dtype=torch.int8).view(torch.float32).view(3, 4), "out": None},
            "out is not accepted: it overlaps x",
        ),
        (
            {"scale": torch.zeros(16, dtype=torch.int8).view(torch.float32), "out": None},
            "out is not accepted: it overlaps scale",
        ),
    ],
)
def test_a_call_like_one_before_is_refused_for_its_addresses(
    changed: dict[str, torch.Tensor | None], words: str, stand_in: StandIn, on_cuda: OnCuda
) -> None:
    given = {
        "x": torch.zeros(3, 4), "scale": torch.ones(4), "zero_point": None, "qmin": -128, "qmax": 127, "block": None,
        "offset": False, "out": torch.zeros(3, 4, dtype=torch.int8),
    }  # fmt: skip
    on_cuda("quantize_out", *given.values())
    to = launcher.ready()
    assert to is not None
    if "out" in changed:  # in the memory of the other one that is changed
        memory = next(t for t in changed.values() if t is not None).untyped_storage()
        changed = changed | {"out": torch.empty(0, dtype=torch.int8).set_(memory, 4, (3, 4))}
    with pytest.raises(RuntimeError, match=words):
        on_cuda("quantize_out", *(given | changed).values())
    assert (len(stand_in.launched), len(to.plans)) == (1, 1)


def test_a_call_like_one_before_is_not_checked_again(
    stand_in: StandIn, on_cuda: OnCuda, monkeypatch: pytest.MonkeyPatch
) -> None:
    def call(x: torch.Tensor, scale: float = 0.5, out: torch.Tensor | None = None) -> torch.Tensor:
        given = (x, torch.tensor(scale), None, -128, 127, None, 0.0, False)
        if out is None:
            return cast(torch.Tensor, on_cuda("quantize_dequantize", *given))
        on_cuda("quantize_dequantize_out", *given, out, out=out)
        return out

    own = torch.ones(3)
    call(own, out=own)
    call(torch.ones(3))
    monkeypatch.setattr(forward.arguments, "check_parameters", None)
    assert call(torch.full((3,), 7.2)).tolist() == [7.0] * 3
    again = torch.full((3,), 7.2)
    assert call(again, 2.0, out=again).tolist() == [8.0] * 3
    with pytest.raises(TypeError):
        call(torch.ones(4))
    assert len(stand_in.loads) == 1


def test_no_more_plans_than_a_limit(stand_in: StandIn, on_cuda: OnCuda, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward, "_MOST_PLANS", 2)
    to = launcher.ready()
    assert to is not None
    for n in (1, 2, 3):
        assert quantized(on_cuda, torch.ones(n)).tolist() == [2] * n
    assert len(to.plans) == 1
