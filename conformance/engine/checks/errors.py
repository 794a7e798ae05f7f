"""Bad arguments: what the backend does with each is reported. A changed argument is a fault."""

import re
from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance.engine.call import Answer, Call, breaches, sent
from halfeven.conformance.engine.evidence import Ended, Evidence, Fault

__all__ = ["errors"]


def errors(e: Evidence) -> None:
    """Qmin above qmax, a scale that does not fit, and an input of the wrong kind."""
    good = e.setting.plain(np.ones((2, 3)))
    [answered] = e.ask([good])
    if answered is None:
        return
    e.points += 1
    call = e.call(good)
    x, *parameters = (a.view() for a in call.positional)
    attempts: dict[str, Call] = {}
    if e.setting.configuration.operation != "dequantize":
        grid = e.setting.grid
        attempts["qmin > qmax"] = replace(call, named={**call.named, "qmin": grid.qmax, "qmax": grid.qmin - 1})
        attempts["integer input"] = replace(call, positional=(sent(x.astype(np.int64)), *call.positional[1:]))
    misfit = (sent(np.ones((7, 1), p.dtype)) for p in parameters)
    attempts["scale of shape (7, 1) for (2, 3)"] = replace(call, positional=(call.positional[0], *misfit))
    for name, answer in zip(attempts, e.worker.answers(list(attempts.values())), strict=True):
        if answer.kind == "ended":
            raise Ended(answer.message)
        if spoilt := breaches(answer):
            msg = f"with {name}: {spoilt[0]}"
            raise Fault(msg)
        e.seen.append(f"{name}: {_reaction(answer)}")
        e.points += 1


def _reaction(answer: Answer) -> str:
    if answer.kind != "returned":
        first = (answer.message.strip().splitlines() or [""])[0]
        said = re.sub(r"0x[0-9a-f]+", "0x…", first)[:120]
        return f"{answer.error[0]}: {said}" if answer.error else f"not offered: {said}"
    value: Any = answer.value
    kind = value.dtype if isinstance(value, np.ndarray) else type(value).__name__
    return f"no error; returns {kind} of shape {tuple(np.shape(value))}"
