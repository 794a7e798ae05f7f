from dataclasses import replace
from typing import Any, get_args

import pytest

from halfeven.conformance.report.diff import diff, to_markdown
from halfeven.conformance.report.model import CONFORMING, OutcomeName, Report

PARTING = ("explained", "differs", "timed out", "crashed")


def one(base: Report, head: Report) -> Any:
    """The one change between the reports."""
    changes = diff(base, head).changes
    assert len(changes) == 1
    return changes[0]


def test_a_report_against_itself(mixed: Report) -> None:
    found = diff(mixed, mixed)
    assert (found.changes, found.problems, found.facts, found.notes) == ((), (), (), ())
    assert not found.regressed
    assert found.compared == 8
    assert "**No regression.** 8 checks ran in both. Changed: nothing." in to_markdown(found)


@pytest.mark.parametrize("after", get_args(OutcomeName))
@pytest.mark.parametrize("before", get_args(OutcomeName))
def test_every_transition(result: Any, report: Any, before: Any, after: Any) -> None:
    anchor = result("anchor", check="anchor")
    found = diff(report(anchor, result("a", before)), report(anchor, result("a", after)))
    kinds = [c.kind for c in found.changes]
    worse = (
        after in PARTING and (before in CONFORMING or PARTING.index(after) > PARTING.index(before))
        if ("not run" not in (before, after))
        else False
    )
    if before == after:
        expected = []
    elif before == "not run":
        expected = ["newly ran"]
    elif after == "not run":
        expected = ["no longer runs"]
    elif worse:
        expected = ["regressed"]
    elif after in CONFORMING and before not in CONFORMING:
        expected = ["fixed"]
    else:
        expected = ["moved"]
    assert kinds == expected
    assert found.regressed == (kinds in (["regressed"], ["no longer runs"]))


def test_regressed_in_words(result: Any, report: Any) -> None:
    base = report(result("a"), result("a", check="b"))
    head = report(result("a", "differs", steps=3), result("a", "differs", check="b", cause="wrong axis"))
    change = one(base, head)
    assert (change.checks, change.steps_before, change.steps_after) == (2, "", "3 code steps")
    text = to_markdown(diff(base, head))
    assert "**Regression: 2 checks.** 2 checks ran in both. Changed: 2 regressed." in text
    assert "exact → differs" in text
    assert "none → 3 code steps" in text
    assert "none → wrong axis" in text


@pytest.mark.parametrize(
    ("change", "said"),
    [({"steps": 3}, "1 code step → 3 code steps"), ({"differing": 5}, "12 → 5"), ({"cause": "y"}, "none → y")],
)
def test_moved_says_from_what_to_what(result: Any, report: Any, change: Any, said: str) -> None:
    base, head = report(result("a", "differs")), report(result("a", "differs", **change))
    assert one(base, head).kind == "moved"
    assert not diff(base, head).regressed
    assert said in to_markdown(diff(base, head))


def test_a_check_that_vanished_is_a_regression(result: Any, report: Any) -> None:
    found = diff(report(result("a"), result("b", check="b")), report(result("a")))
    assert [(c.kind, c.requirement, c.regression) for c in found.changes] == [
        ("no longer runs", "torchao/quantize/b", True)
    ]
    assert found.regressed
    assert "the check is absent" in to_markdown(found)


def test_a_backend_that_is_gone_is_reported_and_no_regression(result: Any, report: Any) -> None:
    other = result("a", backend="onnxruntime", profile="onnx")
    for head in (report(other), report(other, result("b", "not run", detail="torchao is not installed"))):
        found = diff(report(other, result("b")), head)
        assert [(c.kind, c.regression) for c in found.changes] == [("no longer runs", False)]
        assert not found.regressed
    assert "torchao is not installed" in to_markdown(found)


def test_a_new_check_that_differs_is_no_regression(result: Any, report: Any) -> None:
    found = diff(report(result("a")), report(result("a"), result("b", "differs", check="b")))
    assert [(c.kind, c.after) for c in found.changes] == [("newly ran", "differs")]
    assert not found.regressed


@pytest.mark.parametrize("changes", [{"complete": False}, {"expected": 9}])
def test_an_incomplete_head_is_loud_and_a_regression(result: Any, report: Any, changes: Any) -> None:
    found = diff(report(result("a")), report(result("a"), **changes))
    assert found.regressed
    text = to_markdown(found)
    assert text.startswith("**head: Incomplete: 1 of ")
    assert "**Regression.**" in text


def test_an_empty_head_is_a_regression(result: Any, report: Any) -> None:
    for head in (report(), report(result("a", "not run"))):
        found = diff(report(result("a")), head)
        assert found.regressed
        assert "Nothing ran" in to_markdown(found).splitlines()[0]


def test_reports_that_share_no_check_do_not_pass(result: Any, report: Any) -> None:
    found = diff(report(), report(result("a")))
    assert found.regressed
    assert "No check ran in both reports" in to_markdown(found)
    assert "**Not known.** 0 checks ran in both" in to_markdown(found)
    assert "base: Nothing ran" in to_markdown(found)


def test_what_changed_around_stands_at_the_top(result: Any, report: Any) -> None:
    base = report(result("a"))
    old, new = base.environment, base.environment | {"torch": "2.13.0", "cpu": {"capability": "AVX512", "threads": 2}}
    assert old["torch"] == "2.12.0"
    head = report(result("a", "differs"), environment=new, tier="standard")
    found = diff(base, head)
    assert found.facts == (
        ("tier", "quick", "standard"),
        ("torch", "2.12.0", "2.13.0"),
        ("cpu.capability", "AVX2", "AVX512"),
    )
    text = to_markdown(found)
    assert text.index("2.13.0") < text.index("## Regressed")
    assert "The tiers differ, quick and standard" in text


def test_a_new_version_of_a_library_is_a_fact(result: Any, report: Any) -> None:
    base = report(result("a"))
    record = base.backends[0]
    newer = type(record)(**{**record.__dict__, "version": "0.19.0"})
    found = diff(base, report(result("a"), backends=(newer,)))
    assert found.facts == (("torchao: version", "0.18.0", "0.19.0"),)


def test_configurations_are_told_apart(result: Any, report: Any) -> None:
    base = report(result("a", id="one"), result("a", "differs", id="two"))
    found = diff(base, report(result("a", "differs", id="one"), result("a", id="two")))
    assert [(c.kind, c.example) for c in found.changes] == [("regressed", "one"), ("fixed", "two")]


def test_the_same_id_in_several_shapes_counts_once_with_its_worst(result: Any, report: Any) -> None:
    base = report(result("a"), result("a"))
    found = diff(base, report(result("a"), result("a", "differs")))
    assert [(c.kind, c.checks) for c in found.changes] == [("regressed", 1)]
    assert found.compared == 1


def test_fewer_points_are_seen(result: Any, report: Any) -> None:
    found = diff(report(result("a")), report(result("a", points=10)))
    assert found.coverage == (("torchao", 1000, 10),)
    assert "| `torchao` |   1,000 |     10 |".replace(" ", "") in to_markdown(found).replace(" ", "")


def test_a_long_comparison_is_aggregated_and_capped(result: Any, report: Any) -> None:
    names = [(f"aspect-{i % 90}", str(i)) for i in range(900)]
    found = diff(
        report(*(result(a, check=c) for a, c in names)), report(*(result(a, "differs", check=c) for a, c in names))
    )
    assert [c.checks for c in found.changes] == [10] * 90
    text = to_markdown(found)
    assert len(text.splitlines()) < 100
    assert "30 rows more not shown here" in text


def test_reports_of_two_modules_name_the_commands_that_compare_them(result: Any, report: Any) -> None:
    base = report(result("a"), command="halfeven run my:one@numpy --out r3")
    head = report(result("b", backend="onnxruntime"), command="halfeven run 'of us:two'")
    found = diff(base, head)
    assert not found.is_known
    assert "halfeven compare my:one@numpy 'of us:two' asks two backends the same" in found.problems[0]
    broken = diff(replace(base, command="halfeven run 'my:one"), head)
    assert "halfeven compare torchao 'of us:two'" in broken.problems[0]
