"""Float32 at every code boundary, against thresholds derived in fractions.

For each parameter set and each code k the smallest float32 whose code is at least k is found backwards from the tie
k - 1/2, one rounding at a time, by exact comparison with the midpoint between two neighbouring floats. Thresholds share
nothing with the evaluation model but the names of the model's choices, and the scalar oracle judges them.
"""

from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np
import pytest

from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES
from oracles import exact

F32 = exact.FORMATS["float32"]
# Parameter sets per grid: all of 1 to 6 bits, most at 4; some with ends of their own; 8 bits.
SETS = {
    **{Grid.from_bitwidth(b, signed=s): 300 if b == 4 else 160 for b in range(1, 7) for s in (True, False)},
    **dict.fromkeys((Grid(-7, 7), Grid(2, 9), Grid(-3, 0)), 100),
    **dict.fromkeys((Grid(-128, 127), Grid(0, 255), Grid(-127, 127)), 70),
}
BEYOND = 2  # thresholds on each side of the grid, where the clamp has to hold
ULPS = np.arange(-3, 4, dtype=np.int32)


class Sets(NamedTuple):
    """Parameter sets of one grid, a row each: what the exact derivation says of them."""

    grid: Grid
    scale: np.ndarray  # the first documented parameter
    zero: np.ndarray  # as in (q - z) * s
    thresholds: np.ndarray  # the smallest x of every code
    reals: np.ndarray  # what every code becomes


def arithmetic(model: EvaluationModel) -> EvaluationModel:
    """The choices that matter for finite float32 inputs of modest size; the others in their textbook values."""
    assert (model.rounding, model.overflow) == ("half-even", "saturate"), "derive these first"
    # A clamp between integers commutes with a rounding that nothing follows, but for the sign of a zero.
    assert model.clamp == "after" or (model.clamp, model.zero_point) == ("before-rounding",) * 2, "derive this first"
    sign = "none" if model.sign == "none" else "q-z"
    return EvaluationModel(division=model.division, zero_point=model.zero_point, sign=sign)


def at_least(target: np.float32) -> tuple[Fraction, bool]:
    """What a real number must exceed to round to ``target`` or above, and whether reaching it is enough."""
    below = np.nextafter(target, np.float32(-np.inf))
    return (Fraction(float(target)) + Fraction(float(below))) / 2, target.view(np.int32) % 2 == 0


def smallest(bound: Fraction, enough: bool) -> np.float32:
    """The smallest float32 above ``bound``, or at it where that is enough."""
    near = np.float32(exact.round_to(bound, F32))
    short = bound - Fraction(float(near))
    return np.nextafter(near, np.float32(np.inf)) if short > 0 or (short == 0 and not enough) else near


@cache
def least(model: EvaluationModel, z: int, k: int) -> tuple[Fraction, bool]:
    """What x / s, or x * s, must exceed for code k or above before the clamp, and whether reaching it is enough."""
    k, z = (k - z, 0) if model.zero_point == "after-rounding" else (k, z)
    total = smallest(k - Fraction(1, 2), k % 2 == 0)
    if model.zero_point == "before-rounding":
        bound, enough = at_least(total)
        total, z = smallest(bound - z, enough), 0
    bound, enough = at_least(total)
    return bound - z, enough


def threshold(model: EvaluationModel, s: Fraction, z: int, k: int) -> np.float32:
    """The smallest float32 with code k or above; ``s`` divides or multiplies, as the model says."""
    bound, enough = least(model, z, k)
    return smallest(bound * s if model.division == "divide" else bound / s, enough)


@cache
def derived(model: EvaluationModel, share: int) -> tuple[Sets, ...]:
    """One part in ``share`` of the parameter sets under one arithmetic, every code of every set."""
    rng = np.random.default_rng(11)
    found = []
    for grid, n in SETS.items():
        if model.division == "multiply-by-q-per-real" and grid.qmax == 0:
            continue
        given = (2.0 ** rng.uniform(-12, 4, n // share)).astype(np.float32)
        given[: n // share // 8] = 2.0 ** rng.integers(-10, 4, n // share // 8)  # the quotient of a tie is a tie
        zero = rng.integers(grid.qmin, grid.qmax + 1, len(given)) * (model.sign != "none")
        codes = range(grid.qmin + 1 - BEYOND, grid.qmax + 1 + BEYOND)
        thresholds, reals = [], []
        for s, z in zip(given.tolist(), zero.tolist(), strict=True):
            match model.division:
                case "divide":
                    used = Fraction(s)
                case "reciprocal":
                    used = Fraction(exact.round_to(1 / Fraction(s), F32))
                case "multiply-by-q-per-real":
                    used = Fraction(exact.round_to(Fraction(grid.qmax) / Fraction(s), F32))
            thresholds.append([threshold(model, used, z, k) for k in codes])
            real = 1 / used if model.division == "multiply-by-q-per-real" else Fraction(s)
            reals.append([exact.round_to((q - z) * real, F32) for q in range(grid.qmin, grid.qmax + 1)])
        found.append(Sets(grid, given, zero, np.array(thresholds, np.float32), np.array(reals, np.float32)))
    return tuple(found)


def expected_and_x(sets: Sets) -> tuple[np.ndarray, np.ndarray]:
    """Every threshold and its neighbours, and the codes there: the count of thresholds at or below."""
    bits = sets.thresholds.view(np.int32)[:, :, None] + ULPS
    x = bits.view(np.float32).reshape(len(bits), -1)
    count = np.stack([np.searchsorted(t, row, side="right") for t, row in zip(sets.thresholds, x, strict=True)])
    return np.clip(count + sets.grid.qmin - BEYOND, sets.grid.qmin, sets.grid.qmax), x


def compare(profile: Profile, sets: Sets) -> tuple[int, int]:
    """The profile against the thresholds; the points and the comparisons made."""
    codes, x = expected_and_x(sets)
    assert len(np.unique(codes)) == sets.grid.num_steps + 1
    zero = (-sets.zero).astype(np.float32) if profile.model.sign == "q+o" else sets.zero
    scale, zero = sets.scale[:, None], zero[:, None]
    answers = {}
    if "quantize" in profile.operations:
        answers["quantize"] = profile.quantize(x, scale, zero, sets.grid)
    if "fake_quantize" in profile.operations:
        answers["fake_quantize"] = profile.fake_quantize(x, scale, zero, sets.grid)
    if "dequantize" in profile.operations:
        every = np.broadcast_to(np.arange(sets.grid.qmin, sets.grid.qmax + 1), sets.reals.shape)
        dtype = np.dtype(np.float32)
        assert (profile.dequantize(every, scale, zero, sets.grid, dtype) == sets.reals).all()
    on_grid = np.take_along_axis(sets.reals, codes - sets.grid.qmin, axis=1)
    for name, answer in answers.items():
        right = on_grid if name == "fake_quantize" else codes
        row, column = np.unravel_index(int(np.argmin(answer == right)), x.shape)
        assert (answer == right).all(), (
            f"{profile.name}, {name}, {sets.grid}, x={float(x[row, column]).hex()}, "
            f"{profile.parameters[0]}={float(sets.scale[row]).hex()}, zero={sets.zero[row]}: "
            f"{float(answer[row, column])!r}, exactly {float(right[row, column])!r}"
        )
    return x.size, x.size * len(answers)


# A version of functions alone computes the operations as its document says.
OF_THEIR_OWN = [
    p
    for p in PROFILES.values()
    if p.operations and ("@" not in p.name or p.model != PROFILES[p.name.split("@")[0]].model)
]


@pytest.mark.parametrize("profile", OF_THEIR_OWN, ids=lambda p: p.name)
def test_every_code_boundary_and_three_ulps_about_it(profile: Profile) -> None:
    """Documented profiles on all sets, measured ones on a fifth; signs of zeros are not seen."""
    share = 5 if "@" in profile.name else 1
    all_sets = derived(arithmetic(profile.model), share)
    points, comparisons = map(sum, zip(*(compare(profile, sets) for sets in all_sets), strict=True))
    assert comparisons == points * len({"quantize", "fake_quantize"} & set(profile.operations))
    assert sum(len(sets.scale) for sets in all_sets) >= 2000 // share
    assert points >= 700_000 // share


@pytest.mark.parametrize("profile", OF_THEIR_OWN, ids=lambda p: p.name)
def test_the_scalar_oracle_finds_the_same_thresholds(profile: Profile) -> None:
    """The code at a threshold is k, that of the float below is k - 1, in the oracle's own arithmetic."""
    wide = Grid(-1000, 1000)
    share = 5 if "@" in profile.name else 1
    rng = np.random.default_rng(2)
    for sets in derived(arithmetic(profile.model), share):
        for row in rng.integers(0, len(sets.scale), 3):
            i = int(rng.integers(sets.thresholds.shape[1]))
            k = sets.grid.qmin + 1 - BEYOND + i
            x = sets.thresholds[row, i]
            zero = float(-sets.zero[row] if profile.model.sign == "q+o" else sets.zero[row])
            scale = float(profile.model_scale(sets.scale[row : row + 1], sets.grid)[0])
            for value, code in ((x, k), (np.nextafter(x, np.float32(-np.inf)), k - 1)):
                assert exact.quantize(profile.model, float(value), scale, zero, wide, F32, F32) == code
