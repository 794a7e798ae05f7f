"""brevitas: the numbers printed in its docstrings, and what its equations promise."""

from fractions import Fraction

import numpy as np
import pytest

from halfeven.reference.catalogue import FORMULAS

F32 = np.float32
int_quant = FORMULAS["brevitas/IntQuant"].function
rescaling_int_quant = FORMULAS["brevitas/RescalingIntQuant"].function
min_int = FORMULAS["brevitas/min_int"].function
max_int = FORMULAS["brevitas/max_int"].function
to_int = FORMULAS["brevitas/IntQuant.to_int"].function
int_quant_gradients = FORMULAS["brevitas/IntQuant.backward"].function
EXAMPLE = np.array([0.042, -0.053, 0.31, -0.44], F32)


def scalar(value: float) -> np.ndarray:
    return np.asarray(value, F32)


def test_the_example_of_int_quant() -> None:
    y = int_quant(scalar(0.01), scalar(0), 4, EXAMPLE, signed=True, narrow_range=True)
    assert [f"{v:.4f}" for v in y] == ["0.0400", "-0.0500", "0.0700", "-0.0700"]


def test_the_example_of_rescaling_int_quant() -> None:
    y, scale, zero_point, bit_width = rescaling_int_quant(EXAMPLE, scalar(0.1), 4, narrow_range=True)
    assert [f"{v:.4f}" for v in y] == ["0.0429", "-0.0571", "0.1000", "-0.1000"]
    assert f"{scale:.4f}" == "0.0143"
    assert (float(zero_point), float(bit_width)) == (0, 4)


@pytest.mark.parametrize(
    ("signed", "narrow_range", "lowest", "highest"),
    [(True, True, -127, 127), (False, True, 0, 254), (True, False, -128, 127), (False, False, 0, 255)],
)
def test_the_examples_of_min_int_and_max_int(signed: bool, narrow_range: bool, lowest: int, highest: int) -> None:
    assert min_int(signed, narrow_range, 8) == lowest
    assert max_int(signed, narrow_range, 8) == highest


@pytest.mark.parametrize(
    ("float_to_int", "x", "printed"),
    [
        ("ROUND_TO_ZERO", [-1.5, -0.5, 0.5, 1.5], [-1.0, -0.0, 0.0, 1.0]),
        ("DPU", [-1.5, -0.5, 0.5, 1.5], [-1.0, -0.0, 0.0, 2.0]),
        ("ROUND", [1.7, -1.7], [2.0, -2.0]),
        ("CEIL", [1.7, -1.7], [2.0, -1.0]),
        ("FLOOR", [1.7, -1.7], [1.0, -2.0]),
    ],
)
def test_the_examples_of_the_roundings(float_to_int: str, x: list[float], printed: list[float]) -> None:
    codes = to_int(scalar(1), scalar(-0.0), 8, np.array(x, F32), float_to_int=float_to_int)
    assert codes.tolist() == printed
    assert np.signbit(codes).tolist() == np.signbit(printed).tolist()


def test_the_zero_point_is_added_before_the_rounding() -> None:
    assert to_int(scalar(1), scalar(1), 8, np.array([0.5], F32)).tolist() == [2]
    fractional = int_quant(scalar(1), scalar(0.5), 8, np.array([0.4, 0.6, 1], F32))
    assert fractional.tolist() == [0.5, 0.5, 1.5]


def test_the_clamp_s_gradient_is_that_of_the_rounded_number() -> None:
    x = np.array([126.6, 127.4, 127.5, -128.5, -128.6], F32)
    one, zero = np.ones_like(x), np.zeros_like(x)
    grad_x, grad_scale, grad_zero_point = int_quant_gradients(one, one, zero, 8, x)
    assert grad_x.tolist() == [1, 1, 0, 1, 0]
    assert grad_zero_point.tolist() == [0, 0, -1, 0, -1]
    assert grad_scale[2:].tolist() == [127, 0.5, -128]


def test_the_largest_positive_number_of_a_full_signed_grid_is_below_the_threshold() -> None:
    y, scale, _, _ = rescaling_int_quant(np.array([1, -1], F32), scalar(1), 8)
    assert [Fraction(float(v)) for v in y] == [Fraction(127, 128), Fraction(-1)]
    assert scale == 1 / 128


@pytest.mark.parametrize("bit_width", [2.5, True, "8"])
def test_a_width_that_is_no_integer_is_refused_by_name(bit_width: object) -> None:
    with pytest.raises(TypeError, match=f"bit_width={bit_width!r} is not accepted"):
        max_int(True, False, bit_width)


def test_an_unknown_rounding_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="float_to_int='NEAREST' is not accepted: give ROUND, FLOOR"):
        to_int(scalar(1), scalar(0), 8, EXAMPLE, float_to_int="NEAREST")
