"""The requirements that a profile is held to: its documents', and those that every user expects of any quantizer."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from halfeven.conformance.requirement import Requirement, expected, silent
from halfeven.conformance.systems import requirements_of
from halfeven.reference import FORMULAS, PROFILES
from halfeven.reference.systems import SYSTEMS

__all__ = ["canonical", "canonical_item", "every_requirement", "requirements", "system_of"]

_PARTS = 3  # of a requirement's id

# What any user expects of any quantizer, whatever its document says. A room may restate an aspect.
_EVERY = (
    expected(
        "smoke",
        "The adapter answers at all: small whole numbers at scale 1 and zero point 0 come back, in every place, "
        "in every call.",
        operations=("quantize", "dequantize", "fake_quantize"),
        checks=("smoke",),
        kills=("stale-output", "wrong-shape", "mutated-input"),
    ),
    expected(
        "layout-independence",
        "Transposed, strided, offset, expanded and channels-last inputs give what the contiguous input gives, "
        "rank 0 to 5.",
        operations=("quantize", "dequantize", "fake_quantize"),
        checks=("layout",),
        kills=("transposed-layout",),
    ),
    expected(
        "granularity",
        "Every element uses the parameters of its own block, i_d = floor(j_d / B_d): per channel on any axis, per"
        " token, per group, per block.",
        operations=("quantize", "dequantize", "fake_quantize"),
        checks=("granularity",),
        kills=("wrong-axis", "last-partial-block-untouched"),
    ),
    expected(
        "every-position",
        "The same value gives the same result at every position of a vector of any length, and in every call.",
        operations=("quantize", "dequantize", "fake_quantize"),
        checks=("position",),
        kills=("last-partial-block-untouched",),
    ),
    expected(
        "result",
        "The result has the input's shape and the documented dtype, for empty and 0-d inputs too, and no argument"
        " is changed.",
        operations=("quantize", "dequantize", "fake_quantize"),
        checks=("result",),
        kills=("wrong-dtype", "wrong-shape", "mutated-input"),
    ),
    expected(
        "composition",
        "Fake quantization is dequantization after quantization.",
        operations=("fake_quantize",),
        checks=("composition",),
        kills=("fake-by-reciprocal",),
        needs=("quantize", "dequantize"),
    ),
    expected(
        "idempotence",
        "Quantizing what dequantization gave returns the same codes.",
        operations=("quantize",),
        checks=("idempotence",),
        kills=("zero-point-dropped-in-dequantize",),
        needs=("dequantize",),
    ),
    silent(
        "subnormals",
        "Subnormal inputs and scales are computed with, not flushed.",
        operations=("quantize", "fake_quantize"),
        checks=("subnormals",),
    ),
    silent(
        "nan",
        "What NaN becomes; the document does not say.",
        operations=("quantize", "fake_quantize"),
        checks=("nan",),
    ),
    silent(
        "zero-sign",
        "The sign of a zero result; the document does not say.",
        operations=("quantize", "fake_quantize"),
        checks=("zero-sign",),
    ),
    silent(
        "bad-arguments",
        "What qmin above qmax, scales that do not fit and an integer input are answered with; the document does "
        "not say.",
        operations=("quantize", "dequantize", "fake_quantize"),
        checks=("errors",),
    ),
)


@cache
def requirements(profile: str) -> tuple[Requirement, ...]:
    """Every requirement of ``profile``: the smoke probes, its operations', those of any quantizer, its functions'."""
    system = system_of(profile)
    rows = requirements_of(system)
    found = [*_of_operations(profile, rows), *(r for r in rows if r.called)]
    return tuple(sorted(found, key=lambda r: r.aspect != "smoke"))


@cache
def every_requirement() -> dict[str, Requirement]:
    """Every requirement of the documents by id, versions of profiles left out."""
    return {r.id: r for name in PROFILES if "@" not in name for r in requirements(name)}


def system_of(profile: str) -> str:
    """The system whose folder a profile stands in: ``torch`` for ``torch.quantize@2.13``."""
    name = profile.partition("@")[0]
    return name if name in SYSTEMS else name.partition(".")[0]


def canonical(requirement: str) -> str:
    """Today's id of a requirement, for one of the first edition; any other as it is."""
    profile, _, rest = requirement.partition("/")
    function, _, aspect = rest.rpartition("/")
    formula = FORMULAS.canonical(f"{profile.partition('@')[0]}.{function}")
    known = {r.id for r in requirements_of(system_of(profile))} if system_of(profile) in SYSTEMS else set()
    return f"{formula}/{aspect}" if f"{formula}/{aspect}" in known and requirement not in known else requirement


def canonical_item(item: str) -> str:
    """``canonical`` for an item of a report: ``backend::requirement``, and what follows the requirement."""
    backend, _, id_ = item.partition("::")
    parts = id_.split("/")
    requirement = "/".join(parts[:_PARTS])
    return "/".join([f"{backend}::{canonical(requirement)}", *parts[_PARTS:]]) if len(parts) >= _PARTS else item


def _of_operations(profile: str, rows: tuple[Requirement, ...]) -> Iterator[Requirement]:
    available = set(PROFILES[profile].numpy)
    name = profile.partition("@")[0]
    own = [r for r in rows if not r.called and r.id.startswith(f"{name}/")]
    spoken = {r.id for r in own}
    common = [replace(r, id=f"{name}/{o}/{r.id}", operations=(o,)) for r in _EVERY for o in r.operations]
    formulas: dict[str, str] = {
        f.affine.operation: f.id
        for f in reversed(list(FORMULAS.values()))
        if f.affine and f.affine.profile == name and not f.version
    }
    for r in (*own, *(r for r in common if r.id not in spoken)):
        if {*r.operations, *r.needs} <= available:
            basis = "measured" if _settled(profile, r) else r.basis
            id_ = f"{profile}/{r.id.partition('/')[2]}"
            yield replace(r, id=id_, basis=basis, formula=formulas.get(r.operation, ""))


def _settled(profile: str, requirement: Requirement) -> bool:
    """Whether a release's measured behaviour settles what its document leaves open."""
    return "@" in profile and requirement.aspect == "nan" and PROFILES[profile].model.nan != "propagate"
