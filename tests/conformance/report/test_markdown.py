import re
import shlex
import time
from dataclasses import replace
from typing import Any, get_args

import pytest

from halfeven.conformance.report.causes import UNKNOWN
from halfeven.conformance.report.groups import worst
from halfeven.conformance.report.markdown import to_markdown
from halfeven.conformance.report.model import Cause, OutcomeName, Report
from halfeven.conformance.report.words import replay
from halfeven.conformance.requirements import requirements


def tables(markdown: str) -> list[list[list[str]]]:
    """The tables as rows of cells, split where a reader of GitHub's Markdown splits them."""
    found: list[list[list[str]]] = [[]]
    for line in markdown.splitlines():
        if line.startswith("|"):
            found[-1].append([c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]])
        elif found[-1]:
            found.append([])
    return [t for t in found if t]


def row(markdown: str, first: str) -> list[str]:
    """The one row whose first cell is ``first``, in the table of requirements."""
    rows = [r for t in tables(markdown) if t[0][0] == "requirement" for r in t if r[0] == first]
    assert len(rows) == 1
    return rows[0]


def test_verdicts_in_plain_words(mixed: Report) -> None:
    text = to_markdown(mixed)
    assert text.startswith("# Conformance report\n")
    assert (
        "- `torchao` 0.18.0 differs from profile `torchao`: 2 of 6 checks; reproduces `torchao@0.18` bit for bit.\n"
        in text
    )
    assert (
        "- `onnxruntime` 1.31.0 differs from profile `onnx`: 2 of 2 checks (1 check not run)"
        "; 1 not explained; 1 crashed.\n"
    ) in text


def test_a_conforming_backend(result: Any, report: Any) -> None:
    text = to_markdown(report(result(), result("values", operation="dequantize")))
    assert "`torchao` 0.18.0 conforms to profile `torchao`: 2 checks exact, 2,000 values compared." in text
    assert "## Witnesses" not in text
    text = to_markdown(report(result(), result("nan", "implementation-defined", check="nan")))
    assert "conforms to profile `torchao`: of 2 checks 1 exact, 1 implementation-defined." in text


def test_what_was_measured_is_listed_apart_from_what_is_documented(result: Any, report: Any) -> None:
    text = to_markdown(report(result(), result("eps", "as measured", check="eps")))
    assert "conforms to profile `torchao`: of 2 checks 1 exact, 1 as measured." in text
    exact, _, measured = text.partition("As a release was measured to do, where no document says what is right")
    assert "eps" in measured
    assert "eps" not in exact.split("Exact, bit for bit")[1]
    only = to_markdown(report(result("eps", "as measured")))
    assert "conforms to profile `torchao`: of 1 check 1 as measured." in only
    assert "exact" not in only.split("##")[0]


def test_requirement_rows(mixed: Report) -> None:
    text = to_markdown(mixed)
    assert row(text, "`torchao/quantize/odd-zero-point`")[1:] == [
        "explained",
        "2 of 2",
        "2,000",
        "24",
        "3 code steps",
        "as torchao@0.18: adds the zero point before rounding where the document adds the zero point after rounding",
    ]
    assert "- `quantize`: nearest-code (1,000 points)\n" in text
    assert [r for t in tables(text) for r in t if r[0] == "`torchao/quantize/nearest-code`"] == []
    order = [r[1] for t in tables(text) if t[0][0] == "requirement" for r in t[2:]]
    assert order == ["explained", "budgeted", "implementation-defined", "crashed", "differs", "not run"]
    assert row(text, "`torchao/quantize/nan`")[-1] == "seen: NaN gives 0"
    assert row(text, "`onnx/quantize/layout`")[5:] == ["1 code step", "the last block is untouched"]
    assert row(text, "`onnx/quantize/grid`")[1] == "not run"


def test_outcome_counts_by_operation(mixed: Report) -> None:
    counts = next(t for t in tables(to_markdown(mixed)) if "operation" in t[0])
    head, rows = counts[0], {(r[0], r[2]): r for r in counts[2:]}
    assert rows["`torchao`", "quantize"][head.index("explained")] == "2"
    assert rows["`torchao`", "dequantize"][head.index("exact")] == "1"
    assert rows["`onnxruntime`", "quantize"][head.index("not run")] == "1"
    assert rows["`torchao`", "quantize"][head.index("points")] == "5,000"


def test_a_witness_has_everything_to_follow_it(mixed: Report) -> None:
    text = to_markdown(mixed)
    part = text.split("#### `torchao/quantize/odd-zero-point`: explained")[1].split("####")[0]
    cells = dict(r for r in tables(part)[0] if len(r) == 2)
    assert cells["x"] == "`0x3f000000 (0.5)`"
    assert cells["exact quotient"] == "`1/2`"
    assert cells["distance to the nearest tie"] == "`0`"
    assert (cells["expected"], cells["actual"]) == ("`1`", "`2`")
    assert "```python\nimport numpy as np\n" in part
    assert (
        "halfeven run torchao onnxruntime "
        "--item torchao::torchao/quantize/int8/float32/per-tensor/even --out halfeven-replay\n"
    ) in part
    assert text.count("#### `torchao/quantize/odd-zero-point`") == 1  # two checks with one cause: one witness


def test_causes_of_which_one_call_is_shown_stand_over_it_together(result: Any, report: Any) -> None:
    both = (Cause("HE111", "rounds ties away"), Cause("HE123", "adds the half"))
    text = to_markdown(report(result("a", "differs", causes=both)))
    assert "#### HE111 rounds ties away; with HE123 adds the half" in text
    assert text.count("#### HE1") == 1


def test_a_cause_with_a_witness_of_its_own_stands_over_that(apart: Any, report: Any) -> None:
    _, one, other = to_markdown(report(apart)).split("#### HE")
    assert one.startswith("111 rounds\n")
    assert other.startswith("701 narrows (int8)\n")
    assert ["0x3f000000" in part for part in (one, other)] == [True, False]
    assert ["own = 1" in part for part in (one, other)] == [False, True]


def test_that_scripts_were_run_is_said_only_where_there_is_one(result: Any, report: Any) -> None:
    shown = result("a", "differs")
    bare = replace(shown, witness=replace(shown.witness, reproduced=False, unshown="no source"))
    for r in (shown, bare):
        assert ("Each script was run alone" in to_markdown(report(r))) is r.witness.reproduced


def test_a_crash_shows_its_traceback_and_a_missing_witness_is_said(mixed: Report, result: Any, report: Any) -> None:
    assert "RuntimeError: no kernel" in to_markdown(mixed)
    assert "```text\nTraceback\nboom\n```" in to_markdown(mixed)
    assert "so there is no witness" in to_markdown(report(result("nan", "differs", witness=None)))


def test_what_did_not_run_and_why(mixed: Report) -> None:
    part = to_markdown(mixed).split("## What did not run, and why")[1]
    rows = tables(part)[0]
    assert ["`onnxruntime`", "quantize: grid", "1", "int3 is not offered"] in rows
    assert ["`modelopt`", "", "", "nvidia-modelopt is not installed"] in rows


def test_environment_and_legend(mixed: Report, result: Any) -> None:
    late = result("slow", "timed out", check="slow", ended="30 s")
    alike = result("eps", "as measured", check="eps")
    summed = result("sums", "bounded", check="sums")
    text = to_markdown(replace(mixed, results=(*mixed.results, late, alike, summed)))
    assert ["cpu.capability", "AVX2"] in [r for t in tables(text) for r in t]
    assert "CPUExecutionProvider" in text
    legend = text.split("## How to read this")[1]
    for outcome in get_args(OutcomeName):
        assert f"| {outcome} " in legend
    assert "reproduces it bit for bit" in legend


def test_an_incomplete_run_says_so_first(result: Any, report: Any) -> None:
    first = to_markdown(report(result(), expected=1200, complete=False)).splitlines()[0]
    assert first == "**Incomplete: 1 of 1,200 checks finished.**"
    assert to_markdown(report(result(), expected=2)).startswith("**Incomplete: 1 of 2 checks")
    assert to_markdown(report(result(), complete=False)).startswith("**Incomplete: 1 of 1 check")


def test_a_run_in_which_nothing_ran_is_called_a_failure(result: Any, report: Any) -> None:
    for made in (report(), report(result(outcome="not run", detail="no such kernel"))):
        first = to_markdown(made).splitlines()[0]
        assert "Nothing ran" in first
        assert "failure" in first
    assert "did not run against profile `torchao`" in to_markdown(report(result(outcome="not run")))


def test_pipes_newlines_and_markup_in_words_break_no_table(result: Any, report: Any) -> None:
    cause = "a | b\n| c | <script> `tick` *star* __bold__ [link](x)"
    made = report(
        result("nan", "differs", cause=cause, detail="```\nfence | in\n```"),
        result("grid", "not run", check="g", detail=cause),
        environment={"key | x\ny": cause},
        not_run=({"backend": "a|b", "reason": "x\ny|z"},),
    )
    text = to_markdown(made)
    assert tables(text)
    for t in tables(text):
        assert {len(r) for r in t} == {len(t[0])}
    assert "<script>" not in text
    assert r"a \| b \| c \| &lt;script&gt;" in text
    assert "````text\n```\nfence | in\n```\n````" in text


@pytest.mark.parametrize("low", range(len(get_args(OutcomeName))))
def test_the_worst_outcome_of_a_group(low: int) -> None:
    order: tuple[OutcomeName, ...] = (
        "not run",
        "implementation-defined",
        "exact",
        "as measured",
        "bounded",
        "budgeted",
        "explained",
        "differs",
        "timed out",
        "crashed",
    )
    assert set(order) == set(get_args(OutcomeName))
    for high in order[low:]:
        assert worst([order[low], high]) == high == worst([high, order[low]])
    assert worst([]) == "not run"


def test_ten_thousand_results_stay_readable_and_quick(result: Any, report: Any) -> None:
    results = [
        result(
            f"aspect-{i % 200}",
            "differs" if i % 3 else "exact",
            f"backend-{i % 5}",
            check=f"check-{i}",
            cause=f"cause {i % 400}" if i % 3 else "",
        )
        for i in range(10_000)
    ]
    start = time.perf_counter()
    text = to_markdown(report(*results))
    seconds = time.perf_counter() - start
    assert seconds < 2
    assert len(text.splitlines()) < 3000
    for backend in range(5):  # 40 requirements each, whose causes are so many that the witnesses are capped
        assert f"differences of `backend-{backend}` more not shown here; the JSON report has them all." in text


def test_a_cap_says_how_many_are_left_and_hides_no_cause(result: Any, report: Any) -> None:
    many = [result(f"aspect-{i:03}", "differs", check=str(i), cause=UNKNOWN) for i in range(75)]
    rare = result("rare", "differs", check="rare", cause="a rare cause")
    text = to_markdown(report(*many, rare))
    assert "16 requirements more not shown here" in text
    assert text.count("#### ") == 12
    assert "64 differences of `torchao` more not shown here" in text
    assert "#### `torchao/quantize/rare`" in text


def test_a_cause_is_shown_once_whatever_requirements_it_breaks(result: Any, report: Any) -> None:
    both = [result(name, "differs", check=name, cause="multiplies by 1/s") for name in ("nearest-code", "odd")]
    other = result("layout", "differs", check="layout", cause="the layout of the input changes the result")
    text = to_markdown(report(*both, other))
    assert text.count("#### ") == 2
    witness = text.split("#### `torchao/quantize/nearest-code`")[1].split("####")[0]
    assert "Breaks also: `torchao/quantize/odd`." in witness
    assert "multiplies by 1/s. In 2 checks" in witness


def test_the_share_that_was_not_run_is_said_with_the_verdict(result: Any, report: Any) -> None:
    refused = [result(f"n{i}", "not run", check=f"n{i}", detail="not offered") for i in range(23)]
    text = to_markdown(report(result(), *refused, require="any"))
    assert "conforms to profile `torchao` in the 1 of 24 checks that ran: 1 check exact" in text
    text = to_markdown(report(result(), *refused))
    few = "is not judged against profile `torchao`: nothing differs in the 1 of 24 checks that ran"
    assert f"{few}; 23 of 24 requirements were never checked, such as torchao/quantize/n0: not offered." in text


def test_the_witness_whose_script_was_seen_to_differ_is_preferred(result: Any, report: Any) -> None:
    good = result("nan", "differs", check="z")
    w = good.witness
    # Each is worse than the next, though its id comes first.
    others = [
        result("nan", "differs", check="a", witness=None),
        result("nan", "differs", check="b", witness=replace(w, x="bare", script="", reproduced=False)),
        result("nan", "differs", check="c", witness=replace(w, x="unseen", reproduced=False, unshown="3 twice")),
        good,
    ]
    for best, cell in ((2, "`bare`"), (3, "`unseen`"), (4, "`0x3f000000 (0.5)`")):
        text = to_markdown(report(*others[:best]))
        assert ["x", cell] in [r for t in tables(text) for r in t]
        assert ("No script: 3 twice." in text) == (best == 3)
        assert ("```python" in text) == (best == 4)


def test_results_without_a_record_are_not_dropped(result: Any, report: Any) -> None:
    text = to_markdown(report(result("nan", "differs", backend="stranger")))
    assert "`stranger` differs from profile `torchao`: 1 of 1 check" in text


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("halfeven run my.npu:Npu --seed 3", "halfeven run my.npu:Npu --seed 3 --item ID --out halfeven-replay"),
        ("halfeven run npu -n 4 -- -x", "halfeven run npu -n 4 --item ID --out halfeven-replay"),
        ("halfeven run a --out b --resume --item=x", "halfeven run a --item ID --out halfeven-replay"),
        (
            "pytest --halfeven-backend n:N -k x",
            "pytest --halfeven-backend n:N --halfeven-item ID --halfeven-out halfeven-replay",
        ),
    ],
)
def test_the_command_that_replays_a_result(result: Any, report: Any, command: str, said: str) -> None:
    shown = result(id="torchao@0.18/quantize/odd/[-127,127]/float32", backend="my npu")
    made = replay(report(shown, command=command), shown)
    assert shlex.split(made) == [f"my npu::{shown.id}" if w == "ID" else w for w in said.split()]


def test_several_models_and_other_causes_in_the_verdict(result: Any, report: Any) -> None:
    made = [
        result("a", "explained", check="1"),
        result("b", "explained", check="2", cause="multiplies by 1/s where the document divides by s"),
        result("c", "differs", check="3"),
    ]
    assert (
        "3 of 3 checks; reproduces `torchao@0.18` or multiplies by 1/s where the document divides by s bit for bit "
        "in 2 of them; 1 not explained."
    ) in to_markdown(report(*made))
    assert "differs from profile `torchao`: 1 of 1 check.\n" in to_markdown(report(made[2]))


def test_a_library_that_is_absent_does_not_make_a_run_incomplete(result: Any, report: Any) -> None:
    absent = ({"backend": "modelopt", "reason": "not installed"},)
    assert to_markdown(report(result(), expected=2, not_run=absent)).startswith("# Conformance report")


def test_a_witness_is_headed_by_the_sentence_that_it_breaks(result: Any, report: Any) -> None:
    said = next(r for r in requirements("torchao") if r.id == "torchao/quantize/nearest-code")
    text = to_markdown(report(result("nearest-code", "differs"), result("long-gone", "differs")))
    known, gone = (
        text.split(f"#### `torchao/quantize/{name}`")[1].split("####")[0] for name in ("nearest-code", "long-gone")
    )
    assert f"\n> {said.text} ({said.source}; documented)\n" in known
    assert "> " not in gone
