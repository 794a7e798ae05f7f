"""The rules of the house, each a function that lists what breaks it, and each tried on something that breaks it."""

import ast
import importlib.util
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from layers import LAYERS

ROOT = Path(__file__).parents[1]
PACKAGES = ("reference", "optimized", "conformance", "plugin")
LONGEST = 500
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def modules(requirements: list[str]) -> set[str]:
    """The import names of distributions, which differ in a prefix at most: pytest-xdist, nvidia-modelopt."""
    names = [re.split(r"[^A-Za-z0-9_.-]", r)[0].replace("-", "_") for r in requirements]
    return {name.removeprefix("pytest_").removeprefix("nvidia_") for name in names}


BASE = modules(PYPROJECT["project"]["dependencies"])
EXTRAS = PYPROJECT["project"]["optional-dependencies"]
VENDORS = modules(
    [r for extra, requirements in EXTRAS.items() if extra not in {"dev", "benchmark"} for r in requirements]
)
# What each package may import beside the standard library; vendor libraries only where they are adapted.
ALLOWED = {
    "reference": {"numpy", "ml_dtypes", "halfeven.reference"},
    "optimized": {"torch", "halfeven.optimized"},
    "conformance": BASE | {"halfeven.reference", "halfeven.optimized", "halfeven.conformance"},
    "plugin": {"pytest", "halfeven.conformance.session"},
}
# Who plans, judges and reports needs no torch, and who reports no NumPy; who answers does not judge.
_JUDGES = tuple(f"halfeven.conformance.engine.{name}" for name in ("evidence", "explain", "run", "plan", "checks"))
BARRED = {
    "engine": ("torch", "halfeven.conformance.arrays", "halfeven.conformance.view"),
    "inputs": ("torch",),
    "report": ("torch", "numpy", "ml_dtypes", "halfeven.conformance.engine", "halfeven.conformance.backends"),
    "workers": (*_JUDGES, "halfeven.conformance.report"),
    "workers.inside": ("halfeven.conformance.engine.judge", "halfeven.conformance.engine.function_verdict"),
}

# What the files of each folder of kernels include, besides the standard library.
KERNELS = ROOT / "optimized/kernels"
CPP = [p for p in KERNELS.rglob("*") if p.suffix in {".h", ".cpp", ".cu"}]
_ROOM = ("torch/", "core/", "cpu/isa.h", "cpu/memory/", "cpu/vector/")
INCLUDES = {
    "core": ("core/",),
    "cuda": ("core/", "cuda/"),
    "cpu": ("cpu/isa.h",),
    "cpu/memory": ("torch/", "core/", "cpu/memory/"),
    "cpu/vector": (),
    **{room: (*_ROOM, f"{room}/") for room in ("cpu/forward", "cpu/backward", "cpu/reduce")},
}


def sources(*folders: str) -> Iterator[Path]:
    for folder in folders:
        yield from sorted(p for p in (ROOT / folder).rglob("*.py") if not any(d.startswith(".") for d in p.parts))


def imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=module, level=0):
                yield from (f"{module}.{alias.name}" for alias in node.names)
            case ast.ImportFrom():
                yield "." * node.level + (node.module or "")


def forbidden_imports(path: Path, text: str) -> list[str]:
    package = path.parts[0]
    allowed = set(ALLOWED[package])
    if path.parts[:2] == ("conformance", "systems"):
        allowed |= VENDORS | {"torchvision"}
    return [
        name
        for name in imported(ast.parse(text))
        if name.split(".")[0] not in sys.stdlib_module_names
        and not any(name == a or name.startswith(a + ".") for a in allowed)
    ]


def layer(package: str, module: str) -> int | None:
    """Where a module of a package stands, or a name of it."""
    fitting = [
        (len(name), at)
        for at, names in enumerate(LAYERS[package])
        for name in names
        if module == name or module.startswith(name + ".")
    ]
    return max(fitting)[1] if fitting else None


def upward_imports(path: Path, text: str) -> list[str]:
    """What a module imports of a layer above its own, or of what its part of the package does without."""
    package, *parts = path.with_suffix("").parts
    if package not in LAYERS:
        return []
    own, prefix = layer(package, ".".join(parts)), f"halfeven.{package}."
    names = list(imported(ast.parse(text)))
    inner = {name: layer(package, name.removeprefix(prefix)) for name in names if name.startswith(prefix)}
    above = [name for name, at in inner.items() if own is not None and (at or 0) > own]
    barred = [b for part, found in BARRED.items() if f"{'.'.join(parts)}.".startswith(f"{part}.") for b in found]
    without = [name for name in names if any(f"{name}.".startswith(f"{b}.") for b in barred)]
    return list(dict.fromkeys(above + (without if package == "conformance" else [])))


def foreign_includes(path: str, text: str) -> list[str]:
    """The headers that a file of the kernels may not include; those of the standard library have no folder."""
    names = re.findall(r'^#include ["<]([^">]+)', text, re.MULTILINE)
    allowed = INCLUDES[str(Path(path).parent)]
    return [name for name in names if ("/" in name or f'"{name}"' in text) and not name.startswith(allowed)]


def exports(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return [str(name) for name in ast.literal_eval(value)]
    return None


def defined(tree: ast.Module) -> set[str]:
    """The names that a module has once it is imported: those of its functions' insides are not among them."""
    names: set[str] = set()
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        match waiting.pop():
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                names |= {alias.asname or alias.name for alias in aliases}
            case ast.Name(id=name, ctx=ast.Store()):
                names.add(name)
            case ast.Lambda() | ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                pass
            case node:
                waiting += ast.iter_child_nodes(node)
    return names


def unexported(texts: dict[str, str]) -> list[str]:
    """Names that one module of the project takes from another which does not list them in its ``__all__``."""
    trees = {name: ast.parse(text) for name, text in texts.items()}
    return sorted(
        {
            f"{module}.{alias.name}"
            for tree in trees.values()
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and (module := node.module or "") in trees
            for alias in node.names
            if f"{module}.{alias.name}" not in trees and alias.name not in (exports(trees[module]) or ())
        }
    )


def import_circle(texts: dict[str, str]) -> list[str]:
    """Modules that import each other, in functions or for their types too: the names of one circle, if there is any."""

    def targets(text: str) -> Iterator[str]:
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.Import(names=names):
                    yield from (alias.name for alias in names)
                case ast.ImportFrom(module=str(module), names=names):
                    yield from (full if (full := f"{module}.{alias.name}") in texts else module for alias in names)

    graph = {name: {t for t in targets(text) if t in texts and t != name} for name, text in texts.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return sorted(set(error.args[1]))
    return []


def wrong_exports(text: str) -> list[str]:
    tree = ast.parse(text)
    if all(isinstance(node, ast.Expr) for node in tree.body):
        return []  # a docstring has nothing to export
    names = exports(tree)
    return ["no __all__"] if names is None else sorted(set(names) - defined(tree))


def without_docstring(text: str) -> list[str]:
    found = []
    for node in ast.parse(text).body:
        if not isinstance(node, ast.FunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        members = [node, *(node.body if isinstance(node, ast.ClassDef) else ())]
        found += [
            m.name
            for m in members
            if isinstance(m, ast.FunctionDef | ast.ClassDef)
            and not m.name.startswith("_")
            and not any("overload" in ast.unparse(d) for d in m.decorator_list)  # the implementation speaks for all
            and ast.get_docstring(m) is None
        ]
    return found


def unexplained(requirements: list[str], document: str) -> list[str]:
    names = [re.split(r"[^A-Za-z0-9_.-]", r)[0] for r in requirements]
    return [name for name in names if f"| `{name}` |" not in document]


ALL_SOURCES = [p.relative_to(ROOT) for p in sources(*PACKAGES)]


def texts_of(*packages: str) -> dict[str, str]:
    """The sources of packages, by the names of their modules."""
    names = {
        path: ".".join(("halfeven", *path.with_suffix("").parts)).removesuffix(".__init__")
        for path in ALL_SOURCES
        if path.parts[0] in packages
    }
    return {name: (ROOT / path).read_text(encoding="utf-8") for path, name in names.items()}


def test_there_are_sources() -> None:
    assert {p.parts[0] for p in ALL_SOURCES} == set(PACKAGES)


@pytest.mark.parametrize("path", ALL_SOURCES, ids=str)
def test_module_keeps_the_rules(path: Path) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    assert forbidden_imports(path, text) == []
    assert upward_imports(path, text) == []
    assert wrong_exports(text) == []
    assert without_docstring(text) == []


def test_a_module_lists_what_others_take_from_it() -> None:
    assert unexported(texts_of(*PACKAGES)) == []


@pytest.mark.parametrize("package", ["reference", "optimized"])
def test_no_modules_import_each_other(package: str) -> None:
    assert import_circle(texts_of(package)) == []


def test_layers_speak_of_what_there_is() -> None:
    for package, named in LAYERS.items():
        paths = {name: ROOT / package / name.replace(".", "/") for names in named for name in names}
        gone = [n for n, path in paths.items() if not path.is_dir() and not path.with_suffix(".py").exists()]
        assert gone == (["workers.Worker"] if package == "conformance" else [])
        placed = [p.with_suffix("").parts[1:] for p in ALL_SOURCES if p.parts[0] == package]
        assert [parts for parts in placed if layer(package, ".".join(parts)) is None] == [("__init__",)]
    barred = [ROOT / "conformance" / name.replace(".", "/") for name in BARRED]
    assert [path for path in barred if not path.is_dir() and not path.with_suffix(".py").exists()] == []


def test_who_plans_judges_and_reports_loads_no_torch() -> None:
    own = re.compile(r"halfeven\.conformance\.(engine|report|requirements|claim)")
    names = [name for name in texts_of("conformance") if own.match(name)]
    assert "halfeven.conformance.engine.run" in names
    code = f"import sys, {', '.join(names)}; print(*{{'torch', 'pytest'}} & sys.modules.keys())"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == []


def test_kernels_include_only_what_is_below_them() -> None:
    texts = {p.relative_to(KERNELS): p.read_text(encoding="utf-8") for p in CPP}
    assert {str(path.parent) for path in texts} == INCLUDES.keys()
    wrong = {path: foreign_includes(str(path), text) for path, text in texts.items()}
    assert {path: names for path, names in wrong.items() if names} == {}


def test_the_map_of_the_kernels_names_every_file() -> None:
    page = (KERNELS / "README.md").read_text(encoding="utf-8")
    assert [str(p) for p in (*CPP, *KERNELS.rglob("*.py")) if f"`{p.name}`" not in page] == []


def test_vendors_are_the_extras() -> None:
    assert {"torchao", "onnx", "onnxruntime", "aimet_torch", "modelopt"} <= VENDORS
    assert not VENDORS & (BASE | {"mypy", "ruff"})
    assert {"numpy", "torch", "pytest", "xdist"} <= BASE


def test_no_file_is_longer_than_500_lines() -> None:
    files = [*sources(*PACKAGES, "tests", "benchmarks", "tools"), *CPP, *ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]
    files.remove(ROOT / "docs/requirements.md")  # generated from data
    assert files
    lengths = {str(p.relative_to(ROOT)): len(p.read_text(encoding="utf-8").splitlines()) for p in files}
    assert {name: n for name, n in lengths.items() if n > LONGEST} == {}


def test_every_dependency_has_its_reason() -> None:
    project = PYPROJECT["project"]
    names = [*project["dependencies"], *(r for extra in project["optional-dependencies"].values() for r in extra)]
    names.remove(next(n for n in names if n.startswith("halfeven[")))  # one extra names the others
    assert unexplained(names, (ROOT / "docs/dependencies.md").read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_what_is_tested_is_what_is_in_the_tree(package: str) -> None:
    """The installed package holds every file of the tree, data files too, with the same bytes."""
    spec = importlib.util.find_spec(f"halfeven.{package}")
    assert spec is not None
    assert spec.origin is not None
    installed = Path(spec.origin).parent
    kinds = {".py", ".toml", ".json", ".ini", ".typed", ".cu"}
    read = {KERNELS / "core", KERNELS / "cuda"}  # whose headers the compiler of a GPU is given
    files = [p for p in (ROOT / package).rglob("*") if p.suffix in kinds or (p.suffix == ".h" and p.parent in read)]
    assert len(files) > 1
    stale = [
        str(p.relative_to(ROOT))
        for p in files
        if not (twin := installed / p.relative_to(ROOT / package)).exists() or twin.read_bytes() != p.read_bytes()
    ]
    assert stale == []


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("reference/a.py", "import torch", ["torch"]),
        ("reference/a.py", "def f():\n    from halfeven.conformance import check", ["halfeven.conformance.check"]),
        ("reference/a.py", "from halfeven import optimized", ["halfeven.optimized"]),
        ("reference/a.py", "from . import grid", ["."]),
        ("reference/a.py", "import numpy as np, ml_dtypes, fractions\nfrom halfeven.reference import grid", []),
        ("optimized/a.py", "from halfeven.reference.grid import Grid", ["halfeven.reference.grid.Grid"]),
        ("optimized/a.py", "import numpy", ["numpy"]),
        ("optimized/a.py", "from torch import Tensor", []),
        ("conformance/checks/a.py", "import torchao", ["torchao"]),
        ("conformance/a.py", "import halfeven.plugin", ["halfeven.plugin"]),
        ("plugin/a.py", "import torch", ["torch"]),
        ("conformance/systems/torchao/a.py", "import torchao", []),
    ],
)
def test_import_rule_finds_what_breaks_it(path: str, text: str, found: list[str]) -> None:
    assert forbidden_imports(Path(path), text) == found


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        (
            "conformance/inputs/a.py",
            "from halfeven.conformance.engine.call import x",
            ["halfeven.conformance.engine.call.x"],
        ),
        ("conformance/engine/judge.py", "def f():\n    import torch", ["torch"]),
        ("conformance/engine/judge.py", "import halfeven.conformance.engine.run", ["halfeven.conformance.engine.run"]),
        ("conformance/engine/evidence.py", "from halfeven.conformance.workers import Worker", []),
        (
            "conformance/engine/run.py",
            "from halfeven.conformance.workers.inside import Inside",
            ["halfeven.conformance.workers.inside.Inside"],
        ),
        ("conformance/report/a.py", "import numpy as np\nimport numpyro", ["numpy"]),
        (
            "conformance/workers/inside.py",
            "from halfeven.conformance.engine.judge import differences",
            ["halfeven.conformance.engine.judge.differences"],
        ),
        (
            "conformance/systems/torchao/a.py",
            "from halfeven.conformance.engine.checks.values import x",
            ["halfeven.conformance.engine.checks.values.x"],
        ),
        ("conformance/systems/torchao/a.py", "from halfeven.conformance.planning import x\nimport torch", []),
        ("conformance/cli.py", "from halfeven.conformance.engine.run import run", []),
        (
            "optimized/arguments/__init__.py",
            "from halfeven.optimized import affine\nfrom halfeven.optimized.arguments import dtypes",
            ["halfeven.optimized.affine"],
        ),
        ("optimized/aimet/base/a.py", "import halfeven.optimized.aimet.affine", ["halfeven.optimized.aimet.affine"]),
        ("optimized/aimet/base/a.py", "from halfeven.optimized.aimet.affine import range", []),
        (
            "optimized/aimet/affine/range.py",
            "from halfeven.optimized.aimet.affine.grid import x",
            ["halfeven.optimized.aimet.affine.grid.x"],
        ),
        ("optimized/kernels/__init__.py", "from halfeven.optimized import operators", ["halfeven.optimized.operators"]),
    ],
)
def test_layer_rule_finds_what_breaks_it(path: str, text: str, found: list[str]) -> None:
    assert upward_imports(Path(path), text) == found


@pytest.mark.parametrize(
    ("path", "text", "found"),
    [
        ("core/a.h", "#include <torch/csrc/stable/tensor.h>", ["torch/csrc/stable/tensor.h"]),
        ("core/a.h", '#include <cstdint>\n#include "core/b.h"', []),
        ("cpu/memory/a.h", '#include "cpu/forward/job.h"', ["cpu/forward/job.h"]),
        ("cuda/a.cu", '#include "cuda/a.h"\n#include <cuda_fp16.h>\n#include "cpu/isa.h"', ["cpu/isa.h"]),
        ("cpu/forward/a.cpp", '#include "cpu/memory/a.h"\n#include "cpu/backward/job.h"', ["cpu/backward/job.h"]),
        ("cpu/forward/a.cpp", '#include "job.h"', ["job.h"]),
    ],
)
def test_include_rule_finds_what_breaks_it(path: str, text: str, found: list[str]) -> None:
    assert foreign_includes(path, text) == found


def test_names_taken_but_not_listed_are_found() -> None:
    texts = {
        "halfeven.a": '__all__ = ["x"]\nx = y = 1',
        "halfeven.b": "from halfeven.a import x, y\nfrom halfeven import a\nfrom numpy import z",
        "halfeven": "",
    }
    assert unexported(texts) == ["halfeven.a.y"]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("if TYPE_CHECKING:\n    from h.b import B", ["h.a", "h.b"]),
        ("def f():\n    import h.b", ["h.a", "h.b"]),
        ("from h import c", ["h.a", "h.b", "h.c"]),
        ("from h import x\nimport numpy", []),
    ],
)
def test_circles_of_imports_are_found(text: str, found: list[str]) -> None:
    texts = {"h": "", "h.a": text, "h.b": "from h.a import x", "h.c": "from h import b"}
    assert import_circle(texts) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Doc."""', []),
        ('__all__ = ["local"]\ndef f():\n    local = 1', ["local"]),
        ('__all__ = ["each"]\nx = [each for each in ()]', ["each"]),
        ('__all__ = ["a", "b"]\nif c:\n    a, (b, d) = e\nelse:\n    import b', []),
        ("x = 1", ["no __all__"]),
        ('__all__ = ["f", "g"]\ndef f(): ...', ["g"]),
        ('__all__: list[str] = ["x"]\nfrom a import b as x', []),
    ],
)
def test_export_rule_finds_what_breaks_it(text: str, found: list[str]) -> None:
    assert wrong_exports(text) == found


def test_other_rules_find_what_breaks_them() -> None:
    text = """
@overload
def f(x: int): ...
def f(x): ...
def _g(): ...
class C:
    'Doc.'
    def m(self): ...
    def _p(self): ...
"""
    assert without_docstring(text) == ["f", "m"]
    assert unexplained(["numpy>=2", "pytest-xdist>=3.6"], "| `numpy` | arrays |") == ["pytest-xdist"]


def unmapped(modules: list[str], text: str) -> list[str]:
    """The modules of the engine that its map does not name."""
    engine = text.partition("The engine, ")[2].partition("A **worker**")[0]
    return [m for m in modules if f"`{m}`" not in engine and f"`{m}." not in engine]


@pytest.mark.parametrize("folder", ["engine", "fingerprints", "explaining", "questions"])
def test_the_map_of_a_folder_is_whole(folder: str) -> None:
    text = (ROOT / "docs/contributing.md").read_text(encoding="utf-8")
    modules = [p.stem for p in (ROOT / "conformance" / folder).glob("*.py") if p.stem != "__init__"]
    assert len(modules) > 3
    assert unmapped(modules, text) == []
    assert unmapped(["judge", "run", "nowhere"], text) == ["nowhere"]
