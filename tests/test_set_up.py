"""The set-up script, run on indexes of made-up packages: which torch it installs, from where, and what it says."""

import importlib.util
import os
import re
import socket
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
CUDA = ("torch-needs", "nvidia-cublas")
# What a machine has is set here, so that the tests give the same on every machine.
DRIVER = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
import install_torch
install_torch.has_gpu = lambda: sys.argv[4] == "gpu"
install_torch.SECONDS = 1
sys.platform = sys.argv[5]
sys.exit(install_torch.main(Path(sys.argv[2]), Path(sys.argv[3])))
"""


@pytest.fixture(name="script")
def load_script() -> Any:
    spec = importlib.util.spec_from_file_location("install_torch", ROOT / "tools/install_torch.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def wheel(folder: Path, name: str, version: str, *needs: str, build: str = "") -> Path:
    """A wheel whose one module imports the first of ``needs``, and holds some bytes and its own version.

    As torch's, it names its build where the wheel's version does not.
    """
    module = name.replace("-", "_")
    path = folder / name / f"{module}-{version}{build}-py3-none-any.whl"
    path.parent.mkdir(parents=True, exist_ok=True)
    own = version if name != "torch" or "+" in version else f"{version}+cu130"
    imports = [re.split("[ ;]", n)[0].replace("-", "_") for n in needs[:1]]
    code = "".join(f"import {n}\n" for n in imports) + f"__version__ = {own!r}\n"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    metadata += "".join(f"Requires-Dist: {n}\n" for n in needs)
    tag = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {
        f"{module}/__init__.py": code.encode(),
        f"{module}/data": os.urandom(400_000),
        f"{module}-{version}.dist-info/METADATA": metadata.encode(),
        f"{module}-{version}.dist-info/WHEEL": tag.encode(),
    }
    record = f"{module}-{version}.dist-info/RECORD"
    files[record] = "".join(f"{p},,\n" for p in (*files, record)).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for p, data in files.items():
            archive.writestr(p, data)
    return path


class Handler(SimpleHTTPRequestHandler):
    """Serves a folder, whose listings are indexes as pip reads them, and notes each request."""

    def __init__(self, *args: Any, requests: list[str], **kwargs: Any) -> None:
        self.requests = requests
        super().__init__(*args, **kwargs)

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        self.requests.append(f"{self.command} {self.path}")

    def log_message(self, *args: Any) -> None:
        pass


@dataclass
class Machine:
    """A fresh environment, and indexes: folders of ``web``, each with a folder per package."""

    home: Path
    address: str
    requests: list[str]
    variables: dict[str, str] = field(default_factory=dict)

    @property
    def web(self) -> Path:
        return self.home / "web"

    @property
    def packages(self) -> Path:
        version = f"python{sys.version_info.major}.{sys.version_info.minor}"
        return self.home / "venv/lib" / version / "site-packages"

    def run(self, *, gpu: bool = False, platform: str = "linux") -> tuple[int, str]:
        """The exit status of the script and everything it printed."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
            "PIP_RETRIES": "0",
            "PIP_DEFAULT_TIMEOUT": "100",  # longer than the script may run: the CPU index needs a limit of its own
            "PIP_INDEX_URL": f"{self.address}/pypi",
            "HALFEVEN_TORCH_CPU_INDEX": f"{self.address}/cpu",
            **self.variables,
        }
        arguments = [ROOT / "tools", ROOT / "constraints.txt", self.home / "torch.txt", "gpu" if gpu else "", platform]
        python = self.home / "venv/bin/python"
        ran = subprocess.run(
            [python, "-c", DRIVER, *arguments],
            env=environment,
            cwd=self.home,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=90,
            check=False,
        )
        assert (self.home / "torch.txt").exists() == (ran.returncode == 0)
        return ran.returncode, ran.stdout

    def installed(self) -> set[str]:
        names = {p.name.removesuffix(".dist-info") for p in self.packages.glob("*.dist-info")}
        return {name for name in names if not name.startswith("pip-")}

    def asked(self, index: str) -> set[str]:
        """The packages that were looked for in ``index``, or fetched from it."""
        return {found[1] for r in self.requests if (found := re.match(rf"\w+ /{index}/([^/]+)/", r))}


@pytest.fixture(name="machine")
def make_machine(tmp_path: Path) -> Iterator[Machine]:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    requests: list[str] = []
    handler = partial(Handler, directory=str(tmp_path / "web"), requests=requests)
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        machine = Machine(tmp_path, f"http://127.0.0.1:{server.server_port}", requests)
        pip = distribution("pip")
        for name in ("pip", f"pip-{pip.version}.dist-info"):
            (machine.packages / name).symlink_to(Path(str(pip.locate_file(name))))
        wheel(machine.web / "pypi", "torch-needs", "1.0")
        wheel(machine.web / "pypi", "nvidia-cublas", "13.0")
        yield machine
        server.shutdown()
        thread.join()


@pytest.fixture(name="silent")
def make_silent_server() -> Iterator[str]:
    """The URL of a server that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture(name="closed")
def find_closed_port() -> str:
    """A URL at which nothing listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


def test_torch_alone_comes_from_the_cpu_index(machine: Machine) -> None:
    wheel(machine.web / "pypi", "torch", "2.13.0", *CUDA)
    wheel(machine.web / "cpu", "torch", "2.13.0+cpu", "torch-needs")
    wheel(machine.web / "cpu", "torch-needs", "9.0")
    status, said = machine.run()
    assert status == 0
    assert machine.installed() == {"torch-2.13.0+cpu", "torch_needs-1.0"}
    assert machine.asked("cpu") == {"torch"}
    assert (machine.home / "torch.txt").read_text() == "torch==2.13.0+cpu\n"
    assert said.splitlines()[-1] == "halfeven: torch 2.13.0+cpu"
    assert (
        "halfeven: pip finds only a CUDA build of torch 2.13.0, and this machine shows no NVIDIA GPU: "
        f"installing torch==2.13.0+cpu, and that alone, from {machine.address}/cpu\n"
    ) in said


def test_the_cpu_index_is_asked_where_pip_finds_no_torch(machine: Machine) -> None:
    wheel(machine.web / "cpu", "torch", "2.13.0+cpu", "torch-needs")
    machine.variables["HALFEVEN_TORCH_CPU_INDEX"] = f"{machine.address.replace('//', '//me:secret@')}/cpu"
    status, said = machine.run()
    assert status == 0
    assert machine.installed() == {"torch-2.13.0+cpu", "torch_needs-1.0"}
    assert "pip finds no torch 2.13.0" in said
    assert "secret" not in said


def test_pip_configuration_adds_no_other_build(machine: Machine) -> None:
    """Builds that pip would prefer, by their build tag, to the one on the CPU index."""
    wheel(machine.web / "pypi", "torch", "2.13.0", *CUDA)
    wheel(machine.web / "cpu", "torch", "2.13.0+cpu", "torch-needs")
    wheel(machine.web / "extra", "torch", "2.13.0+cpu", *CUDA, build="-2")
    found = wheel(machine.web / "links", "torch", "2.13.0+cpu", *CUDA, build="-1")
    configuration = machine.home / "pip.conf"
    # Under [install], since that outweighs the [global] of a file that the machine itself may have.
    configuration.write_text(
        f"[install]\nextra-index-url = {machine.address}/extra\nfind-links = {found.parent.as_uri()}\n",
        encoding="utf-8",
    )
    machine.variables["PIP_CONFIG_FILE"] = str(configuration)
    status, _ = machine.run()
    assert status == 0
    assert machine.installed() == {"torch-2.13.0+cpu", "torch_needs-1.0"}


def test_a_cpu_build_that_pip_finds_is_preferred(machine: Machine) -> None:
    """As to versions alone, +cu130 is newer than +cpu, and that newer than none."""
    wheel(machine.web / "pypi", "torch", "2.13.0", *CUDA)
    wheel(machine.web / "pypi", "torch", "2.13.0+cu130", *CUDA)
    wheel(machine.web / "pypi", "torch", "2.13.0+cpu", "torch-needs")
    status, _ = machine.run()
    assert status == 0
    assert machine.installed() == {"torch-2.13.0+cpu", "torch_needs-1.0"}
    assert machine.asked("cpu") == set()


def test_a_cpu_build_needs_no_name(machine: Machine) -> None:
    wheel(machine.web / "pypi", "torch", "2.13.0", "torch-needs")
    machine.variables["HALFEVEN_TORCH"] = "cpu"
    status, _ = machine.run(gpu=True)
    assert status == 0
    assert machine.installed() == {"torch-2.13.0", "torch_needs-1.0"}
    assert machine.asked("cpu") == set()


@pytest.mark.parametrize("index", ["closed", "silent", "without this version"])
def test_without_the_cpu_index_the_large_build_is_announced(
    machine: Machine, request: pytest.FixtureRequest, index: str
) -> None:
    packages = [
        wheel(machine.web / "pypi", "torch", "2.13.0", *CUDA),
        *machine.web.glob("pypi/torch-needs/*"),
        *machine.web.glob("pypi/nvidia-cublas/*"),
    ]
    wheel(machine.web / "cpu", "torch", "2.12.0+cpu", "torch-needs")
    if index in {"closed", "silent"}:
        machine.variables["HALFEVEN_TORCH_CPU_INDEX"] = request.getfixturevalue(index)
    status, said = machine.run()
    assert status == 0
    assert machine.installed() == {"torch-2.13.0", "torch_needs-1.0", "nvidia_cublas-13.0"}
    size = sum(package.stat().st_size for package in packages)
    assert f"going on with the CUDA build of torch 2.13.0: 3 packages, {size / 1e6:.1f} MB" in said
    assert (machine.home / "torch.txt").read_text() == "torch==2.13.0\n", "which pip finds again"
    assert "No matching distribution found for torch==2.13.0+cpu" in said


def test_the_large_build_is_refused_if_asked(machine: Machine, closed: str) -> None:
    wheel(machine.web / "pypi", "torch", "2.13.0", *CUDA)
    machine.variables |= {"HALFEVEN_TORCH": "cpu", "HALFEVEN_TORCH_CPU_INDEX": closed}
    status, said = machine.run(gpu=True)
    assert status == 1
    assert machine.installed() == set()
    assert "HALFEVEN_TORCH=cpu refuses the CUDA build that pip finds; nothing was installed" in said


@pytest.mark.parametrize("why", ["gpu", "macOS", "HALFEVEN_TORCH"])
def test_what_pip_finds_is_taken_at_once(machine: Machine, why: str) -> None:
    wheel(machine.web / "pypi", "torch", "2.13.0", *CUDA)
    wheel(machine.web / "cpu", "torch", "2.13.0+cpu", "torch-needs")
    if why == "HALFEVEN_TORCH":
        machine.variables[why] = "any"
    status, _ = machine.run(gpu=why == "gpu", platform="darwin" if why == "macOS" else "linux")
    assert status == 0
    assert machine.installed() == {"torch-2.13.0", "torch_needs-1.0", "nvidia_cublas-13.0"}
    assert machine.asked("cpu") == set()


@pytest.mark.parametrize("gpu", [False, True])
def test_no_index_answers(machine: Machine, closed: str, gpu: bool) -> None:
    machine.variables |= {"PIP_INDEX_URL": closed, "HALFEVEN_TORCH_CPU_INDEX": closed}
    status, said = machine.run(gpu=gpu)
    assert status == 1
    assert machine.installed() == set()
    assert "ERROR: No matching distribution found for torch==2.13.0\n" in said  # pip's own words


def test_what_torch_needs_cannot_be_had(machine: Machine) -> None:
    wheel(machine.web / "pypi", "torch", "2.13.0", *CUDA)
    wheel(machine.web / "cpu", "torch", "2.13.0+cpu", "unheard-of")
    wheel(machine.web / "cpu", "unheard-of", "1.0")
    status, said = machine.run()
    assert status == 1
    assert "ERROR: No matching distribution found for unheard-of" in said
    assert "halfeven: pip could not install torch==2.13.0+cpu: its message is above" in said


def test_a_torch_that_is_there_is_kept(machine: Machine) -> None:
    (machine.packages / "torch.py").write_text("__version__ = '2.11.0+cu130'", encoding="utf-8")
    status, said = machine.run()
    assert status == 0
    assert said == "halfeven: torch 2.11.0+cu130\n"
    assert machine.requests == []


def test_an_older_torch_is_replaced(machine: Machine) -> None:
    wheel(machine.web / "pypi", "torch", "2.13.0+cpu")
    old = wheel(machine.web / "old", "torch", "2.9.1+cpu")
    with zipfile.ZipFile(old) as archive:
        archive.extractall(machine.packages)
    status, _ = machine.run()
    assert status == 0
    assert machine.installed() == {"torch-2.13.0+cpu"}


def test_a_torch_that_does_not_import(machine: Machine) -> None:
    wheel(machine.web / "pypi", "torch", "2.13.0+cpu", "libcudart; python_version < '3'")
    status, said = machine.run()
    assert status == 1
    assert "halfeven: torch was installed, but cannot be imported:\nTraceback" in said
    assert said.endswith("No module named 'libcudart'\n")


def test_a_choice_that_there_is_not(machine: Machine) -> None:
    machine.variables["HALFEVEN_TORCH"] = "gpu"
    status, said = machine.run()
    assert status == 2
    assert said == "halfeven: HALFEVEN_TORCH is 'gpu', and accepts cpu, any or nothing\n"


def test_versions(script: Any) -> None:
    assert [script.enough(v, (2, 11)) for v in ("2.11.0", "2.13.0+cpu", "3.0", "2.9.1", "1.13", "")] == [
        *(True, True, True),
        *(False, False, False),
    ]
    assert script.pinned((ROOT / "constraints.txt").read_text(encoding="utf-8")) == "2.13.0"
    with pytest.raises(ValueError, match="torch==VERSION"):
        script.pinned("torch>=2.11")


def test_cuda_packages(script: Any) -> None:
    cpu = ["torch", "filelock", "typing_extensions", "setuptools", "sympy", "networkx", "Jinja2", "fsspec"]
    assert script.cuda_packages(cpu) == []
    cuda = ["nvidia-cublas", "nvidia_nccl_cu13", "cuda-toolkit", "triton"]
    assert script.cuda_packages([*cpu, *cuda]) == ["cuda-toolkit", "nvidia-cublas", "nvidia-nccl-cu13", "triton"]


def test_sizes_in_words(script: Any) -> None:
    assert script.in_words([2_340_000_000, 400_000_000]) == "2 packages, 2.7 GB"
    assert script.in_words([5_000_000, None, 250_000]) == "3 packages, more than 5.2 MB (the sizes of 1 are not known)"
    assert script.in_words([None, None]) == "2 packages, whose sizes the index does not tell"


def test_a_gpu_is_seen_by_its_tool(script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\nexit 0\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert script.has_gpu()


def test_every_text_names_the_same_index(script: Any) -> None:
    for name in ("README.md", "docs/dependencies.md", "constraints.txt"):
        assert f"--index-url {script.PYTORCH} " in (ROOT / name).read_text(encoding="utf-8"), name
