"""Bad arguments: what the backend does with each is reported. A changed argument is a fault."""

import re
from typing import Any

import numpy as np

from halfeven.conformance.call import Fault
from halfeven.conformance.trial import Trial
from halfeven.reference.profile import Operation

__all__ = ["errors"]


def errors(trial: Trial) -> None:
    """Qmin above qmax, a scale that does not fit, and an input of the wrong kind."""
    c = trial.configuration
    quantizes = c.operation != "dequantize"
    x = np.ones((2, 3))
    good = trial.plain(x)
    trial.ask(good)
    trial.points += 1
    attempts: dict[str, tuple[list[Any], dict[str, Any]]] = {}
    plain = [good.x, good.scale, good.zero][: 1 + len(trial.profile.parameters)]
    keywords = trial.caller.keywords(good.configuration)
    if quantizes:
        attempts["qmin > qmax"] = (plain, keywords | {"qmin": c.grid.qmax, "qmax": c.grid.qmin - 1})
        attempts["integer input"] = ([x.astype(np.int64), *plain[1:]], keywords)
    misfit = [plain[0], *(np.ones((7, 1), p.dtype) for p in plain[1:])]
    attempts["scale of shape (7, 1) for (2, 3)"] = (misfit, keywords)
    for name, (arrays, named) in attempts.items():
        before = [np.asarray(a).tobytes() for a in arrays]
        trial.seen.append(f"{name}: {_reaction(trial, c.operation, arrays, named)}")
        trial.points += 1
        if [np.asarray(a).tobytes() for a in arrays] != before:
            msg = f"mutated input: with {name} the call changed an argument in place"
            raise Fault(msg)


def _reaction(trial: Trial, operation: Operation, arrays: list[Any], keywords: dict[str, Any]) -> str:
    try:
        value = trial.caller.raw(operation, trial.caller.arguments(arrays), keywords)
    except Exception as error:  # noqa: BLE001 - which one it is, is the finding
        first = (str(error).strip().splitlines() or [""])[0]
        return f"{type(error).__name__}: {re.sub(r'0x[0-9a-f]+', '0x…', first)[:120]}"
    return f"no error; returns {type(value).__name__} of shape {tuple(getattr(value, 'shape', ()))}"
