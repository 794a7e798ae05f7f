"""What an answer that agrees is worth: a document's word, or what a release was measured to do."""

import numpy as np

from halfeven.conformance.engine.compare import but_for, compare_codes
from halfeven.conformance.engine.evidence import Evidence, Judged
from halfeven.conformance.engine.formula import formula_of
from halfeven.conformance.engine.judge import answer_of, differences
from halfeven.conformance.engine.setting import evaluation_of
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems import PROFILES

__all__ = ["is_measured"]


def is_measured(e: Evidence) -> bool:
    """Whether what the answers agree with was measured: the requirement was, or the release that is claimed.

    A claim of a release is held to what that does; where its document says the same in every call, the document is
    the norm. A strict run takes every norm for one.
    """
    if e.item.strict:
        return False
    return e.item.basis == "measured" or any(_is_the_releases_own(e, asked) for asked in e.compared)


def _is_the_releases_own(e: Evidence, asked: Judged) -> bool:
    """Whether the answer expected is not the document's."""
    item = e.item
    document, _, release = item.offer.profile.partition("@")
    if not release:
        return False
    if asked.case is not None:
        said, expected = evaluation_of(PROFILES[document], asked.case), np.asarray(asked.expected.value)
        return bool(but_for(e.open_nans(asked.case), compare_codes, said, expected).differing)
    claimed = formula_of(item.requirement.formula, item.offer.profile)
    if not claimed.version:
        return False
    documented = answer_of(FORMULAS[item.requirement.formula].function, asked.arguments)
    return bool(differences(documented, asked.expected).differing)
