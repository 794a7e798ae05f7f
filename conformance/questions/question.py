"""A question as data, and what came of it: what is asked of whom, and how the answers are put in words."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from halfeven.reference.blocks import Array
from halfeven.reference.profile import Operation

__all__ = ["Asked", "FunctionQuestion", "OperationQuestion", "Question", "Row"]


@dataclass(frozen=True)
class OperationQuestion:
    """A question of every backend that quantizes on a grid.

    Attributes:
        name: the page's.
        title: the question, as one would search for it.
        why: when it matters, in a sentence or two.
        x: the inputs as text, or for dequantize the codes; of no element for an empty tensor.
        choices: the choices of the evaluation model that the answers decide, for the words of a row.
        scale, zero: the parameters, in the terms of x̂ = (q - z) * s.
        operations: in the order of preference; a backend is asked the first that it has.
        dtype: of the reals; a backend that does not have it is left out.
    """

    name: str
    title: str
    why: str
    x: tuple[str, ...]
    choices: tuple[str, ...] = ()
    scale: str = "1"
    zero: int = 0
    operations: tuple[Operation, ...] = ("quantize", "fake_quantize")
    dtype: str = "float32"


@dataclass(frozen=True, eq=False)
class Asked:
    """The calls of one formula.

    Attributes:
        formula: its id; every backend that answers it is asked.
        what: what tells these calls from others of the same formula: a format, a mapping.
        inputs: the arguments of the call in each column.
        part: which part of the result is shown: ``""`` for all, or keys such as ``(0,)`` or ``("scale",)``.
        decoded: the numbers of a result that is codes.
    """

    formula: str
    what: str
    inputs: Mapping[str, Mapping[str, Any]]
    part: tuple[Any, ...] = ()
    decoded: Callable[[Array], Array] | None = None


@dataclass(frozen=True, eq=False)
class FunctionQuestion:
    """A question of every backend that answers one of some formulas; columns are inputs."""

    name: str
    title: str
    why: str
    asked: tuple[Asked, ...]


Question = OperationQuestion | FunctionQuestion


@dataclass(frozen=True)
class Row:
    """What a backend answered.

    Attributes:
        backend, version: who.
        what: the operation, or the formula and what was asked of it.
        cells: the answers, one per column, as numbers or in words.
        does: what they mean, in words; with the code of each choice that is another than the document's.
        document: what the document of the backend gives, one per column; empty where it says nothing.
        call: how the call was made, of a function.
        note: why there are no answers.
    """

    backend: str
    version: str
    what: str
    cells: tuple[str, ...] = ()
    does: str = ""
    document: tuple[str, ...] = ()
    call: str = ""
    note: str = ""
    witnesses: tuple[str, ...] = field(default=())

    @property
    def surprising(self) -> bool:
        """Whether an answer is another than the document's."""
        return any(seen != said for seen, said in zip(self.cells, self.document, strict=False) if said)
