"""Install the pinned torch into the environment whose Python runs this: its CPU build on a machine without a GPU.

``python tools/install_torch.py CONSTRAINTS PINNED``: CONSTRAINTS holds the line ``torch==VERSION``; PINNED is
written with the version that is there in the end, for the pip calls that follow. Standard library only. In this order:

1. a torch of 2.11 or newer that imports is kept;
2. what pip finds is installed if it is a CPU build, or if there is an NVIDIA GPU, or on macOS;
3. the CPU build comes from PyTorch's own CPU index: torch alone, what it needs comes from where pip always looks;
4. where that index cannot be reached, the CUDA build that pip finds is installed, announced with its size.

``HALFEVEN_TORCH=cpu`` asks for a CPU build also where there is a GPU, and stops before step 4. ``HALFEVEN_TORCH=any``
installs what pip finds, whichever build it is. ``HALFEVEN_TORCH_CPU_INDEX`` is the URL of another index for step 3.
"""

import http.client
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["Plan", "cuda_packages", "enough", "has_gpu", "in_words", "install", "installed_torch", "main", "pinned"]

OLDEST = (2, 11)
# The first pip whose dry run reads the metadata alone; earlier ones download the packages that they report on.
OLDEST_PIP = (23, 3)
CHOICE = "HALFEVEN_TORCH"
INDEX = "HALFEVEN_TORCH_CPU_INDEX"
PYTORCH = "https://download.pytorch.org/whl/cpu"
# How long a server may be silent before it counts as out of reach; pip asks the CPU index twice.
SECONDS = 15


@dataclass(frozen=True)
class Plan:
    """What pip would install for ``requirement``: URLs by package name; none, and pip's message, if it fails."""

    requirement: str
    downloads: Mapping[str, str] = field(default_factory=dict)
    error: str = ""


def main(constraints: Path, result: Path) -> int:
    """Install torch where needed and write its version; the exit status: 0, 1 if that failed, 2 on wrong usage."""
    choice = os.environ.get(CHOICE, "")
    if choice not in {"", "cpu", "any"}:
        print(f"halfeven: {CHOICE} is {choice!r}, and accepts cpu, any or nothing", file=sys.stderr)
        return 2
    version, _ = installed_torch()
    if version is None:
        if (status := install(pinned(constraints.read_text(encoding="utf-8")), choice)) != 0:
            return status
        version, message = installed_torch()
        if version is None:
            print(f"halfeven: torch was installed, but cannot be imported:\n{message}", file=sys.stderr)
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


def in_words(sizes: Sequence[int | None]) -> str:
    """The sum of ``sizes``, in bytes, as a download of one package each; None stands for a size that is not known."""
    known = [size for size in sizes if size is not None]
    if not known:
        return f"{len(sizes)} packages, whose sizes the index does not tell"
    total = sum(known)
    amount = f"{total / 1e9:.1f} GB" if total >= 1e9 else f"{total / 1e6:.1f} MB"  # noqa: PLR2004 - a gigabyte
    if len(known) < len(sizes):
        return f"{len(sizes)} packages, more than {amount} (the sizes of {len(sizes) - len(known)} are not known)"
    return f"{len(sizes)} packages, {amount}"


def installed_torch() -> tuple[str | None, str]:
    """The version, as pip knows it, of a torch that imports here and is new enough, else None; and what Python said.

    The public index has the CUDA build as 2.13.0, which calls itself 2.13.0+cu130: that pip would not find again.
    """
    known = "next((d.version for d in metadata.distributions(name='torch')), torch.__version__)"
    script = f"import torch; from importlib import metadata; print({known})"
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    version = ran.stdout.strip()
    return version if ran.returncode == 0 and enough(version, OLDEST) else None, (ran.stderr.strip() or version)


def has_gpu() -> bool:
    """Whether the machine shows an NVIDIA GPU."""
    if Path("/dev/nvidia0").exists():
        return True
    tool = shutil.which("nvidia-smi")
    return tool is not None and subprocess.run([tool, "-L"], capture_output=True, check=False).returncode == 0


def install(version: str, choice: str) -> int:
    """Install torch ``version`` by steps 2 to 4 above; ``choice`` is "cpu", "any" or "". The exit status is 0 or 1."""
    if choice == "any" or (choice != "cpu" and (sys.platform == "darwin" or has_gpu())):
        return _install(f"torch=={version}")
    print(f"halfeven: asking pip which build of torch {version} it finds", flush=True)
    _upgrade_pip()
    plans = []
    for requirement in (f"torch=={version}", f"torch=={version}+cpu"):
        plan = _would_install(requirement)
        if plan.downloads and not cuda_packages(plan.downloads):
            return _install(requirement)
        plans.append(plan)
    large = next((plan for plan in plans if plan.downloads), None)
    finds = "no torch" if large is None else "only a CUDA build of torch"
    why = f"{CHOICE} is cpu" if choice == "cpu" else "this machine shows no NVIDIA GPU"
    cpu = f"torch=={version}+cpu"
    if _from_cpu_index(cpu, f"pip finds {finds} {version}, and {why}"):
        return _install(cpu)
    if large is None:
        message = f"pip finds no torch {version} for {sys.executable}; it says:\n{plans[0].error}"
        print(f"halfeven: {message}", file=sys.stderr)
        return 1
    if choice == "cpu":
        message = f"no CPU build of torch {version} can be had, and {CHOICE}=cpu refuses the CUDA build that pip finds"
        print(f"halfeven: {message}; nothing was installed", file=sys.stderr)
        return 1
    size = in_words(_sizes(large.downloads.values()))
    print(f"halfeven: going on with the CUDA build of torch {version}: {size} ({CHOICE}=cpu refuses it)", flush=True)
    return _install(large.requirement)


def _install(requirement: str) -> int:
    """Let pip install ``requirement`` from where it always looks; what it says is shown. The exit status is 0 or 1."""
    print(f"halfeven: installing {requirement}", flush=True)
    if _pip("install", requirement, show=True).returncode == 0:
        return 0
    print(f"halfeven: pip could not install {requirement}: its message is above", file=sys.stderr)
    return 1


def _from_cpu_index(requirement: str, why: str) -> bool:
    """Whether pip installed ``requirement``, without what it needs, from the CPU index and nowhere else."""
    index = os.environ.get(INDEX) or PYTORCH
    shown = re.sub(r"//[^/@]*@", "//****@", index)
    print(f"halfeven: {why}: installing {requirement}, and that alone, from {shown}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        # pip also looks where its configuration says, unless these variables say otherwise; empty, they count as unset.
        # PIP_NO_INDEX is left as it is: who sets it wants no index to be asked.
        alone = {"PIP_EXTRA_INDEX_URL": index, "PIP_FIND_LINKS": Path(folder).as_uri()}
        limits = ("--timeout", str(SECONDS), "--retries", "1")
        arguments = ("--no-deps", "--only-binary=:all:", "--index-url", index, *limits, requirement)
        if _pip("install", *arguments, show=True, environment=alone).returncode == 0:
            return True
    print(f"halfeven: {requirement} could not be installed from {shown}: pip's message is above", flush=True)
    return False


def _would_install(requirement: str) -> Plan:
    """What pip would install for ``requirement`` into an empty environment."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.json")
        arguments = ("--dry-run", "--quiet", "--ignore-installed", "--only-binary=:all:", "--report", str(report))
        ran = _pip("install", *arguments, requirement)
        if ran.returncode != 0:
            return Plan(requirement, error=ran.stderr.strip()[-2000:])
        items = json.loads(report.read_text(encoding="utf-8"))["install"]
        return Plan(requirement, {item["metadata"]["name"]: item["download_info"]["url"] for item in items})


def _upgrade_pip() -> None:
    """Have a pip that reports without downloading; an older one, which does both, will do where none is to be had."""
    if enough(importlib.metadata.version("pip"), OLDEST_PIP):
        return
    ran = _pip("install", "--quiet", f"pip>={OLDEST_PIP[0]}.{OLDEST_PIP[1]}")
    if ran.returncode != 0:
        print(f"halfeven: pip could not be upgraded; it says:\n{ran.stderr.strip()[-2000:]}", file=sys.stderr)


def _sizes(urls: Iterable[str]) -> list[int | None]:
    """The size of each download in bytes, or None where its server does not tell."""
    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(_size, urls))


def _size(url: str) -> int | None:
    request = urllib.request.Request(url, method="HEAD")  # noqa: S310 - the URL at which pip found a package
    try:
        with urllib.request.urlopen(request, timeout=SECONDS) as answer:  # noqa: S310
            return int(answer.headers.get("Content-Length", ""))
    except (OSError, ValueError, http.client.HTTPException):
        return None


def _pip(
    *arguments: str, show: bool = False, environment: Mapping[str, str] | None = None
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "pip", *arguments],
        capture_output=not show,
        text=True,
        check=False,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **(environment or {})},
    )


if __name__ == "__main__":
    if len(sys.argv) != 3:  # noqa: PLR2004 - the command and its two arguments
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
