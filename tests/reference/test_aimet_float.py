"""Float quantization: what the class prints, its numbers, and how far the library's scale may be from the quotient."""

import math
from fractions import Fraction

import numpy as np
import pytest
import torch

from halfeven.conformance.systems import call_sets
from halfeven.conformance.systems.aimet.float import TORCH
from halfeven.reference import FORMULAS
from halfeven.reference.minifloat import FLOAT_FORMATS

CALLS = call_sets()


F32 = np.float32
float_scale = FORMULAS["aimet/float_scale"].function
float_cast = FORMULAS["aimet/float_cast"].function
float_quantize_dequantize = FORMULAS["aimet/float_quantize_dequantize"].function


def test_the_printed_example() -> None:
    (arguments,) = CALLS["aimet/float_quantize_dequantize", "examples"].build()
    scale = float_scale(np.abs(arguments["tensor"]).max(), dtype="float8_e4m3fnuz")
    assert scale == arguments["scale"]
    found = float_quantize_dequantize(**arguments)
    assert [f"{v:.4f}" for v in found.ravel()] == ["1.8998", "-0.0950", "-1.1399", "-0.1741"]


def test_the_numbers_of_four_bits_and_of_ieee_e4m3() -> None:
    x = np.arange(0, 300, 2.0**-11).astype(F32)
    one = np.ones((), F32)
    four = float_quantize_dequantize(x, one, 2, 1, True, False)
    assert np.unique(four).tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]
    eight = float_quantize_dequantize(x, one, 4, 3)
    measured = FORMULAS["aimet/float_quantize_dequantize@2.42"].function(x, one, 4, 3)
    # One binade more below: 8 numbers, of which the smallest has half the step.
    assert (len(np.unique(eight)), len(np.unique(measured))) == (120, 128)
    assert (np.unique(eight)[1], np.unique(measured)[1]) == (2.0**-9, 2.0**-10)


def test_the_equation_for_bits_agrees_with_the_quantizer_above_the_subnormals() -> None:
    x = np.concatenate([np.linspace(2.0**-6, 300, 5000), -np.linspace(2.0**-6, 300, 5000)]).astype(F32)
    one = np.ones((), F32)
    assert (float_cast(x, 4, 3) == float_quantize_dequantize(x, one, 4, 3)).all()
    assert float_cast(np.array([1e-5], F32), 4, 3) > 9e-6
    assert FORMULAS["aimet/float_cast@2.42"].function(np.array([1e-5], F32), 4, 3) == 0


@pytest.mark.parametrize("name", [name for name in TORCH if name != "bfloat16"])
def test_the_library_s_scale_by_logarithms_is_within_two_millionths_of_the_quotient(name: str) -> None:
    """Scale = 2^(log2 maxval - log2 max), each in float32: the bound that ``float_scale`` states, and not zero.

    Either logarithm is off by half a unit of its last place, at most 2^-20 below 32: ln 2 * 2^-19 is 1.3e-6.
    """
    rng = np.random.default_rng(5)
    maxval = np.concatenate([2.0 ** rng.uniform(-15, 15, 1500), [1, 3, 448, 0.1]]).astype(F32)
    ours = float_scale(maxval, dtype=name)
    theirs = 2 ** (torch.log2(torch.from_numpy(maxval)) - math.log2(FLOAT_FORMATS[name].max))
    apart = [
        abs(Fraction(float(a)) - Fraction(float(b))) / Fraction(float(b)) for a, b in zip(theirs, ours, strict=True)
    ]
    assert 0 < max(apart) <= Fraction(2, 10**6)
