"""What a backend says reaches no terminal and no page as more than text."""

import sys
import unicodedata
from dataclasses import replace
from typing import Any

import pytest

from halfeven.conformance.report.diff import diff
from halfeven.conformance.report.diff import to_markdown as diff_to_markdown
from halfeven.conformance.report.markdown import to_markdown
from halfeven.conformance.report.matrix import matrix
from halfeven.conformance.report.printable import printable
from halfeven.conformance.report.terminal import short, to_text

HOSTILE = "\x1b]0;title\x07\x1b[2J\x00\x7f\x85\x9b31m\u061c\u200b\u2028\u202e\u2066\ufeff\udc80\U000e0041"


def unseen(text: str) -> list[str]:
    """The characters that steer what shows them, the line's end excepted."""
    return [hex(ord(c)) for c in text if c != "\n" and unicodedata.category(c) in {"Cc", "Cf", "Cs", "Zl", "Zp"}]


def test_every_character_that_is_not_seen_is_escaped() -> None:
    every = "".join(map(chr, range(sys.maxunicode + 1)))
    assert unseen(printable(every)) == []
    assert printable("Grüße, x̂ → ½\n", "\n") == "Grüße, x̂ → ½\n"
    assert printable("a\nb") == "a\nb"
    assert printable("a\nb", "") == "a\\nb"
    assert printable("\x1b\u202e\U000e0041") == "\\x1b\\u202e\\U000e0041"


def test_whatever_a_report_says_is_shown_as_text(mixed: Any, result: Any, report: Any) -> None:
    given = dict.fromkeys(("id", "backend", "profile", "operation", "requirement", "check", "cause", "detail"), HOSTILE)
    witness = replace(
        result("a", "differs").witness, **dict.fromkeys(("x", "scale", "zero", "where", "script"), HOSTILE)
    )
    hostile = result(outcome="differs", differing=1, **given, witness=witness)
    refused = replace(hostile, id="other", outcome="not run", points=0, differing=0, steps=0, witness=None)
    whole = report(
        hostile,
        refused,
        command=f"halfeven run {HOSTILE}",
        environment={HOSTILE: HOSTILE},
        backends=(replace(mixed.backends[0], name=HOSTILE, version=HOSTILE, path=HOSTILE, device=HOSTILE),),
        not_run=({"backend": HOSTILE, "reason": HOSTILE},),
    )
    shown = {
        "page": to_markdown(whole),
        "terminal": to_text(whole, 80, "out"),
        "check": short(whole.results),
        "nothing ran": short([refused]),
        "diff": diff_to_markdown(diff(mixed, whole)),
        "matrix": matrix([whole]),
    }
    assert {name: found for name, text in shown.items() if (found := unseen(text))} == {}
    assert all("\\x1b" in text for text in shown.values())


@pytest.mark.parametrize(("field", "longest"), [("cause", 600), ("detail", 16_384), ("ended", 600)])
def test_a_message_of_any_length_is_capped_where_a_result_is_made(field: str, longest: int, result: Any) -> None:
    made = result(outcome="crashed", **{field: "begin " + "A" * 3_000_000 + " end"})
    said = getattr(made, field)
    assert len(said) == longest
    assert said.startswith("begin A")
    assert said.endswith("A end")
    assert " characters left out ... " in said
