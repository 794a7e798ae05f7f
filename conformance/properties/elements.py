"""Elements of what is stored in blocks, as Python over a ``result``: what a script computes a real from.

Each takes the arguments of the call, the answer, what the array is and a place in it, as ``Role.element`` does.
"""

from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.properties.role import picked, place
from halfeven.conformance.requirement import Arguments
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, FloatFormat, floatx
from halfeven.reference.systems.modelopt.mxfp8 import BLOCK as MX_BLOCK
from halfeven.reference.systems.modelopt.nf4 import Nf4Values, nf4_levels
from halfeven.reference.systems.p3109 import Format

__all__ = [
    "float_rows",
    "four_bits",
    "gguf",
    "hqq",
    "int4",
    "levels",
    "mx",
    "mxfp4",
    "mxfp8",
    "nf4",
    "nvfp4",
    "nvfp4_of_tensor",
    "of_code",
    "of_projected",
    "of_scales",
    "scaled",
    "scaled_codes",
    "shifted",
]

_BLOCK = 32  # elements that gguf stores together
_HALF = _BLOCK // 2
_BYTE = 8
_HIGH = 4  # bits of a nibble: what a code has above them lies elsewhere


def of_code(form: FloatFormat, code: str) -> str:
    """The number of a code: by the name of its dtype, or from its fields."""
    if FLOAT_FORMATS.get(form.name) == form and hasattr(ml_dtypes, form.name):  # other systems call others so
        return f"float(np.uint{8 if form.bits <= _BYTE else 16}({code}).view(ml_dtypes.{form.name}))"
    e, m, most = form.exponent_bits, form.mantissa_bits, form.max_code
    size, field = f"(c & {2 ** (e + m) - 1})", f"(c >> {m} & {2**e - 1})"
    whole = f"((c & {2**m - 1}) + {2**m} * ({field} > 0))"
    number = f"math.ldexp({whole}, max({field}, 1) - {form.bias + m})"
    match form.specials:
        case "ieee":
            number = f"({number} if {size} <= {most} else math.inf if {size} == {most + 1} else math.nan)"
        case "fn":
            number = f"({number} if {size} <= {most} else math.nan)"
        case "fnuz":
            number = f"({number} if c != {2 ** (e + m)} else math.nan)"
    return f"(lambda c: (-1) ** (c >> {e + m}) * {number})(int({code}))"


def of_projected(form: Format, code: str) -> str:
    """The number of a code of P3109."""
    below, nan, last = form.precision - 1, form.nan, form.last
    size = f"(c - {nan} * (c > {nan}))" if form.signed else "c"
    field, sign = f"({size} >> {below})", f"(-1) ** (c > {nan}) * " if form.signed else ""
    whole = f"(({size} & {2**below - 1}) + {2**below} * ({field} > 0))"
    number = f"math.ldexp({whole}, max({field}, 1) - {form.bias + below})"
    return f"(lambda c: math.nan if c == {nan} else {sign}({number} if {size} <= {last} else math.inf))(int({code}))"


def levels(a: Arguments, value: Any, _: str, i: int) -> str:
    """Of bitsandbytes: the level of the code times the largest magnitude."""
    return f"float(code[int({place(value, (0,), i)})]) * {place(value, (1,), i // a.get('blocksize', 4096))}"


def four_bits(a: Arguments, value: Any, _: str, i: int) -> str:
    """Of bitsandbytes: two codes a byte, the first in the high bits."""
    codes = np.arange(16, dtype=np.uint8).reshape(8, 2)
    table = FORMULAS["bitsandbytes/dequantize_4bit"].function(
        codes[:, :1] * 16 + codes[:, 1:], np.ones(1, np.float32), (16,), "float32", 64, a.get("quant_type", "fp4")
    )
    return _of_two(table, place(value, (0,), i // 2), i % 2 == 0) + (
        f" * {place(value, (1,), i // a.get('blocksize', 64))}"
    )


def shifted(_: Arguments, value: Any, __: str, i: int) -> str:
    """Codes, their scale and their zero point."""
    return f"({place(value, (0,), i)} - {place(value, (2,), 0)}) * {place(value, (1,), 0)}"


def scaled(_: Arguments, value: Any, __: str, i: int) -> str:
    """The data times the scale of their block."""
    data, scale = picked(value, ("data",)), picked(value, ("scale",))
    at = np.arange(scale.size).reshape(scale.shape)
    if scale.ndim == data.ndim:
        for d, (n, m) in enumerate(zip(data.shape, scale.shape, strict=True)):
            at = np.repeat(at, n // max(m, 1), d)
    k = int(np.broadcast_to(at, data.shape).flat[i])
    return f"{place(value, ('data',), i)} * {place(value, ('scale',), k)}"


def mx(a: Arguments, value: Any, _: str, i: int) -> str:
    """An element of an MX format times its power of two."""
    name = a["elem_dtype"]
    scale = of_code(FLOAT_FORMATS["float8_e8m0fnu"], place(value, (0,), i // a["block_size"]))
    if name.startswith("float4"):
        return f"{_of_two(_e2m1(), place(value, (1,), i // 2), i % 2 == 1)} * {scale}"
    code = place(value, (1,), i)
    if picked(value, (1,)).dtype == np.uint8:
        code = of_code(FLOAT_FORMATS[name.replace("fp6_", "float6_") + "fn" * name.startswith("fp6")], code)
    return f"{code} * {scale}"


def nvfp4(a: Arguments, value: Any, _: str, i: int) -> str:
    """An element of NVFP4 times the scales of its block and of the tensor."""
    scale = place(value, (0,), i // a.get("block_size", 16))
    if picked(value, (0,)).dtype == np.uint8:
        scale = of_code(FLOAT_FORMATS["float8_e4m3fn"], scale)
    outer = a.get("per_tensor_scale")
    outer = np.ones(1) if outer is None else np.asarray(outer).ravel()
    whole = f"np.float32({float(outer[i * outer.size // np.size(a['data_hp'])])!r})"
    return f"{_of_two(_e2m1(), place(value, (1,), i // 2), i % 2 == 1)} * float(np.float32({scale}) * {whole})"


def of_scales(a: Arguments, value: Any, _: str, i: int) -> str:
    """A code of ModelOpt's FP8 or INT8 times the scale of the tensor, of its index or of its block."""
    shape, scale, sizes = np.shape(value[0]), np.asarray(value[1]), a.get("block_sizes")
    at = np.arange(scale.size).reshape(
        scale.shape if sizes is None else [n // m for n, m in zip(shape, sizes, strict=True)]
    )
    for d, m in enumerate(sizes or ()):
        at = np.repeat(at, m, d)
    return f"{place(value, (0,), i)} * {place(value, (1,), int(np.broadcast_to(at, shape).flat[i]))}"


def int4(a: Arguments, value: Any, _: str, i: int) -> str:
    """A code of ModelOpt's over the scale of the block, the first in the high bits."""
    scale = np.asarray(value[1])
    code = f"((int({place(value, (0,), i // 2)}) >> {4 * (i % 2 == 0)} & 15) - 8)"
    dtype = f"{'np' if hasattr(np, scale.dtype.name) else 'ml_dtypes'}.{scale.dtype.name}"
    by = f"{dtype}({place(value, (1,), i // a['block_size'])})"
    return f"(lambda q, s: float(q / s) if s else math.copysign(math.inf, q) if q else math.nan)({dtype}({code}), {by})"


def nf4(a: Arguments, value: Any, _: str, i: int) -> str:
    """A level of ModelOpt's times the scale of the block, the first in the high bits."""
    level = _of_two(nf4_levels(Nf4Values()), place(value, (0,), i // 2), i % 2 == 0)
    return f"{level} * float({place(value, (1,), i // a['block_size'])})"


def mxfp4(a: Arguments, value: Any, _: str, i: int) -> str:
    """A code of ModelOpt's times a power of two, the first in the low bits."""
    scale = of_code(FLOAT_FORMATS["float8_e8m0fnu"], place(value, (1,), i // a.get("block_size", 32)))
    return f"{_of_two(_e2m1(), place(value, (0,), i // 2), i % 2 == 1)} * {scale}"


def mxfp8(_: Arguments, value: Any, __: str, i: int) -> str:
    """A code of ModelOpt's times a power of two; the last dimension is whole blocks."""
    scale = of_code(FLOAT_FORMATS["float8_e8m0fnu"], place(value, (1,), i // MX_BLOCK))
    return f"{place(value, (0,), i)} * {scale}"


def nvfp4_of_tensor(a: Arguments, value: Any, _: str, i: int) -> str:
    """A code of ModelOpt's times the scale of its block and that of the tensor."""
    scale = f"np.float32({place(value, (1,), i // a.get('block_size', 16))})"
    code = f"np.float32({_of_two(_e2m1(), place(value, (0,), i // 2), i % 2 == 1)})"
    return f"float({code} * ({scale} * np.float32({place(value, (2,), 0)})))"


def float_rows(a: Arguments, value: Any, _: str, i: int) -> str:
    """A float of few bits times the scale of its row."""
    code = of_code(floatx(a["ebits"], a["mbits"]), place(value, ("codes",), i))
    row = place(value, ("scale",), i // np.shape(value["codes"])[-1])
    return f"float(np.float32({code}) * np.float32({row}))"


def hqq(a: Arguments, value: Any, _: str, i: int) -> str:
    """Codes from their middle times the scale of their group, and its zero point."""
    size = a.get("group_size", 64)
    k = i // size if a.get("axis", 1) == 1 else i % (np.size(value[0]) // size)
    middle = 2.0 ** (a.get("nbits", 4) - 1)
    return f"({place(value, (0,), i)} - {middle!r}) * {place(value, (1,), k)} + {place(value, (2,), k)}"


def scaled_codes(a: Arguments, value: Any, _: str, i: int) -> str:
    """Codes times the scale of their group."""
    return f"{place(value, (0,), i)} * {place(value, (1,), i // a['block_size'][-1])}"


def gguf(bits: int, *, minimum: bool) -> Any:
    """An element of a format of gguf's, of so many bits, with a minimum or without."""

    def element(_: Arguments, __: Any, ___: str, i: int) -> str:
        first, j = i // _BLOCK * (2 + 2 * minimum + bits * _BLOCK // 8), i % _BLOCK

        def stored(k: int, n: int = 1) -> str:
            return f"result.ravel()[{first + k}{f':{first + k + n}' if n > 1 else ''}]"

        def half(k: int) -> str:
            return f"float({stored(k, 2)}.view(np.float16)[0])"

        at = 2 + 2 * minimum
        if bits == 2 * _HIGH:
            return f"float({stored(at + j)}.view(np.int8)) * {half(0)}"
        fifth = f"(int({stored(at + j // 8)}) >> {j % 8} & 1) * 16 + " if bits > _HIGH else ""
        at += 4 if fifth else 0
        code = f"({fifth}(int({stored(at + j % _HALF)}) >> {j // _HALF * _HIGH} & 15)"
        return f"{code}) * {half(0)} + {half(2)}" if minimum else f"{code} - {2 ** (bits - 1)}) * {half(0)}"

    return element


def _of_two(table: Array, stored: str, high: bool) -> str:
    return f"{table.astype(np.float64).tolist()!r}[int({stored}){' >> 4' if high else ' & 15'}]"


def _e2m1() -> Array:
    """The numbers of the float format of 4 bits, by their codes."""
    found: Array = FORMULAS["number-formats/decode"].function(np.arange(16, dtype=np.uint8), "float4_e2m1fn", "float64")
    return found
