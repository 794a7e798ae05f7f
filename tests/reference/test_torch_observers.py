"""torch's observers: what follows from the equations, and where the library parts from them."""

import numpy as np
import pytest

from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems.torch.observers import quant_range

F32 = np.float32
calculate_qparams = FORMULAS["torch/MinMaxObserver.calculate_qparams"].function
calculate_qparams_2_13 = FORMULAS["torch/MinMaxObserver.calculate_qparams@2.13"].function
moving_average_min_max = FORMULAS["torch/MovingAverageMinMaxObserver"].function
per_channel_min_max = FORMULAS["torch/PerChannelMinMaxObserver"].function
min_max = FORMULAS["torch/MinMaxObserver"].function
per_token_asymmetric = FORMULAS["torch/quantized_decomposed.choose_qparams_per_token_asymmetric"].function


def scalar(value: float) -> np.ndarray:
    return np.asarray(value, F32)


def test_the_ends_of_an_affine_range_take_the_ends_of_the_grid() -> None:
    for k in range(256):
        scale, zero = calculate_qparams(scalar(-k / 8), scalar((255 - k) / 8))
        codes = np.rint(np.array([-k / 8, (255 - k) / 8], F32) / scale) + zero
        assert codes.tolist() == [0, 255]


def test_equal_ends() -> None:
    scale, zero = calculate_qparams(scalar(3), scalar(3))
    assert (scale.tolist(), zero.tolist()) == ([1.0], [0])
    scale, zero = calculate_qparams_2_13(scalar(3), scalar(3))
    assert (scale.tolist(), zero.tolist()) == ([float(F32(3) / F32(255))], [0])


def test_the_library_keeps_the_zero_point_on_the_grid() -> None:
    arguments = scalar(2), scalar(3)
    assert calculate_qparams(*arguments)[1].tolist() == [-510]
    assert calculate_qparams_2_13(*arguments)[1].tolist() == [0]


def test_a_reduced_symmetric_uint8_has_its_zero_point_outside_its_range() -> None:
    arguments = {"dtype": "uint8", "qscheme": "per_tensor_symmetric", "reduce_range": True}
    assert quant_range(**arguments, quant_min=None, quant_max=None) == (0, 127)
    assert calculate_qparams_2_13(scalar(-1), scalar(1), **arguments)[1].tolist() == [128]


def test_a_moving_average_with_constant_1_is_the_last_batch() -> None:
    batches = tuple(np.array([k, -3 * k], F32) for k in (5, 1, 2))
    low, high = moving_average_min_max(batches, 1.0)
    assert (float(low), float(high)) == (-6, 2)


@pytest.mark.parametrize("axis", [0, 1])
def test_per_channel_is_per_tensor_of_each_channel(axis: int) -> None:
    x = np.random.default_rng(1).normal(size=(3, 4)).astype(F32)
    low, high = per_channel_min_max((x, -x), axis)
    for i in range(x.shape[axis]):
        one = np.take(x, i, axis)
        assert min_max((one, -one)) == (low[i], high[i])


def test_the_smallest_asymmetric_scale_of_a_token_is_epsilon() -> None:
    scale, zero = per_token_asymmetric(np.zeros((1, 2), F32), "int8")
    assert (scale.tolist(), zero.tolist()) == ([[2.0**-23]], [[127]])


@pytest.mark.parametrize("eps", [2.0**-23, 0.5])
def test_a_scale_of_just_eps_is_none_where_zero_points_are_floats(eps: float) -> None:
    ends = {"qscheme": "per_channel_affine_float_qparams", "eps": eps}
    above = np.nextafter(F32(255 * eps), F32(np.inf))
    scale, _ = calculate_qparams(np.zeros(2, F32), np.array([255 * eps, above * F32(1 + 2.0**-20)], F32), **ends)
    assert scale[0] == 1
    assert eps < scale[1] < 1
