"""The report as a value: what ran where, every result with its witness, and what did not run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

OutcomeName = Literal["exact", "explained", "budgeted", "differs", "implementation-defined", "crashed", "not run"]
CONFORMING: frozenset[OutcomeName] = frozenset({"exact", "budgeted", "implementation-defined"})
SCHEMA_VERSION = "1.0"
#: In the documents' order, as ``halfeven.reference`` has them: said here too, so that reports are read without NumPy.
OPERATIONS = ("quantize", "dequantize", "fake_quantize")

__all__ = [
    "CONFORMING",
    "OPERATIONS",
    "SCHEMA_VERSION",
    "BackendRecord",
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
        script: Python source of about ten lines that shows it with NumPy and the target alone.
        reproduced: whether the engine saw the script's small call differ; else the whole call is needed.
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


@dataclass(frozen=True)
class Result:
    """The outcome of one (backend, requirement, check, configuration).

    Attributes:
        id: in words: ``profile/operation/grid/dtype/granularity/check``.
        points: the values compared.
        differing: how many of them differ.
        steps: the largest difference, in ``unit`` ("code steps", "ulp" or "").
        cause: what the difference is, in words: the model that reproduces it, or the fault found.
        detail: for a crash its traceback; for what did not run, the reason; for what the document leaves open, the
            value seen.
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


@dataclass(frozen=True)
class BackendRecord:
    """A backend as it ran: its claim, its library and version, its device, and the path that ran."""

    name: str
    profile: str
    library: str
    version: str
    device: str
    path: str
    operations: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    granularities: tuple[str, ...] = ()


@dataclass(frozen=True)
class Report:
    """One run.

    Attributes:
        environment: versions, CPU capability, threads, flush-to-zero, device.
        complete: False where the run was interrupted; ``expected`` items were planned.
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

    @property
    def ran(self) -> Sequence[Result]:
        """The results in which the backend was really called."""
        return [r for r in self.results if r.outcome != "not run"]

    @property
    def conforms(self) -> bool:
        """Whether anything ran and nothing parts from its profile."""
        return bool(self.ran) and all(r.outcome in CONFORMING for r in self.ran)
