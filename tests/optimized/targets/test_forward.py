"""The forward loops of every target, bit for bit against the reference."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from targets import expected, jobs
from targets.driver import Driver, Job

Target = tuple[Driver, str]
_NARROW = [c for c in jobs.FORWARD if c[1] in {"F16", "BF16"} and c[0] != "Dequantize" and c[3] in {"I8", "U8", c[1]}]


def compare(target: Target, given: Sequence[Job], wanted: Sequence[Any]) -> int:
    """How many elements were compared."""
    driver, isa = target
    count = 0
    for job, found, right in zip(given, driver.answers(isa, given), wanted, strict=True):
        assert found is not None, f"no kernel for {job}"
        (result,) = found
        wrong = expected.differing(result, right.ravel())
        if len(wrong):
            i = int(wrong[0])
            r, c = divmod(i, job.x.shape[1])
            p = c if job.columns else r
            witness = f"x[{r}, {c}]={job.x.flat[i]!r} s={job.s[p]!r} o={job.o[p]!r}"
            pytest.fail(f"{len(wrong)} differ: {witness}: {result[i]!r}, expected {right.flat[i]!r}: {job}")
        count += result.size
    return count


@functools.cache
def asked(of: Callable[[Job], Iterator[Job]], combination: tuple[str, str, str, str]) -> tuple[list[Job], list[Any]]:
    """Jobs of a combination of dtypes and what the reference gives for them, once for all targets."""
    given = list(of(jobs.combination(*combination)))
    return given, [expected.forward(job) for job in given]


@pytest.mark.parametrize("combination", jobs.FORWARD, ids="-".join)
def test_boundaries_and_specials(target: Target, combination: tuple[str, str, str, str]) -> None:
    assert compare(target, *asked(jobs.elements, combination)) > 1000


@pytest.mark.parametrize("combination", jobs.FORWARD, ids="-".join)
def test_lengths_and_places(target: Target, combination: tuple[str, str, str, str]) -> None:
    assert compare(target, *asked(jobs.layouts, combination)) > 10000


@pytest.mark.parametrize("combination", _NARROW, ids="-".join)
def test_all_inputs_of_16_bits(target: Target, combination: tuple[str, str, str, str]) -> None:
    assert compare(target, *asked(jobs.patterns, combination)) == 3 * 2**16


def test_what_no_kernel_is_for(target: Target) -> None:
    driver, isa = target
    none = [Job("forward", np.ones((1, 1), np.float32), out=out, s=np.ones(1), o=np.ones(1)) for out in ("F64", "I64")]
    assert driver.answers(isa, none) == [None, None]
