"""The requirements that a profile is held to: its documents', and those that every user expects of any quantizer."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache

from halfeven.conformance import properties
from halfeven.conformance.requirement import CALL_SHAPES, Basis, Requirement
from halfeven.conformance.systems import requirements_of, takes_arrays
from halfeven.reference import FORMULAS, PROFILES
from halfeven.reference.profile import OPERATIONS, Operation
from halfeven.reference.systems import SYSTEMS, system_of

__all__ = ["canonical", "canonical_item", "every_requirement", "requirements"]

_PARTS = 3  # of a requirement's id
_ANY_CALL = (
    "The same values give the same answer however the call is made: layout, place in memory, length, threads, gradient"
    " mode, repetition."
)

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
        "any-call-shape",
        "call-shapes",
        "An element gives the same, and meets the parameters of its own block, i_d = floor(j_d / B_d), however the call"
        " is made: size, rank, layout, place in memory, granularity, threads, gradient mode, repetition; and no zero"
        " point, code, exponent or significand of a scale has a way of its own.",
        kills=("transposed-layout", "wrong-axis", "last-partial-block-untouched"),
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
    called = [replace(r, basis=_basis(profile, r)) for r in rows if r.called]
    found = [*_of_operations(profile, rows), *called]
    spoken = {r.id for r in found}  # an operation may have the id of its formula
    found += [r for r in (*_in_call_shapes(called), *_of_properties(called)) if r.id not in spoken]
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


def _in_call_shapes(called: Sequence[Requirement]) -> Iterator[Requirement]:
    """What is expected of every function that takes arrays."""
    for formula in dict.fromkeys(r.formula for r in called):
        if takes_arrays(formula):
            id_, checks = f"{formula}/any-call-shape", (CALL_SHAPES,)
            yield Requirement(id_, _ANY_CALL, "expected", "", checks, formula=formula, called=True)


def _of_properties(called: Sequence[Requirement]) -> Iterator[Requirement]:
    """What is expected of every function of a kind, whatever its document says of single values."""
    for formula in dict.fromkeys(r.formula for r in called):
        for p in properties.of(formula):
            id_, checks = f"{formula}/{p.name}", (f"{properties.CHECK}{p.name}",)
            yield Requirement(id_, p.text, "expected", "", checks, formula=formula, called=True)


def _basis(profile: str, requirement: Requirement) -> Basis:
    """The basis of a requirement: a release's measured behaviour settles what its document leaves open."""
    settled = "@" in profile and requirement.aspect == "nan" and PROFILES[profile].model.nan != "propagate"
    return "measured" if settled else requirement.basis
