"""LPBQ: the scales are exact products, and the largest of a group keeps its size."""

from fractions import Fraction

import numpy as np

from halfeven.reference import FORMULAS

F32 = np.float32
lpbq_scale = FORMULAS["aimet/lpbq_scale"].function


def test_scales_are_products_and_the_largest_is_kept() -> None:
    rng = np.random.default_rng(11)
    for wide in (5, 6, 8):
        high = rng.uniform(0.01, 3, (4, 8)).astype(F32) * F32(7)
        found = lpbq_scale(-high * F32(8) / F32(7), high, 4, wide, (1, -1))
        k, channel, scale = found["per_block_int_scale"], found["per_channel_scale"], found["scale"]
        assert channel.shape == (4, 1)
        assert ((k >= 1) & (k <= 2 ** (wide - 4)) & (k == np.rint(k))).all()
        assert (k.max(axis=1) == 2 ** (wide - 4)).all()
        # K is a power of two, so that nothing is rounded; other multiples are rounded once.
        raw = np.abs((high - -high * F32(8) / F32(7)) / F32(15))
        assert (scale.max(axis=1) == raw.max(axis=1)).all()
        for i, j in np.ndindex(k.shape):
            assert scale[i, j] == F32(float(Fraction(float(k[i, j])) * Fraction(float(channel[i, 0]))))


def test_a_block_alone_keeps_its_scale() -> None:
    high = np.array([0.7, 1.4, 100], F32)
    found = lpbq_scale(-high, high, 4, 8)
    assert (found["per_block_int_scale"] == 16).all()
    assert (found["scale"] == (high + high) / F32(15)).all()
