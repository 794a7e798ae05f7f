"""brevitas: ``max_int``, ``min_int`` and ``IntScaling``, the ends of a grid of integers."""

from collections.abc import Callable, Iterator
from typing import Any

from halfeven.conformance.requirement import Arguments, Calls, documented, measured

__all__ = ["ANSWERS"]

_FLAGS = ((True, False), (True, True), (False, False), (False, True))  # signed, narrow_range


def _grids() -> Iterator[Arguments]:
    for bit_width in (*range(1, 17), 24, 32):
        for signed, narrow_range in _FLAGS:
            yield {"signed": signed, "narrow_range": narrow_range, "bit_width": bit_width}


@documented("brevitas/max_int", "function.ops.max_int: the four examples", aspect="value")
def grids() -> Calls:
    """The highest code is 2^(b-1) - 1 if signed, whatever the range, and 2^b - 1 if not, 2^b - 2 with a narrow
    range."""
    yield from _grids()


@documented("brevitas/min_int", "function.ops.min_int: the four examples", aspect="value")
def min_int_grids() -> Calls:
    """The lowest code is -2^(b-1) if signed, one more with a narrow range, and 0 if not."""
    yield from _grids()


@measured(
    "brevitas/IntScaling",
    "RescalingIntQuant: int_scaling_impl is the threshold on the integer range (which end of it: measured)",
    aspect="value",
)
def int_scaling_grids() -> Calls:
    """The integer threshold is the magnitude of the lowest code if signed (128, or 127 with a narrow range), else the
    highest code."""
    yield from _grids()


def _max_int(signed: bool, narrow_range: bool, bit_width: int) -> Any:
    """``function.ops.max_int``."""
    import torch
    from brevitas.function.ops import max_int

    return max_int(signed, narrow_range, torch.tensor(float(bit_width)))


def _min_int(signed: bool, narrow_range: bool, bit_width: int) -> Any:
    """``function.ops.min_int``."""
    import torch
    from brevitas.function.ops import min_int

    return min_int(signed, narrow_range, torch.tensor(float(bit_width)))


def _int_scaling(bit_width: int, signed: bool, narrow_range: bool) -> Any:
    """``IntScaling``."""
    import torch
    from brevitas.core.scaling import IntScaling

    return IntScaling(narrow_range, signed)(torch.tensor(float(bit_width)))


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "brevitas": {
        "brevitas/max_int": _max_int,
        "brevitas/min_int": _min_int,
        "brevitas/IntScaling": _int_scaling,
    },
}
