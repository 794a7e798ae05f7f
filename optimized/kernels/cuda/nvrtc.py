"""NVRTC, the compiler of CUDA C++ that is a library: loaded when it is first asked for. It needs no GPU."""

import ctypes
import importlib.util
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

from halfeven.optimized.kernels.cuda import programs

__all__ = ["architectures", "compiled", "version", "why_missing"]

_RELEASES = (13, 12)  # whose C++20 and whose interface these are


def why_missing() -> str:
    """Why there is no compiler, "" where there is one."""
    library, why = _loaded()
    return "" if library else why


def version() -> str:
    """The release of the compiler.

    Raises:
        RuntimeError: there is no NVRTC.
    """
    major, minor = ctypes.c_int(), ctypes.c_int()
    _checked(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)))
    return f"{major.value}.{minor.value}"


def architectures() -> list[int]:
    """The GPUs that it compiles for: 90 of capability 9.0, and so on.

    Raises:
        RuntimeError: there is no NVRTC.
    """
    count = ctypes.c_int()
    _checked(_library().nvrtcGetNumSupportedArchs(ctypes.byref(count)))
    found = (ctypes.c_int * count.value)()
    _checked(_library().nvrtcGetSupportedArchs(found))
    return sorted(found)


def compiled(
    program: programs.Program,
    architecture: str,
    *,
    headers: Mapping[str, str] | None = None,
    options: Sequence[str] = programs.OPTIONS,
) -> tuple[str, bytes]:
    """PTX and machine code of a program.

    Args:
        program: what to compile.
        architecture: for which GPU, such as ``sm_90``.
        headers: other texts than those of ``programs.headers``, by name: for tests.
        options: other options than those of the package: for tests.

    Raises:
        RuntimeError: there is no NVRTC, or it refuses the program: with what it says.
    """
    library = _library()
    texts = dict(programs.headers() if headers is None else headers)
    source = texts.pop(program.name, program.text)
    handle = ctypes.c_void_p()
    made = library.nvrtcCreateProgram(
        ctypes.byref(handle),
        source.encode(),
        program.name.encode(),
        len(texts),
        _strings(texts.values()),
        _strings(texts),
    )
    _checked(made)
    try:
        given = [f"--gpu-architecture={architecture}", *options, *program.options]
        status = library.nvrtcCompileProgram(handle, len(given), _strings(given))
        if status:
            msg = f"{program.name} for {architecture}: " + _text(handle, "ProgramLog").decode()
            raise RuntimeError(msg)
        return _text(handle, "PTX").decode(), _text(handle, "CUBIN")
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(handle))


def _text(handle: ctypes.c_void_p, what: str) -> bytes:
    library, size = _library(), ctypes.c_size_t()
    _checked(getattr(library, f"nvrtcGet{what}Size")(handle, ctypes.byref(size)))
    memory = ctypes.create_string_buffer(size.value)
    _checked(getattr(library, f"nvrtcGet{what}")(handle, memory))
    return memory.raw.rstrip(b"\0") if what != "CUBIN" else memory.raw


def _strings(texts: Iterable[str]) -> "ctypes.Array[ctypes.c_char_p]":
    found = [text.encode() for text in texts]
    return (ctypes.c_char_p * len(found))(*found)


def _checked(status: int) -> None:
    if status:
        library = _library()
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        msg = "NVRTC: " + library.nvrtcGetErrorString(status).decode()
        raise RuntimeError(msg)


def _library() -> ctypes.CDLL:
    library, why = _loaded()
    if library is None:
        raise RuntimeError(why)
    return library


def _places() -> Iterator[str]:
    """Where NVRTC may be: what torch's CUDA builds and the package of its own install, then where the system looks."""
    spec = importlib.util.find_spec("nvidia")
    for folder in spec.submodule_search_locations or () if spec else ():
        for release in _RELEASES:
            yield from (str(path) for path in sorted(Path(folder).glob(f"*/lib/libnvrtc.so.{release}")))
    yield from (f"libnvrtc.so.{release}" for release in _RELEASES)


@cache
def _loaded() -> tuple[ctypes.CDLL | None, str]:
    """The library, or None and why not."""
    why = ""
    for place in _places():
        try:
            return ctypes.CDLL(place), ""
        except OSError as error:
            why = why or str(error)
    return None, f"NVRTC is not installed (pip install nvidia-cuda-nvrtc): {why}"
