"""The source of a function with what it needs of its module, for scripts that stand alone."""

import __future__

import ast
import dis
import importlib
import inspect
from collections.abc import Callable, Container, Iterator, Mapping
from functools import partial
from types import CodeType
from typing import Any

__all__ = ["quote", "spelt"]

_PACKAGE = "halfeven"
_FUTURE = "from __future__ import annotations"


def quote(function: Callable[..., Any], *, alone: bool = True) -> tuple[str, str] | None:
    """Python that defines ``function`` with the imports, names and functions of its module that it uses; and its name.

    To stand ``alone``, nothing of this package is imported: its functions are quoted too, and an exception of its own
    is one by the same name. None for what has no source, or no name: a lambda, a method, an object.
    """
    plain = function.func if isinstance(function, partial) else function
    name = getattr(plain, "__qualname__", "")
    if not name.isidentifier():
        return None
    try:
        tree = ast.parse(inspect.getsource(inspect.getmodule(plain) or plain))
    except (OSError, TypeError, SyntaxError):
        return None
    defined = {n: node for node in tree.body for n in _names(node)}
    if name not in defined:
        return None
    needed: dict[str, ast.stmt] = {}
    waiting = [name]
    while waiting:
        if (found := waiting.pop()) in defined and found not in needed:
            needed[found] = defined[found]
            waiting += _globals(
                compile(ast.Module([defined[found]], []), "", "exec", __future__.annotations.compiler_flag)
            )
    kept = [node for node in tree.body if any(node is n for n in needed.values())]
    lines = [_FUTURE, *(_source(node, needed, alone=alone) for node in kept)]
    if isinstance(function, partial):
        words = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in function.keywords.items())]
        lines += ["from functools import partial", f"function = partial({', '.join([name, *words])})"]
        name = "function"
    return "\n".join(lines), name


def spelt(function: Callable[..., Any], passed: Mapping[str, str]) -> tuple[str, str] | None:
    """Python that defines or imports ``function``, and the call with these arguments; None for what has no source.

    A function may have a method ``spelt`` of its own.
    """
    if (own := getattr(function, "spelt", None)) is not None:
        lines, call = own(passed)
        return lines, call
    if (quoted := quote(function)) is None:
        return None
    source, name = quoted
    return source, f"{name}({', '.join(f'{key}={text}' for key, text in passed.items())})"


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
    if not (alone and isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == _PACKAGE):
        return ast.unparse(node)
    module = importlib.import_module(str(node.module))
    names = [(a.name, a.asname or a.name) for a in node.names if (a.asname or a.name) in needed]
    return "\n".join(_brought(getattr(module, name), name, called) for name, called in names)


def _brought(found: Any, name: str, called: str) -> str:
    """What stands for a name of this package: an exception of the same name, or the function itself."""
    if isinstance(found, type) and issubclass(found, Exception):
        return f"class {called}(Exception): pass"
    source, own = quote(found) or (f"{name} = {found!r}", name)
    return source.removeprefix(f"{_FUTURE}\n") + (f"\n{called} = {own}" if called != own else "")
