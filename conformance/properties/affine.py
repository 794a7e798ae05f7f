"""The roles of formulas that quantize on a grid with parameters given, and of casts to narrower floats."""

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from halfeven.conformance.properties.elements import of_code
from halfeven.conformance.properties.role import Kind, Path, Role, Seen, picked, place
from halfeven.conformance.requirement import Arguments
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FloatFormat, floatx, format_of

__all__ = ["AFFINE", "Element", "Ends", "at", "bits_ends", "dtype_ends", "given_ends", "spread"]

Ends = Callable[[Arguments], tuple[float, float] | None]
Element = Callable[[Arguments, Any, str, int], str]


def spread(arguments: Arguments, x: Array, parameter: Any) -> Array:
    """A parameter as each element of ``x`` meets it: for a tensor, along an axis, in blocks, or as it broadcasts.

    Raises:
        ValueError: it does not fit.
    """
    p = np.asarray(parameter).astype(np.float64)
    block, axis = arguments.get("block_size"), arguments.get("axis")
    if p.size == 1:
        return np.full(x.shape, p.ravel()[0])
    if isinstance(block, int) and axis is not None and p.ndim == x.ndim:
        return np.take(np.repeat(p, block, axis), np.arange(x.shape[axis]), axis)
    if axis is not None and p.ndim == 1:
        shape = [1] * x.ndim
        shape[axis] = p.size
        return np.broadcast_to(p.reshape(shape), x.shape)
    if isinstance(block, tuple | list) and len(block) <= x.ndim:
        last = x.shape[x.ndim - len(block) :]
        sizes = [n if b == -1 else b for n, b in zip(last, block, strict=True)]
        p = p.reshape([n // b for n, b in zip(last, sizes, strict=True)])
        for d, b in enumerate(sizes):
            p = np.repeat(p, b, d)
    return np.broadcast_to(p, x.shape)


def given_ends(low: str, high: str) -> Ends:
    """The ends that the arguments of these names give."""
    return lambda a: (a[low], a[high])


def dtype_ends(name: Any) -> tuple[float, float] | None:
    """The codes of an integer dtype by name; None for one of floats."""
    found = re.fullmatch(r"q?(u?)int(\d+)", str(name))
    if found is None:
        return None
    bits = int(found[2])
    return (0, 2**bits - 1) if found[1] else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def bits_ends(bits: str, *, narrow: bool = False) -> Ends:
    """Codes of so many bits, signed unless the call says otherwise; without the lowest where ``narrow`` is the rule."""

    def ends(a: Arguments) -> tuple[float, float]:
        width = int(a.get(bits, 8))
        if width < 1:
            msg = "no codes have so many bits"
            raise ValueError(msg)
        if a.get("unsigned", not a.get("signed", True)):
            return 0, 2**width - 1 - (narrow is False and bool(a.get("narrow_range")))
        return -(2 ** (width - 1)) + bool(a.get("narrow_range", narrow)), 2 ** (width - 1) - 1

    return ends


def _torchao(dtype: str) -> Ends:
    def ends(a: Arguments) -> tuple[float, float] | None:
        whole = dtype_ends(a[dtype])
        low, high = a.get("quant_min"), a.get("quant_max")
        if whole is None:
            return None
        return whole[0] if low is None else low, whole[1] if high is None else high

    return ends


def _aimet(a: Arguments) -> tuple[float, float]:
    if a.get("qmin") is not None:
        return a["qmin"], a["qmax"]
    return FORMULAS["aimet/grid"].function(a.get("bitwidth"), a.get("num_steps"), bool(a.get("signed")))  # type: ignore[no-any-return]


def _onnx(a: Arguments) -> tuple[float, float] | None:
    zero = a.get("y_zero_point")
    return dtype_ends(zero.dtype.name if zero is not None else a.get("output_dtype") or "uint8")


def at(path: Path) -> Element:
    """An element of a result that has one array of interest, at the end of the way."""
    return lambda _, value, _leaf, i: place(value, path, i)


def _none(_: Arguments) -> None:
    return None


def _affine(
    kind: Kind,
    x: str,
    scale: str = "scale",
    zero: str = "zero_point",
    *,
    ends: Ends = _none,
    path: Path = (),
    negated: bool = False,
    middle: bool = False,
    given: Callable[[Arguments], Arguments] = dict,
    units: tuple[str, ...] = (),
) -> Role:
    """A formula that is given its parameters.

    Args:
        kind: what it does.
        x: the name of the argument that is quantized, or of the codes.
        scale: that of the scale.
        zero: that of the zero point or the offset.
        ends: the ends of its grid.
        path: where in the result the codes or reals are.
        negated: whether it has an offset, x̂ = (q + o) * s.
        middle: whether the zero point is the real of the grid's middle.
        given: the arguments with scale, zero point and ends by these names, where the call says them otherwise; it
            raises ValueError where it does not say them.
        units: the arguments in the unit of x, where they are not x and the scale.
    """

    def see(call: Arguments) -> Seen:
        a = given(call)
        shifted = bool(a.get("zero_point_shift"))
        if a.get("global_scale") is not None or a.get("type", "int") != "int" or shifted:
            msg = "its codes are floats, or its grid is shifted by part of a code"
            raise ValueError(msg)
        data = np.asarray(a[x])
        s = spread(a, data, a[scale])
        point = None if a.get(zero) is None else spread(a, data, a[zero])
        z = np.zeros(data.shape) if point is None else point
        grid = ends(a)
        low, high = grid or (None, None)
        # A zero point of floats is counted from the middle; so is that of the FLOAT domain of a formula of several.
        if (middle or a.get("zero_point_domain") == "FLOAT") and grid is not None:
            z = np.asarray((grid[0] + grid[1] + 1) / 2 - (0 if point is None else point / s))
        nearest = a.get("float_to_int", "ROUND") == "ROUND"
        return Seen(data.astype(np.float64), data.dtype, s, -z if negated else z, low, high, odd=nearest)

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        return {"codes" if kind == "quantize" else "reals": picked(value, path)}

    reals = (scale, *((x,) if kind != "dequantize" else ()))
    traits = {"grid", "kept"} - (set() if ends is not _none else {"grid"}) - ({"kept"} if middle else set())
    reals = units or ((*reals, zero) if middle else reals)
    return Role(kind, see, read, at(path), reals, x, frozenset(traits | {"reals", "odd"}))


def _cast(
    x: str,
    decode: Callable[[Arguments, Array], Array] | None = None,
    scale: str = "",
    axis: int | None = None,
    kind: Kind = "cast",
    path: Path = (),
) -> Role:
    """A formula that rounds to a narrower float; ``decode`` gives the reals of its codes, where it gives codes."""

    def see(a: Arguments) -> Seen:
        data = np.asarray(a[x])
        if scale and isinstance(a.get("block_size"), tuple) and np.ndim(a[scale]) != data.ndim:
            msg = "there is not one scale for each block"
            raise ValueError(msg)
        along = a if axis is None else {**a, "axis": axis}
        s = None if not scale or a.get(scale) is None else spread(along, data, a[scale])
        return Seen(data.astype(np.float64), data.dtype, s, odd=True)

    def read(a: Arguments, value: Any) -> Mapping[str, Array]:
        found = picked(value, path)
        return {"reals": found if decode is None else decode(a, found)}

    reals = () if kind == "cast" or not scale else (x, scale)
    traits = {"odd", *(["kept"] if not scale or kind != "cast" else []), *(["reals"] if reals else [])}

    def element(a: Arguments, value: Any, _: str, i: int) -> str:
        return place(value, path, i) if decode is None else of_code(_format(a), place(value, path, i))

    return Role(kind, see, read, element, reals, x, frozenset(traits))


def _format(a: Arguments) -> FloatFormat:
    return floatx(a["ebits"], a["mbits"]) if "ebits" in a else format_of(a["format"])


def _floatx(a: Arguments, codes: Array) -> Array:
    return np.asarray(FORMULAS["torchao/floatx_unpacked_to_f32"].function(codes, a["ebits"], a["mbits"]))


def _decoded(a: Arguments, codes: Array) -> Array:
    if "e8m0" in str(a["format"]):  # it has neither a zero nor a sign
        msg = "scales alone"
        raise ValueError(msg)
    return np.asarray(FORMULAS["number-formats/decode"].function(codes, a["format"], "float64"))


def _pytorch_quantization(kind: Kind, path: Path) -> Role:
    """The amax is the real of the greatest code, and the scale is its quotient by that."""
    ends = bits_ends("num_bits", narrow=True)

    def see(a: Arguments) -> Seen:
        data, (low, high) = np.asarray(a["inputs"]), ends(a) or (0, 0)
        s = spread(a, data, a["amax"]) / high
        zero = np.zeros(data.shape)
        return Seen(data.astype(np.float64), data.dtype, s, zero, low, high, odd=True)

    def read(_: Arguments, value: Any) -> Mapping[str, Array]:
        return {"codes" if kind == "quantize" else "reals": picked(value, path)}

    return Role(kind, see, read, at(path), ("inputs", "amax"), "inputs", frozenset({"grid", "kept", "reals", "odd"}))


def _of_range(a: Arguments) -> Arguments:
    """With the scale and the offset of a range of AIMET's, and its shift where it has one."""
    found = FORMULAS["aimet/scale_and_offset"].function(a["min"], a["max"], a["qmin"], a["qmax"], a["symmetric"])
    return {**a, "scale": found[0], "offset": found[1]}


def _fake_affine(a: Arguments) -> Arguments:
    """With the step of a range, and with the zero point that is minus the offset of its lower end."""
    bits = a.get("num_bits", 8)
    low, half = np.asarray(a["min_range"]), 2 ** (bits - 1)
    wide = np.promote_types(low.dtype, np.float32).type
    step = (wide(np.asarray(a["max_range"]) - low) / wide(2**bits - 1)).astype(low.dtype)
    if abs(float(step)) < (2.0**-14 if low.dtype == np.float16 else float(np.finfo(np.float32).tiny)):
        msg = "the step is subnormal"
        raise ValueError(msg)
    offset = wide(np.rint(low / step)) + wide(half)
    return {**a, "scale": step, "offset": offset.astype(low.dtype), "qmin": -half, "qmax": half - 1}


def _lowest_zero(a: Arguments) -> Arguments:
    """With the lowest code as the zero point."""
    ends = bits_ends("bit_width")(a)
    if ends is None or not a.get("quantize_zero_point", True):
        msg = "it is not quantized"
        raise ValueError(msg)
    return {**a, "the lowest": ends[0]}


def _whole_zero(a: Arguments) -> Arguments:
    """As it is, where the zero point is a code."""
    if a.get("zero_point_domain", "INT") == "FLOAT":
        msg = "the zero point is a real"
        raise ValueError(msg)
    return a


def _observed_before(a: Arguments) -> Arguments:
    """With the scale and the zero point of a range that the call leaves as it is."""
    if a["observer_on"] or not a["fake_quant_on"]:
        msg = "the data choose the scale"
        raise ValueError(msg)
    rows = len(a["running_min"]) if a.get("per_row_fake_quant") else 1
    x = np.zeros((rows, *[1] * (np.ndim(a["x"]) - 1)), np.float32)
    found = FORMULAS["torch/fused_moving_avg_obs_fake_quant"].function(**{**a, "x": x})
    axis = {"axis": 0} if rows > 1 else {}
    return {**a, **axis, "scale": found[3][:rows], "zero_point": found[4][:rows]}


_QUANT = given_ends("quant_min", "quant_max")
_LEARNT = "torch/_fake_quantize_learnable_per"
_DECOMPOSED = "torch/quantized_decomposed"
_PQ = "pytorch-quantization"
_OF_DTYPE: Ends = lambda a: dtype_ends(a["dtype"])  # noqa: E731 - a row of a table

AFFINE: dict[str, Role] = {
    "aimet/affine.quantize": _affine("quantize", "tensor", "scale", "offset", ends=_aimet, negated=True),
    "aimet/affine.quantize_dequantize": _affine(
        "fake_quantize", "tensor", "scale", "offset", ends=_aimet, negated=True
    ),
    "aimet/affine.dequantize": _affine("dequantize", "tensor", "scale", "offset", negated=True),
    "aimet/represented": _affine("quantize", "tensor", "scale", "offset", ends=_aimet, path=(0,), negated=True),
    "aimet/forward": _affine(
        "fake_quantize",
        "tensor",
        "scale",
        "offset",
        ends=_aimet,
        path=("values",),
        negated=True,
        given=_of_range,
        units=("tensor", "min", "max"),
    ),
    "aimet/float_cast": _cast("tensor", kind="fake_quantize"),
    "aimet/float_quantize_dequantize": _cast("tensor", scale="scale", kind="fake_quantize"),
    "brevitas/IntQuant.to_int": _affine("quantize", "x", ends=bits_ends("bit_width")),
    "brevitas/IntQuant": _affine("fake_quantize", "x", ends=bits_ends("bit_width")),
    "brevitas/scale_shift_zero_point": _affine(
        "quantize", "zero_point", "scale", "the lowest", ends=bits_ends("bit_width"), given=_lowest_zero
    ),
    "compressed-tensors/quantize": _affine("quantize", "x", ends=bits_ends("num_bits")),
    "compressed-tensors/fake_quantize": _affine("fake_quantize", "x", ends=bits_ends("num_bits")),
    "compressed-tensors/dequantize": _affine("dequantize", "x_q"),
    "compressed-tensors/cast_to_fp4": _cast("x", kind="fake_quantize"),
    "number-formats/encode": _cast("x", _decoded),
    "onnx/QuantizeLinear": _affine("quantize", "x", "y_scale", "y_zero_point", ends=_onnx),
    "onnx/DequantizeLinear": _affine("dequantize", "x", "x_scale", "x_zero_point"),
    f"{_PQ}/fake_affine_tensor_quant": _affine(
        "fake_quantize",
        "inputs",
        "scale",
        "offset",
        ends=given_ends("qmin", "qmax"),
        negated=True,
        given=_fake_affine,
        units=("inputs", "min_range", "max_range"),
    ),
    f"{_PQ}/tensor_quant": _pytorch_quantization("quantize", (0,)),
    f"{_PQ}/fake_tensor_quant": _pytorch_quantization("fake_quantize", ()),
    f"{_PQ}/legacy_fake_tensor_quant": _pytorch_quantization("fake_quantize", ()),
    f"{_PQ}/scaled_e4m3": _cast("inputs", scale="amax", kind="fake_quantize"),
    "torch/fake_quantize_per_tensor_affine": _affine("fake_quantize", "input", ends=_QUANT),
    "torch/fake_quantize_per_channel_affine": _affine("fake_quantize", "input", ends=_QUANT),
    f"{_LEARNT}_tensor_affine": _affine("fake_quantize", "x", ends=_QUANT),
    f"{_LEARNT}_channel_affine": _affine("fake_quantize", "x", ends=_QUANT),
    "torch/fused_moving_avg_obs_fake_quant": _affine(
        "fake_quantize",
        "x",
        ends=_QUANT,
        path=(0,),
        given=_observed_before,
        units=("x", "running_min", "running_max"),
    ),
    "torch/quantize_per_tensor": _affine("quantize", "input", ends=_OF_DTYPE),
    "torch/quantize_per_channel": _affine("quantize", "input", "scales", "zero_points", ends=_OF_DTYPE),
    "torch/dequantize": _affine("dequantize", "q"),
    f"{_DECOMPOSED}.quantize_per_tensor": _affine("quantize", "input", ends=_QUANT),
    f"{_DECOMPOSED}.quantize_per_channel": _affine("quantize", "input", "scales", "zero_points", ends=_QUANT),
    f"{_DECOMPOSED}.dequantize_per_tensor": _affine("dequantize", "input"),
    f"{_DECOMPOSED}.dequantize_per_channel": _affine("dequantize", "input", "scales", "zero_points"),
    "torchao/quantize_affine": _affine("quantize", "input", ends=_torchao("output_dtype")),
    "torchao/quantize_affine_float_domain": _affine("quantize", "input", ends=_torchao("output_dtype"), middle=True),
    "torchao/quantize_affine_no_zero_point": _affine("quantize", "input", zero="", ends=_torchao("output_dtype")),
    "torchao/dequantize_affine": _affine("dequantize", "input"),
    "torchao/dequantize_affine_float_domain": _affine("dequantize", "input", ends=_torchao("input_dtype"), middle=True),
    "torchao/dequantize_affine_no_zero_point": _affine("dequantize", "input", zero=""),
    "torchao/fake_quantize_affine": _affine("fake_quantize", "input", ends=_torchao("quant_dtype")),
    "torchao/fake_quantize_affine_cachemask": _affine(
        "fake_quantize", "input", ends=_torchao("quant_dtype"), path=(0,)
    ),
    "torchao/from_hp_to_intx_static": _affine(
        "quantize", "input_float", ends=_torchao("target_dtype"), path=("int_data",), given=_whole_zero
    ),
    "torchao/from_hp_to_floatx_static": _cast("input_float", scale="scale", path=("data",)),
    "torchao/quantize_affine_float8": _cast("tensor", scale="scale"),
    "torchao/hp_tensor_and_scale_to_float8": _cast("hp_tensor", scale="s"),
    "torchao/f32_to_floatx_unpacked": _cast("x", _floatx),
    "torchao/quantize_affine_floatx": _cast("tensor", _floatx, "scale", axis=0),
}
