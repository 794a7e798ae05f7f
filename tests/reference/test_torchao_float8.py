"""torchao's float8: what holds of scales and codes together."""

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference import FORMULAS
from halfeven.reference.systems.torchao.float8 import _BITS, _half_way, _root
from oracles.torchao_float8 import logarithm

choose_scale_float8 = FORMULAS["torchao/choose_scale_float8"].function
quantize_affine_float8 = FORMULAS["torchao/quantize_affine_float8"].function
dequantize_affine_float8 = FORMULAS["torchao/dequantize_affine_float8"].function
from_hp_to_floatx = FORMULAS["torchao/from_hp_to_floatx"].function
from_hp_to_floatx_static = FORMULAS["torchao/from_hp_to_floatx_static"].function

NAMES = ("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz")


@pytest.mark.parametrize("name", NAMES)
def test_a_code_comes_back_from_its_number(name: str) -> None:
    codes = np.arange(256).astype(np.uint8).view(np.dtype(getattr(ml_dtypes, name)))
    finite = codes[np.isfinite(codes.astype(np.float32))]
    for scale in (np.float32(1), np.float32(0.1), np.float32(41)):
        s = np.asarray(scale)
        back = quantize_affine_float8(dequantize_affine_float8(finite, s), s, name)
        assert back.tobytes() == finite.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_static_scale_that_is_the_dynamic_one_gives_the_same_codes(name: str) -> None:
    x = np.linspace(-3, 7, 24, dtype=np.float32).reshape(4, 6)
    dynamic = from_hp_to_floatx(x, (1, 6), name)
    static = from_hp_to_floatx_static(x, dynamic["scale"], (1, 6), name)
    assert static["data"].tobytes() == dynamic["data"].tobytes()


def test_blocks_do_not_see_each_other() -> None:
    x = np.linspace(-3, 7, 24, dtype=np.float32).reshape(4, 6)
    whole = from_hp_to_floatx(x, (2, 3), "float8_e4m3fn")
    for i, j in ((0, 0), (0, 1), (1, 0), (1, 1)):
        rows, columns = slice(2 * i, 2 * i + 2), slice(3 * j, 3 * j + 3)
        alone = from_hp_to_floatx(x[rows, columns], (2, 3), "float8_e4m3fn")
        assert whole["data"][rows, columns].tobytes() == alone["data"].tobytes()
        assert whole["scale"][i, j] == alone["scale"][0, 0]


def test_a_block_of_zeros_has_no_codes_unless_its_magnitude_has_a_bound() -> None:
    x = np.zeros((1, 4), np.float32)
    bare = choose_scale_float8(x, (1, 4))
    assert bare.tolist() == [[0.0]]
    assert np.isnan(quantize_affine_float8(x, bare).astype(np.float32)).all()
    bounded = choose_scale_float8(x, (1, 4), hp_value_lb=1e-12)
    assert quantize_affine_float8(x, bounded).astype(np.float32).tolist() == [[0.0] * 4]


# The first mantissa, in units of 2^-23 above one, that torchao 0.18 rounds up from exponent k: of every float32.
FIRST = {
    0: 3474676,
    -1: 3474675,
    1: 3474675,
    2: 3474677,
    -4: 3474677,
    -7: 3474674,
    5: 3474674,
    8: 3474680,
    33: 3474660,
    62: 3474691,
    -63: 3474660,
    64: 3474707,
    65: 3474644,
    127: 3474644,
    -126: 3474707,
}


@pytest.mark.parametrize("k", FIRST)
def test_where_a_float32_logarithm_turns_to_the_next_power_of_two(k: int) -> None:
    assert math.ceil((_half_way(k, 24) - 1) * 2**23) == FIRST[k]


def test_the_exact_turn_is_the_root_of_two() -> None:
    below = 2**23 + 3474675
    assert below**2 < 2 * 4**23 < (below + 1) ** 2
    for precision in (8, 11, 24):
        for k in (-9, 0, 5):
            assert (_half_way(k, precision) ** 2 > 2) == (k % 2 == 0)
    assert math.ceil(_root(1) / 2**_BITS * 2**23) == below + 1


def test_the_digits_of_a_logarithm_bracket_it() -> None:
    """2^(n / 2^k) <= x^(2^k) for the first k binary digits n, by exact powers of integers."""
    for x in (Fraction(3, 2), Fraction(11863283, 2**23), Fraction(2**23 + 1, 2**23), Fraction(7, 1), Fraction(1, 3)):
        digits = int(logarithm(x) * 2**12 // 1)
        assert Fraction(2) ** digits <= x ** (2**12) < Fraction(2) ** (digits + 1)
    assert logarithm(Fraction(1, 8)) == -3
