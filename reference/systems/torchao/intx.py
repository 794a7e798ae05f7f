"""torchao: the integer constructors of AffineQuantizedTensor, from a tensor to what it holds and dequantizes to."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import FORMULAS, AsComputed, formula
from halfeven.reference.systems.torchao import affine, domains  # noqa: F401 - their formulas are called by id
from halfeven.reference.systems.torchao.qparams import AS_0_11, AS_0_17, ChoosingByBlock, choose_qparams_affine
from halfeven.reference.systems.torchao.storage import code_range

__all__ = ["from_hp_to_intx", "from_hp_to_intx_static"]

_DOMAINS = {
    "INT": ("quantize_affine", "dequantize_affine"),
    "FLOAT": ("quantize_affine_float_domain", "dequantize_affine_float_domain"),
    "NONE": ("quantize_affine_no_zero_point", "dequantize_affine_no_zero_point"),
}
_VERSIONS = {"documented": ("",), "0.18": ("@0.18", ""), "0.11": ("@0.11", "@0.18", "")}


@dataclass(frozen=True)
class Holding(Behaviour):
    """What implementations do differently where they hold a tensor as codes."""

    primitives: str = choice({
        "documented": "quantizes and dequantizes as documented",
        "0.18": "quantizes and dequantizes as torchao 0.18 does",
        "0.11": "quantizes and dequantizes as torchao 0.11 does",
    })  # fmt: skip
    grid: str = choice({
        "target": "dequantizes on the grid of the codes where none is given",
        "stored": "dequantizes on the grid of the dtype in which the codes lie where none is given",
    })  # fmt: skip


@dataclass(frozen=True)
class HoldingGiven(Holding):
    """And where the parameters are given."""

    without_zero_point: str = choice({
        "held": "holds a tensor without a zero point in the NONE domain",
        "refused": "refuses a tensor without a zero point in every domain",
    })  # fmt: skip


@dataclass(frozen=True)
class HoldingChosen(Holding):
    """And where they are chosen."""

    choosing: ChoosingByBlock = choice({
        ChoosingByBlock(): "chooses scale and zero point as documented",
        AS_0_17: "chooses scale and zero point as torchao 0.17 does",
        AS_0_11: "chooses scale and zero point as torchao 0.11 does",
    })  # fmt: skip
    kept_zero: str = choice({
        "domain": "chooses the zero point in its domain",
        "integer": "chooses an integer zero point where zero is kept, and takes it for a real in the FLOAT domain",
    })  # fmt: skip


_BASIS = AsComputed(dtype="that of choose_qparams_affine and of quantize; the input's for the reals")
_BEFORE_0_18 = "its primitives are those of 0.18, which has no AffineQuantizedTensor"


@formula(
    "torchao/from_hp_to_intx_static",
    equation=r"q = \mathrm{quantize}(x, s, z);\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=AsComputed(dtype="that of quantize; the input's for the reals"),
    source="AffineQuantizedTensor.from_hp_to_intx_static, dequantize; fields quant_min, quant_max, zero_point_domain",
    behaviour=HoldingGiven(),
    versions={
        "0.17": (HoldingGiven(primitives="0.18", grid="stored"), f"torchao 0.17.0, measured; {_BEFORE_0_18}"),
        "0.11": (
            HoldingGiven(primitives="0.11", grid="stored", without_zero_point="refused"),
            "torchao 0.11.0, measured",
        ),
    },
)
def from_hp_to_intx_static(
    b: HoldingGiven,
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
    if zero_point_domain not in _DOMAINS:
        msg = f"zero_point_domain={zero_point_domain!r} is not accepted: give one of {', '.join(_DOMAINS)}"
        raise ValueError(msg)
    if b.without_zero_point == "refused" and zero_point is None:
        msg = "zero_point=None is not accepted: give one per block"
        raise AssertionError(msg)
    return _held(b, input_float, scale, zero_point, block_size, target_dtype, quant_min, quant_max, zero_point_domain)


@formula(
    "torchao/from_hp_to_intx",
    equation=r"(s, z) = \mathrm{choose}(x);\quad q = \mathrm{quantize}(x, s, z);"
    r"\quad \hat x = \mathrm{dequantize}(q, s, z)",
    basis=_BASIS,
    source="AffineQuantizedTensor.from_hp_to_intx, dequantize",
    behaviour=HoldingChosen(),
    versions={
        "0.11": (HoldingChosen(primitives="0.11", grid="stored", choosing=AS_0_11), "torchao 0.11.0, measured"),
        "0.17": (
            HoldingChosen(primitives="0.18", grid="stored", choosing=AS_0_17, kept_zero="integer"),
            "torchao 0.17.0, measured; 0.15.0 is the same",
        ),
    },
)
def from_hp_to_intx(
    b: HoldingChosen,
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

    Arguments as in ``choose_qparams_affine``, result as in ``from_hp_to_intx_static``. Without ``use_hqq``, whose loop
    has no stated roundings.

    Raises:
        ValueError, AssertionError, RuntimeError, TypeError: as the functions that it is made of.
    """
    domain = "INT" if preserve_zero and b.kept_zero == "integer" else zero_point_domain
    scale, point = choose_qparams_affine(
        b.choosing, input_float, mapping_type, block_size, target_dtype, quant_min, quant_max, eps,
        scale_dtype, zero_point_dtype, preserve_zero, domain,
    )  # fmt: skip
    point = None if zero_point_domain == "NONE" else point
    return _held(b, input_float, scale, point, block_size, target_dtype, quant_min, quant_max, zero_point_domain)


def _held(
    b: Holding,
    x: Array,
    scale: Array,
    zero_point: Array | None,
    block_size: BlockSize,
    target_dtype: str,
    quant_min: int | None,
    quant_max: int | None,
    domain: str,
) -> dict[str, Array | None]:
    quantize, dequantize = (_primitive(b, symbol) for symbol in _DOMAINS[domain])
    qmin, qmax = code_range(target_dtype, quant_min, quant_max)
    q = quantize(x, block_size, scale, zero_point, target_dtype, qmin, qmax)
    ends = (qmin, qmax) if b.grid == "target" else (quant_min, quant_max)
    real = dequantize(q, block_size, scale, zero_point, q.dtype.name, *ends, output_dtype=x.dtype.name)
    return {"int_data": q, "scale": scale, "zero_point": zero_point, "dequantized": real}


def _primitive(b: Holding, symbol: str) -> Callable[..., Any]:
    """The primitive as documented, or as the newest release up to the one asked for was measured to have it."""
    ids = (f"torchao/{symbol}{version}" for version in _VERSIONS[b.primitives])
    return next(FORMULAS[i].function for i in ids if i in FORMULAS)
