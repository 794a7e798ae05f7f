"""How much of the plan a verdict rests on."""

from collections.abc import Callable
from typing import Any

import pytest

from halfeven.conformance.engine import plan
from halfeven.conformance.report import share as shares
from halfeven.conformance.report.share import requirement_share, share, unmet

Make = Callable[..., Any]


def some(result: Make, ran: int, refused: int, aspect: str = "nan") -> list[Any]:
    return [result(aspect, check=f"c{i}") for i in range(ran)] + [
        result(aspect, "not run", check=f"n{i}", detail="no such grid") for i in range(refused)
    ]


@pytest.mark.parametrize(
    ("given", "meant"),
    [("each", "each"), ("all", "all"), (" any ", "any"), ("90%", "0.9"), ("0.5", "0.5"), ("1", "1.0"), ("0", "0.0")],
)
def test_what_may_be_required(given: str, meant: str) -> None:
    assert requirement_share(given) == meant


@pytest.mark.parametrize("given", ["", "most", "nan", "-0.1", "1.5", "101%", "inf", "90 %%"])
def test_what_may_not(given: str) -> None:
    with pytest.raises(ValueError, match=r"is not accepted: give each, all, any, or a share such as 0\.9 or 90%"):
        requirement_share(given)


def test_each_requirement_is_to_be_checked_at_least_once(result: Make) -> None:
    assert unmet(some(result, 12, 11), "each") == ""
    never = unmet([*some(result, 9, 0), *some(result, 0, 2, "ties")], "each")
    assert never == "1 of 2 requirements were never checked, such as torchao/quantize/ties: no such grid"


def test_a_quarter_of_the_checks_is_to_run(result: Make) -> None:
    assert unmet(some(result, 6, 18), "each") == ""
    few = unmet(some(result, 5, 18), "each")
    assert few == "18 of 23 checks were not run, such as torchao/quantize/nan: no such grid"


@pytest.mark.parametrize(
    ("require", "enough"),
    [("any", True), ("0.75", True), ("0.0", True), ("0.76", False), ("1.0", False), ("all", False)],
)
def test_a_share_of_the_checks(require: str, enough: bool, result: Make) -> None:
    said = unmet(some(result, 3, 1), require)
    assert (said == "") == enough
    assert enough or said == "1 of 4 checks were not run, such as torchao/quantize/nan: no such grid"


def test_what_is_declared_is_not_missed_and_what_ran_of_it_counts(result: Make) -> None:
    results = [*some(result, 3, 0), *some(result, 0, 1, "ties")]
    assert unmet(results, "all", ("torchao/quantize/ties",)) == ""
    assert unmet(results, "all", ("torchao/quantize/nan",)) != ""


def test_what_the_profile_does_not_speak_of_is_no_part(result: Make) -> None:
    beyond = result("undocumented", "not run", check=shares.UNDOCUMENTED)
    assert unmet([*some(result, 1, 0), beyond], "all") == ""
    assert share([*some(result, 1, 1), beyond]) == 0.5
    assert share([beyond]) == share([]) == 0.0
    assert shares.UNDOCUMENTED == plan.UNDOCUMENTED


def test_a_report_conforms_by_backend(result: Make, report: Make) -> None:
    torchao = [result("nan"), result("ties", check="ties")]
    refusing = [result(a, "not run", "onnxruntime", "onnx", check=a, detail="no") for a in ("nan", "ties")]
    assert report(*torchao).conforms
    assert not report(*torchao, *refusing).conforms
    assert report(*torchao, *refusing).unmet.keys() == {"onnxruntime"}
    assert report(*torchao, *refusing).share == 0.5
    assert report(*torchao, *refusing, require="any").conforms
    assert not report(*torchao, complete=False, expected=4, missing=("a::b", "a::c")).conforms
    assert report(*torchao, complete=False, expected=4, missing=("a::b", "a::c")).share == 0.5
    assert not report(*refusing, require="any").conforms


def test_a_check_that_refuses_most_of_its_calls_is_none(result: Make) -> None:
    refusing = result("ties", check="c", asked=10, refused=6, detail="6 calls were not offered: odd zero points")
    said = unmet([*some(result, 9, 0), refusing], "each")
    assert said.startswith("1 of 2 requirements were never checked, or in less than half of their calls, such as ")
    assert share([refusing]) == 0.4
    assert unmet([*some(result, 9, 0), result("ties", check="c", asked=10, refused=5)], "each") == ""
