"""What the AIMET documents print, and properties of the affine functions."""

import numpy as np
import pytest

from halfeven.conformance.systems import call_sets
from halfeven.conformance.systems.aimet.affine import CALIBRATED, EXAMPLE, UNIT_RANGE
from halfeven.reference import FORMULAS

CALLS = call_sets()


F32 = np.float32
quantize = FORMULAS["aimet/affine.quantize"].function
quantize_dequantize = FORMULAS["aimet/affine.quantize_dequantize"].function
dequantize = FORMULAS["aimet/affine.dequantize"].function
CODES = [0, 0, 0, 0, 0, 0, -0.0, 1, 2, 2, 3, 4, 4, 5, 6, 7, 7, 8, 9, 10, 10, 11, 12, 13, 13, 14, *[15] * 6]


def replayed(formula: str) -> list[np.ndarray]:
    return [FORMULAS[formula].function(**arguments) for arguments in CALLS[formula, "examples"].build()]


def test_the_input_of_the_example_prints_as_the_document_prints_it() -> None:
    assert [f"{v:.4e}" for v in EXAMPLE[[0, 1, 6, 7, 26, 31]]] == [
        "-3.0000e-01",
        "-2.5000e-01",
        "-1.1921e-08",
        "5.0000e-02",
        "1.0000e+00",
        "1.2500e+00",
    ]


def test_the_printed_codes_and_their_signs() -> None:
    found = replayed("aimet/affine.quantize")
    assert len(found) == 3
    for q in found:
        assert q.tolist() == CODES
        assert np.flatnonzero(np.signbit(q)).tolist() == [6]


def test_the_values_of_the_printed_codes() -> None:
    for values in replayed("aimet/affine.quantize_dequantize")[:3]:
        assert [f"{v:.4f}" for v in values] == [f"{abs(code) / 15:.4f}" for code in CODES]


def test_the_printed_outputs_lie_on_the_grids_of_their_ranges() -> None:
    *_, calibrated, unit = replayed("aimet/affine.quantize_dequantize")
    for found, printed in ((calibrated, CALIBRATED), (unit, UNIT_RANGE)):
        assert [f"{v:.4f}" for v in found.ravel()] == [f"{v:.4f}" for v in printed.ravel()]
    arguments = list(CALLS["aimet/affine.quantize_dequantize", "examples"].build())[-2]
    codes = quantize(**arguments).reshape(5, 2, 5)
    low, high = codes.min(axis=2), codes.max(axis=2)
    zero = -arguments["offset"]
    # Calibration puts the block's ends, zero among them, at the ends of the grid.
    assert (np.minimum(low, zero) == 0).all()
    assert (np.maximum(high, zero) == 255).all()


@pytest.mark.parametrize(("qmin", "qmax"), [(0, 15), (-8, 7), (0, 255), (-128, 127)])
def test_dequantize_of_quantize_is_quantize_dequantize_in_float32(qmin: int, qmax: int) -> None:
    rng = np.random.default_rng(3)
    x, grid = rng.normal(0, 20, 4000).astype(F32), {"qmin": qmin, "qmax": qmax}
    for scale, offset in ((0.1, 0), (0.37, -5), (3, 2)):
        s, o = np.asarray(scale, F32), np.asarray(offset, F32)
        codes = quantize(x, s, o, **grid)
        assert (dequantize(codes, s, o) == quantize_dequantize(x, s, o, **grid)).all()


def test_a_shift_of_half_a_code_moves_zero_off_zero() -> None:
    x = np.zeros(1, F32)
    s, o = np.ones((), F32), np.zeros((), F32)
    assert quantize_dequantize(x, s, o, 2, True, zero_point_shift=0.5).tolist() == [0.5]
    assert quantize_dequantize(x, s, o, 2, True).tolist() == [0]


def test_where_integers_lose_the_scale() -> None:
    codes = np.array([1, 2, 100], np.int8)
    found = FORMULAS["aimet/affine.dequantize@2.42"].function(codes, np.asarray(2, F32), np.asarray(3, F32))
    assert found.tolist() == [8, 10, -50]
    with pytest.raises(TypeError, match="tensor of dtype int8"):
        dequantize(codes, np.asarray(2, F32), np.asarray(3, F32))


def test_the_library_s_overloads() -> None:
    x, s = np.ones(1, F32), np.ones((), F32)
    assert quantize(x, s, 0 * s, num_steps=15).tolist() == [1]
    with pytest.raises(KeyError, match="signed=None"):
        FORMULAS["aimet/affine.quantize@2.42"].function(x, s, 0 * s, num_steps=15)
    with pytest.raises(KeyError, match="num_steps=None"):
        FORMULAS["aimet/affine.quantize_dequantize@2.42"].function(x, s, 0 * s)
