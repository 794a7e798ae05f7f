"""Arguments that are read otherwise are told as that, and never where they are read as given."""

import numpy as np
import pytest
from wild_kernels import BYTE, INT8, Kernel, answered, calls
from wild_kernels.habits import HABITS
from wild_kernels.quantizers import QUANTIZERS, RECIPROCAL

from halfeven.conformance.codes import other
from halfeven.conformance.engine.explain import explain
from halfeven.conformance.engine.fitting.elements import elements_of
from halfeven.conformance.engine.fitting.readings import READINGS, read
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES

ONNX = PROFILES["onnx"]
HALF = next(k for k in QUANTIZERS if k.name == "x * (1 / s)").function


def ones(function) -> Kernel:
    return Kernel("", function, grids=(INT8,))


def narrowed(x, s, z, lo, hi):
    return HALF(x, s, z, lo + 1, hi)


def without_zero(x, s, z, lo, hi):
    return HALF(x, s, 0, lo, hi)


@pytest.mark.parametrize(("function", "reading"), [(narrowed, "narrow grid"), (without_zero, "zero point")])
def test_a_reading_is_named_with_the_choices_that_come_with_it(function, reading: str) -> None:
    kernel = ones(function)
    found = explain(ONNX, [answered(kernel, c) for c in calls(kernel, scales=4)])
    assert found is not None
    [part] = found.parts
    assert (part.reading, {n: {v} for n, (_, v) in part.changes.items()}, part.share) == (reading, RECIPROCAL, 1.0)
    assert part.words.startswith(other()["reading"][reading][1])
    assert part.profile == ""


def test_the_full_grid_where_the_narrow_one_is_given() -> None:
    kernel = Kernel("", lambda x, s, z, lo, hi: HALF(x, s, z, lo - 1, hi), grids=(Grid(-127, 127),))
    found = explain(ONNX, [answered(kernel, c) for c in calls(kernel, scales=4)])
    assert found is not None
    assert [p.reading for p in found.parts] == ["wide grid"]


def test_what_is_read_as_given_has_no_reading() -> None:
    for kernel in (ones(HALF), HABITS[0]):
        found = explain(ONNX, [answered(kernel, c) for c in calls(kernel, scales=4)])
        assert found is not None
        assert [p.reading for p in found.parts] == [""]


def test_readings_have_codes_and_change_one_argument() -> None:
    kernel = Kernel("", HALF, grids=(INT8, BYTE))
    groups = elements_of(ONNX, [answered(kernel, c) for c in calls(kernel, scales=4)])
    assert {*READINGS} <= {*other()["reading"]}
    assert read(groups, "") == groups
    for name in READINGS:
        differ = [
            n
            for n in ("x", "scale", "zero", "lo", "hi", "value")
            for a, b in zip(groups, read(groups, name), strict=True)
            if not np.array_equal(getattr(a, n), getattr(b, n), equal_nan=True)
        ]
        assert differ == {"zero point": ["zero"], "narrow grid": ["lo"], "wide grid": []}[name]
