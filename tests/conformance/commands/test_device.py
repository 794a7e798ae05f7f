"""A device in C: every command of docs/devices.md, and the bugs compiled into it, by name in the report."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from halfeven.conformance.cli import main
from halfeven.conformance.report import codec

DOCS = Path(__file__).parents[3] / "docs"
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Werror", "-pedantic", "-O2")

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler")


def blocks(language: str) -> list[str]:
    return [
        body for named, body in BLOCK.findall((DOCS / "devices.md").read_text(encoding="utf-8")) if named == language
    ]


def counted(text: str) -> str:
    """How many checks there are is not for this page to say."""
    return re.sub(r" +\d+ ", " N ", text)


def test_every_command_of_the_page_runs(tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(DOCS)
    halfeven = tmp_path / "bin/halfeven"
    halfeven.parent.mkdir()
    halfeven.write_text(
        f"#!{sys.executable}\nimport sys\nfrom halfeven.conformance.cli import main\nsys.exit(main())\n"
    )
    halfeven.chmod(0o755)
    ran = subprocess.run(
        ["sh", "-e", "-c", "".join(blocks("sh"))],
        cwd=tmp_path,
        env=os.environ | {"PATH": f"{halfeven.parent}:{os.environ['PATH']}", "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    conforms, cause = blocks("text")
    assert counted(conforms) in counted(ran.stdout)
    assert ran.stdout.count(cause.strip()) == 2
    assert "not in the bundle" not in (tmp_path / "report/report.json").read_text(encoding="utf-8")


Device = Callable[[Path, Path, str], None]


@pytest.fixture(scope="module")
def device(tmp_path_factory: pytest.TempPathFactory) -> Device:
    home = tmp_path_factory.mktemp("device")

    def run(bundle: Path, answers: Path, bug: str) -> None:
        program = home / (bug or "right")
        if not program.exists():
            defined = [f"-D{bug}"] if bug else []
            subprocess.run(["cc", *STRICT, *defined, "-o", program, DOCS / "device.c", "-lm"], check=True, timeout=60)
        answers.mkdir()
        subprocess.run([program, bundle, answers], check=True, timeout=60)

    return run


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    home = tmp_path_factory.mktemp("bundles")
    words = ["--format", "flat", "--grid", "-128:127"]
    for operation, granularity in (("quantize", "tensor"), ("dequantize", "group")):
        given = [f"onnx:{operation}", *words, "--granularity", granularity, "--out", str(home / operation)]
        assert main(["export", *given]) == 0
    return {path.name: path for path in home.iterdir()}


@pytest.mark.parametrize(
    ("bug", "operation", "cause"),
    [
        ("", "quantize", ""),
        ("", "dequantize", ""),
        ("BUG_ROUND_AWAY", "quantize", "rounds ties away from zero where the document rounds ties to even"),
        ("BUG_RECIPROCAL", "quantize", "multiplies by 1/s where the document divides by s"),
        ("BUG_ZERO_POINT_FIRST", "quantize", "adds the zero point before rounding"),
        ("BUG_GROUP", "dequantize", "differs only with blocks: other than tensor"),
    ],
)
def test_the_report_names_the_bug(
    device: Device, bundles: dict[str, Path], tmp_path: Path, bug: str, operation: str, cause: str
) -> None:
    bundle = bundles[operation]
    device(bundle, tmp_path / "answers", bug)
    status = main(["judge", str(bundle), str(tmp_path / "answers"), "--out", str(tmp_path / "report"), "--name", "npu"])
    report = codec.read_json(tmp_path / "report/report.json")
    assert status == bool(bug)
    assert report.conforms == (not bug)
    assert report.complete
    assert {r.backend for r in report.results} == {"npu"}
    found = {r.cause for r in report.results if r.outcome in {"differs", "explained"}}
    assert all(cause in said for said in found)
    assert bool(found) == bool(bug)


def test_a_bundle_is_tens_of_megabytes(bundles: dict[str, Path]) -> None:
    sizes = [sum(p.stat().st_size for p in bundle.iterdir()) for bundle in bundles.values()]
    assert max(sizes) < 5e7
    assert sum(sizes) > 1e7
