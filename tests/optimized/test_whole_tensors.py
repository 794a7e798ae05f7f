"""Where torch operations serve off the CPU: how many there are does not depend on how many elements there are.

On the meta device, which has sizes and no memory: each operation there would be a launch on a GPU.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from halfeven.optimized.arguments import memory
from halfeven.optimized.kernels import chunked
from halfeven.optimized.kernels.chunked import forward

_HUGE = 2**32


@pytest.fixture(autouse=True)
def no_places(monkeypatch: pytest.MonkeyPatch) -> None:
    """On the meta device all tensors are at address 0."""
    monkeypatch.setattr(memory, "_overlap", lambda *_: False)


_LAYOUTS: dict[str, tuple[tuple[int, ...], tuple[int, ...] | None]] = {
    "tensor": ((), None),
    "axis 0": ((4, 1), None),
    "axis 1": ((-1,), None),
    "blocks": ((4, -32), (1, 32)),
}
_GRID = (-128, 127)


class Counting(TorchDispatchMode):
    """Counts the operations that make or write tensors: views cost no launch."""

    def __init__(self) -> None:
        super().__init__()
        self.count = 0

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.count += not (function.is_view or function.name().startswith("aten::empty"))
        return function(*args, **(kwargs or {}))


def operations(name: str, layout: str, columns: int, device: str = "meta") -> int:
    """How many a call takes, of 4 rows."""
    of, block = _LAYOUTS[layout]
    shape = tuple(columns if n == -1 else columns // -n if n < 0 else n for n in of)
    x = torch.ones(4, columns, device=device)  # what memory happens to hold may take other ways: NaN is sought
    s, z = torch.ones(shape, device=device), torch.zeros(shape, device=device)
    match name:
        case "quantize":
            given: tuple[Any, ...] = (x, s, z, *_GRID, block, torch.int8, False)
        case "dequantize":
            given = (x.to(torch.int8), s, z, block, None, None, False)
        case "quantize_dequantize":
            given = (x, s, z, *_GRID, block, 0.0, False)
        case "quantize_backward":
            given = (x, x, s, z, *_GRID, block, False, True, True, True)
        case "dequantize_backward":
            given = (x, x.to(torch.int8), s, z, block, None, False, False, True, True)
        case "quantize_dequantize_backward":
            given = (x, x, s, z, *_GRID, block, 0.0, False, True, True, True)
        case _:
            given = (x, block)
    with Counting() as counting:
        chunked.IMPLEMENTATIONS[name](*given)
    return counting.count


#: Operations at most.
_MOST = {
    "quantize": 11,
    "dequantize": 5,
    "quantize_dequantize": 8,
    "amax": 3,
    "aminmax": 21,
    "quantize_backward": 24,
    "dequantize_backward": 17,
    "quantize_dequantize_backward": 30,
}


@pytest.mark.parametrize("layout", _LAYOUTS)
@pytest.mark.parametrize("name", _MOST)
def test_as_many_operations_for_any_size(name: str, layout: str) -> None:
    few, many = (operations(name, layout, n) for n in (64, _HUGE))
    assert 0 < few == many <= _MOST[name]


def test_pieces_would_be_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    most: Callable[[torch.Tensor], int] = lambda _: forward._PIECE  # noqa: E731
    monkeypatch.setattr(forward, "_most", most)
    assert operations("quantize", "tensor", 2**24) > 200


def test_the_cpu_has_pieces() -> None:
    assert operations("quantize", "tensor", 2**18, "cpu") > 3 * operations("quantize", "tensor", 64, "cpu")
