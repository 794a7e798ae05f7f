"""What a mutant of the code that compares is asked: pairs of answers, and calls of functions that break the rules."""

from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass, replace
from itertools import product
from typing import Any

import ml_dtypes
import numpy as np
import torch
from asking import ask

from halfeven.conformance.backends.offer import keywords, offer
from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.configuration import DTYPES, Configuration
from halfeven.conformance.engine import compare, judge, memory, points
from halfeven.conformance.engine.call import PLAIN, Answer, Call, CallShape, Dtype, sent
from halfeven.conformance.engine.item import Item
from halfeven.conformance.engine.memory import Strided
from halfeven.conformance.engine.plan import plan
from halfeven.conformance.engine.run import answered
from halfeven.conformance.quote import NoScript
from halfeven.conformance.workers import inside
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid
from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.catalogue import AsComputed, Formula
from mutants.asked import Row
from mutants.by_hand import backend

__all__ = ["MODULES", "engine"]

#: The modules whose mutants these calls must see, wherever they stand.
MODULES = tuple(module.__name__ for module in (compare, judge, memory, inside, points))

_VALUES = [1.0, -0.0, 0.0, np.nan, np.inf, 2.5, -3.0, 1e30]
_OTHERS = [1.0, 0.0, -0.0, 7.0, np.nan, 2.5, -4.0, -np.inf]


def engine() -> Iterator[Row]:
    """Pairs of arrays, pairs of answers, calls of every kind of function, and items of a run."""
    yield from _pairs_of_arrays()
    yield from _pairs_of_answers()
    yield from _memories()
    yield from _functions()
    yield from _calls()
    yield from _items()
    yield from _points()


def _pairs_of_arrays() -> Iterator[Row]:
    for dtype in (*DTYPES.values(), np.dtype(ml_dtypes.float8_e4m3fn)):
        with np.errstate(all="ignore"):
            e, a = (np.array(v).astype(dtype) for v in (_VALUES, _OTHERS))
            near = (e.view(f"u{dtype.itemsize}") + 1).view(dtype)
        nan, nine = np.full(8, np.nan, dtype), np.arange(9).astype(dtype)
        pairs = (
            (e, a), (e, e), (a, near), (e[:3], a[:3]), (e, nan), (e[::2], a[::2]), (e[:0], a[:0]), (nan, nan),
            (nan[:2], e[:2]), (e.reshape(2, 4), a.reshape(2, 4)), (e[[0, 3]], a[[0, 3]]), (e[[0, 1]], a[[0, 2]]),
            (e[[0, 5]], e[[0, 6]]), (e[::2], e[::2].copy()), (e[::2].copy(), e[::2]), (nine, nine.copy()),
        )  # fmt: skip
        for f, (x, y) in product(("compare_reals", "compare_codes"), pairs):
            yield Row(f, _compared, {"by": f, "expected": x, "actual": y})
    x, y, open_ = np.float32([[1, np.nan, 3], [4, 5, 6]]), np.float32([[1, 2, 3], [4, 5, 7]]), np.eye(3)[:2] > 0
    for f, nans in product(("compare_reals", "compare_codes"), (None, open_, ~open_, np.isnan(x), x > 0)):
        yield Row("but_for", _compared, {"by": f, "expected": x, "actual": y, "nans": nans})
    for x, y in (
        ([1, 2, 3], [1, 2, 4]),
        ([1, 2, 3], [2, 2, 9]),
        ([1.25], [1.5]),
        ([0], [255]),
        ([-128.0, 3], [127, 3]),
    ):
        for u, v in product(("int8", "float32", "int32"), ("uint8", "float64", "int32")):
            yield Row(
                "codes",
                _compared,
                {"by": "compare_codes", "expected": np.array(x).astype(u), "actual": np.array(y).astype(v)},
            )
    for x, y in (([-1e308], [1e308]), ([1.0, 2.0, 3.0], [1.0, np.nan, 3.0]), ([2.0**53], [2.0**53 + 2])):
        yield Row("float64", _compared, {"by": "compare_reals", "expected": np.array(x), "actual": np.array(y)})


def _compared(by: str, expected: np.ndarray, actual: np.ndarray, nans: Any = ...) -> tuple[Any, ...]:
    of = getattr(compare, by)
    found = of(expected, actual) if nans is ... else compare.but_for(nans, of, expected, actual)
    return found.points, found.where, found.steps, found.unit, found.differing


def _pairs_of_answers() -> Iterator[Row]:
    f32 = np.float32
    values: list[Any] = [
        f32([1, 2]), f32([1, 3]), f32([[1, 2]]), np.array([1.0, 2.0]), np.array([1, 2]), np.array([1, 4], np.int8),
        f32(1), f32(2), f32(np.nan), 1, 2, 1.0, True, float("nan"), "a", "b", None, f32([]), np.int64([]),
        f32([np.nan, -0.0]), f32([np.nan, 0.0]), np.array([1, 2], ml_dtypes.bfloat16), np.array([1, 2], ml_dtypes.int4),
        np.array([1, 3], ml_dtypes.bfloat16), np.array([1, 4], ml_dtypes.float8_e4m3fn),
        np.array([1, 2], ml_dtypes.float8_e4m3fn), f32([[1, 5], [3, 9]]), f32([[1, 5], [3, 8]]),
        np.array([True, False]), np.array([True, True]),
    ]  # fmt: skip
    for (i, x), (j, y) in product(enumerate(values), enumerate(values)):
        if abs(i - j) < 9:
            yield Row("leaves", _told, {"expected": Answer("returned", x), "actual": Answer("returned", y)})
    forms: list[Any] = [
        {}, {"a": 1}, {"a": 1, "b": f32([1, 2])}, {"a": 2, "b": f32([1, 4])}, {"a": 1, "b": f32([0, 4, 5])},
        {"b": f32([1, 2]), "a": 1}, {"c": f32([9, 1]), "a": 3}, (1, f32([1, 2])), [1, f32([1, 2])],
    ]  # fmt: skip
    several = [Answer("returned", form) for form in forms] + [
        Answer("raised", error=("ValueError", "Exception"), message="no\nmore"),
        Answer("raised", error=("TypeError", "Exception")),
        Answer("raised", error=("Narrow", "ValueError", "Exception"), message="narrow"),
        Answer("returned", 1, faults=("mutated input: it", "stale output")),
        Answer("raised", error=("ValueError",), faults=("changed the process: so",)),
        Answer("ended", message="signal 11 (SIGSEGV)"),
    ]
    for x, y in product(several, several):
        yield Row("answers", _told, {"expected": x, "actual": y})


def _memories() -> Iterator[Row]:
    for shape, strides, offset in (
        ((24,), (1,), 0), ((23,), (1,), 0), ((2, 3, 4), (12, 4, 1), 0), ((4, 6), (1, 4), 0), ((3, 2), (-4, 2), 9),
        ((1, 5), (7, 2), 3), ((3, 4), (0, 1), 2), ((), (), 5), ((12, 2), (2, 1), 0),
    ):  # fmt: skip
        lies = Strided(np.arange(24), shape, strides, offset)
        yield Row("memory", lambda lies: (lies.plain, lies.reach, lies.view()), {"lies": lies})


def _told(expected: Answer, actual: Answer) -> tuple[Any, ...]:
    found = judge.differences(expected, actual)
    fine = None if found.comparison is None else found.comparison.where
    return found.points, found.differing, found.steps, found.unit, found.words, found.leaf, fine


def _doubled(x: Any, **_: Any) -> Any:
    return x * 2


def _in_place(x: Any, **_: Any) -> Any:
    x[0] = 5
    return x * 2


def _resized(x: Any, **_: Any) -> Any:
    return x.unsqueeze_(0) if isinstance(x, torch.Tensor) else x


def _longer(listed: Any, **_: Any) -> Any:
    listed.append(1)
    return 1


def _flushing(x: Any, **_: Any) -> Any:
    torch.set_flush_denormal(True)
    return x * 2


def _around(x: Any, *_: Any, **__: Any) -> Any:
    """Writes between the elements of what is not contiguous."""
    kept = x.copy() if isinstance(x, np.ndarray) else x
    if isinstance(x, np.ndarray) and isinstance(x.base, np.ndarray):
        np.add(x.base, 1, out=x.base, casting="unsafe")
        x[...] = kept
    return kept


def _raising(error: type[BaseException], msg: str = "no") -> Callable[..., Any]:
    def function(*_: Any, **__: Any) -> Any:
        raise error(msg)

    return function


def _nested(x: Any, **_: Any) -> Any:
    return {"a": (x, [x + 1, 3]), "b": "word", "c": np.float32(2), "d": None, "e": torch.ones(2)}


_KEPT = torch.zeros(2)


def _same_buffer(x: Any, **_: Any) -> Any:
    return _KEPT.add_(1), x


def _functions() -> Iterator[Row]:
    x = np.array([1.0, 2.0], np.float32)
    narrow = [x.astype(d) for d in (np.float64, np.float16, ml_dtypes.bfloat16, ml_dtypes.int4, np.int8, np.uint32)]
    errors = (ValueError, KeyError, ZeroDivisionError, NotImplementedError, Unsupported, KeyboardInterrupt)
    functions = [_doubled, _in_place, _resized, _nested, _flushing, _repeating, *map(_raising, errors)]
    for f, value, array in product(functions, (x, *narrow, x[None], x.reshape(1, 2).T), ("torch", "numpy")):
        given = {"x": value, "listed": [value, 1], "pair": (value, "a"), "dtype": Dtype("bfloat16")}
        yield Row("ask", _asked, {"function": f, "given": given, "array": array})
        yield Row("answer", _asked, {"function": f, "given": given, "array": ""})
    for array in ("torch", "numpy", ""):
        yield Row("longer", _asked, {"function": _longer, "given": {"listed": [1, x]}, "array": array})


def _repeating(dtype: Any, **_: Any) -> str:
    return str(dtype)


def _asked(function: Callable[..., Any], given: dict[str, Any], array: str) -> tuple[Any, ...]:
    try:
        found = ask(function, given, array) if array else judge.answer_of(function, given)
    except KeyboardInterrupt as error:
        return type(error).__name__, str(error)
    kept = {k: v for k, v in given.items() if isinstance(v, np.ndarray)}
    return found.kind, found.value, found.error, found.message, found.faults, kept


def _calls() -> Iterator[Row]:
    x = np.array([[0.5, -1.5, 2.0], [1.0, 0.0, -3.0]], np.float32)
    right = backend("none", "onnx")
    codes = np.array([1, 2, 3], np.uint8)

    def of(function: Callable[..., Any], **changes: Any) -> Backend:
        return replace(right, operations=dict.fromkeys(right.operations, function), **changes)

    fakes: list[Callable[..., Any]] = [
        lambda x, s, z, **_: x, lambda x, s, z, **_: x.reshape(-1), lambda x, s, z, **_: x + s, lambda x, s, z, **_: 3,
        lambda x, s, z, **_: x != 0, lambda x, s, z, **_: None, lambda x, s, z, **_: x.astype("float64"),
        lambda x, s, z, qmin, qmax: x + qmin, lambda x, s, z, *, qmin, qmax, block_size=None, dtype=None: x * 0 + qmax,
        lambda x, s, z, **_: np.add(s, 1, out=s) + x, lambda x, s, z, **_: np.subtract(z, 1, out=z) + x,
        lambda x, s, z, **k: x + len(k), _raising(RuntimeError), _raising(SystemExit), _raising(Unsupported),
        lambda x, s, z, **_: _flushing(x),
        lambda x, s, z: x * s, lambda x, s, z, *, qmin, qmax, block_size: x * s, _around,
        lambda x, s, z, *, dtype=None, **_: x * s + (dtype is None) + 2 * isinstance(dtype, torch.dtype),
        lambda x, s, z, **_: torch.ones(x.shape), lambda x, s, z, **_: torch.ones(x.shape, device="meta"),
        lambda x, s, z, **_: [torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_num_threads()],
        lambda x, s, z, **_: torch.set_num_threads(3), lambda x, s, z, **_: getattr(x, "requires_grad", None),
        lambda x, s, z, **_: _counted(), lambda x, s, z, **_: (0, _counted()),
        lambda x, s, z, **_: np.ones(2) + _counted() * 2.0**-50,
        lambda x, s, z, **_: dict.fromkeys("abcdefghijkl"[_counted():], x),
        _raising(ValueError, "no " * 8000), _raising(ValueError, "no " * 3000),
    ]  # fmt: skip
    for function, array, operation in product(fakes, ("numpy", "torch"), right.operations):
        for blocks, shape in product((None, (1, 3)), _SHAPES):
            c = Configuration(operation, "float32", Grid(0, 255), x.shape, "tensor", blocks)
            values = np.resize(codes, x.shape) if operation == "dequantize" else x
            s = np.asarray(0.5, np.float32) if blocks is None else np.float32([[0.5], [0.25]])
            arrays = [values, s, np.zeros(s.shape, np.int32)]
            if shape is not PLAIN:  # every second element of the memory
                arrays[0] = np.repeat(values, 2, axis=1)[:, ::2]
            tried = of(function, array=array)
            given = tuple(map(sent, arrays))
            call = Call(f"onnx:{operation}", given, keywords(offer(tried), c), shape)
            yield Row("call", _called, {"tried": tried, "call": call})
            if shape is PLAIN and blocks is None:
                yield Row("script", _scripted, {"tried": tried, "c": c})
    one = Call("onnx:quantize", (sent(x[:, ::-1]), sent(x[0]), sent(x[0, 1:])), {})
    for array in ("numpy", "torch"):  # what torch cannot have, and two arrays over one memory
        yield Row("call", _called, {"tried": of(lambda x, *_: x * 2, array=array), "call": one})
        both = Strided(np.arange(4, dtype=np.float32), (3,), (1,)), Strided(np.zeros(1), (), ())
        shared = (both[0], replace(both[0], offset=1), both[1])
        yield Row("call", _called, {"tried": of(_writing, array=array), "call": replace(one, positional=shared)})


_COUNTED: list[int] = []


def _counted() -> int:
    """How often it was asked since a worker was made."""
    _COUNTED.append(0)
    return len(_COUNTED)


_SHAPES = (
    PLAIN,
    CallShape(layout="stepped"),
    CallShape(layout="stepped", repeats=3, mode="no_grad"),
    CallShape(layout="stepped", threads="all", mode="inference"),
    CallShape(layout="stepped", mode="requires_grad"),
)


def _writing(x: Any, s: Any, *_: Any) -> Any:
    x[2] = 9
    return s * 1


def _called(tried: Backend, call: Call) -> tuple[Any, ...]:
    """What three calls come to, with the poison after each."""
    worker = Inside(tried)
    _COUNTED.clear()
    found: list[Any] = []
    for _ in range(3):
        answer = worker.answer(call)
        last = answer.traceback.strip().rpartition("\n")[2], answer.traceback.count("File"), "/tmp/" in answer.traceback
        found += [answer.kind, answer.value, answer.error, answer.message, answer.faults, *last, worker._poison]
    found += [answer.kind for answer in worker.answers([call, replace(call, formula="onnx/none")])]
    return tuple(found)


def _scripted(tried: Backend, c: Configuration) -> tuple[Any, ...]:
    worker = Inside(tried)
    try:
        said = worker.script(f"{tried.profile}:{c.operation}", {"0": "x", "1": "scale", "qmin": "0"}, c)
    except NoScript as reason:
        return (str(reason), worker.path(), worker.offer.name)
    return (said.header, said.steps, said.called, worker.path(), worker.offer.name)


@dataclass(frozen=True)
class _Steps(Behaviour):
    """Five choices; each is read only where the step that it belongs to is asked for."""

    a: str = choice({"0": "adds 0", "1": "adds 1", "2": "adds 2"})
    b: str = choice({"0": "adds 0", "10": "adds 10"})
    c: str = choice({"0": "adds 0", "100": "adds 100"})
    d: str = choice({"0": "adds 0", "1000": "adds 1000"})
    e: str = choice({"0": "adds 0", "1": "adds 1"})


def _added(b: _Steps, x: int, steps: str) -> int:
    assert b.choices()
    return x + sum(int(getattr(b, step)) for step in steps)


_ADDED = Formula("halfeven/added", "", AsComputed("int"), "", _added, _Steps())


def _points() -> Iterator[Row]:
    """What is found for answers of points near and far, of none, and of a formula without choices."""
    steps = ("a", "b", "ab", "abc", "abcd", "ae", "", "cd", "d")
    kinds = [_Steps(), _Steps(a="1"), _Steps(a="2", b="10"), _Steps(b="10", c="100", d="1000"), _Steps(e="1")]
    kinds += [_Steps("2", "10", "100", "1000"), _Steps("1", "10", "100", e="1"), _Steps(a="1", e="1")]
    for point, asked in product(kinds, (steps, ("abcde",), ("ae", "ae"), ("d", "a"), ())):
        yield Row("point", _pointed, {"formula": _ADDED, "point": point, "steps": asked})
    yield from (Row("recording", _recorded, {"steps": s}) for s in steps)
    yield Row("no point", _pointed, {"formula": _ADDED, "point": _Steps(), "steps": ("a",), "off": 7})
    far, near = _Steps("2", "10", "100", "1000"), _Steps(a="1")
    for releases in ((far,), (near, far), (far, near)):
        row = {"formula": _ADDED, "point": far, "steps": ("abcd",), "releases": releases}
        yield from (Row("release", _pointed, row | {"point": p}) for p in (far, replace(far, e="1"), near))
    yield Row("no choice", _pointed, {"formula": replace(_ADDED, behaviour=None), "point": _Steps(), "steps": ("a",)})


def _recorded(steps: str) -> list[str]:
    read: dict[str, Any] = {}
    _added(points.recording(_Steps(), read), 3, steps)
    return sorted(read)


def _pointed(
    formula: Formula, point: _Steps, steps: tuple[str, ...], off: int = 0, releases: tuple[_Steps, ...] = ()
) -> str:
    asked = [{"x": 3, "steps": s} for s in steps]
    rows = [(a, Answer("returned", _added(point, **a) + off)) for a in asked]
    return repr(points.nearest_point(formula, rows, releases=releases))


_CHECKS = {"boundaries", "result", "nan", "zero-sign"}


def _items() -> Iterator[Row]:
    """One item of some checks, for a backend that is right and for faults of a harness."""
    for name in ("none", "mutated-input", "wrong-shape", "stale-output", "zero-sign-lost"):
        planned = plan(offer(backend(name, "aimet")))
        first = {(i.check, i.requirement.operation): i for i in planned if i.configuration and i.check in _CHECKS}
        for item in first.values():
            yield Row(f"{name}, {item.id}", _outcome, {"name": name, "item": item})


def _outcome(name: str, item: Item) -> tuple[Any, ...]:
    found = answered(item, Inside(backend(name, "aimet")), gate=False).result
    return tuple(repr(v) for v in astuple(replace(found, seconds=0.0)))
