"""Asking a backend: the calls of a question, and its answers in numbers and words."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from halfeven.conformance import codes
from halfeven.conformance.backends.offer import Offer, keywords
from halfeven.conformance.configuration import DTYPES, Configuration
from halfeven.conformance.engine.call import PLAIN, Answer, Call, breaches, sent
from halfeven.conformance.explaining.given import Given, by_profile, parameters
from halfeven.conformance.explaining.given import codes as held_codes
from halfeven.conformance.explaining.numbers import decimal, real, whole
from halfeven.conformance.questions.question import Asked, FunctionQuestion, OperationQuestion, Question, Row
from halfeven.conformance.workers import Worker
from halfeven.reference import FORMULAS, Grid
from halfeven.reference.blocks import Array
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Operation, Profile
from halfeven.reference.systems import PROFILES, has_own_operations

__all__ = ["columns", "rows"]

_GRIDS = (Grid(-128, 127), Grid(-127, 127), Grid(0, 255))
_LONGEST = 60  # characters of an answer
_DISTINCT = 4  # numbers of an answer that are told, where many are the same


def columns(question: Question) -> tuple[str, ...]:
    """What the answers of a row stand for."""
    if isinstance(question, OperationQuestion):
        return question.x or ("no elements",)
    return tuple(dict.fromkeys(c for asked in question.asked for c in asked.inputs))


def rows(question: Question, worker: Worker) -> list[Row]:
    """What a backend answers; no row where the question is none of it."""
    if isinstance(question, OperationQuestion):
        return [*_of_operation(question, worker)]
    return [*_of_functions(question, worker)]


def _of_operation(question: OperationQuestion, worker: Worker) -> Iterator[Row]:
    offer = worker.offer
    operation = next((o for o in question.operations if o in offer.operations), None)
    profile = PROFILES[offer.profile]
    if operation is None or question.dtype not in offer.dtypes:
        return
    if question.zero and len(profile.parameters) < 2:  # noqa: PLR2004 - the scale alone
        return
    grid = next((g for g in _GRIDS if (g in offer.grids if offer.grids else profile.accepts(g))), None)
    if grid is None:
        return
    given = _given(question, operation, grid)
    answer = worker.answers([_call(question, offer, given)])[0]
    what = operation if grid == _GRIDS[0] else f"{operation}, {grid}"
    row = Row(offer.name, offer.version, what)
    if answer.kind != "returned" or breaches(answer):
        yield replace(row, note=_came(answer))
        return
    value = np.asarray(answer.value)
    if value.shape != (1, len(question.x)):
        yield replace(row, note=f"returns shape {value.shape}")
        return
    cells = _cells(operation, value)
    silent = operation == "quantize" and profile.codes == "integer"  # no integer is NaN: the document cannot say which
    document = tuple("" if silent and said == "NaN" else said for said in _predicted(profile, given))
    row = replace(row, cells=cells or ("comes back empty",), document=document)
    does = _does(question, profile, given, cells)
    if not row.surprising:  # a code says what is done where the document does something else
        does = re.sub(r" \(HE\d+\)", "", does)
    yield replace(row, does=does, witnesses=_witnesses(question, row, given))


def _given(question: OperationQuestion, operation: Operation, grid: Grid) -> Given:
    if operation == "dequantize":
        x: Array = np.asarray([int(q) for q in question.x], np.int64)
    else:
        x = np.asarray([real("x", v, question.dtype) for v in question.x], DTYPES[question.dtype])
    s = real("scale", question.scale, "float32")
    return Given(operation, x.reshape(1, -1), s, question.zero, grid, question.dtype)


def _call(question: OperationQuestion, offer: Offer, given: Given) -> Call:
    profile = PROFILES[offer.profile]
    scale, zero = parameters(profile, given)
    x = held_codes(profile, given) if given.operation == "dequantize" else given.x
    blocks = None if "tensor" in offer.granularities else (1, max(1, x.shape[1]))
    shaped = [p if blocks is None else p.reshape(1, 1) for p in (scale, zero)][: len(profile.parameters)]
    c = Configuration(given.operation, given.dtype, given.grid, x.shape, offer.granularities[0], blocks)
    return Call(
        f"{offer.profile}:{given.operation}", tuple(map(sent, (x, *shaped))), keywords(offer, c), PLAIN, question.title
    )


def _cells(operation: Operation, value: Array) -> tuple[str, ...]:
    return tuple((whole if operation == "quantize" else decimal)(v) for v in value.ravel())


def _predicted(profile: Profile, given: Given) -> tuple[str, ...]:
    """What the profile's model gives; empty where it is not defined."""
    try:
        found = by_profile(profile, given)
    except (ValueError, TypeError):
        return ()
    return _cells(given.operation, np.asarray(found))


def _does(question: OperationQuestion, profile: Profile, given: Given, cells: tuple[str, ...]) -> str:
    """What gives the answers, in words: the document's choice, a release of its system, one choice, another system."""
    if not question.choices:
        return ""
    if (found := _by_choices(question, profile, given, cells)) is not None:
        return found
    words = profile.model.choices()["rounding"]  # whose ties may lie among the inputs
    for rule in words if "rounding" not in question.choices else ():
        found = _by_choices(question, _with(profile, "rounding", rule), given, cells)
        if found is not None:
            return f"{found}; {words[rule]} ({codes.code_of('rounding', rule)})"
    return "does what none of these choices says"


def _by_choices(question: OperationQuestion, profile: Profile, given: Given, cells: tuple[str, ...]) -> str | None:
    claimed = profile.model
    if _predicted(profile, given) == cells:
        return _documented_choice(question.choices[0], profile, given, cells)
    for model in _candidates(question, profile):
        changed = [n for n in claimed.changes(model) if n in question.choices]
        if changed and _predicted(replace(profile, model=model), given) == cells:
            found = [(n, getattr(model, n)) for n in changed]
            return "; ".join(f"{claimed.choices()[n][v]} ({codes.code_of(n, v)})" for n, v in found)
    return None


def _documented_choice(name: str, profile: Profile, given: Given, cells: tuple[str, ...]) -> str:
    """The document's choice in words, and what known systems do that these inputs do not tell from it."""
    words, own = profile.model.choices()[name], getattr(profile.model, name)
    known = dict.fromkeys(getattr(p.model, name) for p in PROFILES.values() if has_own_operations(p.name))
    like = [v for v in known if v != own and _predicted(_with(profile, name, v), given) == cells]
    unlike = f"; or {', or '.join(words[v] for v in like)}, which is the same here" if like else ""
    return f"{words[own]}{unlike}"


def _with(profile: Profile, name: str, value: Any) -> Profile:
    changed: dict[str, Any] = {name: value}
    return replace(profile, model=replace(profile.model, **changed))


def _candidates(question: OperationQuestion, profile: Profile) -> Iterator[EvaluationModel]:
    """Releases of the same system first: what they do was measured on more than these few inputs."""
    document = profile.name.partition("@")[0]
    others = [p for p in PROFILES.values() if p.parameters[0] == profile.parameters[0] and has_own_operations(p.name)]
    own, foreign = ([p for p in others if p.name.startswith(document) is same] for same in (True, False))
    yield from (p.model for p in own)
    for name in question.choices:
        values = (v for v in profile.model.choices()[name] if v != getattr(profile.model, name))
        yield from (_with(profile, name, value).model for value in values)
    yield from (replace(p.model, sign=profile.model.sign) for p in foreign)


def _witnesses(question: OperationQuestion, row: Row, given: Given) -> tuple[str, ...]:
    for x, seen, said in zip(question.x, row.cells, row.document, strict=False):
        if seen != said:
            zero = f" {question.zero}" if question.zero else ""
            dtype = "" if given.dtype == "float32" else f" --dtype {given.dtype} --scale-dtype float32"
            grid = "" if given.grid == _GRIDS[0] else f" --grid {given.grid.qmin}:{given.grid.qmax}"
            operation = "" if given.operation == "quantize" else f" --operation {given.operation}"
            return (
                f"halfeven explain {x} {question.scale}{zero}{operation}{dtype}{grid}: document {said}, answer {seen}",
            )
    return ()


def _of_functions(question: FunctionQuestion, worker: Worker) -> Iterator[Row]:
    offer, every = worker.offer, columns(question)
    for asked in question.asked:
        if FORMULAS.canonical(asked.formula) not in offer.functions:
            continue
        calls = [
            Call(asked.formula, (), {n: sent(v) for n, v in arguments.items()}, PLAIN, question.title)
            for arguments in asked.inputs.values()
        ]
        answers = worker.answers(calls)
        if all(a.kind == "unsupported" for a in answers):
            continue
        found = dict(zip(asked.inputs, (_shown(asked, a) for a in answers), strict=True))
        said = {column: _documented(asked, arguments) for column, arguments in asked.inputs.items()}
        cells, document = (tuple(of.get(c, "") for c in every) for of in (found, said))
        what = " ".join(filter(None, [f"{asked.formula}", f"({asked.what})" if asked.what else ""]))
        witnesses = tuple(
            f"{asked.formula}({_spelled(asked.inputs[c])}): document {said[c]}, answer {found[c]}"
            for c in list(found)
            if said[c] and said[c] != found[c]
        )[:1]
        call = f"{asked.formula}({_spelled(next(iter(asked.inputs.values())))})"
        yield Row(offer.name, offer.version, what, cells, "", document, call, witnesses=witnesses)


def _documented(asked: Asked, arguments: Any) -> str:
    try:
        with np.errstate(all="ignore"):
            return _shown(asked, Answer("returned", FORMULAS[asked.formula].function(**arguments)))
    except Exception as error:  # noqa: BLE001 - a document names the errors of its arguments
        return f"{type(error).__name__}"


def _shown(asked: Asked, answer: Answer) -> str:
    if answer.kind != "returned":
        return _came(answer)
    try:
        return _value(asked, answer.value)
    except (KeyError, IndexError, TypeError, ValueError):
        return _short(repr(answer.value))


def _value(asked: Asked, value: Any) -> str:
    for key in asked.part:
        value = value[key]
    if asked.decoded:
        value = asked.decoded(np.asarray(value))
    if isinstance(value, dict):
        return _short("; ".join(f"{k} {_value(replace(asked, part=(), decoded=None), v)}" for k, v in value.items()))
    if isinstance(value, list | tuple):
        return _short("; ".join(_value(replace(asked, part=(), decoded=None), v) for v in value))
    if value is None or isinstance(value, str | bool):
        return str(value)
    return _short(_numbers(np.asarray(value)))


def _numbers(a: Array) -> str:
    """The numbers of an array; where all are one, that one."""
    if not a.size:
        return "empty"
    texts = list(dict.fromkeys(decimal(v) for v in a.ravel()))
    return ", ".join(texts[:_DISTINCT]) + (", ..." if len(texts) > _DISTINCT else "")


def _came(answer: Answer) -> str:
    if spoilt := breaches(answer):
        return _short(spoilt[0])
    first = (answer.message.strip().splitlines() or [""])[0]
    match answer.kind:
        case "raised":
            return _short(answer.error[0])
        case "unsupported":
            return _short(f"not offered: {first}" if first else "not offered")
        case _:
            return _short(first)


def _spelled(arguments: Any) -> str:
    return ", ".join(f"{name}={_argument(value)}" for name, value in arguments.items())


def _argument(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{_numbers(value)} ({value.dtype.name}{list(value.shape) if value.shape else ''})"
    if isinstance(value, tuple) and any(isinstance(v, np.ndarray) for v in value):
        return f"({', '.join(map(_argument, value))},)"
    return repr(value)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST else line[: _LONGEST - 4] + " ..."
