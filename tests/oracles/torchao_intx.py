"""AffineQuantizedTensor's integer constructors, put together from the derivations of their parts."""

from typing import Any

from oracles.registry import DERIVATIONS, derives
from oracles.soft import Array
from oracles.torchao_blocks import bounds

__all__: list[str] = []

_SUFFIX = {"INT": "{}_affine", "FLOAT": "{}_affine_float_domain", "NONE": "{}_affine_no_zero_point"}


_RELEASES = {"0.11": {"dequantize": ("INT", "NONE"), "quantize": ("NONE",)}, "0.17": {}, "": {}}


def _primitive(kind: str, domain: str, release: str) -> Any:
    """The derivation of a primitive of a release: its own, else that of 0.18, of which only quantize has one."""
    later = "@0.18" if release and kind == "quantize" else ""
    suffix = f"@{release}" if domain in _RELEASES[release].get(kind, ()) else later
    return DERIVATIONS["torchao/" + _SUFFIX[domain].format(kind) + suffix]


def _held(given: dict[str, Any], grid: tuple[int | None, int | None], release: str) -> dict[str, Array | None]:
    x, domain, target = given["input_float"], given.get("zero_point_domain", "INT"), given["target_dtype"]
    if domain not in _SUFFIX:
        raise ValueError(domain)
    common = {name: given[name] for name in ("block_size", "scale", "zero_point")}
    common |= {"quant_min": grid[0], "quant_max": grid[1]}
    q = _primitive("quantize", domain, release)(input=x, output_dtype=target, **common)
    real = _primitive("dequantize", domain, release)(
        input=q, input_dtype=q.dtype.name, output_dtype=x.dtype.name, **common
    )
    return {"int_data": q, "scale": given["scale"], "zero_point": given["zero_point"], "dequantized": real}


@derives("torchao/from_hp_to_intx_static")
def _static(**given: Any) -> dict[str, Array | None]:
    if given.get("zero_point_domain", "INT") not in _SUFFIX:
        raise ValueError(given["zero_point_domain"])
    return _held(given, bounds(given["target_dtype"], given.get("quant_min"), given.get("quant_max")), "")


@derives("torchao/from_hp_to_intx_static@0.17")
def _static_0_17(**given: Any) -> dict[str, Array | None]:
    return _held(given, (given.get("quant_min"), given.get("quant_max")), "0.17")


@derives("torchao/from_hp_to_intx")
def _dynamic(**given: Any) -> dict[str, Array | None]:
    own = {"input_float": "input"}
    scale, zero_point = DERIVATIONS["torchao/choose_qparams_affine"](**{own.get(k, k): v for k, v in given.items()})
    return _static(**given, scale=scale, zero_point=zero_point)


@derives("torchao/from_hp_to_intx_static@0.11")
def _static_0_11(**given: Any) -> dict[str, Array | None]:
    domain, none = given.get("zero_point_domain", "INT"), given["zero_point"] is None
    if domain is None or (domain == "NONE" and not none):
        raise ValueError(domain)
    if none:
        raise AssertionError(domain)
    return _held(given, (given.get("quant_min"), given.get("quant_max")), "0.11")


@derives("torchao/from_hp_to_intx@0.11")
def _dynamic_0_11(**given: Any) -> dict[str, Array | None]:
    return _chosen(given, "0.11", {})


@derives("torchao/from_hp_to_intx@0.17")
def _dynamic_0_17(**given: Any) -> dict[str, Array | None]:
    kept = given.get("preserve_zero", True)  # without regard to the domain, and as an integer
    return _chosen(given, "0.17", {"zero_point_dtype": None, **({"zero_point_domain": "INT"} if kept else {})})


def _chosen(given: dict[str, Any], release: str, other: dict[str, Any]) -> dict[str, Array | None]:
    choose = {("input" if k == "input_float" else k): v for k, v in given.items()}
    other = {k: v for k, v in other.items() if k == "zero_point_domain" or k not in given}
    scale, point = DERIVATIONS[f"torchao/choose_qparams_affine@{release}"](**{**choose, **other})
    point = None if given.get("zero_point_domain") == "NONE" else point
    return _held(
        {**given, "scale": scale, "zero_point": point}, (given.get("quant_min"), given.get("quant_max")), release
    )
