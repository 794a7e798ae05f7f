"""The questions of functions, as data: small floats, blocks, and chosen scales."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.questions.question import Asked, FunctionQuestion
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import FLOAT_FORMATS, decode

__all__ = ["FUNCTIONS"]

_EIGHT = ("float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz")
_SMALL = (*_EIGHT, "float8_e8m0fnu", "float6_e3m2fn", "float6_e2m3fn", "float4_e2m1fn")
_P3109 = {f"binary8p{precision}": {"width": 8, "precision": precision} for precision in (4, 3)}


def _f32(*values: float) -> Any:
    return np.asarray(values, np.float32)


def _p3109(name: str) -> Callable[[Array], Array]:
    def decoded(codes: Array) -> Array:
        found: Array = FORMULAS["p3109/Decode"].function(codes, **_P3109[name])
        return found

    return decoded


def _extent(name: str) -> tuple[float, float]:
    """The largest number of a format, and the least above zero."""
    if name in _P3109:
        reals = _p3109(name)(np.arange(256, dtype=np.uint8))
        found = reals[np.isfinite(reals) & (reals > 0)]
        return float(found.max()), float(found.min())
    least = float(FLOAT_FORMATS[name].smallest) if name != "float8_e8m0fnu" else 2.0**-127
    return float(FLOAT_FORMATS[name].max), least


def _large(name: str) -> dict[str, float]:
    """Inputs about the largest number of a format."""
    largest, _ = _extent(name)
    step = largest / 16 if name != "float8_e8m0fnu" else largest / 2
    return {
        "largest": largest,
        "just above": largest + step / 8,
        "twice": min(2 * largest, 3.4e38),
        "inf": np.inf,
        "-inf": -np.inf,
    }


_SPECIAL = {"nan": np.nan, "-nan": np.copysign(np.nan, -1), "0": 0.0, "-0": -0.0}


def _tiny(name: str) -> dict[str, float]:
    _, least = _extent(name)
    return {"least": least, "3/4 of it": least * 0.75, "half of it": least / 2, "1/4 of it": least / 4}


def _small_floats(values: Callable[[str], Mapping[str, float]]) -> tuple[Asked, ...]:
    """The casts to small floats, of the numbers that ``values`` gives for a format."""

    def made(name: str, make: Callable[[Array], Mapping[str, Any]]) -> Mapping[str, Mapping[str, Any]]:
        return {column: make(_f32(value)) for column, value in values(name).items()}

    def encoded(name: str, overflow: str) -> Asked:
        inputs = made(name, lambda x: {"x": x, "format": name, "overflow": overflow})
        return Asked("number-formats/encode", f"{name}, {overflow}", inputs, decoded=partial(decode, format=name))

    def by_onnx(name: str, saturate: int) -> Asked:
        given = {"y_scale": np.float32(1), "y_zero_point": np.zeros((), getattr(ml_dtypes, name)), "saturate": saturate}
        return Asked("onnx/QuantizeLinear", f"{name}, saturate {saturate}", made(name, lambda x: {"x": x, **given}))

    def by_torchao(name: str) -> Asked:
        inputs = made(name, lambda x: {"tensor": x, "scale": _f32(1), "float8_dtype": name})
        return Asked("torchao/quantize_affine_float8", name, inputs)

    def by_aimet(name: str, exponent: int, mantissa: int) -> Asked:
        inputs = made(name, lambda x: {"tensor": x, "exponent_bits": exponent, "mantissa_bits": mantissa})
        return Asked("aimet/float_cast", f"{exponent} and {mantissa} bits", inputs)

    def by_p3109(name: str, saturation: str) -> Asked:
        inputs = made(name, lambda x: {"x": x, **_P3109[name], "saturation": saturation})
        return Asked("p3109/Project", f"{name}, {saturation}", inputs, decoded=_p3109(name))

    return (
        *(encoded(name, overflow) for name in _SMALL for overflow in ("special", "saturate")),
        *(by_torchao(name) for name in _EIGHT[:2]),
        *(by_onnx(name, saturate) for name in _EIGHT for saturate in (1, 0)),
        by_aimet("float8_e4m3fn", 4, 3),
        by_aimet("float8_e5m2", 5, 2),
        *(by_p3109(name, saturation) for name in _P3109 for saturation in ("SatFinite", "OvfInf")),
        Asked(
            "pytorch-quantization/scaled_e4m3",
            "amax 448",
            made("float8_e4m3fn", lambda x: {"inputs": x, "amax": _f32(448)}),
        ),
        Asked(
            "modelopt/fp8_quantize",
            "scale 1",
            made("float8_e4m3fn", lambda x: {"input": x, "scales": _f32(1)}),
            (0,),
        ),
        Asked("compressed-tensors/cast_to_fp4", "float4_e2m1fn", made("float4_e2m1fn", lambda x: {"x": x})),
    )


_SMALL_FLOATS = (
    FunctionQuestion(
        "small-float-overflow",
        "What does a small float make of numbers beyond its largest: the largest, infinity, or NaN?",
        "float8_e4m3fn has no infinity: libraries disagree whether 500 becomes 448 or NaN.",
        _small_floats(_large),
    ),
    FunctionQuestion(
        "small-float-nan",
        "What does a small float make of NaN, and of minus zero?",
        "float4 and float6 have no NaN; the fnuz formats have one, and no minus zero.",
        _small_floats(lambda _: _SPECIAL),
    ),
    FunctionQuestion(
        "small-float-subnormals",
        "Are the subnormal numbers of a small float kept, and how are its least numbers rounded?",
        "A cast that flushes subnormals loses a good part of a 4-bit or 6-bit format.",
        _small_floats(_tiny),
    ),
)

_ONE = np.arange(64) == 3  # noqa: PLR2004 - anywhere but at an end
_ROWS = {
    "zeros": np.zeros((1, 64), np.float32),
    "1e-30": np.full((1, 64), 1e-30, np.float32),
    "one NaN": np.where(_ONE, np.float32(np.nan), np.float32(1)).reshape(1, 64),
    "one infinity": np.where(_ONE, np.float32(np.inf), np.float32(1)).reshape(1, 64),
    "no elements": np.zeros((1, 0), np.float32),
}


def _over(rows: Mapping[str, Any], make: Any) -> Mapping[str, Mapping[str, Any]]:
    return {column: make(x) for column, x in rows.items()}


def _torchao(mapping: str) -> Any:
    def make(x: Any) -> Mapping[str, Any]:
        return {"input": x, "mapping_type": mapping, "block_size": x.shape, "target_dtype": "int8"}

    return make


def _decomposed(x: Any) -> Mapping[str, Any]:
    return {"input": x, "qmin": -128, "qmax": 127, "eps": 2.0**-23, "dtype": "int8"}


def _ends(x: Any) -> tuple[Any, Any]:
    low, high = (f(x, axis=1) if x.size else np.zeros(1, np.float32) for f in (np.min, np.max))
    return low, high


_QPARAMS = (
    Asked("torchao/choose_qparams_affine", "ASYMMETRIC", _over(_ROWS, _torchao("ASYMMETRIC")), (0,)),
    Asked("torchao/choose_qparams_affine", "SYMMETRIC", _over(_ROWS, _torchao("SYMMETRIC")), (0,)),
    Asked("torch/quantized_decomposed.choose_qparams", "", _over(_ROWS, _decomposed), (0,)),
    Asked("torch/quantized_decomposed.choose_qparams_symmetric", "", _over(_ROWS, _decomposed), (0,)),
    Asked(
        "torch/MinMaxObserver.calculate_qparams",
        "quint8, affine",
        _over(_ROWS, lambda x: dict(zip(("min_val", "max_val"), (e.reshape(()) for e in _ends(x)), strict=True))),
        (0,),
    ),
    Asked("onnx/DynamicQuantizeLinear", "", _over(_ROWS, lambda x: {"x": x}), (1,)),
    Asked(
        "compressed-tensors/calculate_qparams",
        "symmetric int8",
        _over(_ROWS, lambda x: dict(zip(("min_vals", "max_vals"), _ends(x), strict=True))),
        (0,),
    ),
    Asked(
        "aimet/minmax_encodings",
        "symmetric, 255 steps: the minimum",
        _over(_ROWS, lambda x: {"batches": (x,), "num_steps": 255, "symmetric": True, "shape": (1,)}),
        (0,),
    ),
    Asked("pytorch-quantization/max_calibrator", "amax", _over(_ROWS, lambda x: {"batches": (x,)})),
)

_BLOCKS = {
    "zeros": np.zeros((1, 64), np.float32),
    "1e-38": np.full((1, 64), 1e-38, np.float32),
    "one NaN": _ROWS["one NaN"],
    "one infinity": _ROWS["one infinity"],
}


def _levels() -> Any:
    return np.linspace(-1, 1, 256, dtype=np.float32)


_BLOCK_ASKED = (
    Asked(
        "torchao/to_mx",
        "float8_e4m3fn, FLOOR",
        _over(_BLOCKS, lambda x: {"data_hp": x, "elem_dtype": "float8_e4m3fn", "block_size": 32}),
    ),
    Asked(
        "torchao/to_mx",
        "float4_e2m1fn_x2, RCEIL",
        _over(
            _BLOCKS,
            lambda x: {"data_hp": x, "elem_dtype": "float4_e2m1fn_x2", "block_size": 32, "scaling_mode": "RCEIL"},
        ),
    ),
    Asked("torchao/nvfp4_quantize", "blocks of 16", _over(_BLOCKS, lambda x: {"data_hp": x, "block_size": 16})),
    Asked("gguf/Q8_0.quantize", "", _over(_BLOCKS, lambda x: {"tensor": x})),
    Asked("gguf/Q4_0.quantize", "", _over(_BLOCKS, lambda x: {"tensor": x})),
    Asked("gguf/Q4_1.quantize", "", _over(_BLOCKS, lambda x: {"tensor": x})),
    Asked("modelopt/nvfp4_quantize", "blocks of 16", _over(_BLOCKS, lambda x: {"input": x})),
    Asked("modelopt/mxfp4_quantize", "blocks of 32", _over(_BLOCKS, lambda x: {"input": x})),
    Asked("modelopt/mxfp8_quantize", "blocks of 32", _over(_BLOCKS, lambda x: {"input": x})),
    Asked("modelopt/int4_quantize", "blocks of 64", _over(_BLOCKS, lambda x: {"input": x, "block_size": 64})),
    Asked(
        "modelopt/nf4_quantize",
        "blocks of 64",
        _over(_BLOCKS, lambda x: {"input": x, "block_size": 64, "scale_block_size": 1}),
    ),
    Asked("modelopt/fp8_quantize", "one scale", _over(_BLOCKS, lambda x: {"input": x})),
    Asked("modelopt/int8_quantize", "one scale", _over(_BLOCKS, lambda x: {"input": x})),
    Asked(
        "bitsandbytes/quantize_blockwise",
        "256 levels",
        _over(_BLOCKS, lambda x: {"A": x, "code": _levels(), "blocksize": 64}),
    ),
    Asked(
        "bitsandbytes/quantize_4bit", "nf4", _over(_BLOCKS, lambda x: {"A": x, "blocksize": 64, "quant_type": "nf4"})
    ),
    Asked("compressed-tensors/generate_mx_scales", "4 bits", _over(_BLOCKS, lambda x: {"x": np.abs(x).max(axis=1)})),
)

_AMAX = {f"{v:g}": _f32(v) for v in (1, 3, 0.7, 1e-3, 5.3, 0.11)}

FUNCTIONS: tuple[FunctionQuestion, ...] = (
    *_SMALL_FLOATS,
    FunctionQuestion(
        "scale-of-zeros",
        "Which scale is chosen for a tensor of zeros, of tiny numbers, with a NaN, or without elements?",
        "Every library has a least scale of its own, or none.",
        _QPARAMS,
    ),
    FunctionQuestion(
        "block-of-zeros",
        "What does a block of zeros give, and one with NaN or infinity?",
        "The scale of a block of zeros would be 0: formats and libraries choose 2^-127, 1, 0 or the least scale.",
        _BLOCK_ASKED,
    ),
    FunctionQuestion(
        "scale-of-amax",
        "Is a scale divided, or multiplied by a reciprocal?",
        "largest / amax and its like are one operation or two; torch makes a reciprocal of number / tensor.",
        (
            Asked(
                "torchao/amax_to_scale",
                "float8_e4m3fn",
                _over(_AMAX, lambda a: {"amax": a, "float8_dtype": "float8_e4m3fn"}),
            ),
            Asked("torchao/per_tensor_amax_to_scale", "", _over(_AMAX, lambda a: {"amax": a})),
            Asked("torchao/choose_scale_float8", "", _over(_AMAX, lambda a: {"tensor": a, "block_size": (1,)})),
            Asked("modelopt/fp8_quantize", "the scale", _over(_AMAX, lambda a: {"input": a}), (1,)),
            Asked("modelopt/int8_quantize", "the scale", _over(_AMAX, lambda a: {"input": a}), (1,)),
            Asked(
                "modelopt/nvfp4_quantize",
                "the tensor's scale",
                _over(_AMAX, lambda a: {"input": np.repeat(a, 16).reshape(1, 16)}),
                (2,),
            ),
            Asked(
                "compressed-tensors/generate_gparam",
                "",
                _over(_AMAX, lambda a: {"updated_min_val": -a, "updated_max_val": a}),
            ),
        ),
    ),
)
