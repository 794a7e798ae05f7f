"""What the documents require of AIMET's affine functions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured, on, says
from halfeven.reference.blocks import Array

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS", "CALIBRATED", "DTYPES", "EXAMPLE", "F32", "UNIT_RANGE", "boundaries", "scalar"]

on(
    "aimet",
    says(
        "nearest-code",
        "The code is the input divided by the scale, rounded to the nearest integer; ties go to the even one.",
        "affine.quantize: equation and example; class QuantizeDequantize: equation of the clamped input (ties: "
        "measured)",
    ),
    says(
        "offset-after-rounding",
        "The offset is subtracted from the rounded quotient, not from the quotient.",
        "class QuantizeDequantize: equation of the clamped input",
    ),
    says(
        "clamp",
        "The code is limited to [qmin, qmax], after the offset.",
        "affine.quantize: equation; overloads for bitwidth, num_steps, qmin and qmax",
    ),
    says(
        "zero-sign",
        "The codes are floats, and a zero code keeps the sign of its input.",
        "affine.quantize: the example, which prints -0. for a small negative input",
        operations=("quantize",),
    ),
    says(
        "huge-inputs",
        "Inputs however large, and the infinities, give the end of the grid on their side.",
        "affine.quantize: the clamp of the equation, whose argument is unbounded",
    ),
    says(
        "dequantized-value",
        "A code becomes (code + offset) * scale.",
        "class QuantizeDequantize: equation of the output",
    ),
)


DTYPES = tuple(np.dtype(t) for t in (np.float32, np.float64, np.float16, ml_dtypes.bfloat16))
F32 = np.dtype(np.float32)
# The document steps in float64 and holds float32; its seventh value prints as -1.1921e-08.
EXAMPLE = np.array([np.float32(-1.1921e-08) if i == 6 else np.float32(-0.3 + 0.05 * i) for i in range(32)])  # noqa: PLR2004
# What the class's examples print; their inputs are random. A printed value is the nearest of its grid to itself.
# fmt: off
CALIBRATED = np.array([
    [-0.2771, 0.3038, 1.0819, 0.9700, 0.9487, -0.1307, -1.7894, -0.1709, -0.2212, 0.7741],
    [-1.0295, -1.2265, -1.0295, 1.0564, 0.6177, -1.0386, -0.0176, -2.6054, 1.8836, -0.1232],
    [-0.8229, 0.5540, 0.3992, -0.2363, 1.2546, -1.0036, 0.2355, 0.1741, 1.6079, 0.6247],
    [-1.0115, 1.2458, 0.9157, -1.4694, -0.0639, -0.2568, 0.0680, 1.6695, 0.7932, -0.1889],
    [0.0158, 0.5695, 0.5220, 0.1977, -1.4475, -0.0424, -1.1128, -0.8796, -0.1060, 1.5897],
], F32)
UNIT_RANGE = np.array([
    [-0.6196, -0.9961, 0.0549, -0.6431, 1.0039, -0.8706, 1.0039, 0.4706, -0.2353, 0.8078],
    [0.3451, -0.1176, -0.9961, -0.4549, -0.0549, -0.0471, -0.5255, -0.2353, 1.0039, -0.9961],
    [-0.4157, 0.0784, 0.5333, 0.1647, -0.9961, -0.9961, -0.2118, -0.2196, 0.9176, 0.9490],
    [1.0039, -0.7765, 0.4784, -0.8706, 1.0039, 0.6039, -0.4157, -0.2118, -0.9961, 0.3137],
    [1.0039, 0.3216, -0.2353, -0.7765, -0.9961, 0.8000, 1.0039, 0.4157, 0.4392, 0.4863],
], F32)
# The one scale, but for its last digits, and offset whose grid of 256 values has the block's five and both its ends.
_SCALES = np.array([
    [0.0053297, 0.0100529], [0.0089524, 0.0176040], [0.00814705, 0.0102412],
    [0.0106477, 0.0075542], [0.0079097, 0.0105979],
], F32)
_OFFSETS = np.array([[-52, -178], [-137, -148], [-101, -98], [-138, -34], [-183, -105]], F32)
# fmt: on
QUANTIZERS = ("aimet/affine.quantize", "aimet/affine.quantize_dequantize")


def scalar(value: float, dtype: Any = F32) -> Array:
    """A 0-d array."""
    return np.asarray(value, dtype)


def boundaries(scale: float, codes: Array, dtype: np.dtype[Any]) -> Array:
    """The floats nearest to (code + 1/2) * scale, their neighbours, and code * scale, without what is not finite."""
    with np.errstate(all="ignore"):
        ties = ((codes + 0.5) * scale).astype(dtype)
        around = step(ties[:, None], np.arange(-1, 2)).ravel()
        x: Array = np.concatenate([around, (codes * scale).astype(dtype)])
    return x[np.isfinite(x)]


@documented(
    "aimet/affine.quantize",
    "affine.quantize: equation (ties and fractional offsets: measured)",
    aspect="nearest-code-less-offset",
)
@documented(
    "aimet/affine.quantize_dequantize",
    "class QuantizeDequantize: equations (the dtype: measured)",
    aspect="grid-value",
    text="The result is (code + offset) * scale of the code that quantize gives, computed in the working dtype and "
    "rounded to the input's dtype at the end.",
)
def codes() -> Calls:
    """A code is the quotient of input and scale, rounded to the nearest integer (ties to the even one), less the
    offset, which is not rounded itself."""
    # Every boundary of small grids, under offsets that are even, odd, large and no integers.
    for dtype in DTYPES:
        for scale, offset in ((1, 0), (0.1, 1), (3, -7), (2**-20, 2), (0.37, 0.5)):
            s = scalar(scale, F32 if dtype.itemsize < F32.itemsize else dtype)
            x = boundaries(float(s), np.arange(-10, 18), dtype)
            yield {"tensor": x, "scale": s, "offset": scalar(offset, s.dtype), "qmin": -8, "qmax": 7}


@documented("aimet/affine.quantize", "affine.quantize: overloads and their parameters", aspect="three-overloads")
@documented(
    "aimet/affine.quantize_dequantize",
    "affine.quantize: overloads; class QuantizeDequantize: parameter bitwidth",
    aspect="three-overloads",
    text="The three ways to name the grid are those of quantize.",
)
def overloads() -> Calls:
    """The grid is named by a bitwidth, a number of steps or its two ends; a signed one has ceil(n/2) codes below zero
    and floor(n/2) above."""
    # Every bitwidth and both kinds of num_steps, at both ends of the grid.
    for bits in (0, 1, 2, 3, 4, 5, 8, 12, 16, 24):
        x = np.array([-(2**bits), -(2.0**bits) / 2, 1 - 2.0**bits / 2, -1, 0, 1, 2.0**bits / 2, 2**bits - 1, 2**bits])
        plain = {"tensor": x.astype(F32), "scale": scalar(1), "offset": scalar(0)}
        for signed in (False, True):
            yield {**plain, "bitwidth": bits, "signed": signed}
            for steps in {2**bits - 1, 2**bits}:
                yield {**plain, "num_steps": steps, "signed": signed}
        yield {**plain, "bitwidth": bits}
        yield {**plain, "qmin": -(2**bits) + 1, "qmax": bits}
    yield {**plain, "qmin": 3, "qmax": 3}


@documented(
    "aimet/affine.quantize", "affine.quantize: second overload; second printed call", aspect="signed-defaults-to-false"
)
@documented("aimet/affine.quantize_dequantize", "affine.quantize: second overload", aspect="signed-defaults-to-false")
def default_signed() -> Calls:
    """Where signed is not given with num_steps, the grid is unsigned."""
    # num_steps without signed, which the document's third argument gives a default.
    for steps in (1, 15, 16):
        yield {"tensor": EXAMPLE, "scale": scalar(1 / 15), "offset": scalar(0), "num_steps": steps}


def _blocked() -> Iterator[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]]:
    yield from (((4, 6), (2, 3), b) for b in ((2, 2), (-1, 2), (2, -1), (-1, -1)))
    yield from (((2, 4, 6), scales, b) for scales, b in (((2, 3), (2, 2)), ((3,), (2,)), ((1, 4, 2), (2, 1, 3))))
    yield from (((2, 3, 1, 4), scales, b) for scales, b in (((3, 1, 2), (1, 1, 2)), ((1,), (4,)), ((2,), (-1,))))
    yield ((0, 4), (2,), (2,))
    yield ((4,), (4,), (1,))


def _ramp(shape: tuple[int, ...]) -> Array:
    n = int(np.prod(shape))
    return ((np.arange(n) * 7 % 41 - 20) / 4).astype(F32).reshape(shape)


@documented(
    "aimet/affine.quantize",
    "affine.quantize: equation with block size; parameter block_size (-1 and alignment: measured)",
)
@documented(
    "aimet/affine.quantize_dequantize",
    "class QuantizeDequantize: equations with block size; parameter block_size",
    text="With a block size the parameter of an element is the one at floor(j / B) along each dimension, for the code"
    " and for the value.",
)
def blocks() -> Calls:
    """With a block size the parameter of an element is the one at floor(j / B) along each dimension, counted from the
    last; -1 spreads a dimension's scales evenly."""
    # Blocks with scales and offsets all different, aligned at the last dimension; and shapes that broadcast.
    for shape, scales, block in (*_blocked(), ((2, 3, 4), (3, 1), None), ((2, 3), (2, 3), None), ((), (), None)):
        n = int(np.prod(scales))
        scale = (0.25 + np.arange(n) / 8).astype(F32).reshape(scales)
        offset = (np.arange(n) % 5 - 2).astype(F32).reshape(scales)
        given = {"tensor": _ramp(shape), "scale": scale, "offset": offset, "block_size": block}
        yield {**given, "bitwidth": 4, "signed": True}


@documented("aimet/affine.dequantize", "class QuantizeDequantize: equations with block size", aspect="blocks")
def dequantized_blocks() -> Calls:
    """With a block size the parameter of a code is the one at floor(j / B) along each dimension."""
    # The same blocks and shapes, for codes.
    wanted = ("tensor", "scale", "offset", "block_size")
    yield from ({name: c[name] for name in wanted} for c in blocks())


@measured("aimet/affine.quantize", "aimet-torch 2.42: affine.quantize")
@measured(
    "aimet/affine.quantize_dequantize",
    "aimet-torch 2.42: affine.quantize_dequantize",
    text="Quotient, sum and product are rounded in the working dtype, and the product to the input's dtype once; a "
    "grid that the input's dtype does not hold is accepted.",
)
def working_dtype(formula: str) -> Calls:
    """The quotient is rounded in the input's dtype while four times its steps fit the significand and its ends are
    exact, else in float32, else in float64."""
    # The widest grid that each dtype computes by itself, and the next: the quotient is rounded in another dtype.
    for dtype, bits in zip(DTYPES, (21, 50, 8, 5), strict=True):
        widest = {4: 24, 8: 53, 2: 11 if dtype == np.float16 else 8}[dtype.itemsize]
        for b in (bits, bits + 1, widest):
            ends = ((1 << b - 1) - 3 + np.arange(4)).astype(np.float64)
            s = scalar(0.3, DTYPES[1])
            with np.errstate(over="ignore"):
                x = np.concatenate([(ends * 0.3).astype(dtype), step(((ends - 0.5) * 0.3).astype(dtype), 1)])
            yield {"tensor": x, "scale": s, "offset": scalar(-1, s.dtype), "bitwidth": b, "signed": b % 2 == 1}
        # A quarter of a step is eps itself.
        ends = ((1 << bits) - 3 + np.arange(4)).astype(np.float64)
        x = np.concatenate([(ends * 0.3).astype(dtype), step(((ends - 0.5) * 0.3).astype(dtype), 1)])
        yield {"tensor": x, "scale": s, "offset": scalar(-1, s.dtype), "num_steps": 1 << bits, "signed": False}
    narrow = {"tensor": _ramp((9,)).astype(np.float16) * np.float16(300), "scale": scalar(1), "offset": scalar(0)}
    yield {**narrow, "qmin": 2046, "qmax": 2048}
    # An offset of more digits than the tensor has.
    yield {**narrow, "tensor": np.array([2, 3, -2], np.float16), "offset": scalar(1.7429097), "qmin": -8, "qmax": 7}
    if formula == "aimet/affine.quantize_dequantize":
        # An offset of more digits than the working dtype has.
        x = np.linspace(-2, 2, 9).astype(np.float16)
        wide = {"tensor": x, "scale": scalar(0.1), "offset": scalar(1.7429097, DTYPES[1])}
        yield from ({**wide, "qmin": -n, "qmax": n - 1} for n in (8, 128))
        yield {**narrow, "qmin": -70000, "qmax": -69990}
        yield {**narrow, "bitwidth": 24}
        # Products that float32 rounds to a tie of the input's dtype.
        for dtype, bits, qmax in ((DTYPES[2], 0x34ED393C, 6225854), (DTYPES[3], 0x34A9EED5, 5269631)):
            scale = np.array(bits, np.uint32).view(F32)
            yield {"tensor": np.array([9], dtype), "scale": scale, "offset": scalar(0), "qmin": 0, "qmax": qmax}


@measured(
    "aimet/affine.quantize", "aimet-torch 2.42: affine.quantize; the sign of zero: affine.quantize, printed example"
)
@measured(
    "aimet/affine.quantize_dequantize",
    "aimet-torch 2.42: affine.quantize_dequantize with a scale that requires grad",
    text="Infinities give the values of the ends, NaN stays NaN, and an input of either zero gives the value of zero.",
)
def extremes() -> Calls:
    """Infinities give the ends of the grid, NaN stays NaN, and a zero code keeps the sign of the input, whatever the
    scale."""
    # Zeros, subnormals, infinities and NaN, with scales of every kind; values and signs.
    for dtype in DTYPES:
        info = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
        small, large = float(info.smallest_subnormal), float(info.max)
        x = np.array([0.0, -0.0, small, -small, -0.03, 0.03, 1, -1, large, -large, np.inf, -np.inf, np.nan])
        for scale in (0.1, 0.0, -1.0, np.inf, np.nan, small):
            for grid in ((0, 15), (-8, 7)):
                given = {"tensor": x.astype(dtype), "scale": scalar(scale, dtype), "qmin": grid[0], "qmax": grid[1]}
                yield {**given, "offset": scalar(-0.0 if grid[0] else 0.0, dtype)}


@documented("aimet/affine.quantize", "affine.quantize: Examples")
@documented(
    "aimet/affine.quantize_dequantize",
    "affine.quantize: Examples; class QuantizeDequantize: equation of the output, both examples",
    text="The printed calls give the values of the printed codes; the values that the class prints are values of one "
    "grid per block, the one of min -1 and max 1 among them.",
)
def examples(formula: str) -> Calls:
    """The three printed calls give the printed codes."""
    # The three calls that the document prints; for the reals also what the class prints, of two ranges.
    plain = {"tensor": EXAMPLE, "scale": scalar(1 / 15), "offset": scalar(0)}
    yield {**plain, "bitwidth": 4}
    yield {**plain, "num_steps": 15}
    yield {**plain, "qmin": 0, "qmax": 15}
    if formula == "aimet/affine.quantize_dequantize":
        blocks = {"bitwidth": 8, "signed": False, "block_size": (1, 5)}
        yield {"tensor": CALIBRATED, "scale": _SCALES, "offset": _OFFSETS, **blocks}
        unit = np.full((5, 2), 2 / 255, F32)
        yield {"tensor": UNIT_RANGE, "scale": unit, "offset": np.full((5, 2), -127, F32), **blocks}


@measured("aimet/affine.quantize", "aimet-torch 2.42: affine.quantize")
@measured(
    "aimet/affine.quantize_dequantize",
    "aimet-torch 2.42: affine.quantize_dequantize",
    text="Refused are integer tensors, a grid without codes or beyond float64, a bitwidth that is no integer, and "
    "shapes or blocks that do not fit.",
)
def refusals(formula: str) -> Calls:
    """Refused are integer tensors, a grid without codes or with codes that the dtype does not hold, a bitwidth that is
    no integer, and shapes or blocks that do not fit."""
    x = np.array([-1, 0, 1, 2], F32)
    plain = {"tensor": x, "scale": scalar(1), "offset": scalar(0), "bitwidth": 4}
    yield from ({**plain, "tensor": x.astype(t)} for t in ("int8", "int32", "int64", "bool"))
    yield {**plain, "bitwidth": -1}
    yield {**plain, "bitwidth": 4.5}
    yield {**plain, "bitwidth": 4.5, "signed": True}
    yield {**plain, "bitwidth": None, "signed": True}
    yield {**plain, "tensor": x.astype(ml_dtypes.float8_e4m3fn), "bitwidth": 2}
    yield {**plain, "bitwidth": None, "qmin": 5, "qmax": 4}
    yield {**plain, "bitwidth": 54, "signed": False}
    yield {**plain, "bitwidth": 55, "signed": True}
    if formula == "aimet/affine.quantize":
        yield {**plain, "bitwidth": 25}
        yield {**plain, "tensor": x.astype(np.float16), "bitwidth": 12}
        yield {**plain, "tensor": x.astype(ml_dtypes.bfloat16), "bitwidth": 9}
        yield {**plain, "tensor": x.astype(np.float16), "bitwidth": None, "qmin": -70000, "qmax": -69990}
        for ends in ((-2050, 0), (0, 2050)):  # a code next to an end that the dtype does not hold
            yield {**plain, "tensor": x.astype(np.float16), "bitwidth": None, "qmin": ends[0], "qmax": ends[1]}
    yield from _misfits(plain)


def _misfits(plain: dict[str, Any]) -> Iterator[Arguments]:
    two, one = np.ones(2, F32), np.ones((1, 1), F32)
    yield {**plain, "scale": np.ones(3, F32), "offset": np.ones(3, F32)}
    yield {**plain, "scale": one, "offset": one}
    yield {**plain, "scale": two, "offset": two, "block_size": (3,)}
    yield {**plain, "scale": two, "offset": two, "block_size": (1,)}
    yield {**plain, "scale": two, "offset": two, "block_size": (1, 2)}
    yield {**plain, "scale": np.ones(3, F32), "offset": np.ones(3, F32), "block_size": (-1,)}
    yield {**plain, "scale": two[:1], "offset": two[:1], "block_size": (1,)}
    yield {**plain, "scale": one, "offset": one, "block_size": (1, 4)}


@measured("aimet/affine.quantize_dequantize", "aimet-torch 2.42: affine.quantize_dequantize")
def zero_point_shift() -> Calls:
    """A zero point shift of z is subtracted before rounding and added back with the offset: every value of the grid
    moves by z scales."""
    # The grid moved by half a code and by others, in every dtype.
    for dtype in DTYPES:
        for shift in (0.5, -0.25, 0.0):
            x = boundaries(0.2, np.arange(-10, 10) / 2, dtype)
            given = {"tensor": x, "scale": scalar(0.2, dtype), "offset": scalar(1, dtype), "zero_point_shift": shift}
            yield {**given, "bitwidth": 3, "signed": True}
    zero = {"tensor": np.array([0.0, -0.0], F32), "scale": scalar(1), "offset": scalar(0), "bitwidth": 2}
    yield {**zero, "signed": True, "zero_point_shift": 0.5}


@documented(
    "aimet/affine.dequantize",
    "class QuantizeDequantize: equation of the output (the dtype: measured)",
    aspect="sum-and-product",
)
def dequantized_codes() -> Calls:
    """A code gives (code + offset) * scale, the sum and the product rounded in the dtype of the codes, without a
    limit."""
    # Codes of 8 and 16 bits, fractions and numbers beyond every grid; offsets that the dtype does not hold.
    for dtype in DTYPES:
        q = np.array([*range(-4, 5), 0.1, -128, 127, 255, 256, 257, 2049, 65535, 0.5, -0.0, np.inf, np.nan])
        with np.errstate(over="ignore"):
            held = q.astype(dtype)
        for scale, offset in ((0.1, 0), (0.3, -257), (2**-130, 3), (300, -0.0), (-1, 0.5)):
            yield {"tensor": held, "scale": scalar(scale), "offset": scalar(offset)}


@expected("aimet/affine.dequantize", "class QuantizeDequantize: equation of the output", aspect="integer-codes")
def integers() -> Calls:
    """Codes of an integer dtype are refused, not multiplied by a scale that is cut to an integer."""
    for dtype in ("int8", "uint8", "int16", "int32", "int64"):
        for scale, offset in ((2, 3), (0.5, 0), (-1.5, -2)):
            yield {"tensor": np.array([1, 2, 100, 0], dtype), "scale": scalar(scale), "offset": scalar(offset)}


@measured("aimet/affine.dequantize", "aimet-torch 2.42: affine.dequantize", aspect="refusals")
def dequantize_refusals() -> Calls:
    """Shapes and blocks that do not fit are refused."""
    yield from _misfits({"tensor": np.array([-1, 0, 1, 2], F32)})


def quantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.quantize``."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.quantize(tensor, scale.detach().requires_grad_(), offset, **given)
    return result.detach()


def quantize_dequantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.quantize_dequantize``."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.quantize_dequantize(tensor, scale.detach().requires_grad_(), offset, **given)
    return result.detach()


def dequantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.dequantize``."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.dequantize(tensor, scale, offset, **given)
    return result.detach()


def frozen_quantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.quantize`` without grad."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.quantize(tensor, scale, offset, **given)
    return result


def frozen_quantize_dequantize(tensor: Tensor, scale: Tensor, offset: Tensor, **given: Any) -> Tensor:
    """``affine.quantize_dequantize`` without grad: of one scale, or one per channel, ``torch.fake_quantize_*``."""
    from aimet_torch.quantization import affine

    result: Tensor = affine.quantize_dequantize(tensor, scale, offset, **given)
    return result


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/affine.quantize": quantize,
        "aimet/affine.quantize_dequantize": quantize_dequantize,
        "aimet/affine.dequantize": dequantize,
    },
    "aimet.frozen": {
        "aimet/affine.quantize": frozen_quantize,
        "aimet/affine.quantize_dequantize": frozen_quantize_dequantize,
        "aimet/affine.dequantize": dequantize,
    },
}
