"""The report as a value: what ran where, every result with its witness, and what did not run."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Literal

from halfeven.conformance.report import share as shares

OutcomeName = Literal[
    "exact",
    "as measured",
    "bounded",
    "explained",
    "budgeted",
    "differs",
    "implementation-defined",
    "timed out",
    "crashed",
    "not run",
]
CONFORMING: frozenset[OutcomeName] = frozenset(
    {"exact", "as measured", "bounded", "budgeted", "implementation-defined"}
)
SCHEMA_VERSION = "1.3"
#: The most characters that are kept of what a backend may say at any length.
LONGEST = {"cause": 600, "detail": 16_384, "value": 4_096, "script": 65_536, "fact": 600}
#: In the documents' order, as ``halfeven.reference`` has them: said here too, so that reports are read without NumPy.
OPERATIONS = ("quantize", "dequantize", "fake_quantize")

__all__ = [
    "CONFORMING",
    "LONGEST",
    "OPERATIONS",
    "SCHEMA_VERSION",
    "BackendRecord",
    "Cause",
    "OutcomeName",
    "Report",
    "Result",
    "Witness",
]


@dataclass(frozen=True)
class Witness:
    """One input that shows a difference, and needs no seed.

    Attributes:
        x: the input (for dequantize the code), as a hex bit pattern, with its decimal next to it.
        scale, zero: the parameters that this element sees, likewise.
        expected, actual: the code, or the hex bit pattern of the real, with its decimal.
        quotient: the exact rational x / scale as "p/q", and ``to_tie``, its exact distance to the nearest tie.
        where: the index of the element, and the call's shape, layout and block size, in words.
        script: Python source that makes the call with the library alone, and prints what is expected and what comes.
        reproduced: whether the script was run, alone in a process of its own, and showed the difference.
        nearer: where the implementation is nearer to the equation in exact numbers than the document, that it is.
        unshown: why there is no script.
        longer: a script that makes other calls first, until either was run.
    """

    x: str
    scale: str
    zero: str
    expected: str
    actual: str
    quotient: str = ""
    to_tie: str = ""
    where: str = ""
    script: str = ""
    reproduced: bool = False
    nearer: str = ""
    unshown: str = ""
    longer: str = ""

    def __post_init__(self) -> None:  # noqa: D105 - what a backend's values look like may be long
        _cut(
            self,
            "value",
            ("x", "scale", "zero", "expected", "actual", "quotient", "to_tie", "where", "nearer", "unshown"),
        )
        _cut(self, "script", ("script", "longer"))


@dataclass(frozen=True)
class Cause:
    """One thing that an implementation does otherwise than the document; many checks may fail by it.

    Attributes:
        code: stable, such as HE101.
        sentence: what the implementation does, then what the document says.
        where: the calls or values in which it does so, such as "the last n mod 8 elements"; empty where in all.
        share: of the answers there, those that it gives, in words; empty where it gives all.
        witness: of a choice that no check had alone, a call that differs by it, where one was found; one result
            has it. Causes are equal whatever call shows them.
    """

    code: str
    sentence: str
    where: str = ""
    share: str = ""
    witness: Witness | None = field(default=None, compare=False)

    def __post_init__(self) -> None:  # noqa: D105 - it may quote a backend
        _cut(self, "cause", ("sentence", "where", "share"))

    @property
    def key(self) -> tuple[str, str, str]:
        """What it is one with in other checks: code, sentence and place."""
        return self.code, self.sentence, self.where


@dataclass(frozen=True)
class Result:
    """The outcome of one (backend, requirement, check, configuration).

    Attributes:
        id: in words: ``profile/operation/grid/dtype/granularity/check``.
        points: the values compared.
        differing: how many of them differ.
        steps: the largest difference, in ``unit`` ("code steps", "ulp" or "").
        cause: what the difference is, in words: the model that reproduces it, or the fault found.
        causes: the same one by one, as all answers of the backend have it; empty where nothing differs.
        detail: for a crash its traceback; for what did not run, the reason; for what the document leaves open, the
            value seen.
        asked: the calls that were made, and how many of them the backend ``refused``.
        ended: how the process ended that was to answer, such as "signal 9, SIGKILL"; empty where it answered.
    """

    id: str
    backend: str
    profile: str
    operation: str
    requirement: str
    check: str
    configuration: dict[str, Any]
    outcome: OutcomeName
    points: int = 0
    differing: int = 0
    steps: int = 0
    unit: str = ""
    cause: str = ""
    detail: str = ""
    witness: Witness | None = None
    seconds: float = 0.0
    ended: str = ""
    asked: int = 0
    refused: int = 0
    causes: tuple[Cause, ...] = ()

    def __post_init__(self) -> None:  # noqa: D105 - a message of a backend may be of any length
        if max(len(self.cause), len(self.detail), len(self.ended)) > LONGEST["cause"]:
            _cut(self, "cause", ("cause", "ended"))
            _cut(self, "detail", ("detail",))

    @property
    def name(self) -> str:
        """What the plan and the journal call it."""
        return f"{self.backend}::{self.id}"

    @property
    def died(self) -> bool:
        """Whether no answer came, because a process ended or took too long: such a check is worth asking again."""
        return self.outcome == "timed out" or bool(self.ended)


@dataclass(frozen=True)
class BackendRecord:
    """A backend as it ran: its claim, its library and version, its device, and the path that ran.

    Attributes:
        lacks: the requirements that it declares not to offer.
    """

    name: str
    profile: str
    library: str
    version: str
    device: str
    path: str
    operations: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    granularities: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def __post_init__(self) -> None:  # noqa: D105 - a backend says these of itself
        _cut(self, "fact", ("library", "version", "device", "path"))


@dataclass(frozen=True)
class Report:
    """One run.

    Attributes:
        environment: versions, CPU capability, threads, flush-to-zero, device.
        complete: whether every check that was planned came to a result; ``expected`` are planned.
        missing: those that did not, as ``backend::id``.
        require: how much of what a backend offers must have been checked for it to conform.
        not_run: what could not even be planned (a library that is not installed), with the reason.
    """

    command: str
    tier: str
    seed: int
    environment: dict[str, Any]
    backends: tuple[BackendRecord, ...]
    results: tuple[Result, ...]
    expected: int
    complete: bool
    not_run: tuple[dict[str, str], ...] = ()
    created: str = ""
    schema_version: str = SCHEMA_VERSION
    require: str = shares.EACH
    missing: tuple[str, ...] = ()

    @property
    def ran(self) -> Sequence[Result]:
        """The results in which the backend was really called."""
        return [r for r in self.results if r.outcome != "not run"]

    @property
    def share(self) -> float:
        """The checks that ran, of those planned."""
        planned = len(shares.counted(self.results)) + len(self.missing)
        return shares.share(self.results) * (planned - len(self.missing)) / planned if planned else 0.0

    @property
    def unmet(self) -> dict[str, str]:
        """For each backend of which less was checked than is required, what is missing."""
        lacks = {b.name: b.lacks for b in self.backends}
        by = groupby(sorted(self.results, key=lambda r: r.backend), key=lambda r: r.backend)
        said = {name: shares.unmet([*results], self.require, lacks.get(name, ())) for name, results in by}
        return {name: words for name, words in said.items() if words}

    @property
    def conforms(self) -> bool:
        """Whether all that was planned is there, enough of it ran, and nothing differs from its profile."""
        ran = self.ran
        return self.complete and bool(ran) and all(r.outcome in CONFORMING for r in ran) and not self.unmet


def _cut(record: object, kind: str, names: Sequence[str]) -> None:
    """Keep the beginning of a text that is too long, and more of its end, where a traceback says what happened."""
    limit = LONGEST[kind]
    for name in names:
        text = getattr(record, name)
        if len(text) > limit:
            head = limit // 4
            left = f" ... {len(text) - limit:,} characters left out ... "
            tail = limit - head - len(left)
            object.__setattr__(record, name, text[:head] + left + text[-tail:])
