"""What comes of comparing two backends, as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = ["Compared", "Comparison", "Shown", "Side"]


@dataclass(frozen=True)
class Side:
    """One of the two, as it ran."""

    name: str
    profile: str
    library: str
    version: str
    device: str
    path: str
    python: str = ""


@dataclass(frozen=True)
class Shown:
    """One input that shows a difference.

    Attributes:
        x, scale, zero: bit patterns, with their decimals; of a documented function ``x`` has all its arguments.
        a, b: what each gives.
        document: what the formula of the first one's profile gives; empty where it speaks of no such call.
        where: the call.
    """

    x: str
    scale: str
    zero: str
    a: str
    b: str
    document: str
    where: str


@dataclass(frozen=True)
class Compared:
    """What a part came to.

    Attributes:
        name: an operation with its grid and dtype, or a formula.
        calls, values: those compared.
        differing: the values that differ.
        steps: the largest difference, in ``unit``.
        cause: what one does where the other does something else; empty where none differs.
        left: why calls were not compared, and how many.
    """

    name: str
    calls: int = 0
    values: int = 0
    differing: int = 0
    steps: int = 0
    unit: str = ""
    cause: str = ""
    shown: Shown | None = None
    left: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """What two backends came to; printed, it is a table.

    Attributes:
        a, b: the two.
        parts: what both offer.
        left: in words, what only one of them does.
        ended: how a process ended that was to answer; then the rest was not asked.
    """

    a: Side
    b: Side
    tier: str
    seed: int
    parts: tuple[Compared, ...]
    left: tuple[str, ...] = ()
    ended: str = ""

    @property
    def differences(self) -> tuple[Compared, ...]:
        """The parts that differ."""
        return tuple(p for p in self.parts if p.differing)

    @property
    def known(self) -> bool:
        """Whether anything was compared, and nothing cut it short."""
        return not self.ended and any(p.values for p in self.parts)

    @property
    def same(self) -> bool:
        """Whether something was compared, all that was planned was, and nothing differs."""
        return self.known and not self.differences

    def __str__(self) -> str:  # noqa: D105
        from halfeven.conformance.report.pair_words import to_text  # noqa: PLC0415 - printing needs the report

        return to_text(self)
