"""Explanations that hold at boundaries, or by the accident of few calls, and that fresh calls refute."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from halfeven.conformance import check


def kernel(rounded: Callable[[Any], Any]) -> Callable[..., Any]:
    def quantize(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int) -> Any:
        with np.errstate(all="ignore"):
            codes = rounded(x / scale).astype(np.float64) + zero_point
        codes = np.nan_to_num(codes, nan=qmin, posinf=qmax, neginf=qmin)
        return np.clip(codes, qmin, qmax).astype(np.int8 if qmin < 0 else np.uint8)

    return quantize


@pytest.mark.parametrize(
    "rounded",
    [
        lambda v: np.rint(np.round(v, 1)),
        lambda v: np.rint(np.rint(v * np.float32(16)) / 16),
        lambda v: np.rint(v + np.copysign(np.float32(1e-3), v)),
    ],
    ids=["decimals", "fixed point", "a little added"],
)
def test_two_roundings_are_not_said_to_be_those_of_a_dtype(rounded: Callable[[Any], Any]) -> None:
    found = check(kernel(rounded), "onnx", array="numpy", grids=("int4",))
    assert found.outcome == "differs"
    assert {c.code for r in found.results for c in r.causes} == {"HE998"}


def evenly(x: Any, scale: Any, zero_point: Any, *, qmin: int, qmax: int, block_size: Any = None) -> Any:
    """Does not read the size of blocks: as large as there are scales."""
    for axis in range(x.ndim if block_size else 0):
        n, k = x.shape[axis], scale.shape[axis]
        at = np.arange(n) // -(-n // k) if k else np.arange(0)
        scale, zero_point = np.take(scale, at, axis), np.take(zero_point, at, axis)
    return kernel(np.rint)(x, scale, zero_point, qmin=qmin, qmax=qmax)


def test_a_layout_that_calls_in_plain_memory_refute_is_not_said() -> None:
    found = check(evenly, "onnx", array="numpy", grids=("int8", "uint8"))
    assert found.outcome == "differs"
    assert not {c.code for r in found.results for c in r.causes} & {"HE602", "HE603", "HE604", "HE605"}
