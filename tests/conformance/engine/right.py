"""Right implementations of ONNX's quantizers, and what makes a wrong one of them; for the tests of call shapes."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from halfeven.conformance.backends.protocol import Backend, Unsupported
from halfeven.conformance.engine.call import Answer, leaves
from halfeven.conformance.engine.compare import compare_codes, compare_reals
from halfeven.conformance.engine.operation_calls import Asked
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid
from halfeven.reference.blocks import per_element

EVERY = ("tensor", "channel", "token", "group", "block")
Fn = Callable[..., torch.Tensor]


def spread(p: torch.Tensor, x: torch.Tensor, block_size: Any) -> torch.Tensor:
    """A parameter as every element sees it."""
    for d, b in enumerate(block_size or ()):
        if b > 1 and p.shape[d] > 1:
            p = p.repeat_interleave(b, d).narrow(d, 0, x.shape[d])
    return p


def quantize(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *, qmin: int, qmax: int, block_size: Any = None
) -> torch.Tensor:
    s, z = (spread(p, x, block_size) for p in (scale, zero_point))
    return (torch.round(x / s) + z).clamp(qmin, qmax).to(torch.int8 if qmin < 0 else torch.uint8)


def reciprocal(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *, qmin: int, qmax: int, block_size: Any = None
) -> torch.Tensor:
    s, z = (spread(p, x, block_size) for p in (scale, zero_point))
    return (torch.round(x * (1 / s)) + z).clamp(qmin, qmax).to(torch.int8 if qmin < 0 else torch.uint8)


def away(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *, qmin: int, qmax: int, block_size: Any = None
) -> torch.Tensor:
    s, z = (spread(p, x, block_size) for p in (scale, zero_point))
    v = x / s
    r = torch.where((v - v.trunc()).abs() == 0.5, v.trunc() + v.sign(), torch.round(v))
    return (r + z).clamp(qmin, qmax).to(torch.int8 if qmin < 0 else torch.uint8)


def dequantize(
    q: torch.Tensor,
    scale: torch.Tensor,
    zero_point: torch.Tensor,
    *,
    qmin: int = 0,
    qmax: int = 0,
    block_size: Any = None,
    dtype: torch.dtype = torch.float32,
) -> torch.Tensor:
    s, z = (spread(p, q, block_size) for p in (scale, zero_point))
    return (q.to(torch.int32) - z).to(dtype) * s


def fake_quantize(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *, qmin: int, qmax: int, block_size: Any = None
) -> torch.Tensor:
    s, z = (spread(p, x, block_size) for p in (scale, zero_point))
    return ((torch.round(x / s) + z).clamp(qmin, qmax) - z) * s


def by_block(
    x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, *, qmin: int, qmax: int, block_size: Any = None
) -> torch.Tensor:
    """Slow, and right: one block after the other."""
    if block_size is None or not x.numel():
        return quantize(x, scale, zero_point, qmin=qmin, qmax=qmax, block_size=block_size)
    out = torch.empty(x.shape, dtype=torch.int8)
    for index in np.ndindex(*scale.shape):
        part = tuple(slice(i * b, (i + 1) * b) for i, b in zip(index, block_size, strict=True))
        out[part] = quantize(x[part], scale[index], zero_point[index], qmin=qmin, qmax=qmax)
    return out


def with_numpy(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int, block_size: Any = None) -> Any:
    s, z = (per_element(p, x.shape, block_size) for p in (scale, zero_point))
    return np.clip(np.rint(x / s) + z, qmin, qmax).astype(np.int8)


def refusing(x: torch.Tensor, *rest: Any, **named: Any) -> torch.Tensor:
    """Right where it answers: it has no blocks and no scalars."""
    if named["block_size"] is not None or not x.ndim:
        raise Unsupported("vectors and one scale only")
    return quantize(x, *rest, **named)


def backend(fn: Callable[..., Any], operation: str = "quantize", **given: Any) -> Backend:
    given = {"granularities": EVERY, "grids": (Grid(-128, 127),), **given}
    return Backend("tried", "onnx", {operation: fn}, **given)


@dataclass(frozen=True)
class Seen:
    """What a condition may look at."""

    x: torch.Tensor
    scale: torch.Tensor
    zero: torch.Tensor
    block: Any
    calls: int
    earlier: dict[Any, Any] = field(default_factory=dict)

    @property
    def n(self) -> int:
        return self.x.numel()

    @property
    def key(self) -> Any:
        return tuple(t.detach().numpy().tobytes() for t in (self.x, self.scale, self.zero)), str(self.block)


def when(condition: Callable[[Seen], Any], wrong: Fn = reciprocal, right: Fn = quantize) -> Callable[[], Fn]:
    """Makes an implementation that is wrong in some calls, or in the elements that the condition marks."""

    def make() -> Fn:
        calls, earlier = 0, {}

        def fn(x: torch.Tensor, scale: torch.Tensor, zero_point: torch.Tensor, **named: Any) -> torch.Tensor:
            nonlocal calls
            calls += 1
            marked = condition(Seen(x, scale, zero_point, named.get("block_size"), calls, earlier))
            if isinstance(marked, torch.Tensor) and marked.ndim:
                at = marked.broadcast_to(x.shape)
                found = right(x, scale, zero_point, **named)
                return torch.where(at, wrong(x, scale, zero_point, **named), found) if bool(at.any()) else found
            return (wrong if marked else right)(x, scale, zero_point, **named)

        return fn

    return make


def index(x: torch.Tensor) -> torch.Tensor:
    """The place of every element in order."""
    return torch.arange(x.numel()).reshape(x.shape)


def differs(asked: Asked, answer: Answer) -> bool:
    """Whether an answer is another than expected: by the rules that judge it."""
    if answer.kind == "unsupported":
        return False
    if answer.kind != asked.expected.kind or answer.faults:
        return answer.kind != "raised" or answer.error[0] not in asked.expected.error
    expected, actual = (dict(leaves(a.value)) for a in (asked.expected, answer))
    return expected.keys() != actual.keys() or any(
        map(partial(_leaf_differs, asked), expected.values(), actual.values())
    )


def _leaf_differs(asked: Asked, e: Any, a: Any) -> bool:
    e, a = (np.asarray(v) if isinstance(v, np.generic) else v for v in (e, a))
    if not isinstance(e, np.ndarray) or not isinstance(a, np.ndarray):
        return repr(e) != repr(a)
    if e.shape != a.shape:
        return True
    if asked.call.formula.endswith(":quantize"):
        return bool(compare_codes(e, a).differing)
    floats = e.dtype.name.startswith(("float", "bfloat"))
    return e.dtype != a.dtype or bool((compare_reals if floats else compare_codes)(e, a).differing)


def first_difference(tried: Backend, asked: Iterable[Asked]) -> Asked | None:
    """The first call that shows a difference."""
    worker = Inside(tried)
    return next((a for a in asked if differs(a, worker.answer(a.call))), None)


def refused(tried: Backend, asked: Iterable[Asked]) -> Iterator[Asked]:
    worker = Inside(tried)
    return (a for a in asked if worker.answer(a.call).kind == "unsupported")
