from typing import Any

from halfeven.conformance.report.model import Report
from halfeven.conformance.report.summary import short, to_text


def test_one_line_per_backend_the_worst_first(mixed: Report) -> None:
    lines = to_text(mixed).splitlines()
    assert lines[0].split() == [
        *("backend", "profile", "exact", "impl.-defined", "budgeted", "explained"),
        *("differs", "crashed", "not", "run", "points", "worst", "difference"),
    ]
    assert lines[2].split() == ["onnxruntime", "1.31.0", "onnx", "1", "1", "1", "1,000", "1", "code", "step"]
    assert lines[3].split()[:3] == ["torchao", "0.18.0", "torchao"]
    assert lines[3].endswith("6,000  3 code steps")
    assert lines[4] == "not run: modelopt: nvidia-modelopt is not installed"


def test_many_backends_fit_a_terminal(result: Any, report: Any) -> None:
    names = [f"backend-{i}" for i in range(30)]
    made = [result(backend=name, outcome="differs" if name == "backend-29" else "exact") for name in names]
    absent = tuple({"backend": f"absent-{i}", "reason": "not installed"} for i in range(9))
    lines = to_text(report(*made, not_run=absent, complete=False)).splitlines()
    assert len(lines) < 25
    assert lines[0].startswith("Incomplete: 30 of 30 checks")
    assert lines[3].startswith("backend-29")
    assert "16 backends more; the report has them all." in lines
    assert lines[-1] == "not run: 6 more; the report has them all."


def test_nothing_ran(result: Any, report: Any) -> None:
    assert to_text(report()).startswith("Nothing ran")
    assert to_text(report(result(outcome="not run"))).startswith("Nothing ran")
    assert short([]) == "nothing ran: no value was compared, so this is a failure"
    assert short([result(outcome="not run", detail="no kernel")]).endswith("\n  no kernel")


def test_short_of_a_conforming_backend(result: Any) -> None:
    assert short([result(), result("b")]) == "torchao against profile torchao: exact; 0 of 2 checks part, 2,000 points"


def test_short_shows_the_first_witness_with_its_script(result: Any) -> None:
    text = short([result(), result("nan", "explained", steps=9), result("odd", "differs")])
    assert text.startswith("torchao against profile torchao: differs; 2 of 3 checks part, 3,000 points\n")
    assert "torchao/quantize/odd: no known cause (1 code step)" in text
    assert "x 0x3f000000 (0.5), scale 0x3f800000 (1.0), zero 1: expected 1, actual 2" in text
    assert "    print(expected, actual)" in text
    assert len(text.splitlines()) < 25


def test_short_of_a_crash_ends_with_its_error(result: Any) -> None:
    text = short([result("huge", "crashed", cause="RuntimeError", detail="Traceback\n a\n b\nRuntimeError: boom")])
    assert "torchao/quantize/huge: RuntimeError" in text
    assert text.endswith("    RuntimeError: boom")


def test_a_long_script_is_cut_and_says_so(result: Any) -> None:
    witness = result("odd", "differs").witness
    longer = type(witness)(**{**witness.__dict__, "script": "\n".join(f"line{i}" for i in range(40))})
    text = short([result("odd", "differs", witness=longer)])
    assert text.endswith("    line11\n    # 28 lines more in .witness.script")
