"""The rules of the house, each a function that lists what breaks it, and each tried on something that breaks it."""

import ast
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

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
# Inside conformance: plan -> trial -> run -> report, and the checks on top of a trial. What must not look upwards.
_UPPER = ("checks", "plan", "run", "suite", "items", "session", "runner", "cli")
UPWARDS = {
    **dict.fromkeys(("configuration.py", "arrays.py", "compare.py", "inputs"), (*_UPPER, "trial", "call", "backends")),
    "backends": (*_UPPER, "trial", "call", "requirements", "report", "explain", "witness", "formulas", "points"),
    "report": (*_UPPER, "trial", "call", "backends", "inputs"),
    **dict.fromkeys(
        ("requirement.py", "requirements.py", "systems", "documents", "nearest.py"),
        (*_UPPER, "trial", "call", "report", "formulas", "explain", "witness", "points"),
    ),
    **dict.fromkeys(("formulas.py", "points.py"), (*_UPPER, "trial", "report", "requirements")),
    "formula_run.py": ("run", "suite", "cli", "checks", "trial"),
    "call.py": (*_UPPER, "trial", "report"),
    "explain.py": (*_UPPER, "trial", "call", "backends", "report"),
    "trial.py": (*_UPPER, "report"),
    "witness.py": (*_UPPER, "trial"),
    "checks": ("plan", "run", "suite", "session", "cli", "report"),
    "plan.py": ("run", "suite", "cli", "report"),
    "run.py": ("suite", "cli"),
    "suite.py": ("items", "session", "runner", "cli"),
    "child.py": (*_UPPER, "trial", "call", "backends", "report"),
}
# Inside optimized, the lowest first: no module imports what stands in a layer above its own. The longest name counts.
LAYERS = (
    ("arguments.dtypes", "arguments.memory"),
    ("arguments",),
    ("kernels",),
    ("operators.registration",),
    ("operators.batching", "operators.gradients"),
    ("operators.schemas",),
    ("operators",),
    ("affine", "calibration"),
    ("aimet.affine.range", "aimet.arguments"),
    ("aimet.encoding_analyzer",),
    ("aimet.base",),
    ("aimet.affine", "aimet.float", "aimet.tensor"),
    ("aimet",),
)

# What the files of each folder of kernels include, besides the standard library.
KERNELS = ROOT / "optimized/kernels"
CPP = [p for p in KERNELS.rglob("*") if p.suffix in {".h", ".cpp"}]
_ROOM = ("torch/", "core/", "cpu/isa.h", "cpu/memory/")
INCLUDES = {
    "core": ("core/",),
    "cpu": ("cpu/isa.h",),
    "cpu/memory": ("torch/", "core/", "cpu/memory/"),
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


def layer(module: str) -> int | None:
    """Where a module of optimized stands, or a name of it."""
    fitting = [
        (len(name), at)
        for at, names in enumerate(LAYERS)
        for name in names
        if module == name or module.startswith(name + ".")
    ]
    return max(fitting)[1] if fitting else None


def upward_imports(path: Path, text: str) -> list[str]:
    if path.parts[0] == "optimized":
        own = layer(".".join(path.with_suffix("").parts[1:]))
        names = [name for name in imported(ast.parse(text)) if name.startswith("halfeven.optimized.")]
        layers = {name: layer(name.removeprefix("halfeven.optimized.")) for name in names}
        return [name for name in names if own is not None and (layers[name] or 0) > own]
    if path.parts[0] != "conformance":
        return []
    above = tuple(f"halfeven.conformance.{name}" for name in UPWARDS.get(path.parts[1], ()))
    return [name for name in imported(ast.parse(text)) if any(name == a or name.startswith(a + ".") for a in above)]


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
    folder = ROOT / "conformance"
    assert [name for name in UPWARDS if not (folder / name).exists()] == []
    above = {name for names in UPWARDS.values() for name in names}
    assert [n for n in above if not (folder / n).is_dir() and not (folder / f"{n}.py").exists()] == []
    layers = {name: ROOT / "optimized" / name.replace(".", "/") for names in LAYERS for name in names}
    assert [n for n, path in layers.items() if not path.is_dir() and not path.with_suffix(".py").exists()] == []
    placed = [p.with_suffix("").parts[1:] for p in ALL_SOURCES if p.parts[0] == "optimized"]
    assert [parts for parts in placed if layer(".".join(parts)) is None] == [("__init__",)]


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
    kinds = {".py", ".toml", ".json", ".ini", ".typed"}
    files = [p for p in (ROOT / package).rglob("*") if p.suffix in kinds]
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
        ("conformance/inputs/a.py", "from halfeven.conformance import checks", ["halfeven.conformance.checks"]),
        ("conformance/compare.py", "import halfeven.conformance.plan", ["halfeven.conformance.plan"]),
        (
            "conformance/report/a.py",
            "def f():\n    from halfeven.conformance.run import run",
            ["halfeven.conformance.run.run"],
        ),
        (
            "conformance/systems/torchao/a.py",
            "from halfeven.conformance.checks.values import x",
            ["halfeven.conformance.checks.values.x"],
        ),
        ("conformance/systems/torchao/a.py", "from halfeven.conformance.planning import x", []),
        ("conformance/cli.py", "from halfeven.conformance.run import run", []),
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
