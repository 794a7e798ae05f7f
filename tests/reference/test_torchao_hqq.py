"""HQQ with a scale only: the bound on sums whose order no document states; without the loop, what it undoes."""

from fractions import Fraction

import numpy as np
import pytest

from halfeven.reference import FORMULAS

dequantize_affine_float_domain = FORMULAS["torchao/dequantize_affine_float_domain"].function
choose_qparams_and_quantize_affine_hqq = FORMULAS["torchao/choose_qparams_and_quantize_affine_hqq"].function
choose_qparams_and_quantize_scale_only_hqq = FORMULAS["torchao/choose_qparams_and_quantize_scale_only_hqq"].function
F32 = np.float32


def weights(rows: int, columns: int) -> np.ndarray:
    return np.random.default_rng(11).normal(0, 1, (rows, columns)).astype(F32)


@pytest.mark.parametrize("group", [16, 64])
def test_a_fitted_scale_is_within_the_bound_of_its_sums(group: int) -> None:
    """One turn: sum x q over sum q^2, the first off by (n - 1) 2^-24 of the magnitudes, the second exact, one division.

    Both sums are of codes below 2^4, so the squares add to less than 2^24.
    """
    w = weights(8, 128)
    _, scale = choose_qparams_and_quantize_scale_only_hqq(w, (1, group), -8, 7, iters=1)
    inexact = 0
    for part, s in zip(w.reshape(-1, group), scale.ravel(), strict=True):
        first = np.abs(part).max() / F32(8)
        codes = [int(c) for c in np.clip(np.rint(part / first), -8, 7)]
        products = [Fraction(float(v)) * c for v, c in zip(part, codes, strict=True)]
        squares = sum(c * c for c in codes)
        unit = Fraction(1, 2**24)
        sums = (Fraction(group - 1) + 1) * unit * sum(map(abs, products)) / squares  # a rounding of each product too
        apart = abs(Fraction(float(s)) - sum(products) / squares)
        assert apart <= sums + unit * Fraction(float(s)) * (1 + unit)
        inexact += apart != 0
    assert inexact


@pytest.mark.parametrize("nbits", [2, 3, 4, 8])
def test_the_codes_dequantize_in_the_float_domain(nbits: int) -> None:
    """Scale and zero point are those of the FLOAT domain: half a step is lost at most, but for the roundings."""
    w = weights(4, 32)
    q, scale, zero_point, shape = choose_qparams_and_quantize_affine_hqq(w, nbits, 16, compute_dtype="float32")
    assert shape == w.shape
    grid = {"input_dtype": "uint8", "quant_min": 0, "quant_max": 2**nbits - 1}
    back = dequantize_affine_float_domain(q, (1, 16), scale.reshape(4, 2), zero_point.reshape(4, 2), **grid)
    lost = np.abs(back - w).reshape(4, 2, 16).max(axis=2) / scale.reshape(4, 2)
    # The zero of 4 bits is rounded, so that the ends of a group may lie half a step beyond the grid.
    assert lost.max() <= (1 if nbits == 4 else 0.5) * (1 + 2.0**-15)
    assert lost.max() > 0.3
