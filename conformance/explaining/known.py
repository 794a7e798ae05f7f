"""What every known system makes of a value: all profiles and versions, and the formulas that quantize on a grid."""

from dataclasses import dataclass

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.explaining.given import Given, by_formula, by_profile
from halfeven.conformance.explaining.numbers import bits, decimal, whole
from halfeven.reference import FORMULAS
from halfeven.reference.blocks import Array
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES, has_own_operations, profile_of

__all__ = ["Group", "known", "spelled"]


@dataclass(frozen=True)
class Group:
    """Systems of one result.

    Attributes:
        result: the code or real in decimal, and the bits of a real.
        names: profiles, and formulas (``system/symbol``) that compute otherwise than their profile or have none.
    """

    result: str
    names: tuple[str, ...]


def known(given: Given) -> tuple[tuple[Group, ...], tuple[str, ...]]:
    """The groups, the largest first, and the systems that do not take such a value: its dtype, its grid or its code."""
    found: dict[str, list[str]] = {}
    results: dict[str, str] = {}
    refused: list[str] = []
    for name, profile in PROFILES.items():
        if not has_own_operations(name) or not _has(profile, given):
            continue
        if not _takes(profile, given):
            refused.append(name)
            continue
        results[name] = spelled(given, by_profile(profile, given))
        found.setdefault(results[name], []).append(name)
    for f in FORMULAS.values():
        if f.affine is None or f.affine.operation != given.operation:
            continue
        if not _takes(PROFILES[f.affine.profile], given):
            continue
        try:
            result = spelled(given, by_formula(f, given))
        except Exception:  # noqa: BLE001 - a formula refuses with the error that its document names
            refused.append(f.id)
            continue
        own = profile_of(f)
        if own is None or results.get(own) != result:
            found.setdefault(result, []).append(f.id)
    groups = [Group(result, tuple(names)) for result, names in found.items()]
    return tuple(sorted(groups, key=lambda g: -len(g.names))), tuple(refused)


def spelled(given: Given, result: Array) -> str:
    """A code as a number; a real with its bits."""
    one = np.asarray(result).reshape(())
    if given.operation == "quantize":
        return whole(one)
    return f"{decimal(one)} ({bits(one.astype(DTYPES[given.dtype]))})"


def _takes(profile: Profile, given: Given) -> bool:
    zero = not given.zero or len(profile.parameters) > 1
    return zero and profile.accepts(given.grid) and given.dtype in profile.dtypes


def _has(profile: Profile, given: Given) -> bool:
    """Whether the profile has the operation; a fake quantizer makes codes on the way to its reals."""
    own = given.operation in profile.operations
    return own or (given.operation == "quantize" and "fake_quantize" in profile.operations)
