"""What is in the catalogue, asked as a stranger: the operations of the profiles, casts, scales and block scales.

``HALFEVEN_EXHAUSTIVE=1`` asks all of it, for some twenty minutes; else a sample is asked. By its name each formula is
asked in ``test_formulas.py``.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import fingerprint
from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.fingerprints.kinds import Candidate, candidates
from halfeven.conformance.fingerprints.models import FIELDS
from halfeven.conformance.fingerprints.result import UNDECIDED, Fingerprint
from halfeven.conformance.fingerprints.telling import data
from halfeven.reference import Grid
from halfeven.reference.profile import Operation, Profile
from halfeven.reference.systems import PROFILES, has_own_operations

INT8 = Grid(-128, 127)
EVERYTHING = os.environ.get("HALFEVEN_EXHAUSTIVE") == "1"
KINDS = ("cast", "scale", "block scale")
COUNTS: dict[str, Any] = {"operations": 90, "kinds": {"cast": 17, "scale": 36, "block scale": 34}}
SETTINGS = 2  # of each formula, of which the first that answer are asked
#: One of each sort: an offset, a fused zero point, the largest magnitude, floats as codes, a dequantizer.
SAMPLE = {
    ("aimet", "quantize", "float16"),
    ("torch.quantize@2.13", "quantize", "float32"),
    ("pytorch-quantization", "quantize", "float16"),
    ("compressed-tensors", "dequantize", "bfloat16"),
    ("torch.fake_quantize@2.13", "fake_quantize", "float32"),
}


def of_profile(profile: Profile, operation: Operation, dtype: str) -> Callable[..., Any]:
    """An operation as its user calls it."""
    if operation == "dequantize":
        return lambda q, scale, zero_point: profile.dequantize(q, scale, zero_point, INT8, DTYPES[dtype])
    own = getattr(profile, operation)
    if profile.parameters[0] == "amax":
        return lambda x, amax, *, qmin, qmax: own(x, amax, np.zeros(amax.shape), Grid(qmin, qmax))
    return lambda x, scale, zero_point, *, qmin, qmax: own(x, scale, zero_point, Grid(qmin, qmax))


#: Of what is told plainly the names whose values are its own.
PLAIN = {
    *("overflow", "subnormals", "zeros", "infinity", "nan", "zero", "negative", "underflow", "large"),
    *("over", "of", "held", "division", "within", "least", "zero_point", "codes"),
}


def wrong(found: Fingerprint, own: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that say another value than the one made, or that it is another of several."""
    said = {n: found.alternatives.get(n, (v,)) for n, v in found.fields.items() if v != UNDECIDED}
    return {n: v for n, v in said.items() if n in own and str(own[n]) not in map(str, v)}


def has(one: Candidate, found: Fingerprint) -> dict[str, Any]:
    """What a candidate has of the fields found.

    A choice with the name of a setting, or of what is told plainly, is compared with the formula's name before it.
    """
    apart = PLAIN | (one.chosen.keys() & one.settings.keys())
    own = {n: v for n, v in {**one.chosen, **one.settings}.items() if n not in apart}
    mine = one.family if one.family in {found.fields["formula"], *found.alternatives.get("formula", ())} else None
    both = {**one.settings, **one.chosen}  # of a name that is in both it is the choice that is said with the formula
    return {"formula": mine, **own, **{f"{one.family}: {n}": v for n, v in both.items()}}


def operations() -> list[tuple[str, Operation, str]]:
    return [
        (p.name, operation, dtype)
        for p in PROFILES.values()
        if has_own_operations(p.name)
        for operation in p.operations
        for dtype in p.dtypes
    ]


def of_kind(kind: str) -> list[Candidate]:
    """Of each formula and version of a kind some settings that answer."""
    found: dict[str, list[Candidate]] = {}
    x = [data(kind, turn, np.dtype(np.float32)) for turn in range(2)]
    for one in candidates(kind):
        known = found.setdefault(one.formula.id, [])
        if len(known) < SETTINGS and all(one.answer(rows) for rows in x):
            known.append(one)
    return [one for some in found.values() for one in some]


def check_operation(name: str, operation: Operation, dtype: str) -> None:
    profile = PROFILES[name]
    found = fingerprint(of_profile(profile, operation, dtype), operation, "numpy", dtype=dtype)
    assert found.calls < 200
    assert wrong(found, {n: getattr(profile.model, n) for n in FIELDS[operation]}) == {}
    assert found.explained
    assert name in found.profiles


def check_kind(kind: str, one: Candidate) -> None:
    found = fingerprint(lambda x: one.formula.function(**one.arguments(x)), kind, "numpy")
    assert found.explained
    assert one.formula.id in found.profiles
    assert wrong(found, has(one, found)) == {}
    assert found.calls < 200


def test_a_wrong_field_is_seen() -> None:
    found = Fingerprint("", "", {"rounding": "half-away", "held": "given", "sign": UNDECIDED})
    assert wrong(found, {"rounding": "half-even", "held": "given", "sign": "q+o"}) == {"rounding": ("half-away",)}


def test_the_catalogue_is_all_there() -> None:
    """The counts of docs/fingerprint.md."""
    assert len(operations()) == COUNTS["operations"]
    assert {kind: len({c.formula.id for c in candidates(kind)}) for kind in KINDS} == COUNTS["kinds"]
    assert set(operations()) > SAMPLE


@pytest.mark.parametrize("name", operations() if EVERYTHING else sorted(SAMPLE), ids="-".join)
def test_the_fingerprint_of_a_profile_is_the_profile(name: tuple[str, Operation, str]) -> None:
    check_operation(*name)


@pytest.mark.parametrize("kind", KINDS)
def test_the_fingerprint_of_a_formula_of_a_kind_is_the_formula(kind: str) -> None:
    every = of_kind(kind)
    for one in every if EVERYTHING else every[:: max(len(every) // 4, 1)]:
        check_kind(kind, one)
