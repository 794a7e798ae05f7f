"""ONNX's operators by opset: the examples as printed, the tables of float8, and what parts the libraries' versions."""

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance.systems import call_sets
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems.onnx.opsets import FLOAT8

CALLS = call_sets()


F32 = np.float32
quantize_linear, dequantize_linear = (FORMULAS[f"onnx/{o}Linear"].function for o in ("Quantize", "Dequantize"))


def numbers(value: np.ndarray) -> list[float]:
    return value.astype(np.float64).ravel().tolist()


def quantize(x: list[float], dtype: str, **more: object) -> list[float]:
    y = quantize_linear(np.array(x, F32), np.asarray(1, F32), output_dtype=dtype, **more)
    return numbers(y)


QUANTIZED = [
    [128, 129, 130, 255, 1, 0],
    [0, 0.5, 1, 448, 96],
    [0, 0.5, 1, 49152, 96],
    [32767, 32703, 32769, 32765, 32768, 32766, 32769, 32765, 65535, 0, 65535, 0],
    [256, -1, 258, 254, 257, 255, 258, 254, 32767, -32767, 32767, -32768, 32767, -32768, 32767, -32768],
    [1, 2, 3, 5, 0, 0, 3, 4, 4, 5, 5, 11],
    [1, 2, 3, 5, -8, -6, 3, 4, 4, 5, 5, 7],
    [4, 8, 21, 3, 1, 4, 1, 1, 2, 6, 4, 4],
]
DEQUANTIZED = [
    [-256, -250, 0, 254],
    [0, 1, 2, 896, -208],
    [0, 1, 2, 896, -208],
    [0, 1, 2, 98304, -192],
    [-5534, -3534, 2, 466],
]


@pytest.mark.parametrize(
    ("formula", "check", "printed"),
    [
        ("onnx/QuantizeLinear", "examples", QUANTIZED),
        ("onnx/DequantizeLinear", "dequantized-examples", DEQUANTIZED),
    ],
)
def test_the_examples_come_out_as_printed(formula: str, check: str, printed: list[list[float]]) -> None:
    found = [numbers(FORMULAS[formula].function(**call)) for call in CALLS[formula, check].build()]
    assert found == printed


# The two tables of Cast: infinity, a number beyond the largest, and the largest.
SATURATING = {"float8_e4m3fn": 448, "float8_e4m3fnuz": np.nan, "float8_e5m2": 57344, "float8_e5m2fnuz": np.nan}
NOT_SATURATING = {"float8_e4m3fn": np.nan, "float8_e4m3fnuz": np.nan, "float8_e5m2": np.inf, "float8_e5m2fnuz": np.nan}


@pytest.mark.parametrize("name", FLOAT8)
def test_the_tables_of_float8(name: str) -> None:
    largest = float(ml_dtypes.finfo(getattr(ml_dtypes, name)).max)
    for saturate, of_infinity, beyond in ((1, SATURATING, largest), (0, NOT_SATURATING, NOT_SATURATING[name])):
        found = quantize([np.inf, -np.inf, 1e9, -1e9, largest, np.nan], name, saturate=saturate)
        inf = of_infinity[name]
        assert repr(found) == repr([float(v) for v in (inf, -inf, beyond, -beyond, largest, np.nan)]).replace(
            "-nan", "nan"
        )


@pytest.mark.parametrize("name", FLOAT8)
def test_minus_zero_stays_where_the_type_has_it(name: str) -> None:
    zero = quantize_linear(np.array([-0.0], F32), np.asarray(1, F32), output_dtype=name)
    assert np.signbit(zero.astype(F32)).tolist() == [not name.endswith("fnuz")]


def test_every_code_comes_back() -> None:
    for name in ("int2", "uint2", "int4", "uint4", "int8", "uint8"):
        info = ml_dtypes.iinfo(getattr(ml_dtypes, name, name))
        codes = np.arange(int(info.min), int(info.max) + 1).astype(getattr(ml_dtypes, name, name))
        scale, zero = np.asarray(0.3, F32), np.asarray(1).astype(codes.dtype)
        reals = dequantize_linear(codes, scale, zero)
        assert numbers(quantize_linear(reals, scale, zero)) == numbers(codes)


def test_blocks_are_an_axis_of_repeated_scales() -> None:
    x = np.linspace(-3, 3, 15, dtype=F32).reshape(3, 5)
    scales = np.array([0.5, 0.25, 1], F32)
    by_axis = quantize_linear(x, np.repeat(scales, 2)[:5], axis=1)
    by_block = quantize_linear(x, np.tile(scales, (3, 1)), axis=1, block_size=2)
    assert numbers(by_axis) == numbers(by_block)


def test_minus_infinity_takes_the_highest_code_where_int32_wraps() -> None:
    x, scale, zero = np.array([-np.inf, 3e9, np.nan], F32), np.asarray(1, F32), np.asarray(-1, np.int8)
    assert numbers(quantize_linear(x, scale, zero)) == [-128, 127, -128]
    assert numbers(FORMULAS["onnx/QuantizeLinear@reference-1.23"].function(x, scale, zero)) == [127, 127, 127]


def test_the_odd_last_code_of_four_bits_wraps_in_onnxruntime() -> None:
    x, scale, zero = np.array([np.inf, np.inf, np.inf], F32), np.asarray(1, F32), np.asarray(1).astype(ml_dtypes.int4)
    measured = FORMULAS["onnx/QuantizeLinear@onnxruntime-1.31"].function
    assert numbers(measured(x, scale, zero)) == [7, 7, -8]
    assert numbers(measured(x[:2], scale, zero)) == [7, 7]


@pytest.mark.parametrize("opset", [9, 11, 22, 26])
def test_an_opset_without_a_version_of_the_operator_is_refused(opset: int) -> None:
    with pytest.raises(ValueError, match=f"opset={opset}"):
        quantize_linear(np.zeros(1, F32), np.asarray(1, F32), opset=opset)
