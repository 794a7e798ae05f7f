"""The conformance engine: drives any implementation against the reference, and says where they part.

The public names come from their modules when they are first asked for, so that the command and the report need not
import what they do not use: torch, Hypothesis, pytest.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfeven.conformance.backends.protocol import Backend, Unsupported
    from halfeven.conformance.comparing import compare
    from halfeven.conformance.explaining.value import explain_value
    from halfeven.conformance.fingerprinting import fingerprint
    from halfeven.conformance.stochastic import check_stochastic
    from halfeven.conformance.suite import Verdict, check, conformance_suite
else:
    _HOMES = {
        "Backend": "halfeven.conformance.backends.protocol",
        "Unsupported": "halfeven.conformance.backends.protocol",
        "Verdict": "halfeven.conformance.suite",
        "check": "halfeven.conformance.suite",
        "check_stochastic": "halfeven.conformance.stochastic",
        "compare": "halfeven.conformance.comparing",
        "fingerprint": "halfeven.conformance.fingerprinting",
        "conformance_suite": "halfeven.conformance.suite",
        "explain_value": "halfeven.conformance.explaining.value",
    }

    def __getattr__(name: str) -> Any:
        """Import a public name; it stays, so this happens once."""
        if name not in _HOMES:
            msg = f"module {__name__!r} has no attribute {name!r}"
            raise AttributeError(msg)
        found = globals()[name] = getattr(import_module(_HOMES[name]), name)
        return found

    def __dir__() -> list[str]:
        """The public names too, before they are asked for."""
        return sorted({*globals(), *__all__})


__all__ = [
    "Backend",
    "Unsupported",
    "Verdict",
    "check",
    "check_stochastic",
    "compare",
    "conformance_suite",
    "explain_value",
    "fingerprint",
]
