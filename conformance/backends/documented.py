"""A function as the backend of one documented formula, and of the operation that the formula is."""

import inspect
from typing import Any

from halfeven.conformance.backends.protocol import ArrayKind, Backend, canonical_profile, name_of
from halfeven.conformance.nearest import nearest
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.systems import PROFILES, claim_of, profile_of

__all__ = ["of_formula"]


def of_formula(source: Any, formula: str, profile: str | None = None, array: ArrayKind | None = None) -> Backend:
    """The backend of ``source``, a function or what has it among its ``functions``, called by keyword.

    It claims the formula's own system, in the formula's version, or the ``profile`` of that system that is given.

    Raises:
        TypeError: it is no function, or does not take the formula's arguments.
        ValueError: the formula is unknown, or ``profile`` is not of its system; the message says what is accepted.
    """
    if formula not in FORMULAS:
        msg = f"formula={formula!r} is not accepted{nearest(str(formula), [*FORMULAS])}"
        raise ValueError(msg)
    known = FORMULAS[formula]
    claim, symbol = claim_of(known), known.id.partition("@")[0]
    profile = None if profile is None else canonical_profile(profile)
    fitting = [p for p in PROFILES if p.partition("@")[0] == claim.partition("@")[0]]
    if profile is not None and profile not in fitting:
        msg = f"profile={profile!r} is not accepted with formula={formula!r}: give one of {', '.join(fitting)}"
        raise ValueError(msg)
    fn = getattr(source, "functions", {}).get(symbol, source)
    if not callable(fn):
        msg = f"fn={source!r} is not accepted: give a function"
        raise TypeError(msg)
    wanted = inspect.signature(known.function).parameters
    try:
        inspect.signature(fn).bind(**dict.fromkeys(wanted))
    except TypeError as error:
        msg = f"fn={fn!r} is not accepted: {known.id} is called by keyword, with {', '.join(wanted)} ({error})"
        raise TypeError(msg) from None
    except ValueError:
        pass  # a builtin that tells no signature
    kind: Any = array or getattr(source, "array", "torch")
    made = Backend(name_of(source), profile or claim, functions={symbol: fn}, array=kind)
    if known.affine is None or not profile_of(known):  # else its operation would be held to the document's
        return made
    from halfeven.conformance import view  # it imports torch, which most formulas do without

    operations = {known.affine.operation: view.operation(fn, known.affine, kind)}
    return Backend(
        made.name, made.profile, operations, view.granularities(known.affine), functions=made.functions, array=kind
    )
