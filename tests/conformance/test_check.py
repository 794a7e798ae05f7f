import contextlib
import importlib
import io
import subprocess
import sys
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from halfeven.conformance import Backend, Unsupported, check
from halfeven.reference import Grid
from halfeven.reference.systems import PROFILES


def exact(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax).to(torch.int32)


def reciprocal(x, scale, zero_point, *, qmin, qmax):
    return torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, qmin, qmax).to(torch.int32)


def test_a_plain_function_that_follows_the_document_conforms() -> None:
    verdict = check(exact, profile="onnx")
    assert verdict.conforms
    assert verdict.outcome == "exact"
    assert verdict.witness is None
    assert verdict.points > 1_000_000
    assert "onnx" in str(verdict)


def test_it_is_asked_of_the_grids_that_it_is_made_for() -> None:
    found = check(exact, profile="onnx", grids=("int8",))
    grids = {(g["qmin"], g["qmax"]) for r in found.results if (g := r.configuration.get("grid"))}
    assert grids == {(-128, 127)}
    assert check(exact, profile="onnx", grids=(Grid(-8, 7), "uint4"), first=True).conforms
    with pytest.raises(ValueError, match="grid='float8' is not accepted"):
        check(exact, profile="onnx", grids=("float8",))


def test_one_that_multiplies_by_the_reciprocal_differs_and_the_cause_is_named() -> None:
    verdict = check(reciprocal, profile="onnx", operation="quantize", tier="quick")
    assert not verdict.conforms
    assert verdict.outcome == "differs"
    assert any("multiplies by 1/s where the document divides by s" in r.cause for r in verdict.results)
    w = verdict.witness
    assert w is not None
    assert w.reproduced
    x, scale = (np.uint32(int(v.split()[0], 16)).view(np.float32) for v in (w.x, w.scale))
    zero = float(w.zero)
    grid = next(r.configuration["grid"] for r in verdict.results if r.witness == w)
    expected = np.clip(np.rint(x / scale) + zero, grid["qmin"], grid["qmax"])
    actual = np.clip(np.rint(x * (np.float32(1) / scale)) + zero, grid["qmin"], grid["qmax"])
    assert expected != actual
    assert "reciprocal(" in w.script


def test_the_code_of_nan_is_the_cause_where_nothing_else_differs() -> None:
    """Fields of the arithmetic reproduce it by accident, and would send a reader the wrong way."""
    document = PROFILES["torch.quantize@2.13"]

    def zero_for_nan(x, scale, zero_point, *, qmin, qmax):
        codes = document.quantize(x, scale, zero_point, Grid(qmin, qmax))
        return np.where(np.isnan(x), 0, codes).astype(np.int8 if qmin < 0 else np.uint8)

    verdict = check(zero_for_nan, "torch.quantize@2.13", array="numpy")
    said = {r.cause.rpartition(": ")[2] for r in verdict.results if r.check == "nan" and r.witness}
    assert said == {"gives code 0 for NaN where the document gives qmax for NaN"}


def test_most_checks_refused_is_said_with_the_verdict() -> None:
    calls = []

    def tires(x, scale, zero_point, *, qmin, qmax):
        calls.append(x.shape)
        if len(calls) > 40:
            raise Unsupported("the device is gone")
        return exact(x, scale, zero_point, qmin=qmin, qmax=qmax)

    verdict = check(tires, "onnx", require="any")
    ran = sum(r.outcome != "not run" for r in verdict.results)
    planned = len(verdict.results)
    assert 0 < ran < planned / 2
    said = f"conforms in the {ran} of {planned} checks that ran; {planned - ran} not run: the device is gone"
    assert said in str(verdict)


def test_numpy_arrays() -> None:
    def fn(x, scale, zero_point, *, qmin, qmax):
        assert isinstance(x, np.ndarray)
        return np.clip(np.rint(x / scale) + zero_point, qmin, qmax).astype(np.int32)

    assert check(fn, profile="onnx", array="numpy").conforms


def test_the_other_operations() -> None:
    assert check(lambda q, scale, zero_point: (q.float() - zero_point) * scale, "onnx", "dequantize").conforms
    flipped = check(lambda q, scale, zero_point: (q.float() + zero_point) * scale, "onnx", "dequantize")
    assert flipped.outcome == "differs"
    assert any(
        r.cause == "adds the offset to the code where the document subtracts the zero point from the code"
        for r in flipped.results
    )

    def fake(x, scale, zero_point, *, qmin, qmax):
        return (torch.clamp(torch.round(x / scale) + zero_point, qmin, qmax) - zero_point) * scale

    assert check(fake, "onnx", "fake_quantize").conforms


def test_an_offset_comes_in_its_own_sign() -> None:
    def fn(x, scale, offset, *, qmin, qmax):
        return torch.clamp(torch.round(x / scale) - offset, qmin, qmax)

    assert check(fn, "aimet").conforms


def test_amax_comes_alone() -> None:
    def fn(x, amax, *, qmin, qmax):
        return torch.clamp(torch.round(x * (torch.tensor(float(qmax)) / amax)), qmin, qmax)

    def by_a_python_number(x, amax, *, qmin, qmax):
        # torch divides a Python number by a tensor as the product with the rounded reciprocal.
        return torch.clamp(torch.round(x * (qmax / amax)), qmin, qmax)

    assert check(fn, "pytorch-quantization").conforms
    assert not check(by_a_python_number, "pytorch-quantization").conforms


def test_blocks_are_tried_when_the_function_names_them() -> None:
    seen = set()

    def fn(x, scale, zero_point, *, qmin, qmax, block_size=None):
        seen.add(block_size is None)
        if block_size is not None:
            raise Unsupported("no blocks yet")
        return exact(x, scale, zero_point, qmin=qmin, qmax=qmax)

    verdict = check(fn, "onnx")
    assert seen == {True, False}
    assert verdict.conforms
    assert any(r.outcome == "not run" and r.detail == "no blocks yet" for r in verdict.results)


def test_what_raises_crashed_with_its_traceback() -> None:
    def fn(x, scale, zero_point, *, qmin, qmax):
        if x.numel() > 100:
            msg = "out of order"
            raise OSError(msg)
        return exact(x, scale, zero_point, qmin=qmin, qmax=qmax)

    verdict = check(fn, "onnx")
    assert verdict.outcome == "crashed"
    crashed = [r for r in verdict.results if r.outcome == "crashed"]
    assert all("out of order" in r.detail for r in crashed)
    assert any(r.outcome == "exact" for r in verdict.results), "the rest runs on"


def test_nothing_ran_is_no_pass() -> None:
    def fn(x, scale, zero_point, *, qmin, qmax):
        raise Unsupported("nothing at all")

    verdict = check(fn, "onnx")
    assert not verdict.conforms
    assert verdict.outcome == "not run"
    assert verdict.points == 0


def test_bad_arguments_name_what_is_accepted() -> None:
    with pytest.raises(ValueError, match=r"profile='onx'.*onnx"):
        check(exact, "onx")
    with pytest.raises(ValueError, match=r"operation='quantise'.*quantize"):
        check(exact, "onnx", "quantise")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"tier='slow'.*quick"):
        check(exact, "onnx", tier="slow")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"array='jax'.*torch"):
        check(exact, "onnx", array="jax")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="give a function"):
        check(3, "onnx")
    with pytest.raises(ValueError, match="profile=None is not accepted for exact: give it"):
        check(exact)


def test_a_waiver_allows_its_steps_at_ties_and_must_bite() -> None:
    def waived(steps, fn):
        waivers = {"onnx/quantize/nearest-code": steps, "onnx/quantize/zero-point-after-rounding": steps}
        return check(Backend("waived", "onnx", {"quantize": fn}, grids=("int8", "uint8"), waivers=waivers))

    verdict = waived(1, reciprocal)
    assert verdict.conforms
    assert verdict.outcome == "budgeted"
    idle = waived(1, exact)
    assert not idle.conforms
    assert any("remove it" in r.cause for r in idle.results)

    def two_off(x, scale, zero_point, *, qmin, qmax):
        return torch.clamp(reciprocal(x, scale, zero_point, qmin=qmin, qmax=qmax) + 2 * (x == x.max()), qmin, qmax)

    assert not waived(1, two_off).conforms


def test_the_script_of_a_witness_shows_it_alone(tmp_path: Path) -> None:
    (tmp_path / "vendor.py").write_text(
        "import torch\n"
        "def quantize(x, scale, zero_point, *, qmin, qmax):\n"
        "    return torch.clamp(torch.floor(x / scale + 0.5) + zero_point, qmin, qmax).to(torch.int32)\n"
    )
    sys.path.insert(0, str(tmp_path))
    try:
        vendor = importlib.import_module("vendor")
        script = check(vendor.quantize, "onnx").witness.script
    finally:
        sys.path.remove(str(tmp_path))
        sys.modules.pop("vendor", None)
    assert len(script.splitlines()) <= 16
    ran = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    expected, actual = ran.stdout.replace("tensor(", " ").split()[:2]
    assert expected.strip("[].,") != actual.strip("[].,()")


def test_the_quotient_of_an_amax_is_that_of_its_scale() -> None:
    def half_away(x, amax, *, qmin, qmax):
        v = x * (torch.tensor(float(qmax)) / amax)
        return torch.clamp(torch.sign(v) * torch.floor(v.abs() + 0.5), qmin, qmax)

    verdict = check(half_away, "pytorch-quantization")
    assert verdict.outcome == "differs"
    assert verdict.witness is not None
    x, amax = (np.uint32(int(v.split()[0], 16)).view(np.float32) for v in (verdict.witness.x, verdict.witness.scale))
    given = verdict.witness.quotient.split()[0]
    grid = next(r.configuration["grid"] for r in verdict.results if r.witness == verdict.witness)
    assert Fraction(given) == Fraction(float(x)) * grid["qmax"] / Fraction(float(amax))


def test_nan_is_judged_where_a_profile_states_it() -> None:
    def stated(x, scale, zero_point, *, qmin, qmax):
        v = torch.round(x * (1.0 / scale)) + zero_point
        q = torch.where(v.isnan(), torch.tensor(float(qmin)), torch.clamp(v, qmin, qmax))
        return (q - zero_point) * scale

    def other(x, scale, zero_point, *, qmin, qmax):
        return torch.where(x.isnan(), torch.tensor(7.0), stated(x, scale, zero_point, qmin=qmin, qmax=qmax))

    assert check(stated, "torch.fake_quantize@2.13", "fake_quantize").conforms
    verdict = check(other, "torch.fake_quantize@2.13", "fake_quantize")
    assert {r.requirement.split("/")[-1] for r in verdict.results if r.outcome == "differs"} == {
        "nan",
        "any-call-shape",
    }


def test_the_witness_of_a_program_runs_beside_it(tmp_path: Path) -> None:
    """Its own module is ``__main__``, which another program cannot import from."""
    program = tmp_path / "recip.py"
    program.write_text(
        "import torch\n"
        "from halfeven.conformance import check\n\n"
        "def recip(x, scale, zero_point, *, qmin, qmax):\n"
        "    return torch.clamp(torch.round(x * (1.0 / scale)) + zero_point, qmin, qmax).to(torch.int32)\n\n"
        "if __name__ == '__main__':\n"
        "    verdict = check(recip, 'onnx')\n"
        "    first, *_, last = script = verdict.witness.script.splitlines()\n"
        "    said = str(verdict)\n"
        "    assert first in said\n"
        "    assert last in said or f'# {len(script) - 12} more lines in .witness.script' in said\n"
        "    print(verdict.witness.script)\n"
    )
    witness = tmp_path / "witness.py"
    witness.write_text(run_python(program))
    assert all(shown(run_python(witness)))


def test_the_witness_of_what_no_module_has_is_quoted_or_says_why() -> None:
    def half_away(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        v = x / scale
        return torch.clamp(torch.sign(v) * torch.floor(abs(v) + 0.5) + zero_point, qmin, qmax)

    held = [half_away]
    for function in (half_away, lambda *a, **k: half_away(*a, **k) + 0, partial(half_away)):
        witness = check(function, "onnx", "quantize").witness
        assert witness is not None
        assert witness.reproduced, witness.unshown
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(witness.script, {})
        assert all(shown(out.getvalue()))
    witness = check(lambda *a, **k: held[0](*a, **k) + 0, "onnx", "quantize", first=True).witness
    assert witness is not None
    assert (witness.script, witness.reproduced) == ("", False)
    assert "<lambda> is in no module that can be imported, and its source cannot be quoted" in witness.unshown


def shown(printed: str) -> tuple[str, str]:
    """What a script expected and what came, which differ."""
    expected, actual = printed.splitlines()[-2:]
    found = expected.removeprefix("expected "), actual.removeprefix("actual   ")
    assert found[0] != found[1]
    return found


def run_python(program: Path) -> str:
    return subprocess.run([sys.executable, program], check=True, capture_output=True, text=True).stdout


def test_an_operation_and_a_formula_are_not_both_accepted() -> None:
    with pytest.raises(ValueError, match="operation='dequantize' is not accepted with formula='onnx/QuantizeLinear'"):
        check(lambda x, y_scale: x, formula="onnx/QuantizeLinear", operation="dequantize")


def test_a_cast_that_makes_infinities_of_some_nans_differs() -> None:
    def encode(x: torch.Tensor, format: Any, overflow: str) -> torch.Tensor:  # noqa: A002 - the formula's own word
        if format != "bfloat16" or x.dtype != torch.float32 or overflow != "special":
            raise Unsupported("another")
        u = x.view(torch.int32).to(torch.int64) & 0xFFFFFFFF
        nearest = (u + 0x7FFF + (u >> 16 & 1)) >> 16
        usual = nearest | 0x40 * torch.isnan(x)  # so that those alone differ that are carried beyond
        return usual.to(torch.int32).to(torch.uint16)

    found = check(encode, formula="number-formats/encode")
    wrong = {r.requirement: r.witness for r in found.results if r.outcome == "differs"}
    assert [*wrong] == ["number-formats/encode/nan-code"]
    [w] = wrong.values()
    assert w is not None
    assert w.reproduced
    assert "np.uint32).view(np.float32)" in w.script, w.script
