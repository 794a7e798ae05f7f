"""The call that a script makes is the one that was judged: of each library's function, on calls of its requirements."""

import warnings
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from halfeven.conformance.arrays import from_backend, to_torch
from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.backends.registry import REGISTRY, NotInstalled, resolve
from halfeven.conformance.engine.literal import source
from halfeven.conformance.quote import NoScript, spelt
from halfeven.conformance.requirement import CALLS
from halfeven.conformance.systems import answers

OFFERING = [name for name, entry in REGISTRY.items() if answers(entry.answers or name)]
MOST = 12  # calls of a formula


def marked(name: str) -> Any:
    return pytest.param(name, marks=[pytest.mark.library] if REGISTRY[name].extra else [])


def own_calls(formula: str) -> list[dict[str, Any]]:
    """Of each of the formula's call sets the first call, then of each the second, and so on."""
    sets = [some.build() for (of, _), some in CALLS.items() if of == formula]
    return [dict(some[turn]) for turn in range(MOST) for some in sets if turn < len(some)][:MOST]


def given(value: Any, array: str) -> Any:
    """An argument as the backend gets it, arrays as copies."""
    match value:
        case np.ndarray():
            return to_torch(value.copy()) if array == "torch" else value.copy()
        case tuple() | list():
            return type(value)(given(v, array) for v in value)
    return value


def holds_an_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) or (isinstance(value, tuple | list) and any(map(holds_an_array, value)))


def bits(value: Any) -> Any:
    """A result as what can be compared: of arrays dtype, shape and bytes, of what was raised nothing but that."""
    match value:
        case torch.Tensor() | np.ndarray() | np.generic():
            a = np.asarray(from_backend(value))
            return a.dtype.name, a.shape, a.tobytes()
        case tuple() | list():
            return [bits(v) for v in value]
        case dict():
            return {key: bits(v) for key, v in value.items()}
    return repr(value)


def answer(function: Any, arguments: dict[str, Any]) -> Any:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a library says once, of the first call
        try:
            return bits(function(**arguments))
        except (Unsupported, NameError, ImportError, SyntaxError):  # the last three are the script's own
            raise
        except Exception:  # noqa: BLE001 - a script shows that it was raised, and by which name the library does
            return "raised"


def run_spelt(function: Any, array: str, call: dict[str, Any]) -> Any:
    passed = {k: k if holds_an_array(v) else source(v, tensors=array == "torch") for k, v in call.items()}
    found = spelt(function, passed)
    assert "halfeven" not in found.header.replace("halfeven.optimized", "")

    def alone(**arguments: Any) -> Any:
        scope = {"np": np, "torch": torch, "ml_dtypes": ml_dtypes, **arguments}
        exec(found.header, scope)
        exec(found.steps, scope)
        return eval(found.called, scope)

    return answer(alone, {k: given(v, array) for k, v in call.items() if holds_an_array(v)})


@pytest.mark.parametrize("name", [marked(name) for name in OFFERING])
def test_the_call_of_a_script_is_that_of_the_backend(name: str) -> None:
    try:
        backend = resolve(name)[0]
    except NotInstalled as error:
        pytest.skip(str(error))
    other, compared = [], 0
    for formula, function in backend.functions.items():
        for call in own_calls(formula):
            try:
                wanted = answer(function, {k: given(v, backend.array) for k, v in call.items()})
                came = run_spelt(function, backend.array, call)
            except (Unsupported, NoScript):
                continue
            compared += 1
            if came != wanted:
                other.append((formula, call))
    assert other == []
    assert compared
