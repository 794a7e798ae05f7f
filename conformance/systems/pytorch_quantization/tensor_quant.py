"""What the documents require of pytorch-quantization's integer quantizers."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, calls, documented, expected, measured, on, says, silent
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS", "around"]

on(
    "pytorch-quantization",
    says(
        "nearest-code",
        "The input times the scale is rounded to the nearest integer; a tie goes to the even one.",
        "TensorQuantFunction.forward: num_bits, which gives the scale (ties: measured)",
        checks=("boundaries", "odd-zero-point"),
        kills=(
            "half-away",
            "half-up",
            "half-down",
            "half-to-zero",
            "toward-zero",
            "floor",
            "ceil",
            "scale-one-ulp-off",
        ),
    ),
    says(
        "range",
        "With narrow_range the signed codes are symmetric, [-127, 127] for 8 bits; without it they reach one lower.",
        "TensorQuantFunction.forward: narrow_range",
    ),
    says(
        "huge-inputs",
        "Inputs beyond [-amax, amax], however large, are quantized within that range.",
        "TensorQuantFunction.forward: amax",
    ),
    says(
        "zero-sign",
        "A zero result keeps the sign of its input.",
        "tensor_quant and fake_tensor_quant: rounding, clamping and dividing keep it; the document does not speak of "
        "it",
        basis="measured",
        operations=("fake_quantize",),
    ),
)


F32, F16, BF16, F64 = (np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64))
TENSOR_QUANT = "pytorch-quantization/tensor_quant"
FAKE = ("pytorch-quantization/fake_tensor_quant", "pytorch-quantization/legacy_fake_tensor_quant")
RANGES: tuple[dict[str, bool], ...] = ({}, {"narrow_range": False}, {"unsigned": True})
ODD = np.asarray(0.7, F32)  # an amax with which product, quotient and rounding all have something to lose


def around(values: Any, dtype: "np.dtype[Any]" = F32, *, unsigned: bool = False) -> Array:
    """Each value with its neighbours in ``dtype``, of both signs unless ``unsigned``."""
    middle = np.abs(np.asarray(values, F64)).astype(dtype)
    near = np.concatenate([np.nextafter(middle, dtype.type(0)), middle, np.nextafter(middle, dtype.type(np.inf))])
    return near if unsigned else np.concatenate([near, -near])


def _ties(amax: Array, bits: int, *, unsigned: bool) -> Array:
    top = 2 ** (bits - 1 + unsigned) - 1
    codes = np.unique([0, 1, 2, 3, top // 2, max(top - 2, 0), max(top - 1, 0), top, top + 1])
    return around((codes + 0.5) * float(amax) / max(top, 1), unsigned=unsigned)


@measured(
    TENSOR_QUANT,
    "TensorQuantFunction.forward: num_bits, which gives the scale; the document does not speak of rounding",
)
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, which gives the scale; the document does not speak "
    "of rounding",
)
@measured(
    "pytorch-quantization/legacy_fake_tensor_quant",
    "tensor_quant module: LegacyFakeTensorQuantFunction",
    aspect="as-fake-tensor-quant",
    text="The legacy function gives what fake_tensor_quant gives on a CPU.",
)
def ties() -> Calls:
    """The product of input and scale goes to the nearest integer, a tie to the even one, for both signs."""
    # The half-way points between codes, and the floats next to them.
    for bits in (2, 3, 4, 8, 11, 16):
        for how in RANGES:
            top = np.asarray(2.0 ** (bits - 1 + how.get("unsigned", False)) - 1, F32)
            for amax in (top, ODD):
                inputs = _ties(amax, bits, unsigned=how.get("unsigned", False))
                yield {"inputs": inputs, "amax": amax, "num_bits": bits, **how}
    for code in (0.5, 5.0 / 2, 90.5):  # one number at a time
        yield {"inputs": np.asarray(code * 0.7 / 127, F32), "amax": np.asarray(0.7, F32)}


@documented(TENSOR_QUANT, "TensorQuantFunction; TensorQuantFunction.forward: unsigned, narrow_range", aspect="range")
@documented(
    "pytorch-quantization/fake_tensor_quant",
    "TensorQuantFunction; fake_tensor_quant, as TensorQuantFunction.forward: unsigned, narrow_range",
    aspect="range",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def ends() -> Calls:
    """The signed codes are the 2^b - 1 integers from -(2^(b-1) - 1), in [-127, 127] for 8 bits; without narrow_range
    they reach one lower; unsigned ones are [0, 2^b - 1]; all beyond goes to the ends."""
    # The ends of every width and what lies beyond them, infinities among it.
    for bits in range(1, 17):
        for how in RANGES:
            unsigned = how.get("unsigned", False)
            top = 2.0 ** (bits - 1 + unsigned) - 1
            inputs = around([1, 1 + 0.5 / max(top, 1), 1 + 1 / max(top, 1), 2, 1e30, np.inf, 0], unsigned=unsigned)
            yield {"inputs": inputs, "amax": np.asarray(1, F32), "num_bits": bits, **how}


@documented(TENSOR_QUANT, "TensorQuantFunction.forward: num_bits, unsigned, narrow_range")
@documented(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, unsigned, narrow_range",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def defaults() -> Calls:
    """Left out, num_bits is 8, unsigned False and narrow_range True."""
    # No more than inputs and amax.
    inputs = np.array([-9, -1.004, -1, -0.5, 0, 0.3, 1, 9], F32)
    yield {"inputs": inputs, "amax": np.asarray(1, F32)}
    yield {"inputs": inputs.reshape(2, 2, 2), "amax": np.asarray(2.5, F32)}
    yield {"inputs": np.asarray(0.3, F32), "amax": np.asarray(1, F32)}


@documented(TENSOR_QUANT, "TensorQuantFunction.forward: num_bits, amax; Returns", aspect="scale")
@documented(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, amax; outputs / scale dequantizes",
    aspect="scale",
    text="The scale is the largest code over amax, and the codes are divided by it.",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def scales() -> Calls:
    """The scale is the largest code over amax, and is returned in amax's shape."""
    # Many amax at one width each, with inputs at amax itself, where the quotient is inexact more often than not.
    mantissas = 1 + np.arange(0, 64, 5) / np.float32(64.3)
    amax = np.concatenate([m * np.float32(2.0) ** np.array([-20, -3, 0, 9, 100], F32) for m in mantissas]).astype(F32)
    for bits in (2, 4, 8, 16):
        for how in RANGES:
            yield {"inputs": amax, "amax": amax, "num_bits": bits, **how}
    yield {"inputs": np.array([2.0**-120, 3.0], F32), "amax": np.asarray(3.4e38, F32)}


@documented(TENSOR_QUANT, "TensorQuantFunction; TensorQuantFunction.forward: amax")
@documented(
    "pytorch-quantization/fake_tensor_quant",
    "TensorQuantFunction; fake_tensor_quant, as TensorQuantFunction.forward: amax",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def per_channel() -> Calls:
    """The shape of amax gives the granularity: it broadcasts to the inputs, and each element takes its own entry's
    scale."""
    # Amax that broadcasts: along each axis, along two, of lower rank, of size one, of no element.
    inputs = (np.arange(-13, 14, dtype=F32) * np.float32(0.37)).reshape(3, 3, 3)
    for shape in ((3, 1, 1), (1, 3, 1), (1, 1, 3), (3, 3, 1), (3,), (1, 1, 1), (1,), (3, 3, 3)):
        size = int(np.prod(shape))
        amax = (np.arange(1, size + 1, dtype=F32) * np.float32(0.61)).reshape(shape)
        yield {"inputs": inputs, "amax": amax}
        yield {"inputs": np.abs(inputs), "amax": amax, "num_bits": 4, "unsigned": True}
    yield {"inputs": np.zeros((0, 3), F32), "amax": np.asarray(1, F32)}


@measured(TENSOR_QUANT, "TensorQuantFunction.forward: amax; the document does not speak of an amax near 0")
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: amax; the document does not speak of an amax near 0",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def tiny_amax() -> Calls:
    """Where amax is 2**-24 or less a finite input gets the code 0 with its own sign, and the scale is 1."""
    # Amax at and next to 2**-24, zero of both signs, subnormal; alone and with a usable one.
    small = np.float32(2.0**-24)
    inputs = np.array([1, -1, 0.0, -0.0, 2.0**-24, -(2.0**-25), 3e-39], F32)
    for amax in (0.0, -0.0, 1e-45, np.nextafter(small, np.float32(0)), small, np.nextafter(small, np.float32(1))):
        for narrow in (True, False):
            yield {"inputs": inputs, "amax": np.asarray(amax, F32), "narrow_range": narrow}
        yield {"inputs": np.abs(inputs), "amax": np.asarray(amax, F32), "unsigned": True}
        yield {"inputs": inputs[:4].reshape(2, 2), "amax": np.array([[amax], [1]], F32)}
    yield from _tiny_in_16_bits()


def _tiny_in_16_bits() -> Calls:
    """The same of amax and inputs of 16 bits: subnormal, at 2**-24, and where the dtype has them next to it."""
    for dtype, exponents in ((BF16, (-133, -126, -30, -25, -24)), (F16, (-24,))):
        for amax in (np.asarray(0, dtype), *(np.asarray(2.0**e, dtype) for e in exponents)):
            a = float(amax)
            inputs = np.array([1, -1, 0.0, -0.0, a, -a, a / 2, 2 * a, 2.0**-24], dtype)
            for narrow in (True, False):
                yield {"inputs": inputs, "amax": amax, "narrow_range": narrow}
            yield {"inputs": np.abs(inputs), "amax": amax, "unsigned": True}
            yield {"inputs": inputs[:8].reshape(2, 4), "amax": np.array([[a], [1]], dtype)}
            yield {"inputs": inputs.astype(F32), "amax": amax}
            yield {"inputs": inputs, "amax": amax.astype(F32)}
    above = np.nextafter(np.asarray(2.0**-24, BF16), np.asarray(1, BF16))  # in float16 the scale is too large there
    inputs = np.array([2.0**-24, -(2.0**-25), 2.0**-27, 1, 0], BF16)
    yield {"inputs": inputs, "amax": above}
    yield {"inputs": inputs.reshape(5, 1), "amax": np.resize(above, (5, 1))}


@measured(TENSOR_QUANT, "TensorQuantFunction.forward: the document does not speak of them")
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of them",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def not_finite() -> Calls:
    """NaN stays NaN, and an infinity goes to the end of the range, where amax is above 2**-24 and finite; infinity
    times a scale of 0 is NaN."""
    # Infinities and NaN among the inputs, an infinite amax.
    inputs = np.array([np.nan, np.inf, -np.inf, 0.5, -0.0, 3.4e38, -3.4e38], F32)
    for amax in (1.0, 0.7, 0.0, np.inf):
        for how in RANGES:
            given = np.abs(inputs) if "unsigned" in how else inputs
            yield {"inputs": given, "amax": np.asarray(amax, F32), **how}
    yield {"inputs": np.array([[np.inf, 1], [np.nan, 1]], F32), "amax": np.array([[1], [np.inf]], F32)}


@measured(TENSOR_QUANT, "TensorQuantFunction.forward: the document does not speak of it")
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of it",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def zero_sign() -> Calls:
    """What rounds to zero from below is -0.0."""
    inputs = np.array([-0.0, 0.0, -0.2, 0.2, -1e-45, -0.5, 0.5], F32)
    for amax in (127.0, 1e-30, 3.0):
        for narrow in (True, False):
            yield {"inputs": inputs, "amax": np.asarray(amax, F32), "narrow_range": narrow}
    yield {"inputs": np.array([-0.0, 0.0, 0.2], F32), "amax": np.asarray(127, F32), "unsigned": True}


@measured(TENSOR_QUANT, "TensorQuantFunction.forward: inputs, which the document has in float32")
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: inputs, which the document has in float32",
    text="float16 inputs are quantized in float32; codes and scale are rounded to float16 before they are divided.",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def float16() -> Calls:
    """float16 inputs are quantized in float32; codes and scale are then rounded to float16."""
    # Ties of float16 inputs; codes and scales that float16 does not hold.
    for amax in (1.0, 0.7, 2.5, 127.0, 1e-2):
        for bits in (4, 8, 13, 17):
            near = around((np.array([0, 1, 5, 2.0 ** (bits - 1) - 2]) + 0.5) * amax / 2.0 ** (bits - 1), F16)
            for dtype in (F32, F16):
                yield {"inputs": near, "amax": np.asarray(amax, dtype), "num_bits": bits}
    yield {"inputs": around([0.1, 0.9, 1.7], F16).reshape(3, 6), "amax": np.array([[0.3], [0.7], [2]], F32)}


@measured(TENSOR_QUANT, "TensorQuantFunction.forward: the document does not speak of it")
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of it",
    text="A scale above the range of float16 is infinite for float16 inputs, and every finite result 0.",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def float16_scale() -> Calls:
    """A scale above 65504 is refused for float16 inputs, also one that would round to 65504."""
    # 127 / amax at the largest value of float16 and beyond it, but within its rounding.
    inputs = np.array([1e-3, -1e-3, 1, 0], F16)
    for scale in (65000, 65503, 65504, 65505, 65519, 65521, 70000):
        yield {"inputs": inputs, "amax": np.asarray(127 / np.float32(scale), F32)}
    yield {"inputs": inputs, "amax": np.asarray(1e-3, F16)}
    yield {"inputs": inputs.reshape(2, 2), "amax": np.array([[1], [1e-3]], F32)}
    yield {"inputs": inputs, "amax": np.asarray(0, F16)}


@measured(TENSOR_QUANT, "TensorQuantFunction.forward: inputs and amax, which the document has in float32")
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: inputs and amax, which the document has in float32",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def dtypes() -> Calls:
    """bfloat16 and float64 inputs and amax are promoted as torch does: an amax without dimensions widens nothing, and
    in bfloat16 the product is rounded before it is rounded to an integer."""
    # Every pair of dtypes, with an amax that has no dimension, one, and one per row.
    values = np.array([0.7, -0.7, 0.30001, 0.1, -0.055, 0.0041, 0.66, 0.3444, 1.2, -0.2, 0.5, 0.61]).reshape(3, 4)
    for x in (F32, F16, BF16, F64):
        for a in (F32, F16, BF16, F64):
            for shape in ((), (1,), (3, 1)):
                for bits in (8, 11):
                    amax = np.resize(np.array([0.7, 0.45, 1.3]), shape).astype(a)
                    yield {"inputs": values.astype(x), "amax": amax, "num_bits": bits}
    yield {"inputs": np.asarray(0.3, F32), "amax": np.asarray(0.7, F64)}
    # The highest code is rounded to bfloat16 before it is divided.
    yield {"inputs": values[0].astype(BF16), "amax": np.array([0.46875], BF16), "num_bits": 10}
    wide = {"inputs": np.array([-1.5, 1.5]), "amax": np.array([1.0]), "num_bits": 26}
    yield from ({**wide, "narrow_range": narrow} for narrow in (True, False))


@expected(TENSOR_QUANT, "TensorQuantFunction.forward: amax, the absolute maximum, broadcasts to the inputs")
@expected(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: amax, the absolute maximum, broadcasts to the inputs",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def refused_amax() -> Calls:
    """A negative or NaN entry of amax is refused, even among others; so is an amax that does not broadcast to the
    inputs."""
    inputs = np.array([[1, 0.5], [0.25, 0]], F32)
    for amax in (-1.0, -1e-45, -np.inf, np.nan, [-1.0, np.nan], [1.0, -1.0], [0.0, np.nan], [[1.0], [np.nan]]):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}
    yield {"inputs": inputs, "amax": 1.0}
    yield {"inputs": inputs, "amax": np.ones(3, F32)}
    yield {"inputs": inputs[0], "amax": np.ones((2, 1), F32)}
    yield {"inputs": inputs[:1], "amax": np.ones((2, 1), F32)}
    yield {"inputs": inputs, "amax": np.ones(0, F32)}


@expected(TENSOR_QUANT, "TensorQuantFunction.forward: unsigned")
@expected("pytorch-quantization/fake_tensor_quant", "fake_tensor_quant, as TensorQuantFunction.forward: unsigned")
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def refused_negative() -> Calls:
    """Unsigned, a negative input is refused, also with NaN; -0.0 is none."""
    # Negative inputs without a sign, alone and with NaN; zero of the other sign is none.
    for values in ([-1e-45, 1], [1, -np.inf], [np.nan, -5, 3], [-0.0, 1]):
        yield {"inputs": np.array(values, F32), "amax": np.asarray(255, F32), "unsigned": True}


@expected(TENSOR_QUANT, "TensorQuantFunction.forward: num_bits, an integer")
@expected(
    "pytorch-quantization/fake_tensor_quant", "fake_tensor_quant, as TensorQuantFunction.forward: num_bits, an integer"
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def refused_num_bits() -> Calls:
    """num_bits is an integer of 1 or more."""
    for bits in (0, -1, 8.0):
        for how in RANGES[:2]:
            yield {"inputs": np.array([0.5, -3, 0], F32), "amax": np.asarray(1, F32), "num_bits": bits, **how}
    yield {"inputs": np.array([0.5, 3, 0], F32), "amax": np.asarray(1, F32), "num_bits": 0, "unsigned": True}


@expected(TENSOR_QUANT, "TensorQuantFunction.forward: inputs, a float32 tensor")
@expected(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: inputs, a float32 tensor",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def refused_inputs() -> Calls:
    """Integer inputs are refused."""
    yield {"inputs": np.array([1, 2, 3]), "amax": np.asarray(3, F32)}


@measured(TENSOR_QUANT, "TensorQuantFunction.forward: output_dtype, outside the signature", aspect="output-dtype")
@measured(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: output_dtype, outside the signature",
    aspect="output-dtype",
)
@calls("pytorch-quantization/legacy_fake_tensor_quant", "as-fake-tensor-quant")
def refused_output_dtype() -> Calls:
    """output_dtype, which the argument list has and the signature has not, is no argument."""
    # The argument that the document lists and the documented signature lacks.
    yield {"inputs": np.ones(2, F32), "amax": np.asarray(1, F32), "output_dtype": "int32"}


@silent(TENSOR_QUANT, "TensorQuantFunction.forward: the document does not speak of it", aspect="empty-unsigned")
@silent(
    "pytorch-quantization/fake_tensor_quant",
    "fake_tensor_quant, as TensorQuantFunction.forward: the document does not speak of it",
    aspect="empty-unsigned",
)
@silent("pytorch-quantization/legacy_fake_tensor_quant", "the document does not speak of it", aspect="empty-unsigned")
def refused_empty_unsigned() -> Calls:
    """Unsigned, an empty input has no minimum, and is refused."""
    # Nothing to find a negative value in.
    yield {"inputs": np.zeros(0, F32), "amax": np.asarray(1, F32), "unsigned": True}


def fake_tensor_quant(
    inputs: Any, amax: Any, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Any:
    """FakeTensorQuantFunction: on a CPU ``_tensor_quant``, on a GPU the extension's kernel."""
    from modelopt.torch.quantization.tensor_quant import fake_tensor_quant as fake

    return fake(inputs, amax, None, num_bits, unsigned, narrow_range)


def legacy_fake_tensor_quant(
    inputs: Any, amax: Any, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Any:
    """``_tensor_quant``, the eager body that the function falls back to."""
    from modelopt.torch.quantization.tensor_quant import _tensor_quant

    return _tensor_quant(inputs, amax, num_bits, unsigned, narrow_range)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "modelopt": {
        "pytorch-quantization/fake_tensor_quant": fake_tensor_quant,
        "pytorch-quantization/legacy_fake_tensor_quant": legacy_fake_tensor_quant,
    },
}
