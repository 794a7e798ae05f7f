"""Halfeven's functions, by their public names; and the torch path that runs where nothing was compiled."""

from collections.abc import Callable
from typing import Any

import torch

from halfeven.optimized import affine, calibration
from halfeven.optimized.kernels import chunked
from kernels.cases import QMAX, QMIN, Case
from kernels.implementations import Call, Implementation, backward

__all__ = ["OURS"]

_GRID = {"qmin": QMIN, "qmax": QMAX}


def _out(case: Case, out: bool) -> dict[str, Any]:
    return {"out": case.out} if out else {}


def _quantize(case: Case, out: bool) -> Call:
    x, s, z = case.x, case.scale, case.zero_point
    given = {**_GRID, "block_size": case.block_size, "dtype": torch.int8, **_out(case, out)}
    return lambda: affine.quantize(x, s, z, **given)


def _fake_quantize(case: Case, out: bool) -> Call:
    x, s, z = case.x, case.scale, case.zero_point
    given = {**_GRID, "block_size": case.block_size, **_out(case, out)}
    return lambda: affine.quantize_dequantize(x, s, z, **given)


def _dequantize(case: Case, out: bool) -> Call:
    q, s, z = case.codes, case.scale, case.zero_point
    given = {"block_size": case.block_size, "dtype": case.dtype, **_out(case, out)}
    return lambda: affine.dequantize(q, s, z, **given)


def _backward_x(case: Case) -> Call:
    x = case.x.detach().requires_grad_()
    result = affine.quantize_dequantize(x, case.scale, case.zero_point, **_GRID, block_size=case.block_size)
    return backward(result, case.grad, x)


def _backward_all(case: Case) -> Call:
    x, s = (t.detach().requires_grad_() for t in (case.x, case.scale))
    z = case.zero_point.float().requires_grad_()
    result = affine.quantize_dequantize(x, s, z, **_GRID, block_size=case.block_size)
    return backward(result, case.grad, x, s, z)


def _reduction_blocks(case: Case) -> tuple[int, int] | None:
    if case.block_size:
        return case.block_size
    return None if case.axis is None else ((1, case.shape[1]) if case.axis == 0 else (case.shape[0], 1))


def _reduction(name: str) -> Callable[[Case], Call]:
    def make(case: Case) -> Call:
        function, x, blocks = getattr(calibration, name), case.x, _reduction_blocks(case)
        return lambda: function(x, block_size=blocks)

    return make


def _chunked_quantize(case: Case) -> Call:
    given = (case.x, case.scale, case.zero_point, QMIN, QMAX, case.block_size, False, case.out)
    return lambda: (chunked.IMPLEMENTATIONS["quantize_out"](*given), case.out)[1]


def _chunked_fake_quantize(case: Case) -> Call:
    given = (case.x, case.scale, case.zero_point, QMIN, QMAX, case.block_size, 0.0, False, case.out)
    return lambda: (chunked.IMPLEMENTATIONS["quantize_dequantize_out"](*given), case.out)[1]


def _chunked_dequantize(case: Case) -> Call:
    given = (case.codes, case.scale, case.zero_point, case.block_size, None, False, case.out)
    return lambda: (chunked.IMPLEMENTATIONS["dequantize_out"](*given), case.out)[1]


def _chunked_backward(case: Case) -> Call:
    wanted = "parameters" in case.table.operation
    grad, x, s, z = case.grad, case.x, case.scale, case.zero_point.float()
    given = (grad, x, s, z, QMIN, QMAX, case.block_size, 0.0, False, True, wanted, wanted)
    return lambda: chunked.IMPLEMENTATIONS["quantize_dequantize_backward"](*given)[: 3 if wanted else 1]


OURS = (
    Implementation(
        "halfeven, out=",
        "halfeven",
        {
            "quantize": lambda case: _quantize(case, out=True),
            "fake quantize": lambda case: _fake_quantize(case, out=True),
            "dequantize": lambda case: _dequantize(case, out=True),
        },
        out=True,
        role="kernels",
    ),
    Implementation(
        "halfeven",
        "halfeven",
        {
            "quantize": lambda case: _quantize(case, out=False),
            "fake quantize": lambda case: _fake_quantize(case, out=False),
            "dequantize": lambda case: _dequantize(case, out=False),
            "backward, x": _backward_x,
            "backward, x and parameters": _backward_all,
            "aminmax": _reduction("aminmax"),
            "amax": _reduction("amax"),
        },
        role="kernels",
    ),
    Implementation(
        "halfeven without a compiler, out=",
        "halfeven",
        {
            "quantize": _chunked_quantize,
            "fake quantize": _chunked_fake_quantize,
            "dequantize": _chunked_dequantize,
        },
        out=True,
        role="fallback",
    ),
    Implementation(
        "halfeven without a compiler",
        "halfeven",
        {
            "backward, x": _chunked_backward,
            "backward, x and parameters": _chunked_backward,
            "aminmax": lambda case: lambda: chunked.IMPLEMENTATIONS["aminmax"](case.x, _reduction_blocks(case)),
            "amax": lambda case: lambda: chunked.IMPLEMENTATIONS["amax"](case.x, _reduction_blocks(case)),
        },
        role="fallback",
    ),
)
