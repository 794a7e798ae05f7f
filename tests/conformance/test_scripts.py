"""Every script of the committed reports shows its difference, run alone where its library is installed."""

from pathlib import Path

import pytest

from halfeven.conformance.backends.common import installed
from halfeven.conformance.engine.demonstrate import run_alone
from halfeven.conformance.report.codec import read_json

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
