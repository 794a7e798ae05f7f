"""Operations on quantized tensors of shape (4, 4), in every granularity: what their results know."""

import math
from collections.abc import Iterator

import numpy as np

from halfeven.conformance.calls.aimet_affine import F32, scalar
from halfeven.conformance.calls.registry import Arguments, calls

__all__: list[str] = []

# By check. Operations are torch's; x is the tensor, y a plain one of the same shape, index and rows are of integers.
_OPERATIONS = {
    "unmoved": """
        x.contiguous(); x.requires_grad_(); x.clone(); torch.clone(x); x.detach(); torch.detach(x); x.data
        torch.positive(x); functional.dropout(x, training=False)
        """,
    "casts": """
        x.half(); x.float(); x.double(); x.bfloat16(); x.to(torch.bfloat16); x.to(torch.float64); x.to('cpu'); x.cpu()
        x.type(torch.float64); x.type_as(y.double())
        """,
    "integers": """
        x.int(); x.bool(); x.to(torch.int8); x.view(torch.int32); x.argmax(0); x.argsort(); x.kthvalue(2).indices
        torch.sort(x).indices; torch.gt(x, 0)
        """,
    "views": """
        x.reshape(2, 8); torch.reshape(x, (2, 8)); x.view(2, 8); torch.view_copy(x, (2, 8)); x.flatten()
        torch.flatten(x); x.ravel(); torch.ravel(x); x.unflatten(1, (2, 2)); torch.unflatten(x, 1, (2, 2))
        x.unsqueeze(0); torch.unsqueeze(x, 0)
        """,
    "permutations": """
        x.transpose(0, 1); torch.transpose(x, 0, 1); x.swapaxes(0, 1); torch.swapaxes(x, 0, 1); x.t(); torch.t(x)
        x.T; x.mT; x.H; x.mH; x.adjoint(); torch.adjoint(x); x.permute(1, 0); torch.permute(x, (1, 0))
        x.movedim(0, 1); torch.movedim(x, 0, 1); x.flip((0,)); torch.flip(x, (0,)); x.fliplr(); torch.fliplr(x)
        x.flipud(); torch.flipud(x); x.roll(1); torch.roll(x, 1); x.rot90(); torch.rot90(x)
        """,
    "selections": """
        x.__getitem__(slice(1, 3)); x.__getitem__(rows); x.select(0, 1); torch.select(x, 0, 1); x.narrow(0, 1, 2)
        torch.narrow(x, 0, 1, 2); x.diagonal(); torch.diagonal(x); x.unfold(0, 2, 1); x.split(2); torch.split(x, 2)
        x.chunk(2); torch.chunk(x, 2); x.tensor_split(2); torch.tensor_split(x, 2); x.unbind(); torch.unbind(x)
        list(x); x.gather(0, index); torch.gather(x, 0, index); x.index_select(0, rows); torch.index_select(x, 0, rows)
        x.masked_select(y > 70); torch.masked_select(x, y > 70); x.take(index); torch.take(x, index)
        """,
    "repeats": """
        x.expand(2, 4, 4); x.broadcast_to((2, 4, 4)); torch.broadcast_to(x, (2, 4, 4)); x.repeat(2, 1); x.tile((2,))
        torch.tile(x, (2,)); x.repeat_interleave(2); torch.repeat_interleave(x, 2)
        """,
    "order": """
        x.sort(); torch.sort(x); x.msort(); torch.msort(x); x.topk(2); x.kthvalue(2); torch.kthvalue(x, 2); x.median()
        x.max(0); torch.max(x, 0); x.amax(0); torch.amax(x, 0); x.cummax(0)
        """,
    "embedding": "functional.embedding(index, x)",
    "computed": """
        torch.relu(x); torch.neg(x); x.neg(); x.abs(); x.add(1); torch.add(x, x); torch.matmul(x, x); x.sum(); x.mean(0)
        x.clamp(0, 1); torch.cat([x, y]); torch.where(y > 70, x, y); torch.maximum(x, y); torch.zeros_like(x)
        x.new_zeros(2); torch.mul(x, y)
        """,
    "keywords": """
        torch.relu(input=x); torch.reshape(input=x, shape=(2, 8)); torch.transpose(input=x, dim0=0, dim1=1)
        """,
    "writes": "x.add_(1); x.mul_(2); x.zero_(); x.copy_(y); x.__iadd__(1); x.__setitem__(0, 1.0); x.resize_(5, 5)",
    "moved-in-place": "x.t_(); x.unsqueeze_(0)",
}


def _register(check: str, text: str) -> None:
    @calls("aimet.propagation", check)
    def build() -> Iterator[Arguments]:
        for operation in (one.strip() for one in text.replace("\n", ";").split(";")):
            for granularity in ("tensor", "channel", "block") if operation else ():
                for kind in ("quantized", "dequantized"):
                    yield {"operation": operation, "granularity": granularity, "kind": kind}


for _check, _text in _OPERATIONS.items():
    _register(_check, _text)

_FACTORS = (1, 2, 3, 0.1, 1 / 3, 1e-3, 255.0, True)


def _scalings(factors: tuple[float, ...], symmetric: bool, grids: tuple[tuple[int, int], ...]) -> Iterator[Arguments]:
    for dtype in (F32, np.dtype(np.float64)):
        scales = np.array([[0.1], [3.7e-3], [2.0**-10]], dtype)
        for scale, offset in ((scalar(0.1, dtype), scalar(-3, dtype)), (scales, np.array([[0], [-7], [1]], dtype))):
            for (qmin, qmax), factor, divide in ((g, f, d) for g in grids for f in factors for d in (False, True)):
                given = {"scale": scale, "offset": offset, "qmin": qmin, "qmax": qmax}
                yield {**given, "symmetric": symmetric, "factor": factor, "divide": divide}


@calls("aimet.scaled_encoding", "positive")
def positive() -> Iterator[Arguments]:
    """Factors that are powers of two, others, and one that is no float."""
    yield from _scalings(_FACTORS, False, ((-8, 7),))
    yield from _scalings(_FACTORS[1:3], True, ((-8, 7), (-127, 127)))


@calls("aimet.scaled_encoding", "negative")
def negative() -> Iterator[Arguments]:
    """Grids of odd and of even ends."""
    yield from _scalings(tuple(-f for f in _FACTORS), False, ((-8, 7), (0, 255), (-127, 127), (1, 4)))


@calls("aimet.scaled_encoding", "symmetric")
def symmetric() -> Iterator[Arguments]:
    """Negative factors: grids with a mirror and without."""
    yield from _scalings((-1, -2.5), True, ((-8, 7), (-128, 127), (0, 255), (-127, 127), (-7, 7), (1, 5)))


@calls("aimet.scaled_encoding", "no-scale")
def no_scale() -> Iterator[Arguments]:
    """0, infinities and NaN."""
    yield from _scalings((0, 0.0, -0.0, math.inf, -math.inf, math.nan), False, ((-8, 7),))
