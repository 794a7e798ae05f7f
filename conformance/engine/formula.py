"""The formula that a claim means."""

from halfeven.reference.catalogue import FORMULAS, Formula

__all__ = ["formula_of"]


def formula_of(formula: str, profile: str) -> Formula:
    """The formula that a profile holds a backend to: for ``name@version`` that version's, where there is one."""
    version = profile.partition("@")[2]
    versions = (f for f in FORMULAS.versions(formula) if f.version and f"{version}-".startswith(f"{f.version}-"))
    return next(versions, FORMULAS[formula])
