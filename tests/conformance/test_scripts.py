"""Every script of the committed reports is short, calls its library alone, and shows its difference, where that is
installed."""

import re
from pathlib import Path

import pytest

from halfeven.conformance.backends.common import installed
from halfeven.conformance.engine.demonstrate import run_alone
from halfeven.conformance.report.codec import read_json

#: Lines of a script: a graph of four nodes on eight arrays takes 28, the longest of all, and an error to catch 4 more.
LONGEST = 32
REPORTS = sorted((Path(__file__).parents[2] / "reports").glob("*/report.json"))


def test_there_are_reports() -> None:
    assert len(REPORTS) > 10


@pytest.mark.parametrize("path", REPORTS, ids=lambda p: p.parent.name)
def test_every_script_of_a_report_shows_its_difference(path: Path) -> None:
    report = read_json(path)
    scripts = {f"{r.backend} {r.id}": r.witness.script for r in report.results if r.witness and r.witness.reproduced}
    told = [r for r in report.results if r.witness is not None]
    assert scripts or not told, f"{path.parent.name}: no script was run: a resumed run runs none"
    missing = {f"{b.library} {b.version}" for b in report.backends if (installed(b.library) or "") != b.version}
    if scripts and missing:
        pytest.skip(f"not installed: {', '.join(sorted(missing))}")
    assert [name for name, seen in zip(scripts, run_alone([*scripts.values()]), strict=True) if not seen.differs] == []
    assert all(r.witness.reproduced or not r.witness.script for r in told if r.witness)


@pytest.mark.parametrize("path", REPORTS, ids=lambda p: p.parent.name)
def test_every_script_of_a_report_is_short_and_needs_its_library_alone(path: Path) -> None:
    report = read_json(path)
    # Of this package only its operators are called, in the report of the package itself.
    ours = r"halfeven\.optimized\b" if {b.library for b in report.backends} == {"halfeven"} else r"(?!)"
    scripts = {f"{r.backend} {r.id}": r.witness.script for r in report.results if r.witness and r.witness.script}
    assert {name for name, script in scripts.items() if "halfeven" in re.sub(ours, "", script)} == set()
    assert {name for name, script in scripts.items() if re.search(r"^class ", script, re.MULTILINE)} == set()
    lengths = {name: len(script.splitlines()) for name, script in scripts.items()}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}
