"""Shows mutants to the calls: one that answers as before on every call survives.

A mutant is put in place of the function that it changes, in this process, so that every table and every module that
holds the function sees it. A call is shown only those mutants whose function it runs.
"""

import ast
import contextlib
import gc
import inspect
import signal
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from functools import _lru_cache_wrapper, cache
from types import CodeType, FunctionType, ModuleType
from typing import Any

import numpy as np

from halfeven.conformance.engine.call import Answer, leaves
from mutants.asked import Row
from mutants.generator import Mutant, tree_of

__all__ = ["Asked", "TimedOut", "forget", "in_place", "ready_to_fork", "seconds_for", "told"]

Place = tuple[str, str, int]
"""A function: its file, its qualified name, its first line."""
_CODE = ("__code__", "__defaults__", "__kwdefaults__")


class TimedOut(BaseException):
    """A call of a mutant that does not end; no ``except Exception`` stops it."""


def told(found: Answer) -> Any:
    """An answer as something to compare: bits and dtypes, any NaN the same, what is open of its sums, an error's types.

    Nothing of the suite's own comparison has a part in it, for that is mutated too.
    """
    if found.kind != "returned":
        return found.error or (found.kind, found.message)
    between = tuple((name, repr(found.open[name])) for name in sorted(found.open))
    return tuple((name, _leaf(value)) for name, value in leaves(found.value)), between


def _leaf(value: Any) -> Any:
    if not isinstance(value, np.ndarray | np.generic):
        return type(value), repr(value)
    a = np.array(value)
    if a.dtype.kind == "O":
        return repr(a)
    if a.dtype.kind in "fV":
        with contextlib.suppress(TypeError), np.errstate(all="ignore"):
            if (nan := np.isnan(a)).any():
                a[nan] = np.nan
    return a.dtype.name, a.shape, a.tobytes()


def _same(before: Any, now: Any) -> bool:
    if before == now:
        return True
    # An error of a narrower type than the one before passes the suite, which looks for the documented type.
    return bool(before and now and isinstance(before[0], str) and isinstance(now[0], str) and before[0] in now)


class _DoesNotImport(Exception):
    pass


class Asked:
    """Calls with what they came to before anything was changed, and the functions that each of them runs."""

    def __init__(self, rows: Iterable[Row], within: str) -> None:
        """``within``: the folder of the sources whose functions are noted."""
        self.rows = list(rows)
        self.before: list[Any] = []
        self.running: dict[Place, list[int]] = {}
        self._tables: dict[tuple[str, str], list[int]] = {}
        for i, row in enumerate(self.rows):
            clear_caches()
            with warnings.catch_warnings(action="ignore"):
                found, places = _traced(row.ask, within)
            self.before.append(told(found))
            for place in places:
                self.running.setdefault(place, []).append(i)
        shuffled = np.random.default_rng(0)
        for order in self.running.values():  # neighbours are alike: what sees a mutant comes sooner in no order
            shuffled.shuffle(order)

    def sees(self, mutant: Mutant) -> bool | None:
        """Whether a call sees the mutant; None where none runs what it changes."""
        module = sys.modules[mutant.module]
        with contextlib.suppress(_DoesNotImport), in_place(mutant) as places:
            order = self._order(module, mutant, places)
            if not order:
                return None
            for at, i in enumerate(order):
                if self._parts(i):
                    order.insert(0, order.pop(at))  # the next mutant is likely near
                    return True
            return False
        return True

    def _order(self, module: ModuleType, mutant: Mutant, places: set[Place]) -> list[int]:
        """The calls that can see the mutant: those that run its function; for a table, those that run what reads it.

        A table that no function reads by name is read by those who are handed it, and by the methods of its class.
        """
        if len(places) == 1:
            return self.running.get(next(iter(places)), [])
        key = (module.__name__, mutant.owner)
        if key not in self._tables:
            table = vars(module).get(mutant.owner)
            own = vars(type(table)).values() if hasattr(table, "__dataclass_fields__") else ()
            methods = [getattr(m, "fget", m) for m in own]
            names = _made_of(module, mutant.owner)
            readers = [f for f in _functions() if f in methods or names & _names(f.__code__)]
            rows = {i for f in readers for i in self.running.get(_place(f.__code__), ())}
            rows |= {i for i, row in enumerate(self.rows) if any(v is table for v in row.arguments.values())}
            self._tables[key] = sorted(rows)
        return self._tables[key]

    def _parts(self, i: int) -> bool:
        clear_caches()
        try:
            with seconds_for(_SECONDS):
                now = told(self.rows[i].ask())
        except (TimedOut, Exception):  # noqa: BLE001 - a mutant of what asks raises where it catches
            return True
        return not _same(self.before[i], now)


_SECONDS = 5.0


@contextlib.contextmanager
def seconds_for(seconds: float) -> Iterator[None]:
    """Raise ``TimedOut`` when the block takes longer than ``seconds`` of a core, whatever else the machine does."""

    def end(*_: Any) -> None:
        raise TimedOut

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def _names(code: CodeType) -> set[str]:
    return set(code.co_names).union(*(_names(inner) for inner in _codes(code)))


def _made_of(module: ModuleType, name: str) -> set[str]:
    """The names of a module's values that are made of the value ``name``, itself among them."""
    names = {name}
    for target, value in _values(module):
        if names & {n.id for n in ast.walk(value) if isinstance(n, ast.Name)}:
            names.add(target)
    return names


def _values(module: ModuleType) -> list[tuple[str, ast.expr]]:
    found = []
    for statement in ast.parse(inspect.getsource(module)).body:
        match statement:
            case ast.Assign([ast.Name(name)], value) | ast.AnnAssign(ast.Name(name), _, ast.expr() as value):
                found.append((name, value))
    return found


def _traced(ask: Callable[[], Answer], within: str) -> tuple[Answer, set[Place]]:
    places: set[Place] = set()

    def note(frame: Any, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(within):
            places.add(_place(frame.f_code))

    sys.setprofile(note)
    try:
        return ask(), places
    finally:
        sys.setprofile(None)


def _place(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


@cache
def _caches() -> list[Any]:
    return [c for c in gc.get_objects() if type(c) is _lru_cache_wrapper and ".reference." in str(c.__module__)]


def clear_caches() -> None:
    """Forget what functions of the reference remember, which a mutant may have computed."""
    for found in _caches():
        found.cache_clear()


@cache
def _functions() -> list[FunctionType]:
    """The functions of halfeven that are alive; found once, for nothing is imported any more."""
    return [f for f in gc.get_objects() if type(f) is FunctionType and str(f.__module__).startswith("halfeven.")]


def forget() -> None:
    """Look for functions and caches again, after a module came or went."""
    _caches.cache_clear()
    _functions.cache_clear()


def ready_to_fork() -> None:
    """Find once what every process would look for."""
    _caches()
    _functions()


@contextlib.contextmanager
def in_place(mutant: Mutant) -> Iterator[set[Place]]:
    """The module changed while the context lasts; gives the functions that were changed, none for a table."""
    module = sys.modules[mutant.module]
    after = tree_of(mutant, inspect.getsource(module))
    undo: list[Callable[[], None]] = []
    places: set[Place] = set()
    try:
        if isinstance(after, ast.FunctionDef | ast.ClassDef):
            places = _put_functions(module, mutant, after, undo)
        else:
            _put_value(module, mutant.owner, after, undo)
        yield places
    finally:
        for step in reversed(undo):
            step()
        clear_caches()


def _put_functions(module: ModuleType, mutant: Mutant, after: ast.stmt, undo: list[Callable[[], None]]) -> set[Place]:
    code = compile(ast.Module([after], []), str(module.__file__), "exec")
    changed = {(c.co_qualname, c.co_firstlineno): c for c in _codes(code) if _belongs(c.co_qualname, mutant.owner)}
    defaults = _defaults(module, mutant, after)
    places = set()
    for function in _functions():
        own = function.__code__
        twin = changed.get((own.co_qualname, own.co_firstlineno))
        if own.co_filename != module.__file__ or twin is None or len(own.co_freevars) != len(twin.co_freevars):
            continue
        undo.append(_restored(function, _CODE))
        if own.co_qualname == mutant.owner:
            places.add(_place(own))
            if defaults is not None:
                function.__defaults__, function.__kwdefaults__ = defaults
        function.__code__ = twin
        # The profile of calls knows a function by its place, which the twin shares.
    return places or {(str(module.__file__), mutant.owner, -1)}


def _belongs(name: str, owner: str) -> bool:
    return name == owner or name.startswith(f"{owner}.<locals>.")


def _codes(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _codes(constant)


def _restored(thing: Any, names: Iterable[str]) -> Callable[[], None]:
    held = {name: getattr(thing, name) for name in names}

    def restore() -> None:
        for name, value in held.items():
            setattr(thing, name, value)

    return restore


def _defaults(module: ModuleType, mutant: Mutant, after: ast.stmt) -> tuple[Any, Any] | None:
    """The defaults of the function anew, where one of them is what changed."""
    depth = 1 if isinstance(after, ast.FunctionDef) else 2
    if len(mutant.path) <= depth or mutant.path[depth][0] != "args":
        return None
    function = after if isinstance(after, ast.FunctionDef) else _member(after, mutant.owner)
    given = [_value(module, d) for d in function.args.defaults]
    named = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
    return tuple(given) or None, {a.arg: _value(module, d) for a, d in named if d is not None} or None


def _member(after: ast.stmt, owner: str) -> ast.FunctionDef:
    body = after.body if isinstance(after, ast.ClassDef) else []
    return next(m for m in body if isinstance(m, ast.FunctionDef) and m.name == owner.split(".")[1])


def _value(module: ModuleType, expression: ast.expr) -> Any:
    try:
        return eval(compile(ast.Expression(expression), str(module.__file__), "eval"), vars(module))
    except Exception as error:
        raise _DoesNotImport from error


def _put_value(module: ModuleType, name: str, after: ast.stmt, undo: list[Callable[[], None]]) -> None:
    """A value of the module changed, and after it the values that are made of it."""
    assert isinstance(after, ast.Assign | ast.AnnAssign)
    assert after.value is not None
    _rebind(module, name, after.value, undo)
    made = _made_of(module, name) - {name}
    for target, value in _values(module):
        if target in made:
            _rebind(module, target, value, undo)


def _rebind(module: ModuleType, name: str, expression: ast.expr, undo: list[Callable[[], None]]) -> None:
    old, new = vars(module)[name], _value(module, expression)
    if not _become(old, new, undo):
        for holder in [m for n, m in sys.modules.items() if n.startswith("halfeven.")]:
            if vars(holder).get(name, holder) is old:
                undo.append(_restored(holder, [name]))
                setattr(holder, name, new)


def _become(old: Any, new: Any, undo: list[Callable[[], None]]) -> bool:
    """Make a table what it would be, so that all who hold it see it; False for what cannot change."""
    if type(old) is not type(new):
        return False
    if isinstance(old, dict):
        held = dict(old)
        undo.append(lambda: (old.clear(), old.update(held))[0])
        for key in old.keys() & new.keys():
            if isinstance(old[key], FunctionType) and isinstance(new[key], FunctionType):
                _become(old[key], new[key], undo)
        old.clear()
        old.update({k: held[k] if isinstance(held.get(k), FunctionType) and k in held else v for k, v in new.items()})
        return True
    if isinstance(old, list):
        kept = list(old)
        undo.append(lambda: old.__setitem__(slice(None), kept))
        old[:] = new
        return True
    if isinstance(old, FunctionType) and len(old.__code__.co_freevars) == len(new.__code__.co_freevars):
        undo.append(_restored(old, _CODE))
        for part in _CODE:
            setattr(old, part, getattr(new, part))
        return True
    if hasattr(old, "__dataclass_fields__") and hasattr(old, "__dict__"):
        before = dict(vars(old))
        undo.append(lambda: vars(old).update(before))
        vars(old).update(vars(new))
        return True
    return False
