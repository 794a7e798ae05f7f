"""torchao: half-quadratic quantization (HQQ): groups along both axes, every width, sums that float32 holds."""

from collections.abc import Callable, Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.requirement import Arguments, calls, documented, measured, of
from halfeven.conformance.systems.torchao.by_release import absent, by_release, primitive

__all__ = ["ANSWERS", "REQUIREMENTS"]

REQUIREMENTS = (
    *of(
        "torchao/choose_qparams_and_quantize_affine_hqq",
        measured(
            "groups",
            "Codes per real are the reciprocal of a group's range times the steps, at most 20000; the offset is "
            "the least element in codes, rounded for 4 bits; the zero point is the real of the middle code.",
            "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)",
        ),
        measured(
            "raw",
            "Raw output is the offset in codes, with one row or column of parameters for each of the matrix.",
            "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)",
        ),
        measured(
            "narrow-groups",
            "A group of one value, or of nearly one, has 20000 codes per real; NaN makes the parameters NaN.",
            "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)",
        ),
        measured(
            "refusals",
            "Groups that do not divide the elements, and axes other than 0 and 1, are refused.",
            "quant_primitives._choose_qparams_and_quantize_affine_hqq, optimize=False (measured)",
        ),
    ),
    *of(
        "torchao/choose_qparams_and_quantize_scale_only_hqq",
        documented(
            "fitted",
            "From the largest magnitude over the largest end of the grid, codes and the least-squares scale are "
            "found in turns, until no scale moves or the turns are used up.",
            "quant_primitives._choose_qparams_and_quantize_scale_only_hqq",
        ),
        measured(
            "ties",
            "An element midway between two codes takes the even one, in the turns and in the codes that are returned.",
            "quant_primitives._choose_qparams_and_quantize_scale_only_hqq, stochastic=False (ties: measured)",
        ),
        documented(
            "edges",
            "A group whose codes are all zero keeps its scale; no scale is below 2^-23; NaN makes its group's "
            "scale NaN.",
            "quant_primitives._choose_qparams_and_quantize_scale_only_hqq (NaN: measured)",
        ),
        documented(
            "refusals",
            "A tensor that is no matrix, blocks of several rows, groups that do not divide, and qmin not below "
            "qmax are refused.",
            "quant_primitives._choose_qparams_and_quantize_scale_only_hqq",
        ),
    ),
)

Array = npt.NDArray[Any]


AFFINE = "torchao/choose_qparams_and_quantize_affine_hqq"
SCALE_ONLY = "torchao/choose_qparams_and_quantize_scale_only_hqq"


def _weights(rows: int, columns: int) -> Array:
    """Numbers in no order, of both signs and many sizes."""
    steps = np.arange(rows * columns, dtype=np.int64) * 7919 % 1009
    return ((steps.reshape(rows, columns) - 400) / 137).astype(np.float32)


def _eighths(rows: int, columns: int) -> Array:
    """Eighths up to 15, whose sums of products with codes are float32 numbers."""
    return ((np.arange(rows * columns).reshape(rows, columns) * 37 % 241 - 120) / 8).astype(np.float32)


@calls(AFFINE, "groups")
def groups() -> Iterator[Arguments]:
    """Every width and both axes, in each dtype of the parameters."""
    for nbits in (1, 2, 3, 4, 5, 8):
        for axis in (0, 1):
            for dtype in ("float16", "float32", "bfloat16"):
                yield {"tensor": _weights(4, 16), "nbits": nbits, "group_size": 8, "axis": axis, "compute_dtype": dtype}
    yield {"tensor": _weights(2, 64)}
    yield {"tensor": _weights(2, 16).astype(np.float16), "group_size": 16}
    yield {"tensor": _weights(2, 16).astype(ml_dtypes.bfloat16), "group_size": 4}


@calls(AFFINE, "raw")
def raw() -> Iterator[Arguments]:
    """The offset of the codes as it is."""
    for nbits in (3, 4):
        for axis in (0, 1):
            yield {"tensor": _weights(4, 16), "nbits": nbits, "group_size": 4, "axis": axis, "raw_output": True}


@calls(AFFINE, "narrow-groups")
def narrow_groups() -> Iterator[Arguments]:
    """Groups of one value, and of values so close that the scale is bounded."""
    for value in (0.0, 1.0, -1.0, 30000.0, 3e38):
        yield {"tensor": np.full((1, 4), value, np.float32), "group_size": 4, "compute_dtype": "float32"}
    for span in (7e-4, 7.5e-4, 8e-4, 1e-30):
        x = (np.arange(4, dtype=np.float32) * np.float32(span / 3)).reshape(1, 4)
        for dtype in ("float16", "float32"):
            yield {"tensor": x, "group_size": 4, "compute_dtype": dtype}
    yield {"tensor": np.array([[1, np.nan, 2, 3]], np.float32), "group_size": 4}


@calls(AFFINE, "refusals")
def refusals() -> Iterator[Arguments]:
    """Groups that do not divide, and another axis."""
    yield {"tensor": _weights(2, 6), "group_size": 5}
    yield {"tensor": _weights(2, 6), "group_size": 6, "axis": 2}


@calls(SCALE_ONLY, "fitted")
def fitted() -> Iterator[Arguments]:
    """Groups whose sums are exact, in turns from one to twenty."""
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
    for tol in (0.0, 0.05, 10.0):
        yield {"hp_tensor": _eighths(2, 8), "block_size": (1, 4), "qmin": -8, "qmax": 7, "early_stop_tol": tol}
    for dtype in (np.float16, ml_dtypes.bfloat16):
        x = (np.arange(16) % 7 - 3).reshape(2, 8).astype(dtype)
        yield {"hp_tensor": x, "block_size": (1, 8), "qmin": -8, "qmax": 7}


@calls(SCALE_ONLY, "ties")
def scale_only_ties() -> Iterator[Arguments]:
    """Elements midway between two codes: in the first turn, in later ones, and for the codes that are returned."""
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


@calls(SCALE_ONLY, "edges")
def edges() -> Iterator[Arguments]:
    """Groups of zeros, of one element, of numbers below the least scale, and NaN."""
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


@calls(SCALE_ONLY, "refusals")
def scale_only_refusals() -> Iterator[Arguments]:
    """No matrix, blocks of several rows, groups that do not divide, a grid of one code."""
    good = {"hp_tensor": _eighths(2, 8), "block_size": (1, 4), "qmin": -8, "qmax": 7}
    yield from (
        {**good, "hp_tensor": _eighths(2, 8).ravel()},
        {**good, "block_size": (2, 4)},
        {**good, "block_size": (4,)},
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
