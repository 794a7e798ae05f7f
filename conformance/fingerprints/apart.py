"""Calls that are made when the search has ended: where no choice is decided, and something else may be done."""

from dataclasses import replace

import numpy as np

from halfeven.conformance.fingerprints.asking import LARGEST
from halfeven.conformance.fingerprints.elsewhere import remains
from halfeven.conformance.fingerprints.search import Search, Seen, laid_out, splitting
from halfeven.conformance.fingerprints.subject import Subject, differ

__all__ = ["ask_apart", "ask_besides"]

_SCALE, _QUARTER = 0.1, 0.25
_SMALL = 1e-8  # below the least scale that some set
_POWERS = (7, 8, 15, 16, 31, 32)  # of 2: from these quotients on something may wrap
_FEW = 48  # elements of a small call


def ask_apart(subject: Subject, search: Search) -> None:
    """Ask with a small scale, and where integers may wrap: what is answered otherwise there is told apart."""
    if search.against:
        return
    zero = (subject.zeros or [subject.fixed or 0])[0]
    model = search.first()
    if not subject.takes_amax and not subject.asking.spent:
        seen = subject.seen(splitting([model], subject.asked, _SMALL, zero))
        _told_apart(subject, search, seen, f"with scale {_SMALL:g}")
    if subject.asked.operation == "quantize" and not subject.asking.spent:
        given = splitting([model], subject.asked, _QUARTER, zero)
        around = (-abs(zero) - 1, -zero, -1, 0, 1, abs(zero) + 1)
        quotients = [sign * 2.0**power + off for power in _POWERS for sign in (1, -1) for off in around]
        with np.errstate(all="ignore"):
            x = (np.array(quotients) * given.step).astype(subject.asked.dtype)
        seen = subject.seen(replace(given, x=laid_out(x[np.isfinite(x.astype(np.float64))], given.step)))
        _told_apart(subject, search, seen, "where |x/s| is 2^7 and more")


def _told_apart(subject: Subject, search: Search, seen: Seen | None, where: str) -> None:
    if seen is None or search.late:
        return
    if remains(search, seen):
        search.seen.append(seen)
        return
    subject.apart.append(seen)
    subject.pairs.pop()  # it proves nothing of what is told
    subject.asking.note(f"{where} it answers otherwise than what is told, as no known behaviour that gives the rest")


def ask_besides(subject: Subject, search: Search) -> None:
    """Where no model gives all answers: ask what is needed before any region is believed in."""
    if search.against:
        _ask_zeros(subject, search)
        _ask_sizes(subject, search)


def _ask_zeros(subject: Subject, search: Search) -> None:
    """With 0, an even and an odd zero point for the same scale, so that one of them does not stand for all."""
    zeros = {0 if z == 0 else 1 + z % 2: z for z in reversed(subject.zeros)}
    for scale in dict.fromkeys((search.against[0].given.step, float(np.float32(_SCALE)))):
        known = {int(s.given.zero) for s in search.seen if s.given.step == scale}
        for zero in sorted(set(zeros.values()) - known):
            if subject.asking.spent:
                return
            if (seen := subject.seen(splitting([search.first()], subject.asked, scale, zero))) is not None:
                search.take(seen)


def _ask_sizes(subject: Subject, search: Search) -> None:
    """And the same in larger and in smaller calls: only where that is answered otherwise some size may be a region."""
    large, small = (pick(search.seen, key=lambda s: s.value.size) for pick in (max, min))
    for of, n in ((large, _FEW), (small, LARGEST - 1)):
        if subject.asking.spent:
            return
        seen = subject.seen(replace(of.given, x=np.resize(of.given.x, n)))
        both = min(n, of.value.size)
        if seen is not None and differ(seen.value[:both], of.value[:both]).any():
            subject.elsewhere.append(seen)
