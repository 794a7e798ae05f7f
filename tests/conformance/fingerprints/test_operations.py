"""The fingerprint of an operation: what it decides, what it does not, and implementations that are odd."""

import time

import numpy as np
import pytest
import torch
from fingerprint_kernels import (
    F32,
    KERNELS,
    Kernel,
    by_stride,
    half_away,
    in_a_band,
    narrow,
    small_calls,
    textbook,
)

from halfeven.conformance import Unsupported, fingerprint
from halfeven.conformance.engine.call import Answer, Call
from halfeven.conformance.fingerprints import search
from halfeven.conformance.fingerprints.asking import LARGEST, Asking
from halfeven.conformance.fingerprints.result import INDISTINGUISHABLE, UNDECIDED
from halfeven.reference import EvaluationModel


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.function.__name__)
def test_a_kernel_is_what_it_is(kernel: Kernel) -> None:
    found = fingerprint(kernel.function, kernel.operation, kernel.array, seconds=600.0)
    assert {name: found.fields[name] for name in kernel.fields} == kernel.fields
    assert {name: found.alternatives[name] for name in kernel.one_function} == kernel.one_function
    assert found.explained
    assert found.calls < 200
    assert set(found.proofs) == {n for n, v in found.fields.items() if v == INDISTINGUISHABLE}
    assert UNDECIDED not in found.fields.values()
    assert set(kernel.fields) - set(found.witnesses) - set(kernel.one_function) <= {"compute", "overflow"}


def test_profiles_are_those_that_agree_on_everything() -> None:
    assert {"torchao", "onnx"} & set(fingerprint(textbook, array="numpy").profiles)
    assert fingerprint(half_away, array="numpy").profiles == ()


def test_calls_are_short_and_few() -> None:
    sizes = []

    def counting(x, scale, zero_point, *, qmin, qmax):
        sizes.append(x.size)
        return textbook(x, scale, zero_point, qmin=qmin, qmax=qmax)

    found = fingerprint(counting, array="numpy")
    assert found.calls == len(sizes) < 200
    assert max(sizes) <= LARGEST


def test_a_tail_that_rounds_otherwise_is_named() -> None:
    def tailed(x, scale, zero_point, *, qmin, qmax):
        v, body = x / scale, x.size // 8 * 8
        tail = np.trunc(v[body:] + np.copysign(F32(0.5), v[body:]))
        return np.clip(np.concatenate([np.rint(v[:body]), tail]) + zero_point, qmin, qmax)

    found = fingerprint(tailed, array="numpy")
    assert (
        found.fields["rounding"] == "depends on the region (the last n mod 8 elements): there half-away, else half-even"
    )
    assert not found.explained


@pytest.mark.parametrize(
    ("function", "where"),
    [(small_calls, "tensors of more than k elements, k"), (by_stride, "layout padded rows, reversed")],
)
def test_what_depends_on_the_call_is_said_so(function, where: str) -> None:
    found = fingerprint(function, array="numpy", seconds=600.0)
    assert found.fields["division"].startswith(f"depends on the region ({where}")
    assert found.fields["rounding"] == "half-even"
    assert found.calls < 200


def test_a_region_that_has_no_name_decides_nothing_falsely() -> None:
    found = fingerprint(in_a_band, array="numpy", seconds=600.0)
    assert found.fields["rounding"] == UNDECIDED
    assert not found.explained


@pytest.mark.parametrize(("wide", "product", "system"), [(F32, "promoted", "torchao"), (np.float64, "float64", "onnx")])
def test_reals_of_16_bits_that_are_rounded_once_or_twice_are_told_apart(wide, product: str, system: str) -> None:
    def put_back(q, scale, zero_point):
        return ((q.astype(wide) - wide(zero_point)) * wide(scale)).astype(np.float16)

    found = fingerprint(put_back, "dequantize", "numpy", dtype="float16")
    assert product in found.alternatives.get("product", (found.fields["product"],))
    assert {p.partition("@")[0] for p in found.profiles} == {system}


def test_reals_with_more_bits_are_told_rounded_and_are_no_systems() -> None:
    """NumPy multiplies an int32 array by a float32 one in float64."""
    found = fingerprint(lambda q, scale, zero_point: (q - zero_point) * scale, "dequantize", "numpy")
    assert found.explained
    assert found.fields["form"] == "product"
    assert found.rounded
    assert found.profiles == ()
    assert "agrees with: nothing: its reals have more bits" in str(found)


def test_codes_that_leave_out_the_lowest_are_those() -> None:
    found = fingerprint(narrow, array="numpy", seconds=600.0)
    assert "[-127,127]" in found.about
    assert found.explained
    assert found.fields["overflow"] == "saturate"


def test_nan_that_no_model_gives_leaves_the_rest_decided() -> None:
    def cast(x, scale, zero_point, *, qmin, qmax):
        with np.errstate(all="ignore"):
            return textbook(x, scale, zero_point, qmin=qmin, qmax=qmax).astype(np.int32)

    found = fingerprint(cast, array="numpy")
    assert found.fields["nan"].startswith("gives -2147483648")
    assert found.fields["division"] == "divide"
    assert "onnx" in found.profiles


def test_another_grid_is_found() -> None:
    def unsigned(x, scale, zero_point):
        return np.clip(np.rint(x / scale) + zero_point, 0, 255)

    found = fingerprint(unsigned, array="numpy")
    assert "uint8" in found.about
    assert found.explained


def test_what_takes_no_zero_point_says_so() -> None:
    found = fingerprint(lambda x, scale: np.clip(np.rint(x / scale), -128, 127), array="numpy")
    assert found.fields["rounding"] == "half-even"
    assert any("takes no zero point" in said for said in found.refused)


def raising(x, scale, zero_point, *, qmin, qmax):
    raise RuntimeError("no such thing")


def refusing(x, scale, zero_point, *, qmin, qmax):
    raise Unsupported("nothing here")


def short(x, scale, zero_point, *, qmin, qmax):
    return textbook(x, scale, zero_point, qmin=qmin, qmax=qmax)[:-1]


def nothing(x, scale, zero_point, *, qmin, qmax):
    return None


@pytest.mark.parametrize("function", [raising, refusing, short, nothing])
def test_nothing_is_known_of_what_does_not_answer(function) -> None:
    found = fingerprint(function, array="numpy")
    assert set(found.fields.values()) == {UNDECIDED}
    assert found.nearest is None
    assert found.refused


def test_what_no_model_gives_is_not_named() -> None:
    found = fingerprint(lambda x, s, z, *, qmin, qmax: textbook(x * F32(1.01), s, z, qmin=qmin, qmax=qmax), "quantize")
    assert found.nearest is None or found.nearest.share < 1
    skewed = fingerprint(
        lambda x, s, z, *, qmin, qmax: np.clip(np.rint(x / s * F32(1.01)) + z, qmin, qmax), array="numpy"
    )
    assert not skewed.explained
    assert skewed.profiles == ()
    assert skewed.fields["rounding"] == UNDECIDED


def test_state_is_noticed() -> None:
    calls = []

    def learning(x, scale, zero_point, *, qmin, qmax):
        calls.append(1)
        return textbook(x, scale, zero_point, qmin=qmin, qmax=qmax) - (len(calls) > 5)

    assert any("calls before" in said for said in fingerprint(learning, array="numpy").refused)


def test_time_is_limited_and_nothing_found_is_lost() -> None:
    found = fingerprint(textbook, array="numpy", seconds=0.0)
    assert found.calls <= 1
    assert any("time is up" in said for said in found.refused)


def test_the_time_between_calls_does_not_count() -> None:
    """A slow machine thinks for longer, and says the same."""
    asking = Asking(Slept(), seconds=0.5)
    for _ in range(3):
        asking.answers([Call("onnx:quantize", (), {})])
        time.sleep(0.2)
    assert not asking.spent
    assert asking.calls == 3


class Slept:
    """A worker that answers at once."""

    def answers(self, calls):
        return [Answer("returned", np.zeros(1)) for _ in calls]


@pytest.mark.parametrize("parts", [1, 30_000])
def test_what_was_not_followed_is_said_and_nothing_of_it_is_named(parts: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The textbook needs 46,000 parts; ended before, its choices are its own or not decided."""
    whole = fingerprint(textbook, array="numpy")
    monkeypatch.setattr(search, "_PARTS", parts)
    found = fingerprint(textbook, array="numpy")
    assert any("too many models" in said for said in found.refused)
    assert UNDECIDED in found.fields.values()
    assert INDISTINGUISHABLE not in found.fields.values()
    own = EvaluationModel()
    assert all(value in {getattr(own, name), UNDECIDED} for name, value in found.fields.items())
    assert set(found.profiles) <= set(whole.profiles)


def by_scale(x, amax, *, qmin, qmax):
    return np.clip(np.rint(x / (amax / F32(127))), qmin, qmax)


def by_inverse(x, amax, *, qmin, qmax):
    return np.clip(np.rint(x * (F32(1) / (amax / F32(127)))), qmin, qmax)


def by_codes_per_real(x, amax, *, qmin, qmax):
    return np.clip(np.rint(x * (F32(127) / amax)), qmin, qmax)


def away_by_codes_per_real(x, amax, *, qmin, qmax):
    return np.clip(np.trunc(x * (F32(127) / amax) + np.copysign(F32(0.5), x)), qmin, qmax)


def by_one_code_more(x, amax, *, qmin, qmax):
    return np.clip(np.rint(x * (F32(128) / amax)), qmin, qmax)


@pytest.mark.parametrize(
    ("function", "division", "rounding", "named"),
    [
        (by_scale, "divide", "half-even", True),
        (by_inverse, "reciprocal", "half-even", True),
        (by_codes_per_real, "multiply-by-q-per-real", "half-even", True),
        (away_by_codes_per_real, "multiply-by-q-per-real", "half-away", False),
        (by_one_code_more, "multiply-by-q-per-real", "half-even", False),
    ],
)
def test_a_function_of_amax_is_recognised(function, division: str, rounding: str, named: bool) -> None:
    found = fingerprint(function, array="numpy")
    assert found.explained
    assert (found.fields["division"], found.fields["rounding"]) == (division, rounding)
    assert ("pytorch-quantization" in found.profiles) == (function is by_codes_per_real)
    assert bool(found.profiles) == named
    assert any("the real of 128" in said for said in found.refused) == (function is by_one_code_more)


def nothing_of_x(x, scale, zero_point, *, qmin, qmax):
    return np.zeros_like(x)


def identity(x, scale, zero_point, *, qmin, qmax):
    return x


def quotient(x, scale, zero_point, *, qmin, qmax):
    return np.clip(x / scale, qmin, qmax)


def nowhere(x, scale, zero_point, *, qmin, qmax):
    return np.full(x.shape, np.nan, F32)


@pytest.mark.parametrize("function", [nothing_of_x, identity, quotient, nowhere])
def test_what_is_no_quantizer_is_no_known_behaviour(function) -> None:
    found = fingerprint(function, array="numpy")
    assert set(found.fields.values()) == {UNDECIDED}
    assert found.nearest is None
    assert any(said.startswith("no known behaviour: it gives") for said in found.refused)


def test_a_zero_of_the_other_sign_is_another_real() -> None:
    def negated(q, scale, zero_point):
        return -((zero_point.astype(np.int32) - q.astype(np.int32)).astype(F32) * scale)

    found = fingerprint(negated, "dequantize", "numpy")
    assert not found.explained
    assert found.nearest is not None
    assert 0.9 < found.nearest.share < 1


def test_what_becomes_of_nan_is_told_by_zero_points_where_it_is_not_the_same() -> None:
    def but_the_last(x, scale, zero_point, *, qmin, qmax):
        codes = np.clip(np.rint(x / scale) + zero_point, qmin, qmax)
        return np.where(np.isnan(x), np.minimum(zero_point + 2, qmax - 1), codes)

    found = fingerprint(but_the_last, array="numpy")
    assert found.fields["nan"] == UNDECIDED
    [said] = [note for note in found.refused if "for NaN" in note]
    assert "5 with zero point 3" in said
    assert "126 with zero point 127" in said


def test_infinities_that_are_lost_are_a_region_of_their_own() -> None:
    def without_infinities(x, scale, zero_point, *, qmin, qmax):
        v = np.rint(np.where(np.isinf(x), F32(0), x) / scale) + zero_point
        return np.where(np.isnan(x), 0, np.clip(v, qmin, qmax))

    found = fingerprint(without_infinities, array="numpy")
    assert "it is computed otherwise in one region: x is infinite" in found.refused


def test_what_a_call_changes_of_its_process_is_told() -> None:
    def switching(x, scale, zero_point, *, qmin, qmax):
        torch.set_default_dtype(torch.float64)
        return textbook(x, scale, zero_point, qmin=qmin, qmax=qmax)

    found = fingerprint(switching, array="numpy")
    assert found.explained
    assert any("the default dtype was another" in note for note in found.refused)
