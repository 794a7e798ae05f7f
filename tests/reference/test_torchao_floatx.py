"""torchao's floatx: what is said of every format, besides the calls that its derivation repeats."""

from itertools import product

import numpy as np
import pytest

from halfeven.reference import FORMULAS

f32_to_floatx_unpacked = FORMULAS["torchao/f32_to_floatx_unpacked"].function
floatx_unpacked_to_f32 = FORMULAS["torchao/floatx_unpacked_to_f32"].function
choose_qparams_affine_floatx = FORMULAS["torchao/choose_qparams_affine_floatx"].function
quantize_affine_floatx = FORMULAS["torchao/quantize_affine_floatx"].function
dequantize_affine_floatx = FORMULAS["torchao/dequantize_affine_floatx"].function
FORMATS = [(e, m) for e, m in product(range(1, 8), range(7)) if 1 + e + m <= 8]


@pytest.mark.parametrize(("ebits", "mbits"), FORMATS)
def test_a_number_has_its_own_code(ebits: int, mbits: int) -> None:
    codes = np.arange(2 ** (1 + ebits + mbits)).astype(np.uint8)
    numbers = floatx_unpacked_to_f32(codes, ebits, mbits)
    assert f32_to_floatx_unpacked(numbers, ebits, mbits).tolist() == codes.tolist()


@pytest.mark.parametrize(("ebits", "mbits"), FORMATS)
def test_numbers_ascend_and_the_second_half_mirrors_the_first(ebits: int, mbits: int) -> None:
    half = 2 ** (ebits + mbits)
    numbers = floatx_unpacked_to_f32(np.arange(2 * half).astype(np.uint8), ebits, mbits)
    assert numbers[0] == 0
    assert (np.diff(numbers[:half]) > 0).all()
    assert numbers[half:].tobytes() == (-numbers[:half]).tobytes()


def test_the_largest_numbers_of_the_formats_that_have_names() -> None:
    largest = {(2, 1): 6.0, (3, 2): 28.0, (2, 3): 7.5, (4, 3): 480.0, (5, 2): 114688.0}
    found = {f: float(floatx_unpacked_to_f32(np.array(2 ** sum(f) - 1, np.uint8), *f)) for f in largest}
    assert found == largest


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_the_largest_of_a_row_comes_back_within_a_step_of_the_scale(dtype: str) -> None:
    x = np.array([[0.3, -7.1, 2.0], [1e-3, 2e-3, -5e-4]], dtype)
    for e, m in FORMATS:
        scale = choose_qparams_affine_floatx(x, e, m)
        codes = quantize_affine_floatx(x, scale, e, m)
        # The scale may be rounded either way, so the largest may be one code lower, and no more.
        top = (codes & (2 ** (e + m) - 1)).max(axis=1).tolist()
        assert all(t in {2 ** (e + m) - 1, 2 ** (e + m) - 2} for t in top)
        assert dequantize_affine_floatx(codes, scale, e, m).shape == x.shape
