"""The cause where one and the same call is answered in two ways: no behaviour can be found of such answers."""

from dataclasses import replace

from halfeven.conformance.codes import NEAREST, UNKNOWN, fault_code
from halfeven.conformance.report.model import Cause, Result

__all__ = ["AFTER", "ALONE", "is_everywhere", "unsteady"]

_SAYS = "gives different answers to one and the same call"
AFTER = f"{_SAYS}: the document's to it alone, another after other calls"
ALONE = f"{_SAYS}: the document's in a process of its own, another among the calls of a check"
_CODE, _UNKNOWN = fault_code("not deterministic"), {UNKNOWN, NEAREST}


def unsteady(r: Result, sentence: str) -> Result:
    """With this cause in the place of none that is known; what is known of it stays."""
    known = [c for c in r.causes if c.code not in _UNKNOWN]
    own = next((c for c in known if c.code == _CODE), Cause(_CODE, sentence))
    if own not in known and any(c.code.startswith(_CODE[:3]) for c in known):  # such as memory that another call writes
        return r
    causes = (own, *(c for c in known if c is not own))
    return replace(r, cause="; ".join(c.sentence for c in causes), causes=causes)


def is_everywhere(r: Result) -> bool:
    """Whether what is said of it is said of all calls: then any of them shows it."""
    return not any(c.where for c in r.causes)
