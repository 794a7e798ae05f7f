"""Calls of right and faulty backends on a device that is not there: a process of its own, which prints what came."""

import json
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

import pretended
import torch
from torch import Tensor

pretended.install()

from halfeven.conformance import Backend  # noqa: E402 - the device must be there first
from halfeven.conformance.backends.axes import along  # noqa: E402
from halfeven.conformance.backends.registry import resolve  # noqa: E402
from halfeven.conformance.engine.call import Answer, Call  # noqa: E402
from halfeven.conformance.engine.judge import differences  # noqa: E402
from halfeven.conformance.engine.operation_calls import operation_calls, subject  # noqa: E402
from halfeven.conformance.workers.inside import Inside  # noqa: E402
from halfeven.reference import Grid  # noqa: E402

_GRID = Grid(-128, 127)
_CALLS, _LARGEST = 60, 4096


def quantize(x: Tensor, scale: Tensor, zero_point: Tensor, *, qmin: int, qmax: int) -> Tensor:
    return (torch.round(x / scale) + zero_point).clamp(qmin, qmax).to(torch.int32)


def ignores_strides(x: Tensor, *parameters: Tensor, **grid: int) -> Tensor:
    strides = torch.empty(x.shape, device="meta").stride()
    if x.stride() == strides or x.numel() < 2 or 0 in x.stride():
        return quantize(x, *parameters, **grid)
    return quantize(torch.as_strided(x, x.shape, strides, x.storage_offset()), *parameters, **grid)


def is_not_synchronized(*arguments: Tensor, **grid: int) -> Tensor:
    found = quantize(*arguments, **grid)
    return pretended.late(torch.zeros_like(found), found)


def leaves_the_device(*arguments: Tensor, **grid: int) -> Tensor:
    return quantize(*arguments, **grid).cpu()


def changes_its_input(x: Tensor, *parameters: Tensor, **grid: int) -> Tensor:
    found = quantize(x, *parameters, **grid)
    x.detach().mul_(2)
    return found


def writes_beyond(x: Tensor, *parameters: Tensor, **grid: int) -> Tensor:
    torch.as_strided(x.detach(), (1,), (1,), x.storage_offset() + x.numel()).fill_(7)
    return quantize(x, *parameters, **grid)


_kept: dict[Any, Tensor] = {}


def reuses_its_result(*arguments: Tensor, **grid: int) -> Tensor:
    found = quantize(*arguments, **grid)
    whole = _kept.setdefault(found.device, torch.empty(_LARGEST, dtype=found.dtype, device=found.device))
    whole[: found.numel()].copy_(found.reshape(-1))
    return whole[: found.numel()].view(found.shape)


def fails_later(*arguments: Tensor, **grid: int) -> Tensor:
    def fail() -> None:
        msg = "an illegal memory access was encountered"
        raise RuntimeError(msg)

    pretended.LATER.append(fail)
    return quantize(*arguments, **grid)


def _calls(backend: Backend) -> Iterator[Call]:
    given = Inside(backend).offer
    for operation in given.operations:
        every = (asked.call for asked in operation_calls(given, subject(given.profile, operation, "float32", _GRID)))
        some = (c for c in every if c.shape.mode in {"grad", "no_grad"} and 0 < (c.shape.size or 0) <= _LARGEST)
        yield from islice(some, _CALLS)


def _charges(backend: Backend, right: Backend) -> dict[str, Any]:
    """What the engine says of a backend on the device, call by call, where ``right`` gives the answers on the CPU."""
    calls = [*_calls(backend)]
    here, there = (Inside(b).answers(calls) for b in (right, along(backend, [pretended.NAME])))
    said = [_said(*pair) for pair in zip(here, there, strict=True)]
    strided = [c.shape.layout != "contiguous" for c in calls]
    return {
        "calls": len(calls),
        "returned": sum(a.kind == "returned" for a in there),
        "strided": sum(strided),
        "charges": sorted({s for s in said if s}),
        "only strided": not any(s for s, is_strided in zip(said, strided, strict=True) if not is_strided),
    }


def _said(here: Answer, there: Answer) -> str:
    if there.kind == "raised" and here.kind != "raised":
        return f"{there.error[0]}: {there.message}"
    if there.faults:
        return there.faults[0]
    return "another value" if differences(replace(here, faults=()), there).differing else ""


_FUNCTIONS = (
    quantize,
    ignores_strides,
    is_not_synchronized,
    leaves_the_device,
    changes_its_input,
    writes_beyond,
    reuses_its_result,
    fails_later,
)
_LIBRARIES = ("torch.fake_quantize_per_tensor_affine", "torch.quantized_decomposed.per_channel")

if __name__ == "__main__":
    backends = {f.__name__: Backend(f.__name__, "onnx", {"quantize": f}) for f in _FUNCTIONS}
    backends |= {name: resolve(name)[0] for name in _LIBRARIES}
    right = replace(backends["quantize"], name="right")
    found: dict[str, Any] = {
        name: _charges(b, right if b.profile == "onnx" else b) for name, b in backends.items() if b.operations
    }
    found["words"] = Inside(along(backends["quantize"], [pretended.NAME])).offer.device
    print(json.dumps(found))
