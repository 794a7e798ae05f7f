"""Kernels as their authors wrote them, in NumPy, torch and C: what is told is true, and what they do is named."""

import os

import numpy as np
import pytest
from wild_kernels import written_numpy, written_torch
from wild_kernels.compiled import compiler
from wild_kernels.written import Written
from wild_kernels.written_c import WRITTEN as WRITTEN_C

from halfeven.conformance import fingerprint
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED, Fingerprint
from halfeven.reference import EvaluationModel

TEXTBOOK = EvaluationModel()
EVERYTHING = os.environ.get("HALFEVEN_EXHAUSTIVE") == "1"
KERNELS = {
    f"{language}: {k.name}": k
    for language, kernels in (
        ("NumPy", written_numpy.WRITTEN),
        ("torch", written_torch.WRITTEN),
        ("C", WRITTEN_C if compiler() else []),
    )
    for k in kernels
}
#: One of each sort; all of them are asked where ``HALFEVEN_EXHAUSTIVE=1`` says so, for some minutes.
SAMPLE = (
    "torch: LSQ's rounding",
    "torch: to int64",
    "torch: x + (xq - x)",
    "NumPy: four bits",
    "C: back, rounded to half",
    "NumPy: astype wraps",
    "NumPy: sum in double",
    "torch: to int8, wraps",
    "C: lrintf",
    "C: lroundf",
    "C: three",
)
ASKED = [name for name in KERNELS if EVERYTHING or name in SAMPLE]


def fingered(kernel: Written) -> Fingerprint:
    with np.errstate(all="ignore"):
        return fingerprint(kernel.function, kernel.operation, kernel.array, dtype=kernel.dtype, seconds=600.0)


def told_falsely(found: Fingerprint, kernel: Written) -> dict[str, str]:
    """The choices told that the kernel does not make."""
    wrong = {}
    for name, value in found.fields.items():
        true = kernel.does.get(name, {getattr(TEXTBOOK, name)})
        said = found.alternatives.get(name, (value,))
        if true is not ... and value != UNDECIDED and not str(value).startswith("depends") and not {*said} & {*true}:
            wrong[name] = str(value)
    return wrong


def unnamed(found: Fingerprint, kernel: Written) -> dict[str, str]:
    """The choices that it makes other than the textbook, and that are not told."""
    told = {"division", "rounding"} & set(found.fields) | set(kernel.does)
    own = {n for n in told if kernel.does.get(n) is not ...}
    return {n: str(found.fields[n]) for n in own if found.fields[n] == UNDECIDED}


def test_there_are_sixty() -> None:
    assert len(KERNELS) >= (60 if compiler() else 45)
    assert set(SAMPLE) <= set(KERNELS) or not compiler()


@pytest.mark.parametrize("name", ASKED)
def test_a_kernel_is_told_truly_and_named(name: str) -> None:
    kernel = KERNELS[name]
    found = fingered(kernel)
    assert found.calls < 200
    assert told_falsely(found, kernel) == {}
    assert kernel.grid in found.about
    if not kernel.named:
        return
    if kernel.where is None:
        assert found.explained
        assert unnamed(found, kernel) == {}
        return
    where, inside = kernel.where
    depending = {n for n, v in found.fields.items() if str(v).startswith("depends on the region (" + where)}
    assert depending
    assert depending <= {*inside, *kernel.does}
    assert not any(str(v).startswith("depends") for n, v in found.fields.items() if n not in depending)


@pytest.mark.skipif(not EVERYTHING, reason="opt-in: HALFEVEN_EXHAUSTIVE=1, some seconds")
def test_what_is_indistinguishable_is_proved() -> None:
    found = fingered(KERNELS["torch: LSQ"])  # limited first, so nothing of how its gradient passes is left
    assert found.fields["half"] == INDISTINGUISHABLE
    assert "half" in found.proofs
