"""compressed-tensors: the numbers in its docstrings, and where its equations differ from the textbook's."""

import numpy as np
import pytest

from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.grid import Grid
from halfeven.reference.systems import PROFILES

F32 = np.float32
round_to_power_2 = FORMULAS["compressed-tensors/round_to_power_2"].function
calculate_qparams = FORMULAS["compressed-tensors/calculate_qparams"].function
cast_to_fp4 = FORMULAS["compressed-tensors/cast_to_fp4"].function
generate_gparam = FORMULAS["compressed-tensors/generate_gparam"].function
quantize = FORMULAS["compressed-tensors/quantize"].function
fake_quantize = FORMULAS["compressed-tensors/fake_quantize"].function
dequantize = FORMULAS["compressed-tensors/dequantize"].function


def one(value: float, dtype: object = F32) -> np.ndarray:
    return np.array([value], dtype)


def test_the_example_of_round_to_power_2() -> None:
    assert round_to_power_2(one(0.0825)).tolist() == [0.0625]


def test_the_largest_magnitude_of_a_symmetric_range_does_not_come_back() -> None:
    scale, zero_point = calculate_qparams(one(-1), one(1))
    assert scale.tolist() == [F32(1) / F32(127.5)]
    x = np.array([1, -1], F32)
    y = PROFILES["compressed-tensors"].fake_quantize(x, scale[0], zero_point[0], Grid(-128, 127))
    assert [f"{v:.4f}" for v in y] == ["0.9961", "-0.9961"]


def test_zero_has_a_code_for_every_asymmetric_range() -> None:
    rng = np.random.default_rng(7)
    low, high = -rng.uniform(0, 3, 500).astype(F32), rng.uniform(0, 3, 500).astype(F32)
    scale, zero_point = calculate_qparams(low, high, symmetric=False)
    assert ((zero_point >= -128) & (zero_point <= 127)).all()
    zeros = np.zeros_like(low)
    reals = PROFILES["compressed-tensors"].fake_quantize(zeros, scale, zero_point, Grid(-128, 127))
    assert (reals == 0).all()


def test_mx_scales_saturate_or_not_by_the_bump_of_the_threshold() -> None:
    arguments = {"num_bits": 4, "type": "float", "group_size": 32, "scale_dtype": "uint8"}
    scales, _ = calculate_qparams(np.zeros(3, F32), np.array([6, 6.9, 7], F32), **arguments)
    assert scales.tolist() == [1, 1, 2]
    scales, _ = calculate_qparams(one(0), one(448), **{**arguments, "num_bits": 8})
    assert scales.tolist() == [2]


def test_every_power_of_two_is_a_power_of_two_for_mx() -> None:
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    p = round_to_power_2(x)
    finite = np.isfinite(p) & (p != 0)
    fraction, _ = np.frexp(np.abs(p[finite].astype(F32)))
    assert (fraction == 0.5).all()
    normal = np.isfinite(x) & (np.abs(x) >= 2.0**-14) & finite
    ratio = np.abs(p[normal].astype(F32) / x[normal].astype(F32))
    assert (ratio > 1 / 1.75).all()
    assert (ratio <= 2 / 1.75).all()


def test_every_float16_becomes_the_nearest_e2m1() -> None:
    x = np.arange(2**16, dtype=np.uint16).view(np.float16)
    x = x[np.isfinite(x)]
    table = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6])
    y = np.abs(cast_to_fp4(x).astype(np.float64))
    assert set(y.tolist()) == set(table.tolist())
    distance = np.abs(np.abs(x.astype(np.float64))[:, None] - table)
    assert (np.abs(np.abs(x.astype(np.float64)) - y) == distance.min(axis=1)).all()


def test_the_global_scale_of_448_is_6_and_the_library_s_one_ulp_more() -> None:
    assert generate_gparam(one(0), one(448)).tolist() == [6]
    measured = FORMULAS["compressed-tensors/generate_gparam@0.20"].function(one(0), one(448))
    assert measured.tolist() == [float(np.nextafter(F32(6), F32(7)))]


def test_a_code_of_a_half_is_rounded_after_the_zero_point_is_added() -> None:
    x, scale, zero_point = one(0.5), one(1), np.array([1], np.int8)
    assert quantize(x, scale, zero_point).tolist() == [2]
    assert fake_quantize(x, scale, zero_point).tolist() == [1]


def test_the_dtype_asked_for_is_documented_and_not_heeded_by_the_library() -> None:
    codes, scale = np.array([3], np.int8), one(0.1)
    measured = FORMULAS["compressed-tensors/dequantize@0.20"].function
    assert dequantize(codes, scale, dtype="float16").dtype == np.float16
    assert measured(codes, scale, dtype="float16").dtype == F32


@pytest.mark.parametrize(
    ("given", "error", "said"),
    [
        ({"num_bits": 8.5}, ValueError, "num_bits=8.5 is not accepted"),
        ({"type": "complex"}, ValueError, "type='complex' is not accepted: give int or float"),
        ({"type": "float", "num_bits": 5}, NotImplementedError, "num_bits=5 is not accepted for type='float'"),
        ({"type": "float", "num_bits": 4, "symmetric": False}, NotImplementedError, "symmetric=False is not accepted"),
        ({"group_size": 0}, ValueError, "group_size=0 is not accepted"),
    ],
)
def test_what_is_refused_is_named(given: dict[str, object], error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        calculate_qparams(one(-1), one(1), **given)
