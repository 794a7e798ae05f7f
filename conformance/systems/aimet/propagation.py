"""What results of operations know of an AIMET tensor's encoding: requirements, calls, answers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from halfeven.conformance.requirement import Arguments, Calls, documented, expected, measured
from halfeven.conformance.systems.aimet.affine import F32, scalar

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

_FIRST = "class QuantizedTensorBase: first paragraph"


def _of_every_tensor(operations: str) -> Calls:
    """Operations are torch's; x is the tensor, y a plain one of the same shape, index and rows are of integers."""
    for operation in (one.strip() for one in operations.replace("\n", ";").split(";")):
        for granularity in ("tensor", "channel", "block") if operation else ():
            for kind in ("quantized", "dequantized"):
                yield {"operation": operation, "granularity": granularity, "kind": kind}


@documented("aimet/propagation", "class QuantizedTensorBase: clone, detach (that any encoding is kept: measured)")
def unmoved() -> Calls:
    """A copy, a detached tensor and one that nothing was done to keep the encoding, in every spelling."""
    yield from _of_every_tensor("""
        x.contiguous(); x.requires_grad_(); x.clone(); torch.clone(x); x.detach(); torch.detach(x); x.data
        torch.positive(x); functional.dropout(x, training=False)
        """)


@measured("aimet/propagation", _FIRST)
def casts() -> Calls:
    """A cast to another float dtype keeps the encoding, whether by name or by to."""
    yield from _of_every_tensor("""
        x.half(); x.float(); x.double(); x.bfloat16(); x.to(torch.bfloat16); x.to(torch.float64); x.to('cpu'); x.cpu()
        x.type(torch.float64); x.type_as(y.double())
        """)


@expected("aimet/propagation", "class QuantizedTensorBase: quantized_repr")
def integers() -> Calls:
    """Integers, and bits taken for integers, are plain tensors."""
    yield from _of_every_tensor("""
        x.int(); x.bool(); x.to(torch.int8); x.view(torch.int32); x.argmax(0); x.argsort(); x.kthvalue(2).indices
        torch.sort(x).indices; torch.gt(x, 0)
        """)


@measured("aimet/propagation", _FIRST)
def views() -> Calls:
    """Another shape of the same elements keeps an encoding of one scale, and no other."""
    yield from _of_every_tensor("""
        x.reshape(2, 8); torch.reshape(x, (2, 8)); x.view(2, 8); torch.view_copy(x, (2, 8)); x.flatten()
        torch.flatten(x); x.ravel(); torch.ravel(x); x.unflatten(1, (2, 2)); torch.unflatten(x, 1, (2, 2))
        x.unsqueeze(0); torch.unsqueeze(x, 0)
        """)


@expected("aimet/propagation", _FIRST)
def permutations() -> Calls:
    """So do permutations, as methods, as functions and as attributes."""
    yield from _of_every_tensor("""
        x.transpose(0, 1); torch.transpose(x, 0, 1); x.swapaxes(0, 1); torch.swapaxes(x, 0, 1); x.t(); torch.t(x)
        x.T; x.mT; x.H; x.mH; x.adjoint(); torch.adjoint(x); x.permute(1, 0); torch.permute(x, (1, 0))
        x.movedim(0, 1); torch.movedim(x, 0, 1); x.flip((0,)); torch.flip(x, (0,)); x.fliplr(); torch.fliplr(x)
        x.flipud(); torch.flipud(x); x.roll(1); torch.roll(x, 1); x.rot90(); torch.rot90(x)
        """)


@expected("aimet/propagation", _FIRST)
def selections() -> Calls:
    """So do selections of elements, one by one, by index, by mask and as parts."""
    yield from _of_every_tensor("""
        x.__getitem__(slice(1, 3)); x.__getitem__(rows); x.select(0, 1); torch.select(x, 0, 1); x.narrow(0, 1, 2)
        torch.narrow(x, 0, 1, 2); x.diagonal(); torch.diagonal(x); x.unfold(0, 2, 1); x.split(2); torch.split(x, 2)
        x.chunk(2); torch.chunk(x, 2); x.tensor_split(2); torch.tensor_split(x, 2); x.unbind(); torch.unbind(x)
        list(x); x.gather(0, index); torch.gather(x, 0, index); x.index_select(0, rows); torch.index_select(x, 0, rows)
        x.masked_select(y > 70); torch.masked_select(x, y > 70); x.take(index); torch.take(x, index)
        """)


@expected("aimet/propagation", _FIRST)
def repeats() -> Calls:
    """So do repeated elements."""
    yield from _of_every_tensor("""
        x.expand(2, 4, 4); x.broadcast_to((2, 4, 4)); torch.broadcast_to(x, (2, 4, 4)); x.repeat(2, 1); x.tile((2,))
        torch.tile(x, (2,)); x.repeat_interleave(2); torch.repeat_interleave(x, 2)
        """)


@expected("aimet/propagation", _FIRST)
def order() -> Calls:
    """So do elements chosen by their order, the sorted, the greatest and the median; not their indices."""
    yield from _of_every_tensor("""
        x.sort(); torch.sort(x); x.msort(); torch.msort(x); x.topk(2); x.kthvalue(2); torch.kthvalue(x, 2); x.median()
        x.max(0); torch.max(x, 0); x.amax(0); torch.amax(x, 0); x.cummax(0)
        """)


@measured("aimet/propagation", _FIRST)
def embedding() -> Calls:
    """The rows that an embedding looks up keep the encoding, and bring their own scales along."""
    yield from _of_every_tensor("functional.embedding(index, x)")


@measured("aimet/propagation", _FIRST)
def computed() -> Calls:
    """A result that is computed, or holds elements of another tensor, is a plain tensor."""
    yield from _of_every_tensor("""
        torch.relu(x); torch.neg(x); x.neg(); x.abs(); x.add(1); torch.add(x, x); torch.matmul(x, x); x.sum(); x.mean(0)
        x.clamp(0, 1); torch.cat([x, y]); torch.where(y > 70, x, y); torch.maximum(x, y); torch.zeros_like(x)
        x.new_zeros(2); torch.mul(x, y)
        """)


@expected("aimet/propagation", "class QuantizedTensorBase: a subclass of torch.Tensor")
def keywords() -> Calls:
    """A call with keywords only does what the call by position does."""
    yield from _of_every_tensor("""
        torch.relu(input=x); torch.reshape(input=x, shape=(2, 8)); torch.transpose(input=x, dim0=0, dim1=1)
        """)


@expected("aimet/propagation", _FIRST)
def writes() -> Calls:
    """A tensor that was written to keeps its kind and has no encoding, which would be of other values."""
    yield from _of_every_tensor(
        "x.add_(1); x.mul_(2); x.zero_(); x.copy_(y); x.__iadd__(1); x.__setitem__(0, 1.0); x.resize_(5, 5)"
    )


@expected("aimet/propagation", _FIRST)
def moved_in_place() -> Calls:
    """A tensor whose dimensions were moved in place keeps an encoding of one scale, and no other."""
    yield from _of_every_tensor("x.t_(); x.unsqueeze_(0)")


_FACTORS = (1, 2, 3, 0.1, 1 / 3, 1e-3, 255.0, True)


def _scalings(factors: tuple[float, ...], symmetric: bool, grids: tuple[tuple[int, int], ...]) -> Iterator[Arguments]:
    for dtype in (F32, np.dtype(np.float64)):
        scales = np.array([[0.1], [3.7e-3], [2.0**-10]], dtype)
        for scale, offset in ((scalar(0.1, dtype), scalar(-3, dtype)), (scales, np.array([[0], [-7], [1]], dtype))):
            for (qmin, qmax), factor, divide in ((g, f, d) for g in grids for f in factors for d in (False, True)):
                given = {"scale": scale, "offset": offset, "qmin": qmin, "qmax": qmax}
                yield {**given, "symmetric": symmetric, "factor": factor, "divide": divide}


@measured("aimet/scaled_encoding", _FIRST)
def positive() -> Calls:
    """A dequantized tensor times a positive number has the scale times that number, divided by it the scale divided."""
    # Factors that are powers of two, others, and one that is no float.
    yield from _scalings(_FACTORS, False, ((-8, 7),))
    yield from _scalings(_FACTORS[1:3], True, ((-8, 7), (-127, 127)))


@measured("aimet/scaled_encoding", _FIRST)
def negative() -> Calls:
    """A negative number mirrors the grid: the offset becomes -qmax - qmin - offset, and the scale stays positive."""
    # Grids of odd and of even ends.
    yield from _scalings(tuple(-f for f in _FACTORS), False, ((-8, 7), (0, 255), (-127, 127), (1, 4)))


@measured("aimet/scaled_encoding", _FIRST)
def symmetric() -> Calls:
    """A symmetric grid whose ends have an odd sum has no mirror, and the product no encoding."""
    # Negative factors: grids with a mirror and without.
    yield from _scalings((-1, -2.5), True, ((-8, 7), (-128, 127), (0, 255), (-127, 127), (-7, 7), (1, 5)))


@expected("aimet/scaled_encoding", _FIRST)
def no_scale() -> Calls:
    """A product with 0, an infinity or NaN, and a quotient by one, has no encoding: no code would come back."""
    # 0, infinities and NaN; 0 also of a symmetric grid without a mirror.
    yield from _scalings((0, 0.0, -0.0, math.inf, -math.inf, math.nan), False, ((-8, 7),))
    yield from _scalings((0, 0.5), True, ((-8, 7),))


def propagation(operation: str, granularity: str, kind: str) -> tuple[str, bool]:
    """The operation, evaluated."""
    import torch
    from aimet_torch.quantization import DequantizedTensor, QuantizedTensor, affine

    kinds = {"quantized": QuantizedTensor, "dequantized": DequantizedTensor}
    shape, blocks = {"tensor": ((), None), "channel": ((4, 1), None), "block": ((2, 1), (2, 4))}[granularity]
    primes = [2.0, -3, 5, -7, 11, -13, 17, -19, 23, -29, 31, -37, 41, -43, 47, -53]
    x = torch.tensor(primes).reshape(4, 4).as_subclass(kinds[kind])
    x.encoding = affine.AffineEncoding(torch.ones(shape), torch.zeros(shape), qmin=-128, qmax=127, block_size=blocks)
    names = {
        "torch": torch,
        "functional": torch.nn.functional,
        "x": x,
        "y": torch.arange(60.0, 92.0, 2.0).reshape(4, 4),
        "index": torch.tensor([[1, 0], [2, 1]]),
        "rows": torch.tensor([1, 0, 2]),
    }
    found = eval(operation, names)  # noqa: S307 - a call of the call set
    found = x if found is None else found[0] if isinstance(found, (tuple, list)) else found
    found_kind = next((name for name, one in kinds.items() if isinstance(found, one)), "plain")
    return found_kind, getattr(found, "encoding", None) is not None


def scaled_encoding(
    scale: Tensor, offset: Tensor, qmin: int, qmax: int, symmetric: bool, factor: float, divide: bool
) -> tuple[bool] | tuple[bool, Tensor, Tensor]:
    """The encoding of a ``DequantizedTensor`` times, or by, a number."""
    import torch
    from aimet_torch.quantization import DequantizedTensor, affine

    x = torch.zeros_like(scale).as_subclass(DequantizedTensor)
    x.encoding = affine.AffineEncoding(scale, offset, qmin=qmin, qmax=qmax, symmetry=symmetric)
    found = x / factor if divide else x * factor
    encoding = getattr(found, "encoding", None)
    return (False,) if encoding is None else (True, encoding.scale, encoding.offset)


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/propagation": propagation,
        "aimet/scaled_encoding": scaled_encoding,
    },
}
