"""torchao's float8 of training: the inverse scale, and its powers of two."""

import numpy as np
import pytest

from halfeven.reference import FORMULAS

amax_to_scale = FORMULAS["torchao/amax_to_scale"].function
amax_to_scale_0_18 = FORMULAS["torchao/amax_to_scale@0.18"].function
tensor_to_scale = FORMULAS["torchao/tensor_to_scale"].function
hp_tensor_and_scale_to_float8 = FORMULAS["torchao/hp_tensor_and_scale_to_float8"].function
to_original_precision = FORMULAS["torchao/to_original_precision"].function
NAMES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@pytest.mark.parametrize("name", NAMES)
def test_zeros_come_back(name: str) -> None:
    x = np.zeros((2, 3), np.float32)
    scale = tensor_to_scale(x, name)
    assert np.isfinite(scale)
    assert to_original_precision(hp_tensor_and_scale_to_float8(x, scale, name), scale, "float32").tolist() == x.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_the_scale_multiplies(name: str) -> None:
    x = np.array([0.5, -2.0, 4.0], np.float32)
    scale = tensor_to_scale(x, name)
    data = hp_tensor_and_scale_to_float8(x, scale, name)
    assert to_original_precision(data, scale, "float32").tolist() == x.tolist()


@pytest.mark.parametrize(("below", "exact", "measured"), [(256.0, 128.0, 256.0), (0.25, 0.125, 0.25), (2.0, 1.0, 1.0)])
def test_next_to_a_power_of_two(below: float, exact: float, measured: float) -> None:
    scale = np.nextafter(np.float32(below), np.float32(0))
    amax = np.array([448 / float(scale)])
    assert amax_to_scale(amax, "float8_e4m3fn").tolist() == [float(scale)]
    assert amax_to_scale(amax, "float8_e4m3fn", round_scales_to_power_of_2=True).tolist() == [exact]
    assert amax_to_scale_0_18(amax, "float8_e4m3fn", round_scales_to_power_of_2=True).tolist() == [measured]


def test_a_reciprocal_parts_from_the_quotient() -> None:
    middle = np.ldexp(2.0**24 + 1 + 2 * np.arange(4000), -22)
    amax = 448 / middle
    parted = amax_to_scale(amax, "float8_e4m3fn") != amax_to_scale_0_18(amax, "float8_e4m3fn")
    assert 0 < parted.sum() < len(amax)
    float32 = amax.astype(np.float32)
    assert (amax_to_scale(float32, "float8_e4m3fn") == amax_to_scale_0_18(float32, "float8_e4m3fn")).all()
