"""torchao: half-quadratic quantization (HQQ): groups along both axes, every width, sums that float32 holds."""

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.conformance.requirement import Calls, documented, measured
from halfeven.conformance.systems.torchao.by_release import absent, by_release, primitive
from halfeven.reference.blocks import Array

__all__ = ["ANSWERS"]

AFFINE = "torchao/choose_qparams_and_quantize_affine_hqq"
SCALE_ONLY = "torchao/choose_qparams_and_quantize_scale_only_hqq"


def _weights(rows: int, columns: int) -> Array:
    """Numbers in no order, of both signs and many sizes."""
    steps = np.arange(rows * columns, dtype=np.int64) * 7919 % 1009
    return ((steps.reshape(rows, columns) - 400) / 137).astype(np.float32)


def _eighths(rows: int, columns: int) -> Array:
    """Eighths up to 15, whose sums of products with codes are float32 numbers."""
    return ((np.arange(rows * columns).reshape(rows, columns) * 37 % 241 - 120) / 8).astype(np.float32)


@measured(AFFINE, "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)")
def groups() -> Calls:
    """Codes per real are the reciprocal of a group's range times the steps, at most 20000; the offset is the least
    element in codes, rounded for 4 bits; the zero point is the real of the middle code."""
    # Every width and both axes, in each dtype of the parameters.
    for nbits in (1, 2, 3, 4, 5, 8):
        for axis in (0, 1):
            for dtype in ("float16", "float32", "bfloat16"):
                yield {"tensor": _weights(4, 16), "nbits": nbits, "group_size": 8, "axis": axis, "compute_dtype": dtype}
    yield {"tensor": _weights(2, 64)}
    yield {"tensor": _weights(2, 16).astype(np.float16), "group_size": 16}
    yield {"tensor": _weights(2, 16).astype(ml_dtypes.bfloat16), "group_size": 4}


@measured(AFFINE, "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)")
def raw() -> Calls:
    """Raw output is the offset in codes, with one row or column of parameters for each of the matrix."""
    for nbits in (3, 4):
        for axis in (0, 1):
            yield {"tensor": _weights(4, 16), "nbits": nbits, "group_size": 4, "axis": axis, "raw_output": True}


@measured(AFFINE, "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)")
def narrow_groups() -> Calls:
    """A group of one value, or of nearly one, has 20000 codes per real; NaN makes the parameters NaN."""
    # Groups of one value, and of values so close that the scale is bounded.
    for value in (0.0, 1.0, -1.0, 30000.0, 3e38):
        yield {"tensor": np.full((1, 4), value, np.float32), "group_size": 4, "compute_dtype": "float32"}
    for span in (7e-4, 7.5e-4, 8e-4, 1e-30):
        x = (np.arange(4, dtype=np.float32) * np.float32(span / 3)).reshape(1, 4)
        for dtype in ("float16", "float32"):
            yield {"tensor": x, "group_size": 4, "compute_dtype": dtype}
    yield {"tensor": np.array([[1, np.nan, 2, 3]], np.float32), "group_size": 4}


@measured(AFFINE, "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)")
def refusals() -> Calls:
    """Groups that do not divide the elements, and axes other than 0 and 1, are refused."""
    yield {"tensor": _weights(2, 6), "group_size": 5}
    yield {"tensor": _weights(2, 6), "group_size": 6, "axis": 2}


@documented(SCALE_ONLY, "quant_primitives._choose_qparams_and_quantize_scale_only_hqq")
def fitted() -> Calls:
    """From the largest magnitude over the largest end of the grid, codes and the least-squares scale are found in
    turns, until no scale moves or the turns are used up."""
    # Groups whose sums are exact, in turns from one to twenty.
    for qmin, qmax in ((-8, 7), (-128, 127), (0, 15), (-2, 1), (-7, 7)):
        for group in (4, 8, 16):
            for iters in (1, 2, 20):
                yield {
                    "hp_tensor": _eighths(3, 16),
                    "block_size": (1, group),
                    "qmin": qmin,
                    "qmax": qmax,
                    "iters": iters,
                }
    # More than twenty turns; and a first one that moves the scale by just the tolerance, which ends none.
    yield {"hp_tensor": np.array([[-5, 3, 0, 0]], np.float32), "block_size": (1, 4), "qmin": -128, "qmax": 7}
    for tol in (2.0**-4, 2.0**-4 + 2.0**-40):
        x = np.array([[-8, -7, -2, 0]], np.float32)
        yield {"hp_tensor": x, "block_size": (1, 4), "qmin": -2, "qmax": 1, "early_stop_tol": tol}
    for one, qmin, qmax in ((-(2**24), -(2**24) - 1, 2**24 + 3), (2**24, -(2**24) - 3, 2**24 + 1)):
        # Ends that are no float32.
        yield {"hp_tensor": np.array([[one]], np.float32), "block_size": (1, 1), "qmin": qmin, "qmax": qmax, "iters": 1}
    x = np.array([[8 * (1 + 2.0**-30), 3.5, 0, 0]])  # over a scale of 1, once they are float32
    yield {"hp_tensor": x, "block_size": (1, 4), "qmin": -8, "qmax": 7, "iters": 1}
    for tol in (0.0, 0.05, 10.0):
        yield {"hp_tensor": _eighths(2, 8), "block_size": (1, 4), "qmin": -8, "qmax": 7, "early_stop_tol": tol}
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = (np.arange(16) % 7 - 3).reshape(2, 8).astype(dtype)
        yield {"hp_tensor": x, "block_size": (1, 8), "qmin": -8, "qmax": 7}


@measured(SCALE_ONLY, "quant_primitives._choose_qparams_and_quantize_scale_only_hqq, stochastic=False (ties: measured)")
def ties() -> Calls:
    """An element midway between two codes takes the even one, in the turns and in the codes that are returned."""
    rows = [
        [10, 0.5, 1.5, 2.5, 3.5, -0.5, -1.5, -2.5],
        [-10, 0.5, 1.5, 2.5, -3.5, -0.5, -1.5, -2.5],
        [3, 2, 1, -0.0, -1, -2, -3, 3],
        [5, 1, 3, -1, -3, -5, 0, 2],
    ]
    for row in rows:
        for iters in (1, 3):
            given = {"hp_tensor": np.array([row], np.float32), "block_size": (1, 8)}
            yield {**given, "qmin": -10, "qmax": 7, "iters": iters}
            yield {**given, "qmin": -10, "qmax": 10, "iters": iters}
    for n in range(1, 8):
        x = np.array([[n, -n, 2 * n, 0.5, -0.5, 1.5, -1.5, 2 * n]], np.float32)
        yield {"hp_tensor": x, "block_size": (1, 8), "qmin": -2 * n, "qmax": 2 * n, "iters": 1}


@documented(SCALE_ONLY, "quant_primitives._choose_qparams_and_quantize_scale_only_hqq (NaN: measured)")
def edges() -> Calls:
    """A group whose codes are all zero keeps its scale; no scale is below 2^-23; NaN makes its group's scale NaN."""
    for rows in (
        [[0, 0, 1, -1]],
        [[2.0**-30, 0, 0, 0]],
        [[0.625 * 2.0**-23, 0, 0, 0]],
        [[np.nan, 1, 2, 3]],
        [[-5, 3, 0, 0]],
    ):
        x = np.array(rows, np.float32)
        for group in (1, 2, 4):
            yield {"hp_tensor": x, "block_size": (1, group), "qmin": -8, "qmax": 7}
        yield {"hp_tensor": -np.abs(x), "block_size": (1, 2), "qmin": 0, "qmax": 15}


@documented(SCALE_ONLY, "quant_primitives._choose_qparams_and_quantize_scale_only_hqq", aspect="refusals")
def scale_only_refusals() -> Calls:
    """A tensor that is no matrix, blocks of several rows, groups that do not divide, and qmin not below qmax are
    refused."""
    good = {"hp_tensor": _eighths(2, 8), "block_size": (1, 4), "qmin": -8, "qmax": 7}
    yield from (
        {**good, "hp_tensor": _eighths(2, 8).ravel()},
        {**good, "block_size": (2, 4)},
        {**good, "block_size": (4,)},
        {**good, "block_size": (1,)},
        {**good, "block_size": (1, 3)},
        {**good, "block_size": (1, 0)},
        {**good, "qmin": 7},
    )


_FIXED: dict[str, Any] = {"optimize": False, "device": "cpu"}

ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "torchao": by_release(
        {
            AFFINE: primitive("_choose_qparams_and_quantize_affine_hqq", compute_dtype="float16", **_FIXED),
            SCALE_ONLY: primitive("_choose_qparams_and_quantize_scale_only_hqq"),
        },
        v0_11={
            AFFINE: primitive("choose_qparams_and_quantize_affine_hqq", compute_dtype="float16", **_FIXED),
            SCALE_ONLY: absent,
        },
    ),
}
