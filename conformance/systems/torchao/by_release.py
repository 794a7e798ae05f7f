"""torchao: which of its functions answer, by the release that is installed, and what they take for names."""

import ast
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from halfeven.conformance.backends.common import installed
from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.quote import Spelt

__all__ = ["Choice", "Primitive", "absent", "by_release", "chosen", "primitive", "with_members"]

Answers = Mapping[str, Callable[..., Any]]
QUOTES = ("'", '"')
_MEMBERS = {"mapping_type": "MappingType", "zero_point_domain": "ZeroPointDomain"}


def by_release(newest: Answers, **until: Answers) -> dict[str, Callable[..., Any]]:
    """The answers of the installed release: the newest ones, save where ``until`` has others.

    Args:
        newest: how torchao 0.18 answers.
        until: the last minor release that answers otherwise, as ``v0_11``, and how it does; the latest first.
    """
    minor = [int(part) for part in (installed("torchao") or "0.18").split(".")[:2]]
    found = dict(newest)
    for last, functions in until.items():
        if minor <= [int(part) for part in last.removeprefix("v").split("_")]:
            found |= functions
    return found


def absent(**_given: Any) -> Any:
    """The answer of a release that does not have the function.

    Raises:
        Unsupported: always.
    """
    msg = f"torchao {installed('torchao')} has no such function, or not with these arguments"
    raise Unsupported(msg)


def primitive(name: str, module: str = "torchao.quantization.quant_primitives", **fixed: Any) -> "Primitive":
    """A function of torchao's by its name, which takes dtypes, mappings and domains by theirs."""
    return Primitive(name, module, fixed)


@dataclass(frozen=True)
class Primitive:
    """A function of torchao's.

    Attributes:
        name, module: where it is.
        fixed: arguments that it always gets.
        words: arguments that it takes as words, though others take members of an enumeration.
    """

    name: str
    module: str
    fixed: Mapping[str, Any]
    words: tuple[str, ...] = ()

    def __call__(self, **given: Any) -> Any:
        """What the function answers."""
        own = {**self.fixed, **given}
        words = {key: own.pop(key) for key in self.words if key in own}
        return getattr(importlib.import_module(self.module), self.name)(**with_members(own), **words)

    def spelt(self, passed: Mapping[str, str]) -> Spelt:
        """The lines that import the function, and the call with these arguments, for a script."""
        home, _, last = self.module.rpartition(".")
        given = {key: repr(value) for key, value in self.fixed.items()} | dict(passed)
        members = {
            key: f"torch.{text[1:-1]}" if key.endswith("dtype") else f"{last}.{_MEMBERS[key]}.{text[1:-1]}"
            for key, text in given.items()
            if text.startswith(QUOTES) and (key.endswith("dtype") or key in _MEMBERS) and key not in self.words
        }
        words = (f"{key}={text}" for key, text in (given | members).items())
        return Spelt(f"import torch\nfrom {home} import {last}", f"{last}.{self.name}({', '.join(words)})")


Choice = Callable[..., tuple[Primitive, Mapping[str, Any]]]


def chosen(choose: Choice) -> Callable[..., Any]:
    """The function that ``choose`` names for the arguments, called with those that it names."""
    return _Chosen(choose)


@dataclass(frozen=True)
class _Chosen:
    choose: Choice

    def __call__(self, **given: Any) -> Any:
        """What the function answers that stands for these arguments."""
        function, own = self.choose(**given)
        return function(**own)

    def spelt(self, passed: Mapping[str, str]) -> Spelt:
        """The call of that function, for a script."""
        function, own = self.choose(**{key: _value(text) for key, text in passed.items()})
        return function.spelt({key: repr(value) for key, value in own.items()})


class _Name(str):
    """Python that is no literal: the name of an array."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except ValueError:
        return _Name(text)


def with_members(given: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, with torch's dtypes and torchao's enumerations for their names.

    Raises:
        Unsupported: torchao has no such mapping.
    """
    import torch

    primitives = importlib.import_module("torchao.quantization.quant_primitives")
    found = {k: getattr(torch, v) if k.endswith("dtype") and isinstance(v, str) else v for k, v in given.items()}
    if (mapping := found.get("mapping_type")) is not None:
        if mapping not in primitives.MappingType.__members__:
            msg = f"mapping_type={mapping} is not a member of the enumeration"
            raise Unsupported(msg)
        found["mapping_type"] = primitives.MappingType[mapping]
    if "zero_point_domain" in found:
        found["zero_point_domain"] = getattr(primitives.ZeroPointDomain, str(found["zero_point_domain"]), None)
    return found
