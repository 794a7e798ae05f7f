"""gguf: what is required of its blocks, the calls that decide it, and how its Python package answers."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import (
    Arguments,
    Requirement,
    calls,
    documented,
    expected,
    measured,
    of,
    silent,
)
from halfeven.reference.systems.gguf.quants import BLOCKS, Block

__all__ = ["ANSWERS", "REQUIREMENTS"]

Array = npt.NDArray[Any]

F32 = np.float32
STORED = {**{block.name: block.bytes for block in BLOCKS}, "Q4_K": 144, "Q6_K": 210}
CODES = {**{block.name: 32 for block in BLOCKS}, "Q4_K": 256, "Q6_K": 256}
_SCALES = (1.0, 0.1, 1 / 3, 0.7, 1.1 * 2.0**-20)  # of all but the first the reciprocal is rounded
# Ties and ends of float16, the scale's own dtype, and the smallest float32 scale whose reciprocal is finite.
_HALVES = (1 + 2.0**-11, 1 + 3 * 2.0**-11, 2.0**-24, 1.5 * 2.0**-24, 2.0**-25, 65504.0, 65520.0, 1e30, 2.0**-127)


def _quantizing(block: Block) -> tuple[Requirement, ...]:
    source = f"gguf.quants.{block.name}.quantize_blocks"
    if block.minimum:
        scale = "The minimum is the least element, the scale what lies between it and the greatest over the last code"
        code = "The code is the element less the minimum, times the reciprocal of the scale, plus a half, truncated"
    elif block.offset:
        scale = f"The scale is the element of largest magnitude, the first of several, over -{block.offset}"
        code = (
            "The code is the element times the reciprocal of the scale, "
            f"plus {block.offset}.5, truncated, and at most {2 * block.offset - 1}"
        )
    else:
        scale = "The scale is the largest magnitude over 127"
        code = "The code is the element times the reciprocal of the scale, a half rounded away from zero"
    return of(
        f"gguf/{block.name}.quantize",
        documented("ties", f"{code}; every operation is rounded in float32.", source),
        documented("extremes", f"{scale}.", source),
        documented("stored", "The scale is stored in float16, and the codes are made with it before that.", source),
        documented("zeros", "A scale of zero has the reciprocal zero: no code is NaN.", source),
        documented("rows", "Each 32 elements along the last dimension are a block; the other dimensions stay.", source),
        documented("dtypes", "Elements of other dtypes are rounded to float32 first.", "gguf.quants.quantize_rows"),
        documented("refusals", "A last dimension that is no multiple of 32 is refused.", "gguf.quants.can_quantize"),
        expected("empty", "Of no elements there are no bytes, whichever dimension is 0.", "no document says"),
        silent(
            "specials",
            "What the codes are where NaN, an infinity or the reciprocal of a tiny scale comes in.",
            "no document says",
        ),
    )


def _dequantizing(name: str) -> tuple[Requirement, ...]:
    source = f"gguf.quants.{name}.dequantize_blocks"
    return of(
        f"gguf/{name}.dequantize",
        documented("codes", "Every byte of a block is read where the layout puts it.", source),
        documented("scales", "The element is the real value of the equation, rounded to float32 once.", source),
        measured("specials", "Scales that are infinite or NaN are computed with as IEEE 754 says.", source),
        documented("rows", "The blocks lie along the last dimension; the other dimensions stay.", source),
        documented("refusals", f"A last dimension that is no multiple of {STORED[name]} is refused.", source),
        expected("empty", "Of no bytes there are no elements, whichever dimension is 0.", "no document says"),
    )


REQUIREMENTS = (
    *(r for block in BLOCKS for r in _quantizing(block)),
    *(r for name in STORED for r in _dequantizing(name)),
)


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


def _ties(block: Block) -> Iterator[Arguments]:
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


def _extremes(_block: Block) -> Iterator[Arguments]:
    ramp = np.linspace(-1, 1, 32, dtype=F32)
    yield {"tensor": np.array([ramp, -ramp, ramp + 2, ramp - 2, ramp * F32(0.1)])}
    one = np.zeros((2, 32), F32)
    one[0, 17], one[1, 31] = 3, -0.3
    yield {"tensor": one}
    yield {"tensor": np.array([np.tile([s, -s, s / 3, 0.1], 8) for s in (1, -1, 0.7)], F32)}
    yield {"tensor": np.array([np.full(32, v) for v in (5.0, -0.1, 2.0**-20)], F32)}


def _stored(block: Block) -> Iterator[Arguments]:
    ramp = np.linspace(0, 1, 32, dtype=F32)
    for scale in _HALVES:
        for least in (0.0, -scale, *(_HALVES[:7] if block.minimum and scale == _HALVES[0] else ())):
            ends = _ends(block, scale, least)
            yield {"tensor": _blocks(ends, (ramp * (ends[-1] - (ends[0] if block.minimum else F32(0))) + F32(least)))}


def _zeros(block: Block) -> Iterator[Arguments]:
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


def _rows(_block: Block) -> Iterator[Arguments]:
    x = np.sin(np.arange(40 * 96, dtype=np.float64) ** 2).astype(F32)
    for shape in ((32,), (1, 96), (40, 64), (2, 3, 96), (17, 1, 1, 32)):
        yield {"tensor": x[: int(np.prod(shape))].reshape(shape)}
    yield {"tensor": np.asarray(x[: 64 * 32].reshape(64, 32).T[:, ::2][:, :32], order="F")}


def _dtypes(block: Block) -> Iterator[Arguments]:
    d = block.offset or 2**block.bits - 1
    wide = np.linspace(-1, 1, 32)
    wide[0] = -1 - 2.0**-25  # nearer to -1 than to any other float32, and of larger magnitude than 1
    wide[1] = 3.5 / d + 2.0**-40
    yield {"tensor": wide}
    yield {"tensor": wide.astype(np.float16)}
    yield {"tensor": np.arange(-16, 16, dtype=np.int32) * (2**24 + 1)}


def _refused(_block: Block) -> Iterator[Arguments]:
    for shape in ((31,), (2, 33), (3, 2, 16), (32, 1)):
        yield {"tensor": np.ones(shape, F32)}


def _empty(_block: Block) -> Iterator[Arguments]:
    for shape in ((0,), (3, 0), (0, 0), (0, 32), (2, 0, 64)):
        yield {"tensor": np.zeros(shape, F32)}


def _specials(_block: Block) -> Iterator[Arguments]:
    ramp = np.linspace(-1, 1, 32, dtype=F32)
    for special in (np.inf, -np.inf, np.nan):
        yield {"tensor": np.where(np.arange(32) == 9, F32(special), ramp)}  # noqa: PLR2004 - anywhere
    for top in (2.0**-126, 2.0**-130, 2.0**-149):
        yield {"tensor": ramp * F32(top)}


_QUANTIZE: dict[str, Callable[[Block], Iterator[Arguments]]] = {
    "ties": _ties,
    "extremes": _extremes,
    "stored": _stored,
    "zeros": _zeros,
    "rows": _rows,
    "dtypes": _dtypes,
    "refusals": _refused,
    "empty": _empty,
    "specials": _specials,
}
for _block in BLOCKS:
    for _name, _build in _QUANTIZE.items():
        calls(f"gguf/{_block.name}.quantize", _name)(partial(_build, _block))

_FINITE = (1.0, -0.1, 1 / 3, 2.0**-24, 1023 * 2.0**-24, -(2.0**-14), 65504.0, 0.0, -0.0)


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


def _every_code(name: str) -> Iterator[Arguments]:
    yield {"tensor": _bytes(name, 16 if CODES[name] > 32 else 256, (1.0, 0.5), (0.1, -3.3))}  # noqa: PLR2004 - a superblock


def _every_scale(name: str) -> Iterator[Arguments]:
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


def _not_finite(name: str) -> Iterator[Arguments]:
    specials = (np.inf, -np.inf, np.nan)
    pairs = [*((s, 1.0) for s in specials), *((1.0, s) for s in specials), (np.inf, np.inf), (np.inf, -np.inf)]
    yield {"tensor": _bytes(name, len(pairs), *pairs)}


def _some_rows(name: str) -> Iterator[Arguments]:
    size = STORED[name]
    stored = _bytes(name, 36, (0.1, 1.0), (2.0, -0.3))
    for shape in ((size,), (1, 2 * size), (36, size), (2, 3, 2 * size)):
        yield {"tensor": stored.ravel()[: int(np.prod(shape))].reshape(shape)}


def _other_lengths(name: str) -> Iterator[Arguments]:
    size = STORED[name]
    for shape in ((size - 1,), (2, size + 1), (3, 32 if size % 32 else 31), (size, 1)):
        yield {"tensor": np.zeros(shape, np.uint8)}


def _no_bytes(name: str) -> Iterator[Arguments]:
    size = STORED[name]
    for shape in ((0,), (3, 0), (0, 0), (0, size), (2, 0, 2 * size)):
        yield {"tensor": np.zeros(shape, np.uint8)}


_DEQUANTIZE: dict[str, Callable[[str], Iterator[Arguments]]] = {
    "codes": _every_code,
    "scales": _every_scale,
    "specials": _not_finite,
    "rows": _some_rows,
    "refusals": _other_lengths,
    "empty": _no_bytes,
}
for _name in STORED:
    for _check, _make in _DEQUANTIZE.items():
        calls(f"gguf/{_name}.dequantize", _check)(partial(_make, _name))


def _answer(operation: str, name: str, tensor: Any) -> Any:
    from gguf import quants

    return getattr(getattr(quants, name), operation)(tensor.numpy())


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "gguf": {
        **{f"gguf/{block.name}.quantize": partial(_answer, "quantize", block.name) for block in BLOCKS},
        **{f"gguf/{name}.dequantize": partial(_answer, "dequantize", name) for name in STORED},
    },
}
