"""What a fingerprint is: every choice of an implementation, as far as its answers decide it, and what decided it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["INDISTINGUISHABLE", "UNDECIDED", "Fingerprint", "Nearest", "Witnessed"]

#: No input tells the values that remain apart: that is proved, and ``Fingerprint.proofs`` says how.
INDISTINGUISHABLE = "not distinguishable"
#: Several values remain, and nobody has proved that no input tells them apart.
UNDECIDED = "not decided"
_WIDE = 100


@dataclass(frozen=True)
class Witnessed:
    """The input that decided a choice.

    Attributes:
        given: the input, in words.
        answer: what came.
        instead: what would have come of another value.
        other: that value.
    """

    given: str
    answer: str
    instead: str = ""
    other: str = ""

    def __str__(self) -> str:
        """One line."""
        instead = f"; {self.other} gives {self.instead}" if self.other else ""
        return f"{self.given} gives {self.answer}{instead}"


@dataclass(frozen=True)
class Nearest:
    """The behaviour that gives most of the answers.

    Attributes:
        words: what it does, where that is another than the formula's own or the textbook's.
        share: of the values that came, those that it gives.
        name: of a profile or a version that has it, if there is one.
    """

    words: str
    share: float
    name: str = ""


@dataclass(frozen=True)
class Fingerprint:
    """What an implementation was found to do, with no claim made; prints as a short table.

    Attributes:
        name: of the implementation.
        about: what was asked: an operation with its dtype and grid, or a formula.
        fields: each choice with its value, or ``not distinguishable``, ``not decided``, or ``depends on ...``.
        alternatives: of a choice without one value those that remain.
        witnesses: of each choice that is decided the input that decided it.
        proofs: of each choice that is not distinguishable why.
        profiles: the known profiles, formulas and versions that give every answer that came.
        rounded: whether its reals had more bits than the dtype asked for: all that is told is of them rounded to it.
        nearest: the behaviour that gives most of the answers; its share is 1 where it gives all.
        calls: how many calls were made.
        refused: what was asked and not answered, and what else is to be known, in words.
        words: of each choice that is decided what the implementation does, to follow "it".
    """

    name: str
    about: str
    fields: Mapping[str, Any]
    alternatives: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    witnesses: Mapping[str, Witnessed] = field(default_factory=dict)
    proofs: Mapping[str, str] = field(default_factory=dict)
    profiles: tuple[str, ...] = ()
    rounded: bool = False
    nearest: Nearest | None = None
    calls: int = 0
    refused: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)

    @property
    def explained(self) -> bool:
        """Whether there is a behaviour that gives every answer that came."""
        return self.nearest is not None and self.nearest.share == 1

    def __str__(self) -> str:
        """A table of the choices, then what agrees, and what was refused."""
        lines = [f"{self.name}: {self.about}; {self.calls} calls"]
        notes = [f"note: {said}" for said in self.refused]
        if notes and self.nearest is None and not self.profiles and {*self.fields.values()} == {UNDECIDED}:
            return "\n".join([*lines, "  nothing is decided", *notes])
        if self.nearest is not None and not self.explained:
            share = f"{100 * self.nearest.share:.2f} %"
            lines.append(f"  no known behaviour gives every answer; the nearest gives {share}: {self.nearest.words}")
        width = max(map(len, self.fields), default=0)
        for name, value in self.fields.items():
            left = self.alternatives.get(name, ())
            said = f"{value}: {' or '.join(map(str, left))}" if left else f"{value}"
            if name in self.words and not left:
                said = f"{said}: {self.words[name]}"
            lines.append(_cut(f"  {name:{width}}  {said}"))
        lines += ["decided by:"] if self.witnesses else []
        lines += [_cut(f"  {name:{width}}  {said}", 2 * _WIDE) for name, said in self.witnesses.items()]
        lines += ["not distinguishable, since proved to be"] if self.proofs else []
        for proof in dict.fromkeys(self.proofs.values()):
            lines.append(_cut(f"  {proof}:", 2 * _WIDE))
            lines.append(f"    {', '.join(name for name, said in self.proofs.items() if said == proof)}")
        known = "no known system, which makes all these choices together" if self.explained else "nothing known"
        known = "nothing: its reals have more bits than were asked for" if self.rounded else known
        lines.append(f"agrees with: {', '.join(self.profiles) or known}")
        return "\n".join([*lines, *notes])

    def json(self) -> str:
        """The same as JSON."""
        nearest = None if self.nearest is None else vars(self.nearest)
        witnesses = {name: vars(w) for name, w in self.witnesses.items()}
        whole = {**vars(self), "nearest": nearest, "witnesses": witnesses}
        return json.dumps(
            {k: dict(v) if isinstance(v, Mapping) else v for k, v in whole.items()}, indent=2, default=str
        )


def _cut(line: str, width: int = _WIDE) -> str:
    return line if len(line) <= width else f"{line[: width - 4]} ..."
