"""The programs of the GPU: which sources, with which definitions, compiled by which options."""

from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["OPTIONS", "Program", "backward", "forward", "headers", "reduce"]

_FOLDER = Path(__file__).parents[1]
_FORWARD, _REDUCE = ("rows", "columns", "strided"), ("rows", "columns", "combine")
# Every operation is rounded as written: none is fused with another, none is approximate, subnormals are kept.
OPTIONS = (
    "--std=c++20",
    "--device-as-default-execution-space",
    "--fmad=false",
    "--prec-div=true",
    "--prec-sqrt=true",
    "--ftz=false",
)


@dataclass(frozen=True)
class Program:
    """What is compiled at a time: a source of this folder, and the macros that choose its dtypes.

    Example:
        >>> forward("Quantize", "F32", "F32", "I8").options
        ('-DHALFEVEN_OPERATION=Quantize', '-DHALFEVEN_IN=F32', '-DHALFEVEN_COMPUTE=F32', '-DHALFEVEN_OUT=I8')
    """

    #: The file, as it is included.
    name: str
    definitions: tuple[tuple[str, str], ...]
    #: The names of its kernels.
    kernels: tuple[str, ...]

    def __str__(self) -> str:
        """As a message names it."""
        return f"{self.name} ({', '.join(value for _, value in self.definitions)})"

    @property
    def options(self) -> tuple[str, ...]:
        """The definitions for a compiler."""
        return tuple(f"-D{name}={value}" for name, value in self.definitions)

    @property
    def text(self) -> str:
        """The source."""
        return (_FOLDER / self.name).read_text(encoding="utf-8")


def forward(operation: str, x: str, compute: str, out: str) -> Program:
    """Kernels ``rows``, ``columns`` and ``strided`` of one combination of dtypes.

    Args:
        operation: ``Quantize``, ``QuantizeDequantize``, ``QuantizeDequantizeShifted`` or ``Dequantize``.
        x: the dtype of the elements, as ``core/dtype.h`` names it.
        compute: the dtype of the arithmetic: of the elements' dtype or wider, but for ``Dequantize``.
        out: the dtype of the result.
    """
    names = ("OPERATION", "IN", "COMPUTE", "OUT")
    given = zip(names, (operation, x, compute, out), strict=True)
    return Program("cuda/forward.cu", tuple((f"HALFEVEN_{name}", value) for name, value in given), _FORWARD)


def backward(gradient: str, x: str, grad: str, compute: str) -> Program:
    """Kernels ``rows``, ``columns`` and ``combine`` of the gradients.

    Args:
        gradient: ``Quantize``, ``Dequantize`` or ``QuantizeDequantize``.
        x: the dtype of the elements, as ``core/dtype.h`` names it.
        grad: the dtype of the gradient that comes in: of x, but for ``Dequantize``.
        compute: the dtype of the arithmetic.
    """
    names = ("GRADIENT", "IN", "GRAD", "COMPUTE")
    given = zip(names, (gradient, x, grad, compute), strict=True)
    return Program("cuda/backward.cu", tuple((f"HALFEVEN_{name}", value) for name, value in given), _REDUCE)


def reduce(x: str, *, magnitudes: bool) -> Program:
    """Kernels ``rows``, ``columns`` and ``combine`` of minima and maxima.

    Args:
        x: the dtype of the elements, as ``core/dtype.h`` names it.
        magnitudes: greatest magnitudes alone.
    """
    given = (("HALFEVEN_IN", x), ("HALFEVEN_MAGNITUDES", str(int(magnitudes))))
    return Program("cuda/reduce.cu", given, _REDUCE)


@cache
def headers() -> dict[str, str]:
    """The text of every header that a program includes, by the name that it is included by."""
    texts = {
        str(path.relative_to(_FOLDER)): path.read_text(encoding="utf-8")
        for folder in ("core", "cuda")
        for path in sorted((_FOLDER / folder).glob("*.h"))
    }
    return {**texts, "cstdint": texts["cuda/integers.h"]}
