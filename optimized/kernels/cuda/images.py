"""What a driver is handed: programs compiled for one GPU, kept in memory and in a folder of the user's.

The environment variable HALFEVEN_CACHE names the folder, by default ``halfeven`` where programs keep what they can make
again. A file that is damaged, or cannot be read or written, costs a compilation and nothing else.
"""

import hashlib
import json
import os
import tempfile
from functools import cache
from pathlib import Path

from halfeven.optimized.kernels.cuda import nvrtc, programs

__all__ = ["architecture", "folder", "image"]

_VARIABLE = "HALFEVEN_CACHE"
_DIGEST = hashlib.sha256().digest_size


def architecture(capability: tuple[int, int]) -> str:
    """What to compile for: machine code of the GPU, or for one newer than the compiler PTX, which its driver compiles.

    Raises:
        RuntimeError: there is no NVRTC, or it knows only newer GPUs.

    Example:
        >>> architecture((9, 0)) if not nvrtc.why_missing() else "sm_90"
        'sm_90'
    """
    major, minor = capability
    number, known = 10 * major + minor, nvrtc.architectures()
    if number in known:
        return f"sm_{number}"
    older = [each for each in known if each < number]
    if not older:
        msg = f"NVRTC {nvrtc.version()} compiles for no GPU of capability {major}.{minor}, only from {min(known)} on"
        raise RuntimeError(msg)
    return f"compute_{max(older)}"


@cache
def image(program: programs.Program, target: str) -> bytes:
    """A program as ``cuModuleLoadData`` takes it, for a target that ``architecture`` named.

    Raises:
        RuntimeError: there is no NVRTC, or it refuses the program: with what it says.
    """
    place = folder()
    path = place / f"{_key(program, target)}.image" if place else None
    if path and (kept := _read(path)):
        return kept
    ptx, code = nvrtc.compiled(program, target)
    made = code if target.startswith("sm_") else ptx.encode() + b"\0"
    if path:
        _write(path, made)
    return made


def folder() -> Path | None:
    """Where files are kept, None where there is no place for them."""
    if given := os.environ.get(_VARIABLE):
        return Path(given)
    try:
        return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "halfeven"
    except RuntimeError:  # a user without a home
        return None


def _key(program: programs.Program, target: str) -> str:
    """Of all that the image depends on."""
    options = [*programs.OPTIONS, *program.options]
    texts = [program.name, program.text, programs.headers()]
    return hashlib.sha256(json.dumps([texts, options, target, nvrtc.version()]).encode()).hexdigest()


def _read(path: Path) -> bytes:
    """What was written, b"" where it is not there, or is not whole."""
    try:
        found = path.read_bytes()
    except OSError:
        return b""
    digest, made = found[:_DIGEST], found[_DIGEST:]
    return made if hashlib.sha256(made).digest() == digest else b""


def _write(path: Path, made: bytes) -> None:
    """In one step for whoever reads: under another name first, which no other process has."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(hashlib.sha256(made).digest() + made)
            Path(name).replace(path)
        except OSError:
            Path(name).unlink(missing_ok=True)
    except OSError:
        return
