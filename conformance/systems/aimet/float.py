"""AIMET's float quantization and its gradient: requirements, calls, answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, documented, expected, measured
from halfeven.conformance.systems.aimet.affine import F32, scalar
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS", "TORCH"]

TORCH = {
    "float16": (5, 10, False, False),
    "bfloat16": (8, 7, False, False),
    "float8_e4m3fn": (4, 3, True, False),
    "float8_e4m3fnuz": (4, 3, True, True),
    "float8_e5m2": (5, 2, False, False),
    "float8_e5m2fnuz": (5, 2, True, True),
}
OTHERS = ((4, 3), (3, 2), (2, 3), (2, 1), (3, 4), (5, 3), (6, 5), (4, 1))
QDQ = "aimet/float_quantize_dequantize"
_NARROW = ((1, 2), (1, 0), (0, 3), (4, 0))  # widths of exponent and mantissa
HALVES = (np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))


def _named(bits: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(("exponent_bits", "mantissa_bits", "finite", "unsigned_zero"), bits, strict=False))


def _inputs(e: int, m: int, dtype: np.dtype[Any] = F32) -> Array:
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


@expected("aimet/float_scale", "class FloatQuantizeDequantize: shape of quantization scales; maxval", aspect="scale")
def scales() -> Calls:
    """The scale is the largest input magnitude over the format's largest number."""
    # Every format; largest values of every kind.
    x = np.array([[0.3, -3.0, 1.0], [448, 0.0, 1e-40], [3e38, np.inf, np.nan]], F32)
    for bits in (*TORCH.values(), (2, 1, True, False), *((*o, False, False) for o in OTHERS)):
        yield {"maxval": x, **_named(bits)}
    yield from ({"maxval": scalar(2.7), "dtype": name} for name in TORCH)
    yield {"maxval": scalar(2.7), "exponent_bits": 5, "mantissa_bits": 2}
    yield {"maxval": scalar(2.0**127), "exponent_bits": 9, "mantissa_bits": 1}  # whose largest number is beyond float32


@documented("aimet/float_cast", "class FloatQuantizeDequantize: equations")
def normal() -> Calls:
    """With exponent and mantissa bits given, a number is limited to the format's largest and rounded to so many bits
    after its leading one, ties to even."""
    # Inputs that no format of these widths has below its smallest normal number.
    for e, m in OTHERS:
        x = _inputs(e, m)
        yield {"tensor": x[~(np.abs(x) < 2.0 ** (2 - 2 ** (e - 1)))], "exponent_bits": e, "mantissa_bits": m}


@documented("aimet/float_cast", "class FloatQuantizeDequantize: equation of scale")
def small() -> Calls:
    """The equation gives small numbers as many bits as all others; it has no smallest unit."""
    # Inputs below the smallest normal number, where the equation keeps all mantissa bits.
    for e, m in (*OTHERS, (5, 2), (5, 10)):
        x = _inputs(e, m)
        tiny = np.array([1e-5, -1e-9, 1.1e-30], F32)
        kept = x[np.abs(x) < 2.0 ** (2 - 2 ** (e - 1))]
        yield {"tensor": np.concatenate([kept, tiny]), "exponent_bits": e, "mantissa_bits": m}


@measured(QDQ, "aimet-torch 2.42: FloatQuantizeDequantize; its text: cast to dtype and back")
def torch_formats() -> Calls:
    """The quotient of input and scale becomes the nearest number of the format, ties to even, at most its largest, and
    is multiplied by the scale; NaN stays, and quotient and product are rounded to the input's dtype."""
    # The formats of torch, by name and by widths, at scale 1 and others, for the float dtypes of up to 32 bits.
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


@measured(QDQ, "aimet-torch 2.42: FloatQuantizeDequantize")
def e2m1() -> Calls:
    """The finite format of two exponent bits and one has the numbers 0, 0.5, 1, 1.5, 2, 3, 4 and 6."""
    for scale in (1, 0.3):
        yield {"tensor": _inputs(2, 1) * F32.type(scale), "scale": scalar(scale), **_named((2, 1, True, False))}


@expected(QDQ, "class FloatQuantizeDequantize: largest number by the IEEE standard")
def other_formats() -> Calls:
    """A format that torch lacks has the numbers of the IEEE format of its widths, as those that torch has do."""
    for bits in OTHERS:
        for scale in (1, 0.3):
            yield {"tensor": _inputs(*bits) * F32.type(scale), "scale": scalar(scale), **_named(bits)}


@measured(QDQ, "aimet-torch 2.42: FloatQuantizeDequantize, parameters shape and block_size")
def scale_shapes() -> Calls:
    """Scales broadcast to the input, or belong to blocks as in affine quantization."""
    # Scales per channel and per block, for float32.
    x = ((np.arange(24) * 7 % 24 - 11) / 3).astype(F32)
    one, two = (np.array(v, F32) for v in ([0.3], [[0.1], [2]]))
    for name in ("float8_e4m3fn", "float8_e5m2", "float16"):
        given = {"dtype": name}
        yield {**given, "tensor": x, "scale": one}
        yield {**given, "tensor": x.reshape(2, 12), "scale": two}
        yield {**given, "tensor": x.reshape(2, 12), "scale": np.tile(two, (1, 3)), "block_size": (1, 4)}
        yield {**given, "tensor": x.reshape(4, 6), "scale": np.array([1, 0.7], F32), "block_size": (-1,)}
        yield {**given, "tensor": np.asarray(x[0]), "scale": scalar(0.3)}


@documented(QDQ, "class FloatQuantizeDequantize: first equation, which casts back to the input's dtype")
def narrow_tensors() -> Calls:
    """The result has the dtype of the input whatever the shape of the scale, and a 16-bit input goes with every format
    and saturates in it."""
    # Tensors of 16 bits: with a scale that has dimensions; formats whose largest number they do not hold.
    for dtype in HALVES:
        x = np.array([0.3, -1.7, 5, 1000], dtype)
        yield {"tensor": x, "scale": np.array([0.3], F32), "dtype": "float8_e4m3fn"}
        yield {"tensor": x.reshape(2, 2), "scale": np.array([[0.3], [2]], F32), "dtype": "float8_e5m2"}
        yield {"tensor": x, "scale": scalar(1), "dtype": "bfloat16"}
        yield {"tensor": np.asarray(x[0]), "scale": scalar(0.3), "dtype": "float8_e4m3fn"}
        # The nearest of the format's numbers is beyond float16.
        yield {"tensor": np.array([32752], dtype), "scale": scalar(0.5), "dtype": "bfloat16"}
        large = np.array([65280, -6e4, np.inf, -np.inf], dtype)
        yield {"tensor": large, "scale": scalar(1), "dtype": "float16"}


@expected(QDQ, "class FloatQuantizeDequantize: first equation")
def float64() -> Calls:
    """A float64 input is rounded to the format once."""
    # Tensors of 64 bits just next to ties of the format, nearer than float32 tells apart.
    for name in ("float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"):
        m = TORCH[name][1]
        tie = 1 + 2.0 ** -(m + 1)
        x = np.array([tie, tie + 1e-12, tie - 1e-12, -tie - 1e-12, 0.3, 1e6])
        yield {"tensor": x, "scale": scalar(1), "dtype": name}
        yield {"tensor": x, "scale": scalar(0.5), "dtype": name}
        yield {"tensor": x, "scale": np.array([0.7], F32), "dtype": name}
    tie = 1 + 2.0**-4
    yield {"tensor": np.array([tie, tie + 1e-12, tie - 1e-12]), "scale": scalar(1), **_named((3, 3, False, False))}


@expected(QDQ, "aimet-torch 2.42: affine.quantize refuses the same")
def shapes() -> Calls:
    """Scales and blocks that do not fit the input are refused."""
    x = ((np.arange(24) - 11) / 3).astype(F32)
    given = {"dtype": "float8_e4m3fn"}
    yield {**given, "tensor": x[:3], "scale": np.array([[0.3], [2]], F32)}
    wide = np.arange(1, 7, dtype=F32).reshape(2, 3)
    yield {**given, "tensor": x.reshape(4, 6), "scale": wide, "block_size": (4, 1)}


@documented(QDQ, "class FloatQuantizeDequantize: Examples")
def examples() -> Calls:
    """The printed input becomes the printed values."""
    # What the class prints: a format whose largest number becomes the largest input.
    x = np.array([[1.8998, -0.0947, -1.0891, -0.1727]], F32)
    yield {"tensor": x, "scale": np.asarray(x.max() / F32.type(240)), "dtype": "float8_e4m3fnuz"}


@measured(QDQ, "aimet-torch 2.42: FloatQuantizeDequantize")
def refusals() -> Calls:
    """Refused are no format and two at once, dtypes that are not float formats of 16 bits or fewer, exponents below 2
    bits and mantissas below 1, and finite or unsigned-zero widths that torch lacks."""
    # No format, two, a dtype that is none, and widths that are neither IEEE's nor torch's.
    plain = {"tensor": np.ones(2, F32), "scale": scalar(1)}
    yield plain
    yield {**plain, "exponent_bits": 4}
    yield {**plain, "mantissa_bits": 3}
    yield {**plain, "mantissa_bits": 3, "dtype": "float16"}
    yield {**plain, "exponent_bits": 4, "dtype": "float16"}
    yield {**plain, "exponent_bits": 4, "mantissa_bits": 3, "dtype": "float16"}
    yield from ({**plain, "dtype": name} for name in ("float32", "float64", "int8"))
    yield {**plain, **_named((3, 2, True, False))}
    yield {**plain, **_named((4, 3, False, True))}
    yield from ({**plain, **_named(bits)} for bits in _NARROW)


@expected(
    "aimet/float_cast",
    "class FloatQuantizeDequantize: the equations leave such a format no bias or no mantissa",
    aspect="refusals",
)
def cast_refusals() -> Calls:
    """An exponent below 2 bits and a mantissa below 1 are refused."""
    # Widths that are too narrow.
    yield from ({"tensor": np.array([1.75], F32), **_named(bits)} for bits in _NARROW)


_FORMATS = (("float8_e4m3fn", 448.0), ("float8_e5m2", 57344.0), ("float16", 65504.0), ("bfloat16", 3e38))


@expected(
    "aimet/float_gradient",
    "class FloatQuantizeDequantize: the derivative of the clamp, as affine.quantize_dequantize has it",
    aspect="straight-through",
)
def elements() -> Calls:
    """The gradient goes straight through the rounding, itself not rounded to the format, up to the format's largest
    number; beyond it is zero."""
    # Quotients below, at and above the largest number; gradients that the format holds and others.
    for dtype, largest in _FORMATS:
        for scale in (scalar(1), scalar(0.1), np.array([[0.5], [3.0]], F32)):
            ends = [largest, largest * (1 + 2.0**-10), largest * 1.1, np.inf]
            x = np.array([0.0, 1e-9, 0.3, 1.0, *ends, *(-v for v in ends)]).astype(F32)
            with np.errstate(over="ignore"):
                tensor = np.broadcast_to(x, (2, x.size)) * scale if scale.ndim else x * scale
            gradient = np.resize(np.array([1.0, 0.3, -0.7, 0.013, 2.0, -1.0], F32), tensor.shape)
            yield {"tensor": tensor, "scale": scale, "gradient": gradient, "dtype": dtype}
    for near, value in ((0.7, 313.75), (0.1, 44.75), (0.1, 44.8125)):  # next to the end; scales that float16 rounds
        x, g = np.array([value, 1], np.float16), np.array([0.3, 0.231], np.float16)
        yield {"tensor": x, "scale": scalar(near), "gradient": g, "dtype": "float8_e4m3fn"}


@expected(
    "aimet/float_gradient",
    "class FloatQuantizeDequantize: dtype, as float_quantize_dequantize has it",
    aspect="refusals",
)
def gradient_refusals() -> Calls:
    """A dtype that is none of torch's floats, and a scale that does not broadcast to the tensor, are refused."""
    # A format that torch lacks, and a scale that does not fit.
    x = np.ones(4, F32)
    yield {"tensor": x, "scale": scalar(1), "gradient": x, "dtype": "float32"}
    yield {"tensor": x, "scale": np.ones(3, F32), "gradient": x, "dtype": "float8_e4m3fn"}


def float_quantize_dequantize(
    tensor: Tensor, scale: Tensor, block_size: tuple[int, ...] | None = None, dtype: str | None = None, **bits: Any
) -> Tensor:
    """The encoding of ``FloatQuantizeDequantize``, given the scale."""
    import torch
    from aimet_torch.quantization.float import FloatEncoding, FloatQuantizeDequantize

    if bits.get("exponent_bits", 2) < 2 or bits.get("mantissa_bits", 1) < 1:  # noqa: PLR2004
        msg = "the library rounds to such a width by another rule"
        raise Unsupported(msg)
    own = FloatQuantizeDequantize(**bits, dtype=dtype and getattr(torch, dtype)).get_encodings()
    encoding = FloatEncoding(
        own.mantissa_bits, own.exponent_bits, own.finite, own.unsigned_zero, scale, block_size=block_size
    )
    result: Tensor = encoding.quantize_dequantize(tensor)
    return result


def float_cast(tensor: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """``FloatQuantizeDequantize`` of a scale of 1."""
    import torch
    from aimet_torch.quantization.float import FloatEncoding

    if exponent_bits < 2 or mantissa_bits < 1:  # noqa: PLR2004
        msg = "the library rounds to such a width by another rule"
        raise Unsupported(msg)
    encoding = FloatEncoding(mantissa_bits, exponent_bits, False, False, torch.ones(()))
    result: Tensor = encoding.quantize_dequantize(tensor)
    return result


def float_gradient(tensor: Tensor, scale: Tensor, gradient: Tensor, dtype: str) -> Tensor:
    """Autograd of the encoding of ``FloatQuantizeDequantize``, given the scale."""
    import torch
    from aimet_torch.quantization.float import FloatEncoding, FloatQuantizeDequantize

    own = FloatQuantizeDequantize(dtype=getattr(torch, dtype)).get_encodings()
    encoding = FloatEncoding(own.mantissa_bits, own.exponent_bits, own.finite, own.unsigned_zero, scale)
    (found,) = torch.autograd.grad(encoding.quantize_dequantize(tensor.requires_grad_()), [tensor], gradient)
    return found


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/float_quantize_dequantize": float_quantize_dequantize,
        "aimet/float_cast": float_cast,
        "aimet/float_gradient": float_gradient,
    },
}
