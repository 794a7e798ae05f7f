"""The text at the end of a run and of ``check``: whole texts, as they look in two widths."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from halfeven.conformance.report.causes import by_cause
from halfeven.conformance.report.model import BackendRecord, Cause, Report, Result, Witness
from halfeven.conformance.report.terminal import short, to_text
from halfeven.conformance.report.words import percent

SHOWN = Path(__file__).parent / "shown"
RECIPROCAL = "multiplies by 1/s where the document divides by s"
BEFORE = "adds the zero point before rounding where the document adds the zero point after rounding"
LONG = "torch.quantized_decomposed.per_channel_group_wider_than_its_column"
ABSENT = "nvidia-modelopt is not installed: pip install halfeven[modelopt]"
Make = Callable[..., Any]


def many(result: Make, report: Make) -> Report:
    """Three backends that differ by more causes than are shown, one that conforms, one that is not installed."""
    names = ("torch.quantized_decomposed.per_channel_group", LONG, "torchao")
    results = [
        result(
            requirement,
            "explained",
            name,
            "onnx",
            check=f"{requirement}{i}",
            cause=f"as torch.quantize@2.13: {RECIPROCAL}",
            causes=(Cause("HE101", RECIPROCAL),),
        )
        for name in names[:2]
        for requirement in ("nearest-code", "zero-point-after-rounding")
        for i in range(9)
    ]
    both = (Cause("HE101", RECIPROCAL), Cause("HE118", BEFORE, "uint8", "98% of the answers"))
    results += [result("odd", "differs", LONG, "onnx", check=f"long{i}", cause="both", causes=both) for i in range(3)]
    results += [
        result(
            "qparams",
            "explained",
            "torchao",
            "onnx",
            check=f"{f}{i}",
            operation=f,
            configuration={"formula": f, "calls": 3},
            cause=f"as torchao 0.18 was measured to do: result[{i}] is 1.0 where the document gives 2.0",
            witness=Witness(
                x="x=[1.0]",
                scale="",
                zero="",
                expected="2.0",
                actual="1.0",
                where=f"result[{i}] is 1.0 where the document gives 2.0",
            ),
        )
        for f in ("choose", "cast")
        for i in range(3)
    ]
    results += [
        result(f"r{i}", "differs", "torchao", "onnx", cause=f"cause number {i}", witness=None) for i in range(7)
    ]
    results += [result("huge", "crashed", "torchao", "onnx", cause="RuntimeError: \x1b[31mno kernel", witness=None)]
    results += [result(f"e{i}", "exact", "mine:Npu", "onnx") for i in range(26)]
    results += [result(f"s{i}", "not run", "torchao", "onnx", detail="int3 is not offered") for i in range(2)]
    backends = tuple(BackendRecord(n, "onnx", "", "", "", "") for n in (*names, "mine:Npu"))
    return report(*results, backends=backends, not_run=({"backend": "modelopt", "reason": ABSENT},))


def refusing(result: Make, report: Make) -> Report:
    """A backend that conforms where it ran, and refused most."""
    results = [result(f"r{i}", "exact", "mine:Npu", "onnx") for i in range(3)]
    results += [result(f"n{i}", "not run", "mine:Npu", "onnx", detail="not offered") for i in range(23)]
    return report(*results, backends=(BackendRecord("mine:Npu", "onnx", "", "", "", ""),))


def incomplete(result: Make, report: Make) -> Report:
    """A run that ended after 3 of 26 checks."""
    results = [result("r0"), result("r1"), result("r2", "crashed", cause="the process died", witness=None)]
    return report(*results, expected=26, complete=False)


def nothing(result: Make, report: Make) -> Report:
    """A run in which every check was refused, and one backend is not installed."""
    refused = [result(f"r{i}", "not run", detail="the device is not there") for i in range(2)]
    return report(*refused, not_run=({"backend": "modelopt", "reason": ABSENT},))


@pytest.mark.parametrize("width", [80, 120])
@pytest.mark.parametrize("make", [many, refusing, incomplete, nothing], ids=lambda make: make.__name__)
def test_the_end_of_a_run_as_it_looks(
    make: Callable[[Make, Make], Report], width: int, result: Make, report: Make
) -> None:
    found = make(result, report)
    shown = to_text(found, width, "halfeven-report") + "\n"
    assert shown == (SHOWN / f"{make.__name__}-{width}.txt").read_text(encoding="utf-8")
    assert all(len(line) <= width for line in shown.splitlines())
    assert all(r.name in shown for r in found.backends), "names are whole"


def test_a_name_of_fifty_characters_has_its_verdict_beside_it_in_eighty_columns(result: Make, report: Make) -> None:
    name = "n" * 50
    results = [result(f"d{i}", "differs", name, "onnx", cause=RECIPROCAL) for i in range(41)]
    results += [result(f"e{i}", "exact", name, "onnx") for i in range(99)] + [result("n", "not run", name, "onnx")]
    shown = to_text(report(*results, backends=(BackendRecord(name, "onnx", "", "", "", ""),)), 80).splitlines()
    assert shown[:3] == [f"{'backend':<50}  verdict  checks  not run", f"{name}  differs  41/140       1%", ""]


def test_a_silent_document_leaves_a_backend_unjudged(result: Make, report: Make) -> None:
    shown = to_text(report(result("nan", "implementation-defined")), 80).splitlines()
    assert shown == [
        "backend  verdict     checks  not run",
        "torchao  not judged       1       0%",
        "",
        "torchao: the document leaves 1 check open",
    ]


def test_what_is_as_measured_has_a_column_of_its_own(result: Make, report: Make) -> None:
    both = result("symmetric"), result("eps", "as measured", check="eps")
    shown = to_text(report(*both), 80).splitlines()
    head = "backend  verdict   checks  as measured  not run"
    assert shown == [head, "torchao  conforms       2            1       0%"]
    assert short(both).startswith("torchao against profile torchao: conforms in 2 checks; 1 as measured; ")


@pytest.mark.parametrize(
    ("part", "whole", "said"),
    [(0, 9, "0%"), (1, 900, "<1%"), (1, 3, "33%"), (899, 900, ">99%"), (9, 9, "100%"), (0, 0, "0%")],
)
def test_a_share_is_none_or_all_only_where_it_is(part: int, whole: int, said: str) -> None:
    assert percent(part, whole) == said


@pytest.mark.parametrize("width", [40, 60, 80, 81, 120])
def test_nothing_is_wider_than_the_terminal_but_a_single_word(width: int, result: Make, report: Make) -> None:
    lines = to_text(many(result, report), width, "out").splitlines()
    assert [line for line in lines if len(line) > width and len(line.split()) > 1] == []


def test_a_control_character_does_not_reach_the_terminal(result: Make) -> None:
    text = short([result("huge", "crashed", cause="\x1b[2J", detail="a\x07\x9b\u202e\x85", witness=None)])
    assert text.replace("\n", "").isprintable()
    assert "\\x1b[2J" in text
    assert "a\\x07\\x9b\\u202e" in text


def test_a_cause_is_one_whatever_requirement_and_backend_show_it(result: Make) -> None:
    results: list[Result] = [
        result("a", "explained", cause=f"as torchao@0.18: {RECIPROCAL}"),
        result("b", "differs", "other", cause=RECIPROCAL),
        result("c", "crashed", cause="boom", witness=None),
        result("d", "exact"),
        result("e", "budgeted", cause="within the waiver"),
    ]
    assert [(g.key[1], len(g.results)) for g in by_cause(results)] == [(RECIPROCAL, 2), ("boom", 1)]


def test_nothing_ran(result: Make) -> None:
    assert short([]) == "nothing ran: no value was compared, so this is a failure"
    assert short([result(outcome="not run", detail="no kernel")]).endswith("\n  no kernel")


def test_short_of_a_conforming_backend(result: Make) -> None:
    head = "torchao against profile torchao: "
    assert short([result(), result("b")]) == f"{head}conforms in 2 checks; 2,000 values compared"
    refused = [result(f"n{i}", "not run", detail="not offered") for i in range(23)]
    said = "conforms in the 1 of 24 checks that ran; 23 not run: not offered; 1,000 values compared"
    assert short([result(), *refused], "any") == head + said
    few = "nothing differs in the 1 of 24 checks that ran, too few to conform: 23 of 24 requirements were never checked"
    assert short([result(), *refused]).startswith(f"{head}{few}, such as torchao/quantize/n0: not offered; ")
    open_ = [result("nan", "implementation-defined")]
    assert short(open_) == f"{head}not judged: the document leaves 1 check open; 1,000 values compared"


def test_short_shows_the_causes_and_the_first_witness_with_its_script(result: Make) -> None:
    text = short([result(), result("nan", "explained", steps=9), result("odd", "differs", cause=RECIPROCAL)])
    lines = text.splitlines()
    assert lines[0] == "torchao against profile torchao: differs in 2 of 3 checks; 3,000 values compared"
    assert lines[1:3] == [
        f"  {RECIPROCAL} (1 check)",
        "  adds the zero point before rounding where the document adds the zero point after rounding (1 check)",
    ]
    assert lines[3] == "  torchao/quantize/odd, by 1 code step:"
    assert lines[4:6] == [
        "    x 0x3f000000 (0.5), scale 0x3f800000 (1.0), zero point 1",
        "    expected 1, got 2",
    ]
    assert text.endswith("    print(expected, actual)")


def test_a_cause_shows_the_witness_that_is_its_own(apart: Result, report: Make) -> None:
    own, of_check = ("x 0x40a00000 (5.0), scale", "x 0x3f000000 (0.5), scale")
    text = to_text(report(apart), 200)
    assert text.index("HE111 rounds") < text.index(of_check) < text.index("HE701 narrows") < text.index(own)
    lines = short([apart]).splitlines()
    [at] = [i for i, line in enumerate(lines) if own in line]
    assert lines[at - 1].startswith("  HE701 ")
    assert sum(of_check in line for line in lines) == 1


def test_short_of_a_crash_ends_with_its_error(result: Make) -> None:
    text = short([result("huge", "crashed", cause="RuntimeError", detail="Traceback\n a\n b\nRuntimeError: boom")])
    assert "torchao/quantize/huge" in text
    assert text.endswith("    RuntimeError: boom")


def test_a_long_script_is_cut_and_says_so(result: Make) -> None:
    longer = replace(result("odd", "differs").witness, script="\n".join(f"line{i}" for i in range(40)))
    text = short([result("odd", "differs", witness=longer)])
    assert text.endswith("    line11\n    # 28 more lines in .witness.script")
