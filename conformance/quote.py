"""The source of a function with what it needs of its module, for scripts that stand alone."""

import ast
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

__all__ = ["quote"]

_PACKAGE = "halfeven"


def quote(function: Callable[..., Any]) -> tuple[str, str] | None:
    """Python that defines ``function`` with the imports, names and functions of its module that it uses; and its name.

    Of this package nothing is imported: a class of its own is an exception by the same name. None for what has no
    source, or no name: a lambda, a method, an object.
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
            waiting += [n.id for n in ast.walk(defined[found]) if isinstance(n, ast.Name)]
    kept = [node for node in tree.body if any(node is n for n in needed.values())]
    lines = ["from __future__ import annotations", *(_source(node) for node in kept)]
    if isinstance(function, partial):
        words = [*map(repr, function.args), *(f"{k}={v!r}" for k, v in function.keywords.items())]
        lines += ["from functools import partial", f"function = partial({', '.join([name, *words])})"]
        name = "function"
    return "\n".join(lines), name


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


def _source(node: ast.stmt) -> str:
    if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == _PACKAGE:
        return "\n".join(f"class {a.asname or a.name}(Exception): pass" for a in node.names)
    return ast.unparse(node)
