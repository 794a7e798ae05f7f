"""torchao's NVFP4: bounds of the scales, zeros, and the two levels together."""

import numpy as np
import pytest

from halfeven.reference import FORMULAS

nvfp4_dequantize = FORMULAS["torchao/nvfp4_dequantize"].function
nvfp4_quantize = FORMULAS["torchao/nvfp4_quantize"].function
per_tensor_amax_to_scale = FORMULAS["torchao/per_tensor_amax_to_scale"].function
nvfp4_quantize_0_18 = FORMULAS["torchao/nvfp4_quantize@0.18"].function


def test_a_tensor_of_zeros_stays_zeros_under_its_own_scale_and_0_18_parts_from_it() -> None:
    x = np.zeros((2, 16), np.float32)
    s_t = per_tensor_amax_to_scale(np.asarray(np.abs(x).max()))
    assert float(s_t) == 0
    scale, data = nvfp4_quantize(x, per_tensor_scale=s_t)
    assert nvfp4_dequantize(data, scale, per_tensor_scale=s_t).tolist() == x.tolist()
    scale, data = nvfp4_quantize_0_18(x, per_tensor_scale=s_t)
    assert np.isnan(nvfp4_dequantize(data, scale, per_tensor_scale=s_t)).all()
    assert data.tolist() == [[0xCC] * 8] * 2  # -2.0 twice


def test_scales_are_normal_numbers_of_e4m3() -> None:
    x = np.geomspace(1e-12, 1e6, 64 * 16).astype(np.float32).reshape(64, 16)
    for s_t in (None, per_tensor_amax_to_scale(np.asarray(x.max()))):
        scale, _ = nvfp4_quantize(x, per_tensor_scale=s_t)
        found = scale.astype(np.float32)
        assert (found.min(), found.max()) == (2.0**-6, 448.0)


def test_with_its_own_scale_the_largest_of_a_tensor_comes_back() -> None:
    x = np.linspace(-1, 3.3, 32, dtype=np.float32).reshape(2, 16)
    s_t = per_tensor_amax_to_scale(np.asarray(np.abs(x).max()))
    scale, data = nvfp4_quantize(x, per_tensor_scale=s_t)
    assert scale.astype(np.float32).max() == 448
    back = nvfp4_dequantize(data, scale, per_tensor_scale=s_t)
    assert back.max() == np.float32(6) * (s_t * np.float32(448))


def test_a_small_block_without_a_tensor_scale_is_lost() -> None:
    x = np.full((1, 16), 1e-10, np.float32)
    assert nvfp4_dequantize(*reversed(nvfp4_quantize(x))).tolist() == [[0.0] * 16]
    s_t = per_tensor_amax_to_scale(np.asarray(x.max()))
    scale, data = nvfp4_quantize(x, per_tensor_scale=s_t)
    back = nvfp4_dequantize(data, scale, per_tensor_scale=s_t)
    assert back.tolist() == [[float(np.float32(6) * (s_t * np.float32(448)))] * 16]


@pytest.mark.parametrize("index", range(8))
def test_every_element_of_e2m1_is_reached(index: int) -> None:
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6], np.float32)
    x = np.zeros((1, 16), np.float32)
    x[0, :2] = numbers[index], -6
    scale, data = nvfp4_quantize(x)
    assert int(data[0, 0]) == index | 0xF0
    assert nvfp4_dequantize(data, scale)[0, 0] == numbers[index]
