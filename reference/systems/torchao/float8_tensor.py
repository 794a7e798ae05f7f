"""torchao: ``AffineQuantizedTensor`` of float8, under a scale of its own or a given one. x̂ = data * scale."""

from dataclasses import dataclass

import numpy as np

from halfeven.reference.behaviour import choice
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.systems.torchao import granularity
from halfeven.reference.systems.torchao.float8 import (
    ARITHMETIC,
    FLOAT8,
    Codes,
    Scale,
    codes_of,
    held_scale,
    magnitudes,
    matched,
    per_element,
    scale_of,
)
from halfeven.reference.systems.torchao.storage import dtype_of

__all__ = ["Dynamic", "Static", "from_hp_to_floatx", "from_hp_to_floatx_static"]


@dataclass(frozen=True)
class Dynamic(Scale, Codes):
    """The choices in quantizing a tensor under a scale of its own."""

    scale_dtype: str = choice({
        "read": "holds the scale in float32, or as scale_dtype says",
        "ignored": "does not read scale_dtype",
        "input": "holds the scale in the input's dtype where scale_dtype is absent, refuses e8m0, and computes codes "
        "in the dtype that the input and the scale promote to",
    })  # fmt: skip
    dimensions: str = choice({
        "per-block": "gives the scale one entry per block along each dimension",
        "dropped": "drops from the scale a dimension that is one block",
    })  # fmt: skip


@dataclass(frozen=True)
class Static(Codes):
    """The choices in quantizing a tensor under a given scale."""

    arithmetic: str = choice(ARITHMETIC)
    scale_shape: str = choice({
        "per-block": "takes a scale of one entry per block along each dimension",
        "unread": "does not read the block size, but the shape of the scale",
        "as-many": "takes a scale of any shape that has one entry per block",
    })  # fmt: skip


_DYNAMIC_0_11 = Dynamic(
    least="machine", quotient="reciprocal", blocks_of_one="refused", scale_dtype="input", dimensions="dropped"
)
_DYNAMIC_0_17 = Dynamic(blocks_of_one="refused", scale_dtype="ignored")
_STATIC_0_11 = Static(quotient="reciprocal", arithmetic="promoted", scale_shape="as-many")


def _check_float8(target_dtype: str) -> None:
    if target_dtype not in FLOAT8:
        msg = f"target_dtype={target_dtype!r} is not accepted: give one of {tuple(FLOAT8)}"
        raise NotImplementedError(msg)


@formula(
    "torchao/from_hp_to_floatx",
    equation=r"s = \max_{block} |x| / v_{max},\quad q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="the input's for the scale, float32 for the codes"),
    source="AffineQuantizedTensor: from_hp_to_floatx",
    behaviour=Dynamic(),
    versions={
        "0.11": (_DYNAMIC_0_11, "torchao 0.11.0, measured on the CPU"),
        "0.17": (_DYNAMIC_0_17, "torchao 0.17.0, measured; 0.15.0 is the same"),
    },
)
@np.errstate(all="ignore")
def from_hp_to_floatx(
    b: Dynamic, input_float: Array, block_size: BlockSize, target_dtype: str, scale_dtype: str | None = None
) -> dict[str, Array]:
    """The ``data`` (float8) and the ``scale`` (float32, n_i / b_i) of ``input_float``.

    Args:
        input_float: float32, float16 or bfloat16.
        block_size: elements per scale along each dimension; divides the shape.
        target_dtype: "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2" or "float8_e5m2fnuz".
        scale_dtype: as in ``choose_scale_float8``; without one float32.

    Raises:
        NotImplementedError: ``target_dtype`` is no float8 dtype.
        AssertionError, RuntimeError: as in ``choose_scale_float8``.
    """
    _check_float8(target_dtype)
    if b.scale_dtype == "input" and scale_dtype == "float8_e8m0fnu":
        msg = f"scale_dtype={scale_dtype!r} is not accepted: it has no reciprocal"
        raise NotImplementedError(msg)
    scale = scale_of(b, magnitudes(b, input_float, block_size), target_dtype)
    if b.scale_dtype == "input":
        scale = scale.astype(dtype_of(scale_dtype or input_float.dtype))
    else:
        named = scale_dtype if b.scale_dtype == "read" else None
        scale = held_scale(b, scale, named or "float32", input_float.dtype.name)
    data = codes_of(b, input_float, per_element(scale, input_float.shape), target_dtype, "promoted")
    if b.dimensions == "dropped":
        sizes = list(zip(input_float.shape, block_size, strict=True))
        kept = [n // block for n, block in sizes if block == 1 or block != n]
        scale = scale.reshape([] if all(block == 1 for _, block in sizes) else kept)
    return {"data": data, "scale": scale}


@formula(
    "torchao/from_hp_to_floatx_static",
    equation=r"q = \mathrm{float8}(\mathrm{clamp}(x / s,\ -v_{max},\ v_{max}))",
    basis=AsComputed(dtype="float32"),
    source="AffineQuantizedTensor: from_hp_to_floatx_static",
    behaviour=Static(),
    versions={
        "0.11": (_STATIC_0_11, "torchao 0.11.0, measured on the CPU"),
        "0.17": (Static(scale_shape="unread"), "torchao 0.17.0, measured; 0.15.0 is the same"),
    },
)
@np.errstate(all="ignore")
def from_hp_to_floatx_static(
    b: Static, input_float: Array, scale: Array, block_size: BlockSize, target_dtype: str
) -> dict[str, Array]:
    """The ``data`` (float8) of ``input_float`` under a given ``scale``, one entry per block, and that scale.

    Args:
        input_float: float32, float16 or bfloat16.
        scale: real per code, float, n_i / b_i entries along each dimension.
        block_size: elements per scale, one entry per dimension.
        target_dtype: "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2" or "float8_e5m2fnuz".

    Raises:
        NotImplementedError: ``target_dtype`` is no float8 dtype.
        ValueError: ``scale`` has another shape, or ``block_size`` another length than the shape of ``input_float``.
        RuntimeError: of a release that takes any shape, ``scale`` has another number of entries.
    """
    _check_float8(target_dtype)
    x = input_float
    if b.scale_shape == "as-many":
        s = granularity.per_element("scale", scale, x.shape, block_size)
    elif b.scale_shape == "unread":
        x, s = matched("leading", x, scale)
    else:
        needed = tuple(n // block for n, block in zip(x.shape, block_size, strict=True))
        if scale.shape != needed:
            msg = f"scale of shape {scale.shape} is not accepted: blocks of {block_size} need {needed}"
            raise ValueError(msg)
        s = per_element(scale, x.shape)
    return {"data": codes_of(b, x, s, target_dtype, b.arithmetic), "scale": scale}
