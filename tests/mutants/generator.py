"""Makes mutants of a module: one expression or one statement of its source changed, found in the syntax tree.

What carries no behaviour is left alone: messages of errors, annotations, decorators, docstrings, and the warnings that
NumPy is told to keep to itself.
"""

import ast
import copy
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

__all__ = ["Mutant", "mutants", "tree_of"]

Path = tuple[tuple[str, int | None], ...]
"""The way from the module to a node: the field of each node passed, and the place where the field is a list."""

_NEIGHBOURS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_PAIRS = (
    ("rint", "floor"),
    ("ceil", "floor"),
    ("trunc", "rint"),
    ("half_even", "half_away"),
    ("half_up", "half_down"),
    ("toward_zero", "floor"),
    ("maximum", "minimum"),
    ("max", "min"),
    ("amax", "amin"),
    ("argmax", "argmin"),
    ("nanmax", "nanmin"),
    ("all", "any"),
    ("isnan", "isinf"),
    ("isfinite", "isnan"),
    ("float32", "float64"),
    ("bfloat16", "float16"),
    ("int64", "int32"),
    ("uint8", "int8"),
    ("uint32", "int32"),
    ("inf", "nan"),
    ("zeros", "ones"),
)
_OTHER_NAME = {b: a for a, b in reversed(_PAIRS)} | dict(_PAIRS)
#: Calls that stand for their first argument, or for what their method belongs to, when they are taken away.
_TAKEN_AWAY = {"astype", "reshape", "clip", "abs", "rint", "floor", "ceil", "trunc", "sqrt", "half_even", "ravel"}
_SILENT = {"annotation", "returns", "decorator_list", "bases", "type_comment"}
_WORDS = {"msg", "__all__", "DOES", "_SOURCE"}  # targets whose values are told to people
#: Keywords that are words, or no behaviour.
_TOLD = {"title", "source", "equation", "basis", "name", "strict", "copy"}
_WORD = re.compile(r"[A-Za-z0-9_.@+-]+")
_SHOWN = 100


@dataclass(frozen=True)
class Mutant:
    """One change of a module's source.

    Attributes:
        module: the module's name.
        owner: the function or method that is changed, or the name that a statement of the module defines.
        change: the expression before and after, and a number where the owner has the same change twice.
        path: the way to the node.
        place: which of the node's changes it is.
    """

    module: str
    owner: str
    change: str
    path: Path
    place: int

    @property
    def home(self) -> str:
        """Its module and function, as the ledger has them: ``onnx.linear.quantize_linear``; no line."""
        module = self.module.removeprefix("halfeven.").removeprefix("reference.").removeprefix("systems.")
        return f"{module}.{self.owner}"

    @property
    def key(self) -> tuple[str, str]:
        """What the ledger calls it."""
        return self.home, self.change


def mutants(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module, in the order of its source."""
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    tree = ast.parse(source)
    for owner, path, node in _owned(tree):
        for place, changed in enumerate(_changes(node)):
            change = _words(tree, path, node, changed)
            seen[owner, change] += 1
            times = seen[owner, change]
            found.append(Mutant(module, owner, change if times == 1 else f"{change} #{times}", path, place))
    return found


@lru_cache(maxsize=4)
def _parsed(source: str) -> ast.Module:
    return ast.parse(source)


def tree_of(mutant: Mutant, source: str) -> ast.stmt:
    """The statement of the module that holds the change, changed."""
    tree = _parsed(source)
    top = mutant.path[0][1] or 0
    changed = ast.Module([copy.deepcopy(tree.body[top])], [])
    path = (("body", 0), *mutant.path[1:])
    node = _at(changed, path)
    new = next(c for place, c in enumerate(_changes(node)) if place == mutant.place)
    for inner in ast.walk(new):
        if not hasattr(inner, "lineno"):
            ast.copy_location(inner, node)
    _put(_at(changed, path[:-1]), path[-1], new)
    return ast.fix_missing_locations(changed).body[0]


def _at(tree: ast.AST, path: Path) -> ast.AST:
    for field, index in path:
        value = getattr(tree, field)
        tree = value if index is None else value[index]
    return tree


def _put(parent: ast.AST, where: tuple[str, int | None], node: ast.AST) -> None:
    field, index = where
    if index is None:
        setattr(parent, field, node)
    else:
        setattr(parent, field, [*getattr(parent, field)[:index], node, *getattr(parent, field)[index + 1 :]])


def _owned(tree: ast.Module) -> Iterator[tuple[str, Path, ast.AST]]:
    """Each node that may change, with the name of its owner and the way to it."""
    for i, statement in enumerate(tree.body):
        start: Path = (("body", i),)
        match statement:
            case ast.FunctionDef(name=name):
                yield from ((name, p, n) for p, n in _inside(statement, start))
            case ast.ClassDef(name=name, body=body):
                for j, member in enumerate(body):
                    if isinstance(member, ast.FunctionDef):
                        way: Path = (*start, ("body", j))
                        yield from ((f"{name}.{member.name}", p, n) for p, n in _inside(member, way))
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                if name not in _WORDS and not _is_type(statement):
                    yield from ((name, p, n) for p, n in _inside(statement, start))


def _is_type(statement: ast.Assign | ast.AnnAssign) -> bool:
    """Whether a statement names a type (a ``Literal``, a union, ``npt.NDArray[Any]``), what choices do, or nothing."""
    value = statement.value
    if isinstance(value, ast.Dict) and all(isinstance(v, ast.Constant) and " " in str(v.value) for v in value.values):
        return True  # what each value of a choice does, in words
    if isinstance(value, ast.Call) and getattr(value.func, "id", "") in {"choice", "roundings"}:
        return True
    words = {"Literal", "tuple", "dict", "NDArray", "Callable", "Mapping", "dtype", "Sequence"}
    return (
        value is None
        or (isinstance(value, ast.Subscript) and ast.unparse(value.value).split(".")[-1] in words)
        or (isinstance(value, ast.BinOp) and isinstance(value.left, ast.Name) and isinstance(value.op, ast.BitOr))
    )


def _inside(node: ast.AST, path: Path) -> Iterator[tuple[Path, ast.AST]]:
    for name, value in ast.iter_fields(node):
        if name in _SILENT:
            continue
        for index, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and not _is_silent(child, node):
                way = (*path, (name, index))
                yield way, child
                yield from _inside(child, way)


def _is_silent(node: ast.AST, parent: ast.AST) -> bool:  # noqa: PLR0911 - a table
    """Whether a node says something to people alone or to NumPy's warnings, or does the same whatever it is."""
    match node:
        case (
            ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.Assert() | ast.Pass()
            | ast.expr_context() | ast.Expr(value=ast.Constant()) | ast.AnnAssign(value=None)
            | ast.AugAssign(target=ast.Name(id="msg"))
            | ast.Call(func=ast.Attribute(attr="errstate") | ast.Name(id="cast" | "TypeVar"))
        ):  # fmt: skip
            return True
        case ast.Constant(str()) if isinstance(parent, ast.Compare) and node is not parent.left:
            return len(node.value) > 1 and isinstance(parent.ops[0], ast.In | ast.NotIn)  # letters: each is taken away
        case ast.keyword(value=ast.Constant(str())):  # a choice, which any other word is refused as
            return isinstance(parent, ast.Call) and getattr(parent.func, "id", "").lstrip("_")[:1].isupper()
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.keyword(arg=str(name)):
            return name in _WORDS if isinstance(node, ast.Assign) else name in _TOLD
        case ast.Constant(str(value)) if isinstance(parent, ast.Call | ast.Tuple):  # a name for an error: ("x", x)
            return any(value == getattr(n, "id", getattr(n, "attr", None)) for n in ast.walk(parent))
        case ast.UnaryOp(ast.USub(), ast.Constant(1)):  # to NumPy any negative length is the one that it works out
            is_call = isinstance(parent, ast.Call) and getattr(parent.func, "attr", "") == "reshape"
            return is_call or isinstance(parent, ast.Tuple)
    return False


def _changes(node: ast.AST) -> Iterator[ast.AST]:  # noqa: C901, PLR0912 - a table
    match node:
        case ast.Compare(left, [ast.In() | ast.NotIn()] as ops, [ast.Constant(str(letters))]) if len(letters) > 1:
            yield ast.Compare(left, ops, [ast.Constant(letters[1:])])
            yield ast.Compare(left, ops, [ast.Constant(letters[:-1])])
        case ast.Compare(left, ops, comparators):
            for i, op in enumerate(ops):
                yield ast.Compare(left, [*ops[:i], _NEIGHBOURS[type(op)](), *ops[i + 1 :]], comparators)
        case ast.BinOp(left, op, right) if type(op) in _ARITHMETIC and not _is_text(left) and not _is_text(right):
            yield ast.BinOp(left, _ARITHMETIC[type(op)](), right)
        case ast.AugAssign(target, op, value) if type(op) in _ARITHMETIC:
            yield ast.AugAssign(target, _ARITHMETIC[type(op)](), value)
            yield ast.Pass()
        case ast.BoolOp(op, values):
            yield from (_one_less(op, values, i) for i in range(len(values)))
        case ast.UnaryOp(ast.USub() | ast.Not() | ast.Invert(), operand) if not isinstance(operand, ast.Constant):
            yield operand
        case ast.IfExp(_, body, orelse):
            yield from (body, orelse)
        case ast.If(_, body, orelse):
            yield ast.If(ast.Constant(False), body, orelse)
            if not isinstance(body[-1], ast.Raise):  # a guard that always raises is seen by any call
                yield ast.If(ast.Constant(True), body, orelse)
        case ast.comprehension(target, iterated, [_, *_] as ifs, is_async):
            yield from (ast.comprehension(target, iterated, ifs[:i] + ifs[i + 1 :], is_async) for i in range(len(ifs)))
        case ast.match_case(pattern, [_, *_] as body, _) if not _catches_all(pattern):
            yield ast.match_case(pattern, ast.Constant(False), body)
        case ast.Attribute(value, name, ctx) if name in _OTHER_NAME:
            yield ast.Attribute(value, _OTHER_NAME[name], ctx)
        case ast.Name(name, ast.Load()) if name in _OTHER_NAME:
            yield ast.Name(_OTHER_NAME[name], ast.Load())
        case ast.Constant(bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(int(value) | float(value)):
            yield ast.Constant(value + 1 if value + 1 != value else value / 2)
        case ast.Constant(str(value)) if _WORD.fullmatch(value):
            yield ast.Constant(_OTHER_NAME.get(value, f"{value}~"))
        case ast.Call(ast.Attribute(value, name), arguments) if name in _TAKEN_AWAY:
            yield arguments[0] if isinstance(value, ast.Name) and value.id in {"np", "math"} else value
        case ast.Call(ast.Name(name), [first, *_]) if name in _TAKEN_AWAY:
            yield first
        case ast.Expr(ast.Call()):
            yield ast.Pass()
        case ast.Assign([ast.Subscript()], _):
            yield ast.Pass()


def _one_less(op: ast.boolop, values: list[ast.expr], i: int) -> ast.expr:
    left = values[:i] + values[i + 1 :]
    return left[0] if len(left) == 1 else ast.BoolOp(op, left)


def _catches_all(pattern: ast.pattern) -> bool:
    return isinstance(pattern, ast.MatchAs) and pattern.pattern is None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _words(tree: ast.AST, path: Path, node: ast.AST, changed: ast.AST) -> str:
    """What stood there and what stands there now, a name or a number with the expression around it."""
    if isinstance(node, ast.Constant | ast.Name | ast.Attribute):
        up = 2 if isinstance(_at(tree, path[:-1]), ast.UnaryOp) else 1
        if isinstance(found := _at(tree, path[:-up]), ast.arguments):
            name, index = path[-up]
            args = (
                found.kwonlyargs if name == "kw_defaults" else [*found.posonlyargs, *found.args][-len(found.defaults) :]
            )
            sign = "" if up == 1 else "-"
            return f"{args[index or 0].arg}={sign}{_shown(node)} -> {args[index or 0].arg}={sign}{_shown(changed)}"
        around = copy.deepcopy(_at(tree, path[:-up]))
        before = _shown(around)
        _put(_at(around, path[-up:-1]), path[-1], changed)
        after = _shown(around)
        if before != after and not before.endswith("..."):
            return f"{before} -> {after}"
    return f"{_shown(node)} -> {_shown(changed)}"


def _shown(node: ast.AST) -> str:
    """A node in one line, of a statement what is before its body."""
    match node:
        case ast.comprehension():
            text = ast.unparse(ast.ListComp(ast.Name("_"), [node]))[2:-1].strip()
        case ast.match_case():
            text = f"case {ast.unparse(node.pattern)}" + (f" if {ast.unparse(node.guard)}" if node.guard else "")
        case _:
            text = ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).partition("\n")[0]
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
