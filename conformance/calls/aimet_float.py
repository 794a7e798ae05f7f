"""Calls of AIMET's float quantization: every format, ties of every binade, subnormals, and beyond the largest."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.arrays import step
from halfeven.conformance.calls.aimet_affine import F32, scalar
from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__ = ["TORCH"]

TORCH = {
    "float16": (5, 10, False, False),
    "bfloat16": (8, 7, False, False),
    "float8_e4m3fn": (4, 3, True, False),
    "float8_e4m3fnuz": (4, 3, True, True),
    "float8_e5m2": (5, 2, False, False),
    "float8_e5m2fnuz": (5, 2, True, True),
}
OTHERS = ((4, 3), (3, 2), (2, 3), (2, 1), (3, 4), (5, 3), (6, 5), (4, 1))
QDQ = "aimet.float_quantize_dequantize"
_NARROW = ((1, 2), (1, 0), (0, 3), (4, 0))  # widths of exponent and mantissa
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def _named(bits: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("exponent_bits", "mantissa_bits", "finite", "unsigned_zero"), bits, strict=False))


def _inputs(e: int, m: int, dtype: "np.dtype[Any]" = F32) -> Array:
    """Ties, with neighbours, of odd and even mantissas in the format's first, middle and last binades."""
    bias = 2 ** (e - 1) - 1
    at = np.array([0, 1, 2, 2**m - 2, 2**m - 1]) + 0.5
    normal = [(2**m + at) * 2.0 ** (k - m) for k in (1 - bias, 2 - bias, 0, 1, bias, bias + 1)]
    subnormal = [at * 2.0 ** (k - m) for k in (-1 - bias, -bias, 1 - bias)]
    with np.errstate(over="ignore"):
        ties = np.unique(np.concatenate([*normal, *subnormal]).astype(dtype))
    around = step(ties[np.isfinite(ties)][:, None], np.arange(-1, 2)).ravel()
    largest = (2 - 2.0**-m) * 2.0**bias
    special = np.array([0.0, -0.0, largest, -2 * largest, 3e38, np.inf, -np.inf, np.nan])
    with np.errstate(over="ignore"):
        return np.concatenate([around, -around[::5], special.astype(dtype)]).astype(dtype)


@calls("aimet.float_scale", "scale")
def scales() -> Iterator[Arguments]:
    """Every format; largest values of every kind."""
    x = np.array([[0.3, -3.0, 1.0], [448, 0.0, 1e-40], [3e38, np.inf, np.nan]], F32)
    for bits in (*TORCH.values(), (2, 1, True, False), *((*o, False, False) for o in OTHERS)):
        yield {"maxval": x, **_named(bits)}
    yield from ({"maxval": scalar(2.7), "dtype": name} for name in TORCH)


@calls("aimet.float_cast", "normal")
def normal() -> Iterator[Arguments]:
    """Inputs that no format of these widths has below its smallest normal number."""
    for e, m in OTHERS:
        x = _inputs(e, m)
        yield {"tensor": x[~(np.abs(x) < 2.0 ** (2 - 2 ** (e - 1)))], "exponent_bits": e, "mantissa_bits": m}


@calls("aimet.float_cast", "small")
def small() -> Iterator[Arguments]:
    """Inputs below the smallest normal number, where the equation keeps all mantissa bits."""
    for e, m in OTHERS:
        x = _inputs(e, m)
        tiny = np.array([1e-5, -1e-9, 1.1e-30], F32)
        kept = x[np.abs(x) < 2.0 ** (2 - 2 ** (e - 1))]
        yield {"tensor": np.concatenate([kept, tiny]), "exponent_bits": e, "mantissa_bits": m}


@calls(QDQ, "torch-formats")
def torch_formats() -> Iterator[Arguments]:
    """The formats of torch, by name and by widths, at scale 1 and others, for the float dtypes of up to 32 bits."""
    for name, bits in TORCH.items():
        yield {"tensor": _inputs(*bits[:2]), "scale": scalar(1), "dtype": name}
        for scale in (0.1, 3.0, 2.0**-9):
            x = _inputs(*bits[:2]) * F32.type(scale)
            yield {"tensor": x, "scale": scalar(scale), **_named(bits)}
        for dtype in HALVES:
            if bits[:2] != (8, 7):
                x = _inputs(*bits[:2], dtype)[::2]
                given = {"tensor": x[~(np.abs(x) >= 2.0**15)], "dtype": name}  # see narrow_tensors
                yield from ({**given, "scale": scalar(scale)} for scale in (1.0, 0.1))


@calls(QDQ, "e2m1")
def e2m1() -> Iterator[Arguments]:
    """The finite format of four bits."""
    for scale in (1, 0.3):
        yield {"tensor": _inputs(2, 1) * F32.type(scale), "scale": scalar(scale), **_named((2, 1, True, False))}


@calls(QDQ, "other-formats")
def other_formats() -> Iterator[Arguments]:
    """Formats that torch lacks."""
    for bits in OTHERS:
        for scale in (1, 0.3):
            yield {"tensor": _inputs(*bits) * F32.type(scale), "scale": scalar(scale), **_named(bits)}


@calls(QDQ, "scale-shapes")
def scale_shapes() -> Iterator[Arguments]:
    """Scales per channel and per block, for float32."""
    x = ((np.arange(24) * 7 % 24 - 11) / 3).astype(F32)
    one, two = (np.array(v, F32) for v in ([0.3], [[0.1], [2]]))
    for name in ("float8_e4m3fn", "float8_e5m2", "float16"):
        given = {"dtype": name}
        yield {**given, "tensor": x, "scale": one}
        yield {**given, "tensor": x.reshape(2, 12), "scale": two}
        yield {**given, "tensor": x.reshape(2, 12), "scale": np.tile(two, (1, 3)), "block_size": (1, 4)}
        yield {**given, "tensor": x.reshape(4, 6), "scale": np.array([1, 0.7], F32), "block_size": (-1,)}
        yield {**given, "tensor": np.asarray(x[0]), "scale": scalar(0.3)}


@calls(QDQ, "narrow-tensors")
def narrow_tensors() -> Iterator[Arguments]:
    """Tensors of 16 bits: with a scale that has dimensions; formats whose largest number they do not hold."""
    for dtype in HALVES:
        x = np.array([0.3, -1.7, 5, 1000], dtype)
        yield {"tensor": x, "scale": np.array([0.3], F32), "dtype": "float8_e4m3fn"}
        yield {"tensor": x.reshape(2, 2), "scale": np.array([[0.3], [2]], F32), "dtype": "float8_e5m2"}
        yield {"tensor": x, "scale": scalar(1), "dtype": "bfloat16"}
        large = np.array([65280, -6e4, np.inf, -np.inf], dtype)
        yield {"tensor": large, "scale": scalar(1), "dtype": "float16"}


@calls(QDQ, "float64")
def float64() -> Iterator[Arguments]:
    """Tensors of 64 bits just beside ties of the format, nearer than float32 tells apart."""
    for name in ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"):
        m = TORCH[name][1]
        tie = 1 + 2.0 ** -(m + 1)
        x = np.array([tie, tie + 1e-12, tie - 1e-12, -tie - 1e-12, 0.3, 1e6])
        yield {"tensor": x, "scale": scalar(1), "dtype": name}
        yield {"tensor": x, "scale": scalar(0.5), "dtype": name}


@calls(QDQ, "shapes")
def shapes() -> Iterator[Arguments]:
    """Scales and blocks that do not fit the tensor."""
    x = ((np.arange(24) - 11) / 3).astype(F32)
    given = {"dtype": "float8_e4m3fn"}
    yield {**given, "tensor": x[:3], "scale": np.array([[0.3], [2]], F32)}
    wide = np.arange(1, 7, dtype=F32).reshape(2, 3)
    yield {**given, "tensor": x.reshape(4, 6), "scale": wide, "block_size": (4, 1)}


@calls(QDQ, "examples")
def examples() -> Iterator[Arguments]:
    """What the class prints: a format whose largest number becomes the largest input."""
    x = np.array([[1.8998, -0.0947, -1.0891, -0.1727]], F32)
    yield {"tensor": x, "scale": np.asarray(x.max() / F32.type(240)), "dtype": "float8_e4m3fnuz"}


@calls(QDQ, "refusals")
def refusals() -> Iterator[Arguments]:
    """No format, two, a dtype that is none, and widths that are neither IEEE's nor torch's."""
    plain = {"tensor": np.ones(2, F32), "scale": scalar(1)}
    yield plain
    yield {**plain, "exponent_bits": 4}
    yield {**plain, "exponent_bits": 4, "mantissa_bits": 3, "dtype": "float16"}
    yield from ({**plain, "dtype": name} for name in ("float32", "float64", "int8"))
    yield {**plain, **_named((3, 2, True, False))}
    yield {**plain, **_named((4, 3, False, True))}
    yield from ({**plain, **_named(bits)} for bits in _NARROW)


@calls("aimet.float_cast", "refusals")
def cast_refusals() -> Iterator[Arguments]:
    """Widths that are too narrow."""
    yield from ({"tensor": np.array([1.75], F32), **_named(bits)} for bits in _NARROW)
