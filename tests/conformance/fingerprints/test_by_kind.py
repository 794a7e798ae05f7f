"""Casts and choices of scales with no formula named: the one that a function is, or the nearest; nothing of silence."""

import ml_dtypes
import numpy as np
import pytest
import torch

from halfeven.conformance import fingerprint
from halfeven.conformance.fingerprints.kinds import candidates
from halfeven.conformance.fingerprints.result import UNDECIDED
from halfeven.conformance.fingerprints.telling import data

F32 = np.float32


def by_torch(x):
    return x.to(torch.float8_e4m3fn)


def saturating(x):
    return np.clip(x, -57344, 57344).astype(ml_dtypes.float8_e5m2)


def cut_off(x):
    return (x.view(np.uint32) & np.uint32(0xFFFF0000)).view(F32)


def half_steps(x):
    return np.maximum(np.abs(x).max() / F32(127.5), np.finfo(F32).eps)


def of_ends(least, most):
    least, most = np.minimum(least, F32(0)), np.maximum(most, F32(0))
    scale = np.maximum((most - least) / F32(255), np.finfo(F32).eps)
    return scale, np.clip(0 - np.rint(least / scale), 0, 255).astype(np.int32)


def of_amax(amax):
    return amax / F32(448)


def twice(x):
    return 2 * x


def test_a_cast_is_found_and_what_saturates() -> None:
    found = fingerprint(by_torch, "cast")
    assert {"number-formats/encode@torch-2.13", "torchao/quantize_affine_float8"} <= set(found.profiles)
    assert found.fields["format"] == "float8_e4m3fn"
    assert (found.fields["overflow"], found.fields["rounding"]) == ("saturate", "half-even")
    assert found.alternatives["number-formats/encode: overflow"] == ("rounded", "beyond-largest")
    assert found.calls < 200
    other = fingerprint(saturating, "cast", "numpy")
    assert (other.fields["exponent_bits"], other.fields["overflow"]) == (5, "saturate")
    assert not set(other.profiles) & {"compressed-tensors/cast_to_fp4"}


def test_a_cast_that_nobody_documents_is_found_by_its_choice() -> None:
    found = fingerprint(cut_off, "cast", "numpy")
    assert (found.fields["format"], found.fields["rounding"]) == ("bfloat16", "toward-zero")
    assert found.explained
    assert found.profiles == ()
    assert found.witnesses["rounding"].other == "half-even"


@pytest.mark.parametrize(
    ("function", "formula", "fields"),
    [
        (
            half_steps,
            "torchao/choose_qparams_affine",
            {"symmetric": "half-steps", "division": "divide", "divisor": 127.5},
        ),
        (of_ends, "torchao/choose_qparams_affine@0.11", {"mapping_type": "ASYMMETRIC", "steps": "between"}),
        (of_amax, "torchao/choose_scale_float8", {"quotient": "divide", "exponent_bits": 4}),
    ],
)
def test_how_a_scale_is_chosen_is_found(function, formula: str, fields: dict[str, object]) -> None:
    found = fingerprint(function, "scale", "numpy")
    assert formula in found.profiles
    assert {n: found.fields[n] for n in fields} == fields
    assert found.calls < 200


@pytest.mark.parametrize("kind", ["cast", "scale", "block scale"])
def test_the_fingerprint_of_a_formula_is_the_formula(kind: str) -> None:
    """Of a document of each kind, with the first settings that answer; the others are like it."""
    name = {"cast": "p3109/Project", "scale": "aimet/scale_and_offset", "block scale": "torchao/to_mx"}[kind]
    x = data(kind, 0, np.dtype(F32))
    one = next(c for c in candidates(kind) if c.formula.id == name and c.answer(x))
    found = fingerprint(lambda x: one.formula.function(**one.arguments(x)), kind, "numpy")
    assert found.explained
    assert one.formula.id in found.profiles


def test_what_no_formula_gives_is_not_named() -> None:
    found = fingerprint(twice, "cast", "numpy")
    assert not found.explained
    assert found.profiles == ()
    assert set(found.fields.values()) == {UNDECIDED}


def raising(x):
    raise RuntimeError("no such thing")


def words(x):
    return "float8"


@pytest.mark.parametrize("kind", ["cast", "scale"])
@pytest.mark.parametrize("function", [raising, words])
def test_what_does_not_answer_is_not_known(function, kind: str) -> None:
    found = fingerprint(function, kind, "numpy")
    assert found.nearest is None
    assert set(found.fields.values()) == {UNDECIDED}
    assert any("no such thing" in said or "an array of numbers is expected" in said for said in found.refused)
