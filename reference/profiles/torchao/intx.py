"""torchao: the integer constructors of AffineQuantizedTensor, from a tensor to what it holds and dequantizes to."""

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.domains import (
    dequantize_affine_float_domain,
    dequantize_affine_no_zero_point,
    quantize_affine_float_domain,
    quantize_affine_float_domain_0_18,
    quantize_affine_no_zero_point,
    quantize_affine_no_zero_point_0_18,
)
from halfeven.reference.profiles.torchao.primitives import dequantize_affine, quantize_affine, quantize_affine_0_18
from halfeven.reference.profiles.torchao.qparams import choose_qparams_affine
from halfeven.reference.profiles.torchao.storage import code_range

__all__ = ["from_hp_to_intx", "from_hp_to_intx_static", "from_hp_to_intx_static_0_17"]

_QUANTIZE = {
    "INT": quantize_affine,
    "FLOAT": quantize_affine_float_domain,
    "NONE": quantize_affine_no_zero_point,
}
_QUANTIZE_0_18 = {
    "INT": quantize_affine_0_18,
    "FLOAT": quantize_affine_float_domain_0_18,
    "NONE": quantize_affine_no_zero_point_0_18,
}
_DEQUANTIZE = {
    "INT": dequantize_affine,
    "FLOAT": dequantize_affine_float_domain,
    "NONE": dequantize_affine_no_zero_point,
}


@formula(
    "torchao.from_hp_to_intx_static",
    equation=r"q = \mathrm{quantize}(x, s, z);\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=AsComputed(dtype="that of quantize; the input's for the reals"),
    source="AffineQuantizedTensor.from_hp_to_intx_static, dequantize; fields quant_min, quant_max, zero_point_domain",
)
def from_hp_to_intx_static(
    input_float: Array,
    scale: Array,
    zero_point: Array | None,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> dict[str, Array | None]:
    """What the tensor holds for given parameters, and what ``dequantize`` makes of it.

    Args:
        input_float: float32, float16 or bfloat16 of any shape, whose dtype the reals have.
        scale: real per code, one entry per block.
        zero_point: in codes (INT), in reals (FLOAT), or None (NONE).
        block_size: elements per block; the whole shape is per tensor.
        target_dtype: the dtype of the codes, whose range is the grid where none is given.
        quant_min: the least code.
        quant_max: the greatest code.
        zero_point_domain: INT, FLOAT or NONE.

    Returns:
        int_data, scale, zero_point, and dequantized.

    Raises:
        ValueError: the domain is another, or as the primitive of the domain.
        AssertionError, RuntimeError, TypeError: as the primitive of the domain.
    """
    if zero_point_domain not in _QUANTIZE:
        msg = f"zero_point_domain={zero_point_domain!r} is not accepted: give one of {', '.join(_QUANTIZE)}"
        raise ValueError(msg)
    qmin, qmax = code_range(target_dtype, quant_min, quant_max)
    q = _QUANTIZE[zero_point_domain](input_float, block_size, scale, zero_point, target_dtype, qmin, qmax)
    stored, dtype = q.dtype.name, input_float.dtype.name
    real = _DEQUANTIZE[zero_point_domain](q, block_size, scale, zero_point, stored, qmin, qmax, output_dtype=dtype)
    return {"int_data": q, "scale": scale, "zero_point": zero_point, "dequantized": real}


@formula(
    "torchao.from_hp_to_intx",
    equation=r"(s, z) = \mathrm{choose}(x);\quad q = \mathrm{quantize}(x, s, z);"
    r"\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=AsComputed(dtype="that of choose_qparams_affine and of quantize; the input's for the reals"),
    source="AffineQuantizedTensor.from_hp_to_intx, dequantize",
)
def from_hp_to_intx(
    input_float: Array,
    mapping_type: str,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = None,
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
) -> dict[str, Array | None]:
    """What the tensor holds, its parameters chosen from ``input_float``, and what ``dequantize`` makes of it.

    Arguments as in ``torchao.choose_qparams_affine``, result as in ``torchao.from_hp_to_intx_static``. Without
    ``use_hqq``, whose loop has no stated roundings.

    Raises:
        ValueError, AssertionError, RuntimeError, TypeError: as the functions that it is made of.
    """
    scale, zero_point = choose_qparams_affine(
        input_float, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, zero_point_domain,
    )  # fmt: skip
    return from_hp_to_intx_static(
        input_float, scale, zero_point, block_size, target_dtype, quant_min, quant_max, zero_point_domain
    )


@formula(
    "torchao.from_hp_to_intx_static@0.17",
    equation=r"q = \mathrm{quantize}(x, s, z);\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=AsComputed(dtype="that of quantize; the input's for the reals"),
    source="torchao 0.17.0, measured; its primitives are those of 0.18, which has no AffineQuantizedTensor",
)
def from_hp_to_intx_static_0_17(
    input_float: Array,
    scale: Array,
    zero_point: Array | None,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> dict[str, Array | None]:
    """As documented, but by the primitives as they are, and with the grid of the stored dtype where none is given.

    uint4 lies in uint8, so that in the FLOAT domain the middle of 256 codes is taken for that of 16.
    """
    if zero_point_domain not in _QUANTIZE_0_18:
        msg = f"zero_point_domain={zero_point_domain!r} is not accepted: give one of {', '.join(_QUANTIZE_0_18)}"
        raise ValueError(msg)
    quantize, dequantize = _QUANTIZE_0_18[zero_point_domain], _DEQUANTIZE[zero_point_domain]
    q = quantize(input_float, block_size, scale, zero_point, target_dtype, quant_min, quant_max)
    stored, dtype = q.dtype.name, input_float.dtype.name
    real = dequantize(q, block_size, scale, zero_point, stored, quant_min, quant_max, output_dtype=dtype)
    return {"int_data": q, "scale": scale, "zero_point": zero_point, "dequantized": real}
