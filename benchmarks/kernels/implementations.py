"""What an implementation is: a name, and for each case a call of no arguments."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from kernels.cases import Case

__all__ = ["Implementation", "NotOffered", "backward", "results"]

Call = Callable[[], object]


class NotOffered(Exception):  # noqa: N818 - named for what the reader of a report sees
    """The library has no such function, or not for this layout or dtype; the message says which."""


@dataclass(frozen=True)
class Implementation:
    """One row of the tables.

    Attributes:
        name: as shown.
        distribution: whose version is shown.
        makers: for an operation, what makes the call of a case; it may raise NotOffered, or what an import raises.
        out: whether the result goes where the caller says, into memory that is mapped already.
        note: where its arithmetic parts from the exact one.
        role: ``kernels`` and ``fallback`` are ours, and must be exact; the rest are peers.
        zero_point: whether it takes one; if not, its grid is symmetric.
        offset: whether its third gradient is by the offset, minus that by the zero point.
    """

    name: str
    distribution: str
    makers: dict[str, Callable[[Case], Call]]
    out: bool = False
    note: str = ""
    role: Literal["kernels", "fallback", "peer"] = "peer"
    zero_point: bool = True
    offset: bool = False

    def call(self, case: Case) -> Call:
        """The call of a case.

        Raises:
            NotOffered: there is none.
        """
        if (maker := self.makers.get(case.table.operation)) is None:
            msg = f"no {case.table.operation}"
            raise NotOffered(msg)
        return maker(case)


def backward(result: Tensor, grad: Tensor, *wanted: Tensor) -> Call:
    """Autograd's pass back from a result that was computed before."""
    return lambda: torch.autograd.grad(result, wanted, grad, retain_graph=True)


def results(found: object, expected: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """The tensors of a result, codes that are held in floats as integers.

    Raises:
        TypeError: it is made of something else.
    """
    tensors = tuple(found) if isinstance(found, tuple | list) else (found,)
    if len(tensors) != len(expected) or not all(isinstance(t, Tensor) for t in tensors):
        msg = f"{len(expected)} tensors expected, not {found!r:.80}"
        raise TypeError(msg)
    return tuple(_plain(t, e) for t, e in zip(tensors, expected, strict=True))


def _plain(found: Tensor, expected: Tensor) -> Tensor:
    t = found.detach()
    t = t.int_repr() if t.is_quantized else t
    if t.dtype == expected.dtype:
        pass
    elif expected.dtype == torch.int8 and bool((t == t.to(torch.int8)).all()):
        t = t.to(torch.int8)
    else:
        msg = f"a result of {expected.dtype} expected, not {t.dtype}"
        raise TypeError(msg)
    # Parameters' gradients and minima keep dimensions of one in some libraries and drop them in others.
    return t.reshape(expected.shape) if _long(t) == _long(expected) else t


def _long(t: Tensor) -> list[int]:
    return [n for n in t.shape if n != 1]
