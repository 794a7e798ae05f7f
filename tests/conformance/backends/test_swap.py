"""The code written for a library runs on its drop-in replacement, and a witness quotes what ran."""

import pytest
import torch

from halfeven.conformance.backends.registry import REGISTRY, resolve
from halfeven.conformance.backends.swap import swapped
from halfeven.conformance.quote import quote
from halfeven.conformance.systems import answers

SWAP = REGISTRY["halfeven.aimet"].swap or ("", "")
# Called by what `halfeven.aimet` has for them: the library's own are private.
OTHERWISE = {"aimet/min_scale"}
GIVEN = answers("aimet.functional")


def test_a_swapped_function_is_the_same_code_with_another_import() -> None:
    own = GIVEN["aimet/affine.quantize"]
    other = swapped(own, *SWAP)
    assert swapped(own, *SWAP) is other is not own
    source, name = quote(own, alone=False) or ("", "")
    assert quote(other, alone=False) == (source.replace(*SWAP), name)
    assert other(torch.ones(2), torch.tensor(0.5), torch.tensor(0.0), bitwidth=4).tolist()


def test_a_function_that_does_not_name_it_stays() -> None:
    function = answers("ml_dtypes")["number-formats/encode"]
    assert swapped(function, *SWAP) is function


def test_what_has_no_source_is_refused() -> None:
    with pytest.raises(ImportError, match="it has no source"):
        swapped(torch.add, *SWAP)


def test_functions_of_one_name_are_kept_apart() -> None:
    old, new = ("collections.OrderedDict", "builtins.dict")
    first, second = (lambda: "collections.OrderedDict 1"), (lambda: "collections.OrderedDict 2")
    assert [swapped(f, old, new)() for f in (first, second)] == ["builtins.dict 1", "builtins.dict 2"]


def test_nothing_of_the_library_is_left() -> None:
    (backend,) = resolve("halfeven.aimet")
    assert len(backend.functions) > 30
    for formula, function in backend.functions.items():
        source, _ = quote(function) or ("", "")
        assert source, formula
        assert formula in OTHERWISE or SWAP[1] in source, formula
        assert SWAP[0].partition(".")[0] not in source, formula


def test_what_a_witness_quotes_runs_alone() -> None:
    function = swapped(GIVEN["aimet/affine.quantize"], *SWAP)
    source, name = quote(function) or ("", "")
    scope: dict[str, object] = {}
    exec(source, scope)
    quantize = scope[name]
    assert callable(quantize)
    x, scale, offset = torch.tensor([-1.0, 0.26, 9.0]), torch.tensor(0.5), torch.tensor(1.0)
    assert quantize(tensor=x, scale=scale, offset=offset, qmin=-8, qmax=7).tolist() == [-3.0, 0.0, 7.0]
