"""torchao: the integer constructors of AffineQuantizedTensor as its releases have them."""

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.domains import (
    dequantize_affine_float_domain,
    dequantize_affine_no_zero_point_0_11,
    quantize_affine_float_domain_0_18,
    quantize_affine_no_zero_point_0_11,
)
from halfeven.reference.profiles.torchao.intx import from_hp_to_intx_static_0_17
from halfeven.reference.profiles.torchao.primitives import dequantize_affine_0_11, quantize_affine_0_18
from halfeven.reference.profiles.torchao.qparams_releases import choose_qparams_affine_0_11, choose_qparams_affine_0_17

__all__ = ["from_hp_to_intx_0_11", "from_hp_to_intx_0_17", "from_hp_to_intx_static_0_11"]

_QUANTIZE_0_11 = {
    "INT": quantize_affine_0_18,
    "FLOAT": quantize_affine_float_domain_0_18,
    "NONE": quantize_affine_no_zero_point_0_11,
}
_DEQUANTIZE_0_11 = {
    "INT": dequantize_affine_0_11,
    "FLOAT": dequantize_affine_float_domain,
    "NONE": dequantize_affine_no_zero_point_0_11,
}


@formula(
    "torchao.from_hp_to_intx_static@0.11",
    equation=r"q = \mathrm{quantize}(x, s, z);\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=AsComputed(dtype="that of quantize; the input's for the reals"),
    source="torchao 0.11.0, measured",
)
def from_hp_to_intx_static_0_11(
    input_float: Array,
    scale: Array,
    zero_point: Array | None,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    zero_point_domain: str | None = "INT",
) -> dict[str, Array | None]:
    """As 0.17, but by the primitives of 0.11, and never without a zero point, not even in the NONE domain.

    Raises:
        AssertionError: also where there is no zero point.
        ValueError: also where the NONE domain meets one.
    """
    if zero_point_domain not in _QUANTIZE_0_11 or (zero_point_domain == "NONE" and zero_point is not None):
        msg = f"zero_point_domain={zero_point_domain!r} is not accepted: give INT or FLOAT with a zero point"
        raise ValueError(msg)
    if zero_point is None:
        msg = "zero_point=None is not accepted: give one per block"
        raise AssertionError(msg)
    return _held_0_11(input_float, scale, zero_point, block_size, target_dtype, quant_min, quant_max, zero_point_domain)


@formula(
    "torchao.from_hp_to_intx@0.11",
    equation=r"(s, z) = \mathrm{choose}(x);\quad q = \mathrm{quantize}(x, s, z);"
    r"\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=AsComputed(dtype="that of choose_qparams_affine and of quantize; the input's for the reals"),
    source="torchao 0.11.0, measured",
)
def from_hp_to_intx_0_11(
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
    """As documented, but by the primitives of 0.11, dequantized on the grid of the stored dtype where none is given.

    uint4 lies in uint8, so that in the FLOAT domain the middle of 256 codes is taken for that of 16.
    """
    scale, zero_point = choose_qparams_affine_0_11(
        input_float, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, zero_point_domain,
    )  # fmt: skip
    return _held_0_11(input_float, scale, zero_point, block_size, target_dtype, quant_min, quant_max, zero_point_domain)


@formula(
    "torchao.from_hp_to_intx@0.17",
    equation=r"(s, z) = \mathrm{choose}(x);\quad q = \mathrm{quantize}(x, s, z);"
    r"\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=AsComputed(dtype="that of choose_qparams_affine and of quantize; the input's for the reals"),
    source="torchao 0.17.0, measured; 0.15.0 is the same",
)
def from_hp_to_intx_0_17(
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
    """As 0.11, but by later primitives; a zero that is kept has an integer zero point, which FLOAT takes for a real."""
    domain = "INT" if preserve_zero else zero_point_domain
    scale, zero_point = choose_qparams_affine_0_17(
        input_float, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, domain,
    )  # fmt: skip
    point = None if zero_point_domain == "NONE" else zero_point
    return from_hp_to_intx_static_0_17(
        input_float, scale, point, block_size, target_dtype, quant_min, quant_max, zero_point_domain
    )


def _held_0_11(
    x: Array,
    scale: Array,
    zero_point: Array | None,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None,
    quant_max: int | None,
    domain: str,
) -> dict[str, Array | None]:
    q = _QUANTIZE_0_11[domain](x, block_size, scale, zero_point, target_dtype, quant_min, quant_max)
    real = _DEQUANTIZE_0_11[domain](
        q, block_size, scale, zero_point, q.dtype.name, quant_min, quant_max, output_dtype=x.dtype.name
    )
    return {"int_data": q, "scale": scale, "zero_point": zero_point, "dequantized": real}
