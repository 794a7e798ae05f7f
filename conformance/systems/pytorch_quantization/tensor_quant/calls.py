"""Calls of pytorch-quantization's integer quantizers: ties, ends of the range, tiny amax, dtypes, refusals."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.requirement import Arguments, calls

__all__ = ["around", "every"]

Array = npt.NDArray[Any]
Builder = Callable[[], Iterator[Arguments]]

F32, F16, BF16, F64 = (np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64))
TENSOR_QUANT = "pytorch-quantization/tensor_quant"
FAKE = ("pytorch-quantization/fake_tensor_quant", "pytorch-quantization/legacy_fake_tensor_quant")
RANGES: tuple[dict[str, bool], ...] = ({}, {"narrow_range": False}, {"unsigned": True})
ODD = np.asarray(0.7, F32)  # an amax with which product, quotient and rounding all have something to lose


def every(name: str, formulas: tuple[str, ...] = (TENSOR_QUANT, *FAKE)) -> Callable[[Builder], Builder]:
    """Register the calls under ``name`` for each of ``formulas``."""

    def register(build: Builder) -> Builder:
        for formula in formulas:
            calls(formula, name)(build)
        return build

    return register


def around(values: Any, dtype: "np.dtype[Any]" = F32, *, unsigned: bool = False) -> Array:
    """Each value with its neighbours in ``dtype``, of both signs unless ``unsigned``."""
    middle = np.abs(np.asarray(values, F64)).astype(dtype)
    near = np.concatenate([np.nextafter(middle, dtype.type(0)), middle, np.nextafter(middle, dtype.type(np.inf))])
    return near if unsigned else np.concatenate([near, -near])


def _ties(amax: Array, bits: int, *, unsigned: bool) -> Array:
    top = 2 ** (bits - 1 + unsigned) - 1
    codes = np.unique([0, 1, 2, 3, top // 2, max(top - 2, 0), max(top - 1, 0), top, top + 1])
    return around((codes + 0.5) * float(amax) / max(top, 1), unsigned=unsigned)


@every("ties")
def ties() -> Iterator[Arguments]:
    """The half-way points between codes, and the floats beside them."""
    for bits in (2, 3, 4, 8, 11, 16):
        for how in RANGES:
            top = np.asarray(2.0 ** (bits - 1 + how.get("unsigned", False)) - 1, F32)
            for amax in (top, ODD):
                inputs = _ties(amax, bits, unsigned=how.get("unsigned", False))
                yield {"inputs": inputs, "amax": amax, "num_bits": bits, **how}


@every("range")
def ends() -> Iterator[Arguments]:
    """The ends of every width and what lies beyond them, infinities among it."""
    for bits in range(1, 17):
        for how in RANGES:
            unsigned = how.get("unsigned", False)
            top = 2.0 ** (bits - 1 + unsigned) - 1
            inputs = around([1, 1 + 0.5 / max(top, 1), 1 + 1 / max(top, 1), 2, 1e30, np.inf, 0], unsigned=unsigned)
            yield {"inputs": inputs, "amax": np.asarray(1, F32), "num_bits": bits, **how}


@every("defaults")
def defaults() -> Iterator[Arguments]:
    """No more than inputs and amax."""
    inputs = np.array([-9, -1.004, -1, -0.5, 0, 0.3, 1, 9], F32)
    yield {"inputs": inputs, "amax": np.asarray(1, F32)}
    yield {"inputs": inputs.reshape(2, 2, 2), "amax": np.asarray(2.5, F32)}
    yield {"inputs": np.asarray(0.3, F32), "amax": np.asarray(1, F32)}


@every("scale")
def scales() -> Iterator[Arguments]:
    """Many amax at one width each, with inputs at amax itself, where the quotient is inexact more often than not."""
    mantissas = 1 + np.arange(0, 64, 5) / np.float32(64.3)
    amax = np.concatenate([m * np.float32(2.0) ** np.array([-20, -3, 0, 9, 100], F32) for m in mantissas]).astype(F32)
    for bits in (2, 4, 8, 16):
        for how in RANGES:
            yield {"inputs": amax, "amax": amax, "num_bits": bits, **how}
    yield {"inputs": np.array([2.0**-120, 3.0], F32), "amax": np.asarray(3.4e38, F32)}


@every("per-channel")
def channels() -> Iterator[Arguments]:
    """Amax that broadcasts: along each axis, along two, of lower rank, of size one, of no element."""
    inputs = (np.arange(-13, 14, dtype=F32) * np.float32(0.37)).reshape(3, 3, 3)
    for shape in ((3, 1, 1), (1, 3, 1), (1, 1, 3), (3, 3, 1), (3,), (1, 1, 1), (1,), (3, 3, 3)):
        size = int(np.prod(shape))
        amax = (np.arange(1, size + 1, dtype=F32) * np.float32(0.61)).reshape(shape)
        yield {"inputs": inputs, "amax": amax}
        yield {"inputs": np.abs(inputs), "amax": amax, "num_bits": 4, "unsigned": True}
    yield {"inputs": np.zeros((0, 3), F32), "amax": np.asarray(1, F32)}


@every("tiny-amax")
def tiny() -> Iterator[Arguments]:
    """Amax at and beside 2**-24, zero of both signs, subnormal; alone and beside a usable one."""
    small = np.float32(2.0**-24)
    inputs = np.array([1, -1, 0.0, -0.0, 2.0**-24, -(2.0**-25), 3e-39], F32)
    for amax in (0.0, -0.0, 1e-45, np.nextafter(small, np.float32(0)), small, np.nextafter(small, np.float32(1))):
        for narrow in (True, False):
            yield {"inputs": inputs, "amax": np.asarray(amax, F32), "narrow_range": narrow}
        yield {"inputs": np.abs(inputs), "amax": np.asarray(amax, F32), "unsigned": True}
        yield {"inputs": inputs[:4].reshape(2, 2), "amax": np.array([[amax], [1]], F32)}


@every("not-finite")
def not_finite() -> Iterator[Arguments]:
    """Infinities and NaN among the inputs, an infinite amax."""
    inputs = np.array([np.nan, np.inf, -np.inf, 0.5, -0.0, 3.4e38, -3.4e38], F32)
    for amax in (1.0, 0.7, 0.0, np.inf):
        for how in RANGES:
            given = np.abs(inputs) if "unsigned" in how else inputs
            yield {"inputs": given, "amax": np.asarray(amax, F32), **how}
    yield {"inputs": np.array([[np.inf, 1], [np.nan, 1]], F32), "amax": np.array([[1], [np.inf]], F32)}


@every("zero-sign")
def zero_sign() -> Iterator[Arguments]:
    """What rounds to zero from below, zeros of both signs."""
    inputs = np.array([-0.0, 0.0, -0.2, 0.2, -1e-45, -0.5, 0.5], F32)
    for amax in (127.0, 1e-30, 3.0):
        for narrow in (True, False):
            yield {"inputs": inputs, "amax": np.asarray(amax, F32), "narrow_range": narrow}
    yield {"inputs": np.array([-0.0, 0.0, 0.2], F32), "amax": np.asarray(127, F32), "unsigned": True}


@every("float16")
def half() -> Iterator[Arguments]:
    """Ties of float16 inputs; codes and scales that float16 does not hold."""
    for amax in (1.0, 0.7, 2.5, 127.0, 1e-2):
        for bits in (4, 8, 13, 17):
            near = around((np.array([0, 1, 5, 2.0 ** (bits - 1) - 2]) + 0.5) * amax / 2.0 ** (bits - 1), F16)
            for dtype in (F32, F16):
                yield {"inputs": near, "amax": np.asarray(amax, dtype), "num_bits": bits}
    yield {"inputs": around([0.1, 0.9, 1.7], F16).reshape(3, 6), "amax": np.array([[0.3], [0.7], [2]], F32)}


@every("float16-scale")
def half_scale() -> Iterator[Arguments]:
    """127 / amax at the largest value of float16 and beyond it, but within its rounding."""
    inputs = np.array([1e-3, -1e-3, 1, 0], F16)
    for scale in (65000, 65503, 65504, 65505, 65519, 65521, 70000):
        yield {"inputs": inputs, "amax": np.asarray(127 / np.float32(scale), F32)}
    yield {"inputs": inputs, "amax": np.asarray(1e-3, F16)}
    yield {"inputs": inputs.reshape(2, 2), "amax": np.array([[1], [1e-3]], F32)}
    yield {"inputs": inputs, "amax": np.asarray(0, F16)}


@every("dtypes")
def dtypes() -> Iterator[Arguments]:
    """Every pair of dtypes, with an amax that has no dimension, one, and one per row."""
    values = np.array([0.7, -0.7, 0.30001, 0.1, -0.055, 0.0041, 0.66, 0.3444, 1.2, -0.2, 0.5, 0.61]).reshape(3, 4)
    for x in (F32, F16, BF16, F64):
        for a in (F32, F16, BF16, F64):
            for shape in ((), (1,), (3, 1)):
                for bits in (8, 11):
                    amax = np.resize(np.array([0.7, 0.45, 1.3]), shape).astype(a)
                    yield {"inputs": values.astype(x), "amax": amax, "num_bits": bits}
    yield {"inputs": np.asarray(0.3, F32), "amax": np.asarray(0.7, F64)}


@every("refused-amax")
def refused_amax() -> Iterator[Arguments]:
    """Negative values, NaN, no array, shapes that do not broadcast to the inputs."""
    inputs = np.array([[1, 0.5], [0.25, 0]], F32)
    for amax in (-1.0, -1e-45, -np.inf, np.nan, [-1.0, np.nan], [1.0, -1.0], [0.0, np.nan], [[1.0], [np.nan]]):
        yield {"inputs": inputs, "amax": np.asarray(amax, F32)}
    yield {"inputs": inputs, "amax": 1.0}
    yield {"inputs": inputs, "amax": np.ones(3, F32)}
    yield {"inputs": inputs[0], "amax": np.ones((2, 1), F32)}
    yield {"inputs": inputs, "amax": np.ones(0, F32)}


@every("refused-negative")
def refused_negative() -> Iterator[Arguments]:
    """Negative inputs without a sign, alone and beside NaN; zero of the other sign is none."""
    for values in ([-1e-45, 1], [1, -np.inf], [np.nan, -5, 3], [-0.0, 1]):
        yield {"inputs": np.array(values, F32), "amax": np.asarray(255, F32), "unsigned": True}


@every("refused-num-bits")
def refused_num_bits() -> Iterator[Arguments]:
    """No integer, or none of 1 or more."""
    for bits in (0, -1, 8.0):
        for how in RANGES[:2]:
            yield {"inputs": np.array([0.5, -3, 0], F32), "amax": np.asarray(1, F32), "num_bits": bits, **how}


@every("refused-inputs")
def refused_inputs() -> Iterator[Arguments]:
    """Integers."""
    yield {"inputs": np.array([1, 2, 3]), "amax": np.asarray(3, F32)}


@every("refused-output-dtype")
def output_dtype() -> Iterator[Arguments]:
    """The argument that the document lists and the documented signature lacks."""
    yield {"inputs": np.ones(2, F32), "amax": np.asarray(1, F32), "output_dtype": "int32"}


@every("refused-empty-unsigned")
def empty_unsigned() -> Iterator[Arguments]:
    """Nothing to find a negative value in."""
    yield {"inputs": np.zeros(0, F32), "amax": np.asarray(1, F32), "unsigned": True}
