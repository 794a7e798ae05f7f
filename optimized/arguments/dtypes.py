"""The dtypes that are accepted, and those of a result and of the arithmetic."""

from collections.abc import Sequence

import torch

__all__ = ["CODES", "INTEGERS", "REALS", "codes_dtype", "compute_dtype", "names", "reals_compute_dtype", "reals_dtype"]

REALS = (torch.float32, torch.float64, torch.float16, torch.bfloat16)
CODES = (torch.int8, torch.uint8, torch.int16, torch.uint16, torch.int32)
INTEGERS = (*CODES, torch.uint32, torch.int64)  # of a zero point


def codes_dtype(x: torch.dtype, dtype: torch.dtype | None, qmin: int, qmax: int) -> torch.dtype:
    """The dtype of the codes of an input of dtype ``x``.

    Raises:
        TypeError: ``dtype`` is not accepted.
        ValueError: the dtype does not hold the grid.
    """
    if dtype is None or dtype is x:
        dtype, holds = x, _represents(x, qmin, qmax)
    elif dtype in CODES:
        info = torch.iinfo(dtype)
        holds = info.min <= qmin and qmax <= info.max
    else:
        msg = f"dtype={dtype!r} is not accepted: give None or {x} for codes in x's dtype, or one of {names(CODES)}"
        raise TypeError(msg)
    if not holds:
        held = "" if dtype.is_floating_point else f", only {torch.iinfo(dtype).min} to {torch.iinfo(dtype).max}"
        codes = f"codes of dtype {names((dtype,))}"
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: {codes} do not hold the grid{held}"
        raise ValueError(msg)
    return dtype


def reals_dtype(q: torch.dtype, scale: torch.dtype, dtype: torch.dtype | None) -> torch.dtype:
    """The dtype of the reals of codes of dtype ``q``.

    Raises:
        TypeError: ``dtype`` is not accepted.
    """
    if dtype is None:
        return q if q.is_floating_point else scale
    if dtype not in REALS:
        msg = f"dtype={dtype!r} is not accepted: give None or one of {names(REALS)}"
        raise TypeError(msg)
    return dtype


def compute_dtype(x: torch.dtype, qmin: int, qmax: int) -> torch.dtype:
    """The first of ``x``, float32 and float64 that represents the grid with an epsilon of a quarter step or less.

    float64 serves wider grids as long as it represents them.

    Raises:
        ValueError: float64 does not represent the grid.
    """
    for dtype in (x, torch.float32, torch.float64):
        per_epsilon = int(1 / torch.finfo(dtype).eps)
        if _represents(dtype, qmin, qmax) and 4 * (qmax - qmin) <= per_epsilon:
            return dtype
    if not _represents(torch.float64, qmin, qmax):
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: float64 cannot represent the grid"
        raise ValueError(msg)
    return torch.float64


def reals_compute_dtype(compute: torch.dtype | None, reals: torch.dtype) -> torch.dtype:
    """The dtype of the arithmetic of ``dequantize`` to ``reals``: that itself for None.

    Raises:
        TypeError: ``compute`` is no accepted float dtype.
    """
    if compute is None:
        return reals
    if compute not in REALS:
        msg = f"compute={compute!r} is not accepted: give None or one of {names(REALS)}"
        raise TypeError(msg)
    return compute


def names(dtypes: Sequence[torch.dtype]) -> str:
    """The dtypes for a message."""
    return ", ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)


def _represents(dtype: torch.dtype, qmin: int, qmax: int) -> bool:
    """Whether the grid's ends and their neighbours are values of ``dtype``."""
    ends = {qmin, min(qmin + 1, qmax), max(qmax - 1, qmin), qmax}
    info = torch.finfo(dtype)
    # An integer is exact where it is in range and its odd part has no more bits than the significand.
    return all(abs(end) <= info.max and abs(end) // max(end & -end, 1) < 2 / info.eps for end in ends)
