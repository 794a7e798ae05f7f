"""What the reference gives for every pattern, found by bisection, is what it gives for each of them."""

import os
from itertools import product

import numpy as np
import pytest

from halfeven.conformance.configuration import Array, Configuration
from halfeven.conformance.engine.compare import compare_reals
from halfeven.conformance.engine.exhaustive import expected as under_test
from halfeven.conformance.engine.exhaustive.expected import evaluated, every_pattern
from halfeven.conformance.engine.exhaustive.parameters import scale_of, sets, shard_of, significands
from halfeven.conformance.engine.exhaustive.patterns import layout
from halfeven.conformance.engine.exhaustive.runs import Runs, differing, runs_of
from halfeven.conformance.engine.exhaustive.scales import deciding
from halfeven.conformance.engine.setting import Setting
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import OPERATIONS, Profile
from halfeven.reference.systems import PROFILES

INT8, UINT4 = Grid(-128, 127), Grid(0, 15)
QUANTIZERS = [p for p in PROFILES.values() if p.operations]


def settings(dtype: str) -> list[Setting]:
    """Of profiles that compute alike one."""
    found = {
        (p.model, p.parameters, p.codes, p.scale_dtype, o): Setting(p, Configuration(o, dtype, INT8, ()))
        for p, o in product(QUANTIZERS, OPERATIONS)
        if o in p.operations and o != "dequantize" and dtype in p.dtypes and p.accepts(INT8)
    }
    return [*found.values()]


def in_words(setting: Setting) -> str:
    return f"{setting.profile.name}/{setting.configuration.operation}/{setting.configuration.dtype}"


def numbers(dtype: str) -> Array:
    of = layout(dtype)
    patterns = np.arange(of.total)
    return patterns[patterns & (of.sign - 1) <= of.infinity]


@pytest.mark.parametrize("setting", [*settings("float16")[::2], *settings("bfloat16")[::4]], ids=in_words)
def test_every_pattern_of_16_bits(setting: Setting) -> None:
    dtype = setting.configuration.dtype
    of, places = layout(dtype), numbers(dtype)
    scales = np.array([0.1, 300.0]).astype(setting.scale_dtype)
    for _, zero in sets(setting)[:2]:
        runs = every_pattern(setting, scales, zero)
        assert runs.size == len(scales) * of.total
        assert runs.points == len(scales) * len(places)
        for line in range(len(scales)):
            direct = evaluated(setting, scales, zero, places, np.full(places.shape, line))
            assert compare_reals(direct, runs.at(places + line * of.total)).differing == 0


@pytest.mark.parametrize("setting", settings("float32"), ids=in_words)
def test_many_patterns_of_float32(setting: Setting) -> None:
    of, generator = layout("float32"), np.random.default_rng(0)
    for scale, zero in sets(setting):
        scales = np.array([scale], setting.scale_dtype)
        runs = every_pattern(setting, scales, zero)
        near = (runs.ends[:-1, None] + np.arange(-2, 2)).ravel()
        places = np.concatenate([generator.integers(0, of.total, 1 << 14), near])
        places = places[(places >= 0) & (places & (of.sign - 1) <= of.infinity)]
        direct = evaluated(setting, scales, zero, places, np.zeros_like(places))
        assert compare_reals(direct, runs.at(places)).differing == 0
        assert runs.points == 2**32 - 2 * (2**23 - 1)


@pytest.mark.exhaustive
@pytest.mark.skipif("HALFEVEN_EXHAUSTIVE" not in os.environ, reason="takes minutes; set HALFEVEN_EXHAUSTIVE=1")
@pytest.mark.parametrize("setting", settings("float32"), ids=in_words)
def test_every_pattern_of_float32(setting: Setting) -> None:
    of, (scale, zero) = layout("float32"), sets(setting)[1]
    scales = np.array([scale], setting.scale_dtype)
    runs = every_pattern(setting, scales, zero)
    for first in range(0, of.total, 1 << 22):
        places = np.arange(first, first + (1 << 22))
        places = places[places & (of.sign - 1) <= of.infinity]
        direct = evaluated(setting, scales, zero, places, np.zeros_like(places))
        assert compare_reals(direct, runs.at(places)).differing == 0


def test_what_is_not_monotone_is_evaluated_one_by_one() -> None:
    model = EvaluationModel(overflow="wrap")
    wraps = Profile("wraps", "wraps", "", model, dtypes=("float16",))
    setting = Setting(wraps, Configuration("quantize", "float16", INT8, ()))
    scales = np.array([0.1, 3.0], np.float32)
    runs = every_pattern(setting, scales, 3)
    places = numbers("float16")
    for line in range(2):
        direct = evaluated(setting, scales, 3, places, np.full(places.shape, line))
        assert compare_reals(direct, runs.at(places + (line << 16))).differing == 0


def test_both_ways_find_the_same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    setting = Setting(PROFILES["onnx"], Configuration("quantize", "float16", UINT4, ()))
    scales = np.array([0.1, 0.7], np.float16)
    found = every_pattern(setting, scales, 3)
    monkeypatch.setattr(under_test, "is_monotone", lambda _: False)
    again = every_pattern(setting, scales, 3)
    assert np.array_equal(found.ends, again.ends)
    assert len(found.ends) < 200


@pytest.mark.parametrize("name", ["onnx", "aimet", "torch.quantize@2.13", "torchao@0.18"])
def test_the_inputs_that_decide(name: str) -> None:
    setting = Setting(PROFILES[name], Configuration("quantize", "float32", INT8, ()))
    scales = scale_of(significands((5, 1 << 18)))
    x, codes = deciding(setting, scales, 0)
    assert x.shape == codes.shape == (32, 510)
    both = np.arange(255)[:, None] + [-128, -127]
    assert np.array_equal(codes.reshape(32, 255, 2), np.broadcast_to(both, (32, 255, 2)))
    pairs = x.reshape(32, 255, 2)
    assert np.array_equal(np.nextafter(pairs[..., 0], np.float32(np.inf)), pairs[..., 1])


def test_a_shard_is_a_part() -> None:
    assert shard_of("1/1") == (1, 1)
    parts = [significands((i, 1 << 20)) for i in range(1, (1 << 20) + 1, 1 << 18)]
    assert [len(p) for p in parts] == [8] * 4
    assert np.array_equal(significands((2, 2)), np.arange((1 << 23) + 1, 1 << 24, 2))
    assert scale_of(significands((1, 1 << 22))).tolist() == [2.0**-7, 1.5 * 2.0**-7]
    for wrong in ("", "1", "0/4", "5/4", "1/0", "-1/4", "1/16777216", "a/b"):
        with pytest.raises(ValueError, match="is not accepted: give a part of a whole"):
            shard_of(wrong)


def test_runs_are_compared_as_their_values_are() -> None:
    one = Runs(np.array([0.0, 1.0, np.nan]), np.array([3, 5, 9]), np.array([True, True, False]))
    other = runs_of({"values": np.array([0, 2, 1], np.int8), "counts": np.array([2, 2, 5])}, 9)
    assert other is not None
    few = Runs(np.append(other.values, 1), np.append(other.ends, 99))
    longer = Runs(np.append(one.values, 1.0), np.append(one.ends, 99), np.array([True, True, False, False]))
    for found in (differing(one, other, codes=True), differing(longer, few, codes=True)):  # one by one, and by runs
        assert (found.points, found.count) == (5, 2)
        assert found.places.tolist() == [2, 3]
        assert found.values.tolist() == [2, 2]
    assert one.part(2, 4).ends.tolist() == [1, 3, 4]
    assert runs_of({"values": np.array([0]), "counts": np.array([2])}, 9) is None
    assert runs_of(np.zeros(9), 9) is None
    assert runs_of({"values": np.array([0, 1]), "counts": np.array([10, -1])}, 9) is None


def test_a_real_differs_by_its_bits() -> None:
    one = Runs(np.array([0.0, 1.0], np.float32), np.array([50, 100]))
    other = Runs(np.array([-0.0, 1.0], np.float32), np.array([50, 100]))
    assert differing(one, other, codes=False).count == 50
    assert differing(one, other, codes=True).count == 0
