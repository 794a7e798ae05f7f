"""Try every installed library: one report per library and version, and the matrix of all.

``python tools/reports.py FOLDER [TIER]``. A library that differs is a finding; only a run that came to no result fails.
"""

import subprocess
import sys
from pathlib import Path

from halfeven.conformance.backends.common import installed
from halfeven.conformance.backends.registry import describe
from halfeven.conformance.report.matrix import write_matrix

__all__ = ["main"]

DIFFERS = 1


def main(folder: Path, tier: str = "quick") -> int:
    """Write ``folder/<library>-<version>/`` for each installed library, then the matrix; 1 if a run failed."""
    libraries: dict[str, list[str]] = {}
    for row in describe():
        if (version := installed(row["library"])) is not None:
            version = version.split("+", maxsplit=1)[0]  # the build stands in the report's environment
            libraries.setdefault(f"{row['library']}-{version}", []).append(row["backend"])
    command = [str(Path(sys.executable).with_name("halfeven")), "run", "--tier", tier]
    failed = []
    for name, backends in libraries.items():
        print(f"{name}: {', '.join(backends)}", flush=True)
        if subprocess.run([*command, "--out", str(folder / name), *backends], check=False).returncode > DIFFERS:
            failed.append(name)
        for kept in ("journal.jsonl", "planned.json", "lock"):  # for an interrupted run; the report has what they say
            (folder / name / kept).unlink(missing_ok=True)
    write_matrix(folder)
    for name in failed:
        print(f"{name}: the run came to no result", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
