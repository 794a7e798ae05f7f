"""Equations as a terminal shows them."""

import pytest

from halfeven.conformance.equation import plain
from halfeven.reference import FORMULAS

PAIRS = {"(": ")", "[": "]"}


@pytest.mark.parametrize("equation", sorted({f.equation for f in FORMULAS.values()}))
def test_no_tex_is_left_and_no_bracket_lost(equation: str) -> None:
    shown, opened = plain(equation), []
    assert not {*"\\{}&\0"} & {*shown}, shown
    for sign in shown:
        if sign in PAIRS:
            opened.append(PAIRS[sign])
        elif sign in PAIRS.values():
            assert opened.pop() == sign, shown
    assert opened == [], shown


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("onnx/QuantizeLinear", "y = saturate(round(x / y_scale) + y_zero_point)"),
        ("gguf/Q4_0.quantize", "d = x_i / (-8), i = arg max |x|, q = min(floor(x d^(-1) + 8.5), 15)"),
        ("aimet/float_gradient", "d x = [g if |x / scale| <= max; 0 else]"),
        ("aimet/recalibrated_range", "theta^_min = s (o + q_min + delta), theta^_max = s (o + q_max + delta)"),
    ],
)
def test_what_is_shown(name: str, shown: str) -> None:
    assert plain(FORMULAS[name].equation) == shown
