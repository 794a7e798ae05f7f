"""How many instructions a kernel executes for an element: of PTX, counted while it runs on the CPU.

They are not those of a GPU, for which PTX is compiled once more: only a division counts as what it was found to become
there. So a budget says nothing of speed. It shows a change: an element computed twice, a division that came back.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from ptx.driver import StandIn
from ptx.emulate import WHY_NOT

from halfeven.optimized.kernels.cuda import nvrtc, programs

_WHY_NOT = nvrtc.why_missing() or WHY_NOT
pytestmark = [
    pytest.mark.skipif(bool(_WHY_NOT), reason=f"not run: {_WHY_NOT}"),
    pytest.mark.usefixtures("pretended"),
]
OnCuda = Callable[..., Any]
_SHAPE = (256, 4096)
_F32, _BF16, _I8 = torch.float32, torch.bfloat16, torch.int8

# Operator, dtype of the elements, shape of the parameters, and how many instructions there may be for an element.
BUDGET = (
    ("quantize", _F32, (), 25.0),
    ("quantize", _F32, (256, 1), 34.0),
    ("quantize", _F32, (4096,), 41.0),
    ("quantize", _BF16, (), 27.0),
    ("quantize_dequantize", _F32, (), 26.0),
    ("quantize_dequantize", _BF16, (), 37.0),
    ("dequantize", _I8, (), 9.0),
    ("aminmax", _BF16, (), 11.5),
    ("quantize_dequantize_backward", _F32, (), 61.0),
)


def executed(stand_in: StandIn, on_cuda: OnCuda, operator: str, dtype: torch.dtype, of: tuple[int, ...]) -> float:
    """For an element, with what a thread does but once."""
    x = torch.linspace(-100, 100, 2**20).to(dtype).view(_SHAPE)
    s, z = torch.full(of, 0.75), torch.full(of, 3.0)
    match operator:
        case "aminmax" | "amax":
            given: tuple[Any, ...] = (x, None)
        case "dequantize":
            given = (x, s, z, None, None, None, False)
        case "quantize":
            given = (x, s, z, -128, 127, None, torch.int8, False)
        case "quantize_dequantize":
            given = (x, s, z, -128, 127, None, 0.0, False)
        case _:
            given = (x, x, s, z, -128, 127, None, 0.0, False, True, True, True)
    stand_in.counted, stand_in.executed = True, 0
    on_cuda(operator, *given)
    assert stand_in.faults == {}
    return stand_in.executed / x.numel()


@pytest.mark.parametrize(("operator", "dtype", "of", "most"), BUDGET)
def test_within_the_budget(
    operator: str, dtype: torch.dtype, of: tuple[int, ...], most: float, stand_in: StandIn, on_cuda: OnCuda
) -> None:
    n = executed(stand_in, on_cuda, operator, dtype, of)
    # A budget that is too large shows no change: where a kernel got better the table is to say so.
    assert most * 0.8 < n <= most


@pytest.mark.parametrize(
    ("file", "old", "new"),
    [
        ("cuda/forward.cu", "fast = scale_qualifies(s) && offset_qualifies(o, ends.low, ends.high);", "fast = false;"),
        ("cuda/device.h", "both ? Cut{head, (len - head) / n} : Cut{len, 0}", "Cut{len, 0}"),
    ],
    ids=["divides", "single elements"],
)
def test_a_slower_kernel_is_caught(
    file: str, old: str, new: str, stand_in: StandIn, on_cuda: OnCuda, mutated: Callable[..., None]
) -> None:
    mutated(programs.forward("Quantize", "F32", "F32", "I8"), file, old, new)
    operator, dtype, of, most = BUDGET[0]
    assert executed(stand_in, on_cuda, operator, dtype, of) > most
