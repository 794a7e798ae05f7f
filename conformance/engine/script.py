"""A call that differs as Python that stands alone: it makes the call with the library, and prints what it shows.

Every script ends with two lines that begin with ``expected`` and ``actual``, whatever the difference is; where a call
ends its process there is no second line.
"""

import builtins
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.configuration import DTYPES, Case
from halfeven.conformance.engine.call import CHANGED, PLAIN, Call, breaches, leaves
from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.expression import expression
from halfeven.conformance.engine.literal import commented, source
from halfeven.conformance.engine.memory import POISONS, Strided
from halfeven.conformance.engine.tries import Trial, case_of, operation_of, pair
from halfeven.conformance.quote import NoScript, Spelt
from halfeven.reference.blocks import Array

__all__ = ["LONG", "Script", "numbers_of", "script"]

LONG = 4096  # numbers in a call that a script spells out
_MODES = {"no_grad": "torch.no_grad()", "inference": "torch.inference_mode()"}
_THREADED = 1 << 12  # elements: of fewer nobody makes threads
_AGAIN = 20
_SAME, _OTHER = "changed = [(a, b) for a, b in zip(before, after) if repr(a) != repr(b)]", "changed[0]"
#: What a call may change of its process, as the worker says it, and Python for what there is of it.
_STATE = {
    "the default dtype": "torch.get_default_dtype()",
    "the default device": "torch.get_default_device()",
    "inference mode": "torch.is_inference_mode_enabled()",
    "the grad mode": "torch.is_grad_enabled()",
    "autocast": "torch.is_autocast_enabled('cpu')",
    "the precision of matrix products": "torch.get_float32_matmul_precision()",
    "deterministic algorithms": "torch.are_deterministic_algorithms_enabled()",
    "NumPy's error handling": "np.geterr()",
    "functions of NumPy": "{name: id(value) for name, value in vars(np).items() if callable(value)}",
    "flush-to-zero": "float(torch.tensor([1e-38]) * 0.1)",
    "the rounding mode": "1.0 + float(np.float64(2.0) ** -60), 1.0 - float(np.float64(2.0) ** -60)",
    "a timer": "signal.getitimer(signal.ITIMER_REAL)[0] > 0",
    "the number of threads": "torch.get_num_threads()",
    "the recursion limit": "sys.getrecursionlimit()",
}


def script(e: Evidence, t: Trial) -> str:
    """Python that makes the call, and prints ``expected`` and ``actual``.

    Raises:
        NoScript: there is none; the message is the reason.
    """
    if numbers_of(t.call) + sum(map(numbers_of, t.before)) > LONG:
        msg = f"the call has more than {LONG} numbers"
        raise NoScript(msg)
    return Script(e, t).text()


class Script:
    """The parts of one script."""

    def __init__(self, e: Evidence, t: Trial) -> None:
        """That of the call of ``t``."""
        self.e, self.t = e, t
        self.operation = operation_of(t.call)
        self.tensors = e.item.offer.array == "torch"
        profile = e.setting.profile if self.operation else None
        self.names = ["q" if self.operation == "dequantize" else "x", *profile.parameters] if profile else []
        self.result = "actual" if self.operation else "result"
        self.spelt = self.spelt_of(self.t.call)

    def text(self) -> str:
        """All of it."""
        computed = self._document()
        body = [] if self.t.before else [*self.arguments(tensors=self.tensors and not computed)]
        if computed:
            body += [*computed, *([self._to_tensors()] if self.tensors else [])]
        body += self._call_and_show(computed=bool(computed))
        return "\n".join([*self.header("\n".join(body)), "", *body])

    def _to_tensors(self) -> str:
        names = ", ".join(self.names)
        return f"{names} = {', '.join(f'torch.from_numpy({n})' for n in self.names)}"

    def spelt_of(self, call: Call) -> Spelt:
        """The call as Python, its arrays by their names."""
        passed = {str(i): name for i, (name, _) in enumerate(zip(self.names, call.positional, strict=False))}
        passed |= {key: key if _is_variable(v) else self._source(v) for key, v in call.named.items()}
        case = case_of(self.e, call) if self.operation else None
        return self.e.worker.script(call.formula, passed, None if case is None else case.configuration)

    def _source(self, value: Any, *, tensors: bool | None = None) -> str:
        return source(value, tensors=self.tensors if tensors is None else tensors)

    def header(self, body: str, *others: str) -> list[str]:
        """Imports and definitions, of ``others`` too: each import once, and none that nothing needs."""
        found = "\n".join([self.e.item.offer.prelude, *dict.fromkeys([self.spelt.header, *others])]).splitlines()
        uses = "\n".join([*found, body])
        own = ["import ml_dtypes"] * ("ml_dtypes." in uses)
        own += [f"import {name}" for name in ("math", "signal", "sys") if f"{name}." in body]
        own += ["import numpy as np"] * ("np." in uses) + ["import torch"] * ("torch." in uses)
        future = [line for line in found if line.startswith("from __future__")][:1]
        lines, seen = [*future], {*future}
        for line in [*own, *found]:
            if line.strip() and not (line in seen and line.startswith(("import ", "from "))):
                lines.append(line)
                seen.add(line)
        return lines

    def arguments(self, call: Call | None = None, *, tensors: bool | None = None) -> Iterator[str]:
        """An assignment for each argument that is, or holds, an array; those that share memory share it here."""
        of = self.t.call if call is None else call
        named = {k: v for k, v in of.named.items() if _is_variable(v)}
        given = {**dict(zip(self.names, of.positional, strict=False)), **named}
        memories: dict[int, list[str]] = {}
        for name, value in given.items():
            if isinstance(value, Strided):
                memories.setdefault(id(value.memory), []).append(name)
        for name, value in given.items():
            shared = memories.get(id(value.memory), []) if isinstance(value, Strided) else []
            if isinstance(value, Strided) and len(shared) > 1:
                if name == shared[0]:
                    yield f"memory = {self._source(_whole(value))}"
                yield f"{name} = {source(value, tensors=self.tensors, memory='memory')}"
            else:
                yield commented(f"{name} = {self._source(value, tensors=tensors)}", value)
            if device := self._elsewhere():
                yield f"{name} = {name}.to({device!r})"
            if of.shape.mode == "requires_grad" and isinstance(value, Strided) and _is_float(value.memory):
                yield f"{name}.requires_grad_()"

    def _elsewhere(self) -> str:
        """The device of torch's that tensors are put on, where that is not the CPU."""
        words = self.e.item.offer.name.partition("@")[2].split(",")
        return next((w for w in words if w and w != "compiled"), "") if self.tensors else ""

    def _call(self, result: str, *, setting: bool = True) -> list[str]:
        """The statements that call."""
        shape = self.t.call.shape
        lines = [*self.spelt.steps.splitlines(), f"{result} = {self.spelt.called}"]
        if shape.repeats > 1 and setting:
            lines = [f"for _ in range({shape.repeats}):", *_indented(lines)]
        if mode := _MODES.get(shape.mode):
            lines = [f"with {mode}:", *_indented(lines)]
        if setting and (shape.threads == "all" or numbers_of(self.t.call) >= _THREADED):
            lines = [f"torch.set_num_threads({'2' if shape.threads == 'all' else '1'})", *lines]
        return lines

    def _before(self) -> Iterator[str]:
        """The calls before, each with its arguments under the same names."""
        for call in self.t.before:
            yield from self.arguments(call)
            spelt = self.spelt_of(call)
            yield from [*spelt.steps.splitlines(), f"earlier = {spelt.called}"]
        if self.t.before:
            yield from self.arguments()

    def _call_and_show(self, *, computed: bool) -> list[str]:
        actual = self.t.actual
        fault = next((f for f in actual.faults if f.startswith(CHANGED)), "") or next(iter(breaches(actual)), "")
        if actual.kind == "ended":
            return [*self._before(), *self._dies()]
        if fault:
            return [*self._of_fault(fault)]
        if "raised" in {actual.kind, self.t.expected.kind}:
            return [*self._before(), *self._raises()]
        return [*self._before(), *self._call(self.result), *self._shown(computed=computed)]

    def _dies(self) -> list[str]:
        return [
            'print("expected", "an answer", flush=True)',
            *self._call(self.result),
            'print("actual  ", "an answer")',
        ]

    def _raises(self) -> list[str]:
        expected = self.t.expected
        said = f"raises {expected.error[0]}" if expected.kind == "raised" else "a result"
        got = ["else:", '    print("actual  ", "a result")']
        # Only the error that was seen, or what it stands for: a bug in the script must not pass for it.
        seen = next(iter(self.t.actual.error), "")
        named = isinstance(getattr(builtins, seen, None), type)
        known = ", ".join(filter(None, [seen, self.spelt.refusals])) if named else "Exception"
        return [
            f'print("expected", "{said}")',
            "try:",
            *_indented(self._call(self.result)),
            f"except {f'({known})' if ', ' in known else known} as error:",
            '    print("actual  ", "raises", type(error).__name__)',
            *got,
        ]

    def _of_fault(self, fault: str) -> Iterator[str]:
        kind, _, said = fault.partition(": ")
        inputs = [n for n, v in self._given().items() if isinstance(v, Strided)]
        flat = ".detach().flatten().tolist()" if self.tensors else ".flatten().tolist()"
        match kind:
            case "changed the process":
                read = next((r for words, r in _STATE.items() if said.startswith(words)), "")
                if not read:
                    raise NoScript(fault)
                yield from [*self._before(), f"before = {read}", *self._call(self.result), f"after = {read}"]
                yield from ['print("expected", before)', 'print("actual  ", after)']
            case "mutated input" if "an earlier call" in said or "form" in said:
                raise NoScript(fault)
            case "mutated input":
                values = " + ".join(f"{n}{flat}" for n in inputs)
                yield from [*self._before(), f"before = {values}", *self._call(self.result, setting=False)]
                yield from [f"after = {values}", _SAME, *_two()]
            case "not deterministic":
                yield from self._before()
                again = [*self.arguments(), *self._call("second", setting=False)]
                yield from [*self._call("first", setting=False), f"before = {self._flat('first')}"]
                yield f"for _ in range({_AGAIN}):"
                yield from _indented([*again, f"after = {self._flat('second')}", _SAME])
                yield from ["    if changed:", "        break", *_two()]
            case "stale output" if "an earlier call" in said and self.t.before:
                *_, last = self.t.before
                spelt = self.spelt_of(last)
                yield from [*self.arguments(last), *spelt.steps.splitlines(), f"earlier = {spelt.called}"]
                yield from [f"before = {self._flat('earlier')}", *self.arguments(), *self._call(self.result)]
                yield from [f"after = {self._flat('earlier')}", _SAME, *_two()]
            case "stale output" if "never written" in said:
                value = f"{self.result}.flatten()[{self.t.at}]"
                size = max(prod(self.t.call.positional[0].shape), 1)
                made = "torch.full(({},), {}, dtype=torch.uint8)" if self.tensors else "np.full({}, {}, np.uint8)"
                widths = [made.format(size * w, POISONS[0]) for w in (1, 2, 4, 8) for _ in range(2)]
                yield from [f"freed = [{', '.join(widths)}]  # what the result may be given", "del freed"]
                wanted = np.ravel(self.t.expected.value)[self.t.at]
                yield from [*self._call(self.result), f'print("expected", {float(wanted)!r})']
                yield f'print("actual  ", float({value}))'
            case "wrong shape" | "wrong dtype" | "wrong result":
                yield from [*self._before(), *self._call(self.result), *self._form(kind)]
            case _:
                raise NoScript(fault)

    def _flat(self, name: str) -> str:
        leaf = self.t.difference.leaf.removeprefix("result") if not self.operation else ""
        detach = ".detach()" if self.tensors else ""
        return f"{name}{leaf}{detach}.flatten().tolist()"

    def _given(self) -> Mapping[str, Any]:
        return {**dict(zip(self.names, self.t.call.positional, strict=False)), **self.t.call.named}

    def _document(self) -> list[str]:
        """For one scale and plain arrays the document's arithmetic, where NumPy's gives what the reference does."""
        plain = self.t.call.shape.mode == PLAIN.mode and all(a.plain for a in self.t.call.positional)
        found = pair(self.t)
        if not self.operation or self.t.before or not plain or found is None or breaches(self.t.actual):
            return []
        case = case_of(self.e, self.t.call)
        if case.scale.size != 1 or any(a.dtype == ml_dtypes.bfloat16 for a in self._arrays()) or self._elsewhere():
            return []
        c, profile = case.configuration, self.e.setting.profile
        formula = expression(profile, c.operation, c.grid, DTYPES[c.dtype], case.scale.dtype)
        if "ml_dtypes" in formula or not self._gives(formula, case, found[0]):
            return []
        ends = [f"qmin, qmax = {c.grid.qmin}, {c.grid.qmax}"] if "qmax" in formula else []
        return [*ends, f"expected = {formula}"]

    def _arrays(self) -> list[Array]:
        return [a.memory for a in self.t.call.positional]

    def _gives(self, formula: str, case: Case, wanted: Any) -> bool:
        grid = case.configuration.grid
        arrays = dict(zip(self.names, (case.x, case.scale, case.zero), strict=False))
        scope = {"np": np, "ml_dtypes": ml_dtypes, **arrays, "qmin": grid.qmin, "qmax": grid.qmax}
        try:
            with np.errstate(all="ignore"):
                value = np.asarray(eval(formula, scope)).ravel()[self.t.at]  # noqa: S307 - the profile's own text
        except Exception:  # noqa: BLE001 - then it is not shown
            return False
        both_nan = bool(np.isnan(value) and np.isnan(wanted))
        return both_nan or (float(value) == float(wanted) and np.signbit(value) == np.signbit(wanted))

    def _shown(self, *, computed: bool) -> Iterator[str]:
        """What came next to what was expected: the element, or the form of the result."""
        t = self.t
        if self.operation and (t.difference.comparison is None):
            yield from self._form(t.difference.words.partition(":")[0])
            return
        if (found := pair(t)) is None:
            yield from self._leaf()
            return
        got = np.asarray(dict(leaves(t.actual.value))[t.difference.leaf])
        place = f"{self.result}{t.difference.leaf.removeprefix('result')}"
        index = ", ".join(map(str, np.unravel_index(t.at, got.shape))) if got.ndim else ""
        element = f"{place}[{index}]" if index else place
        wanted, came = (np.asarray(v) for v in found)
        notes = ("", "")
        if got.dtype.kind in "iub" and float(wanted).is_integer():
            expected, of = repr(int(wanted)), ("int({})" if got.dtype.kind != "b" else "bool({})")
            expected = expected if got.dtype.kind != "b" else repr(bool(wanted))
        elif self.operation == "quantize":
            expected, of = repr(float(wanted)), "float({})"
        else:
            expected, of = f'"{float(wanted).hex()}"', "float({}).hex()"
            notes = f"  # {float(wanted)!r}", f"  # {float(came)!r}"
        if computed:
            expected = of.format("expected" if self.t.expected.value.ndim == 0 else f"expected[{index}]")
        yield f'print("expected", {expected}){notes[0]}'
        yield f'print("actual  ", {of.format(element)}){notes[1]}'

    def _form(self, kind: str) -> list[str]:
        if isinstance(self.t.expected.value, Mapping | tuple | list):
            msg = "the result has several parts"
            raise NoScript(msg)
        wanted: Array = np.asarray(self.t.expected.value)
        match kind:
            case "wrong shape":
                x = self.t.call.positional[0].shape
                return [f'print("expected", {tuple(x)!r})', f'print("actual  ", tuple({self.result}.shape))']
            case "wrong dtype":
                held = self.e.setting.code_dtype if self.operation == "quantize" else wanted.dtype
                name = f"torch.{held.name}" if self.tensors else held.name
                return [f'print("expected", "{name}")', f'print("actual  ", {self.result}.dtype)']
            case "wrong result":
                kind = "Tensor" if self.tensors else "ndarray"
                return [f'print("expected", "{kind}")', f'print("actual  ", type({self.result}).__name__)']
        raise NoScript(kind)

    def _leaf(self) -> list[str]:
        """A leaf that is no array of the same form: its dtype, its shape, or itself."""
        t = self.t
        wanted, got = (dict(leaves(a.value)) for a in (t.expected, t.actual))
        if wanted.keys() != got.keys():
            kinds = [type(a.value).__name__ for a in (t.expected, t.actual)]
            if kinds[0] == kinds[1]:
                return [f'print("expected", {len(t.expected.value)})', f'print("actual  ", len({self.result}))']
            kinds = ["Tensor" if k == "ndarray" and self.tensors else k for k in kinds]
            return [f'print("expected", "{kinds[0]}")', f'print("actual  ", type({self.result}).__name__)']
        leaf = t.difference.leaf
        place = (
            f"len({self.result}{leaf[len('len(result') : -1]})"
            if leaf.startswith("len(")
            else (f"{self.result}{leaf.removeprefix('result')}")
        )
        e, a = wanted[leaf], got[leaf]
        if isinstance(e, np.ndarray | np.generic) and isinstance(a, np.ndarray | np.generic):
            if e.shape != a.shape:
                return [f'print("expected", {e.shape!r})', f'print("actual  ", tuple({place}.shape))']
            name = f"torch.{e.dtype.name}" if self.tensors else e.dtype.name
            return [f'print("expected", "{name}")', f'print("actual  ", {place}.dtype)']
        said = repr(repr(e) if not isinstance(e, np.ndarray | np.generic) else "a tensor")
        return [f'print("expected", {said})', f'print("actual  ", repr({place}))']


def _two() -> list[str]:
    return [f'print("expected", {_OTHER}[0])', f'print("actual  ", {_OTHER}[1])']


def _whole(a: Strided) -> Strided:
    return Strided(a.memory, a.memory.shape, (1,))


def _is_variable(value: Any) -> bool:
    """Whether an argument is, or holds, an array."""
    if isinstance(value, tuple | list):
        return any(map(_is_variable, value))
    if isinstance(value, Mapping):
        return any(map(_is_variable, value.values()))
    return isinstance(value, Strided)


def numbers_of(value: Any) -> int:
    """How many numbers a script spells out for an argument, or for a call."""
    match value:
        case Call():
            return numbers_of(value.positional) + numbers_of(value.named)
        case Strided():
            return value.memory.size if len(np.unique(value.memory.view(f"u{value.memory.itemsize}"))) > 1 else 1
        case Mapping():
            return sum(map(numbers_of, value.values()))
        case tuple() | list():
            return sum(map(numbers_of, value))
    return 1


def _is_float(a: Array) -> bool:
    return a.dtype.name.startswith(("float", "bfloat"))


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]
