"""torchao: how its releases, and torchao.quantization.pt2e, choose a scale and a zero point."""

from collections.abc import Callable, Mapping
from typing import Any

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.systems.torchao.by_release import Primitive, by_release, chosen, primitive

__all__ = ["ANSWERS"]

_Chosen = tuple[Primitive, Mapping[str, Any]]
# The copy takes mappings and domains by their names.
_PT2E = Primitive(
    "_choose_qparams_affine",
    "torchao.quantization.pt2e._affine_quantization",
    fixed={},
    words=("mapping_type", "zero_point_domain"),
)


def _choose(preserve_zero: bool = True, zero_point_domain: str = "INT", **given: Any) -> _Chosen:
    if zero_point_domain == "NONE" or (zero_point_domain == "FLOAT" and preserve_zero):
        msg = f"zero_point_domain={zero_point_domain}, preserve_zero={preserve_zero} is not offered by torchao 0.18"
        raise Unsupported(msg)
    if preserve_zero:
        return primitive("choose_qparams_affine"), given
    if given.pop("keepdim", False):
        msg = "keepdim=True is not offered by torchao without preserve_zero"
        raise Unsupported(msg)
    name = "tinygemm" if zero_point_domain == "FLOAT" else "dont_preserve_zero"
    return primitive(f"_choose_qparams_affine_{name}"), {"quant_min": None, "quant_max": None, **given}


def _choose_with_min_max(preserve_zero: bool = True, zero_point_domain: str = "INT", **given: Any) -> _Chosen:
    if zero_point_domain != "INT" or not preserve_zero:
        msg = f"zero_point_domain={zero_point_domain}, preserve_zero={preserve_zero} is not offered by torchao 0.18"
        raise Unsupported(msg)
    return primitive("choose_qparams_affine_with_min_max"), given


def _choose_0_11(keepdim: bool = False, **given: Any) -> _Chosen:
    if keepdim:
        msg = "keepdim=True is not offered by torchao 0.11"
        raise Unsupported(msg)
    return primitive("choose_qparams_affine"), given


def _choose_pt2e(mapping_type: str, zero_point_domain: str = "INT", keepdim: bool = False, **given: Any) -> _Chosen:
    preserve_zero = given.pop("preserve_zero", True)
    symmetric = mapping_type != "ASYMMETRIC"
    if keepdim or (zero_point_domain == "INT") != preserve_zero or (symmetric and zero_point_domain == "NONE"):
        msg = f"zero_point_domain={zero_point_domain}, preserve_zero={preserve_zero}, keepdim={keepdim}: not offered"
        raise Unsupported(msg)
    if given["target_dtype"] in [f"int{bits}" for bits in range(1, 8)]:
        msg = "signed codes below 8 bits are not offered by torchao.quantization.pt2e"
        raise Unsupported(msg)
    named = {"mapping_type": mapping_type, "zero_point_domain": zero_point_domain, "preserve_zero": preserve_zero}
    return _PT2E, given | named


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            "torchao/choose_qparams_affine": chosen(_choose),
            "torchao/choose_qparams_affine_with_min_max": chosen(_choose_with_min_max),
        },
        v0_11={"torchao/choose_qparams_affine": chosen(_choose_0_11)},
    ),
    "torchao.pt2e": {"torchao/choose_qparams_affine": chosen(_choose_pt2e)},
}
