"""torchao: MX blocks, small floats that share a power of two per block along the last dimension.

A scale code E is 2^(E - 127), the code 255 NaN. Real per code: x̂ = decode(q) * 2^(E - 127).
"""

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.catalogue import AsComputed, Real, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, FLOAT_FORMATS, FloatFormat, decode, encode
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.floatx import f32_to_floatx_unpacked_0_18

__all__ = ["from_blocked", "mx_dequantize", "pack_uint4", "to_blocked", "to_mx", "to_mx_0_18", "unpack_uint4"]

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


@formula(
    "torchao.pack_uint4",
    equation=r"b_i = q_{2i} + 16\, q_{2i+1}",
    basis=Real(),
    source="torchao.prototype.mx_formats.kernels.pack_uint4",
)
def pack_uint4(uint8_data: Array) -> Array:
    """Two 4-bit codes per byte along the last dimension, the one of the even index in the low half.

    Args:
        uint8_data: uint8 codes of 0 to 15, any shape of rank 1 or more.

    Raises:
        AssertionError: the last dimension is odd.
    """
    if uint8_data.shape[-1] % 2:
        msg = f"uint8_data of shape {uint8_data.shape} is not accepted: the last dimension is even"
        raise AssertionError(msg)
    packed: Array = uint8_data[..., ::2] | uint8_data[..., 1::2] << 4
    return packed


@formula(
    "torchao.unpack_uint4",
    equation=r"q_{2i} = b_i \bmod 16,\quad q_{2i+1} = \lfloor b_i / 16 \rfloor",
    basis=Real(),
    source="torchao.prototype.mx_formats.kernels.unpack_uint4",
)
def unpack_uint4(uint8_data: Array) -> Array:
    """The 4-bit codes of bytes, twice as many along the last dimension, the low half first.

    Args:
        uint8_data: uint8, any shape of rank 1 or more.

    Returns:
        uint8 codes of 0 to 15.
    """
    halves: Array = np.stack([uint8_data & 15, uint8_data >> 4], axis=-1)
    return halves.reshape(*uint8_data.shape[:-1], 2 * uint8_data.shape[-1])


def _blocks(data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str) -> tuple[Array, Array]:
    """Float32 blocks along a new last dimension, and the largest magnitude of each: NaN where there is one."""
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
    blocks = data_hp.astype(np.float32).reshape(*data_hp.shape[:-1], count, block_size)
    return blocks, np.abs(blocks).max(axis=-1)


def _exponent(amax: Array, element: _Element, scaling_mode: str) -> Array:
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
            return _ceil_log2(amax / np.float32(element.form.max), np.zeros(amax.shape))


def _ceil_log2(descale: Array, same: Array) -> Array:
    """The least k with ``descale`` <= 2^k; up to ``same`` units of 2^-23 above a power of two count as that power."""
    fraction, exponent = np.frexp(descale)
    least = exponent - 1 + (2 * fraction - 1 > same * 2.0**-23)
    found: Array = np.where(descale == 0, -_BIAS, np.where(np.isinf(descale), _BIAS, least))
    return found


def _scale_code(exponent: Array, amax: Array) -> Array:
    code: Array = np.where(np.isnan(amax), _NAN, np.clip(exponent, -_BIAS, _BIAS) + _BIAS).astype(np.uint8)
    return code


def _stored(codes: Array, shape: tuple[int, ...], elem_dtype: str) -> Array:
    codes, dtype = codes.reshape(shape), _ELEMENTS[elem_dtype].dtype
    if dtype is not None:
        return codes.view(dtype)
    return pack_uint4(codes) if elem_dtype == "float4_e2m1fn_x2" else codes


@formula(
    "torchao.to_mx",
    equation=(
        r"E = 127 + \begin{cases}"
        r"\lfloor \log_2 a \rfloor - e_{max} & \text{FLOOR} \\ \lceil \log_2 a \rceil - e_{max} & \text{CEIL} \\"
        r"\lfloor \log_2 \mathrm{round}_m(a) \rfloor - e_{max} & \text{EVEN} \\"
        r"\lceil \log_2 (a / v_{max}) \rceil & \text{RCEIL}\end{cases},\quad "
        r"q = \mathrm{encode}(x / 2^{E - 127})"
    ),
    basis=AsComputed(dtype="float32 for a / v_max; nothing else rounds but the codes"),
    source="torchao.prototype.mx_formats.mx_tensor.to_mx; OCP MX 1.0, section 6.3",
)
@np.errstate(all="ignore")
def to_mx(data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> tuple[Array, Array]:
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
    blocks, amax = _blocks(data_hp, elem_dtype, block_size, scaling_mode)
    element = _ELEMENTS[elem_dtype]
    scale = _scale_code(_exponent(amax, element, scaling_mode), amax)
    numbers = np.where(scale == _NAN, 0, scale.astype(np.int64))[..., None]
    # In float64 the division by 2^(E - 127) is exact.
    quotients = np.ldexp(blocks.astype(np.float64), _BIAS - numbers)
    lost = np.broadcast_to((scale == _NAN)[..., None], blocks.shape)
    quotients = np.where(lost, np.nan if element.form.nan_code else 0.0, quotients)
    return scale, _stored(encode(quotients, element.form, overflow="saturate"), data_hp.shape, elem_dtype)


# Up to so many units of 2^-23 above 2^k, the float32 logarithm of a number is k. Measured on every positive float32.
_SAME = ((64, 22), (32, 11), (16, 5), (8, 2), (4, 1))


def _same(descale: Array) -> Array:
    k = np.frexp(descale)[1].astype(np.int64) - 1
    reach = np.where(k < 0, -k - 1, k)  # below one, k = -64 has the gaps of 63
    return np.select([reach >= least for least, _ in _SAME], [same for _, same in _SAME], 0)


@formula(
    "torchao.to_mx@0.18",
    equation=(
        r"E_{RCEIL} = 127 + \lceil \mathrm{fl}_{32}(\log_2 (a / v_{max})) \rceil,\quad "
        r"q = \mathrm{encode}(x / \max(2^{E - 127}, 2^{-126})),\quad q_{RCEIL} = \mathrm{encode}(x)\ \text{ if } E = 0"
    ),
    basis=AsComputed(dtype="float32"),
    source="torchao 0.18.0, measured on x86-64",
)
@np.errstate(all="ignore")
def to_mx_0_18(data_hp: Array, elem_dtype: str, block_size: int, scaling_mode: str = "FLOOR") -> tuple[Array, Array]:
    """As documented, but for three things.

    RCEIL takes the logarithm in float32, so a number just above a power of two counts as that power. Where E = 0,
    elements are divided by 2^-126, in RCEIL by 1. In a block with NaN the elements are divided by an infinity, in RCEIL
    all are NaN: one that was NaN before keeps its bits, made quiet. A NaN gets the code that
    ``f32_to_floatx_unpacked@0.18`` gives it. Left out: in RCEIL a NaN other than the positive quiet one, which in
    tensors of some shapes becomes that one.
    """
    blocks, amax = _blocks(data_hp, elem_dtype, block_size, scaling_mode)
    element, rceil = _ELEMENTS[elem_dtype], scaling_mode == "RCEIL"
    if rceil:
        descale = amax / np.float32(element.form.max)
        scale = _scale_code(_ceil_log2(descale, _same(descale)), amax)
    else:
        scale = _scale_code(_exponent(amax, element, scaling_mode), amax)
    exponent = scale.astype(np.int32) - _BIAS
    unit = np.ldexp(np.float32(1), np.where(scale == 0, 0 if rceil else 1 - _BIAS, exponent)).astype(np.float32)
    unit = np.where(scale == _NAN, np.float32(np.nan if rceil else np.inf), unit)[..., None]
    quotients = np.where(np.isnan(unit), unit, blocks * (1 / unit)) if rceil else blocks / unit
    quotients = np.where(np.isnan(blocks), (blocks.view(np.uint32) | _QUIET).view(np.float32), quotients)
    if element.form.nan_code:
        codes = encode(quotients, element.form, overflow="saturate")
    else:
        codes = f32_to_floatx_unpacked_0_18(quotients, element.form.exponent_bits, element.form.mantissa_bits)
    return scale, _stored(codes, data_hp.shape, elem_dtype)


@formula(
    "torchao.mx_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * 2^{E - 127}",
    basis=AsComputed(dtype="the target's: the element, the power of two, then their product"),
    source="torchao.prototype.mx_formats.mx_tensor.to_dtype; OCP MX 1.0, section 5",
)
@np.errstate(all="ignore")
def mx_dequantize(
    data_lp: Array, scale_e8m0: Array, elem_dtype: str, block_size: int, target_dtype: str = "float32"
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
    codes = unpack_uint4(codes) if elem_dtype == "float4_e2m1fn_x2" else codes
    if codes.size != scale_e8m0.size * block_size:
        msg = f"scale_e8m0 of shape {scale_e8m0.shape} is not accepted: {codes.size} elements in blocks of {block_size}"
        raise RuntimeError(msg)
    numbers = decode(codes, _ELEMENTS[elem_dtype].form, "float32").astype(dtype).reshape(-1, block_size)
    exponent = scale_e8m0.astype(np.int32) - _BIAS
    power = np.where(scale_e8m0 == _NAN, np.nan, np.ldexp(1.0, exponent)).astype(dtype)
    reals: Array = (numbers * power.reshape(-1, 1)).astype(dtype)
    return reals.reshape(codes.shape)


_TILE = (128, 4)


@formula(
    "torchao.to_blocked",
    equation=r"o_{512 t + 16 (i \bmod 32) + 4 \lfloor (i \bmod 128) / 32 \rfloor + j \bmod 4} = x_{ij},\quad "
    r"t = \lfloor i / 128 \rfloor \lceil n / 4 \rceil + \lfloor j / 4 \rfloor",
    basis=Real(),
    source="torchao.prototype.mx_formats.utils.to_blocked",
)
def to_blocked(input_matrix: Array) -> Array:
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
    return tiles.reshape(-1)


@formula(
    "torchao.from_blocked",
    equation=r"x_{ij} = o_{512 t + 16 (i \bmod 32) + 4 \lfloor (i \bmod 128) / 32 \rfloor + j \bmod 4},\quad "
    r"t = \lfloor i / 128 \rfloor \lceil n / 4 \rceil + \lfloor j / 4 \rfloor",
    basis=Real(),
    source="torchao.prototype.mx_formats.utils.from_blocked",
)
def from_blocked(blocked_tensor: Array, original_rows: int, original_cols: int) -> Array:
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
    tiles = blocked_tensor.reshape(rows, columns, 32, 4, 4).transpose(0, 3, 2, 1, 4)
    return tiles.reshape(rows * _TILE[0], columns * _TILE[1])[:original_rows, :original_cols]
