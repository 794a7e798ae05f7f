"""The forward kernels of the GPU, as PTX run on the CPU, against the reference; and mutants of them, all caught."""

import functools
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator

import numpy as np
import pytest
from ptx.allowed import violations
from ptx.emulate import WHY_NOT, Memory, Module, module, placed
from ptx.forward import Call, answer, differing, expected, laid_out
from ptx.forward_cases import PROGRAMS, cases, every_tie
from ptx.forward_mutants import MUTANTS, Mutant
from ptx.parse import RefusedError

from halfeven.optimized.kernels.cuda import nvrtc, programs

_WHY_NOT = nvrtc.why_missing() or WHY_NOT
pytestmark = pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}")

# What a driver compiles for GPUs of these architectures: no GPU is needed to make it.
ARCHITECTURES = ("compute_80", "compute_90", "compute_100")


@functools.cache
def ptx(program: tuple[str, str, str, str], architecture: str) -> str:
    return nvrtc.compiled(programs.forward(*program), architecture)[0]


@functools.cache
def emulated(program: tuple[str, str, str, str], architecture: str) -> Module:
    return module(ptx(program, architecture))


def body(text: str) -> str:
    """What comes after the lines that name the architecture."""
    return text.split(".address_size 64")[1]


def faulty(calls: Iterable[tuple[str, Call]], found: Module) -> Iterator[tuple[str, str]]:
    """The calls that are not answered as the reference does, each with what is wrong."""
    for name, call in calls:
        out, faults = answer(found, call)
        if wrong := differing(out, expected(call)):
            yield name, f"{wrong} of {out.size} differ"
        yield from ((name, f"{n} {fault}") for fault, n in faults.items())


@pytest.mark.parametrize("program", PROGRAMS, ids="-".join)
def test_only_what_is_written(program: tuple[str, str, str, str]) -> None:
    assert [(a, words) for a in ARCHITECTURES for words in violations(program, ptx(program, a))] == []
    assert body(ptx(program, "compute_80")) == body(ptx(program, "compute_90"))


@pytest.mark.parametrize("architecture", ["compute_90", "compute_100"])
@pytest.mark.parametrize("program", PROGRAMS, ids="-".join)
def test_same_bits_as_the_reference(program: tuple[str, str, str, str], architecture: str) -> None:
    assert list(faulty(cases(program), emulated(program, architecture))) == []


def test_what_a_driver_is_handed_is_what_is_checked() -> None:
    """Machine code is made of the same PTX, for a GPU by its name."""
    program = PROGRAMS[0]
    text, code = nvrtc.compiled(programs.forward(*program), "sm_90")
    assert body(text) == body(ptx(program, "compute_90"))
    assert code[:4] == b"\x7fELF"


@pytest.mark.parametrize(
    "program", [("Quantize", "F32", "F32", "I32"), ("QuantizeDequantize", "F32", "F32", "F32")], ids="-".join
)
def test_every_tie(program: tuple[str, str, str, str]) -> None:
    assert list(faulty(every_tie(program), emulated(program, "compute_90"))) == []


def far_apart(found: Module) -> tuple[int, dict[str, int]]:
    """Rows that are more than 2^31 elements and 2^32 bytes apart: how many elements differ, and the faults."""
    step = 2**31 + 24
    x = np.lib.stride_tricks.as_strided(memory := np.empty(step + 40, np.int16), (1, 2, 40), (0, 2 * step, 2))
    x[...] = np.random.default_rng(0).integers(-(2**15), 2**15, x.shape)
    scale = np.array([0.25, 3.0], np.float32)[None, :, None]
    call = Call("Quantize", "F32", "U8", x.view("bfloat16"), scale)
    out = placed(np.zeros(x.shape, np.uint8))
    parts = [Memory(memory), Memory(out, written=True), Memory(scale)]
    faults = found.launch("rows", (1, 1, 1), (8, 2, 1), laid_out(call, call.x, out, scale, None), parts)
    return differing(out, expected(call)), faults


def test_rows_far_apart() -> None:
    assert far_apart(emulated(PROGRAMS[1], "compute_90")) == (0, {})


def verdict(mutant: Mutant) -> str:
    """How a mutant is caught: "" where it is not."""
    program, options = programs.forward(*mutant.program), mutant.options or programs.OPTIONS
    text, _ = nvrtc.compiled(program, "compute_90", headers=mutant.texts(), options=options)
    try:
        found = module(text)
    except RefusedError as refused:
        return f"refused {refused}"
    calls = every_tie(mutant.program) if mutant.ties else cases(mutant.program)
    wrong = Counter(re.sub(r"^\d+ (of \d+ )?", "", what) for _, what in faulty(calls, found))
    far = [f"far: {fault}" for fault in far_apart(found)[1]] if mutant.far else []
    return "; ".join([*violations(mutant.program, text), *wrong, *far])


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name.replace(" ", "-"))
def test_mutants_are_caught(mutant: Mutant) -> None:
    found = verdict(mutant)
    assert [words for words in mutant.caught if words not in found] == [], found


@pytest.mark.exhaustive
@pytest.mark.skipif(
    os.environ.get("HALFEVEN_EXHAUSTIVE") != "1", reason="opt-in: HALFEVEN_EXHAUSTIVE=1, some twenty minutes"
)
@pytest.mark.parametrize("program", [PROGRAMS[0], PROGRAMS[5]], ids="-".join)
def test_every_float32(program: tuple[str, str, str, str]) -> None:
    found = module(ptx(program, "compute_90"), optimized=True)
    step = 2**22
    for first, zero_point in itertools.product(range(0, 2**32, step), (3,)):
        x = np.arange(first, first + step, dtype=np.uint32).view(np.float32)[None, None]
        call = Call(
            program[0],
            "F32",
            program[3],
            x,
            np.full((1, 1, 1), 0.1, np.float32),
            np.array(zero_point),
            blocks=(1, 1, 1),
        )
        out, faults = answer(found, call)
        assert (differing(out, expected(call)), faults) == (0, {}), f"from {first:#x} on"
