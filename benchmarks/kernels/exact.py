"""The exact results, from the references in NumPy, and how far a result is from them."""

from typing import Any

import ml_dtypes
import numpy as np
import torch
from torch import Tensor

from halfeven.reference import FORMULAS
from halfeven.reference.blocks import per_element
from kernels.cases import QMAX, QMIN, Case

__all__ = ["differences", "exact", "refusal"]

_QUANTIZE = FORMULAS["aimet/affine.quantize"].function
_DEQUANTIZE = FORMULAS["aimet/affine.dequantize"].function
_FAKE_QUANTIZE = FORMULAS["aimet/affine.quantize_dequantize"].function
_INTEGERS = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


def exact(case: Case, *, with_zero_point: bool = True) -> tuple[Tensor, ...]:
    """The results of a case, each of the dtype that it has in ours.

    Without a zero point the grid is symmetric, -127 to 127: what libraries that know none compute.
    """
    s, qmin = _array(case.scale), QMIN if with_zero_point else -QMAX
    o = -_array(case.zero_point) if with_zero_point else np.zeros(s.shape, np.int32)
    match case.table.operation:
        case "quantize":
            codes = _QUANTIZE(_array(case.x), s, o, qmin=qmin, qmax=QMAX, block_size=case.block_size)
            results: tuple[Any, ...] = (codes.astype(np.int8),)
        case "fake quantize":
            grid: dict[str, Any] = {"qmin": qmin, "qmax": QMAX, "block_size": case.block_size}
            results = (_FAKE_QUANTIZE(_array(case.x), s, o, **grid),)
        case "dequantize":
            results = (_DEQUANTIZE(_array(case.codes).astype(np.float32), s, o, block_size=case.block_size),)
        case "aminmax":
            results = (_extreme(case, np.min, _array(case.x)), _extreme(case, np.max, _array(case.x)))
        case "amax":
            results = (_extreme(case, np.max, np.abs(_array(case.x))),)
        case _:
            results = _gradients(case, s, o, qmin)
            results = results if "parameters" in case.table.operation else results[:1]
    return tuple(_tensor(r) for r in results)


def _gradients(case: Case, s: Any, o: Any, qmin: int) -> tuple[Any, ...]:
    """Of fake quantize by x, scale and zero point, in float32; sums in float64, rounded once."""
    x, g = (_array(t).astype(np.float32) for t in (case.x, case.grad))
    scale, offset = (per_element(p, case.shape, case.block_size).astype(np.float32) for p in (s, o))
    u = x / scale
    r = np.rint(u)
    inside = (r - offset >= qmin) & (r - offset <= QMAX)
    ds = g * np.where(inside, r - u, np.clip(r, offset + qmin, offset + QMAX))
    dz = -np.where(inside, np.float32(0), g * scale)
    dx = np.where(inside, g, np.float32(0)).astype(_array(case.x[:1]).dtype)
    return dx, *(_sum(case, d).astype(np.float32).reshape(s.shape) for d in (ds, dz))


def _sum(case: Case, each: Any) -> Any:
    if case.per_tensor:
        return np.sum(each, dtype=np.float64)
    if case.block:
        return np.sum(each.reshape(case.shape[0], -1, case.block), axis=-1, dtype=np.float64)
    return np.sum(each, axis=1 - (case.axis or 0), dtype=np.float64)


def _extreme(case: Case, function: Any, values: Any) -> Any:
    if case.block:
        return function(values.reshape(case.shape[0], -1, case.block), axis=-1)
    return np.asarray(function(values) if case.axis is None else function(values, axis=1 - case.axis))


def differences(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> list[int]:
    """For each result how many elements differ, bit for bit."""
    return [int((_bits(f) != _bits(e)).sum()) for f, e in zip(found, expected, strict=True)]


def refusal(case: Case, found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> str | None:
    """Why these results are of another function, so that their time says nothing; None if they are of this one.

    One code off is another rounding, and is counted and shown. A gradient may be cut elsewhere in one of 100 elements.
    """
    shapes = [tuple(t.shape) for t in found], [tuple(t.shape) for t in expected]
    if shapes[0] != shapes[1]:
        return f"results of shapes {shapes[0]}, expected {shapes[1]}"
    first, wanted = found[0].double(), expected[0].double()
    if not bool(first.isfinite().all()):
        return "a result is not finite"
    match case.table.operation:
        case "quantize" | "fake quantize" | "dequantize":
            step = 1.0 if case.table.operation == "quantize" else float(case.scale.max())
            # A bfloat16 real of 256 steps is itself rounded by as much as half a step.
            far = float((first - wanted).abs().max()) / step
            return f"a result is {far:.3g} steps off" if far > 1.5 else None  # NaN was refused above
        case "aminmax" | "amax":
            return "a minimum or maximum differs" if any(differences(found, expected)) else None
        case _:
            share = float((first != wanted).double().mean())
            return f"{share:.1%} of the gradients of x differ" if share > 0.01 else None


def _bits(t: Tensor) -> Tensor:
    return t.detach().contiguous().view(_INTEGERS[t.element_size()])


def _array(t: Tensor) -> Any:
    if t.dtype == torch.bfloat16:
        return t.contiguous().view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    return t.numpy()


def _tensor(a: Any) -> Tensor:
    a = np.ascontiguousarray(a)
    return (
        torch.from_numpy(a.view(np.int16)).view(torch.bfloat16)
        if a.dtype == ml_dtypes.bfloat16
        else torch.from_numpy(a)
    )
