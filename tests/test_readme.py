"""The README's first example prints what the README shows."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CUT = "    ..."  # stands for the middle of what is printed


def blocks(page: str, language: str) -> list[str]:
    return [body for named, body in BLOCK.findall(page) if named == language]


def agrees(shown: list[str], printed: list[str]) -> bool:
    """Whether a text is shown as it was printed; a single cut leaves out at least one line."""
    if CUT not in shown:
        return shown == printed
    at = shown.index(CUT)
    left_out = len(printed) - (len(shown) - 1)
    return left_out > 0 and shown[:at] + printed[at : at + left_out] + shown[at + 1 :] == printed


def test_the_first_example_prints_what_is_shown(tmp_path: Path) -> None:
    page = README.read_text(encoding="utf-8")
    (tmp_path / "example.py").write_text(blocks(page, "python")[0], encoding="utf-8")
    ran = subprocess.run(
        [sys.executable, "example.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | {"COLUMNS": "100"},
    )
    assert ran.returncode == 0, ran.stderr
    shown, printed = blocks(page, "text")[0].splitlines(), ran.stdout.splitlines()
    assert agrees(shown, printed), ran.stdout
    assert all(len(line) <= 100 for line in shown)
    eleven = re.search(r"^The `...` stands for (\w+) lines", page, re.MULTILINE)
    assert eleven is not None
    assert ["ten", "eleven", "twelve"].index(eleven[1]) + 10 == len(printed) - (len(shown) - 1)


def test_the_example_is_the_first_thing_on_the_page() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert lines.index("```python") < 8
    assert lines.index("## Install") < 45


def test_every_example_is_python() -> None:
    examples = blocks(README.read_text(encoding="utf-8"), "python")
    assert len(examples) > 4
    for example in examples:
        ast.parse(example)


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("a b", "a b", True),
        ("a b", "a c", False),
        (f"a {CUT} c", "a b b c", True),
        (f"a {CUT} c", "a c", False),
        (f"a {CUT} c", "a b d", False),
        (f"x {CUT} c", "a b c", False),
    ],
)
def test_agreement(shown: str, printed: str, same: bool) -> None:
    words = [CUT if word == "..." else word for word in shown.split()]
    assert agrees(words, printed.split()) is same
