"""What is left of a formula's program when its choices are known: two points that leave the same program are one.

The source is evaluated as far as it depends on the behaviour alone: branches that no input takes at this point are
dropped, and functions that get a choice are treated likewise, with that choice. What is left is the program that this
point carries out. Where two points leave the same text they give the same for every input, of every dtype and shape;
where the texts differ nothing is said. Whatever is not understood here stays in the text, with the choices in it.
"""

import ast
import copy
import inspect
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import is_dataclass
from functools import partial
from types import FunctionType, MappingProxyType, MethodType, ModuleType
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour

__all__ = ["residual"]

_PLAIN = (
    str,
    int,
    float,
    bool,
    bytes,
    type(None),
    tuple,
    frozenset,
    Behaviour,
    FunctionType,
    ModuleType,
    type,
    partial,
)
_UNKNOWN = object()
_OURS = "halfeven.reference"
_PASSES = 8
_NESTED = (ast.FunctionDef, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def residual(function: Callable[..., Any], known: Mapping[str, Any]) -> str:
    """The program that ``function`` carries out where some of its arguments are known, as text.

    Args:
        function: of the reference; its source is read.
        known: arguments by name.

    Example:
        >>> from halfeven.reference.rounding import cast_once
        >>> "astype" in residual(cast_once, {})
        True
    """
    return _Program(function, known, {}).text()


class _Program:
    """One function, some of whose arguments are known."""

    def __init__(self, function: Callable[..., Any], known: Mapping[str, Any], made: dict[Any, str]) -> None:
        self.function = inspect.unwrap(function)
        self.made = made  # what is known of functions called, so that recursion ends
        [tree] = ast.parse(textwrap.dedent(inspect.getsource(self.function))).body
        assert isinstance(tree, ast.FunctionDef), "a function of the reference"
        self.body = tree.body
        parameters = [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]
        stored = _stored(tree.body)
        self.env = {name: value for name, value in known.items() if name not in stored}
        rebound = {name: value for name, value in known.items() if name in stored}
        self.head = f"{self.function.__module__}.{self.function.__qualname__}({', '.join(parameters)}) {rebound!r}"

    def text(self) -> str:
        body = self.body
        for _ in range(_PASSES):
            before = _dumped(body)
            body = self._block(copy.deepcopy(body))
            self._propagate(body)
            if _dumped(body) == before:
                break
        return f"{self.head}:\n{_dumped(body)}"

    def _propagate(self, body: list[ast.stmt]) -> None:
        """Learn the value of a name that is assigned once and in any case; forget what nobody reads."""
        counts = Counter(_stores(body))
        read = {n.id for s in body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        self._learn(body, counts, read)

    def _learn(self, body: list[ast.stmt], counts: Mapping[str, int], read: set[str]) -> None:
        for statement in list(body):
            match statement:
                case ast.With(body=inner):
                    self._learn(inner, counts, read)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name not in read and _harmless(value):
                    body.remove(statement)
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if counts[name] == 1 and name not in self.env:
                    found = self.value(value)
                    if found is not _UNKNOWN:
                        self.env[name] = found
                        body.remove(statement)

    def _block(self, body: list[ast.stmt]) -> list[ast.stmt]:
        found: list[ast.stmt] = []
        for statement in body:
            for left in self._statement(statement):
                if found and _overwrites(left, found[-1]):
                    found.pop()
                found.append(left)
            if found and isinstance(found[-1], ast.Return | ast.Raise | ast.Continue | ast.Break):
                break
        return found or [ast.Pass()]

    def _statement(self, statement: ast.stmt) -> list[ast.stmt]:  # noqa: C901, PLR0911 - one case for each kind
        match statement:
            case ast.Expr(value=ast.Constant()) | ast.Pass():
                return []
            case ast.If(test=test) if (taken := self.value(test)) is not _UNKNOWN:
                return [s for inner in (statement.body if taken else statement.orelse) for s in self._statement(inner)]
            case ast.Match(subject=subject) if (about := self.value(subject)) is not _UNKNOWN:
                if (taken := self._case(statement, about)) is not None:
                    return [s for inner in taken for s in self._statement(inner)]
            case ast.AnnAssign(target=ast.Name(), value=value):
                if value is None:
                    return []
                return self._statement(ast.Assign([statement.target], value, lineno=0))
            case ast.Assign(targets=[ast.Tuple(elts=to)], value=ast.Tuple(elts=of)) if _apart(to, of):
                pairs = zip(to, of, strict=True)
                return [s for t, v in pairs for s in self._statement(ast.Assign([t], v, lineno=0))]
        for name, old in ast.iter_fields(statement):
            if isinstance(old, list) and old and isinstance(old[0], ast.stmt):
                setattr(statement, name, self._block(old))
            elif isinstance(old, list):
                setattr(statement, name, [self._node(o) for o in old])
            elif isinstance(old, ast.AST):
                setattr(statement, name, self._node(old))
        return [statement]

    def _node(self, node: Any) -> Any:  # noqa: C901, PLR0911 - one case for each kind
        """A node with what is known in it as constants."""
        if isinstance(node, ast.match_case):
            node.body = self._block(node.body)
            return node
        if isinstance(node, ast.ExceptHandler):
            node.body = self._block(node.body)
            return node
        if not isinstance(node, ast.AST):
            return node
        if isinstance(node, ast.JoinedStr) or (isinstance(node, _NESTED) and _bound(node) & self.env.keys()):
            return self._as_it_is(node)
        if isinstance(node, ast.expr) and not isinstance(getattr(node, "ctx", ast.Load()), ast.Store):
            if isinstance(node, ast.Constant):
                return node
            if (found := self.value(node)) is not _UNKNOWN:
                simple = isinstance(found, str | int | float | type(None))
                return ast.Constant(found) if simple else ast.Name(_shown(found), ast.Load())
            match node:
                case ast.IfExp(test=test) if (taken := self.value(test)) is not _UNKNOWN:
                    return self._node(node.body if taken else node.orelse)
                case ast.BoolOp(op=op, values=values):
                    left = self._undecided(op, values)
                    return self._node(left[0]) if len(left) == 1 else ast.BoolOp(op, [self._node(v) for v in left])
                case ast.Call():
                    return self._call(node)
        for name, old in ast.iter_fields(node):
            new = [self._node(o) for o in old] if isinstance(old, list) else self._node(old)
            setattr(node, name, new)
        return node

    def _as_it_is(self, node: ast.AST) -> ast.expr:
        """A node that is not looked into, with all that is known of the names in it."""
        known = {n.id: _shown(self.env[n.id]) for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in self.env}
        return ast.Constant(f"{ast.unparse(node)} where {known!r}")

    def _undecided(self, op: ast.boolop, values: list[ast.expr]) -> list[ast.expr]:
        """The operands without those that never decide; after one that does none is looked at."""
        left: list[ast.expr] = []
        for place, value in enumerate(values):
            found = self.value(value)
            if found is _UNKNOWN or place == len(values) - 1:
                left.append(value)
            elif bool(found) == isinstance(op, ast.Or):
                return [*left, value]
        return left

    def _call(self, node: ast.Call) -> ast.expr:
        """A call of one of ours with what is known of its arguments in its name."""
        function = self.value(node.func)
        ours = isinstance(function, FunctionType) and function.__module__.startswith(_OURS)
        plain = not any(isinstance(a, ast.Starred) for a in node.args) and all(k.arg for k in node.keywords)
        if not (ours and plain):
            node.func = self._node(node.func)
            node.args = [self._node(a) for a in node.args]
            node.keywords = [ast.keyword(k.arg, self._node(k.value)) for k in node.keywords]
            return node
        assert isinstance(function, FunctionType), "asked above"
        try:
            bound = (
                inspect.signature(function).bind(*node.args, **{str(k.arg): k.value for k in node.keywords}).arguments
            )
        except TypeError:  # with a *args of its own
            return self._as_it_is(node)
        if any(not isinstance(v, ast.expr) for v in bound.values()):
            return self._as_it_is(node)
        values = {name: self.value(value) for name, value in bound.items()}
        told = {name: value for name, value in values.items() if value is not _UNKNOWN}
        rest = [ast.keyword(name, self._node(value)) for name, value in bound.items() if name not in told]
        return ast.Call(ast.Name(self._named(function, told), ast.Load()), [], rest)

    def _named(self, function: FunctionType, told: Mapping[str, Any]) -> str:
        """A name for a function of which some arguments are known: what it then does."""
        key = function, tuple((name, _shown(value)) for name, value in told.items())
        if key not in self.made:
            self.made[key] = f"{function.__module__}.{function.__qualname__}, called by itself"
            try:
                self.made[key] = _Program(function, told, self.made).text()
            except (OSError, TypeError, ValueError):  # it has no source
                self.made[key] = f"{function.__qualname__} where {key[1]!r}"
        return f"<{self.made[key]}>"

    def _case(self, statement: ast.Match, about: Any) -> list[ast.stmt] | None:
        """The block that a match takes; None where that is not known."""
        if any(case.guard is not None for case in statement.cases):
            return None
        cases = [
            ast.match_case(
                case.pattern, None, [ast.Assign([ast.Name("_taken", ast.Store())], ast.Constant(i), lineno=0)]
            )
            for i, case in enumerate(statement.cases)
        ]
        program = ast.Module([ast.Match(ast.Name("_about", ast.Load()), cases)], [])
        names: dict[str, Any] = {"_about": about, "_taken": None}
        exec(compile(ast.fix_missing_locations(program), "<match>", "exec"), {}, names)  # noqa: S102 - our own source
        if (taken := names.pop("_taken")) is None:
            return []
        del names["_about"]
        captured = [
            ast.Assign([ast.Name(name, ast.Store())], ast.Constant(value), lineno=0) for name, value in names.items()
        ]
        return [*captured, *statement.cases[taken].body]

    def value(self, node: ast.expr) -> Any:  # noqa: PLR0911, C901 - one line for each kind of expression
        """What an expression is, whatever the input."""
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return self._global(name) if name not in self.env else self.env[name]
            case ast.Attribute(value=inner, attr=name):
                return self._attribute(self.value(inner), name)
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                a, b = self.value(left), self.value(right)
                return _UNKNOWN if a is _UNKNOWN or b is _UNKNOWN else _compared(op, a, b)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                found = self.value(operand)
                return _UNKNOWN if found is _UNKNOWN else not found
            case ast.BoolOp(op=op, values=values):
                for operand in values:
                    found = self.value(operand)
                    if found is _UNKNOWN or bool(found) == isinstance(op, ast.Or):
                        return found
                return found
            case ast.Tuple(elts=elements) | ast.Set(elts=elements):
                each = [self.value(e) for e in elements]
                make = tuple if isinstance(node, ast.Tuple) else frozenset
                return _UNKNOWN if any(e is _UNKNOWN for e in each) else make(each)
            case ast.Subscript(value=of, slice=at):
                table, key = self.value(of), self.value(at)
                return table[key] if isinstance(table, Mapping) and key is not _UNKNOWN and key in table else _UNKNOWN
            case ast.Call(func=ast.Attribute(value=of, attr=name), args=args, keywords=[]):
                about, each = self.value(of), [self.value(a) for a in args]
                pure = (isinstance(about, str) and name in {"startswith", "endswith"}) or (
                    isinstance(about, Behaviour) and name == "at"
                )
                return getattr(about, name)(*each) if pure and all(e is not _UNKNOWN for e in each) else _UNKNOWN
        return _UNKNOWN

    def _global(self, name: str) -> Any:
        if name in self.function.__code__.co_varnames or name in self.function.__code__.co_cellvars:
            return _UNKNOWN
        found = self.function.__globals__.get(name, _UNKNOWN)
        is_table = isinstance(found, dict | MappingProxyType) and name.isupper()
        return found if isinstance(found, _PLAIN) or is_table else _UNKNOWN

    @staticmethod
    def _attribute(of: Any, name: str) -> Any:
        if isinstance(of, ModuleType):
            found = getattr(of, name, _UNKNOWN)
            return found if isinstance(found, FunctionType | Behaviour) else _UNKNOWN
        if isinstance(of, Behaviour) or (is_dataclass(of) and not isinstance(of, type) and of is not _UNKNOWN):
            found = getattr(of, name, _UNKNOWN)
            return _UNKNOWN if isinstance(found, MethodType) else found
        return _UNKNOWN


def _compared(op: ast.cmpop, a: Any, b: Any) -> Any:  # noqa: PLR0911 - one line for each
    match op:
        case ast.Eq():
            return a == b
        case ast.NotEq():
            return a != b
        case ast.In():
            return a in b
        case ast.NotIn():
            return a not in b
        case ast.Is():
            return a is b
        case ast.IsNot():
            return a is not b
    return _UNKNOWN


def _shown(value: Any) -> str:
    """A value as text; of a function its name."""
    if isinstance(value, FunctionType):
        return f"{value.__module__}.{value.__qualname__}"
    return repr(value) if not isinstance(value, np.ndarray) else f"{value.dtype}{value.tolist()!r}"


def _dumped(body: list[ast.stmt]) -> str:
    return "\n".join(ast.unparse(ast.fix_missing_locations(s)) for s in body)


def _stores(body: list[ast.stmt]) -> list[str]:
    """Every name that is bound in the block, once for each time."""
    found = [
        node.id for s in body for node in ast.walk(s) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    found += [
        str(node.name)
        for s in body
        for node in ast.walk(s)
        if isinstance(node, ast.FunctionDef | ast.MatchAs | ast.MatchStar) and node.name
    ]
    return found


def _stored(body: list[ast.stmt]) -> set[str]:
    return set(_stores(body))


def _bound(node: ast.AST) -> set[str]:
    """The names that a nested function or a comprehension binds."""
    return {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)} | {
        n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }


def _overwrites(later: ast.stmt, earlier: ast.stmt) -> bool:
    """Whether one assignment follows another to the same name, of which nobody has read anything."""
    match earlier, later:
        case ast.Assign(targets=[ast.Name(id=first)], value=lost), ast.Assign(
            targets=[ast.Name(id=second)], value=kept
        ):
            calls = any(isinstance(n, ast.Call | ast.NamedExpr) for n in ast.walk(lost))
            reads = any(isinstance(n, ast.Name) and n.id == first for n in ast.walk(kept))
            return first == second and not calls and not reads
    return False


def _harmless(value: ast.expr) -> bool:
    """Whether nothing but its value comes of an expression: it has no calls but those of NumPy's float types."""
    calls = [n.func for n in ast.walk(value) if isinstance(n, ast.Call)]
    return all(isinstance(f, ast.Attribute) and f.attr in {"float16", "float32", "float64"} for f in calls)


def _apart(to: list[ast.expr], of: list[ast.expr]) -> bool:
    """Whether assigning one after the other is assigning them at once."""
    if len(to) != len(of) or not all(isinstance(t, ast.Name) for t in to):
        return False
    names = {t.id for t in to if isinstance(t, ast.Name)}
    return not any(isinstance(n, ast.Name) and n.id in names for v in of for n in ast.walk(v))
