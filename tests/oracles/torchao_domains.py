"""torchao's quantize, dequantize and fake quantize in the three zero-point domains, element by element."""

from collections.abc import Callable
from fractions import Fraction
from math import copysign, isfinite
from typing import Any

import numpy as np

from oracles.exact import FORMATS, Format, round_to
from oracles.registry import derives
from oracles.soft import Array, Soft, soft, softs
from oracles.torchao_blocks import (
    as_integer,
    bounds,
    clamped,
    each,
    float8_max,
    from_number,
    in_float,
    numbers,
    pack,
    storage,
)

__all__ = ["Code", "before", "by_reciprocal", "divided", "element_codes", "int_real", "promoted"]

Block = tuple[int, ...]
_REALS = ("float32", "float16", "bfloat16")
# Precision, least and greatest exponent; below the greatest number nothing of the specials matters.
_FLOAT8 = {
    "float8_e4m3fn": Format(4, -6, 8),
    "float8_e4m3fnuz": Format(4, -7, 7),
    "float8_e5m2": Format(3, -14, 15),
    "float8_e5m2fnuz": Format(3, -15, 15),
}
Code = Callable[[Soft, Soft, "Soft | None", float, str], Soft]


def promoted(*dtypes: str) -> str:
    """The dtype to which floats promote."""
    return dtypes[0] if len(set(dtypes)) == 1 else "float32"


def _name(dtype: Any) -> str:
    return dtype if isinstance(dtype, str) else np.dtype(dtype).name


def _names(*values: Soft) -> list[str]:
    return [next(n for n, f in FORMATS.items() if f == v.form) for v in values]


def _together(a: Soft, b: Soft) -> tuple[Soft, Soft]:
    """Two numbers in the format to which they promote."""
    form = FORMATS[promoted(*_names(a, b))]
    return a.to(form), b.to(form)


def _over(x: Soft, s: Soft) -> Soft:
    a, b = _together(x, s)
    return a / b


def _times(a: Soft, b: Soft) -> Soft:
    a, b = _together(a, b)
    return a * b


def _plus(a: Soft, b: Soft) -> Soft:
    a, b = _together(a, b)
    return a + b


def divided(x: Soft, s: Soft, z: Soft | None, mid: float, domain: str) -> Soft:
    """The code of ``x`` as documented, a float8's not rounded, not yet limited."""
    if domain == "FLOAT" and z is not None:
        wide = FORMATS["float32"]
        middle = (s.to(wide) * soft(mid, "float32")).to(s.form)
        return _over(_plus(x, -_plus(z, -middle)), s).rint()
    if domain == "FLOAT8":
        return _over(x, s)
    code = _over(x, s).rint()
    return code if z is None else _plus(code, z)


def by_reciprocal(x: Soft, s: Soft, z: Soft | None, mid: float, domain: str) -> Soft:
    """The code as 0.18 has it."""
    if domain == "FLOAT":
        return divided(x, s, z, mid, domain)
    code = _times(x, Soft(1.0, s.form) / s).rint()
    return code if z is None else _plus(code, z)


def before(x: Soft, s: Soft, z: Soft | None, mid: float, domain: str) -> Soft:
    """The code as 0.11 has it, which leaves the fraction of a float8's."""
    return _times(x, Soft(1.0, s.form) / s) if domain == "FLOAT8" else by_reciprocal(x, s, z, mid, domain)


def element_codes(
    input: Array,  # noqa: A002 - the formula's argument
    block_size: Block,
    scale: Array,
    zero_point: Array | None,
    mid: float,
    domain: str,
    code: Code,
) -> tuple[list[Soft], list[Soft], list[Soft | None]]:
    """Codes, scales and zero points of the elements; an integer zero point takes the format that it meets.

    Raises:
        AssertionError: ``input`` is of another dtype, or the block does not fit.
        RuntimeError: a parameter has not one entry per block.
        TypeError: there is no zero point in a domain that has one.
    """
    if input.dtype.name not in _REALS:
        raise AssertionError(input.dtype)
    x, s = softs(input), each(softs(scale), input.shape, block_size)
    none: list[Soft | None] = [None] * len(x)
    if domain in ("NONE", "FLOAT8"):
        return [code(a, b, None, mid, domain) for a, b in zip(x, s, strict=True)], s, none
    if zero_point is None:
        raise TypeError(domain)
    z = _zero_points(
        zero_point,
        input.shape,
        block_size,
        [scale.dtype.name] if domain == "FLOAT" else [input.dtype.name, scale.dtype.name],
    )
    return [code(a, b, c, mid, domain) for a, b, c in zip(x, s, z, strict=True)], s, z


def _zero_points(zero_point: Array, shape: tuple[int, ...], block_size: Block, meets: list[str]) -> list[Any]:
    if zero_point.dtype.kind in "iu":
        dtype = promoted(*meets)
        return each([from_number(v, dtype) for v in numbers(zero_point)], shape, block_size)
    return each(softs(zero_point), shape, block_size)


def _mid(grid: tuple[int, int]) -> float:
    return sum(grid, 1) / 2


def _limited(codes: list[Soft], grid: tuple[int, int]) -> list[Soft]:
    if not codes:
        return codes
    (dtype,) = set(_names(*codes))
    low, high = (in_float(end, dtype) for end in grid)
    return [clamped(q, low, high) for q in codes]


def _as_documented(codes: list[Soft], shape: tuple[int, ...], dtype: str, grid: tuple[int, int]) -> Array:
    """Integers on the grid; a float8 rounded to its nearest."""
    if float8_max(dtype) is not None:
        return _float8(codes, shape, dtype)
    if any(q.nan for q in codes):
        raise ValueError(dtype)
    whole = [grid[0] if q.value < grid[0] else grid[1] if q.value > grid[1] else int(q.value) for q in codes]
    return pack(list(whole), shape, dtype)


def _by_machine(codes: list[Soft], shape: tuple[int, ...], dtype: str) -> Array:
    if float8_max(dtype) is not None:
        return _float8(codes, shape, dtype)
    if dtype in [f"int{b}" for b in range(1, 8)]:
        raise NotImplementedError(dtype)
    to = storage(dtype)
    return pack([as_integer(q.value, 8 * to.itemsize, signed=to.kind == "i") for q in codes], shape, dtype)


def _float8(codes: list[Soft], shape: tuple[int, ...], dtype: str) -> Array:
    unsigned_zero = dtype.endswith("fnuz")
    found = []
    for q in codes:
        value = round_to(Fraction(q.value), _FLOAT8[dtype]) if isfinite(q.value) else q.value
        found.append(value if value or unsigned_zero else copysign(0.0, q.value))
    return pack(list(found), shape, dtype)


def _quantized(code: Code, *, machine: bool) -> Callable[..., Array]:
    def quantize(domain: str, given: dict[str, Any]) -> Array:
        x, dtype = given["input"], _name(given["output_dtype"])
        grid = bounds(dtype, given.get("quant_min"), given.get("quant_max"))
        if domain == "NONE" and float8_max(dtype) is not None and code is not by_reciprocal:
            domain = "FLOAT8"
        if machine and domain != "NONE" and given["zero_point"] is not None and not given["zero_point"].size:
            raise TypeError(domain)
        found, *_ = element_codes(x, given["block_size"], given["scale"], given["zero_point"], _mid(grid), domain, code)
        codes = _limited(found, grid)
        return _by_machine(codes, x.shape, dtype) if machine else _as_documented(codes, x.shape, dtype, grid)

    return quantize


@derives("torchao/quantize_affine")
def _quantize(**given: Any) -> Array:
    return _quantized(divided, machine=False)("INT", given)


@derives("torchao/quantize_affine_float_domain")
def _quantize_float(**given: Any) -> Array:
    return _quantized(divided, machine=False)("FLOAT", given)


@derives("torchao/quantize_affine_no_zero_point")
def _quantize_none(**given: Any) -> Array:
    return _quantized(divided, machine=False)("NONE", given)


@derives("torchao/quantize_affine@0.18")
def _quantize_0_18(**given: Any) -> Array:
    return _quantized(by_reciprocal, machine=True)("INT", given)


@derives("torchao/quantize_affine_float_domain@0.18")
def _quantize_float_0_18(**given: Any) -> Array:
    return _quantized(by_reciprocal, machine=True)("FLOAT", given)


@derives("torchao/quantize_affine_no_zero_point@0.18")
def _quantize_none_0_18(**given: Any) -> Array:
    return _quantized(by_reciprocal, machine=True)("NONE", given)


@derives("torchao/quantize_affine_no_zero_point@0.11")
def _quantize_none_0_11(**given: Any) -> Array:
    if given["zero_point"] is not None:
        raise ValueError(given["zero_point"])
    return _quantized(before, machine=True)("NONE", given)


def int_real(q: Soft, s: Soft, z: Soft | None, _mid: float, out: str) -> Soft:
    """The real of a code in the integer domain, in the format named ``out``."""
    form = FORMATS[out]
    steps = q.to(form) if z is None else q.to(form) - z.to(form)
    return _times(steps, s).to(form)


def _none_real(q: Soft, s: Soft, _z: Soft | None, _mid: float, out: str) -> Soft:
    return _times(q.to(FORMATS[out]), s).to(FORMATS[out])


def _float_real(q: Soft, s: Soft, z: Soft | None, mid: float, out: str) -> Soft:
    """A code of float64 stands for an integer's, which becomes a float32 beside a Python number."""
    wide, form = FORMATS["float32"], FORMATS[out]
    steps = q.to(wide) - soft(mid, "float32")
    steps = steps if q.form == FORMATS["float64"] else steps.to(q.form)
    product = _times(steps.to(form), s).to(form)
    return product if z is None else _plus(product, z).to(form)


_REAL = {"INT": int_real, "FLOAT": _float_real, "NONE": _none_real, "FLOAT8": _none_real}


def _dequantized(domain: str, given: dict[str, Any]) -> Array:
    q, dtype, out = given["input"], _name(given["input_dtype"]), _name(given.get("output_dtype", "float32"))
    unsigned = dtype in [f"uint{b}" for b in range(1, 8)]
    if (not unsigned and q.dtype.name != dtype) or out not in _REALS:
        raise AssertionError(dtype)
    grid = bounds(dtype, given.get("quant_min"), given.get("quant_max"))
    block, shape, point = given["block_size"], q.shape, given["zero_point"]
    s = each(softs(given["scale"]), shape, block)
    if domain == "NONE" and point is not None:
        raise AssertionError(domain)
    z: list[Any] = [None] * q.size if point is None else _zero_points(point, shape, block, [out])
    wide = domain == "FLOAT"  # a Python number joins before the output's dtype does
    codes = [Soft(float(v), FORMATS["float64"]) if wide else from_number(v, out) for v in numbers(q)]
    reals = [_REAL[domain](a, b, c, _mid(grid), out) for a, b, c in zip(codes, s, z, strict=True)]
    return pack([r.value for r in reals], shape, out)


@derives("torchao/dequantize_affine")
def _dequantize(**given: Any) -> Array:
    return _dequantized("INT", given)


@derives("torchao/dequantize_affine_float_domain")
def _dequantize_float(**given: Any) -> Array:
    return _dequantized("FLOAT", given)


@derives("torchao/dequantize_affine_no_zero_point")
def _dequantize_none(**given: Any) -> Array:
    return _dequantized("NONE", given)


@derives("torchao/dequantize_affine_no_zero_point@0.11")
def _dequantize_none_0_11(**given: Any) -> Array:
    if given["zero_point"] is not None:
        raise ValueError(given["zero_point"])
    return _dequantized("NONE", given)


def _wrapped(q: float, z: float) -> int:
    difference = as_integer(q, 32, signed=True) - as_integer(z, 32, signed=True)
    return (difference + 2**31) % 2**32 - 2**31


@derives("torchao/dequantize_affine@0.11")
def _dequantize_0_11(**given: Any) -> Array:
    q, point, block = given["input"], given["zero_point"], given["block_size"]
    _dequantized("INT", given)  # for what it refuses
    zeros = [0] * q.size if point is None else each(numbers(point), q.shape, block)
    s, out = each(softs(given["scale"]), q.shape, block), _name(given.get("output_dtype", "float32"))
    steps = [from_number(_wrapped(a, b), out) for a, b in zip(numbers(q), zeros, strict=True)]
    return pack([_times(a, b).to(FORMATS[out]).value for a, b in zip(steps, s, strict=True)], q.shape, out)


def _faked(given: dict[str, Any], code: Code) -> tuple[list[Soft], list[Soft], list[Soft], list[Any], str, float]:
    """Codes before and after the limits, scales, zero points, the domain, the middle of the grid."""
    domain, point, dtype = given.get("zero_point_domain", "INT"), given["zero_point"], _name(given["quant_dtype"])
    grid = bounds(dtype, given.get("quant_min"), given.get("quant_max"))
    if domain == "NONE" and float8_max(dtype) is not None and code is not by_reciprocal:
        domain = "FLOAT8"
    if code is not divided and point is not None and not point.size:
        point = None
    free, s, z = element_codes(given["input"], given["block_size"], given["scale"], point, _mid(grid), domain, code)
    return free, _limited(free, grid), s, z, domain, _mid(grid)


def _fake(given: dict[str, Any], code: Code) -> tuple[Array, Array]:
    """The reals, and where the free code lies on the grid."""
    x = given["input"]
    free, q, s, z, domain, mid = _faked(given, code)
    out = x.dtype.name
    reals = [_REAL[domain](a, b, c, mid, out).value for a, b, c in zip(q, s, z, strict=True)]
    mask = [not a.nan and a.value == b.value for a, b in zip(free, q, strict=True)]
    return pack(reals, x.shape, out), np.array(mask, bool).reshape(x.shape)


def _known(given: dict[str, Any]) -> None:
    domain = given.get("zero_point_domain", "INT")
    if domain not in ("INT", "FLOAT", "NONE") or (domain == "NONE" and given["zero_point"] is not None):
        raise ValueError(domain)


@derives("torchao/fake_quantize_affine")
def _fake_quantize(**given: Any) -> Array:
    _known(given)
    return _fake(given, divided)[0]


@derives("torchao/fake_quantize_affine_cachemask")
def _fake_with_mask(**given: Any) -> tuple[Array, Array]:
    _known(given)
    return _fake(given, divided)


@derives("torchao/fake_quantize_affine@0.18")
def _fake_quantize_0_18(**given: Any) -> Array:
    _known(given)
    return _fake(given, by_reciprocal)[0]


@derives("torchao/fake_quantize_affine_cachemask@0.18")
def _fake_with_mask_0_18(**given: Any) -> tuple[Array, Array]:
    if given.get("zero_point_domain", "INT") == "NONE" and given["zero_point"] is not None:
        raise AssertionError(given["zero_point_domain"])
    _known(given)
    reals, _ = _fake(given, by_reciprocal)
    if given.get("quant_min") is None or given.get("quant_max") is None:
        raise TypeError(given.get("quant_min"))
    _, q, *_ = _faked(given, by_reciprocal)
    return reals, np.array([not a.nan for a in q], bool).reshape(given["input"].shape)


@derives("torchao/fake_quantize_affine@0.11")
def _fake_quantize_0_11(**given: Any) -> Array:
    _known(given)
    if given.get("zero_point_domain", "INT") != "INT":
        return _fake(given, before)[0]
    x, block, out = given["input"], given["block_size"], given["input"].dtype.name
    if given["zero_point"] is None:
        raise TypeError(None)
    _, q, s, *_ = _faked(given, by_reciprocal)
    zeros = each(numbers(given["zero_point"]), x.shape, block)
    steps = [from_number(_wrapped(a.value, b), out) for a, b in zip(q, zeros, strict=True)]
    return pack([_times(a, b).to(FORMATS[out]).value for a, b in zip(steps, s, strict=True)], x.shape, out)


@derives("torchao/fake_quantize_affine_cachemask@0.11")
def _fake_with_mask_0_11(**given: Any) -> tuple[Array, Array]:
    _, mask = _fake_with_mask_0_18(**given)
    return _fake_quantize_0_11(**given), mask
