"""What the document of QuantizedTensorBase prints, and the size of what narrow dtypes lose."""

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance.systems import call_sets
from halfeven.conformance.systems.aimet.quantized_tensor import EXAMPLE, EXAMPLE_SCALE
from halfeven.reference import FORMULAS

CALLS = call_sets()


F32 = np.float32
quantize = FORMULAS["aimet/affine.quantize"].function
dequantize = FORMULAS["aimet/affine.dequantize"].function
quantized_repr = FORMULAS["aimet/quantized_repr"].function
represented = FORMULAS["aimet/represented"].function
GIVEN = {"scale": EXAMPLE_SCALE, "offset": np.zeros((2, 1), F32)}


def test_the_printed_codes_integers_and_values() -> None:
    codes = quantize(EXAMPLE, **GIVEN, bitwidth=8, signed=True)
    printed = [[-37, 127, -7, 71], [5, 127, -23, -2]]
    assert codes.tolist() == printed
    dtype, integers = quantized_repr(codes, -128, 127)
    assert (dtype, integers.tolist()) == ("int8", printed)
    values = dequantize(codes, **GIVEN)
    assert [[f"{v:.4f}" for v in row] for row in values] == [
        ["-1.1945", "4.1000", "-0.2260", "2.2921"],
        ["0.2205", "5.6000", "-1.0142", "-0.0882"],
    ]
    again, reals = represented(EXAMPLE, **GIVEN, qmin=-128, qmax=127)
    assert again.tolist() == printed
    assert (reals == values).all()


def test_the_second_example_s_negative_zero_is_zero() -> None:
    first, *_ = CALLS["aimet/quantized_repr", "examples"].build()
    assert np.signbit(first["tensor"]).sum() == 5
    dtype, integers = quantized_repr(**first)
    assert (dtype, integers.tolist()) == ("int8", [[11, -57, -128, 38], [28, 0, -128, -40]])


@pytest.mark.parametrize(("dtype", "codes", "values"), [(np.float16, 0, 0), (ml_dtypes.bfloat16, 272, 323)])
def test_how_many_of_2000_elements_a_narrow_round_trip_changes(dtype: type, codes: int, values: int) -> None:
    """The library rounds the scale to the tensor's dtype; eight bits are computed in float16, not in bfloat16."""
    changed = np.zeros(2, int)
    for k in range(20):
        scale = np.asarray(0.01 + k / 1999, F32)
        x = (np.arange(100) * 2.55 * scale).astype(dtype)
        given = {"scale": scale, "offset": np.zeros((), F32), "qmin": 0, "qmax": 255}
        ours, theirs = (f(x, **given) for f in (represented, FORMULAS["aimet/represented@2.42"].function))
        changed += [int((a != b).sum()) for a, b in zip(ours, theirs, strict=True)]
    assert changed.tolist() == [codes, values]
