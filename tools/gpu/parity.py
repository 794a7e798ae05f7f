"""The same bits as on the CPU: every layout that the tests have, memory around the results, and all inputs."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from ptx import backward_cases, launch_cases, reduce_cases
from ptx.driver import differing

from gpu.places import CPU, Place, memory, same
from gpu.steps import CutError, Left

__all__ = ["SWEEPS", "calls", "sweep"]

_NAMED = 8  # of the cases that differ


def calls(place: Place) -> Iterator[tuple[str, Callable[[Left], tuple[str, int]]]]:
    """Each a name, and what runs all cases of an operator and its dtypes there and on the CPU."""
    for kind in launch_cases.KINDS:
        yield f"{kind}", _all(place, _forward, launch_cases.calls, kind)
    for of in backward_cases.KINDS:
        yield f"{of}-backward", _all(place, _backward, backward_cases.calls, of)
    for name, dtype in reduce_cases.DTYPES.items():
        yield f"amax and aminmax, {name}", _all(place, _reduce, reduce_cases.cases, dtype)


def _all(
    place: Place, one: Callable[..., Any], cases: Callable[[Any], Any], of: Any
) -> Callable[[Left], tuple[str, int]]:
    def run(left: Left) -> tuple[str, int]:
        wrong, n = [], 0
        for name, *given in cases(of):
            n += 1
            if left() <= 0:
                raise CutError
            if not same(one(place, *given), one(CPU, *given)):
                wrong.append(name)
        more = f" and {len(wrong) - _NAMED} more" if len(wrong) > _NAMED else ""
        return (f"{len(wrong)} of {n} calls differ: {'; '.join(wrong[:_NAMED])}{more}" if wrong else ""), n

    return run


def _forward(place: Place, call: launch_cases.Call) -> torch.Tensor:
    """The memory that the result is in, all of it."""
    out = place.take(call.out)
    x = out if call.out is call.x else place.take(call.x)
    zero_point = None if call.zero_point is None else place.take(call.zero_point)
    moved = replace(call, x=x, out=out, scale=place.take(call.scale), zero_point=zero_point)
    place.call(f"{call.kind.operator}_out", *moved.given)
    return memory(out)


def _backward(place: Place, call: backward_cases.Call) -> Any:
    zero_point = None if call.zero_point is None else place.take(call.zero_point)
    tensors = {name: place.take(getattr(call, name)) for name in ("grad", "x", "scale")}
    return place.call(f"{call.kind.operator}_backward", *replace(call, zero_point=zero_point, **tensors).given)


def _reduce(place: Place, x: torch.Tensor, block: tuple[int, ...] | None) -> Any:
    there = place.take(x)
    return (place.call("amax", there, block), *place.call("aminmax", there, block))


#: Operator, scale, zero point and dtype of the result: one that the reciprocal serves, and one that it does not.
SWEEPS = (
    ("quantize", 0.1, 3.0, torch.int8),
    ("quantize", float.fromhex("0x1.fffffep-3"), 0.0, torch.int8),
    ("quantize_dequantize", 0.1, 3.0, torch.float32),
    ("quantize_dequantize", 1 / 3, -7.0, torch.float32),
)


def sweep(
    place: Place,
    of: tuple[str, float, float, torch.dtype],
    left: Left,
    *,
    bits: range = range(-(2**31), 2**31),
    at_once: int = 2**26,
) -> tuple[str, int]:
    """Every float32 whose bits are in a range: how many differ, and how many there were."""
    operator, scale, zero_point, dtype = of
    wrong = n = 0
    for start in range(bits.start, bits.stop, at_once):
        if left() <= 0:
            raise CutError
        x = torch.arange(start, min(start + at_once, bits.stop), dtype=torch.int32).view(torch.float32)
        results = []
        for each in (place, CPU):
            tensors = [each.take(t) for t in (x, torch.tensor(scale), torch.tensor(zero_point))]
            last = (torch.int8,) if operator == "quantize" else (0.0,)
            results.append(each.call(operator, *tensors, -128, 127, None, *last, False))
        assert results[0].dtype == dtype
        wrong += differing(results[0].cpu(), results[1])
        n += x.numel()
    return (f"{wrong:,} of {n:,} differ" if wrong else ""), n
