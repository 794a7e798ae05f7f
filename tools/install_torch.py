"""Install the pinned torch into the environment whose Python runs this, but never gigabytes of CUDA without a GPU.

``python tools/install_torch.py CONSTRAINTS PINNED``: CONSTRAINTS holds the line ``torch==VERSION``; PINNED is
written with the version that is there in the end, for the pip calls that follow. Standard library only.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

__all__ = ["cuda_packages", "enough", "main", "pinned"]

OLDEST = (2, 11)
# The first pip whose dry run reads the metadata alone; earlier ones download the packages that they report on.
OLDEST_PIP = (23, 3)
ANY_TORCH = "HALFEVEN_ANY_TORCH"
ADVICE = f"""\
halfeven: the torch that pip finds here is a CUDA build, which would pull these packages: {{packages}}.
This machine shows no NVIDIA GPU, so nothing was installed. Do one of these, then start again:
  - let pip find the CPU build: set PIP_EXTRA_INDEX_URL to the CPU wheel index that the "Get started" page of
    PyTorch shows for your platform (choose "CPU" there);
  - install a torch of {OLDEST[0]}.{OLDEST[1]} or newer into this environment yourself: {{python}} -m pip install ...;
  - set {ANY_TORCH}=1 to accept the large build."""


def main(constraints: Path, result: Path) -> int:
    """Install where needed, and write the version that is there; the exit status is 0, or 1 with advice."""
    version = installed_torch()
    if version is None:
        if (message := _install(pinned(constraints.read_text(encoding="utf-8")))) is not None:
            print(message, file=sys.stderr)
            return 1
        version = installed_torch()
    if version is None:
        print("halfeven: torch was installed, but cannot be imported", file=sys.stderr)
        return 1
    result.write_text(f"torch=={version}\n", encoding="utf-8")
    print(f"halfeven: torch {version}")
    return 0


def pinned(constraints: str) -> str:
    """The version in the line ``torch==VERSION``.

    Raises:
        ValueError: there is no such line.
    """
    found = re.search(r"^torch==(\S+)$", constraints, re.MULTILINE)
    if found is None:
        msg = "the constraints hold no line torch==VERSION"
        raise ValueError(msg)
    return found[1]


def enough(version: str, oldest: tuple[int, int]) -> bool:
    """Whether ``version`` is ``oldest`` or newer."""
    found = re.match(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) >= oldest


def cuda_packages(names: Iterable[str]) -> list[str]:
    """The packages among ``names`` that only a CUDA build of torch needs."""
    plain = (name.lower().replace("_", "-") for name in names)
    return sorted(name for name in plain if name.startswith(("nvidia-", "cuda-", "triton", "pytorch-triton")))


def installed_torch() -> str | None:
    """The version of a torch that imports here and is new enough, else None."""
    script = "import torch; print(torch.__version__)"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    version = ran.stdout.strip()
    return version if ran.returncode == 0 and enough(version, OLDEST) else None


def has_gpu() -> bool:
    """Whether the machine shows an NVIDIA GPU."""
    if Path("/dev/nvidia0").exists():
        return True
    tool = shutil.which("nvidia-smi")
    return tool is not None and subprocess.run([tool, "-L"], capture_output=True, check=False).returncode == 0


def _install(version: str) -> str | None:
    """Install ``version``, its CPU build where one is found; the message if that cannot be."""
    if not enough(_pip("--version").stdout.removeprefix("pip "), OLDEST_PIP):
        _pip("install", "--quiet", f"pip>={OLDEST_PIP[0]}.{OLDEST_PIP[1]}")
        if not enough(_pip("--version").stdout.removeprefix("pip "), OLDEST_PIP):
            return f"halfeven: pip {OLDEST_PIP[0]}.{OLDEST_PIP[1]} or newer is needed: upgrade pip in this environment"
    errors: list[str] = []
    refused: list[str] = []
    for requirement in (f"torch=={version}+cpu", f"torch=={version}"):
        packages = _would_install(requirement, errors)
        if packages is None:
            continue
        refused = cuda_packages(packages)
        if refused and not has_gpu() and os.environ.get(ANY_TORCH, "") in {"", "0"}:
            continue
        print(f"halfeven: installing {requirement}", flush=True)
        if _pip("install", requirement, show=True).returncode == 0:
            return None
        return f"halfeven: pip could not install {requirement}"
    if refused:
        return ADVICE.format(packages=", ".join(refused), python=sys.executable)
    return f"halfeven: pip finds no torch {version} for {sys.executable}; it says:\n" + "\n".join(errors)


def _would_install(requirement: str, errors: list[str]) -> list[str] | None:
    """The names of what pip would install for ``requirement``; None, and a line in ``errors``, if it finds nothing."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        arguments = ("--dry-run", "--quiet", "--ignore-installed", "--only-binary=:all:", "--report", str(report))
        ran = _pip("install", *arguments, requirement)
        if ran.returncode != 0:
            errors.append(ran.stderr.strip()[-2000:])
            return None
        return [item["metadata"]["name"] for item in json.loads(report.read_text(encoding="utf-8"))["install"]]


def _pip(*arguments: str, show: bool = False) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-m", "pip", *arguments]
    return subprocess.run(command, capture_output=not show, text=True, check=False, stdin=subprocess.DEVNULL)


if __name__ == "__main__":
    if len(sys.argv) != 3:  # noqa: PLR2004 - the command and its two arguments
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
