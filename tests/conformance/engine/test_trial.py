"""Explanations that hold at boundaries, and that fresh calls refute."""

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
