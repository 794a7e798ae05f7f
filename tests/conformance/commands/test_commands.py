"""``export``, ``answer`` and ``judge``: what they write, and what they refuse, with exit status 2."""

import argparse
import json
from pathlib import Path

import pytest

from halfeven.conformance import commands
from halfeven.conformance.cli import main
from halfeven.conformance.commands.export import offer_of
from halfeven.conformance.report import codec
from halfeven.reference import Grid

DYNAMIC = "onnx/DynamicQuantizeLinear"
DEVICE = """
import numpy as np
from halfeven.reference import FORMULAS

class Right:
    profile, array = "onnx", "numpy"
    functions = {"onnx/DynamicQuantizeLinear": FORMULAS["onnx/DynamicQuantizeLinear"].function}

class Wrong(Right):
    functions = {"onnx/DynamicQuantizeLinear": lambda x: (np.zeros(x.shape, np.uint8), np.float32(1), np.uint8(0))}
"""


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_device.py").write_text(DEVICE, encoding="utf-8")
    assert main(["export", DYNAMIC, "--out", "bundle", "--with-expected", "--seed", "5"]) == 0
    return tmp_path / "bundle"


def test_the_reference_agrees_with_itself(bundle: Path) -> None:
    assert main(["judge", "bundle", "bundle/expected", "--name", "npu", "--version", "1.2", "--device", "sim"]) == 0
    report = codec.read_json("halfeven-report/report.json")
    [backend] = report.backends
    assert (backend.name, backend.version, backend.device) == ("npu", "1.2", "sim")
    assert (report.seed, report.tier, report.complete) == (5, "quick", True)
    assert report.command.startswith("halfeven judge bundle bundle/expected")


@pytest.mark.parametrize(("name", "status"), [("Right", 0), ("Wrong", 1)])
def test_a_backend_answers_a_bundle(bundle: Path, name: str, status: int) -> None:
    assert main(["answer", "bundle", "--backend", f"my_device:{name}", "--out", "answers"]) == 0
    assert main(["judge", "bundle", "answers"]) == status


def test_no_expected_answers_unless_they_are_asked_for(tmp_path: Path) -> None:
    assert main(["export", DYNAMIC, "--out", str(tmp_path / "b")]) == 0
    names = {p.name for p in (tmp_path / "b").iterdir()}
    calls = {name for name in names if name.endswith(".safetensors")}
    assert calls
    assert names - calls == {"bundle.id", "bundle.json", "calls.tsv"}


def test_the_reasons_are_the_requirements(bundle: Path) -> None:
    rows = [line.split("\t") for line in (bundle / "calls.tsv").read_text(encoding="utf-8").splitlines()[1:]]
    assert len(rows) == json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))["calls"]
    assert all(row[4] for row in rows)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "onnx/DynamicQuantiseLinear", "--out", "x"], "did you mean onnx/DynamicQuantizeLinear"),
        (["export", "onnx:quantise", "--out", "x"], "give one of quantize, dequantize, fake_quantize"),
        (["export", "onnx", "aimet", "--out", "x"], "belong to onnx, aimet: export one at a time"),
        (["export", "onnx", "--out", "x", "--grid", "3"], "grid='3' is not accepted: give int8"),
        (["export", "onnx", "--out", "x", "--grid", "-128:x"], "expected one argument"),
        (["export", "onnx", "--out", "x", "--grid", "-127:127"], "profile onnx documents no such codes"),
        (["export", "onnx", "--out", "x", "--grid", "7:0"], "qmin=7 is above qmax=0"),
        (["export", "onnx", "--out", "x", "--dtype", "int8"], "dtype='int8' is not accepted"),
        (["export", "onnx", "--out", "x", "--granularity", "row"], "granularity='row' is not accepted"),
        (["export", "onnx", "--out", "x", "--format", "zip"], "format='zip' is not accepted"),
        (["export", "onnx", "--out", "x", "--tier", "slow"], "tier='slow' is not accepted"),
        (["export", DYNAMIC, "--out", "bundle"], "bundle holds something"),
        (["export", "onnx", "--out", "x", "--gird", "int8"], "did you mean --grid"),
        (["judge", "bundle"], "bundle has no folder of answers"),
        (["judge", "bundle", "nowhere"], "nowhere is no folder of answers"),
        (["judge", "nowhere", "bundle"], "nowhere/bundle.json cannot be read"),
        (["judge", "bundle", "bundle"], "0 of"),
        (["answer", "bundle", "--backend", "onnx", "--out", "x"], "backend"),
        (["answer", "nowhere", "--backend", "my_device:Right", "--out", "x"], "nowhere/bundle.json cannot be read"),
    ],
)
def test_what_is_wrong_is_said(bundle: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    capsys.readouterr()
    try:
        status = main(words)
    except SystemExit as end:  # argparse's own
        status = end.code  # type: ignore[assignment]
    assert status == 2
    shown = capsys.readouterr()
    assert said in shown.err
    assert shown.out == ""


def test_an_offer_is_made_of_words() -> None:
    made = offer_of(["onnx:dequantize"], ["float16"], ["-128:127", "uint4"], ["tensor", "group"])
    assert made.operations == {"dequantize": ("qmin", "qmax", "block_size", "dtype")}
    assert made.grids == (Grid(-128, 127), Grid(0, 15))
    assert (made.dtypes, made.granularities, made.profile) == (("float16",), ("tensor", "group"), "onnx")
    assert offer_of(["torchao/choose_qparams_affine@0.18"]).functions == ("torchao/choose_qparams_affine",)


def test_every_option_is_known_to_the_parser() -> None:
    for name, module in commands.COMMANDS.items():
        parser = argparse.ArgumentParser(name)
        module.add(parser)
        own = {word for action in parser._actions for word in action.option_strings} - {"-h", "--help"}
        assert {*module.OPTIONS} == own
