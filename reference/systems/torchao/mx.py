"""torchao: MX blocks, small floats that share a power of two per block along the last dimension.

A scale code E is 2^(E - 127), the code 255 NaN. Real per code: x̂ = decode(q) * 2^(E - 127).
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array
from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, FLOAT_FORMATS, FloatFormat, Overflow, decode, encode
from halfeven.reference.nibbles import ALONG_ROWS, nibbles, packed, unpacked
from halfeven.reference.systems.torchao.floatx import nan_as_a_normal_number

__all__ = [
    "Halves",
    "Mx",
    "MxReals",
    "Tiles",
    "ceil_log2",
    "from_blocked",
    "mx_dequantize",
    "pack_uint4",
    "to_blocked",
    "to_mx",
    "unpack_uint4",
]

_BIAS, _NAN = 127, 255
_QUIET = np.uint32(1 << 22)  # the bit of a float32 NaN that an operation sets
_SCALING_MODES = ("FLOOR", "CEIL", "EVEN", "RCEIL")


@dataclass(frozen=True)
class _Element:
    """An element format, the exponent of its largest number, and the dtype of its codes where it has one of its own."""

    form: FloatFormat
    max_exponent: int
    dtype: "np.dtype[Any] | None" = None


_ELEMENTS = {
    "float8_e4m3fn": _Element(FLOAT_FORMATS["float8_e4m3fn"], 8, np.dtype(ml_dtypes.float8_e4m3fn)),
    "float8_e5m2": _Element(FLOAT_FORMATS["float8_e5m2"], 15, np.dtype(ml_dtypes.float8_e5m2)),
    "fp6_e2m3": _Element(FLOAT_FORMATS["float6_e2m3fn"], 2),
    "fp6_e3m2": _Element(FLOAT_FORMATS["float6_e3m2fn"], 4),
    "float4_e2m1fn_x2": _Element(FLOAT_FORMATS["float4_e2m1fn"], 2),
}


@dataclass(frozen=True)
class Halves(Behaviour):
    """The choice of where a byte holds the first of its two codes."""

    halves: str = nibbles("low-first", ALONG_ROWS)


@dataclass(frozen=True)
class Mx(Halves):
    """The choices in making blocks of small floats."""

    rceil: str = choice({
        "exact": "takes in RCEIL the next power of two, however close the quotient lies above one",
        "rounded-logarithm": "rounds the logarithm in RCEIL to float32 before it is rounded up",
    })  # fmt: skip
    smallest: str = choice({
        "2^-127": "divides by 2^-127 where the scale code is zero",
        "2^-126": "divides by 2^-126 where the scale code is zero, in RCEIL by 1",
    })  # fmt: skip
    zero_block: int = choice({
        0: "gives a block of zeros the scale code 0",
        127: "gives a block of zeros the scale code 127, which is 1",
    })  # fmt: skip
    infinity: str = choice({
        "exponent": "takes an infinity for 2^128, in RCEIL for the largest scale",
        "nan": "gives a block with an infinity the scale code 255",
    })  # fmt: skip
    nan_magnitude: str = choice({
        "propagated": "gives a block with NaN the scale code 255",
        "ignored": "leaves NaN out of the magnitude",
    })  # fmt: skip
    nan_block: str = choice({
        "lost": "makes every element NaN under the scale code 255, or zero in formats without NaN",
        "divided": "divides by infinity under the scale code 255, in RCEIL by NaN, and rounds the bits of NaN as if it "
        "were a normal number",
    })  # fmt: skip
    rounding: str = roundings("elements")
    overflow: Overflow = choice({
        "saturate": "limits elements to the largest number",
        "special": "lets elements of a float8 overflow to infinity or NaN",
    })  # fmt: skip


@dataclass(frozen=True)
class MxReals(Halves):
    """The choices in making reals of blocks."""

    product: str = choice({
        "target": "computes the product in the target dtype",
        "float32": "computes the product in float32",
    })  # fmt: skip
    smallest: str = choice({
        "2^-127": "takes the scale code 0 for 2^-127",
        "zero": "takes the scale code 0 for zero",
    })  # fmt: skip
    last: str = choice({
        "nan": "takes the scale code 255 for NaN",
        "infinity": "takes the scale code 255 for infinity",
    })  # fmt: skip


@dataclass(frozen=True)
class Tiles(Behaviour):
    """The choice of the order of tiles."""

    tiles: str = choice({
        "rows": "orders tiles row by row",
        "columns": "orders tiles column by column",
    })  # fmt: skip


@formula(
    "torchao/pack_uint4",
    equation=r"b_i = q_{2i} + 16\, q_{2i+1}",
    basis=Real(),
    source="torchao.prototype.mx_formats.kernels.pack_uint4",
    behaviour=Halves(),
)
def pack_uint4(b: Halves, uint8_data: Array) -> Array:
    """Two 4-bit codes per byte along the last dimension, the one of the even index in the low half.

    Args:
        uint8_data: uint8 codes of 0 to 15, any shape of rank 1 or more.

    Raises:
        AssertionError: the last dimension is odd.
    """
    if uint8_data.shape[-1] % 2:
        msg = f"uint8_data of shape {uint8_data.shape} is not accepted: the last dimension is even"
        raise AssertionError(msg)
    return packed(uint8_data, b.halves)


@formula(
    "torchao/unpack_uint4",
    equation=r"q_{2i} = b_i \bmod 16,\quad q_{2i+1} = \lfloor b_i / 16 \rfloor",
    basis=Real(),
    source="torchao.prototype.mx_formats.kernels.unpack_uint4",
    behaviour=Halves(),
)
def unpack_uint4(b: Halves, uint8_data: Array) -> Array:
    """The 4-bit codes of bytes, twice as many along the last dimension, the low half first.

    Args:
        uint8_data: uint8, any shape of rank 1 or more.

    Returns:
        uint8 codes of 0 to 15.
    """
    return unpacked(uint8_data, b.halves)


def _blocks(data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str) -> Array:
    """Float32 blocks along a new last dimension."""
    if data_hp.dtype not in {FLOAT_DTYPES["float32"], FLOAT_DTYPES["bfloat16"]}:
        msg = f"data_hp of dtype {data_hp.dtype} is not accepted: give float32 or bfloat16"
        raise AssertionError(msg)
    if block_size < 1 or data_hp.shape[-1] % block_size:
        msg = f"block_size={block_size} is not accepted: it divides the last dimension of shape {data_hp.shape}"
        raise AssertionError(msg)
    if elem_dtype not in _ELEMENTS:
        msg = f"elem_dtype={elem_dtype!r} is not accepted: give one of {tuple(_ELEMENTS)}"
        raise AssertionError(msg)
    if scaling_mode not in _SCALING_MODES:
        msg = f"scaling_mode={scaling_mode!r} is not accepted: give one of {_SCALING_MODES}"
        raise AssertionError(msg)
    count = data_hp.shape[-1] // block_size
    return data_hp.astype(np.float32).reshape(*data_hp.shape[:-1], count, block_size)


def _exponent(b: Mx, amax: Array, element: _Element, scaling_mode: str) -> Array:
    """The exponent of the scale, not yet limited to [-127, 127]. Field 0 counts as exponent -127, infinity as 128."""
    bits = amax.view(np.int32)
    exponent, mantissa = (bits >> 23) - 127, bits & 0x7FFFFF
    match scaling_mode:
        case "FLOOR":
            return exponent - element.max_exponent
        case "CEIL":
            return exponent + (mantissa > 0) - element.max_exponent
        case "EVEN":
            rounded = bits + (1 << (22 - element.form.mantissa_bits))
            return (rounded >> 23) - 127 - element.max_exponent
        case _:
            return ceil_log2(amax / np.float32(element.form.max), rounded=b.rceil == "rounded-logarithm")


# Up to so many units of 2^-23 above 2^k, the float32 logarithm of a number is k. Measured on every positive float32.
_SAME = ((64, 22), (32, 11), (16, 5), (8, 2), (4, 1))


def ceil_log2(descale: Array, *, rounded: bool) -> Array:
    """The least k with ``descale`` <= 2^k, -127 of zero and 127 of infinity; ``rounded``: of its float32 logarithm."""
    fraction, exponent = np.frexp(descale)
    k = exponent - 1
    reach = np.where(k < 0, -k - 1, k)  # below one, k = -64 has the gaps of 63
    same = np.select([reach >= first for first, _ in _SAME], [units for _, units in _SAME], 0)
    same = same if rounded else np.zeros_like(same)
    least = exponent - 1 + (2 * fraction - 1 > same * 2.0**-23)
    found: Array = np.where(descale == 0, -_BIAS, np.where(np.isinf(descale), _BIAS, least))
    return found


def _scale_code(b: Mx, blocks: Array, element: _Element, scaling_mode: str) -> Array:
    """The scale code of each block."""
    largest = np.max if b.nan_magnitude == "propagated" else np.fmax.reduce
    amax = np.asarray(largest(np.abs(blocks), axis=-1))
    exponent = np.clip(_exponent(b, amax, element, scaling_mode), -_BIAS, _BIAS)
    lost = np.isnan(amax) | (np.isinf(amax) & (b.infinity == "nan"))
    code = np.where(amax == 0, b.zero_block, np.where(lost, _NAN, exponent + _BIAS))
    return code.astype(np.uint8)


def _element_codes(b: Mx, blocks: Array, scale: Array, element: _Element, *, rceil: bool) -> Array:
    """The codes of the elements under the scale codes of their blocks."""
    lost, power = scale == _NAN, scale.astype(np.int64) - _BIAS
    if b.smallest == "2^-126":
        power = np.where(scale == 0, 0 if rceil else 1 - _BIAS, power)
    # In float64 the division by a power of two is exact.
    quotients = np.ldexp(blocks.astype(np.float64), -np.where(lost, 0, power)[..., None])
    lost, form = lost[..., None], element.form
    if b.nan_block == "divided":
        by = np.nan if rceil else np.inf
        quotients = np.where(lost, by if rceil else blocks / by, quotients).astype(np.float32)
        quotients = np.where(np.isnan(blocks), (blocks.view(np.uint32) | _QUIET).view(np.float32), quotients)
    else:
        quotients = np.where(lost | np.isnan(blocks), np.nan, quotients)
    if form.nan_code is not None:
        return encode(quotients, form, overflow=b.overflow, rounding=b.rounding)
    is_nan = np.isnan(quotients)
    codes = encode(np.where(is_nan, 0, quotients), form, overflow="saturate", rounding=b.rounding)
    if b.nan_block == "divided":
        codes = np.where(is_nan, nan_as_a_normal_number(quotients, form), codes)
    return codes


def _stored(b: Mx, codes: Array, shape: tuple[int, ...], elem_dtype: str) -> Array:
    codes, dtype = codes.reshape(shape), _ELEMENTS[elem_dtype].dtype
    if dtype is not None:
        return codes.view(dtype)
    return pack_uint4(b, codes) if elem_dtype == "float4_e2m1fn_x2" else codes


@formula(
    "torchao/to_mx",
    equation=(
        r"E = 127 + \begin{cases}"
        r"\lfloor \log_2 a \rfloor - e_{max} & \text{FLOOR} \\ \lceil \log_2 a \rceil - e_{max} & \text{CEIL} \\"
        r"\lfloor \log_2 \mathrm{round}_m(a) \rfloor - e_{max} & \text{EVEN} \\"
        r"\lceil \log_2 (a / v_{max}) \rceil & \text{RCEIL}\end{cases},\quad "
        r"q = \mathrm{encode}(x / 2^{E - 127})"
    ),
    basis=AsComputed(dtype="float32 for a / v_max; nothing else rounds but the codes"),
    source="torchao.prototype.mx_formats.mx_tensor.to_mx; OCP MX 1.0, section 6.3",
    behaviour=Mx(),
    versions={
        "0.18": (
            Mx(rceil="rounded-logarithm", smallest="2^-126", nan_block="divided"),
            # Left out: in RCEIL a NaN other than the positive quiet one, which becomes that one in some shapes.
            "torchao 0.18.0, measured on x86-64",
        ),
    },
)
@np.errstate(all="ignore")
def to_mx(b: Mx, data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> tuple[Array, Array]:
    """Scale codes and element codes of ``data_hp``, a scale for each ``block_size`` elements of the last dimension.

    Elements are rounded to the nearest number, ties to the even code, and saturate. A block of zeros has E = 0, one
    with an infinity the exponent of 2^128 (in RCEIL E = 254), one with NaN E = 255 and elements NaN, or zero in
    formats without NaN.

    Args:
        data_hp: float32 or bfloat16, rank 1 or more.
        elem_dtype: "float8_e4m3fn", "float8_e5m2", "fp6_e2m3", "fp6_e3m2" or "float4_e2m1fn_x2".
        block_size: elements per scale; divides the last dimension.
        scaling_mode: "FLOOR", "CEIL", "EVEN" or "RCEIL".

    Returns:
        The e8m0 codes as uint8, (..., n / block_size); the element codes in the shape of ``data_hp``: float8, or uint8
        in the low bits, or for float4 two per byte as ``pack_uint4`` does it.

    Raises:
        AssertionError: the dtype, the block size, the element dtype or the mode is not accepted.
    """
    blocks = _blocks(data_hp, elem_dtype, block_size, scaling_mode)
    element = _ELEMENTS[elem_dtype]
    scale = _scale_code(b, blocks, element, scaling_mode)
    codes = _element_codes(b, blocks, scale, element, rceil=scaling_mode == "RCEIL")
    return scale, _stored(b, codes, data_hp.shape, elem_dtype)


@formula(
    "torchao/mx_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * 2^{E - 127}",
    basis=AsComputed(dtype="the target's: the element, the power of two, then their product"),
    source="torchao.prototype.mx_formats.mx_tensor.to_dtype; OCP MX 1.0, section 5",
    behaviour=MxReals(),
)
@np.errstate(all="ignore")
def mx_dequantize(
    b: MxReals, data_lp: Array, scale_e8m0: Array, elem_dtype: str, block_size: int, target_dtype: str = "float32"
) -> Array:
    """Reals of element codes, as ``target_dtype``; NaN where the scale code is 255.

    Args:
        data_lp: element codes as ``to_mx`` returns them; float8 codes may come as uint8.
        scale_e8m0: uint8, one per block, in the order of the blocks.
        elem_dtype: as in ``to_mx``.
        block_size: elements per scale.
        target_dtype: "float32", "bfloat16", "float16" (whose range powers of two may leave) or "float64".

    Raises:
        AssertionError: ``elem_dtype`` is not accepted.
        RuntimeError: the elements are no whole blocks, or there is not one scale for each.
    """
    if elem_dtype not in _ELEMENTS:
        msg = f"elem_dtype={elem_dtype!r} is not accepted: give one of {tuple(_ELEMENTS)}"
        raise AssertionError(msg)
    codes, dtype = data_lp.view(np.uint8), FLOAT_DTYPES[target_dtype]
    codes = unpack_uint4(b, codes) if elem_dtype == "float4_e2m1fn_x2" else codes
    if codes.size != scale_e8m0.size * block_size:
        msg = f"scale_e8m0 of shape {scale_e8m0.shape} is not accepted: {codes.size} elements in blocks of {block_size}"
        raise RuntimeError(msg)
    wide = dtype if b.product == "target" else np.dtype(np.float32)
    numbers = decode(codes, _ELEMENTS[elem_dtype].form, "float32").reshape(-1, block_size)
    power = np.ldexp(1.0, scale_e8m0.astype(np.int32) - _BIAS)
    if b.smallest == "zero":
        power = np.where(scale_e8m0 == 0, 0.0, power)
    power = np.where(scale_e8m0 == _NAN, np.nan if b.last == "nan" else np.inf, power).astype(wide)
    return np.asarray(numbers * power.reshape(-1, 1)).astype(dtype).reshape(codes.shape)


_TILE = (128, 4)


@formula(
    "torchao/to_blocked",
    equation=r"o_{512 t + 16 (i \bmod 32) + 4 \lfloor (i \bmod 128) / 32 \rfloor + j \bmod 4} = x_{ij},\quad "
    r"t = \lfloor i / 128 \rfloor \lceil n / 4 \rceil + \lfloor j / 4 \rfloor",
    basis=Real(),
    source="torchao.prototype.mx_formats.utils.to_blocked",
    behaviour=Tiles(),
)
def to_blocked(b: Tiles, input_matrix: Array) -> Array:
    """Scale codes (rows, columns) in the order of tiles of 128 by 4, padded with zeros, as one dimension.

    Args:
        input_matrix: a matrix of any dtype, one entry per block; the result has its dtype.

    Raises:
        ValueError: ``input_matrix`` is no matrix.
    """
    if input_matrix.ndim != 2:  # noqa: PLR2004 - rows and columns
        msg = f"input_matrix of shape {input_matrix.shape} is not accepted: give rows and columns"
        raise ValueError(msg)
    rows, columns = (-(-n // size) for n, size in zip(input_matrix.shape, _TILE, strict=True))
    padding = [(0, count * size - n) for count, size, n in zip((rows, columns), _TILE, input_matrix.shape, strict=True)]
    tiles = np.pad(input_matrix, padding).reshape(rows, 4, 32, columns, 4).transpose(0, 3, 2, 1, 4)
    return (tiles if b.tiles == "rows" else tiles.transpose(1, 0, 2, 3, 4)).reshape(-1)


@formula(
    "torchao/from_blocked",
    equation=r"x_{ij} = o_{512 t + 16 (i \bmod 32) + 4 \lfloor (i \bmod 128) / 32 \rfloor + j \bmod 4},\quad "
    r"t = \lfloor i / 128 \rfloor \lceil n / 4 \rceil + \lfloor j / 4 \rfloor",
    basis=Real(),
    source="torchao.prototype.mx_formats.utils.from_blocked",
    behaviour=Tiles(),
)
def from_blocked(b: Tiles, blocked_tensor: Array, original_rows: int, original_cols: int) -> Array:
    """The matrix of scale codes of which ``to_blocked`` made ``blocked_tensor``, without its padding.

    Args:
        blocked_tensor: 512 entries for each tile, of any dtype, as ``to_blocked`` returns them.
        original_rows: rows of the matrix.
        original_cols: columns of the matrix.

    Raises:
        RuntimeError: ``blocked_tensor`` has not 512 entries for each tile.
    """
    rows, columns = -(-original_rows // _TILE[0]), -(-original_cols // _TILE[1])
    if blocked_tensor.size != rows * columns * 512:
        msg = f"blocked_tensor of shape {blocked_tensor.shape} is not accepted: {rows} by {columns} tiles have 512 each"
        raise RuntimeError(msg)
    count = (rows, columns) if b.tiles == "rows" else (columns, rows)
    tiles = blocked_tensor.reshape(*count, 32, 4, 4)
    tiles = (tiles if b.tiles == "rows" else tiles.transpose(1, 0, 2, 3, 4)).transpose(0, 3, 2, 1, 4)
    return tiles.reshape(rows * _TILE[0], columns * _TILE[1])[:original_rows, :original_cols]
