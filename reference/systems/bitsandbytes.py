"""bitsandbytes: blocks by their largest magnitude, with codes of a book of 256 levels, of NF4, or of FP4.

The code is that of the nearest level, of what each run of elements is over its largest magnitude.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.nibbles import AS_ONE_RUN, nibbles, packed, unpacked
from halfeven.reference.rounding import cast_once

__all__ = ["Blockwise", "FourBits", "Reading", "get_4bit_type"]

_F32 = np.float32
_SIZES = (32, 64, 128, 256, 512, 1024, 2048, 4096)
_REALS = {"float32": np.dtype(_F32), "float16": np.dtype(np.float16), "bfloat16": np.dtype(ml_dtypes.bfloat16)}
_LEAST = _F32(1e-38)
_NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453),
    *(-0.28444138169288635, -0.18477343022823334, -0.09105003625154495, 0.0),
    *(0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224),
    *(0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0),
)
_MINUS_ZERO = 8  # FP4's code
_TWELFTHS = (0, 0.0625, 8, 12, 4, 6, 2, 3)  # FP4 by its exponent and mantissa; the sign is above them


@dataclass(frozen=True)
class Blockwise(Behaviour):
    """The choices in finding the code of 8 bits."""

    search: str = choice(
        {
            "nearest": "takes the level nearest to the real quotient by the largest magnitude",
            "reciprocal": "compares the product with the magnitude's reciprocal with midpoints, both in float32",
            "table": "looks the code up by the nearest of 65,536 evenly spaced numbers from -1 to 1",
        }
    )
    zeros: str = choice(
        {"nearest": "gives a block of zeros the code nearest to zero", "first": "gives a block of zeros the code 0"}
    )


@dataclass(frozen=True)
class FourBits(Behaviour):
    """The choices in finding a code of 4 bits."""

    search: str = choice(
        {
            "nearest": "takes the level nearest to the real quotient by the largest magnitude",
            "reciprocal": "compares the product with the reciprocal of the magnitude, of 1e-38 at least, with "
            "midpoints, both in float32",
            "distances": "takes the level at the least distance from the quotient by the largest magnitude, both in "
            "float32, of several the one of the least code",
        }
    )
    rest: str = choice(
        {
            "alike": "treats a last block that is not full like the others",
            "divided": "divides in a last block that is not full by its largest magnitude, of 1e-38 at least, "
            "and gives that as the block's",
        }
    )
    zero: str = choice(
        {"one": "has one code of FP4 for zero", "signed": "gives what is just above zero FP4's code of minus zero"}
    )
    halves: str = nibbles("high-first", AS_ONE_RUN)


@dataclass(frozen=True)
class Reading(Behaviour):
    """The choices in making elements of codes of 4 bits."""

    arithmetic: str = choice(
        {
            "float32": "multiplies in float32 and rounds the product to the dtype",
            "dtype": "rounds level and magnitude to the dtype and multiplies there",
        }
    )
    shape: str = choice(
        {
            "asked": "gives the shape asked for",
            "rows": "gives a vector of even length a row of its own, and transposes what comes of a single byte",
        }
    )
    minus_zero: str = choice(
        {
            "unsigned": "reads FP4's code of minus zero as 0",
            "signed": "reads FP4's code of minus zero as -0.0 in rows of even length",
        }
    )
    halves: str = nibbles("high-first", AS_ONE_RUN)


def _runs(A: Array, blocksize: int) -> tuple[Array, Array]:  # noqa: N803 - the document's own word
    """Blocks as rows of float32, the last one filled up with zeros, and the largest magnitude of each."""
    x = cast_once(A, _F32).ravel()
    rows = np.concatenate([x, np.zeros(-len(x) % blocksize, _F32)]).reshape(-1, blocksize)
    return rows, np.abs(rows).max(axis=1, initial=0)


def _below(scaled: Array, levels: Array) -> Array:
    """How many midpoints of ``levels`` are below each of ``scaled``, in float32; NaN is above all."""
    midpoints = (levels[:-1] + levels[1:]) / _F32(2)
    return np.searchsorted(midpoints, scaled)


def _nearest(x: Array, largest: Array, levels: Array) -> Array:
    """The index of the level nearest to each quotient, of two the lower: in float64 every product is exact."""
    midpoints = (levels[:-1].astype(np.float64) + levels[1:]) / 2
    found = np.empty(x.shape, np.int64)
    for i, m in enumerate(largest):
        found[i] = np.searchsorted(midpoints * np.float64(m or 1), x[i])
    return found


def _check(A: Array, accepted: Iterable[str]) -> None:  # noqa: N803 - as above
    if A.dtype.name not in accepted:
        msg = f"A of {A.dtype} is not accepted: give {', '.join(accepted)}"
        raise ValueError(msg)


def _check_four(blocksize: int, quant_type: str) -> None:
    if blocksize not in _SIZES:
        msg = f"blocksize={blocksize} is not accepted: give one of {', '.join(map(str, _SIZES))}"
        raise ValueError(msg)
    if quant_type not in ("nf4", "fp4"):
        msg = f"quant_type={quant_type!r} is not accepted: give nf4 or fp4"
        raise ValueError(msg)


@formula(
    "bitsandbytes/get_4bit_type",
    equation=r"\text{NF4: the 16 published levels};\quad \text{FP4: } \pm\{0, 1/16, 8, 12, 4, 6, 2, 3\} / 12",
    basis=Real(),
    source="bitsandbytes.functional.get_4bit_type; QLoRA, appendix E",
)
def get_4bit_type(typename: str) -> Array:
    """The level of each code of ``typename``, ``nf4`` or ``fp4``, float32, (16,)."""
    if typename == "nf4":
        return np.array(_NF4, _F32)
    return np.array([*_TWELFTHS, 0, *(-v for v in _TWELFTHS[1:])], _F32) / _F32(12)


@formula(
    "bitsandbytes/quantize_blockwise",
    equation=r"m = \max |x|,\quad q = \arg\min_j |c_j - x / m|",
    basis=Real(),
    source="bitsandbytes.functional.quantize_blockwise; 8-bit Optimizers via Block-wise Quantization, section 2",
    behaviour=Blockwise(),
    versions={"0.50": (Blockwise(search="table", zeros="first"), "bitsandbytes 0.50.2 on the CPU, measured")},
)
def quantize_blockwise(
    b: Blockwise,
    A: Array,  # noqa: N803 - as above
    code: Array,
    blocksize: int = 4096,
) -> tuple[Array, Array]:
    """Codes of 8 bits, and the largest magnitude of each block.

    Args:
        A: float32, float16 or bfloat16, of any shape, which is taken as one run.
        code: the levels, float32, (256,), ascending from -1 to 1.
        blocksize: elements of a block; the last one may have fewer.

    Returns:
        uint8 of the shape of ``A``; float32, (blocks,).

    Raises:
        ValueError: a blocksize below 1, or another dtype.
    """
    if blocksize < 1:
        msg = f"blocksize={blocksize} is not accepted: give 1 or more"
        raise ValueError(msg)
    _check(A, _REALS)
    x, largest = _runs(A, blocksize)
    with np.errstate(all="ignore"):
        if b.search == "nearest":
            q = _nearest(x, largest, code)
        else:
            scaled = np.where(largest == 0, x.T, x.T * (_F32(1) / largest)).T
            if b.search == "table":
                half = _F32(65535 / 2)
                place = np.trunc((scaled + _F32(1)) * half + _F32(0.5))
                scaled = np.where(np.isnan(place), _F32(-1), place / half - _F32(1))
            q = _below(scaled, code)
    q = np.where(largest == 0, 0, q.T).T if b.zeros == "first" else q
    return q.astype(np.uint8).ravel()[: A.size].reshape(A.shape), largest


@formula(
    "bitsandbytes/dequantize_blockwise",
    equation=r"\hat x = c_q\,m",
    basis=Real(),
    source="bitsandbytes.functional.dequantize_blockwise",
)
def dequantize_blockwise(A: Array, absmax: Array, code: Array, blocksize: int = 4096) -> Array:  # noqa: N803 - as above
    """Elements of codes of 8 bits, float32, of the shape of ``A``.

    Args:
        A: codes, uint8, of any shape.
        absmax: the largest magnitude of each block, float32, (blocks,).
        code: the levels, float32, (256,).
        blocksize: elements of a block.

    Raises:
        ValueError: a blocksize below 1, or codes of another dtype.
    """
    if blocksize < 1:
        msg = f"blocksize={blocksize} is not accepted: give 1 or more"
        raise ValueError(msg)
    _check(A, ("uint8",))
    with np.errstate(all="ignore"):
        return code[A] * absmax[np.arange(A.size).reshape(A.shape) // blocksize]


@formula(
    "bitsandbytes/quantize_4bit",
    equation=r"m = \max |x|,\quad q = \arg\min_j |c_j - x / m|,\quad \text{bytes } 16\,q_{2i} + q_{2i + 1}",
    basis=Real(),
    source="bitsandbytes.functional.quantize_4bit; QLoRA, section 2",
    behaviour=FourBits(),
    versions={
        "0.50": (
            FourBits(search="reciprocal", rest="divided", zero="signed"),
            "bitsandbytes 0.50.2 on the CPU, measured",
        )
    },
)
def quantize_4bit(
    b: FourBits,
    A: Array,  # noqa: N803 - as above
    blocksize: int = 64,
    quant_type: str = "fp4",
) -> tuple[Array, Array]:
    """Codes of 4 bits, two in a byte, and the largest magnitude of each block.

    Args:
        A: float32, float16 or bfloat16, of any shape, which is taken as one run.
        blocksize: elements of a block, a power of two from 32 to 4096; the last one may have fewer.
        quant_type: ``nf4`` or ``fp4``.

    Returns:
        uint8, (bytes, 1), the first of two codes in the high bits, the code of zero at an odd end; float32, (blocks,).

    Raises:
        ValueError: another blocksize, quant_type or dtype.
    """
    _check_four(blocksize, quant_type)
    _check(A, _REALS)
    levels, codes = np.unique(get_4bit_type(quant_type), return_index=True)
    x, largest = _runs(A, blocksize)
    rest = np.arange(len(x)) == A.size // blocksize  # the last block, where it is not full
    divided = b.rest == "divided"
    if divided:
        largest = np.where(rest, np.maximum(largest, _LEAST), largest)
    with np.errstate(all="ignore"):
        scaled = x
        if b.search == "nearest":
            found = codes[_nearest(x, largest, levels)]
        elif b.search == "distances":
            scaled = x / largest[:, None]
            found = np.argmin(np.abs(scaled[..., None] - get_4bit_type(quant_type)), axis=-1)
        else:
            least = np.maximum(largest, _LEAST)
            by = np.where(rest & divided, x.T / least, x.T * (_F32(1) / least))
            scaled = by.T
            found = codes[_below(scaled, levels)]
    found = found.astype(np.uint8)
    if b.zero == "signed":  # NF4's code 0 is of no element above zero
        found = np.where((found == 0) & (scaled > 0), np.uint8(8), found)
    found = np.concatenate([found.ravel()[: A.size], np.full(A.size % 2, codes[levels == 0][0], np.uint8)])
    return packed(found, b.halves)[:, None], largest


@formula(
    "bitsandbytes/dequantize_4bit",
    equation=r"\hat x = c_q\,m",
    basis=AsComputed(dtype="float32, then the dtype asked for"),
    source="bitsandbytes.functional.dequantize_4bit",
    behaviour=Reading(),
    versions={
        "0.50": (Reading(shape="rows"), "bitsandbytes 0.50.2 on a CPU with AVX-512, measured"),
        "0.50-avx2": (Reading(shape="rows", minus_zero="signed"), "bitsandbytes 0.50.2 on a CPU without it, measured"),
    },
)
def dequantize_4bit(
    b: Reading,
    A: Array,  # noqa: N803 - as above
    absmax: Array,
    shape: Shape,
    dtype: str,
    blocksize: int = 64,
    quant_type: str = "fp4",
) -> Array:
    """Elements of codes of 4 bits.

    The levels have one zero for two codes of FP4. Of 0.50.2 the CPU's kernel gives 0 for both with AVX-512, without it
    -0.0 for the second (measured on either); rows of odd length are made by torch, of the levels.

    Args:
        b: how the product is made, which shape it has, and the order of two codes.
        A: bytes of two codes, uint8, (bytes, 1).
        absmax: the largest magnitude of each block, float32, (blocks,).
        shape: of the result.
        dtype: of the result: float32, float16 or bfloat16.
        blocksize: elements of a block, a power of two from 32 to 4096.
        quant_type: ``nf4`` or ``fp4``.

    Raises:
        ValueError: another blocksize, quant_type or dtype.
    """
    _check_four(blocksize, quant_type)
    if dtype not in _REALS:
        msg = f"dtype={dtype!r} is not accepted: give {', '.join(_REALS)}"
        raise ValueError(msg)
    size = int(np.prod(shape))
    q = unpacked(A, b.halves).ravel()[:size]
    level, largest = get_4bit_type(quant_type)[q], absmax[np.arange(size) // blocksize]
    if b.minus_zero == "signed" and quant_type == "fp4" and shape[-1] % 2 == 0:
        level = np.where(q == _MINUS_ZERO, _F32(-0.0), level)
    kind = _REALS[dtype]
    with np.errstate(all="ignore"):
        if b.arithmetic == "dtype":
            found = cast_once(level, kind) * cast_once(largest, kind)
        else:
            found = cast_once(level * largest, kind)
    if b.shape == "asked":
        return found.reshape(shape)
    found = found.reshape((1, size) if len(shape) == 1 and size % 2 == 0 else shape)
    return found.T if len(A) == 1 else found
