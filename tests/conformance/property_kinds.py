"""Wrong implementations, one for each property and each kind of formula besides the plain ones."""

from collections.abc import Callable
from typing import Any

import numpy as np

from halfeven.reference import FORMULAS

__all__ = ["WRONG_OF_KINDS"]


def right(formula: str, given: dict[str, Any]) -> Any:
    with np.errstate(all="ignore"):
        return FORMULAS[formula].function(**given)


def largest_is_nan(found: Any) -> Any:
    return np.where(np.abs(found) == np.nanmax(np.abs(found), initial=0), np.nan, found).astype(found.dtype)


# Reals of stored codes.


def q8_unsigned(**given: Any) -> Any:
    stored = given["tensor"].reshape(-1, 34)
    scale = np.ascontiguousarray(stored[:, :2]).view("<f2").astype(np.float32)
    with np.errstate(all="ignore"):
        found = scale * stored[:, 2:].astype(np.float32)
    return found.reshape(*given["tensor"].shape[:-1], -1)


def q4_from_seven(**given: Any) -> Any:
    stored = given["tensor"].reshape(-1, 18)
    scale = np.ascontiguousarray(stored[:, :2]).view("<f2").astype(np.float32)
    with np.errstate(all="ignore"):
        found = right("gguf/Q4_0.dequantize", given).reshape(-1, 32) + scale
    return found.reshape(*given["tensor"].shape[:-1], -1)


def q4_k_small_scales(**given: Any) -> Any:
    stored = given["tensor"].reshape(-1, 144).copy()
    halves = np.minimum(np.ascontiguousarray(stored[:, :4]).view("<f2"), np.float16(0.25))
    stored[:, :4] = halves.astype("<f2").view(np.uint8)
    return right("gguf/Q4_K.dequantize", {"tensor": stored.reshape(given["tensor"].shape)})


def q6_k_first_scale(**given: Any) -> Any:
    stored = given["tensor"].reshape(-1, 210).copy()
    stored[1:2, 208:] = stored[:1, 208:]
    return right("gguf/Q6_K.dequantize", {"tensor": stored.reshape(given["tensor"].shape)})


def q5_nan(**given: Any) -> Any:
    return largest_is_nan(right("gguf/Q5_1.dequantize", given))


def mx_small_exponents(**given: Any) -> Any:
    scale = np.minimum(given["scale_e8m0"].view(np.uint8), 127).astype(np.uint8)
    return right("torchao/mx_dequantize", {**given, "scale_e8m0": scale})


def mx_first_block(**given: Any) -> Any:
    scale = given["scale_e8m0"].copy()
    scale.reshape(-1)[-1:] = scale.reshape(-1)[:1]
    return right("torchao/mx_dequantize", {**given, "scale_e8m0": scale})


def int4_guarded(**given: Any) -> Any:
    scale = (given["scale"].astype(np.float32) + np.float32(1e-3)).astype(given["scale"].dtype)
    return right("modelopt/int4_dequantize", {**given, "scale": scale})


def mxfp8_least_scale(**given: Any) -> Any:
    return right("modelopt/mxfp8_dequantize", {**given, "scale": np.maximum(given["scale"], np.uint8(120))})


def nf4_first_half(**given: Any) -> Any:
    packed = given["quantized_data"]
    return right("modelopt/nf4_dequantize", {**given, "quantized_data": (packed >> 4) * np.uint8(17)})


def nf4_without_mean(**given: Any) -> Any:
    return right("modelopt/nf4_dequantize", {**given, "scale_zeros": np.minimum(given["scale_zeros"], np.float32(1))})


def int8_zero(**given: Any) -> Any:
    codes = np.where(given["quantized_data"] == 0, 1, given["quantized_data"]).astype(np.int8)
    return right("modelopt/int8_dequantize", {**given, "quantized_data": codes})


def nvfp4_magnitudes(**given: Any) -> Any:
    return np.abs(right("modelopt/nvfp4_dequantize", given))


def original_precision_guarded(**given: Any) -> Any:
    scale = np.maximum(given["scale"], np.float32(1))
    return right("torchao/to_original_precision", {**given, "scale": scale})


def decoded_in_order_of_codes(**given: Any) -> Any:
    return given["codes"].astype(np.float64)


def decoded_nan(**given: Any) -> Any:
    found = right("p3109/Decode", given)
    return np.where(np.abs(found) == 1, np.nan, found)


def four_bits_zero(**given: Any) -> Any:
    found = right("bitsandbytes/dequantize_4bit", given)
    return np.where(found == 0, 2.0**-10, found).astype(found.dtype)


# Storages that choose their scales.


def fp8_as_the_release(**given: Any) -> Any:
    with np.errstate(all="ignore"):
        return FORMULAS["modelopt/fp8_quantize@0.47"].function(**given)


def nvfp4_as_the_release(**given: Any) -> Any:
    with np.errstate(all="ignore"):
        return FORMULAS["modelopt/nvfp4_quantize@0.47"].function(**given)


def int4_without_sign(**given: Any) -> Any:
    return right("modelopt/int4_quantize", {**given, "input": np.abs(given["input"])})


def mxfp4_least_scale(**given: Any) -> Any:
    codes, scale = right("modelopt/mxfp4_quantize", given)
    return codes, np.maximum(scale, np.uint8(127))


def nf4_without_sign(**given: Any) -> Any:
    return right("modelopt/nf4_quantize", {**given, "input": np.abs(given["input"])})


def mxfp8_one_scale(**given: Any) -> Any:
    scale = given.get("weights_scaling_factor")
    if scale is None and given["input"].size:
        chosen = right("modelopt/mxfp8_quantize", given)[1]
        scale = np.full_like(chosen, chosen.flat[0])
    return right("modelopt/mxfp8_quantize", {**given, "weights_scaling_factor": scale})


def int8_wraps(**given: Any) -> Any:
    codes, scale = right("modelopt/int8_quantize", given)
    return (codes.astype(np.int16) + 1).astype(np.int8), scale


def fpx_first_scale(**given: Any) -> Any:
    found = right("torchao/from_hp_to_fpx", given)
    scale = found["scale"].copy()
    scale[-1:] = scale[:1]
    return {**found, "scale": scale}


def hqq_least_scale(**given: Any) -> Any:
    codes, scale = right("torchao/choose_qparams_and_quantize_scale_only_hqq", given)
    return codes, np.maximum(scale, np.asarray(0.25, scale.dtype))


# Casts, and what rounds or limits with no scale of its own.


def projected_up(**given: Any) -> Any:
    if given.get("rounding", "NearestTiesToEven") == "NearestTiesToEven":
        given = {**given, "rounding": "TowardPositive"}
    return right("p3109/Project", given)


def projected_once_more(**given: Any) -> Any:
    codes = right("p3109/Project", given)
    return np.where(codes > 1, codes - 1, codes).astype(codes.dtype)


def converted_wraps(**given: Any) -> Any:
    return (right("number-formats/convert", given) & 63).astype(np.uint8)


def clip_from_above(**given: Any) -> Any:
    return np.minimum(given["inputs"], given["clip_value_max"]) + np.float32(0.5)


def cut_towards_minus_infinity(**given: Any) -> Any:
    x = given["x"]
    if x.dtype.name.startswith(("int", "uint")):
        return right("number-formats/to_integer", given)
    with np.errstate(all="ignore"):
        return right("number-formats/to_integer", {**given, "x": np.floor(x.astype(np.float64))})


def summed_wraps(**given: Any) -> Any:
    codes = right("onnx/qdq-two-inputs", given)
    return (codes.astype(np.int64) * 3).astype(codes.dtype)


# What chooses from a histogram or a range, and further gradients.


def entropy_guarded(**given: Any) -> Any:
    return np.asarray(right("pytorch-quantization/entropy_amax", given) + np.float32(0.125), np.float32)


def averaged_nan(**given: Any) -> Any:
    low, high = right("torch/MovingAverageMinMaxObserver", given)
    return low, high * np.float32(np.nan)


def exponents_from_one(**given: Any) -> Any:
    found = right("compressed-tensors/generate_mx_scales", given)
    return np.maximum(found, np.asarray(120, found.dtype))


def amax_of_the_positive(**given: Any) -> Any:
    x = {**given, "inputs": np.maximum(given["inputs"], 0)}
    return right("pytorch-quantization/described_amax", x)


def float_passes_everywhere(**given: Any) -> Any:
    return given["gradient"].copy()


def codes_gradient_limited(**given: Any) -> Any:
    first, *others = right("aimet/dequantize_gradient", given)
    return np.clip(first, -1, 1), *others


def range_gradient_nan(**given: Any) -> Any:
    low, high = right("aimet/range_gradient", given)
    return low, largest_is_nan(high)


WRONG_OF_KINDS: list[tuple[str, str, Callable[..., Any]]] = [
    ("monotone", "gguf/Q8_0.dequantize", q8_unsigned),
    ("zero", "gguf/Q4_0.dequantize", q4_from_seven),
    ("powers-of-two", "gguf/Q4_K.dequantize", q4_k_small_scales),
    ("any-order", "gguf/Q6_K.dequantize", q6_k_first_scale),
    ("finite", "gguf/Q5_1.dequantize", q5_nan),
    ("powers-of-two", "torchao/mx_dequantize", mx_small_exponents),
    ("any-order", "torchao/mx_dequantize", mx_first_block),
    ("powers-of-two", "modelopt/int4_dequantize", int4_guarded),
    ("powers-of-two", "modelopt/mxfp8_dequantize", mxfp8_least_scale),
    ("zero", "modelopt/int8_dequantize", int8_zero),
    ("monotone", "modelopt/nf4_dequantize", nf4_first_half),
    ("powers-of-two", "modelopt/nf4_dequantize", nf4_without_mean),
    ("monotone", "modelopt/nvfp4_dequantize", nvfp4_magnitudes),
    ("powers-of-two", "torchao/to_original_precision", original_precision_guarded),
    ("monotone", "p3109/Decode", decoded_in_order_of_codes),
    ("finite", "p3109/Decode", decoded_nan),
    ("zero", "bitsandbytes/dequantize_4bit", four_bits_zero),
    ("finite", "modelopt/fp8_quantize", fp8_as_the_release),
    ("zero", "modelopt/nvfp4_quantize", nvfp4_as_the_release),
    ("monotone", "modelopt/int4_quantize", int4_without_sign),
    ("powers-of-two", "modelopt/mxfp4_quantize", mxfp4_least_scale),
    ("any-order", "modelopt/mxfp8_quantize", mxfp8_one_scale),
    ("monotone", "modelopt/nf4_quantize", nf4_without_sign),
    ("monotone", "modelopt/int8_quantize", int8_wraps),
    ("any-order", "torchao/from_hp_to_fpx", fpx_first_scale),
    ("powers-of-two", "torchao/choose_qparams_and_quantize_scale_only_hqq", hqq_least_scale),
    ("odd", "p3109/Project", projected_up),
    ("stays-quantized", "p3109/Project", projected_once_more),
    ("monotone", "number-formats/convert", converted_wraps),
    ("zero", "pytorch-quantization/clip", clip_from_above),
    ("stays-quantized", "pytorch-quantization/clip", clip_from_above),
    ("odd", "number-formats/to_integer", cut_towards_minus_infinity),
    ("monotone", "onnx/qdq-two-inputs", summed_wraps),
    ("zero", "onnx/qdq-two-inputs", summed_wraps),
    ("powers-of-two", "pytorch-quantization/entropy_amax", entropy_guarded),
    ("positive-scale", "torch/MovingAverageMinMaxObserver", averaged_nan),
    ("powers-of-two", "compressed-tensors/generate_mx_scales", exponents_from_one),
    ("covers", "pytorch-quantization/described_amax", amax_of_the_positive),
    ("odd", "pytorch-quantization/described_amax", amax_of_the_positive),
    ("gradient-of-forward", "aimet/float_gradient", float_passes_everywhere),
    ("powers-of-two", "aimet/dequantize_gradient", codes_gradient_limited),
    ("finite", "aimet/range_gradient", range_gradient_nan),
]
