"""Casts and choices of scales as people write them: what each does is told, and nothing that it does not do."""

from typing import Any

import numpy as np
import pytest
from kind_kernels import Kernel
from kind_kernels.casts import CASTS

from halfeven.conformance import fingerprint
from halfeven.conformance.fingerprints.result import UNDECIDED, Fingerprint


def fingered(kernel: Kernel, kind: str) -> Fingerprint:
    with np.errstate(all="ignore"):
        return fingerprint(kernel.function, kind, kernel.array)


def not_told(found: Fingerprint, kernel: Kernel) -> dict[str, Any]:
    """The choices that a kernel makes and that are told as something else, or not."""
    every = {name: value if isinstance(value, set) else {value} for name, value in kernel.fields.items()}
    return {name: found.fields.get(name) for name, value in every.items() if found.fields.get(name) not in value}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("kernel", CASTS, ids=lambda k: k.name)
def test_a_cast_is_what_it_does(kernel: Kernel) -> None:
    found = fingered(kernel, "cast")
    assert not_told(found, kernel) == {}
    assert found.explained == kernel.all
    assert found.calls < 200


def test_a_sort_of_inputs_that_nothing_known_gives_leaves_the_rest() -> None:
    def odd(x):
        with np.errstate(all="ignore"):
            return np.where(np.isnan(x), np.float16(7), x.astype(np.float16))

    found = fingerprint(odd, "cast", "numpy")
    assert (found.fields["format"], found.fields["rounding"]) == ("float16", "half-even")
    assert found.fields["nan"] == "gives 7.0"
    assert not found.explained


@pytest.mark.parametrize("function", [np.negative, np.rint], ids=["negative", "rint"])
def test_what_is_no_cast_has_no_format(function) -> None:
    found = fingerprint(function, "cast", "numpy")
    assert found.fields.get("format", UNDECIDED) == UNDECIDED
    assert found.profiles == ()
