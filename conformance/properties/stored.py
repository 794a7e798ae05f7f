"""The roles of formulas that give the reals of stored codes: blocks with a scale, packed codes, floats of few bits."""

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.properties.affine import at
from halfeven.conformance.properties.role import Role, Seen
from halfeven.conformance.requirement import Arguments
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode, floatx
from halfeven.reference.systems.bitsandbytes import get_4bit_type
from halfeven.reference.systems.modelopt.mxfp8 import BLOCK as MX_BLOCK
from halfeven.reference.systems.modelopt.nf4 import Nf4Values, nf4_levels

__all__ = ["STORED", "nibbles"]

_See = Callable[[Arguments], Seen]
_Times = Callable[[Arguments], dict[str, Any]]
_TIMES = 4  # as in the property of powers of two
_STEP = 2  # of an exponent that is one more for twice as much
_NAN = 255  # of e8m0
_E4M3, _E2M1 = "float8_e4m3fn", "float4_e2m1fn"
_WHOLE = np.dtype(np.uint8)  # codes are in no unit, and overflow nothing
_MX = {
    "float8_e4m3fn": _E4M3,
    "float8_e5m2": "float8_e5m2",
    "fp6_e2m3": "float6_e2m3fn",
    "fp6_e3m2": "float6_e3m2fn",
    "float4_e2m1fn_x2": _E2M1,
}


def _seen(
    numbers: Array, scale: Array | None = None, zero: Array | None = None, parts: int | None = None, *, step: float = 1
) -> Seen:
    """Codes by the numbers that they are, and the scale that each meets, of which ``step`` is the real of one."""
    s = None if scale is None else np.broadcast_to(scale.astype(np.float64) * step, numbers.shape)
    z = None if s is None else np.zeros(numbers.shape) if zero is None else zero
    return Seen(numbers.astype(np.float64), _WHOLE, s, z, parts=parts)


def _in_blocks(numbers: Array, scale: Array, size: int) -> Seen:
    """Blocks of ``size`` consecutive codes, each with a scale, in the order of the scales."""
    which = np.arange(numbers.size) // size
    whole = numbers.size == scale.size * size
    return _seen(numbers, scale.astype(np.float64).ravel()[which].reshape(numbers.shape), parts=scale.size * whole)


def nibbles(packed: Array, *, high_first: bool = False) -> Array:
    """The two codes of each byte, side by side along the last dimension."""
    halves = [packed & 15, packed >> 4]
    return np.stack(halves[::-1] if high_first else halves, axis=-1).reshape(*packed.shape[:-1], -1)


def _tiled(scale: Array, shape: tuple[int, ...], block: tuple[int, ...] | None = None) -> Array:
    """A scale as each element of the shape meets it: by blocks where it has as many dimensions, else as it broadcasts.

    Raises:
        ValueError: it does not fit.
    """
    if scale.ndim != len(shape):
        return np.broadcast_to(scale, shape)
    sizes = block or tuple(-(-n // max(m, 1)) for n, m in zip(shape, scale.shape, strict=True))
    for d, (n, size) in enumerate(zip(shape, sizes, strict=True)):
        scale = np.take(np.repeat(scale, size, d), np.arange(n), d)
    return scale


def _stored(data: str, see: _See, runs: tuple[str, ...] = (), reals: tuple[str, ...] = (), **more: Any) -> Role:
    """A formula that gives one real for each code.

    Args:
        data: its argument that holds the codes.
        see: the codes by the numbers that they are, each with its scale.
        runs: the arguments that lie block by block, where blocks do not go along the dimensions.
        reals: the arguments in the unit of the result.
        more: how a call is made ``times`` a power of two, where those are no plain reals.
    """

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        return {"reals": np.asarray(value)}

    traits = frozenset({"reals"} if reals or more else ())
    return Role("dequantize", see, read, at(()), reals, data, traits, runs=runs, **more)


# What is stored of a block of gguf's, by name: its bytes and elements; then bytes to put into it so that it shows its
# codes (a scale of 1, no minimum), its scale (codes of 1, no minimum) and its least value (codes of 0); and where its
# numbers of float16 are.
_ONE, _NONE = {0: 0x00, 1: 0x3C}, {2: 0, 3: 0}
_GGUF: dict[str, tuple[int, dict[int, int], dict[int, int], dict[int, int] | None, tuple[int, ...]]] = {
    "Q8_0": (34, _ONE, dict.fromkeys(range(2, 34), 1), None, (0,)),
    "Q4_0": (18, _ONE, dict.fromkeys(range(2, 18), 0x99), None, (0,)),
    "Q5_0": (22, _ONE, dict.fromkeys(range(2, 6), 0xFF) | dict.fromkeys(range(6, 22), 0x11), None, (0,)),
    "Q4_1": (
        20,
        _ONE | _NONE,
        _NONE | dict.fromkeys(range(4, 20), 0x11),
        dict.fromkeys(range(4, 20), 0),
        (0, 2),
    ),
    "Q5_1": (
        24,
        _ONE | _NONE,
        _NONE | dict.fromkeys(range(4, 8), 0) | dict.fromkeys(range(8, 24), 0x11),
        dict.fromkeys(range(4, 24), 0),
        (0, 2),
    ),
    "Q4_K": (
        144,
        _ONE | _NONE | dict.fromkeys((*range(4, 8), *range(12, 16)), 1) | dict.fromkeys(range(8, 12), 0),
        _NONE | dict.fromkeys(range(16, 144), 0x11),
        dict.fromkeys(range(16, 144), 0),
        (0, 2),
    ),
    "Q6_K": (
        210,
        {208: 0x00, 209: 0x3C} | dict.fromkeys(range(192, 208), 1),
        dict.fromkeys(range(128), 0x11) | dict.fromkeys(range(128, 192), 0xAA),
        None,
        (208,),
    ),
}


def _gguf(name: str) -> Role:
    width, unit, ones, zeros, halves = _GGUF[name]
    formula = FORMULAS[f"gguf/{name}.dequantize"].function

    def blocks(tensor: Array) -> Array:
        if tensor.ndim == 0 or tensor.shape[-1] % width:
            msg = "it is not whole blocks"
            raise ValueError(msg)
        return tensor.reshape(-1, width).copy()

    def shown(tensor: Array, put: Mapping[int, int]) -> Array:
        stored = blocks(tensor)
        stored[:, list(put)] = list(put.values())
        found: Array = formula(stored.reshape(tensor.shape)).astype(np.float64)
        return found

    def see(a: Arguments) -> Seen:
        tensor = np.asarray(a["tensor"])
        numbers, scale = shown(tensor, unit), shown(tensor, ones)
        zero = None if zeros is None else -shown(tensor, zeros) / scale
        return _seen(numbers, scale, zero, len(blocks(tensor)))

    def times(a: Arguments) -> dict[str, Any]:
        stored = blocks(np.asarray(a["tensor"]))
        for place in halves:
            half = np.ascontiguousarray(stored[:, place : place + 2]).view("<f2")
            stored[:, place : place + 2] = (half * np.float16(_TIMES)).astype("<f2").view(np.uint8)
        return {**a, "tensor": stored.reshape(np.shape(a["tensor"]))}

    return _stored("tensor", see, ("tensor",), times=times)


def _mx(a: Arguments) -> Seen:
    codes = np.asarray(a["data_lp"]).view(np.uint8)
    codes = nibbles(codes) if a["elem_dtype"].endswith("x2") else codes
    numbers = decode(codes, _MX[a["elem_dtype"]], "float64")
    return _in_blocks(numbers, _power(np.asarray(a["scale_e8m0"])), a["block_size"])


def _mxfp4(a: Arguments) -> Seen:
    numbers = decode(nibbles(np.asarray(a["quantized_data"])), _E2M1, "float64")
    return _in_blocks(numbers, _power(np.asarray(a["scale"])), a.get("block_size", 32))


def _mxfp8(a: Arguments) -> Seen:
    numbers = np.asarray(a["quantized_data"])
    by = _tiled(_power(np.asarray(a["scale"])), numbers.shape, (*(1 for _ in numbers.shape[:-1]), MX_BLOCK))
    return _seen(numbers, by, parts=1 if numbers.shape[-1] % MX_BLOCK else None)


def _power(codes: Array) -> Array:
    """The powers of two of e8m0."""
    exponents = codes.view(np.uint8).astype(np.float64)
    found: Array = np.where(exponents == _NAN, np.nan, np.exp2(exponents - 127))
    return found


def _exponent(name: str) -> _Times:
    """A call whose scales of e8m0 are a power of two larger; beyond the last is NaN."""

    def times(a: Arguments) -> dict[str, Any]:
        codes = np.asarray(a[name])
        larger = np.minimum(codes.view(np.uint8).astype(np.int64) + _STEP, _NAN).astype(np.uint8)
        return {**a, name: larger.view(codes.dtype)}

    return times


def _nvfp4(a: Arguments) -> Seen:
    numbers = decode(nibbles(np.asarray(a["qdata"])), _E2M1, "float64")
    s = decode(np.asarray(a["scale"]).view(np.uint8), _E4M3, "float64").reshape(*numbers.shape[:-1], -1)
    outer = a.get("per_tensor_scale")
    s = s * (1.0 if outer is None else np.asarray(outer).astype(np.float64))
    seen = _in_blocks(numbers, s, a.get("block_size", 16))
    return seen if outer is None or np.size(outer) == 1 else _seen(seen.x, seen.scale, parts=np.size(outer))


def _modelopt_nvfp4(a: Arguments) -> Seen:
    scale, size, shape = np.asarray(a["scale"]), a.get("block_size", 16), tuple(a["shape"])
    codes = nibbles(np.asarray(a["quantized_data"])).reshape(*scale.shape[:-1], -1)[..., : shape[-1]]
    s = decode(scale.view(np.uint8), _E4M3, "float64") if scale.dtype == ml_dtypes.float8_e4m3fn else scale
    by = np.repeat(s.astype(np.float64), size, -1)[..., : shape[-1]] * np.float64(a["double_scale"])
    whole = shape[-1] % size == 0
    return _seen(decode(codes, _E2M1, "float64").reshape(shape), by.reshape(shape), parts=scale.size * whole)


def _int4(a: Arguments) -> Seen:
    shape, scale = tuple(a["shape"]), np.asarray(a["scale"]).astype(np.float64)
    codes = nibbles(np.asarray(a["quantized_data"]), high_first=True).ravel()[: int(np.prod(shape))]
    return _in_blocks(codes.astype(np.float64).reshape(shape) - 8, 1 / scale, a["block_size"])


def _nf4(a: Arguments) -> Seen:
    shape, by = tuple(a["shape"]), np.asarray(a["double_scale"]).astype(np.float64)
    codes = nibbles(np.asarray(a["quantized_data"]), high_first=True).ravel()[: int(np.prod(shape))]
    scales = np.asarray(a["scale"]).astype(np.float64).reshape(by.size, -1) / by[:, None] + float(a["scale_zeros"])
    seen = _in_blocks(nf4_levels(Nf4Values())[codes].reshape(shape), scales, a["block_size"])
    return seen if by.size == 1 else _seen(seen.x, seen.scale, parts=1)


def _levels(a: Arguments) -> Seen:
    numbers = np.asarray(a["code"])[np.asarray(a["A"])]
    return _in_blocks(numbers, np.asarray(a["absmax"]), a.get("blocksize", 4096))


def _four_bits(a: Arguments) -> Seen:
    codes = nibbles(np.asarray(a["A"]), high_first=True).ravel()[: int(np.prod(a["shape"]))]
    numbers = get_4bit_type(a.get("quant_type", "fp4"))[codes].reshape(a["shape"])
    return _in_blocks(numbers, np.asarray(a["absmax"]), a.get("blocksize", 64))


def _floatx(a: Arguments) -> Seen:
    codes = np.asarray(a["x" if "x" in a else "tensor"])
    numbers = decode(codes, floatx(a["ebits"], a["mbits"]), "float64")
    return _seen(numbers, None if "scale" not in a else np.asarray(a["scale"]).reshape(-1, 1))


def _float8(data: str, *, inverse: bool = False) -> _See:
    def see(a: Arguments) -> Seen:
        numbers, scale = np.asarray(a[data]), np.asarray(a["scale"]).astype(np.float64)
        block = a.get("block_sizes")
        ragged = block is not None and any(n % size for n, size in zip(numbers.shape, block, strict=True))
        by = _tiled(1 / scale if inverse else scale, numbers.shape, block)
        return _seen(numbers, by, parts=1 if ragged else None)

    return see


def _int8(a: Arguments) -> Seen:
    codes, scale = np.asarray(a["quantized_data"]), np.asarray(a["scale"]).astype(np.float64)
    kept = tuple(slice(n) for n in a["shape"])
    by = _tiled(scale, codes.shape, a.get("block_sizes"))[kept]
    return _seen(codes[kept], by, parts=1 if by.shape != codes.shape else None)


def _divided(a: Arguments) -> dict[str, Any]:
    """A call whose scale, by which codes are divided, is a power of two less."""
    scale = np.asarray(a["scale"])
    return {**a, "scale": (scale / np.asarray(_TIMES, scale.dtype)).astype(scale.dtype)}


def _nf4_larger(a: Arguments) -> dict[str, Any]:
    """A call whose scales are a power of two larger: what their codes are divided by is less, and their mean larger."""
    by, zero = np.asarray(a["double_scale"]), np.asarray(a["scale_zeros"])
    more = {"double_scale": by / np.asarray(_TIMES, by.dtype), "scale_zeros": zero * np.asarray(_TIMES, zero.dtype)}
    return {**a, **more}


def _same(formula: str, **wide: Any) -> _See:
    """Numbers that the formula gives exactly."""
    return lambda a: _seen(np.asarray(FORMULAS[formula].function(**{**a, **wide})))


STORED: dict[str, Role] = {
    "bitsandbytes/dequantize_blockwise": _stored("A", _levels, ("A", "absmax"), ("absmax",)),
    "bitsandbytes/dequantize_4bit": _stored("A", _four_bits, ("A", "absmax"), ("absmax",)),
    **{f"gguf/{name}.dequantize": _gguf(name) for name in _GGUF},
    "modelopt/fp8_dequantize": _stored("quantized_data", _float8("quantized_data"), (), ("scale",)),
    "modelopt/int4_dequantize": _stored("quantized_data", _int4, ("quantized_data", "scale"), times=_divided),
    "modelopt/mxfp4_dequantize": _stored(
        "quantized_data", _mxfp4, ("quantized_data", "scale"), times=_exponent("scale")
    ),
    "modelopt/int8_dequantize": _stored("quantized_data", _int8, (), ("scale",)),
    "modelopt/mxfp8_dequantize": _stored("quantized_data", _mxfp8, times=_exponent("scale")),
    "modelopt/nf4_dequantize": _stored("quantized_data", _nf4, ("quantized_data", "scale"), times=_nf4_larger),
    "modelopt/nvfp4_dequantize": _stored(
        "quantized_data", _modelopt_nvfp4, ("quantized_data", "scale"), ("double_scale",)
    ),
    "number-formats/decode": _stored("codes", _same("number-formats/decode", dtype="float64")),
    "number-formats/from_integer": _stored("codes", _same("number-formats/from_integer", to="float64")),
    "p3109/Decode": _stored("codes", _same("p3109/Decode")),
    "torchao/dequantize_affine_float8": _stored("tensor", _float8("tensor"), (), ("scale",)),
    "torchao/dequantize_affine_floatx": _stored("tensor", _floatx, (), ("scale",)),
    "torchao/floatx_unpacked_to_f32": _stored("x", _floatx),
    "torchao/mx_dequantize": _stored("data_lp", _mx, ("data_lp", "scale_e8m0"), times=_exponent("scale_e8m0")),
    "torchao/nvfp4_dequantize": _stored("qdata", _nvfp4, ("qdata", "scale", "per_tensor_scale"), ("per_tensor_scale",)),
    "torchao/to_original_precision": _stored("data", _float8("data", inverse=True), (), times=_divided),
}
