"""Stochastic rounding: functions that do it conform, and each kind of function that does not is named."""

from collections.abc import Callable
from itertools import count
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from halfeven.conformance import check_stochastic
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import floatx

INTEGERS = np.arange(-12.0, 13.0)
DRAW = np.random.default_rng(7)


def dithered(x: Array) -> Array:
    return np.floor(x.astype(np.float64) + DRAW.random(x.shape))


def check(function: Callable[[Any], Any], numbers: Any = INTEGERS, **more: Any) -> Any:
    return check_stochastic(function, numbers, array="numpy", **more)


def to_bfloat16(x: torch.Tensor) -> torch.Tensor:
    """The upper half of the sum of a float32's bits and 16 random ones."""
    bits = x.view(torch.int32) + torch.randint(0, 1 << 16, x.shape, dtype=torch.int32)
    return (bits & -65536).view(torch.float32).to(torch.bfloat16)


def test_what_rounds_stochastically_conforms() -> None:
    found = check(dithered)
    assert found
    assert str(found).startswith("dithered: bounded; ")
    assert found.draws > 500_000
    assert found.common_bias < 0.03 < found.bias < 0.15
    assert check_stochastic(to_bfloat16, "bfloat16")


@pytest.mark.parametrize("rounding", ["StochasticA", "StochasticB", "StochasticC"])
def test_the_roundings_of_p3109_conform(rounding: str) -> None:
    project, decode = FORMULAS["p3109/Project"].function, FORMULAS["p3109/Decode"].function
    numbers = decode(np.arange(32), 6, 3)
    numbers = numbers[np.isfinite(numbers)]

    def projected(x: Array) -> Array:
        random = DRAW.integers(0, 2**12, x.shape)
        codes = project(x, 6, 3, rounding=rounding, bits=12, random=random)
        return np.asarray(decode(codes, 6, 3))

    assert check(projected, np.concatenate([-numbers[:0:-1], numbers]), bits=12)


def test_few_random_bits_are_seen_and_may_be_stated() -> None:
    def three_bits(x: Array) -> Array:
        return np.floor(x.astype(np.float64) + DRAW.integers(0, 8, x.shape) / 8)

    assert check(three_bits).causes[0].startswith("takes the upper neighbour of numbers above zero too seldom")
    assert check(three_bits, bits=3)


TURN = count()


def opposite(draws: Array) -> Array:
    """Every second draw turned around."""
    return np.where(np.arange(draws.size) % 2, draws, 1 - draws)


WRONG: dict[str, tuple[Callable[[Array], Array], str]] = {
    "to nearest": (np.rint, "gives the same in every call"),
    "down": (np.floor, "gives the same in every call"),
    "seeded in every call": (lambda x: np.floor(x + np.random.default_rng(1).random(x.shape)), "gives the same"),
    "one number for all": (lambda x: np.floor(x + DRAW.random()), "draws one number for all elements"),
    "biased up by a hundredth": (
        lambda x: np.where(x == np.rint(x), x, np.minimum(np.floor(x + DRAW.random(x.shape) + 0.012), np.ceil(x))),
        "takes the upper neighbour of numbers above zero too often",
    ),
    "a coin for every number": (
        lambda x: np.where(DRAW.random(x.shape) < 0.5, np.floor(x), np.ceil(x)),
        "takes the upper neighbour of numbers",
    ),
    "away from zero": (
        lambda x: np.copysign(np.floor(np.abs(x) + np.sqrt(DRAW.random(x.shape))), x),
        "takes the upper neighbour of numbers above zero too often",
    ),
    "moves what needs no rounding": (
        lambda x: np.where((x == 3) | (x == 5), x + 1, np.floor(x + DRAW.random(x.shape))),
        "moves numbers that need no rounding (2 of 25)",
    ),
    "dithered by two gaps": (lambda x: np.rint(x + 2 * DRAW.random(x.shape) - 1), "moves numbers that need no"),
    "to even integers": (lambda x: 2 * np.floor(x / 2 + DRAW.random(x.shape)), "moves numbers that need no"),
    "between its neighbours": (lambda x: np.where(x == np.rint(x), x, np.floor(x) + 0.5), "gives what is neither"),
    "NaN": (lambda x: np.where(x == np.rint(x), x, np.nan), "gives what is neither"),
    "halves that share their draws": (
        lambda x: np.floor(x + np.resize(DRAW.random(max(1, x.size // 2)), x.shape)),
        "does not draw for each element by itself",
    ),
    "two that share a draw": (
        lambda x: np.floor(x + np.repeat(DRAW.random(x.size // 2 + 1), 2)[: x.size]),
        "does not draw for each element by itself: elements 1 apart go the same way",
    ),
    "pairs that go opposite ways": (
        lambda x: np.floor(x + opposite(np.repeat(DRAW.random(x.size // 2 + 1), 2)[: x.size])),
        "does not draw for each element by itself: elements 1 apart go opposite ways",
    ),
    "two seeds in turn": (
        lambda x: np.floor(x + np.random.default_rng(next(TURN) % 2).random(x.shape)),
        "does not draw for each element by itself",
    ),
    "one input alone": (
        lambda x: np.where((x > 6.49) & (x < 6.51), np.floor(x), np.floor(x + DRAW.random(x.shape))),
        "takes one of the neighbours too often for single inputs",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_does_not_is_named(name: str) -> None:
    function, cause = WRONG[name]
    found = check(lambda x: function(x.astype(np.float64)))
    assert not found
    assert found.outcome == "differs"
    assert found.causes[0].startswith(cause), found.causes
    assert any(c.startswith(cause) for c in str(found).splitlines()[2:] for c in [c.strip()])


def test_a_witness_is_an_input() -> None:
    found = check(WRONG["moves what needs no rounding"][0])
    assert found.witness == "x = 0x1.8000000000000p+1 (3.0): expected itself, got 4.0"
    shown = check(lambda x: WRONG["one input alone"][0](x.astype(np.float64))).witness
    assert shown.startswith("x = 0x1.a000000000000p+2 (6.5): 0 of 4,096 draws gave 7.0, expected 2,048.0, at most ")


def test_false_alarms_are_as_rare_as_stated() -> None:
    """Of a hundred checks, each of which may raise a false alarm in half of all cases, at most half do."""
    alarms = sum(not check(dithered, np.arange(-2.0, 3.0), draws=64, false_alarm=0.5) for _ in range(100))
    assert alarms <= 50


def test_a_format_s_neighbours_are_its_own() -> None:
    def to_e2m1(x: Array) -> Array:
        step = np.where(np.abs(x) < 2, 0.5, np.where(np.abs(x) < 4, 1, 2))
        return (np.floor(x / step + DRAW.random(x.shape)) * step).astype(ml_dtypes.float4_e2m1fn)

    assert check(to_e2m1, "float4_e2m1fn")
    assert check(to_e2m1, floatx(2, 1))
    assert not check(to_e2m1, "float6_e2m3fn")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"dtype": "float8"}, "dtype='float8'"),
        ({"array": "list"}, "array='list'"),
        ({"draws": 10}, "draws=10 is not accepted: give 64 or more"),
        ({"bits": 0}, "bits=0 is not accepted"),
        ({"false_alarm": 1.0}, "false_alarm=1.0 is not accepted"),
        ({"numbers": np.array([1.0])}, "give two or more, ascending"),
        ({"numbers": np.array([1.0, 1.0])}, "give two or more, ascending"),
        ({"numbers": np.array([0.0, 1e300])}, "that float32 holds"),
        ({"numbers": "float16", "dtype": "bfloat16"}, "that bfloat16 holds"),
        ({"numbers": "bfloat16", "dtype": "bfloat16"}, "has no number between"),
        ({"numbers": "float5"}, "format='float5'"),
        ({"function": lambda x: x[:1]}, "it must give one number for each"),
    ],
)
def test_what_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said.replace("(", r"\(")):
        check_stochastic(**{"function": dithered, "numbers": INTEGERS, "array": "numpy", **given})


@pytest.mark.library
def test_torchao_s_bfloat16() -> None:
    quant_utils = pytest.importorskip("torchao.optim.quant_utils")
    assert check_stochastic(quant_utils._fp32_to_bf16_sr, "bfloat16")
