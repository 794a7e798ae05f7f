"""What docs/explain.md shows is what the commands print."""

import re
import shlex
from pathlib import Path

import pytest

from halfeven.conformance.cli import main

PAGE = (Path(__file__).parents[3] / "docs/explain.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"```text\n\$ (halfeven [^\n]+)\n(.*?)\n```", PAGE, re.DOTALL)


def test_the_page_shows_something() -> None:
    assert len(SHOWN) == 2


@pytest.mark.parametrize(("command", "output"), SHOWN, ids=[c for c, _ in SHOWN])
def test_it_is_what_is_printed(command: str, output: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(shlex.split(command)[1:]) == 0
    assert capsys.readouterr().out.strip() == output
