"""One value explained: numbers as they are typed, the exact quotient, the steps, the systems, and the choices."""

import json
from dataclasses import replace
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from halfeven.conformance import explain_value
from halfeven.conformance.bits import step
from halfeven.conformance.cli import main
from halfeven.conformance.codes import code_of
from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.explaining.given import TEXTBOOK, Given, by_profile
from halfeven.conformance.explaining.numbers import bits, decimal, exactly, integer, real, whole
from halfeven.conformance.explaining.steps import steps
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.systems import PROFILES, has_own_operations

INT8 = Grid(-128, 127)
S = real("s", "0.1", "float32")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "text", ["0.1", "-2.5e-3", "1/3", "-0", "0", "inf", "-inf", "3e38", "1e-45", "65519.999999999"]
)
def test_a_decimal_is_rounded_once(text: str, dtype: str) -> None:
    found = real("x", text, dtype)
    assert found.dtype == DTYPES[dtype]
    if "inf" in text or not np.isfinite(found):
        assert float(found) == (float(text) if "inf" in text else np.inf)
        return
    exact = Fraction(text)
    both = step(found, np.asarray([-1, 1]))
    off = abs(Fraction(float(found)) - exact)
    assert all(off <= abs(Fraction(float(n)) - exact) for n in both if np.isfinite(n))
    assert not text.startswith("-") or np.signbit(found)


def test_a_decimal_just_above_a_tie_of_two_bfloat16_goes_up() -> None:
    """By way of float64 it would be the tie, and then the even one."""
    assert real("x", "1.00390625000000000000000001", "bfloat16") == ml_dtypes.bfloat16(1.0078125)
    assert real("x", "1.00390625", "bfloat16") == ml_dtypes.bfloat16(1)


@pytest.mark.parametrize(
    ("text", "dtype", "value"),
    [
        ("0x3e800000", "float32", 0.25),
        ("0x3400", "float16", 0.25),
        ("0x3e80", "bfloat16", 0.25),
        ("0xBF800000", "float32", -1),
    ],
)
def test_bits_are_bits(text: str, dtype: str, value: float) -> None:
    found = real("x", text, dtype)
    assert float(found) == value
    assert bits(found) == text.lower()


def test_the_bits_of_a_nan_stay() -> None:
    assert bits(real("x", "0x7fc01234", "float32")) == "0x7fc01234"
    assert np.isnan(real("x", "NaN", "float16"))


@pytest.mark.parametrize("text", ["0x", "0xzz", "0x123456789", "ten", "", "1/0", "--1"])
def test_what_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"x=.* is not accepted"):
        real("x", text, "float32")


def test_whole_numbers() -> None:
    assert (integer("zero", "-3"), integer("zero", "0x10"), integer("zero", np.int8(-1))) == (-3, 16, -1)
    for wrong in ("1.5", 0.5, None, "nan"):
        with pytest.raises(ValueError, match=r"zero=.* is not accepted"):
            integer("zero", wrong)


def test_enough_digits_to_tell_two_numbers_apart() -> None:
    tie = Fraction(5, 2)
    assert exactly(tie + Fraction(1, 10**20), tie) == "2.50000000000000000001"
    assert exactly(Fraction(10**31)) == "1e+31"
    assert decimal(np.float16(2048)) == "2048"
    assert (whole(np.float32(2**31)), whole(np.float32(0.5))) == ("2147483648", "0.5")


def test_the_question_of_the_researcher() -> None:
    found = explain_value(0.25, 0.1, 0, code=3)
    assert (found.exact, found.result) == ("33554432/13421773", "2")
    assert [(s.name, s.number.bits, s.note) for s in found.steps[:1]] == [
        ("quotient", "0x40200000", "a tie, which x / s is not")
    ]
    [group] = found.systems
    assert group.result == "2"
    assert {"onnx", "torchao@0.18", "torch.quantize@2.13"} <= set(group.names)
    alone = {code: c.because for c in found.changes for code in c.codes}
    assert {"HE111", "HE112", "HE117"} <= set(alone)
    assert alone["HE111"] == "float32 makes a tie of 2.49999996"
    assert alone["HE117"] == ""
    assert "HE101" not in alone
    assert all(c.result == "3" for c in found.changes)
    text = str(found)
    assert "33554432/13421773 = 2.49999996, 3.7e-08 below the tie at 2.5" in text
    assert max(map(len, text.splitlines())) <= 100


def test_systems_are_told_apart() -> None:
    found = explain_value("1.55", "0.1", 3)
    by = {name: g.result for g in found.systems for name in g.names}
    assert by["onnx"] == by["torch.quantize@2.13"] == "18", "an fma has no product to round"
    assert by["torchao@0.18"] == by["torch.fake_quantize@2.13"] == "19"
    assert "pytorch-quantization" in found.refused, "it has no zero point"
    wide = {n for n in PROFILES if has_own_operations(n) and "float64" in PROFILES[n].dtypes}
    shown = {name for g in explain_value("1.55", "0.1", dtype="float64").systems for name in g.names}
    assert wide <= shown
    assert "onnx" not in shown


def test_every_system_computes_as_its_profile_does() -> None:
    for x in ("-1.55", "nan", "1e30", "7.3", "-0.0"):
        found = explain_value(x, "0.1", operation="fake_quantize")
        by = {name: g.result for g in found.systems for name in g.names}
        for name in ("torchao@0.18", "aimet", "torch.fake_quantize@2.13", "brevitas"):
            p, offset = PROFILES[name], np.float32 if PROFILES[name].parameters[1] == "offset" else np.int32
            own = p.fake_quantize(np.float32([x]), np.asarray(np.float32(0.1)), np.asarray(0, offset), INT8)
            assert by[name].endswith(f"({bits(own)})"), (x, name)


def test_steps_end_in_the_result() -> None:
    """Of every neighbour of the textbook, in every dtype: the stages are the model's own."""
    compared = 0
    for model in [EvaluationModel(), *EvaluationModel().neighbours(), *(p.model for p in PROFILES.values())]:
        for dtype in ("float32", "float16"):
            for x, zero in (("1.55", 3), ("-7.3", 0), ("1e30", -5), ("nan", 1)):
                given = Given("quantize", real("x", x, dtype).reshape(1), real("s", "0.1", dtype), zero, INT8, dtype)
                p = replace(TEXTBOOK, model=model)
                try:
                    own = by_profile(p, given)
                except ValueError:
                    continue
                way = steps(p, given)
                assert decimal(way["code"]) == decimal(own), (model, x)
                assert list(way)[-1] == "code"
                compared += 1
    assert compared > 600


def test_pairs_where_no_single_choice_gives_it() -> None:
    """124 + 3 is on the grid, 125 + 3 is not: only who rounds up and wraps gives -128."""
    found = explain_value("124.5", "1", 3, code=-128)
    assert {len(c.codes) for c in found.changes} == {2}
    assert ("HE111", "HE131") in [c.codes for c in found.changes]
    assert "Two choices at once give -128:" in str(found)


def test_what_nothing_gives_and_what_the_document_gives() -> None:
    none = explain_value("0.7", "0.2", 0, code=-100)
    assert none.changes == ()
    assert "No one or two choices that are known give -100." in str(none)
    assert "4 is what the document gives." in str(explain_value("0.7", "0.2", 0, code=4))


def test_the_choice_that_was_made_is_among_those_found() -> None:
    for choice, value in (("division", "reciprocal"), ("rounding", "half-away"), ("nan", "qmin"), ("held", "float16")):
        does = replace(TEXTBOOK, model=replace(EvaluationModel(), **{choice: value}))
        for x in ("1.55", "2.5", "nan", "9.95"):
            given = Given(
                "quantize", real("x", x, "float32").reshape(1), real("s", "0.1", "float32"), 0, INT8, "float32"
            )
            seen, document = (decimal(by_profile(p, given)) for p in (does, TEXTBOOK))
            if seen != document:
                codes = {c for change in explain_value(x, "0.1", code=seen).changes for c in change.codes}
                assert code_of(choice, value) in codes, (choice, x)


def test_dequantize_and_fake_quantize() -> None:
    real_ = explain_value(3, "0.1", 1, operation="dequantize", result="0.2")
    assert real_.result == real_.wanted == "0.2 (0x3e4ccccd)"
    assert real_.says == "0.200000003, which the result is"
    fake = explain_value("1.55", "0.1", operation="fake_quantize", code=16)
    assert [s.name for s in fake.steps] == ["quotient", "rounded", "code", "real"]
    assert "HE101" in {c for change in fake.changes for c in change.codes}
    with pytest.raises(ValueError, match="to dequantize give a code of int8"):
        explain_value(300, "0.1", operation="dequantize")
    with pytest.raises(ValueError, match="code=3 is not accepted with dequantize"):
        explain_value(3, "0.1", operation="dequantize", code=3)


def test_a_formula_and_a_profile_are_claims() -> None:
    found = explain_value("1.55", "0.1", formula="torchao/quantize_affine@0.18", code=15)
    assert found.claim.startswith("torchao/quantize_affine@0.18")
    assert found.result == "16"
    assert found.changes[0].codes == ("HE100",)
    assert explain_value("0.25", "0.1", formula="torchao/fake_quantize_affine").operation == "fake_quantize"
    for wrong in ({"profile": "onx"}, {"formula": "onnx/QuantiseLinear"}, {"formula": "torchao/choose_qparams_affine"}):
        with pytest.raises(ValueError, match="is not accepted"):
            explain_value("1", "1", **wrong)
    with pytest.raises(ValueError, match="give one of them"):
        explain_value("1", "1", profile="onnx", formula="onnx/QuantizeLinear")


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["-1.55", "0.1", "--code", "-16"], "One choice gives -16"),
        (["-1e-3", ".1", "-3"], "-0.0100000003"),
        (["-inf", "0x3dcccccd"], "not finite"),
        (["-nan", "0.1"], "NaN"),
        (["0.25", "0.1", "--grid", "-127:127"], "grid [-127,127]"),
        (["1e400", "0.1"], "exact quotient; x=1e400 is inf in float32, which ends at 3.40282347e+38"),
        (["1e6", "1e400", "--dtype", "float16"], "s=1e400 is inf in float16"),
        (["nan", "0.1", "--code", "nan"], "NaN is what the document gives"),
        (["0.05", "0.1", "--profile", "aimet.frozen", "--operation", "fake_quantize"], "aimet: clamp(round(x / s)"),
        (["-1e400", "nan"], "-inf"),
        (["1e-400", "0.1"], "x=1e-400 is 0 in float32, which begins at 1.4012984"),
        (["1", "0.1", "--dtype", "float64"], "= 9.999999999999999,"),
        (["0.25", "0", "--dtype", "bfloat16"], "s is 0"),
        (["1/3", "1e-3", "0", "--grid", "uint16"], "grid uint16"),
        (["he101"], "multiplies by 1/s where the document divides by s"),
        (["HE101", "HE501"], "HE501 returns"),
    ],
)
def test_the_command(words: list[str], shown: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words]) == 0
    assert shown in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "give a code such as HE101"),
        (["1", "2", "3", "4"], "give a code such as HE101"),
        (["HE177"], "the nearest are HE174, HE175, HE176"),
        (["HEX"], "give HE and a number"),
        (["x", "0.1"], "x='x' is not accepted"),
        (["1", "0.1", "--dtype", "int8"], "dtype='int8' is not accepted"),
        (["1", "0.1", "99999999999"], "give one that int32 holds"),
        (["1", "0.1", "3", "--profile", "pytorch-quantization"], "has no zero point"),
        (["3", "0.1", "--operation", "dequantize", "--profile", "brevitas"], "documents quantize, fake_quantize"),
        (["1", "0.1", "--operation", "round"], "operation='round' is not accepted"),
        (["1", "0.1", "--code", "nan"], "code='nan' is not accepted: x / s is a number here, give a code of int8"),
        (["1", "0.1", "--code", "300"], "code='300' is not accepted: give one of int8, -128 to 127"),
        (["1", "0.1", "--result", "3"], "result='3' is not accepted with quantize: give the code that was seen"),
        (["1", "0.1", "--result", "1e400", "--operation", "fake_quantize"], "result='1e400' is not accepted: "),
        (["1e999999999", "0.1"], "x='1e999999999' is not accepted: give an exponent of at most 4 digits"),
        (["1", "1e-99999999"], "scale='1e-99999999' is not accepted: give an exponent of at most 4 digits"),
        (["1", "0.1", "--profile", "foo"], "profile='foo' is not accepted: give one of aimet, "),
        (["1", "0.1", "--grod", "int8"], "did you mean --grid"),
        (["1", "--from", "x.json#HE101"], "with --from"),
        (["--from", "x.json"], "give report.json#ID"),
    ],
)
def test_the_command_refuses(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", *words]) == 2
    assert said in capsys.readouterr().err


def test_json_has_it_all(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "nan", "0.1", "--code", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["result"] == "NaN"
    assert found["x"] == {"value": "NaN", "bits": "0x7fc00000", "dtype": "float32"}
    assert found["changes"][0]["codes"] == ["HE141"]
    assert {g["result"] for g in found["systems"]} >= {"-128", "0", "127"}
