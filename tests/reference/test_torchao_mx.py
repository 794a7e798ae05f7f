"""torchao's MX: the tables of scales, and what each mode promises."""

import numpy as np
import pytest

from halfeven.reference import FORMULAS
from halfeven.reference.systems.torchao.mx import _ELEMENTS

mx_dequantize = FORMULAS["torchao/mx_dequantize"].function
pack_uint4 = FORMULAS["torchao/pack_uint4"].function
to_mx = FORMULAS["torchao/to_mx"].function
unpack_uint4 = FORMULAS["torchao/unpack_uint4"].function
to_mx_0_18 = FORMULAS["torchao/to_mx@0.18"].function
LARGEST = {
    "float8_e4m3fn": 448.0,
    "float8_e5m2": 57344.0,
    "fp6_e2m3": 7.5,
    "fp6_e3m2": 28.0,
    "float4_e2m1fn_x2": 6.0,
}
MODES = ("FLOOR", "CEIL", "EVEN", "RCEIL")
AMAX = np.array([1, 1.5, 1.75, 1.875, 448, 449, 6, 7, 0, np.inf, np.nan], np.float32)
CODES = {
    ("float8_e4m3fn", "FLOOR"): [119, 119, 119, 119, 127, 127, 121, 121, 0, 247, 255],
    ("float8_e4m3fn", "RCEIL"): [119, 119, 119, 120, 127, 128, 121, 121, 0, 254, 255],
    ("float8_e4m3fn", "CEIL"): [119, 120, 120, 120, 128, 128, 122, 122, 0, 247, 255],
    ("float8_e4m3fn", "EVEN"): [119, 119, 119, 119, 127, 127, 121, 121, 0, 247, 255],
    ("float4_e2m1fn_x2", "FLOOR"): [125, 125, 125, 125, 133, 133, 127, 127, 0, 253, 255],
    ("float4_e2m1fn_x2", "RCEIL"): [125, 125, 126, 126, 134, 134, 127, 128, 0, 254, 255],
    ("float4_e2m1fn_x2", "CEIL"): [125, 126, 126, 126, 134, 134, 128, 128, 0, 253, 255],
    ("float4_e2m1fn_x2", "EVEN"): [125, 125, 126, 126, 134, 134, 127, 128, 0, 253, 255],
}


@pytest.mark.parametrize(("element", "mode"), CODES)
def test_scales_of_known_maxima(element: str, mode: str) -> None:
    for function in (to_mx, to_mx_0_18):
        scale, _ = function(np.repeat(AMAX[:, None], 2, 1), element, 2, mode)
        assert scale.ravel().tolist() == CODES[element, mode]


@pytest.mark.parametrize("element", LARGEST)
@pytest.mark.parametrize("mode", ["CEIL", "RCEIL"])
def test_a_scale_that_is_rounded_up_saturates_nothing(element: str, mode: str) -> None:
    x = np.geomspace(1e-30, 1e30, 4000).astype(np.float32).reshape(-1, 2)
    scale, _ = to_mx(x, element, 2, mode)
    bound = np.ldexp(LARGEST[element], scale.astype(np.int64) - 127)
    # RCEIL looks at a float32 quotient, whose rounding an element may exceed the bound by.
    slack = 1 + 2.0**-24 if mode == "RCEIL" else 1
    assert (x.max(axis=1, keepdims=True).astype(np.float64) <= bound * slack).all()
    lower, _ = to_mx(x, element, 2, "FLOOR")
    assert (lower <= scale).all()


@pytest.mark.parametrize("element", LARGEST)
@pytest.mark.parametrize("mode", MODES)
def test_what_was_dequantized_quantizes_to_itself(element: str, mode: str) -> None:
    x = (np.linspace(-3, 3, 64, dtype=np.float32) ** 3).reshape(4, 16)
    scale, data = to_mx(x, element, 8, mode)
    reals = mx_dequantize(data, scale, element, 8)
    again = mx_dequantize(*reversed(to_mx(reals, element, 8, mode)), element, 8)
    assert again.tobytes() == reals.tobytes()


def test_the_smallest_scale_is_two_to_the_minus_127_and_0_18_parts_from_it() -> None:
    x = np.full((1, 2), 2.0**-120, np.float32)
    reals = {f: mx_dequantize(*reversed(f(x, "float8_e4m3fn", 2)), "float8_e4m3fn", 2) for f in (to_mx, to_mx_0_18)}
    assert reals[to_mx].tolist() == x.tolist()
    assert reals[to_mx_0_18].tolist() == (x / 2).tolist()
    flushed = to_mx_0_18(np.full((1, 2), 2.0**-119, np.float32), "float8_e4m3fn", 2, "RCEIL")
    assert (flushed[0].tolist(), flushed[1].astype(np.float32).tolist()) == ([[0]], [[0.0, 0.0]])


def test_just_above_a_power_of_two_times_the_largest_number() -> None:
    x = np.repeat(np.nextafter(np.float32(448 * 16), np.float32(np.inf)), 2)
    assert to_mx(x, "float8_e4m3fn", 2, "RCEIL")[0].tolist() == [132]
    assert to_mx_0_18(x, "float8_e4m3fn", 2, "RCEIL")[0].tolist() == [131]


def test_units_above_a_power_of_two_that_a_float32_logarithm_cannot_see() -> None:
    """The table of 0.18 is floor(2^(j - 1) ln 2) for exponents in [2^j, 2^(j + 1)): half a gap of the logarithm."""
    ln2 = 0.69314718  # rounded down; no product below is within 1e-6 of an integer
    seen = {}
    for j in range(1, 7):
        d = np.ldexp(2.0**23 + np.arange(40), 2**j - 23) * 6
        scale, _ = to_mx_0_18(np.repeat(d.astype(np.float32)[:, None], 2, 1), "float4_e2m1fn_x2", 2, "RCEIL")
        # The quotient by 6 brings the units back, or one beside them.
        seen[j] = int((scale.ravel() == 127 + 2**j).sum()) - 1
    assert seen == {j: int(2 ** (j - 1) * ln2) for j in range(1, 7)}


def test_two_codes_in_a_byte() -> None:
    codes = np.array([1, 2, 3, 15], np.uint8)
    assert pack_uint4(codes).tolist() == [0x21, 0xF3]
    assert unpack_uint4(pack_uint4(codes)).tolist() == codes.tolist()


def test_largest_numbers_and_their_exponents() -> None:
    assert {name: element.form.max for name, element in _ELEMENTS.items()} == LARGEST
    for element in _ELEMENTS.values():
        assert 2.0**element.max_exponent <= element.form.max < 2.0 ** (element.max_exponent + 1)
