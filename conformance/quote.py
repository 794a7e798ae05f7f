"""How a script that stands alone calls a function: by its name, by its source, or by what it does inside."""

import __future__

import ast
import dis
import importlib
import inspect
import linecache
import sys
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from importlib.machinery import PathFinder
from types import CodeType, ModuleType
from typing import Any

from halfeven.conformance.inline import inlined

__all__ = ["NoScript", "Spelling", "Spelt", "quote", "spelt"]

_PACKAGE = "halfeven"
_FUTURE = "from __future__ import annotations"
_LITERALS = (bool, int, float, str, bytes, type(None))


class NoScript(Exception):  # noqa: N818 - it says why there is none
    """No script can make the call elsewhere; the message is the reason."""


@dataclass(frozen=True)
class Spelt:
    """A call as Python.

    Attributes:
        header: imports, and definitions that the call needs.
        called: the expression that calls.
        steps: statements between the arguments and the call.
        refusals: the library's own errors that the backend answers with as Python's, as classes that ``header``
            imports, with commas between them.
    """

    header: str
    called: str
    steps: str = ""
    refusals: str = ""


@dataclass(frozen=True)
class Spelling:
    """A function with the call that a script makes in its place.

    Attributes:
        function: what is called.
        spelt: that call, of each argument as Python; where one is an array, that is its name.
    """

    function: Callable[..., Any]
    spelt: Callable[[Mapping[str, str]], Spelt]

    def __call__(self, *positional: Any, **given: Any) -> Any:
        """What the function answers."""
        return self.function(*positional, **given)


def spelt(function: Callable[..., Any], passed: Mapping[str, str]) -> Spelt:
    """The call of ``function`` with ``passed``, each argument as Python; those whose name is an ``int`` are positional.

    A function of this package that only turns arguments into a library's is replaced by what it does, so that the
    library's own function is seen; any other one is imported, or else quoted. One may have a method ``spelt``.

    Raises:
        NoScript: it can be neither imported nor quoted.
    """
    if (own := getattr(function, "spelt", None)) is not None:
        by_itself: Spelt = own(passed)
        return by_itself
    if _is_compiled(function):
        inner = spelt(inspect.unwrap(function), passed)
        return replace(inner, called=f"torch.compile(lambda: {inner.called})()")
    if _is_ours(function) and (found := _inside(function, passed)) is not None and _is_python(found.header):
        return found
    words = ", ".join(text if key.isdigit() else f"{key}={text}" for key, text in passed.items())
    header, name = (None if _is_ours(function) else _imported(function)) or quote(function) or (None, "")
    if header is None or not _is_python(header):
        raise NoScript(_why_not(function))
    return Spelt(header, f"{name}({words})")


def quote(function: Callable[..., Any], *, alone: bool = True) -> tuple[str, str] | None:
    """Python that defines ``function`` with the imports, names and functions of its module that it uses; and its name.

    To stand ``alone``, nothing of this package is imported: its functions are quoted too, and an exception of its own
    is one by the same name. A function defined in another, and a lambda, is quoted where what it takes from around it
    can be written down. None for what has no source: a method, an object, a builtin.
    """
    plain = function.func if isinstance(function, partial) else function
    code = getattr(plain, "__code__", None)
    if code is None:
        return None
    tree = _tree(plain)
    node = None if tree is None else _node(tree, code)
    if tree is None or node is None:
        return None
    name = node.name if isinstance(node, ast.FunctionDef) else "function"
    around = _around(plain)
    if around is None or any(isinstance(n, ast.Nonlocal) for n in ast.walk(node)):
        return None
    text = ast.unparse(node)
    whole = ast.parse(text if isinstance(node, ast.FunctionDef) else f"function = {text}").body[0]
    lines = [_FUTURE, *_needed(tree, _used(whole), {name, *around}, alone=alone)]
    lines += [*around.values(), _source(whole, {}, alone=alone)]
    if isinstance(function, partial):
        words = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in function.keywords.items())]
        lines += ["from functools import partial", f"function = partial({', '.join([name, *words])})"]
        name = "function"
    return "\n".join(filter(None, lines)), name


def _needed(tree: ast.Module, names: Iterable[str], known: set[str], *, alone: bool) -> list[str]:
    """The statements at the top of the module that define ``names`` and what these need, in their order."""
    defined = {n: at for at in tree.body for n in _names(at)}
    needed: dict[str, ast.stmt] = {}
    waiting = [*names]
    while waiting:
        if (found := waiting.pop()) in defined and found not in needed and found not in known:
            needed[found] = defined[found]
            waiting += _used(defined[found])
    kept = [at for at in tree.body if any(at is n for n in needed.values())]
    return [_source(at, needed, alone=alone) for at in kept]


def _used(node: ast.stmt) -> list[str]:
    flags = __future__.annotations.compiler_flag
    return [*_globals(compile(ast.Module([node], []), "", "exec", flags, dont_inherit=True))]


def _tree(function: Callable[..., Any]) -> ast.Module | None:
    try:
        return ast.parse(inspect.getsource(inspect.getmodule(function) or function))
    except (OSError, TypeError, SyntaxError):
        pass
    try:  # what was typed in: there is no module's source, but its lines
        return ast.parse("".join(linecache.getlines(function.__code__.co_filename)))
    except SyntaxError:
        return None


def _node(tree: ast.Module, code: CodeType) -> ast.FunctionDef | ast.Lambda | None:
    """What defines the function that has this code: by its line, and of several lambdas in it by what they compute.

    None where that does not tell them apart.
    """
    lambdas: dict[str, ast.Lambda] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
        elif isinstance(node, ast.Lambda) and code.co_name == "<lambda>" and node.lineno == code.co_firstlineno:
            made = _inner(compile(ast.Expression(node), "", "eval"))
            names = {*code.co_names, *code.co_freevars}
            same = _constants(made) == _constants(code)
            if same and ({*made.co_names}, made.co_varnames) == (names, code.co_varnames):
                lambdas[ast.unparse(node)] = node
    return next(iter(lambdas.values())) if len(lambdas) == 1 else None


def _inner(code: CodeType) -> CodeType:
    """The code of the lambda that is made; its defaults, which may be lambdas too, come before it."""
    return [c for c in code.co_consts if isinstance(c, CodeType)][-1]


def _constants(code: CodeType) -> list[str]:
    return [repr(c) for c in code.co_consts if not isinstance(c, CodeType)]


def _around(function: Callable[..., Any]) -> dict[str, str] | None:
    """What a function takes from the functions around it, as Python; None where that cannot be written down."""
    found: dict[str, str] = {}
    try:
        free = inspect.getclosurevars(function).nonlocals
    except (TypeError, ValueError):
        return None
    for name, value in free.items():
        if isinstance(value, ModuleType):
            found[name] = f"import {value.__name__} as {name}"
        elif isinstance(value, _LITERALS):
            found[name] = f"{name} = {value!r}"
        elif callable(value) and (imported := _imported(value) or quote(value)) is not None and value is not function:
            lines, called = imported
            found[name] = lines.removeprefix(f"{_FUTURE}\n") + (f"\n{name} = {called}" if called != name else "")
        else:
            return None
    return found


def _imported(function: Callable[..., Any]) -> tuple[str, str] | None:
    """The import of a function, or of the class whose method it is, where another process can import it."""
    owner = getattr(function, "__self__", None)
    if isinstance(owner, ModuleType):  # a builtin of a module in C
        owner = None
    if isinstance(function, partial):
        return None
    named = function if owner is None else type(owner)
    module = sys.modules.get(getattr(named, "__module__", None) or "")
    name = getattr(named, "__qualname__", "")
    if module is None or getattr(module, name, None) is not named or not _is_found(module):
        return None
    line = f"from {module.__name__} import {name}"
    return (line, name) if owner is None else (line, f"{name}().{function.__name__}")


def _is_found(module: ModuleType) -> bool:
    """Whether another process with the same paths finds the module by its name."""
    where, name, found = None, "", None
    try:
        for part in module.__name__.split("."):
            name = f"{name}.{part}".lstrip(".")
            found = PathFinder.find_spec(name, where)
            where = None if found is None else found.submodule_search_locations
            if found is None:
                return False
    except (ImportError, ValueError):
        return False
    return found is not None and found.origin == getattr(module, "__file__", None)


def _inside(function: Callable[..., Any], passed: Mapping[str, str]) -> Spelt | None:
    """What a function of this package does with the arguments, in place of its call."""
    plain = function.func if isinstance(function, partial) else function
    tree, fixed = _tree(plain), {}
    node = None if tree is None else _node(tree, plain.__code__)
    if tree is None or not isinstance(node, ast.FunctionDef) or any(key.isdigit() for key in passed):
        return None
    if isinstance(function, partial):
        names = [a.arg for a in (*node.args.posonlyargs, *node.args.args)]
        fixed = {**dict(zip(names, function.args, strict=False)), **function.keywords}
    arrays = {key for key, text in passed.items() if text == key}
    values = {key: ast.parse(repr(value), mode="eval").body for key, value in fixed.items()}
    found = inlined(node, values, passed, arrays, _tables(tree))
    if found is None:
        return None
    statements, called = _with_helpers(tree, *found)
    imports = [s for s in statements if isinstance(s, ast.Import | ast.ImportFrom)]
    steps = [s for s in statements if s not in imports]
    whole = ast.Module([*steps, ast.Expr(called)], [])
    inside = [n for n in ast.walk(whole) if isinstance(n, ast.Name)]
    used = {n.id for n in inside} - {n.id for n in inside if not isinstance(n.ctx, ast.Load)}
    local = {*passed, *(n for s in imports for n in _names(s))}
    needed = _needed(tree, sorted(used), local, alone=True)
    for s in imports:
        s.names = [a for a in s.names if (a.asname or a.name).split(".")[0] in used or isinstance(s, ast.Import)]
    needed += [ast.unparse(s) for s in imports if s.names and not _is_ours_too(s)]
    if any(_is_ours_too(s) for s in imports):
        return None
    header = [_FUTURE] if any("def " in line for line in needed) else []
    return Spelt("\n".join([*header, *filter(None, needed)]), ast.unparse(called), "\n".join(map(ast.unparse, steps)))


def _tables(tree: ast.Module) -> dict[str, ast.expr]:
    """The dicts at the top of a module that are written out."""
    return {
        name: at.value
        for at in tree.body
        if isinstance(at, ast.Assign | ast.AnnAssign) and isinstance(at.value, ast.Dict)
        for name in _names(at)
    }


def _with_helpers(tree: ast.Module, statements: list[ast.stmt], called: ast.expr) -> tuple[list[ast.stmt], ast.expr]:
    """The same with what short functions of the module return in place of their calls, after their imports."""
    helpers = _Helpers(tree)
    changed = [helpers.visit(s) for s in statements]
    called = helpers.visit(called)
    return [*helpers.imports, *changed], called


class _Helpers(ast.NodeTransformer):
    """Puts the expression that a function of the module returns in place of its call with plain arguments."""

    def __init__(self, tree: ast.Module) -> None:
        self.known = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.tables = _tables(tree)
        self.imports: list[ast.stmt] = []

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        helper = self.known.get(node.func.id) if isinstance(node.func, ast.Name) else None
        names = [] if helper is None else [a.arg for a in (*helper.args.posonlyargs, *helper.args.args)]
        fits = len(node.args) <= len(names) and all(k.arg for k in node.keywords)
        if helper is None or not fits or not all(map(_is_plain, (*node.args, *(k.value for k in node.keywords)))):
            return node
        given = dict(zip(names, node.args, strict=False)) | {str(k.arg): k.value for k in node.keywords}
        found = inlined(helper, {}, {name: ast.unparse(a) for name, a in given.items()}, (), self.tables)
        if found is None or not all(isinstance(s, ast.Import | ast.ImportFrom) for s in found[0]):
            return node
        self.imports += found[0]
        return found[1]


def _is_plain(node: ast.expr) -> bool:
    """Whether an argument may be written more than once: a name, or a value."""
    try:
        return isinstance(node, ast.Name) or bool([ast.literal_eval(node)])
    except ValueError:
        return False


def _is_ours_too(node: ast.Import | ast.ImportFrom) -> bool:
    return isinstance(node, ast.ImportFrom) and (node.module or "").startswith(f"{_PACKAGE}.conformance")


def _is_ours(function: Callable[..., Any]) -> bool:
    plain = function.func if isinstance(function, partial) else function
    home = str(getattr(plain, "__module__", ""))
    return hasattr(plain, "__code__") and home.startswith(f"{_PACKAGE}.conformance.systems.")


def _is_compiled(function: Callable[..., Any]) -> bool:
    return getattr(function, "__code__", None) is not None and function.__code__.co_filename.endswith(
        ("backends/compiled.py", "backends\\compiled.py")
    )


def _is_python(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _why_not(function: Callable[..., Any]) -> str:
    name = getattr(function, "__qualname__", type(function).__qualname__)
    return f"{name} is in no module that can be imported, and its source cannot be quoted"


def _globals(code: CodeType) -> Iterator[str]:
    """The names that a statement looks up in its module; a local name that the module has too is none."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in {"LOAD_GLOBAL", "LOAD_NAME"}:
            yield instruction.argval
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _globals(inner)


def _names(node: ast.stmt) -> list[str]:
    """What a statement at the top of a module defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Assign(targets=targets):
            return [t.id for t in targets if isinstance(t, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [(a.asname or a.name).split(".")[0] for a in names]
    return []


def _source(node: ast.stmt, needed: Container[str], *, alone: bool) -> str:
    match node:
        case ast.ImportFrom(module="__future__"):
            return ""
        case ast.ImportFrom() if alone and (node.module or "").split(".")[0] == _PACKAGE:
            module = importlib.import_module(str(node.module))
            names = [(a.name, a.asname or a.name) for a in node.names if (a.asname or a.name) in needed]
            return "\n".join(_brought(getattr(module, name), name, called) for name, called in names)
        case ast.ImportFrom(names=names) if alone:
            kept = [a for a in names if (a.asname or a.name) in needed]
            return ast.unparse(ast.ImportFrom(node.module, kept or names, node.level))
    return ast.unparse(node)


def _brought(found: Any, name: str, called: str) -> str:
    """What stands for a name of this package: an exception of the same name, or the function itself."""
    if isinstance(found, type) and issubclass(found, Exception):
        return f"class {called}(Exception): pass"
    if isinstance(found, type) or str(getattr(found, "__module__", "")).startswith(f"{_PACKAGE}.optimized"):
        return f"from {found.__module__} import {name}" + (f" as {called}" if called != name else "")
    source, own = quote(found) or (f"{name} = {found!r}", name)
    return source.removeprefix(f"{_FUTURE}\n") + (f"\n{called} = {own}" if called != own else "")
