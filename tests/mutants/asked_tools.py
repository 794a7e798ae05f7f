"""What mutants of the shared tools are asked: roundings, grids, blocks, small floats, codes; and unusual arguments."""

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from itertools import product
from typing import Any, get_args

import ml_dtypes
import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.reference import FORMULAS, Grid, affine, blocks, exact, minifloat, rounding
from halfeven.reference.profile import along_axis, integers
from halfeven.reference.systems import PROFILES
from mutants.asked import NUMBERS, Row

__all__ = ["KINDS", "tools"]


def tools() -> Iterator[Row]:
    """What formulas share: roundings, grids, blocks, small floats, exact numbers."""
    # Beside ties of bfloat16 and float8 by less than a float32 can tell, on either side of an even number.
    beside = [
        sign * (1 + k * 2.0**-e + d * 2.0**-40) for sign in (1, -1) for k in (1, 3) for e in (4, 8) for d in (1, -1)
    ]
    ends = np.array([*NUMBERS, *beside, 2.0**52 + 0.5, -(2.0**23) - 0.5, 1 + 2.0**-24 + 2.0**-50, 2.0**-15])
    for dtype in DTYPES.values():
        with np.errstate(all="ignore"):
            x = ends.astype(dtype)
        for rule in rounding.ROUNDINGS:
            yield Row(f"rounding {rule}", lambda x, rule: rounding.ROUNDINGS[rule](x), {"x": x, "rule": rule})
        for to in (*DTYPES.values(), np.dtype(ml_dtypes.float8_e4m3fn)):
            yield Row("cast_once", rounding.cast_once, {"x": x, "dtype": to})
    yield from _of_grids()
    yield from _of_blocks()
    yield from _of_formats()
    yield from _of_fractions()
    yield from _of_axes()
    yield from _of_codes()


def _of_grids() -> Iterator[Row]:
    for bits, signed, narrow in product((-1, 0, 1, 2, 8, 31, 32, 33, True, 2.0), (False, True), (False, True)):
        yield Row("bitwidth", _grid, {"of": "from_bitwidth", "bitwidth": bits, "signed": signed, "narrow": narrow})
    for steps, signed in product((-1, 0, 1, 2, 3, 254, 255, 1.0, True), (False, True)):
        yield Row("num_steps", _grid, {"of": "from_num_steps", "num_steps": steps, "signed": signed})
    for dtype in ("int8", "uint4", "uint32", "float32", "int2"):
        yield Row("dtype", _grid, {"of": "from_dtype", "dtype": dtype})
    for low, high in ((0, 0), (-1, 0), (0, 1), (1, 0), (-128, 127), (-3, 200), (0, 256), (True, 1), (0, 1.0), (5, 9)):
        yield Row("grid", _grid, {"of": "ends", "qmin": low, "qmax": high})


def _grid(of: str, **arguments: Any) -> tuple[Any, ...]:
    grid = Grid(**arguments) if of == "ends" else getattr(Grid, of)(**arguments)
    inside = [code in grid for code in (grid.qmin - 1, grid.qmin, grid.qmax, grid.qmax + 1, 0.0)]
    accepted = tuple(name for name, p in PROFILES.items() if p.operations and p.accepts(grid))
    return grid.qmin, grid.qmax, grid.num_steps, grid.bits, str(grid), *inside, ",".join(accepted)


def _of_blocks() -> Iterator[Row]:
    for shape in ((), (0,), (1,), (5,), (4, 6), (0, 3), (2, 3, 4)):
        yield Row("per_tensor", blocks.per_tensor, {"shape": shape})
        yield Row("per_token", blocks.per_token, {"shape": shape})
        yield Row("per_group", blocks.per_group, {"shape": shape, "group_size": 2})
        for axis in range(-4, 4):
            yield Row("per_channel", blocks.per_channel, {"shape": shape, "axis": axis})
            for size in (0, 1, 2, 3):
                yield Row("per_group", blocks.per_group, {"shape": shape, "group_size": size, "axis": axis})
    for shape, size in product(((4, 6), (5,), ()), (None, (), (2,), (2, 3), (3, 4), (4, 6), (0, 1), (5,), (1, 1))):
        for entries in ((), (1,), (2,), (3,), (2, 2), (1, 1), (4, 6), (4, 1), (6,), (3, 1, 1), (1, 4, 6)):
            parameter = np.arange(int(np.prod(entries)), dtype=np.float32).reshape(entries)
            yield Row("per_element", blocks.per_element, {"parameter": parameter, "shape": shape, "block_size": size})


def _of_formats() -> Iterator[Row]:
    for e, m, bias, specials in product(
        (0, 1, 4, 8, 5.0), (0, 1, 3, 7, -1), (0, 7, 127, 1023, True), get_args(minifloat.Specials)
    ):
        given = {"name": "f", "exponent_bits": e, "mantissa_bits": m, "bias": bias, "specials": specials}
        yield Row("format", _described, given)
    for e, m, bias, specials in (
        (4, 3, 1074, "fn"),
        (4, 3, 1072, "fn"),
        (4, 3, 1073, "fn"),
        (4, 3, -1008, "fn"),
        (4, 3, -1009, "fn"),
        (4, 3, 1080, "fn"),
        (8, 7, -900, "ieee"),
        (4, 3, 7, "none"),
        (8, 8, 1, "fn"),
    ):
        yield Row(
            "format",
            _described,
            {"name": "f", "exponent_bits": e, "mantissa_bits": m, "bias": bias, "specials": specials},
        )
    for form, dtype, overflow in product(
        minifloat.FLOAT_FORMATS.values(), ("float32", "float64", "bfloat16"), get_args(minifloat.Overflow)
    ):
        codes = np.arange(min(2**form.bits, 512))
        near = minifloat.decode(codes, form)
        with np.errstate(all="ignore"):
            x = np.concatenate([near, (near[1:] + near[:-1]) / 2, near * 1.01, ends_of(form)]).astype(DTYPES[dtype])
        yield Row("cast", minifloat.cast, {"x": x, "format": form, "overflow": overflow})
    real, code = {"format": "float8_e5m2", "overflow": "saturate"}, {"format": "float8_e5m2"}
    for bad in ([1.0], np.int32([1]), np.float32([1]).astype(ml_dtypes.float8_e5m2)):
        yield Row("encode", minifloat.encode, {**real, "x": bad})
        yield Row("decode", minifloat.decode, {**code, "codes": bad})
    yield Row("encode", minifloat.encode, {**real, "x": np.ones(1), "rounding": "half"})


def ends_of(form: minifloat.FloatFormat) -> np.ndarray:
    """What is larger and smaller than every number of a format."""
    return np.array([1e300, -1e300, np.inf, -np.inf, np.nan, 0.0, -0.0, 2.0**-1074, -(2.0**-140)])


def _described(**arguments: Any) -> tuple[Any, ...]:
    form = minifloat.FloatFormat(**arguments)
    return form.bits, form.max_code, form.lowest_exponent


def _of_fractions() -> Iterator[Row]:
    quarters = [Fraction(n, 4) for n in range(-13, 14)]
    yield Row("tie", lambda v: [str(exact.distance_to_tie(n, 0.75)) for n in v], {"v": quarters})


def _of_axes() -> Iterator[Row]:
    for shape in ((3,), (0,), (3, 4), (0, 3), (2, 3, 4), (1, 1)):
        for size in (None, *product(*[(1, n) for n in shape]), *product(*[(2, n) for n in shape])):
            for count in (0, 1, 2, 3, 4):
                given = {"block_size": size, "shape": shape, "parameters": count}
                yield Row("channel_of", affine.channel_of, given)
        for given, axis in product(((3,), (4,), (3, 1), (1, 4), (2,), (1,), ()), (0, 1, -1)):
            along = {"parameter": np.arange(np.prod(given), dtype=np.float32).reshape(given), "shape": shape}
            yield Row("along_axis", along_axis, {**along, "axis": axis})


def _of_codes() -> Iterator[Row]:
    among = ("int8", "uint8", "int16", "int32")
    for low, high in (
        (-300, 5),
        (-128, 127),
        (-129, 0),
        (-(2**15) - 1, 0),
        (0, 255),
        (3, 256),
        (0, 2**32),
        (-(2**40), 0),
    ):
        yield Row("held", affine.held, {"grid": Grid(low, high), "among": among})
    codes = np.array([-128.0, -1, -0.0, 0, 127, 255, 65535, 2**31, 2**32 - 1, 2**40 + 3])
    for dtype, to in product(DTYPES.values(), ("int8", "uint8", "int16", "int32", "uint32", "int64")):
        with np.errstate(over="ignore"):
            yield Row("integers", integers, {"codes": codes.astype(dtype), "dtype": to})


def held_in_float32() -> Iterator[Row]:
    """Scales that are no float32, in shapes that a list has, and defaults that no library's call leaves out."""
    x, ends = np.arange(-(2**15), 2**15, dtype=np.float32) / 64, {"quant_min": -128, "quant_max": 127}
    signatures = {
        "torch/quantize_per_tensor": {"dtype": "qint8"},
        "torch/fake_quantize_per_tensor_affine": ends,
        "torch/quantized_decomposed.quantize_per_tensor": {**ends, "dtype": "int8"},
    }
    for name, given in signatures.items():
        for f, k in product(FORMULAS.versions(name), range(1, 40)):
            yield Row(f.id, f.function, {"input": x, "scale": k / 40, "zero_point": 3, **given})
            if "decomposed" not in name:
                one = {"scale": np.array([k / 40]), "zero_point": np.array([3])}
                yield Row(f.id, f.function, {"input": np.float32(k), **one, **given})
    given = {"input": np.arange(-8, 8, dtype=np.int8), "scale": 0.1, "zero_point": 3, **ends}
    yield Row("no dtype", FORMULAS["torch/quantized_decomposed.dequantize_per_tensor"].function, given)
    given = {"input": x, "scale": 0.1, "zero_point": 3, "dtype": "qint32"}
    yield Row("no grid", FORMULAS["torch/quantize_per_tensor"].function, given)
    each = np.arange(2**16, dtype=np.uint16).view(np.float16)
    for dtype, scale in product((np.float16, np.int8, np.uint8, np.int32), (0.1, 0.37, 1.7)):
        for choices in ({"arithmetic": "float32"}, {"arithmetic": "float32", "integers": "cut"}):
            formula = FORMULAS["aimet/affine.dequantize"]
            assert formula.behaviour is not None
            at = formula.at(replace(formula.behaviour, **choices))
            tensor = each if dtype is np.float16 else np.arange(99).astype(dtype)
            given = {"tensor": tensor, "scale": np.float32(scale), "offset": np.float32(0)}
            yield Row("float32 between", at, given)


def wrong_types() -> Iterator[Row]:
    """Arguments of types that no library is asked with: tests/reference says which are refused, and how."""
    for width in (True, 2.5, "8", np.int64(8), None):
        for formula in ("brevitas/max_int", "brevitas/min_int"):
            given = {"signed": True, "narrow_range": False, "bit_width": width}
            yield Row(f"{formula}, a width of a wrong type", FORMULAS[formula].function, given)


KINDS = (tools, held_in_float32, wrong_types)
