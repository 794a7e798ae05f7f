"""Builds the kernels of the CPU, where a C++ compiler and torch's headers are there; all else is in pyproject.toml.

The library depends on no version of Python, and on torch's stable interface only: it serves every torch from the one
that TARGET names on. A build without it goes on, and the installed package runs in torch operations. The environment
variable HALFEVEN_NO_KERNELS=1 leaves it out.
"""

import os
import sys
import sysconfig
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

TARGET = "0x020b000000000000"  # torch 2.11
FOLDER = Path("optimized/kernels")
PACKAGES = ("reference", "optimized", "conformance", "plugin")
FLAGS = [
    "-std=c++20",
    "-O3",
    "-g0",
    "-fPIC",
    "-fvisibility=hidden",
    # Every operation is rounded as written: none is fused with another, and nothing is assumed of NaN or -0.0. That
    # errno is not set and no trap is taken changes no value, and lets loops become vector instructions.
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    f"-DTORCH_TARGET_VERSION={TARGET}",
]


# Added to the flags of compiler and linker: for sanitizers.
MORE = os.environ.get("HALFEVEN_CFLAGS", "").split()


class MissingError(Exception):
    """What keeps the kernels from being built."""


def torch_folder() -> Path:
    """Where torch is installed, without importing it.

    Under pip's isolation ``sys.path`` has the packages of another environment; this one's are where ``sysconfig`` says.

    Raises:
        MissingError: it is not there, or is older than TARGET.
    """
    places = [*sys.path, *(sysconfig.get_path(name) for name in ("purelib", "platlib"))]
    for place in dict.fromkeys(places):
        torch = Path(place) / "torch"
        if (torch / "include/torch/csrc/stable/library.h").is_file():
            if "torch_parallel_for" not in (torch / "include/torch/csrc/stable/c/shim.h").read_text():
                msg = f"torch in {torch} is older than 2.11"
                raise MissingError(msg)
            return torch
    msg = "torch is not installed in this environment: install it first"
    raise MissingError(msg)


class BuildKernels(build_ext):
    """Compiles the files side by side, and says in one line why there are no kernels where that fails."""

    def run(self) -> None:
        """Build, or go on without."""
        try:
            super().run()
        except Exception as error:  # noqa: BLE001 - whatever a compiler or its absence raises: kernels are optional
            reason = " ".join(str(error).split())
            print(f"halfeven: built without compiled kernels, torch operations will run instead: {reason}", flush=True)
            for extension in self.extensions:  # one of an earlier build would be packed
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = []

    def build_extension(self, ext: Extension) -> None:
        """Compile and link."""
        if os.environ.get("HALFEVEN_NO_KERNELS") == "1":
            msg = "HALFEVEN_NO_KERNELS=1"
            raise MissingError(msg)
        if sys.platform not in ("linux", "darwin"):
            msg = f"no build for {sys.platform} was tried"
            raise MissingError(msg)
        torch = torch_folder()
        # Objects that were compiled otherwise are others.
        folder = Path(self.build_temp, *(flag.strip("-").replace("/", "_") for flag in MORE))

        def compiled(source: str) -> list[str]:
            return self.compiler.compile(
                [source],
                str(folder),
                include_dirs=[str(FOLDER), str(torch / "include")],
                extra_postargs=FLAGS + MORE,
                depends=ext.depends,
            )

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = [each for found in pool.map(compiled, ext.sources) for each in found]
        target = Path(self.get_ext_fullpath(ext.name))
        target.parent.mkdir(parents=True, exist_ok=True)
        # Linked against torch's library, with no path to it: torch has loaded it before.
        self.compiler.link_shared_object(
            objects,
            str(target),
            libraries=["torch_cpu"],
            library_dirs=[str(torch / "lib")],
            extra_postargs=MORE,
            target_lang="c++",
        )

    def get_ext_filename(self, fullname: str) -> str:
        """No version of Python in the name."""
        return str(Path(*fullname.split("."))) + ".so"


class Wheel(bdist_wheel):
    """Fits every Python 3, on this platform, and on any if it has no kernels."""

    def get_tag(self) -> tuple[str, str, str]:
        """The wheel's tag."""
        built = any(Path(self.bdist_dir).rglob("_cpu.so")) if self.bdist_dir else False
        return ("py3", "none", super().get_tag()[2] if built else "any")


def packages() -> list[str]:
    """Every folder with an ``__init__.py``: a system that is added needs no entry anywhere."""
    found = (init for part in PACKAGES for init in Path(part).rglob("__init__.py"))
    return sorted("halfeven." + ".".join(init.parent.parts) for init in found)


setup(
    packages=packages(),
    ext_modules=[
        Extension(
            "halfeven.optimized.kernels._cpu",
            sources=sorted(str(path) for path in FOLDER.rglob("*.cpp")),
            depends=[str(path) for path in FOLDER.rglob("*.h")],
            language="c++",
        )
    ],
    cmdclass={"build_ext": BuildKernels, "bdist_wheel": Wheel},
)
