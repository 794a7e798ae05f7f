"""gguf: ggml's blocks of codes with a scale, as gguf's Python package computes them.

Blocks of 32 codes with one scale are quantized and dequantized; superblocks of 256 codes dequantized.

A block is a run along the last dimension; what is stored of it are bytes, its scale and minimum in float16 among them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.rounding import ROUNDINGS, cast_once

__all__ = ["BLOCKS", "Block", "Dequantizing", "Extreme", "Halves", "QuantError", "Quantizing", "Range"]

_F32 = np.float32
_SIZE = 32  # elements of a block
_SUPER = 256  # elements of a superblock
_BYTE = 8


class QuantError(ValueError):  # the document's own error
    """The last dimension is not a whole number of blocks."""


@dataclass(frozen=True)
class Block:
    """A block of 32 codes: its scale, its minimum if it has one, the fifth bits, then bytes or pairs of nibbles.

    Attributes:
        bits: of a code.
        offset: what is added to a signed code to store it; codes of 8 bits are stored signed.
        minimum: whether codes count from the least element, which is stored; else from zero.
    """

    bits: int
    offset: int = 0
    minimum: bool = False

    @property
    def bytes(self) -> int:
        """Of a stored block."""
        return 2 + 2 * self.minimum + self.bits * _SIZE // _BYTE


BLOCKS = {
    "Q8_0": Block(8),
    "Q4_0": Block(4, offset=8),
    "Q4_1": Block(4, minimum=True),
    "Q5_0": Block(5, offset=16),
    "Q5_1": Block(5, minimum=True),
}


@dataclass(frozen=True)
class Rows(Behaviour):
    """What every function has to choose."""

    empty: str = choice(
        {
            "taken": "answers a tensor of no elements",
            "no-columns": "refuses rows of no elements",
            "refused": "refuses a tensor of no elements",
        }
    )


@dataclass(frozen=True)
class Quantizing(Rows):
    """The choices in making codes with a scale; the document rounds halves away from zero."""

    scale: str = choice(
        {
            "unrounded": "makes the codes with the scale before it is rounded to float16",
            "stored": "makes the codes with the scale as stored, in float16",
        }
    )
    division: str = choice(
        {"reciprocal": "multiplies by the reciprocal of the scale", "divide": "divides by the scale"}
    )
    rounding: str = roundings("the scaled element")


@dataclass(frozen=True)
class _Nibbles(Behaviour):
    nibbles: str = choice(
        {
            "halves": "puts the first half of a block into the low nibbles, the second into the high ones",
            "pairs": "puts neighbours into one byte",
        }
    )


@dataclass(frozen=True)
class _Sum(Quantizing, _Nibbles):
    rounding: str = choice(
        {
            "sum": "adds half a step and the offset in float32, and truncates",
            **roundings("the scaled element by itself").metadata["words"],
        }
    )


@dataclass(frozen=True)
class Extreme(_Sum):
    """The choices where the element of largest magnitude gives the scale."""

    equal: str = choice(
        {
            "first": "takes the first of several elements of the largest magnitude",
            "last": "takes the last of several elements of the largest magnitude",
        }
    )
    sign: str = choice(
        {
            "opposite": "gives the scale the sign by which the largest magnitude has the lowest code",
            "positive": "gives every scale a positive sign",
        }
    )
    zeros: str = choice(
        {
            "signed": "gives a block of zeros a scale of zero by the sign of the first",
            "alike": "gives every block of zeros the scale that zeros without a sign have",
        }
    )


@dataclass(frozen=True)
class Range(_Sum):
    """The choices where codes count from the minimum."""

    minimum: str = choice(
        {
            "unrounded": "subtracts the minimum before it is rounded to float16",
            "stored": "subtracts the minimum as stored, in float16",
        }
    )


@dataclass(frozen=True)
class Dequantizing(Rows):
    """The choices in multiplying by a scale."""

    arithmetic: str = choice({"float32": "computes in float32", "float16": "computes in float16"})


@dataclass(frozen=True)
class Halves(Dequantizing, _Nibbles):
    """The choices where two codes share a byte."""


def _runs(b: Rows, tensor: Array, length: int, made: int, refusal: type[Exception]) -> tuple[Array, tuple[int, ...]]:
    """The rows of ``tensor`` in runs of ``length``, each of which becomes ``made``, and the shape of all that."""
    runs, rest = divmod(tensor.shape[-1], length)
    if rest:
        msg = f"tensor of shape {tensor.shape} is not accepted: its last dimension is no multiple of {length}"
        raise refusal(msg)
    if (not runs and b.empty == "no-columns") or (not tensor.size and b.empty == "refused"):
        msg = f"tensor of shape {tensor.shape} is not accepted: it is empty"
        raise ValueError(msg)
    return tensor.reshape(-1, length), (*tensor.shape[:-1], runs * made)


def _bytes(a: Array) -> Array:
    """Float16 numbers in a column, as their bytes."""
    return a.astype("<f2").view(np.uint8)


def _half(stored: Array) -> Array:
    """Columns of two bytes as the float16 numbers that they are."""
    return np.ascontiguousarray(stored).view("<f2")


def _scale(b: Any, block: Block, x: Array) -> Array:
    """The scale of each row of ``x``."""
    if block.minimum:
        spread: Array = np.ptp(x, axis=1, keepdims=True)
        return spread / _F32(2**block.bits - 1)
    magnitude = np.abs(x)
    if not block.offset:
        largest: Array = magnitude.max(axis=1, keepdims=True)
        return largest / _F32(127)
    at = magnitude.argmax(axis=1) if b.equal == "first" else _SIZE - 1 - magnitude[:, ::-1].argmax(axis=1)
    extreme: Array = x[np.arange(len(x)), at][:, None]
    if b.zeros == "alike":
        extreme = np.where(extreme == 0, _F32(0), extreme)
    return extreme / _F32(-block.offset) if b.sign == "opposite" else np.abs(extreme) / _F32(block.offset)


def _quantize(block: Block, b: Any, tensor: Array) -> Array:
    blocks, shape = _runs(b, tensor, _SIZE, block.bytes, QuantError)
    with np.errstate(all="ignore"):
        x = cast_once(blocks, _F32)
        d, m = _scale(b, block, x), x.min(axis=1, keepdims=True)
        head = [_bytes(d), _bytes(m)] if block.minimum else [_bytes(d)]
        if b.scale == "stored":
            d = d.astype(np.float16)
        if block.minimum:
            x = x - (m if b.minimum == "unrounded" else m.astype(np.float16))
        scaled = x * (_F32(1) / d) if b.division == "reciprocal" else x / d
        scaled = np.where(d == 0, _F32(0), scaled)
        if b.rounding == "sum":
            q = scaled + _F32(block.offset + 0.5)  # a code has no place for its fraction
        else:
            q = ROUNDINGS[b.rounding](scaled) + _F32(block.offset)
    return np.concatenate([*head, *_packed(b, block, q)], axis=1).reshape(shape)


def _packed(b: Any, block: Block, q: Array) -> list[Array]:
    """The bytes of codes; what is no finite number, which no document gives a code, has 0."""
    low, high = (-128, 127) if block.bits == _BYTE else (0, 2**block.bits - 1)
    codes = np.clip(np.where(np.isfinite(q), q, 0), low, high).astype(np.int16).astype(np.uint8)
    if block.bits == _BYTE:
        return [codes]
    nibbles, half = codes & 15, _SIZE // 2
    first, second = (
        (nibbles[:, :half], nibbles[:, half:]) if b.nibbles == "halves" else (nibbles[:, ::2], nibbles[:, 1::2])
    )
    fifth = np.packbits(codes >> 4, axis=1, bitorder="little")
    return [*([fifth] if block.bits > 4 else []), first | second << 4]  # noqa: PLR2004 - a nibble's


def _unpacked(b: Any, block: Block, stored: Array) -> Array:
    """The codes in the bytes after scale and minimum, signed."""
    if block.bits == _BYTE:
        return stored.view(np.int8)
    pairs = stored[:, -_SIZE // 2 :]
    found = np.stack([pairs & 15, pairs >> 4], axis=1 if b.nibbles == "halves" else 2).reshape(-1, _SIZE)
    if block.bits > 4:  # noqa: PLR2004 - a nibble's
        found |= np.unpackbits(stored[:, :4], axis=1, bitorder="little") << 4
    return found.astype(np.int8) - block.offset


def _dequantize(block: Block, b: Any, tensor: Array) -> Array:
    blocks, shape = _runs(b, tensor, block.bytes, _SIZE, ValueError)
    d, m, codes = blocks[:, :2], blocks[:, 2:4], blocks[:, 2 + 2 * block.minimum :]
    with np.errstate(all="ignore"):
        x: Array = _half(d).astype(b.arithmetic) * _unpacked(b, block, np.ascontiguousarray(codes))
        found = x + _half(m) if block.minimum else x
    return found.astype(_F32).reshape(shape)


def _quantizer(name: str) -> Callable[..., Array]:
    def quantize(b: Quantizing, tensor: Array) -> Array:
        """The bytes of the blocks of ``tensor``, reals of any shape, which are rounded to float32 first; uint8.

        Raises:
            QuantError: the last dimension is no multiple of 32.
        """
        return _quantize(BLOCKS[name], b, tensor)

    return quantize


def _dequantizer(name: str) -> Callable[..., Array]:
    def dequantize(b: Dequantizing, tensor: Array) -> Array:
        """The reals, float32, of the blocks in ``tensor``, whose last dimension are their bytes, uint8.

        Raises:
            ValueError: the last dimension is no multiple of a block's bytes.
        """
        return _dequantize(BLOCKS[name], b, tensor)

    return dequantize


_MEASURED = "gguf 0.19.0, measured"

for _name, _block in BLOCKS.items():
    _top = 2**_block.bits - 1
    _making: Quantizing
    if _block.minimum:
        _making = Range()
        _equation = (
            rf"m = \min x,\; d = (\max x - m) / {_top},\; q = \min(\lfloor (x - m)\,d^{{-1}} + 0.5 \rfloor, {_top})"
        )
    elif _block.offset:
        _making = Extreme()
        _equation = (
            rf"d = x_i / (-{_block.offset}),\; i = \arg\max |x|,\; "
            rf"q = \min(\lfloor x\,d^{{-1}} + {_block.offset}.5 \rfloor, {_top})"
        )
    else:
        _making = Quantizing(rounding="half-away")
        _equation = r"d = \max |x| / 127,\; q = \lceil x\,d^{-1} \rfloor"
    formula(
        f"gguf/{_name}.quantize",
        equation=_equation,
        basis=AsComputed(dtype="float32"),
        source=f"gguf.quants.{_name}.quantize_blocks",
        behaviour=_making,
        versions={"0.19": (replace(_making, empty="no-columns"), _MEASURED)},
    )(_quantizer(_name))
    _reading = Dequantizing() if _block.bits == _BYTE else Halves()
    formula(
        f"gguf/{_name}.dequantize",
        equation=r"\hat x = d\,q + m" if _block.minimum else r"\hat x = d\,q",
        basis=Real(),
        source=f"gguf.quants.{_name}.dequantize_blocks",
        behaviour=_reading,
        versions={
            "0.19": (replace(_reading, empty="no-columns" if _block.bits == _BYTE else "refused"), _MEASURED),
        },
    )(_dequantizer(_name))


@formula(
    "gguf/Q4_K.dequantize",
    equation=r"\hat x = d\,s_i\,q - d_{min}\,m_i",
    basis=Real(),
    source="gguf.quants.Q4_K.dequantize_blocks",
    behaviour=Dequantizing(),
    versions={"0.19": (Dequantizing(empty="refused"), _MEASURED)},
)
def q4_k(b: Dequantizing, tensor: Array) -> Array:
    """The reals, float32, of superblocks of 8 blocks, each with a scale and a minimum of 6 bits.

    Of the 144 bytes of ``tensor`` the first are two float16 numbers, for the scales and for the minima; then 4 scales
    and 4 minima in the low 6 bits of 8 bytes, then the low 4 bits of the other scales and minima, whose high 2 are
    those of the 8 bytes; then codes, 32 in the low nibbles and the next 32 in the high ones.

    Raises:
        ValueError: the last dimension is no multiple of 144.
    """
    blocks, shape = _runs(b, tensor, 144, _SUPER, ValueError)
    first, rest = blocks[:, 4:12], blocks[:, 12:16]
    high = first >> 6 << 4
    scales = np.concatenate([first[:, :4] & 63, rest & 15 | high[:, :4]], axis=1)
    minima = np.concatenate([first[:, 4:] & 63, rest >> 4 | high[:, 4:]], axis=1)
    pairs = blocks[:, 16:].reshape(-1, 4, 32)
    q = np.stack([pairs & 15, pairs >> 4], axis=2).reshape(-1, 8, 32)
    with np.errstate(all="ignore"):
        d = _half(blocks[:, :2]).astype(b.arithmetic) * scales
        m = _half(blocks[:, 2:4]).astype(b.arithmetic) * minima
        found: Array = d[:, :, None] * q - m[:, :, None]
    return found.astype(_F32).reshape(shape)


@formula(
    "gguf/Q6_K.dequantize",
    equation=r"\hat x = d\,s_i\,(q - 32)",
    basis=Real(),
    source="gguf.quants.Q6_K.dequantize_blocks",
    behaviour=Dequantizing(),
    versions={"0.19": (Dequantizing(empty="refused"), _MEASURED)},
)
def q6_k(b: Dequantizing, tensor: Array) -> Array:
    """The reals, float32, of superblocks of 16 blocks of 16 codes, each with a scale of 8 bits, signed.

    Of the 210 bytes of ``tensor`` 128 have the low 4 bits of the codes and 64 the high 2, for each half of the
    superblock; then there are 16 scales, and a float16 number for all of them.

    Raises:
        ValueError: the last dimension is no multiple of 210.
    """
    blocks, shape = _runs(b, tensor, 210, _SUPER, ValueError)
    low, high = blocks[:, :128].reshape(-1, 2, 64), blocks[:, 128:192].reshape(-1, 2, 1, 32)
    nibbles = np.stack([low & 15, low >> 4], axis=2).reshape(-1, 2, 4, 32)
    shifts = np.array([0, 2, 4, 6])[:, None]
    q = (nibbles | (high >> shifts & 3) << 4).astype(np.int8) - 32
    with np.errstate(all="ignore"):
        d = _half(blocks[:, 208:]).astype(b.arithmetic) * np.ascontiguousarray(blocks[:, 192:208]).view(np.int8)
        found: Array = d[:, :, None] * q.reshape(-1, 16, 16)
    return found.astype(_F32).reshape(shape)
