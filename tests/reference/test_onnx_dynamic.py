"""DynamicQuantizeLinear: the zero points and scales of its examples, and that zero has a code of its own."""

import numpy as np

from halfeven.conformance.systems import call_sets
from halfeven.reference.catalogue import FORMULAS

CALLS = call_sets()


F32 = np.float32
dynamic_quantize_linear = FORMULAS["onnx/DynamicQuantizeLinear"].function


def test_the_scales_and_zero_points_of_the_examples() -> None:
    found = [dynamic_quantize_linear(**c)[1:] for c in CALLS["onnx/DynamicQuantizeLinear", "examples"].build()]
    expected = [(F32(5) / F32(255), 153), (F32(4) / F32(255), 255), (F32(4) / F32(255), 0)]
    assert [(s.tolist(), int(z)) for s, z in found] == [(float(s), z) for s, z in expected]


def test_zero_comes_back_as_zero() -> None:
    rng = np.random.default_rng(3)
    for low, high in rng.uniform(-4, 4, (200, 2)):
        x = np.array([low, high, 0], F32)
        y, scale, zero_point = dynamic_quantize_linear(x)
        assert (y[2].astype(F32) - zero_point.astype(F32)) * scale == 0
        assert set(y.tolist()) <= set(range(256))


def test_the_scale_of_zeros_is_the_equations_or_a_librarys() -> None:
    x = np.zeros(3, F32)
    ids = [f"onnx/DynamicQuantizeLinear{v}" for v in ("", "@onnxruntime-1.31", "@reference-1.23")]
    assert [float(FORMULAS[i].function(x)[1]) for i in ids] == [0, 1, float(F32(1) / F32(255))]
