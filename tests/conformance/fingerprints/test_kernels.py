"""Kernels as people write them: no choice is told that a kernel does not make, and those that it makes are told."""

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from wild_kernels import NIBBLE, Kernel
from wild_kernels.compiled import COMPILED, compiler
from wild_kernels.decoders import DECODERS, FAKES
from wild_kernels.quantizers import QUANTIZERS
from wild_kernels.regional import REGIONAL

from halfeven.conformance import fingerprint
from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED, Fingerprint
from halfeven.reference import EvaluationModel

TEXTBOOK = EvaluationModel()
#: In float64 nothing is rounded but the result: that is the textbook's function, and it is told so.
TEXTBOOKS = "q * s - z * s in double"
#: Where models are followed for more than some seconds.
SLOW = {
    "bfloat16, fake",
    "torch.fake_quantize",
    "fake x * (1 / s)",
    "float16 scale, fake",
    "q * s - z * s, fake",
    "quotient in float16",
    "quotient in bfloat16",
    "aiter, truncates",
    "torch, bfloat16",
    "TensorFlow",
    "Python, floor",
    "float16 scale, double, floor",
}
#: A scale is handed over in float32, in which NumPy then computes with a float16.
PROMOTED = {name: {"compute": {"promoted", "float32"}} for name in ("ORT float16", "float16 throughout")}
EVERYWHERE = [
    k
    for k in [*QUANTIZERS, *DECODERS, *FAKES, *(COMPILED if compiler() else [])]
    if k.zeros and k.name not in {*SLOW, TEXTBOOKS}
]
NO_ZERO_POINT = [k for k in QUANTIZERS if not k.zeros and k.name.startswith("llama")]
#: A call has 4,096 elements at most.
SMALL = [k for k in REGIONAL if not k.large]


def fingered(kernel: Kernel, *, named: bool = True) -> Fingerprint:
    """As its user calls it: without a zero point where it takes none."""
    grid, dtype = kernel.grids[0], DTYPES[kernel.dtype]

    def called(x, scale, zero_point, qmin, qmax):
        with np.errstate(all="ignore"):
            return np.asarray(kernel.function(x, scale[()], int(zero_point), qmin, qmax))

    def decoding(q, scale, zero_point):
        wide = q.astype(np.int16)  # what the kernels are written for: int8 minus a number is int8
        return called(wide, scale, zero_point, grid.qmin, grid.qmax).astype(dtype)

    def coding(x, scale, zero_point, *, qmin, qmax):
        return called(x, scale, zero_point, qmin, qmax)

    def alone(x, scale, *, qmin, qmax):
        return called(x, scale, 8 if grid == NIBBLE else 0, qmin, qmax)

    function = decoding if kernel.operation == "dequantize" else coding if kernel.zeros else alone
    ends = (grid.qmin, grid.qmax) if named else None
    return fingerprint(function, kernel.operation, "numpy", dtype=kernel.dtype, grid=ends, seconds=600.0)


def told_falsely(found: Fingerprint, does: Mapping[str, Any]) -> dict[str, Any]:
    """The choices told that the kernel does not make; of what it does as the textbook any other is false."""
    wrong = {}
    for name, value in found.fields.items():
        true = does.get(name, {getattr(TEXTBOOK, name)})
        said = found.alternatives.get(name, (value,))
        if true is not ... and value != UNDECIDED and not str(value).startswith("depends") and not {*said} & {*true}:
            wrong[name] = value
    return wrong


def test_there_are_forty() -> None:
    assert len(EVERYWHERE) + len(NO_ZERO_POINT) + len(SMALL) > 40
    assert {k.name for k in [*QUANTIZERS, *FAKES]} >= SLOW


def test_a_false_field_is_seen() -> None:
    found = Fingerprint(
        "", "", {"rounding": "half-away", "division": INDISTINGUISHABLE}, {"division": ("low", "range")}
    )
    assert set(told_falsely(found, {})) == {"rounding", "division"}
    assert told_falsely(found, {"rounding": {"half-away"}, "division": {"low"}}) == {}


@pytest.mark.skipif(os.environ.get("HALFEVEN_EXHAUSTIVE") != "1", reason="opt-in: HALFEVEN_EXHAUSTIVE=1, some minutes")
@pytest.mark.parametrize("kernel", [k for k in [*QUANTIZERS, *FAKES] if k.name in SLOW], ids=lambda k: k.name)
def test_a_kernel_of_which_many_models_are_followed_is_what_it_does(kernel: Kernel) -> None:
    test_a_kernel_is_what_it_does(kernel)


@pytest.mark.parametrize("kernel", EVERYWHERE, ids=lambda k: k.name)
def test_a_kernel_is_what_it_does(kernel: Kernel) -> None:
    found = fingered(kernel)
    assert found.explained
    assert found.calls < 200
    assert told_falsely(found, {**kernel.does, **PROMOTED.get(kernel.name, {})}) == {}
    own = {n: v for n, v in kernel.does.items() if v is not ... and n in {"division", "rounding", "form", "held"}}
    assert not own or {n for n in own if found.fields[n] != UNDECIDED}


@pytest.mark.parametrize("kernel", NO_ZERO_POINT, ids=lambda k: k.name)
def test_a_zero_point_that_is_in_the_arithmetic_is_found(kernel: Kernel) -> None:
    found = fingered(kernel)
    assert found.explained
    assert told_falsely(found, kernel.does) == {}
    assert found.fields["division"] == "reciprocal"
    assert any("it has 8" in said for said in found.refused)


@pytest.mark.parametrize("kernel", SMALL, ids=lambda k: k.name)
def test_what_depends_on_the_region_is_said_so(kernel: Kernel) -> None:
    found = fingered(kernel, named=False)
    where, inside = kernel.where
    depending = {n for n, v in found.fields.items() if str(v).startswith("depends on the region (" + where)}
    there = {n for n in {*kernel.does, *inside} if kernel.does.get(n) != inside.get(n)}
    assert depending
    assert depending <= there
    assert told_falsely(found, kernel.does) == {}
    assert not found.explained
