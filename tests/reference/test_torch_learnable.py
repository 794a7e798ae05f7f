"""torch's learnable fake quantization: forward and backward take different zero points per tensor."""

from fractions import Fraction

import numpy as np
import pytest

from halfeven.reference.catalogue import FORMULAS

F32 = np.float32
GRID = (-128, 127)
per_tensor, per_channel, per_tensor_gradients, per_channel_gradients = (
    FORMULAS[f"torch/_fake_quantize_learnable_per_{part}_affine{which}"].function
    for which in ("", ".backward")
    for part in ("tensor", "channel")
)
fixed_per_tensor_gradient = FORMULAS["torch/fake_quantize_per_tensor_affine.backward"].function


def one(value: float) -> np.ndarray:
    return np.array([value], F32)


@pytest.mark.parametrize(
    ("zero", "forward", "backward"), [(-1, -1, 0), (-2, -2, -1), (0.5, 0, 1), (1, 1, 1), (2.5, 2, 3)]
)
def test_the_zero_point_of_the_gradient_is_another(zero: float, forward: int, backward: int) -> None:
    # Beyond the grid the result is (127 - z) * s, and the gradient of the scale 127 - z.
    y = per_tensor(one(1000), one(0.5), one(zero), *GRID)
    _, of_scale, _ = per_tensor_gradients(one(1000), one(0.5), one(zero), *GRID, one(1))
    assert (127 - 2 * y[0], 127 - of_scale[0]) == (forward, backward)
    y = per_channel(one(1000), one(0.5), one(zero), 0, *GRID)
    x = np.full((1, 1), 1000, F32)
    _, of_scale, _ = per_channel_gradients(x, one(0.5), one(zero), 0, *GRID, np.ones((1, 1), F32))
    assert (127 - 2 * y[0], 127 - of_scale[0]) == (forward, forward)


def test_a_channel_with_all_the_elements_has_the_gradients_of_the_tensor() -> None:
    rng = np.random.default_rng(2)
    x, grad = rng.normal(size=(1, 50)).astype(F32), rng.normal(size=(1, 50)).astype(F32)
    parameters = one(0.02), one(3)
    by_tensor = per_tensor_gradients(x, *parameters, *GRID, grad)
    by_channel = per_channel_gradients(x, *parameters, 0, *GRID, grad)
    for a, b in zip(by_tensor, by_channel, strict=True):
        assert a.tobytes() == b.tobytes()


def test_the_sum_of_the_terms_is_within_half_an_ulp_of_the_exact_one() -> None:
    rng = np.random.default_rng(4)
    x, grad = (rng.normal(size=200).astype(F32) for _ in range(2))
    parameters = one(0.02), one(0)
    terms = [per_tensor_gradients(x[i : i + 1], *parameters, *GRID, grad[i : i + 1]) for i in range(200)]
    _, *sums = per_tensor_gradients(x, *parameters, *GRID, grad)
    for place, total in enumerate(sums, 1):
        exact = sum((Fraction(float(t[place][0])) for t in terms), Fraction(0))
        # Half an ulp of float32, and as much again of float64 for the rounding before it.
        bound = Fraction(float(np.spacing(np.abs(total[0])))) / 2 * (1 + Fraction(1, 2**28))
        assert abs(Fraction(float(total[0])) - exact) <= bound


def test_the_mask_is_that_of_the_rounded_code() -> None:
    x = np.array([-128.5, -128.51, 127.49, 127.5, 127.51], F32)
    found = fixed_per_tensor_gradient(x, 1.0, 0, *GRID, np.ones(5, F32))
    assert found.tolist() == [1, 0, 1, 0, 0]
