"""Compiles the driver and the kernels, for this processor and for aarch64, and says how what was made is run."""

import ast
import fcntl
import functools
import hashlib
import os
import platform
import shutil
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ISAS", "KERNELS", "MACHINES", "SETTINGS", "Machine", "built", "edited"]

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "optimized/kernels"
_DRIVER = Path(__file__).with_name("driver.cpp")
_CACHE = ROOT / "build/targets"


@dataclass(frozen=True)
class Machine:
    """A kind of processor: what compiles for it, what runs that here, and the Debian packages of the two."""

    kind: str
    compiler: str
    more: tuple[str, ...] = ()
    runner: tuple[str, ...] = ()
    packages: str = "g++"

    @property
    def missing(self) -> str:
        """What keeps it from being built or run, or nothing."""
        gone = [tool for tool in (self.compiler, *self.runner) if shutil.which(tool) is None]
        return f"not run: {' and '.join(gone)} not found (Debian: {self.packages})" if gone else ""


MACHINES = {
    "host": Machine(platform.machine(), os.environ.get("CXX", "g++")),
    "aarch64": Machine(
        "aarch64",
        "aarch64-linux-gnu-g++",
        ("-static",),
        ("qemu-aarch64",),
        "g++-aarch64-linux-gnu qemu-user",
    ),
}


def _constants(path: Path, *names: str) -> list[Any]:
    """The values of a module's constants, without running the rest of it."""
    body = [
        node
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Assign) and {t.id for t in node.targets if isinstance(t, ast.Name)} & set(names)
    ]
    found: dict[str, Any] = {}
    exec(compile(ast.Module(body, []), str(path), "exec"), found)
    return [found[name] for name in names]


_, FLAGS = _constants(ROOT / "setup.py", "TARGET", "FLAGS")
#: By the numbers that the kernels know them by. Each has its file in every room.
(ISAS,) = _constants(KERNELS / "__init__.py", "_ISAS")
SETTINGS = (*FLAGS, "-DHALFEVEN_TARGETS=" + " ".join(f"X({isa})" for isa in ISAS))


def built(machine: Machine, kernels: Path = KERNELS, only: str = "") -> Path:
    """The driver with the kernels of a folder; what was compiled before of the same text is taken as it is.

    ``only``, such as ``forward/avx2``, names what alone is of that folder, compiled fast; all else is of the tree.
    """
    paths = [p for room in ("forward", "backward", "reduce") for p in sorted((kernels / "cpu" / room).glob("*.cpp"))]
    sources = [_DRIVER, kernels / "cpu/isa.cpp", *(p for p in paths if p.name != "operators.cpp")]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(lambda source: _one(machine, kernels, source, only), sources))
    name = _hash(machine.compiler, *machine.more, *map(str, objects))
    return _made(_CACHE / f"driver-{name}", [machine.compiler, *machine.more, *map(str, objects)])


def _one(machine: Machine, kernels: Path, source: Path, only: str) -> Path:
    if only and source.is_relative_to(kernels) and f"{source.parent.name}/{source.stem}" != only:
        kernels, source = KERNELS, KERNELS / source.relative_to(kernels)
    changed = bool(only) and source.is_relative_to(kernels) and kernels != KERNELS
    return _compiled(machine, kernels if changed or not only else KERNELS, source, ("-O1",) if changed else ())


def edited(folder: Path, *edits: tuple[str, str, str]) -> Path:
    """A copy of the kernels with other text: of each edit the file, what stands there once, and what comes instead."""
    kernels = folder / "kernels"
    for part in ("core", "cpu"):
        shutil.copytree(KERNELS / part, kernels / part)
    for file, old, new in edits:
        text = (kernels / file).read_text(encoding="utf-8")
        assert text.count(old) == 1, f"{old!r} in {file}"
        (kernels / file).write_text(text.replace(old, new), encoding="utf-8")
    return kernels


def _compiled(machine: Machine, kernels: Path, source: Path, more: tuple[str, ...]) -> Path:
    # Preprocessed it says all that it depends on, and no more: a change of one header leaves the others' objects.
    command = [machine.compiler, *SETTINGS, *more, f"-I{kernels}"]
    text = subprocess.run([*command, "-E", "-P", str(source)], check=True, capture_output=True, text=True).stdout
    name = _hash(_version(machine.compiler), *SETTINGS, *more, text)
    return _made(_CACHE / f"{source.parent.name}-{source.stem}-{name}.o", [*command, "-c", str(source)])


@functools.cache
def _version(compiler: str) -> str:
    return subprocess.run([compiler, "--version"], check=True, capture_output=True, text=True).stdout


def _made(path: Path, command: list[str]) -> Path:
    """What a command writes to its ``-o``. One process makes it, others wait; it is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not path.exists():
            half = path.with_suffix(".half")
            done = subprocess.run([*command, "-o", str(half)], check=False, capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            half.replace(path)
    return path


def _hash(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:20]
