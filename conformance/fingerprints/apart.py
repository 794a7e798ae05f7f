"""Calls that are made when the search has ended: where no choice is decided, and something else may be done."""

from dataclasses import replace

import numpy as np

from halfeven.conformance.engine.company import companies
from halfeven.conformance.fingerprints.asking import LARGEST
from halfeven.conformance.fingerprints.elsewhere import plainest, remains, with_special
from halfeven.conformance.fingerprints.search import Search, Seen, laid_out, splitting
from halfeven.conformance.fingerprints.subject import Subject, differ

__all__ = ["ask_apart", "ask_besides", "ask_tails"]

_SCALE, _QUARTER = 0.1, 0.25
_SMALL = (1e-8, 1e-11, 1e-16, 1e-24)  # below the least scale that some set
_ONE = 1.0  # of which some think that nothing need be done
_POWERS = (7, 8, 15, 16, 31, 32)  # of 2: from these quotients on something may wrap
_FEW = 48  # elements of a small call
_TELLING = LARGEST // 4 - 1  # inputs: of some companies each of them is one in four
_REMAINDERS = (1, 2, 3, 5, 8, 11, 12, 15, 31)  # of the sizes beyond multiples of 64 in which tails are looked for


def ask_apart(subject: Subject, search: Search) -> None:
    """Ask with scales and zero points of which much is made, in other company, and where integers may wrap.

    What is answered otherwise there is told apart.
    """
    if search.against:
        return
    zero = (subject.zeros or [subject.fixed or 0])[0]
    model = search.first()
    grid = subject.asked.grid
    ends = dict.fromkeys((grid.qmin, grid.qmax, 0) if subject.fixed is None and subject.zeros else (zero,))
    pairs = [(_ONE, z, f"with scale 1 and zero point {z}") for z in ends if z in grid]
    pairs += [(_SCALE, z, f"with zero point {z}") for z in ends if z in grid]
    pairs += [(s, zero, f"with scale {s:g}") for s in (() if subject.takes_amax else _SMALL)]
    for scale, z, where in pairs:
        known = (float(np.float32(scale)), z) in subject.pairs
        if not (known or subject.asking.spent or search.late):
            _told_apart(subject, search, subject.seen(splitting([model], subject.asked, scale, z)), where)
    _ask_in_company(subject, search)
    if subject.asked.operation == "quantize" and not subject.asking.spent:
        given = splitting([model], subject.asked, _QUARTER, zero)
        around = (-abs(zero) - 1, -zero, -1, 0, 1, abs(zero) + 1)
        quotients = [sign * 2.0**power + off for power in _POWERS for sign in (1, -1) for off in around]
        with np.errstate(all="ignore"):
            x = (np.array(quotients) * given.step).astype(subject.asked.dtype)
        seen = subject.seen(replace(given, x=laid_out(x[np.isfinite(x.astype(np.float64))], given.step)))
        _told_apart(subject, search, seen, "where |x/s| is 2^7 and more")


def _ask_in_company(subject: Subject, search: Search) -> None:
    """Ask the inputs that tell most in calls of which somebody may look at the whole."""
    if subject.asked.operation == "dequantize":
        return
    given = plainest(subject, search)
    for words, x in companies(given.x[:_TELLING]):
        if not (subject.asking.spent or search.late):
            _told_apart(subject, search, subject.seen(replace(given, x=x)), f"in calls {words}")


def _told_apart(subject: Subject, search: Search, seen: Seen | None, where: str) -> None:
    if seen is None or search.late:
        return
    if remains(search, seen):
        search.seen.append(seen)
        return
    subject.apart.append((where, seen))
    subject.pairs.pop()  # it proves nothing of what is told


def ask_besides(subject: Subject, search: Search) -> None:
    """Where no model gives all answers: ask what is needed before any region is believed in."""
    if search.against:
        _ask_zeros(subject, search)
        _ask_sizes(subject, search)
        _ask_special(subject, search)


def ask_tails(subject: Subject, search: Search) -> None:
    """Where equal inputs have different answers: calls of these, of sizes that leave other remainders."""
    of = max(subject.uneven, key=lambda s: s.value.size)
    bits = of.given.x.view(f"u{of.given.x.dtype.itemsize}")
    _, first, which = np.unique(bits, return_index=True, return_inverse=True)
    telling = of.given.x[differ(of.value, of.value[first][which])]
    for rest in _REMAINDERS:
        if subject.asking.spent:
            return
        seen = subject.seen(replace(of.given, x=np.resize(telling, 64 + rest)))
        if seen is not None:
            search.seen.append(seen)


def _ask_special(subject: Subject, search: Search) -> None:
    telling = (s for s in search.seen if s.given.step == search.against[0].given.step)  # of others all may be exact
    for given in with_special(max(telling, key=lambda s: s.value.size).given):
        if not subject.asking.spent and (seen := subject.seen(given)) is not None:
            search.take(seen)


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
