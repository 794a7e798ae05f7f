"""``halfeven fingerprint``: what it prints, in a process of its own, and its status."""

import json
import shlex
import sys
from pathlib import Path

import pytest

from halfeven.conformance.cli import main

MODULE = """
import os
import numpy as np

def textbook(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale) + zero_point, qmin, qmax)

def reals(q, scale, zero_point):
    return (q.astype(np.float32) - zero_point.astype(np.float32)) * scale

def skewed(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale * np.float32(1.01)) + zero_point, qmin, qmax)

def gone(x, scale, zero_point, *, qmin, qmax):
    os._exit(3)

def own_codes(x, scale, zero_point, *, qmin, qmax):
    return np.clip(np.rint(x / scale) + zero_point, -128, 127)

def float8(x):
    import ml_dtypes
    return x.astype(ml_dtypes.float8_e4m3fn).astype(np.float32)

def rows(x):
    return np.abs(x).max(1) / np.float32(448)

def halves(codes, format, dtype="float32"):
    from halfeven.reference import FORMULAS
    return FORMULAS["number-formats/decode"].function(codes=codes, format=format, dtype=dtype)
"""


@pytest.fixture(autouse=True)
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "fingered.py").write_text(MODULE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_a_function_is_fingerprinted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprint", "fingered:textbook", "--array", "numpy", "--grid", "-128:127", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["fields"]["division"] == "divide"
    assert found["nearest"]["share"] == 1
    assert found["calls"] < 200


def test_words_after_the_name_say_how_it_is_called(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprint", "fingered:reals@numpy,dequantize", "--grid", "int8"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("fingered:reals@numpy,dequantize: dequantize, float32, int8; ")
    assert "form      product: multiplies the difference by s" in said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["fingered:reals@numpy", "--array", "torch"], "@numpy and --array torch are not accepted together"),
        (["fingered:reals@torch,numpy"], "@torch and @numpy are not accepted together"),
        (["fingered:reals@uint8"], "give --grid uint8"),
        (["fingered:reals@number-formats/decode"], "give --formula number-formats/decode"),
        (["fingered:reals@quantize", "--operation", "dequantize"], "give one operation"),
    ],
)
def test_two_ways_to_call_it_are_refused(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprint", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_command_has_its_own_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "device.py"
    script.write_text("import sys; sys.exit(f'given {sys.argv[1:]}')", encoding="utf-8")
    assert main(["fingerprint", f"cmd:{shlex.join([sys.executable, str(script), '--bits=8'])}"]) == 2
    assert "given ['--bits=8']" in capsys.readouterr().err


def test_a_formulas_function_is_fingerprinted(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprint", "fingered:halves", "--array", "numpy", "--formula", "number-formats/decode"]) == 0
    said = capsys.readouterr().out
    assert "last_exponent" in said
    assert "agrees with: number-formats/decode" in said


@pytest.mark.parametrize(
    ("name", "operation", "formula"),
    [("float8", "cast", "number-formats/encode"), ("rows", "scale", "aimet/float_scale")],
)
def test_what_casts_and_chooses_scales_is_fingerprinted(
    name: str, operation: str, formula: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["fingerprint", f"fingered:{name}", "--operation", operation, "--array", "numpy", "--json"]
    assert main(words) == 0
    assert formula in json.loads(capsys.readouterr().out)["profiles"]


def test_codes_that_it_has_whatever_is_told_are_no_difference(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprint", "fingered:own_codes", "--array", "numpy", "--json"]) == 0
    assert "onnx" in json.loads(capsys.readouterr().out)["profiles"]


@pytest.mark.parametrize(("name", "status"), [("skewed", 1), ("gone", 2)])
def test_the_status_says_whether_it_is_explained(name: str, status: int) -> None:
    assert main(["fingerprint", f"fingered:{name}", "--array", "numpy"]) == status


@pytest.mark.parametrize(
    "words",
    [["--operation", "quantise"], ["--array", "jax"], ["--grid", "8"], ["--formula", "x/y"], ["--dtype", "int8"]],
)
def test_what_is_not_accepted_is_said(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fingerprint", "fingered:textbook", *words]) == 2
    assert "is not accepted" in capsys.readouterr().err
