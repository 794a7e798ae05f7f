"""gguf: what is required of its blocks, the calls that decide it, and how its Python package answers."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from halfeven.conformance.backends.entry import Backends, Entry
from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Calls, documented, expected, measured, silent
from halfeven.reference.blocks import Array
from halfeven.reference.systems.gguf import BLOCKS, Block

__all__ = ["ANSWERS", "BACKENDS"]

BACKENDS: Backends = {
    "gguf": Entry("gguf", "gguf", "blocks of codes with a scale", extra="gguf", imports="gguf.quants"),
}

F32 = np.float32
STORED = {**{name: block.bytes for name, block in BLOCKS.items()}, "Q4_K": 144, "Q6_K": 210}
CODES = {**dict.fromkeys(BLOCKS, 32), "Q4_K": 256, "Q6_K": 256}
_SCALES = (1.0, 0.1, 1 / 3, 0.7, 1.1 * 2.0**-20)  # of all but the first the reciprocal is rounded
# Ties and ends of float16, the scale's own dtype, and the smallest float32 scale whose reciprocal is finite.
_HALVES = (1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-24, 1.5 * 2.0**-24, 2.0**-25, 65504.0, 65520.0, 1e30, 2.0**-127)

_OF = {f"gguf/{name}.quantize": block for name, block in BLOCKS.items()}
QUANTIZE, DEQUANTIZE = tuple(_OF), tuple(f"gguf/{name}.dequantize" for name in STORED)
_OFFSET, _MINIMUM = (tuple(f for f, b in _OF.items() if b.offset), tuple(f for f, b in _OF.items() if b.minimum))
_QUANTIZED, _DEQUANTIZED = "gguf.quants: quantize_blocks of the type", "gguf.quants: dequantize_blocks of the type"


def _ends(block: Block, scale: float, least: float = 0.0) -> Array:
    """The elements that give a block this scale, near enough, and its minimum where it has one."""
    if block.minimum:
        return np.array([least, least + scale * (2**block.bits - 1)], F32)
    return np.array([scale * -(block.offset or 127)], F32)


def _blocks(ends: Array, elements: Array) -> Array:
    """Blocks of all ``elements``, each with the ends, somewhere else in every block; zeros or the first end fill up."""
    room = 32 - len(ends)
    filled = np.concatenate([elements, np.full(-len(elements) % room, ends[0])]).reshape(-1, room)
    rows = [np.roll(np.concatenate([ends, row]), 5 * i) for i, row in enumerate(filled)]
    return np.array(rows, F32)


@documented("gguf/Q8_0.quantize", _QUANTIZED)
@documented(
    _OFFSET,
    _QUANTIZED,
    text="The code is the element times the reciprocal of the scale, plus half the number of codes and a half, "
    "truncated, and at most the last code; every operation is rounded in float32.",
)
@documented(
    _MINIMUM,
    _QUANTIZED,
    text="The code is the element less the minimum, times the reciprocal of the scale, plus a half, truncated; every "
    "operation is rounded in float32.",
)
def ties(formula: str) -> Calls:
    """The code is the element times the reciprocal of the scale, a half rounded away from zero; every operation is
    rounded in float32."""
    block = _OF[formula]
    for i, scale in enumerate((*_SCALES, *(-s for s in _SCALES if block.offset))):
        least = (0.0, -0.3, 0.25, -1.7, 1e-3)[i % 5] * scale
        ends = _ends(block, scale, least)
        if block.minimum:
            d = (ends[1] - ends[0]) / F32(2**block.bits - 1)
            ties = ends[0] + (np.arange(2**block.bits - 1, dtype=F32) + F32(0.5)) * d
        else:
            half = block.offset or 127
            ties = (np.arange(-half, half, dtype=F32) + F32(0.5)) * (ends[0] / F32(-half))
        near = step(ties[:, None], np.arange(-1, 2)).ravel()
        # Sums of half a step with what is an ulp below a tie are rounded up to the next code.
        yield {"tensor": _blocks(ends, np.concatenate([near, [F32(0)] if not block.minimum else ends[:1]]))}


@documented("gguf/Q8_0.quantize", _QUANTIZED)
@documented(
    _OFFSET,
    _QUANTIZED,
    text="The scale is the element of largest magnitude, the first of several, over half the number of codes, negated.",
)
@documented(
    _MINIMUM,
    _QUANTIZED,
    text="The minimum is the least element, the scale what lies between it and the greatest over the last code.",
)
def extremes() -> Calls:
    """The scale is the largest magnitude over 127."""
    ramp = np.linspace(-1, 1, 32, dtype=F32)
    yield {"tensor": np.array([ramp, -ramp, ramp + 2, ramp - 2, ramp * F32(0.1)])}
    one = np.zeros((2, 32), F32)
    one[0, 17], one[1, 31] = 3, -0.3
    yield {"tensor": one}
    yield {"tensor": np.array([np.tile([s, -s, s / 3, 0.1], 8) for s in (1, -1, 0.7)], F32)}
    yield {"tensor": np.array([np.full(32, v) for v in (5.0, -0.1, 2.0**-20)], F32)}


@documented(QUANTIZE, _QUANTIZED)
def stored(formula: str) -> Calls:
    """The scale is stored in float16, and the codes are made with it before that."""
    block = _OF[formula]
    ramp = np.linspace(0, 1, 32, dtype=F32)
    for scale in _HALVES:
        for least in (0.0, -scale, *(_HALVES[:7] if block.minimum and scale == _HALVES[0] else ())):
            ends = _ends(block, scale, least)
            yield {"tensor": _blocks(ends, (ramp * (ends[-1] - (ends[0] if block.minimum else F32(0))) + F32(least)))}


@documented(QUANTIZE, _QUANTIZED)
def zeros(formula: str) -> Calls:
    """A scale of zero has the reciprocal zero: no code is NaN."""
    block = _OF[formula]
    zeros = np.zeros((2, 32), F32)
    yield {"tensor": zeros}
    yield {"tensor": -zeros}
    if not block.minimum:  # of zeros of both signs, which is the least is open
        zeros[:, 1::3] *= -1
        zeros[1] *= -1
        yield {"tensor": zeros}
    zeros = np.zeros((2, 32), F32)
    zeros[1, 3:] = np.arange(29)
    yield {"tensor": zeros}


@documented(QUANTIZE, _QUANTIZED)
def rows() -> Calls:
    """Each 32 elements along the last dimension are a block; the other dimensions stay."""
    x = np.sin(np.arange(40 * 96, dtype=np.float64) ** 2).astype(F32)
    for shape in ((32,), (1, 96), (40, 64), (2, 3, 96), (17, 1, 1, 32)):
        yield {"tensor": x[: int(np.prod(shape))].reshape(shape)}
    yield {"tensor": np.asarray(x[: 64 * 32].reshape(64, 32).T[:, ::2][:, :32], order="F")}


@documented(QUANTIZE, "gguf.quants.quantize_rows")
def dtypes(formula: str) -> Calls:
    """Elements of other dtypes are rounded to float32 first."""
    block = _OF[formula]
    d = block.offset or 2**block.bits - 1
    wide = np.linspace(-1, 1, 32)
    wide[0] = -1 - 2.0**-25  # nearer to -1 than to any other float32, and of larger magnitude than 1
    wide[1] = 3.5 / d + 2.0**-40
    yield {"tensor": wide}
    yield {"tensor": wide.astype(np.float16)}
    yield {"tensor": np.arange(-16, 16, dtype=np.int32) * (2**24 + 1)}


@documented(QUANTIZE, "gguf.quants.can_quantize")
def refusals() -> Calls:
    """A last dimension that is no multiple of 32 is refused."""
    for shape in ((31,), (2, 33), (3, 2, 16), (32, 1)):
        yield {"tensor": np.ones(shape, F32)}


@expected(QUANTIZE, "no document says")
def empty() -> Calls:
    """Of no elements there are no bytes, whichever dimension is 0."""
    for shape in ((0,), (3, 0), (0, 0), (0, 32), (2, 0, 64)):
        yield {"tensor": np.zeros(shape, F32)}


@silent(QUANTIZE, "no document says")
def specials() -> Calls:
    """What the codes are where NaN, an infinity or the reciprocal of a tiny scale comes in."""
    ramp = np.linspace(-1, 1, 32, dtype=F32)
    for special in (np.inf, -np.inf, np.nan):
        yield {"tensor": np.where(np.arange(32) == 9, F32(special), ramp)}  # noqa: PLR2004 - anywhere
    for top in (2.0**-126, 2.0**-130, 2.0**-149):
        yield {"tensor": ramp * F32(top)}


_FINITE = (1.0, -0.1, 1 / 3, 2.0**-24, 1023 * 2.0**-24, -(2.0**-14), 65504.0, 0.0, -0.0)


def _name(formula: str) -> str:
    return formula.removeprefix("gguf/").removesuffix(".dequantize")


def _bytes(name: str, rows: int, *parameters: tuple[float, float]) -> Array:
    """Rows of a block each, in which every nibble stands everywhere, with (d, m) from ``parameters`` in turn."""
    k, j = np.arange(rows)[:, None], np.arange(STORED[name])
    stored = ((k + j) % 16 | (3 * k + 5 * j + k // 16) % 16 << 4).astype(np.uint8)
    chosen = [parameters[i % len(parameters)] for i in range(rows)]
    halves = np.array(chosen, np.float64).astype("<f2").view(np.uint8)
    if name == "Q6_K":
        stored[:, -2:] = halves[:, :2]
    else:
        width = 4 if name in {"Q4_1", "Q5_1", "Q4_K"} else 2
        stored[:, :width] = halves[:, :width]
    return stored


@documented(DEQUANTIZE, _DEQUANTIZED, aspect="codes")
def every_code(formula: str) -> Calls:
    """Every byte of a block is read where the layout puts it."""
    name = _name(formula)
    yield {"tensor": _bytes(name, 16 if CODES[name] > 32 else 256, (1.0, 0.5), (0.1, -3.3))}  # noqa: PLR2004 - a superblock
    if name == "Q6_K":  # the high two bits of a code, whatever its low four are
        stored = _bytes(name, 64, (1.0, 0.0))
        stored[:, 128:192] = (np.arange(64)[:, None] * 85 // 16 + np.arange(64) * 27) % 256
        yield {"tensor": stored}


@documented(DEQUANTIZE, _DEQUANTIZED, aspect="scales")
def every_scale(formula: str) -> Calls:
    """The element is the real value of the equation, rounded to float32 once."""
    name = _name(formula)
    pairs = [(d, _FINITE[(i + k) % len(_FINITE)]) for k in (0, 1, 4) for i, d in enumerate(_FINITE)]
    yield {"tensor": _bytes(name, len(pairs), *pairs)}
    if name == "Q4_K":  # the six bits of every scale and minimum
        stored = _bytes(name, 64, (1.0, 1.0), (1 / 3, 0.1))
        stored[:, 4:16] = (np.arange(64)[:, None] * 4 + np.arange(12) * 37 + np.arange(64)[:, None] // 16) % 256
        yield {"tensor": stored}
    if name == "Q6_K":  # scales of both signs, the lowest among them
        stored = _bytes(name, 16, (1 / 3, 0.0))
        stored[:, 192:208] = np.arange(256).reshape(16, 16)
        yield {"tensor": stored}


@measured(DEQUANTIZE, _DEQUANTIZED, aspect="specials")
def not_finite(formula: str) -> Calls:
    """Scales that are infinite or NaN are computed with as IEEE 754 says."""
    name = _name(formula)
    specials = (np.inf, -np.inf, np.nan)
    pairs = [*((s, 1.0) for s in specials), *((1.0, s) for s in specials), (np.inf, np.inf), (np.inf, -np.inf)]
    yield {"tensor": _bytes(name, len(pairs), *pairs)}


@documented(DEQUANTIZE, _DEQUANTIZED, aspect="rows")
def some_rows(formula: str) -> Calls:
    """The blocks lie along the last dimension; the other dimensions stay."""
    name = _name(formula)
    size = STORED[name]
    stored = _bytes(name, 36, (0.1, 1.0), (2.0, -0.3))
    for shape in ((size,), (1, 2 * size), (36, size), (2, 3, 2 * size)):
        yield {"tensor": stored.ravel()[: int(np.prod(shape))].reshape(shape)}


@documented(DEQUANTIZE, _DEQUANTIZED, aspect="refusals")
def other_lengths(formula: str) -> Calls:
    """A last dimension that is no multiple of a block's bytes is refused."""
    name = _name(formula)
    size = STORED[name]
    for shape in ((size - 1,), (2, size + 1), (3, 32 if size % 32 else 31), (size, 1)):
        yield {"tensor": np.zeros(shape, np.uint8)}


@expected(DEQUANTIZE, "no document says", aspect="empty")
def no_bytes(formula: str) -> Calls:
    """Of no bytes there are no elements, whichever dimension is 0."""
    name = _name(formula)
    size = STORED[name]
    for shape in ((0,), (3, 0), (0, 0), (0, size), (2, 0, 2 * size)):
        yield {"tensor": np.zeros(shape, np.uint8)}


def _answer(operation: str, name: str, tensor: Any) -> Any:
    from gguf import quants

    return getattr(getattr(quants, name), operation)(tensor.detach().numpy())


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "gguf": {
        **{f"gguf/{name}.quantize": partial(_answer, "quantize", name) for name in BLOCKS},
        **{f"gguf/{name}.dequantize": partial(_answer, "dequantize", name) for name in STORED},
    },
}
