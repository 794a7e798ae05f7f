"""pytorch-quantization: what its document prints, and the bounds that the calibrators' docstrings state."""

import json
from fractions import Fraction
from math import inf

import numpy as np
import pytest

from halfeven.conformance.systems import call_sets
from halfeven.reference import FORMULAS
from halfeven.reference.systems.pytorch_quantization import descriptor
from oracles import codes
from oracles import pytorch_quantization_histogram as derivation

CALLS = call_sets()


F32 = np.float32
tensor_quant = FORMULAS["pytorch-quantization/tensor_quant"].function


def test_eight_bits_use_255_values_and_narrow_range_decides() -> None:
    x = np.linspace(-2, 2, 4001, dtype=F32)
    one = np.asarray(1, F32)
    q, scale = tensor_quant(x, one)
    assert np.array_equal(np.unique(q), np.arange(-127, 128))  # 2^8 - 1 of them
    assert scale == 127
    assert tensor_quant(x, one, narrow_range=False)[0].min() == -128
    unsigned, _ = tensor_quant(np.abs(x), one, unsigned=True)
    assert np.array_equal(np.unique(unsigned), np.arange(256))


def test_kcrs_weight_with_axis_0_is_per_channel() -> None:
    weight = np.arange(2 * 3 * 4 * 5, dtype=F32).reshape(2, 3, 4, 5)
    amax = FORMULAS["pytorch-quantization/max_calibrator"].function((weight,), axis=(0))
    assert amax is not None
    assert amax.shape == (2, 1, 1, 1)
    assert amax.ravel().tolist() == [59, 119]


def test_straight_through_between_minus_amax_and_amax() -> None:
    x = np.array([-1.0001, -1, -0.9, 0, 0.9, 1, 1.0001, np.nan, np.inf], F32)
    found = FORMULAS["pytorch-quantization/tensor_quant_backward"].function(x, np.asarray(1, F32), np.full(9, 3, F32))
    assert found.tolist() == [0, 3, 3, 3, 3, 3, 0, 0, 0]


def test_every_e4m3_value_comes_back_at_amax_448() -> None:
    values = np.array([float(v) for v in codes.values(4, 3, 7, 127)], F32)
    assert np.array_equal(FORMULAS["pytorch-quantization/scaled_e4m3"].function(values, np.asarray(448, F32)), values)


@pytest.mark.parametrize(
    "named", [n for f, n in CALLS if f == "pytorch-quantization/entropy_amax" and "refusals" not in n]
)
def test_float64_decides_every_entropy_call(named: str) -> None:
    """The least divergence and the next one are further apart than float64 can get wrong, or equal over the reals."""
    for call in CALLS["pytorch-quantization/entropy_amax", named].build():
        more = {"num_bits": 8, "unsigned": False, "stride": 1, "start_bin": 128, **call}
        more.pop("edges")
        found = [d for d in derivation.divergences(**more) if isinstance(d, Fraction)]
        gaps = [float(d - min(found)) for d in found if d - min(found) > derivation.TIE]
        assert min(gaps, default=inf) > 2.0**-40


@pytest.mark.parametrize("named", [n for f, n in CALLS if f == "pytorch-quantization/mse_amax" and "refusals" not in n])
def test_no_order_of_summation_changes_an_error_call(named: str) -> None:
    """A float32 sum of n terms is off by less than n 2^-23 of it: the least error and the next are further apart."""
    for call in CALLS["pytorch-quantization/mse_amax", named].build():
        more = {"num_bits": 8, "unsigned": False, "stride": 1, "start_bin": 128, **call}
        for modelopt in (False, True):
            if modelopt and not isinstance(more["num_bits"], int):
                continue
            _, found = derivation.costs(**more, modelopt=modelopt)
            costs = sorted({c for c in found if c is not None})
            bound = Fraction(2 * call["hist"].size, 2**23)
            assert len(costs) < 2 or costs[1] - costs[0] > costs[0] * bound


def test_clip_sums_are_within_the_bound_in_any_order() -> None:
    g = (F32(1) / np.arange(3, 200, dtype=F32)) * np.where(np.arange(197) % 3, F32(1), F32(-1))
    zeros = np.zeros(197, F32)
    _, low, _ = FORMULAS["pytorch-quantization/clip_backward"].function(
        zeros, np.asarray(1, F32), np.asarray(2, F32), g
    )
    bound = 196 * 2.0**-24 * float(np.abs(g).sum())
    for order in (g, g[::-1], np.sort(g)):
        total = F32(0)
        for v in order:
            total += v
        assert abs(float(total) - float(low)) <= bound


def test_histogram_growth_keeps_counts_and_width() -> None:
    batches = tuple(np.array(v, F32) for v in ([0, 1, 4], [9.5, 2], [-30, 0.25]))
    counts, edges = FORMULAS["pytorch-quantization/histogram"].function(batches, 4)
    assert counts.sum() == 7
    assert set(np.diff(edges)) == {1}
    assert edges.size == counts.size + 1


def test_yaml_is_a_line_of_json_for_each_field() -> None:
    made = descriptor.ScaledQuantDescriptor(num_bits=4, name="a: b", axis=(0, 1), scale_amax=0.5)
    text = made.to_yaml()
    assert text == 'num_bits: 4\nname: "a: b"\naxis: [0, 1]\nscale_amax: 0.5\n'
    assert descriptor.ScaledQuantDescriptor.from_yaml(text) == made
    assert [json.loads(line.split(": ", 1)[1]) for line in text.splitlines()] == [4, "a: b", [0, 1], 0.5]
    assert descriptor.ScaledQuantDescriptor(amax=1e300).to_yaml() == "amax: .inf\n"
