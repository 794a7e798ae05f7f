"""ModelOpt: MXFP8QTensor, e4m3 elements with a power of two per block of 32.

A scale code E is 2^(E - 127), the code 255 NaN. Real per code: x̂ = decode(q) * 2^(E - 127).
"""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, Shape
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.minifloat import FLOAT_DTYPES, decode, encode
from halfeven.reference.systems.modelopt.mxfp4 import Mxfp4Values, powers
from halfeven.reference.systems.modelopt.scales import counts, largest, spread
from halfeven.reference.systems.torchao.mx import ceil_log2

__all__ = ["BLOCK", "Mxfp8Codes", "mxfp8_dequantize", "mxfp8_quantize"]

BLOCK = 32  # elements with one scale

_F32, _E4M3 = np.float32, np.dtype(ml_dtypes.float8_e4m3fn)
_BIAS, _NAN = 127, 255


@dataclass(frozen=True)
class Mxfp8Codes(Behaviour):
    """The choices in making codes of MXFP8."""

    ceil: str = choice({
        "exact": "takes the next power of two, however close the quotient lies above one",
        "rounded-logarithm": "rounds the quotient's logarithm to float32 before it is rounded up",
    })  # fmt: skip
    nan: str = choice({
        "nan": "gives a block with NaN the scale code 255, which is NaN",
        "least": "gives a block with NaN the scale code 0, the least, under which its other elements saturate",
    })  # fmt: skip
    last: str = choice({
        "nan": "takes the scale code 255 for NaN",
        "power": "takes the scale code 255 for 2^128",
    })  # fmt: skip
    rounding: str = roundings("elements")


@formula(
    "modelopt/mxfp8_quantize",
    equation=r"E = 127 + \max(\lceil \log_2 (\max_b |x| / 448) \rceil,\ -127),\quad q = \mathrm{e4m3}(x / 2^{E - 127})",
    basis=AsComputed(dtype="float32"),
    source="modelopt.torch.quantization.qtensor.MXFP8QTensor.quantize; OCP MX 1.0, sections 5.2, 5.4",
    behaviour=Mxfp8Codes(),
    versions={
        "0.47": (
            Mxfp8Codes("rounded-logarithm", "least", "power"),
            "nvidia-modelopt 0.47.0 with torch 2.13 on the CPU, measured on x86-64",
        ),
    },
)
@np.errstate(all="ignore")
def mxfp8_quantize(
    b: Mxfp8Codes,
    input: Array,  # noqa: A002 - the library's own word
    weights_scaling_factor: Array | None = None,
) -> tuple[Array, Array]:
    """Codes of ``input`` as float8_e4m3fn, in its shape, and the scale codes.

    Blocks run along the last dimension, whose last one may have fewer elements. A quotient beyond 448, infinity
    included, is 448 of that sign.

    Args:
        input: float32, float16 or bfloat16.
        weights_scaling_factor: scale codes, uint8, (..., blocks); by default each block's from its largest magnitude.

    Raises:
        AssertionError: the scale codes are not uint8.
        RuntimeError: there is not one for each block.
    """
    x = input.astype(_F32)
    sizes = _sizes(x.shape)
    if weights_scaling_factor is None:
        amax = largest(x, None, sizes)
        least = np.maximum(ceil_log2(amax / _F32(448), rounded=b.ceil == "rounded-logarithm"), -_BIAS)
        scale = np.where(np.isnan(amax), _NAN if b.nan == "nan" else 0, least + _BIAS).astype(np.uint8)
    else:
        scale = weights_scaling_factor
        if scale.dtype != np.uint8:
            msg = f"weights_scaling_factor of {scale.dtype} is not accepted: give uint8"
            raise AssertionError(msg)
        if scale.shape != (blocks := counts(x.shape, sizes)):
            msg = f"weights_scaling_factor of shape {scale.shape} is not accepted: give {blocks}"
            raise RuntimeError(msg)
    by = spread(scale, x.shape, sizes)
    # A power of two: the quotient is rounded only where it is far below the least element.
    quotient = np.ldexp(x, _BIAS - by.astype(np.int32))
    quotient = np.where((by == _NAN) & (b.last == "nan"), _F32(np.nan), quotient)
    codes = encode(quotient, "float8_e4m3fn", overflow="saturate", rounding=b.rounding)
    return codes.view(_E4M3), scale


def _sizes(shape: Shape) -> Shape:
    """Elements of a block in each dimension."""
    return (*(1 for _ in shape[:-1]), BLOCK)


@formula(
    "modelopt/mxfp8_dequantize",
    equation=r"\hat x = \mathrm{decode}(q) * 2^{E - 127}",
    basis=AsComputed(dtype="float32, then the dtype asked for"),
    source="modelopt.torch.quantization.qtensor.MXFP8QTensor.dequantize; OCP MX 1.0, section 5",
    behaviour=Mxfp4Values(),
    versions={"0.47": (Mxfp4Values(last="infinity"), "nvidia-modelopt 0.47.0 on the CPU, measured")},
)
@np.errstate(all="ignore")
def mxfp8_dequantize(b: Mxfp4Values, quantized_data: Array, scale: Array, dtype: str = "float32") -> Array:
    """Elements of codes as ``dtype``.

    Args:
        b: what the last scale code is.
        quantized_data: float8_e4m3fn.
        scale: scale codes, uint8, one for each 32 elements of the last dimension, whose last ones may be fewer.
        dtype: "float32", "float16" or "bfloat16".
    """
    numbers = decode(quantized_data.view(np.uint8), "float8_e4m3fn", "float32")
    by = spread(powers(b, scale), numbers.shape, _sizes(numbers.shape))
    return np.asarray(numbers * by).astype(FLOAT_DTYPES[dtype])
