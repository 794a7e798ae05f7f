"""torchao's quantize, dequantize and fake quantize: what must hold whatever the numbers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfeven.reference import FORMULAS


def documented(symbol: str) -> Callable[..., Any]:
    return FORMULAS[f"torchao/{symbol}"].function


quantize_affine, quantize_affine_0_18 = documented("quantize_affine"), documented("quantize_affine@0.18")
dequantize_affine, dequantize_affine_0_11 = documented("dequantize_affine"), documented("dequantize_affine@0.11")
quantize_affine_float_domain = documented("quantize_affine_float_domain")
dequantize_affine_float_domain = documented("dequantize_affine_float_domain")
quantize_affine_no_zero_point = documented("quantize_affine_no_zero_point")
fake_quantize_affine = documented("fake_quantize_affine")
fake_quantize_affine_cachemask = documented("fake_quantize_affine_cachemask")
from_hp_to_intx, from_hp_to_intx_static = documented("from_hp_to_intx"), documented("from_hp_to_intx_static")
F32 = np.float32
GRID = (-8, 7)
SCALES = (1.0, 0.1, 0.37, 3.0, 1e-3)


def bits(a: np.ndarray) -> list[str]:
    return ["nan" if np.isnan(v) else float(v).hex() for v in a.ravel().astype(np.float64)]


def inputs(scale: float) -> np.ndarray:
    return np.linspace(-12 * scale, 12 * scale, 501).astype(F32)


def parameters(scale: float, zero_point: int = 1) -> dict[str, object]:
    return {"block_size": (501,), "scale": np.asarray(scale, F32), "zero_point": np.asarray(zero_point)}


@pytest.mark.parametrize("scale", SCALES)
def test_half_a_step_at_most_is_lost(scale: float) -> None:
    """Where the quotient is on the grid, real and input are half a scale apart, but for the roundings."""
    x = inputs(scale)
    q = quantize_affine(x, **parameters(scale), output_dtype="int8", quant_min=-8, quant_max=7)
    back = dequantize_affine(q, **parameters(scale), input_dtype="int8")
    s = float(F32(scale))
    on_grid = (x / s + 1 >= -8) & (x / s + 1 <= 7)
    assert 200 < on_grid.sum() < 501
    lost = np.abs(x.astype(np.float64) - back)[on_grid]
    assert lost.max() <= s / 2 * (1 + 2**-20)
    assert lost.max() > s / 2 * (1 - 2**-3)


@pytest.mark.parametrize("scale", SCALES)
def test_fake_quantize_is_dequantize_of_quantize(scale: float) -> None:
    x = inputs(scale)
    q = quantize_affine(x, **parameters(scale), output_dtype="int8", quant_min=-8, quant_max=7)
    back = dequantize_affine(q, **parameters(scale), input_dtype="int8")
    fake = fake_quantize_affine(x, **parameters(scale), quant_dtype="int8", quant_min=-8, quant_max=7)
    assert fake.tobytes() == back.tobytes()
    again, mask = fake_quantize_affine_cachemask(x, **parameters(scale), quant_dtype="int8", quant_min=-8, quant_max=7)
    assert again.tobytes() == fake.tobytes()
    assert 0 < mask.sum() < mask.size


@pytest.mark.parametrize("quantize", [quantize_affine, quantize_affine_0_18])
@pytest.mark.parametrize("scale", SCALES)
def test_every_code_comes_back(quantize: object, scale: float) -> None:
    q = np.arange(-128, 128).astype(np.int8)
    given = {"block_size": (256,), "scale": np.asarray(scale, F32), "zero_point": np.asarray(3)}
    back = dequantize_affine(q, **given, input_dtype="int8")
    assert np.array_equal(quantize(back, **given, output_dtype="int8"), q)


def test_codes_rise_with_the_input_past_the_ends() -> None:
    """The document's clamp; 0.18 falls from the top of int32 to its bottom."""
    x = np.array([-np.inf, -3e9, -1, 0, 1, 2.0**31, 3e9, np.inf], F32)
    given = {"block_size": (8,), "scale": np.asarray(1, F32), "zero_point": np.asarray(0), "output_dtype": "int32"}
    assert (np.diff(quantize_affine(x, **given).astype(np.int64)) >= 0).all()
    assert quantize_affine_0_18(x, **given).tolist()[-2:] == [-(2**31)] * 2


def test_ties_go_to_even_before_the_zero_point() -> None:
    x = np.array([0.5, 1.5, 2.5, -0.5], F32)
    q = quantize_affine(x, (4,), np.asarray(1, F32), np.asarray(1), "int8")
    assert q.tolist() == [1, 3, 3, 1]


def test_where_the_zero_point_is_subtracted() -> None:
    """257 - 1 in bfloat16, which has no 257, and in int32."""
    given = {"block_size": (1,), "scale": np.ones(1, F32), "zero_point": np.ones(1, np.int32)}
    q = np.array([257], np.int32)
    for function, expected in ((dequantize_affine, 255), (dequantize_affine_0_11, 256)):
        assert function(q, **given, input_dtype="int32", output_dtype="bfloat16").tolist() == [expected]


def test_the_float_domain_counts_from_the_middle() -> None:
    """Codes 0 to 15 stand for zero_point + (code - 8) * scale, and each of these reals for its code."""
    given = {"block_size": (16,), "scale": np.asarray(0.25, F32), "zero_point": np.asarray(1.5, F32)}
    codes = np.arange(16).astype(np.uint8)
    reals = dequantize_affine_float_domain(codes, **given, input_dtype="uint4")
    assert reals.tolist() == [1.5 + (c - 8) * 0.25 for c in range(16)]
    assert np.array_equal(quantize_affine_float_domain(reals, **given, output_dtype="uint4"), codes)


def test_a_float8_is_cast_and_not_rounded_to_an_integer() -> None:
    x = np.array([0.3, 1.5, 500], F32)
    q = quantize_affine_no_zero_point(x, (3,), np.asarray(1, F32), None, "float8_e4m3fn")
    assert q.astype(F32).tolist() == [0.3125, 1.5, 448]


@pytest.mark.parametrize("target", ["int8", "uint8", "uint4"])
@pytest.mark.parametrize("block", [(4, 8), (1, 8), (2, 4)])
def test_a_static_tensor_is_the_dynamic_one_under_its_parameters(target: str, block: tuple[int, ...]) -> None:
    x = np.linspace(-2, 3, 32, dtype=F32).reshape(4, 8)
    held = from_hp_to_intx(x, "ASYMMETRIC", block, target, zero_point_dtype="int32")
    static = from_hp_to_intx_static(x, held["scale"], held["zero_point"], block, target)
    for name, array in held.items():
        assert static[name].tobytes() == array.tobytes()
    assert held["dequantized"].shape == x.shape
    assert np.abs(held["dequantized"] - x).max() <= held["scale"].max() / 2 * F32(1 + 2**-20)
