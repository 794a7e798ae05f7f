"""Kernels of which a few calls tell too much: what differs elsewhere is found, and nothing is told falsely."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import fingerprint
from halfeven.conformance.fingerprints.result import UNDECIDED, Fingerprint

F32 = np.float32
ENDS = ("overflow", "integer", "clamp")


def asked(function: Callable[..., Any], dtype: str = "float32") -> Fingerprint:
    with np.errstate(all="ignore"):
        return fingerprint(function, "quantize", "numpy", dtype=dtype, seconds=600.0)


def inverse(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x * (F32(1) / scale)) + zero_point, qmin, qmax)


def wraps_twice(x, scale, zero_point, *, qmin, qmax):
    """The sum wraps in 16 bits, too, which no known behaviour does."""
    return np.clip(np.rint(x / scale).astype(np.int16) + np.int16(zero_point), qmin, qmax)


def four_decimals(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(np.round(x / scale, 4)) + zero_point, qmin, qmax)


def quick_without_zero_point(x, scale, zero_point, *, qmin, qmax):
    v = x * (F32(1) / scale) if zero_point == 0 else x / scale
    return np.clip(np.rint(v) + zero_point, qmin, qmax)


def least_scale(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / np.maximum(scale, F32(1e-7))) + zero_point, qmin, qmax)


def by_all_elements(x, scale, zero_point, *, qmin, qmax):
    v = np.floor(x / scale + F32(0.5)) if (x >= 0).all() else np.rint(x / scale)
    return np.clip(v + zero_point, qmin, qmax)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_inverse_shows_in_16_bits(dtype: str) -> None:
    found = asked(inverse, dtype)
    assert found.fields["division"] == "reciprocal"
    assert found.explained
    assert not {"torchao", "torch.quantized_decomposed"} & set(found.profiles)


@pytest.mark.parametrize(("function", "where"), [(wraps_twice, "2^7 and more"), (least_scale, "with scale 1e-08")])
def test_what_is_answered_otherwise_elsewhere_is_told_apart(function: Callable[..., Any], where: str) -> None:
    found = asked(function)
    assert not found.explained
    assert found.profiles == ()
    assert any(where in said for said in found.refused)
    assert {found.fields[n] for n in ENDS} == {UNDECIDED}
    assert (found.fields["division"], found.fields["rounding"]) == ("divide", "half-even")


@pytest.mark.parametrize("function", [four_decimals, by_all_elements])
def test_no_size_is_a_region_by_chance(function: Callable[..., Any]) -> None:
    found = asked(function)
    assert not found.explained
    assert set(found.fields.values()) == {UNDECIDED}


def test_zero_is_no_even_zero_point() -> None:
    told = asked(quick_without_zero_point).fields["division"]
    assert told == "depends on the region (zero points other than 0): there divide, else reciprocal"
