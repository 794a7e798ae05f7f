"""A code explained: its sentence, why it matters, an example that is computed, who does so, and what to change."""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from halfeven.conformance import codes
from halfeven.conformance.explaining.explanation import wrapped
from halfeven.conformance.explaining.given import TEXTBOOK, Given, by_profile
from halfeven.conformance.explaining.known import spelled
from halfeven.conformance.explaining.value import given_of
from halfeven.reference import FORMULAS, Grid
from halfeven.reference.behaviour import Behaviour
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.systems import PROFILES, has_own_operations

__all__ = ["CodeExplanation", "Example", "every_code", "explain_code"]

_FEW = 14  # names that are shown
_KINDS = {
    "arithmetic": (
        "A hardware estimate of 1/s has some 12 bits; a Newton step need not round as 1/s does. Codes differ by one.",
        "divide, or compute 1/s by a division",
    ),
    "raising": (
        "The backend raises where the document gives an answer; the report shows the call and the message.",
        "answer the call, or raise Unsupported where the backend does not offer it: such a call counts as not run",
    ),
    "contract": (
        "Whatever the values are, a call answers its own arguments, and changes nothing else.",
        "the report shows the call; docs/backends.md has the contract",
    ),
    "region": (
        "The answers follow the document, or one behaviour, in some calls and not in others.",
        "look at the path that these calls take: the scalar tail, the threaded or the strided kernel",
    ),
    "reading": ("An argument, or a document, can be read in more than one way.", "read it as the document says"),
    "property": (
        "Every user expects it of a quantizer, whatever its document says.",
        "the report shows the call that breaks it",
    ),
    "open": (
        "The search knows the choices that `halfeven list codes` shows.",
        "report the witness; `halfeven explain X SCALE ZERO` shows the steps of one value",
    ),
}


@dataclass(frozen=True)
class Example:
    """One value that two models tell apart.

    Attributes:
        document: the model without the choice.
        does: the model with it.
    """

    given: Given
    document: EvaluationModel
    does: EvaluationModel

    @property
    def results(self) -> tuple[str, str]:
        """What the two give."""
        profiles: list[Profile] = [replace(TEXTBOOK, model=m) for m in (self.document, self.does)]
        first, second = (spelled(self.given, by_profile(p, self.given)) for p in profiles)
        return first, second


@dataclass(frozen=True)
class CodeExplanation:
    """What is known of a code.

    Attributes:
        sentence: what an implementation does, of an affine quantizer with what its document says.
        why: when that makes a difference, and how large one.
        help: what to change.
        choices: the formulas that know the choice, each with its name there.
        known: the profiles, versions and formulas that do so.
    """

    code: str
    sentence: str
    why: str = ""
    help: str = ""
    example: Example | None = None
    choices: tuple[str, ...] = ()
    known: tuple[str, ...] = field(default=())

    def to_dict(self) -> dict[str, Any]:
        """As what JSON has."""
        found = {name: getattr(self, name) for name in ("code", "sentence", "why", "help", "choices", "known")}
        if self.example is not None:
            found["example"] = _words(self.example) | dict(zip(("document", "does"), self.example.results, strict=True))
        return found

    def __str__(self) -> str:
        """Some ten lines."""
        return "\n".join(_lines(self)).rstrip()


def explain_code(code: str) -> CodeExplanation:
    """What is known of a code.

    Raises:
        ValueError: there is none; the message has the nearest.

    >>> found = explain_code("HE101")
    >>> found.sentence
    'multiplies by 1/s where the document divides by s'
    >>> found.example.results
    ('15', '16')
    """
    known = every_code()
    wanted = code.upper()
    if wanted not in known:
        msg = f"code={code!r} is not accepted{_nearest(wanted, known)}"
        raise ValueError(msg)
    return known[wanted]


@cache
def every_code() -> Mapping[str, CodeExplanation]:
    """Every code there is, in the order of numbers."""
    found = {c.code: c for c in (*_affine(), *_of_choices(), *_other())}
    return dict(sorted(found.items(), key=lambda item: (len(item[0]), item[0])))


def _affine() -> Iterator[CodeExplanation]:
    told = tomllib.loads((Path(codes.__file__).parent / "affine.toml").read_text(encoding="utf-8"))
    users = _users()
    for choice, words in EvaluationModel.choices().items():
        default = getattr(EvaluationModel(), choice)
        for value in words:
            code = codes.code_of(choice, value)
            more = told.get(code, {})
            document = more.get("document", default)
            yield CodeExplanation(
                code,
                f"{words[value]} where the document {words[document]}",
                more.get("why", ""),
                more.get("help", ""),
                _example(more["example"], choice, document, value) if "example" in more else None,
                *users.pop(code, ((), ())),
            )


def _example(told: Mapping[str, Any], choice: str, document: Any, value: Any) -> Example:
    ends = told.get("grid", [-128, 127])
    given = given_of(
        told["x"],
        told["scale"],
        told.get("zero", 0),
        operation=told.get("operation", "quantize"),
        dtype=told.get("dtype", "float32"),
        scale_dtype=told.get("scale_dtype", ""),
        grid=Grid(*ends),
    )
    model = replace(EvaluationModel(), **told.get("model", {}))
    return Example(given, replace(model, **{choice: document}), replace(model, **{choice: value}))


def _of_choices() -> Iterator[CodeExplanation]:
    """Those that are no choice of the evaluation model's."""
    said: dict[str, dict[str, None]] = {}
    for behaviour in {type(f.behaviour): f.behaviour for f in FORMULAS.values() if f.behaviour is not None}.values():
        for choice, value, sentence in _values(behaviour):
            said.setdefault(codes.code_of(choice, value, behaviour), {})[sentence] = None
    users = _users()
    affine = {codes.code_of(c, v) for c, words in EvaluationModel.choices().items() for v in words}
    for code, words in said.items():
        if code not in affine:
            choices, known = users.get(code, ((), ()))
            near = "`halfeven list formulas ID` shows a formula's choices, and what each release was measured to do."
            claim = "claim the version that does so, if that is what is meant; or do as the document says"
            yield CodeExplanation(code, "; or ".join(words), near, claim, None, choices, known)


def _other() -> Iterator[CodeExplanation]:
    for kind, entries in codes.other().items():
        why, help_ = _KINDS[kind]
        yield from (CodeExplanation(code, sentence, why, help_) for code, sentence in entries.values())


@cache
def _users_of_all() -> Mapping[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    """Of each code the formulas that have the choice, and the profiles and formulas that make it."""
    having: dict[str, dict[str, None]] = {}
    doing: dict[str, dict[str, None]] = {}
    for name, profile in PROFILES.items():
        if has_own_operations(name):
            for choice in profile.model.choices():
                doing.setdefault(codes.code_of(choice, getattr(profile.model, choice)), {})[name] = None
    for f in FORMULAS.values():
        if f.behaviour is None:
            continue
        for choice, value, _ in _values(f.behaviour):
            code = codes.code_of(choice, value, f.behaviour)
            if not f.version:
                having.setdefault(code, {})[f"{f.id}: {choice}"] = None
            if getattr(f.behaviour, choice) == value:
                doing.setdefault(code, {})[f.id] = None
    return {c: (tuple(having.get(c, ())), tuple(doing.get(c, ()))) for c in {**having, **doing}}


def _users() -> dict[str, tuple[tuple[str, ...], tuple[str, ...]]]:
    return dict(_users_of_all())


def _values(behaviour: Behaviour) -> Iterator[tuple[str, Any, str]]:
    for choice, words in behaviour.choices().items():
        yield from ((choice, value, said) for value, said in words.items())


def _nearest(wanted: str, known: Mapping[str, CodeExplanation]) -> str:
    digits = wanted.removeprefix("HE")
    if not digits.isdigit():
        return ": give HE and a number, such as HE101; `halfeven list codes` shows them"
    same = [c for c in known if len(c) == len(wanted)] or [*known]
    near = sorted(same, key=lambda c: abs(int(c[2:]) - int(digits)))[:3]
    return f": the nearest are {', '.join(sorted(near))}; `halfeven list codes` shows all"


def _words(e: Example) -> dict[str, Any]:
    g = e.given
    both = EvaluationModel().changes(e.document)
    changed = e.document.changes(e.does)
    return {
        "operation": g.operation,
        "x": str(g.x[0]),
        "scale": str(g.scale),
        "scale_dtype": g.scale.dtype.name,
        "zero": g.zero,
        "dtype": g.dtype,
        "grid": str(g.grid),
        "model": {name: pair[1] for name, pair in both.items() if name not in changed},
    }


def _lines(c: CodeExplanation) -> Iterator[str]:
    yield from wrapped(f"{c.code} {c.sentence}")
    if c.why:
        yield ""
        yield from wrapped(c.why)
    if c.example is not None:
        said, (document, does) = _words(c.example), c.example.results
        yield ""
        name = "q" if said["operation"] == "dequantize" else "x"
        given = f"{name} {said['x']}  s {said['scale']}  z {said['zero']}"
        held = "" if said["scale_dtype"] == said["dtype"] else f", s in {said['scale_dtype']}"
        yield f"Example: {said['operation']} in {said['dtype']}{held}, {said['grid']}"
        yield f"  {given}   document {document}   {c.code} {does}"
        for choice, value in said["model"].items():
            yield f"  both: {EvaluationModel.choices()[choice][value]}"
    yield ""
    yield from _names("Known to do so", c.known)
    yield from _names("A choice of", c.choices)
    if c.help:
        yield from wrapped(f"help: {_claim(c)}{c.help}")


def _claim(c: CodeExplanation) -> str:
    """The releases that were measured to do so where their document does not; one of each document."""
    found: dict[str, str] = {}
    for name in c.known:
        document = name.partition("@")[0]
        if name in PROFILES and name != document and document not in c.known:
            found.setdefault(document, name)
    return f"claim {' or '.join([*found.values()][:3])}; or " if found else ""


def _names(what: str, names: tuple[str, ...]) -> Iterator[str]:
    if names:
        more = f", and {len(names) - _FEW:,} more" if len(names) > _FEW else ""
        yield from wrapped(f"{what}: {', '.join(names[:_FEW])}{more}", "", "  ")
