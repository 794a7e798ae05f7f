"""The requirements that a profile is held to: its documents', and those that every user expects of any quantizer."""

from collections.abc import Iterator
from dataclasses import replace
from functools import cache

from halfeven.conformance.requirement import Basis, Requirement
from halfeven.conformance.systems import requirements_of
from halfeven.reference import FORMULAS, PROFILES
from halfeven.reference.profile import OPERATIONS, Operation
from halfeven.reference.systems import SYSTEMS, system_of

__all__ = ["canonical", "canonical_item", "every_requirement", "requirements"]

_PARTS = 3  # of a requirement's id

_CODES: tuple[Operation, ...] = ("quantize", "fake_quantize")


def _of_any(
    basis: Basis,
    aspect: str,
    check: str,
    text: str,
    operations: tuple[Operation, ...] = OPERATIONS,
    kills: tuple[str, ...] = (),
    needs: tuple[str, ...] = (),
) -> tuple[Requirement, ...]:
    return tuple(Requirement(f"{o}/{aspect}", text, basis, "", (check,), kills, needs) for o in operations)


# What any user expects of any quantizer, whatever its document says. A room may restate an aspect.
_EVERY = (
    *_of_any(
        "expected",
        "smoke",
        "smoke",
        "The adapter answers at all: small whole numbers at scale 1 and zero point 0 come back, in every place, in "
        "every call.",
        kills=("stale-output", "wrong-shape", "mutated-input"),
    ),
    *_of_any(
        "expected",
        "layout-independence",
        "layout",
        "Transposed, strided, offset, expanded and channels-last inputs give what the contiguous input gives, "
        "rank 0 to 5.",
        kills=("transposed-layout",),
    ),
    *_of_any(
        "expected",
        "granularity",
        "granularity",
        "Every element uses the parameters of its own block, i_d = floor(j_d / B_d): per channel on any axis, per"
        " token, per group, per block.",
        kills=("wrong-axis", "last-partial-block-untouched"),
    ),
    *_of_any(
        "expected",
        "every-position",
        "position",
        "The same value gives the same result at every position of a vector of any length, and in every call.",
        kills=("last-partial-block-untouched",),
    ),
    *_of_any(
        "expected",
        "result",
        "result",
        "The result has the input's shape and the documented dtype, for empty and 0-d inputs too, and no argument"
        " is changed.",
        kills=("wrong-dtype", "wrong-shape", "mutated-input"),
    ),
    *_of_any(
        "expected",
        "composition",
        "composition",
        "Fake quantization is dequantization after quantization.",
        operations=("fake_quantize",),
        kills=("fake-by-reciprocal",),
        needs=("quantize", "dequantize"),
    ),
    *_of_any(
        "expected",
        "idempotence",
        "idempotence",
        "Quantizing what dequantization gave returns the same codes.",
        operations=("quantize",),
        kills=("zero-point-dropped-in-dequantize",),
        needs=("dequantize",),
    ),
    *_of_any(
        "silent",
        "subnormals",
        "subnormals",
        "Subnormal inputs and scales are computed with, not flushed.",
        operations=_CODES,
    ),
    *_of_any("silent", "nan", "nan", "What NaN becomes; the document does not say.", operations=_CODES),
    *_of_any(
        "silent",
        "zero-sign",
        "zero-sign",
        "The sign of a zero result; the document does not say.",
        operations=_CODES,
    ),
    *_of_any(
        "silent",
        "bad-arguments",
        "errors",
        "What qmin above qmax, scales that do not fit and an integer input are answered with; the document does "
        "not say.",
    ),
)


@cache
def requirements(profile: str) -> tuple[Requirement, ...]:
    """Every requirement of ``profile``: the smoke probes, its operations', those of any quantizer, its functions'."""
    system = system_of(profile)
    rows = requirements_of(system)
    found = [*_of_operations(profile, rows), *(replace(r, basis=_basis(profile, r)) for r in rows if r.called)]
    return tuple(sorted(found, key=lambda r: r.aspect != "smoke"))


@cache
def every_requirement() -> dict[str, Requirement]:
    """Every requirement of the documents by id, versions of profiles left out."""
    return {r.id: r for name in PROFILES if "@" not in name for r in requirements(name)}


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
    available = set(PROFILES[profile].operations)
    name = profile.partition("@")[0]
    own = [r for r in rows if not r.called and r.id.startswith(f"{name}/")]
    spoken = {r.id for r in own}
    common = [replace(r, id=f"{name}/{r.id}") for r in _EVERY]
    formulas: dict[str, str] = {
        f.affine.operation: f.id
        for f in reversed(list(FORMULAS.values()))
        if f.affine and f.affine.profile == name and not f.version
    }
    for r in (*own, *(r for r in common if r.id not in spoken)):
        if {r.operation, *r.needs} <= available:
            id_ = f"{profile}/{r.id.partition('/')[2]}"
            yield replace(r, id=id_, basis=_basis(profile, r), formula=formulas.get(r.operation, ""))


def _basis(profile: str, requirement: Requirement) -> Basis:
    """The basis of a requirement: a release's measured behaviour settles what its document leaves open."""
    settled = "@" in profile and requirement.aspect == "nan" and PROFILES[profile].model.nan != "propagate"
    return "measured" if settled else requirement.basis
