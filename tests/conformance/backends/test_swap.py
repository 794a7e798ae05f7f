"""The code written for a library runs on its drop-in replacement, and a witness quotes what ran."""

import importlib
import inspect

import pytest
import torch

from halfeven.conformance.backends.functions import functions
from halfeven.conformance.backends.registry import REGISTRY
from halfeven.conformance.backends.swap import swapped
from halfeven.conformance.quote import quote

FOLDER = "halfeven.conformance.backends.functions"
SWAP = REGISTRY["halfeven.aimet"].swap or ("", "")
PARTS = REGISTRY["aimet.functional"].functions
# Called by what `halfeven_aimet` has for them: the library's own are private.
OTHERWISE = {"aimet.min_scale"}


def test_a_swapped_module_is_the_same_code_with_another_import() -> None:
    name = f"{FOLDER}.aimet_affine"
    own, other = importlib.import_module(name), swapped(name, *SWAP)
    assert swapped(name, *SWAP) is other is not own
    assert inspect.getsource(other) == inspect.getsource(own).replace(*SWAP)
    assert other.FUNCTIONS.keys() == own.FUNCTIONS.keys()
    assert other.FUNCTIONS["aimet.quantize"](torch.ones(2), torch.tensor(0.5), torch.tensor(0.0), bitwidth=4).tolist()


def test_a_module_that_does_not_name_it_stays() -> None:
    name = f"{FOLDER}.ml_dtypes"
    assert swapped(name, *SWAP) is importlib.import_module(name)


@pytest.mark.parametrize("part", PARTS)
def test_nothing_of_the_library_is_left(part: str) -> None:
    for formula, function in functions(part, "halfeven_aimet", swap=SWAP).items():
        source, _ = quote(function) or ("", "")
        assert source, formula
        assert formula in OTHERWISE or SWAP[1] in source, formula
        assert SWAP[0].partition(".")[0] not in source, formula


def test_what_a_witness_quotes_runs_alone() -> None:
    function = functions("aimet_affine", swap=SWAP)["aimet.quantize"]
    source, name = quote(function) or ("", "")
    scope: dict[str, object] = {}
    exec(source, scope)
    quantize = scope[name]
    assert callable(quantize)
    x, scale, offset = torch.tensor([-1.0, 0.26, 9.0]), torch.tensor(0.5), torch.tensor(1.0)
    assert quantize(tensor=x, scale=scale, offset=offset, qmin=-8, qmax=7).tolist() == [-3.0, 0.0, 7.0]
