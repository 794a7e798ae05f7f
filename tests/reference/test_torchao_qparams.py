"""torchao's scales and zero points: the document's printed examples, and what must hold whatever the numbers."""

import ml_dtypes
import numpy as np
import pytest

from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems.torchao.granularity import get_block_size, get_reduction_params

choose_qparams_affine = FORMULAS["torchao/choose_qparams_affine"].function
quantize_affine = FORMULAS["torchao/quantize_affine"].function
dequantize_affine = FORMULAS["torchao/dequantize_affine"].function
F32 = np.float32
RANGE = np.array([-3.5, 10.2], F32)
MAPPINGS = ("SYMMETRIC", "SYMMETRIC_NO_CLIPPING_ERR", "ASYMMETRIC")


def weights(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    return np.random.default_rng(seed).normal(0.3, 1.7, shape).astype(F32)


def test_the_printed_scales_of_the_mappings() -> None:
    """(10.2 - (-10.2)) / (7 - (-8)) and (10.2 - (-3.5)) / (7 - (-8)), on the codes -8 to 7."""
    scale, zero_point = choose_qparams_affine(RANGE, "SYMMETRIC", (2,), "int8", -8, 7)
    assert scale == F32(10.2) / F32(7.5)
    assert zero_point == 0
    scale, zero_point = choose_qparams_affine(RANGE, "ASYMMETRIC", (2,), "int8", -8, 7)
    assert scale == (F32(10.2) + F32(3.5)) / F32(15)
    assert zero_point == -8 + 4  # 3.5 is 3.83 codes of 0.913
    scale, _ = choose_qparams_affine(RANGE, "SYMMETRIC_NO_CLIPPING_ERR", (2,), "int8", -8, 7)
    assert scale == F32(10.2) / F32(7)


@pytest.mark.parametrize(
    ("mapping", "target", "shown", "zero_point"),
    [
        ("SYMMETRIC", "int8", "0.08", 0),
        ("SYMMETRIC_NO_CLIPPING_ERR", "int8", "0.08031496", 0),
        ("ASYMMETRIC", "int8", "0.05372549", -63),
        ("SYMMETRIC", "uint8", "0.08", 128),
        ("SYMMETRIC_NO_CLIPPING_ERR", "uint8", "0.04", 128),
        ("ASYMMETRIC", "uint8", "0.05372549", 65),
        ("SYMMETRIC", "int1", "20.4", 0),
    ],
)
def test_measured_scales(mapping: str, target: str, shown: str, zero_point: int) -> None:
    scale, point = choose_qparams_affine(RANGE, mapping, (2,), target)
    assert str(scale) == shown
    assert point == zero_point


def test_the_printed_example_of_the_reduction() -> None:
    assert get_reduction_params((3, 3, 2, 10), (3, 3, 10, 10)) == ((3, 3, 5, 2, 10), (0, 1, 3, 4))


@pytest.mark.parametrize(
    ("granularity", "given", "block"),
    [
        ("PerTensor", {}, (3, 3, 10, 10)),
        ("PerAxis", {"axis": 0}, (1, 3, 10, 10)),
        ("PerAxis", {"axis": 1}, (3, 1, 10, 10)),
    ],
)
def test_the_printed_table_of_granularities(granularity: str, given: dict[str, int], block: tuple[int, ...]) -> None:
    assert get_block_size((3, 3, 10, 10), granularity, **given) == block


@pytest.mark.parametrize("target", ["int8", "uint8", "uint4", "int4"])
def test_zero_has_a_code_of_its_own(target: str) -> None:
    x = np.concatenate([weights(1, (64, 6)), np.abs(weights(2, (32, 6))), -np.abs(weights(3, (32, 6)))])
    scale, zero_point = choose_qparams_affine(x, "ASYMMETRIC", (1, 6), target, zero_point_dtype="int32")
    zero = np.zeros_like(x)
    codes = quantize_affine(zero, (1, 6), scale, zero_point, target)
    assert np.array_equal(codes, np.broadcast_to(zero_point[:, None], x.shape))
    reals = dequantize_affine(codes, (1, 6), scale, zero_point, codes.dtype)
    assert reals.tobytes() == zero.tobytes()


@pytest.mark.parametrize("target", ["int8", "int4", "int16"])
def test_nothing_is_clipped_without_clipping_error(target: str) -> None:
    """Codes computed without a limit stay on the grid of a signed dtype."""
    x = weights(4, (256, 8))
    scale, zero_point = choose_qparams_affine(x, "SYMMETRIC_NO_CLIPPING_ERR", (1, 8), target, zero_point_dtype="int32")
    free = quantize_affine(x, (1, 8), scale, zero_point, "int32")
    limited = quantize_affine(x, (1, 8), scale, zero_point, target)
    assert np.array_equal(free, limited)
    symmetric, _ = choose_qparams_affine(x, "SYMMETRIC", (1, 8), target)
    clipped = quantize_affine(x, (1, 8), symmetric, zero_point, "int32")
    assert not np.array_equal(clipped, quantize_affine(x, (1, 8), symmetric, zero_point, target))


@pytest.mark.parametrize("mapping", MAPPINGS)
def test_a_block_is_as_a_tensor_by_itself(mapping: str) -> None:
    x = weights(5, (6, 8))
    scale, zero_point = choose_qparams_affine(x, mapping, (2, 4), "int8", zero_point_dtype="int32", keepdim=True)
    assert scale.shape == (3, 2)
    for i in range(3):
        for j in range(2):
            block = x[2 * i : 2 * i + 2, 4 * j : 4 * j + 4]
            alone = choose_qparams_affine(block, mapping, (2, 4), "int8", zero_point_dtype="int32")
            assert (scale[i, j], zero_point[i, j]) == alone


def test_the_versions_part_at_small_ranges_only() -> None:
    """0.18 takes the least normal number where the documents take the machine epsilon."""
    later = FORMULAS["torchao/choose_qparams_affine@0.18"].function
    for span, same in ((2.0**-16, False), (2.0**-15, True)):
        x = np.array([0, span * 255 / 256], F32)
        documented, measured = (
            f(x, "ASYMMETRIC", (2,), "uint8", zero_point_dtype="int32") for f in (choose_qparams_affine, later)
        )
        assert (documented[0] == measured[0]) == same


def test_an_end_of_the_grid_is_rounded_to_the_input_s_dtype() -> None:
    """301 is 300 or 302 in bfloat16, of which 300 is the even one; the zero point counts from there."""
    x = np.array([-7.1, 7.0], ml_dtypes.bfloat16)
    scale, point = choose_qparams_affine(x, "ASYMMETRIC", (2,), "int16", -301, 500, zero_point_dtype="int32")
    assert point == ml_dtypes.bfloat16(ml_dtypes.bfloat16(-300) - np.rint(x[0] / scale))


def test_a_block_of_minus_one_keeps_what_is_left() -> None:
    """A block of 0 divides nothing, and one of -1 is the rest of the blocks, where one is."""
    x = np.arange(4, dtype=F32).reshape(1, 4)
    scale, _ = choose_qparams_affine(x, "ASYMMETRIC", (-1, 2), "int8", keepdim=True)
    assert scale.shape == (1, 2)
    for block, error in (((0, 4), ZeroDivisionError), ((1, -1), RuntimeError), ((-1, -1), RuntimeError)):
        with pytest.raises(error, match="keepdim"):
            choose_qparams_affine(x, "ASYMMETRIC", block, "int8", keepdim=True)
