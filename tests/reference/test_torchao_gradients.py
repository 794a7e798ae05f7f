"""torchao's gradients of fake quantize: the sum over a block, and how far the chain of 0.18 parts from the equation."""

import numpy as np

from halfeven.reference import FORMULAS

gradients = FORMULAS["torchao/fake_quantize_affine_gradients"].function
F32 = np.float32


def test_the_chain_is_three_roundings_from_the_gradient_of_the_input() -> None:
    """(g * s) * (1 / s): each factor is off by half an ulp at most, so the product by 3 * 2^-24 of itself and some."""
    rng = np.random.default_rng(7)
    x, g = rng.normal(0, 2, 400).astype(F32), rng.normal(0, 1, 400).astype(F32)
    given = {"block_size": (1,), "scale": rng.uniform(0.05, 2, 400).astype(F32), "quant_dtype": "int8"}
    given |= {"zero_point": np.zeros(400, F32), "grad": g, "quant_min": -8, "quant_max": 7}
    chained = FORMULAS["torchao/fake_quantize_affine_gradients@0.18"].function(x, **given)
    exact = gradients(x, **given)
    apart = np.abs(chained[0].astype(np.float64) - exact[0]) / np.abs(g)
    assert 0 < apart.max() <= 3 * 2.0**-24 * (1 + 2.0**-20)


def test_the_gradients_are_the_slopes_between_ties() -> None:
    """With the code held, the real is (code - zero_point) * scale, and codes follow input / scale with slope one.

    Moving scale and input together by a factor leaves the code: the real moves by the same factor.
    """
    x = np.array([-3.2, -0.9, 0.0, 0.4, 1.3, 2.75, 6.5, 9.0, -11.0], F32)
    one = np.asarray(1, F32)
    given = {
        "block_size": (9,),
        "scale": one,
        "zero_point": one,
        "quant_dtype": "int8",
        "quant_min": -8,
        "quant_max": 7,
    }
    of_x, of_s, of_z = gradients(x, **given, grad=np.ones_like(x))
    real = FORMULAS["torchao/fake_quantize_affine"].function(x, **given)
    assert np.abs(of_x * x + of_s - real).max() <= 2.0**-22  # Euler: homogeneous of degree one in (x, s)
    outside = (real == 6) & (x > 6.5) | (real == -9)
    assert of_z.tolist() == np.where(outside, -1, 0).tolist()
    assert outside.sum() == 2
