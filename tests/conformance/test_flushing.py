"""A process in which flush-to-zero is on before anything is asked, as a library built with fast math leaves it."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from halfeven.conformance import check, compare, fingerprint
from halfeven.conformance.environment import FLUSHED, flushes_to_zero


@pytest.fixture
def flushing() -> Iterator[None]:
    torch.set_flush_denormal(True)
    yield
    torch.set_flush_denormal(False)


def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    return np.clip(np.rint(x / scale) + zero_point, qmin, qmax).astype(np.int8 if qmin < 0 else np.uint8)


def products(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
    """With flush-to-zero on, subnormal inputs are 0, whatever the scale."""
    return quantize(x * np.float32(1), scale, zero_point, qmin=qmin, qmax=qmax)


def once(x):
    """Rounded to bfloat16; a subnormal float32 is multiplied by 1 first."""
    with np.errstate(all="ignore"):
        return (x * np.float32(1)).astype(ml_dtypes.bfloat16)


@pytest.mark.usefixtures("flushing")
def test_a_fingerprint_says_so_and_tells_what_the_function_does_there() -> None:
    found = fingerprint(once, "cast", "numpy")
    assert FLUSHED in found.refused
    assert (found.fields["format"], found.fields["rounding"]) == ("bfloat16", "half-even")
    assert found.fields["subnormals"] == "flushed"
    assert flushes_to_zero()


@pytest.mark.usefixtures("flushing")
def test_a_check_says_so_each_time() -> None:
    for _ in range(2):
        found = check(quantize, "onnx", "quantize", array="numpy", first=True)
        assert found.notes == (FLUSHED,)
        assert f"note: {FLUSHED}" in str(found)


@pytest.mark.usefixtures("flushing")
def test_both_sides_of_a_comparison_run_with_it() -> None:
    found = compare(products, products, "onnx", array="numpy")
    assert found.same


def test_without_it_nothing_is_said() -> None:
    found = fingerprint(once, "cast", "numpy")
    assert FLUSHED not in found.refused
    assert found.fields["subnormals"] == "kept"
    assert check(quantize, "onnx", "quantize", array="numpy", first=True).notes == ()
