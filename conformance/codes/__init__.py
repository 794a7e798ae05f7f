"""Codes of causes: ``HE101`` is, in every report and for ever, that 1/s is multiplied by where the document divides.

    HE1xx  how an affine quantizer computes;       HE2xxx  what a formula chooses: scales, ranges, gradients
    HE2xx  the same, what was added since          HE3xxx  what else a formula computes: codes, reals, formats
    HE4xx  what is raised
    HE5xx  the contract of a call
    HE6xx  where in the calls it happens           HE7xx   arguments read otherwise than they are given
    HE8xx  properties that every quantizer has     HE9xx   no cause is known

A code stands for what an implementation does, so one that several formulas know, under whatever names, is one code. The
tables are data next to this file: ``choices.toml`` for the choices of behaviours, ``affine.toml`` for what is told of
HE1xx and HE2xx, ``other.toml`` for all that is no choice. No number is given twice; ``tools/codes.py`` gives new ones.
"""

import tomllib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

__all__ = [
    "NEAREST",
    "UNKNOWN",
    "UNLISTED",
    "choices",
    "code_of",
    "codes_between",
    "error_code",
    "fault_code",
    "other",
    "place",
    "property_code",
    "reading_code",
    "region_code",
    "value_key",
]

#: No known behaviour gives the answers; one gives most of them; a choice that this edition has no number for.
UNKNOWN, NEAREST, UNLISTED = "HE999", "HE998", "HE997"
_MODEL = "model"
_AFFINE = {_MODEL, "choices"}  # where the choices of affine quantizers are declared


def code_of(choice: str, value: Any, behaviour: Any = None) -> str:
    """The code of an implementation that has ``value`` for a choice where the document has another.

    Args:
        choice: the field of a behaviour, such as ``division``.
        value: its value, such as ``reciprocal``.
        behaviour: the behaviour, or its class; by default the evaluation model of affine quantizers.

    Returns:
        ``HE997`` for a choice that no formula of this edition has.

    >>> code_of("division", "reciprocal")
    'HE101'
    """
    section = (
        _MODEL if behaviour is None else place(behaviour if isinstance(behaviour, type) else type(behaviour), choice)
    )
    key = value_key(value)
    beyond, _ = other()["arithmetic"].get(key, (UNLISTED, ""))
    return choices().get(section, {}).get(choice, {}).get(key, beyond)


def codes_between(document: Any, found: Any) -> tuple[str, ...]:
    """The code of each choice in which the behaviour ``found`` differs from the document's, in the order of fields."""
    return tuple(code_of(name, does, document) for name, (_, does) in document.changes(found).items())


def error_code(name: str) -> str:
    """The code of an error that was raised, by the name of its type.

    >>> error_code("RuntimeError"), error_code("torch.OutOfMemoryError")
    ('HE403', 'HE400')
    """
    return _named("raising", name.rpartition(".")[2])


def fault_code(message: str) -> str:
    """The code of a breach of contract, by the words with which the engine says it.

    >>> fault_code("wrong shape: (1,) for an input of ()")
    'HE501'
    """
    entries = other()["contract"]
    found = (code for words, (code, _) in entries.items() if words and words in message)
    return next(found, entries[""][0])


def region_code(level: str) -> str:
    """The code of where it happens: ``tail``, ``size``, ``layout``, ``threads``, ... ; ``HE600`` for any other.

    >>> region_code("tail")
    'HE601'
    """
    return _named("region", level)


def reading_code(name: str) -> str:
    """The code of an argument that is read otherwise, or of a reading that the document allows.

    >>> reading_code("narrow grid")
    'HE701'
    """
    return _named("reading", name)


def property_code(name: str) -> str:
    """The code of a property that is broken: ``monotone``, ``zero``, ...; ``HE800`` for any other.

    >>> property_code("stays-quantized")
    'HE806'
    """
    return _named("property", name)


@cache
def choices() -> Mapping[str, Mapping[str, Mapping[str, str]]]:
    """Every value's code: by the place of the behaviour's class, the choice and the value's key."""
    return MappingProxyType(
        {
            section: {
                choice: {key: f"HE{number}" for key, number in values.items()} for choice, values in fields.items()
            }
            for section, fields in _read("choices.toml").items()
        }
    )


@cache
def other() -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """By kind and name the code and the sentence of what is no choice; the name ``""`` is any other of the kind."""
    return MappingProxyType(
        {
            kind: {name: (f"HE{number}", sentence) for name, (number, sentence) in entries.items()}
            for kind, entries in _read("other.toml").items()
        }
    )


def place(kind: type, choice: str) -> str:
    """Where a choice is declared: module and class, without what all have in common; one place for affine ones."""
    owner = next((c for c in kind.__mro__ if choice in vars(c)), kind)
    module = owner.__module__.removeprefix("halfeven.reference.").removeprefix("systems.")
    return _MODEL if module in _AFFINE else f"{module}.{owner.__name__}"


def value_key(value: Any) -> str:
    """How the table spells a value: as it is printed; a behaviour that is a value, by what differs from its default.

    >>> value_key("machine"), value_key(448.0), value_key(None)
    ('machine', '448.0', 'None')
    """
    if not hasattr(value, "changes"):
        return str(value)
    changed = {name: pair[1] for name, pair in type(value)().changes(value).items()}
    return ", ".join(f"{name}={chosen}" for name, chosen in changed.items()) or "default"


def _named(kind: str, name: str) -> str:
    entries = other()[kind]
    return entries.get(name, entries[""])[0]


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((Path(__file__).parent / name).read_text(encoding="utf-8"))
