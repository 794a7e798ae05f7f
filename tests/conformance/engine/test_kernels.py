"""Kernels as people write them are named by what they do, whatever is claimed, and by nothing that they do not do."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import cycle
from typing import Any

import numpy as np
import pytest
from wild_kernels import BYTE, INT8, Kernel, answered, calls
from wild_kernels.compiled import COMPILED, compiler
from wild_kernels.decoders import DECODERS, FAKES
from wild_kernels.habits import HABITS, HABITUAL_DECODERS, READ_OTHERWISE, UNKNOWN
from wild_kernels.quantizers import QUANTIZERS, tt_metal
from wild_kernels.regional import REGIONAL, tail

from halfeven.conformance.configuration import Case
from halfeven.conformance.engine.explain import Part, explain
from halfeven.conformance.engine.fitting.elements import Observed, elements_of, flat
from halfeven.reference import EvaluationModel
from halfeven.reference.model import quantize
from halfeven.reference.systems import PROFILES

CLAIMS = ("onnx", "torch.quantize@2.13", "torchao")
TEXTBOOK = EvaluationModel()
EVERYWHERE = [*QUANTIZERS, *HABITS, *DECODERS, *HABITUAL_DECODERS, *FAKES, *(COMPILED if compiler() else [])]
ROTATED = list(zip(EVERYWHERE, cycle(CLAIMS), strict=False))
FROM_ALL = [k for k in QUANTIZERS if k.name in {"tt-metal#56525", "floor(v + .5f)", "llama.cpp Q8_0", "OpenVINO"}]
#: Kernels of two kinds of grids, neither of which is the textbook: the region that is told is the other one.
TURNED_ROUND = {"ties away in int8": "int8"}


def said_wrongly(part: Part, does: Mapping[str, Any]) -> dict[str, Any]:
    """The choices named that the kernel does not make; of what it does as the textbook any other is wrong."""
    found = {name: value for name, (_, value) in part.changes.items()}
    allowed = {name: does.get(name, {getattr(TEXTBOOK, name)}) for name in found}
    return {name: value for name, value in found.items() if allowed[name] is not ... and value not in allowed[name]}


def test_there_are_ninety_of_one_kind_and_fifteen_by_regions() -> None:
    assert len([*QUANTIZERS, *HABITS, *DECODERS, *HABITUAL_DECODERS, *FAKES]) > 90
    assert len({k.name for k in EVERYWHERE}) == len(EVERYWHERE)
    assert len(REGIONAL) > 14


@pytest.mark.parametrize(
    ("kernel", "claim"),
    [*ROTATED, *((k, c) for k in FROM_ALL for c in ("onnx@reference-1.23", "torch.quantize@2.13-per-channel"))],
    ids=lambda v: v.name if isinstance(v, Kernel) else v,
)
def test_a_kernel_is_named(kernel: Kernel, claim: str) -> None:
    profile = PROFILES[claim]
    found = explain(profile, [answered(kernel, c) for c in calls(kernel)])
    assert found is not None
    assert (found.share, found.nearest) == (1.0, None)
    [part] = found.parts
    assert said_wrongly(part, kernel.does) == {}, part.words
    if part.model is not None:
        assert part.words == profile.model.against(part.model)
        fresh = elements_of(profile, [answered(kernel, c) for c in calls(kernel, seed=5)])
        assert np.concatenate([g.given_by(part.model) for g in fresh]).mean() > 0.999


@pytest.mark.parametrize("kernel", REGIONAL, ids=lambda k: k.name)
def test_a_kernel_is_named_by_regions(kernel: Kernel) -> None:
    asked = [answered(kernel, c) for c in calls(kernel)]
    found = explain(PROFILES["onnx"], asked)
    assert found is not None
    assert (found.share, found.nearest, len(found.parts)) == (1.0, None, 2)
    rest, inside = found.parts
    words, does, does_else = *kernel.where, kernel.does
    if kernel.name in TURNED_ROUND:
        words, does, does_else = TURNED_ROUND[kernel.name], does_else, does
    assert (rest.where, inside.place.startswith(words)) == ((), True), inside.place
    assert said_wrongly(rest, does_else) == {}
    assert said_wrongly(inside, does) == {}


@pytest.mark.parametrize("reading", READ_OTHERWISE)
def test_an_argument_read_otherwise_is_named(reading: str) -> None:
    found = explain(PROFILES["onnx"], [answered(READ_OTHERWISE[reading], c) for c in calls(READ_OTHERWISE[reading])])
    assert found is not None
    assert [(p.reading, dict(p.changes), p.share) for p in found.parts] == [(reading, {}, 1.0)]


def test_a_multiplier_in_fixed_point_is_not_taken_for_another_kernel() -> None:
    found = explain(PROFILES["onnx"], [answered(UNKNOWN, c) for c in calls(UNKNOWN)])
    assert found is not None
    assert (found.parts, found.nearest is not None) == ((), True)


def test_a_tail_is_found_in_samples() -> None:
    """Evidence that was kept knows its places."""
    kernel = Kernel("", tail(QUANTIZERS[0].function, tt_metal, 8))
    found = explain(PROFILES["onnx"], [sampled(answered(kernel, c)) for c in calls(kernel)])
    assert found is not None
    assert [p.place for p in found.parts] == ["", "the last n mod 8 elements"]


def sampled(answer: Observed) -> Observed:
    """Every third element of a call, and its end."""
    case = flat(answer.case)
    n = case.x.size
    place = np.union1d(np.arange(0, n, 3), np.arange(max(n - 8, 0), n))
    c = replace(case.configuration, shape=place.shape)
    some = Case(c, case.x[place], case.scale[place], case.zero[place])
    return Observed(some, answer.value.ravel()[place], place=place, size=n, last=n)


def test_what_nothing_gives_has_a_nearest_model_and_no_cause() -> None:
    rng = np.random.default_rng(0)

    def noisy(x: np.ndarray, *rest: Any) -> np.ndarray:
        codes = np.array(QUANTIZERS[0].function(x, *rest))
        where = rng.random(x.size) < 0.001
        return np.where(where, np.where(codes > 0, codes - 1, codes + 1), codes)

    found = explain(PROFILES["torch.quantize@2.13"], answers_of(noisy))
    assert found is not None
    assert (found.parts, found.share) == ((), 0.0)
    assert found.nearest is not None
    assert 0.998 < found.nearest.share < 1.0
    assert {n: v for n, (_, v) in found.nearest.changes.items() if n in {"division", "zero_point"}} == {
        "division": "divide",
        "zero_point": "after-rounding",
    }


def answers_of(function: Any) -> list[Observed]:
    kernel = Kernel("", function)
    return [answered(kernel, c) for c in calls(kernel)]


def test_nan_alone_is_said_as_nan() -> None:
    claimed = PROFILES["torch.quantize@2.13"]

    def kernel(x: np.ndarray, s: Any, z: int, lo: int, hi: int) -> np.ndarray:
        grid = INT8 if lo < 0 else BYTE
        return quantize(replace(claimed.model, nan="zero"), x, np.asarray(s), np.asarray(z), grid)

    found = explain(claimed, answers_of(kernel))
    assert found is not None
    assert dict(found.parts[0].changes) == {"nan": ("qmax", "zero")}


def test_what_is_claimed_is_found_to_be_so() -> None:
    found = explain(PROFILES["onnx"], answers_of(QUANTIZERS[0].function))
    assert found is not None
    assert [(p.profile, dict(p.changes), p.words, p.share) for p in found.parts] == [("onnx", {}, "", 1.0)]
