"""Kernels of which a few calls tell too much: what differs elsewhere is found, and nothing is told falsely."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import fingerprint
from halfeven.conformance.fingerprints.models import Asked, of_model
from halfeven.conformance.fingerprints.regions import explained, regional
from halfeven.conformance.fingerprints.result import UNDECIDED, Fingerprint
from halfeven.conformance.fingerprints.search import Seen, splitting
from halfeven.reference import EvaluationModel, Grid

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


def least_scale(x, scale, zero_point, *, qmin, qmax, least=1e-7):
    return np.clip(np.rint(x / np.maximum(scale, F32(least))) + zero_point, qmin, qmax)


def by_all_elements(x, scale, zero_point, *, qmin, qmax):
    v = np.floor(x / scale + F32(0.5)) if (x >= 0).all() else np.rint(x / scale)
    return np.clip(v + zero_point, qmin, qmax)


def negated_in_8_bits(q, scale, zero_point):
    return (q.astype(np.int32) + (-zero_point.astype(np.int8)).astype(np.int32)).astype(F32) * scale


def nothing_for_one(q, scale, zero_point):
    return q.astype(F32) if scale == 1 else (q.astype(F32) - F32(zero_point)) * scale


def quick_after_relu(x, scale, zero_point, *, qmin, qmax):
    v = np.floor(x * (F32(1) / scale) + F32(0.5)) if zero_point == qmin else np.rint(x / scale)
    return np.clip(v + zero_point, qmin, qmax)


def slow_with_nan(x, scale, zero_point, *, qmin, qmax):
    v = x / scale
    r = np.rint(v) if np.isnan(x).any() else np.trunc(v + np.copysign(F32(0.5), v))
    return np.clip(r + zero_point, qmin, qmax)


def quick_if_finite(x, scale, zero_point, *, qmin, qmax):
    return by_reciprocal_where(np.isfinite(x).all(), x, scale, zero_point, qmin, qmax)


def away_if_finite(x, scale, zero_point, *, qmin, qmax):
    v = x / scale
    r = np.trunc(v + np.copysign(F32(0.5), v)) if np.isfinite(x).all() else np.rint(v)
    return np.clip(r + zero_point, qmin, qmax)


def long_tails(x, scale, zero_point, *, qmin, qmax):
    v = x / scale
    r, n = np.rint(v), x.size % 16
    if n >= 12:
        r[-n:] = np.trunc(v[-n:] + np.copysign(F32(0.5), v[-n:]))
    return np.clip(r + zero_point, qmin, qmax)


def newton(x, scale, zero_point, *, qmin, qmax):
    r = np.asarray((F32(1) / scale).view(np.uint32) & np.uint32(0xFFFFF800), np.uint32).view(F32)
    return np.clip(np.rint(x * (r * (F32(2) - scale * r))) + zero_point, qmin, qmax)


def by_reciprocal_where(holds, x, scale, zero_point, qmin, qmax):
    v = x * (F32(1) / scale) if holds else x / scale
    return np.clip(np.rint(v) + zero_point, qmin, qmax)


def in_descending_order(x, scale, zero_point, *, qmin, qmax):
    return by_reciprocal_where(x.size > 3 and (np.diff(x) <= 0).all(), x, scale, zero_point, qmin, qmax)


def of_mostly_zeros(x, scale, zero_point, *, qmin, qmax):
    return by_reciprocal_where((x == 0).mean() > 0.5, x, scale, zero_point, qmin, qmax)


def one_more_in_descending_order(x, scale, zero_point, *, qmin, qmax):
    more = x.size > 3 and (np.diff(x) <= 0).all()
    return np.clip(np.rint(x / scale) + zero_point + F32(more), qmin, qmax)


def of_one_value(x, scale, zero_point, *, qmin, qmax):
    v = x / scale
    r = np.trunc(v + np.copysign(F32(0.5), v)) if x.size > 1 and (x == x[0]).all() else np.rint(v)
    return np.clip(r + zero_point, qmin, qmax)


def with_a_zero(x, scale, zero_point, *, qmin, qmax):
    return by_reciprocal_where((x == 0).any(), x, scale, zero_point, qmin, qmax)


def bfloat_by_bits(x):
    u = x.view(np.uint32)
    return ((u + 0x7FFF + ((u >> 16) & 1)) & np.uint32(0xFFFF0000)).view(F32)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_an_inverse_shows_in_16_bits(dtype: str) -> None:
    found = asked(inverse, dtype)
    assert found.fields["division"] == "reciprocal"
    assert found.explained
    assert not {"torchao", "torch.quantized_decomposed"} & set(found.profiles)


@pytest.mark.parametrize(
    ("function", "where"),
    [
        (wraps_twice, "2^7 and more"),
        (least_scale, "with scale 1e-08"),
        (partial(least_scale, least=1e-15), "with scale 1e-16"),
        (one_more_in_descending_order, "in calls in descending order"),
    ],
)
def test_what_is_answered_otherwise_elsewhere_is_told_apart(function: Callable[..., Any], where: str) -> None:
    found = asked(function)
    assert not found.explained
    assert found.profiles == ()
    assert any(where in said for said in found.refused)
    assert {found.fields[n] for n in ENDS} == {UNDECIDED}
    assert (found.fields["division"], found.fields["rounding"]) == ("divide", "half-even")


def test_no_size_is_a_region_by_chance() -> None:
    found = asked(four_decimals)
    assert not found.explained
    assert set(found.fields.values()) == {UNDECIDED}


def test_zero_is_no_even_zero_point() -> None:
    told = asked(quick_without_zero_point).fields["division"]
    assert told == "depends on the region (zero points other than 0): there divide, else reciprocal"


@pytest.mark.parametrize(
    ("function", "where"),
    [(negated_in_8_bits, "with scale 1 and zero point -128"), (nothing_for_one, "with scale 1 and zero point -128")],
)
def test_the_least_zero_point_and_the_scale_1_are_asked(function: Callable[..., Any], where: str) -> None:
    found = fingerprint(function, "dequantize", "numpy", seconds=600.0)
    assert not found.explained
    assert found.profiles == ()
    assert any(where in said for said in found.refused)


@pytest.mark.parametrize(
    ("function", "field", "told"),
    [
        (slow_with_nan, "rounding", "calls without NaN): there half-away, else half-even"),
        (away_if_finite, "rounding", "calls of finite numbers alone): there half-away, else half-even"),
        (quick_if_finite, "division", "calls of finite numbers alone): there reciprocal, else divide"),
        (with_a_zero, "division", "calls without zero): there divide, else reciprocal"),
        (in_descending_order, "division", "calls in descending order): there reciprocal, else divide"),
        (of_mostly_zeros, "division", "calls that are mostly zero): there reciprocal, else divide"),
        (of_one_value, "rounding", "calls of equal elements): there half-away, else half-even"),
        (
            by_all_elements,
            "rounding",
            "calls without negative numbers): there half-away or half-up or half-truncated, else half-even",
        ),
        (
            quick_after_relu,
            "rounding",
            "the least zero point, qmin): there half-away or half-up or half-truncated, else half-even",
        ),
    ],
)
def test_what_a_whole_call_holds_is_a_region(function: Callable[..., Any], field: str, told: str) -> None:
    found = asked(function)
    assert found.fields[field] == f"depends on the region ({told}"
    assert (found.explained, found.profiles) == (False, ())
    does = {"rounding", "division"} if function is quick_after_relu else {field}
    assert {n for n, v in found.fields.items() if str(v).startswith("depends")} == does


def test_of_two_choices_either_of_which_gives_a_region_none_is_told() -> None:
    """Of one tie, away from zero is also what comes of an odd zero point that is fused."""
    textbook = EvaluationModel()
    asked_ = Asked("quantize", np.dtype(F32), Grid(-128, 127), np.dtype(F32))
    usual = [splitting([textbook], asked_, scale, 3) for scale in (0.1, 0.25, 0.7)]
    seen = [Seen(given, of_model(textbook, given)) for given in usual]
    ties = [replace(given, x=np.full_like(given.x, -given.step / 2)) for given in usual]
    away = replace(textbook, rounding="half-away")
    assert regional(explained(some := [*seen, Seen(ties[0], of_model(away, ties[0]))]), some, apart=True) is None
    seen += [Seen(given, of_model(away, given)) for given in ties]
    found = regional(explained(seen), seen, apart=True)
    assert found is not None
    assert found.where.startswith("calls ")
    assert found.fields["rounding"] == found.fields["zero_point"] == UNDECIDED
    assert {"half-even", "half-away"} <= {*found.alternatives["rounding"]}
    assert len(found.alternatives["zero_point"]) > 1


def test_a_tail_is_told_only_where_every_length_of_it_agrees() -> None:
    assert asked(long_tails).fields["rounding"] == UNDECIDED


def test_another_factor_is_as_near_as_it_can_be() -> None:
    found = asked(newton)
    assert found.fields["division"] == "another factor"
    assert found.nearest is not None
    assert " 1 ulp from it" in found.nearest.words


def test_every_nan_is_asked_of_a_cast() -> None:
    found = fingerprint(bfloat_by_bits, "cast", "numpy", seconds=600.0)
    assert (found.fields["format"], found.fields["nan"]) == ("bfloat16", "depends on its bits")
    assert found.profiles == ()
    assert any("not every NaN is answered alike" in said for said in found.refused)


def test_one_code_is_no_grid() -> None:
    with pytest.raises(ValueError, match="one code tells nothing"):
        fingerprint(newton, "quantize", "numpy", grid=(5, 5))
