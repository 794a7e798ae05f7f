"""torchao: how releases before 0.18, and the copy that 0.18 keeps of one of them, choose a scale and a zero point."""

from halfeven.reference.blocks import BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.profiles.profile import Array
from halfeven.reference.profiles.torchao.granularity import parameters
from halfeven.reference.profiles.torchao.qparams import choose_qparams_affine_0_18
from halfeven.reference.profiles.torchao.storage import code_range, is_float8

__all__ = [
    "choose_qparams_affine_0_11",
    "choose_qparams_affine_0_15",
    "choose_qparams_affine_0_17",
    "choose_qparams_affine_pt2e_0_18",
]

_EPSILON = {"float64": 2.0**-52, "float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
_BASIS = AsComputed(dtype="the input's; where a Python number takes part, float32 rounded to it")
_EQUATION = r"\epsilon = 2^{1 - p}\ \text{of the input's dtype, which has } p \text{ bits of precision}"


@formula(
    "torchao.choose_qparams_affine@0.11",
    equation=_EQUATION,
    basis=_BASIS,
    source="torchao 0.11.0, measured on the CPU",
)
def choose_qparams_affine_0_11(
    input: Array,  # noqa: A002 - the document's own word
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
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    """As documented, without ``keepdim``; NaN and blocks of one element as in 0.18.

    Raises:
        AssertionError: also for another mapping than the symmetric one to a float8.
        TypeError: also where ``keepdim`` is asked for.
    """
    if keepdim:
        msg = "keepdim=True is not accepted: give False, or nothing"
        raise TypeError(msg)
    code_range(target_dtype, quant_min, quant_max)
    if is_float8(target_dtype) and mapping_type != "SYMMETRIC":
        msg = f"mapping_type={mapping_type!r} is not accepted with {target_dtype}: give 'SYMMETRIC'"
        raise AssertionError(msg)
    if mapping_type.startswith("SYMMETRIC") and (not preserve_zero or zero_point_domain == "FLOAT"):
        msg = f"mapping_type={mapping_type!r} is not accepted without a zero that is kept: give 'ASYMMETRIC'"
        raise ValueError(msg)
    eps = _EPSILON.get(input.dtype.name) if eps is None else eps
    return choose_qparams_affine_0_18(
        input, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, zero_point_domain,
    )  # fmt: skip


@formula(
    "torchao.choose_qparams_affine@0.17",
    equation=_EQUATION,
    basis=_BASIS,
    source="torchao 0.17.0, measured on the CPU: choose_qparams_affine, _choose_qparams_affine_tinygemm (FLOAT) and "
    "_choose_qparams_affine_dont_preserve_zero",
)
def choose_qparams_affine_0_17(
    input: Array,  # noqa: A002 - the document's own word
    mapping_type: str,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = "int32",
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    """As 0.18, but ``eps`` is the machine epsilon where absent, as documented."""
    eps = _EPSILON.get(input.dtype.name) if eps is None else eps
    return choose_qparams_affine_0_18(
        input, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, zero_point_domain, keepdim,
    )  # fmt: skip


@formula(
    "torchao.choose_qparams_affine@0.15",
    equation=_EQUATION,
    basis=_BASIS,
    source="torchao 0.15.0, measured on the CPU",
)
def choose_qparams_affine_0_15(
    input: Array,  # noqa: A002 - the document's own word
    mapping_type: str,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None = None,
    quant_max: int | None = None,
    eps: float | None = None,
    scale_dtype: str | None = None,
    zero_point_dtype: str | None = "int32",
    preserve_zero: bool = True,
    zero_point_domain: str = "INT",
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    """As 0.17, but ``keepdim`` keeps the dimensions of the blocks: of 4 elements in blocks of 2 it makes (2, 1)."""
    scale, point = choose_qparams_affine_0_17(
        input, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, zero_point_domain,
    )  # fmt: skip
    if not keepdim:
        return scale, point
    _, kept = parameters(input.shape, block_size)
    kept = (1,) * len(kept) if block_size and all(b == 1 for b in block_size) else kept
    return scale.reshape(kept), None if point is None else point.reshape(kept)


@formula(
    "torchao.choose_qparams_affine@pt2e-0.18",
    equation=_EQUATION,
    basis=_BASIS,
    source="torchao 0.18.0, measured on the CPU: torchao.quantization.pt2e, which keeps a copy of an earlier release",
)
def choose_qparams_affine_pt2e_0_18(
    input: Array,  # noqa: A002 - the document's own word
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
    keepdim: bool = False,
) -> tuple[Array, Array | None]:
    """As 0.11, but every zero point has the input's dtype where none is given."""
    return choose_qparams_affine_0_11(
        input, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype or input.dtype.name, preserve_zero, zero_point_domain, keepdim,
    )  # fmt: skip
