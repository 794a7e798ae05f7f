"""A function's body in place of its call: parameters are the variables of a script, and what is constant is folded."""

import ast
import contextlib
import copy
import operator
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any

__all__ = ["inlined"]

_REFUSAL = "Unsupported"
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}


def inlined(
    node: ast.FunctionDef,
    fixed: Mapping[str, ast.expr],
    passed: Mapping[str, str],
    arrays: Collection[str] = (),
    tables: Mapping[str, ast.expr] | None = None,
) -> tuple[list[ast.stmt], ast.expr] | None:
    """The statements and the expression that ``node`` comes to; None where it has several ends, or functions inside.

    Args:
        node: the function.
        fixed: arguments that are given once for all.
        passed: the others, as Python; a parameter whose text is its own name is a variable already.
        arrays: those of them that are arrays, and never None.
        tables: dicts of the function's module that no one changes, by name.

    Example:
        >>> [node] = ast.parse("def f(x, name, more=1): return getattr(lib, name)(x + more)").body
        >>> _, called = inlined(node, {}, {"x": "x", "name": "'twice'"})
        >>> ast.unparse(called)
        'lib.twice(x + 1)'
    """
    inner = any(
        isinstance(n, ast.FunctionDef | ast.Lambda | ast.Yield | ast.ClassDef) for s in node.body for n in ast.walk(s)
    )
    known = None if inner or node.args.vararg else _parameters(node.args, fixed, passed)
    if known is None:
        return None
    body = [s for s in copy.deepcopy(node.body) if not _is_text(s) and not _refuses(s)]
    assigned = {name for s in body for n in ast.walk(s) for name in _changes(n)}
    never_none = {*arrays} - assigned
    fold = _Fold({name: value for name, value in known.items() if name not in assigned}, never_none, tables or {})
    first = [
        ast.Assign([ast.Name(name, ast.Store())], known[name], lineno=0)
        for name in known
        if name in assigned and not (isinstance(known[name], ast.Name) and known[name].id == name)  # type: ignore[attr-defined]
    ]
    done = _up_to_its_end(fold.visit(ast.Module(body, [])))
    if done is None:
        return None
    statements, end = done
    return [*first, *(_bare(s) for s in statements if not isinstance(s, ast.Pass))], end


def _up_to_its_end(body: ast.Module) -> tuple[list[ast.stmt], ast.expr] | None:
    """The statements before the first return, and what it returns; None where another return may come before it."""
    ast.fix_missing_locations(body)
    for i, last in enumerate(body.body):
        if isinstance(last, ast.Return):
            return None if last.value is None else (body.body[:i], last.value)
        if any(isinstance(n, ast.Return) for n in ast.walk(last)):
            return None
    return None


def _parameters(
    args: ast.arguments, fixed: Mapping[str, ast.expr], passed: Mapping[str, str]
) -> dict[str, ast.expr] | None:
    positional = [a.arg for a in (*args.posonlyargs, *args.args)]
    defaults = dict(zip(reversed(positional), reversed(args.defaults), strict=False))
    defaults |= {a.arg: d for a, d in zip(args.kwonlyargs, args.kw_defaults, strict=True) if d is not None}
    given = {**fixed, **{name: ast.parse(text, mode="eval").body for name, text in passed.items()}}
    found: dict[str, ast.expr] = {}
    for name in (*positional, *(a.arg for a in args.kwonlyargs)):
        if (value := given.pop(name, defaults.get(name))) is None:
            return None
        found[name] = value
    if args.kwarg is not None:
        found[args.kwarg.arg] = _dict(given)
    elif given:
        return None
    return found


class _Fold(ast.NodeTransformer):
    """Puts arguments in for parameters, and what they decide in place of what asks for it."""

    def __init__(self, known: Mapping[str, ast.expr], arrays: Collection[str], tables: Mapping[str, ast.expr]) -> None:
        self.known, self.arrays, self.tables = known, arrays, tables

    def visit_Name(self, node: ast.Name) -> Any:
        if isinstance(node.ctx, ast.Load) and node.id in self.known:
            return copy.deepcopy(self.known[node.id])
        return node

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Call(func=ast.Name(id="getattr"), args=[owner, ast.Constant(value=str(name))], keywords=[]):
                return ast.Attribute(owner, name, ast.Load())
            case ast.Call(func=ast.Name(id="str"), args=[ast.Constant(value=str()) as text], keywords=[]):
                return text
            case ast.Call(
                func=ast.Attribute(value=ast.Dict() as table, attr="get"), args=[ast.Constant() as key, *other]
            ):
                return _entry(table, key, *other) or node
        given: dict[str | None, ast.expr] = {}
        for k in node.keywords:  # f(**{"a": b}) is f(a=b)
            pairs = [(k.arg, k.value)] if k.arg is not None else _pairs(k.value)
            if pairs is None or not given.keys().isdisjoint({name for name, _ in pairs}):
                return node
            given |= dict(pairs)
        node.keywords = [ast.keyword(name, value) for name, value in given.items()]
        return node

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        self.generic_visit(node)
        match node:  # two dicts put together
            case ast.BinOp(left=ast.Dict() as one, op=ast.BitOr(), right=ast.Dict() as other):
                first, second = _pairs(one), _pairs(other)
                if first is not None and second is not None:
                    return _dict({**dict(first), **dict(second)})
        return node

    def visit_Dict(self, node: ast.Dict) -> Any:
        self.generic_visit(node)
        flat: dict[str, ast.expr] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            match key, value:
                case None, ast.Dict():
                    if (inner := _pairs(value)) is None:
                        return node
                    flat |= dict(inner)
                case ast.Constant(value=str(name)), _:
                    flat[name] = value
                case _:
                    return node
        return _dict(flat)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Subscript(value=ast.Dict() as table, slice=ast.Constant() as key):
                return _entry(table, key) or node
            case ast.Subscript(value=ast.Name(id=name), slice=ast.Constant() as key):
                found = self.tables.get(name)
                return (isinstance(found, ast.Dict) and _entry(found, key)) or node
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        self.generic_visit(node)
        match node:
            case ast.BoolOp(op=ast.And(), values=[ast.Constant(value=first) as one, other]):
                return other if first else one
            case ast.BoolOp(op=ast.And(), values=[ast.Tuple(elts=elements), other]) if elements:
                return other
            case ast.BoolOp(op=ast.Or(), values=[ast.Constant(value=first) as one, other]):
                return one if first else other
        return node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        match node:
            case ast.Compare(left=ast.Constant(value=a), ops=[op], comparators=[ast.Constant(value=b)]):
                compare = _COMPARISONS.get(type(op))
                with contextlib.suppress(TypeError):
                    return node if compare is None else ast.Constant(compare(a, b))
            case ast.Compare(left=ast.Name(id=name), ops=[op], comparators=[ast.Constant(value=None)]):
                if name in self.arrays and isinstance(op, ast.Is | ast.IsNot):
                    return ast.Constant(isinstance(op, ast.IsNot))
        return node

    def visit_If(self, node: ast.If) -> Any:
        self.generic_visit(node)
        match node.test:
            case ast.Constant(value=value):
                return node.body if value else node.orelse or ast.Pass()
        return node

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        self.generic_visit(node)
        match node.test:
            case ast.Constant(value=value):
                return node.body if value else node.orelse
        return node


def _entry(table: ast.Dict, wanted: ast.Constant, other: ast.expr | None = None) -> ast.expr | None:
    """The value of a key in a dict that is written out; ``other`` where it is not in it."""
    if not all(isinstance(key, ast.Constant) for key in table.keys):
        return None
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and key.value == wanted.value:
            return value
    return other


def _changes(node: ast.AST) -> Iterator[str]:
    """The names that a part of the body gives another value, or whose value it changes."""
    match node:
        case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
            yield name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="pop" | "update" | "setdefault")):
            yield name


def _pairs(node: ast.expr) -> list[tuple[str, ast.expr]] | None:
    """The entries of a dict that is written out, if all its keys are words."""
    if not isinstance(node, ast.Dict):
        return None
    found = [
        (k.value, v)
        for k, v in zip(node.keys, node.values, strict=True)
        if isinstance(k, ast.Constant) and isinstance(k.value, str)
    ]
    return found if len(found) == len(node.keys) else None


def _dict(entries: Mapping[str, ast.expr]) -> ast.Dict:
    return ast.Dict([ast.Constant(name) for name in entries], [*entries.values()])


def _bare(node: ast.stmt) -> ast.stmt:
    """An assignment without its annotation, whose names a script need not import."""
    if isinstance(node, ast.AnnAssign) and node.value is not None:
        return ast.Assign([node.target], node.value, lineno=0)
    return node


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _refuses(node: ast.stmt) -> bool:
    """Whether a statement only refuses what is not offered: a call that was answered passes it."""
    if not isinstance(node, ast.If) or node.orelse:
        return False
    *said, last = node.body
    match last:
        case ast.Raise(exc=ast.Call(func=ast.Name(id=raised))):
            return raised == _REFUSAL and all(isinstance(s, ast.Assign) for s in said)
    return False
