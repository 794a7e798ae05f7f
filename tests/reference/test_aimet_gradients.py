"""Properties of AIMET's gradients: they are derivatives where there are any, and sums over what shares a parameter."""

import numpy as np
import pytest

from halfeven.reference import FORMULAS

F64 = np.float64
quantize_dequantize = FORMULAS["aimet/affine.quantize_dequantize"].function
gradient_of = FORMULAS["aimet/quantize_dequantize_gradient"].function


def test_the_scale_s_gradient_is_the_slope_between_ties() -> None:
    """Between two ties x' = (q + o + z) * s is linear in s: its slope is q + o + z, and R - u is that less x / s."""
    s, o, x = np.asarray(0.5), np.asarray(1.0), np.array([-9.0, -0.3125, 0.625, 9.0])
    step = np.asarray(2.0**-12)
    for shift in (0.0, 0.5):
        grid = {"qmin": -4, "qmax": 3, "zero_point_shift": shift}
        values = [quantize_dequantize(x, s + d, o, **grid) for d in (0 * step, step)]
        slope = (values[1] - values[0]) / step
        passed = np.array([0, 1, 1, 0])
        expected = slope - passed * x / s
        for element, wanted in zip(x, expected, strict=True):
            _, found, _ = gradient_of(np.array([element]), s, o, gradient=np.ones(1), **grid)
            assert found == wanted


def test_a_clipped_element_gives_its_scale_the_shift() -> None:
    """Twelve elements at the upper end: 3 each by the library's formula, half a code more by the equation's."""
    x, s = np.array([6.0] * 12), np.asarray(1.0)
    given = {"qmin": -4, "qmax": 3, "gradient": np.ones(12), "zero_point_shift": 0.5}
    ours = gradient_of(x, s, 0 * s, **given)[1]
    theirs = FORMULAS["aimet/quantize_dequantize_gradient@2.42"].function(x, s, 0 * s, **given)[1]
    assert (ours, theirs) == (42, 36)


def test_what_is_inside_is_told_by_the_rounded_code() -> None:
    x, s = np.array([-8.5, -8.6, 7.5, 7.4]), np.asarray(1.0)
    found, _, _ = gradient_of(x, s, 0 * s, -8, 7, np.ones(4))
    assert found.tolist() == [1, 0, 0, 1]


def test_blocks_are_summed_by_themselves() -> None:
    x = np.arange(12, dtype=F64).reshape(2, 6) - 5
    s, g = np.ones((2, 2)), np.ones((2, 6))
    whole = gradient_of(x, s, 0 * s, -2, 1, g, (1, 3))
    for i, j in np.ndindex(2, 2):
        part = np.s_[i : i + 1, 3 * j : 3 * j + 3]
        alone = gradient_of(x[part], np.asarray(1.0), np.asarray(0.0), -2, 1, g[part])
        assert whole[1][i, j] == alone[1]
        assert whole[2][i, j] == alone[2]
        assert (whole[0][part] == alone[0]).all()


@pytest.mark.parametrize("symmetric", [True, False])
def test_min_and_max_get_what_scale_and_offset_get(symmetric: bool) -> None:
    low, high = np.array([-1], np.float32), np.array([2], np.float32)
    d_scale, d_offset = np.array([3], np.float32), np.array([0], np.float32)
    d_min, d_max = FORMULAS["aimet/range_gradient"].function(low, high, 0, 3, symmetric, d_scale, d_offset)
    assert (d_min, d_max) == (-1, 1)
