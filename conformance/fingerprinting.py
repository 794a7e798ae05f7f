"""``fingerprint``: which choices an implementation has made, with no claim."""

from typing import Any

from halfeven.conformance.backends.documented import of_formula
from halfeven.conformance.backends.plain import plain
from halfeven.conformance.backends.protocol import KINDS, ArrayKind
from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.environment import FLUSHED, flushed, restore, subnormals_kept
from halfeven.conformance.fingerprints.asking import Asking
from halfeven.conformance.fingerprints.by_kind import fingerprint_of_kind
from halfeven.conformance.fingerprints.formulas import fingerprint_of_formula
from halfeven.conformance.fingerprints.operations import fingerprint_of_operation
from halfeven.conformance.fingerprints.result import Fingerprint
from halfeven.conformance.nearest import among
from halfeven.conformance.workers import Worker
from halfeven.conformance.workers.inside import Inside
from halfeven.reference import Grid
from halfeven.reference.profile import OPERATIONS

__all__ = ["Fingerprint", "fingerprint", "of_worker"]


@subnormals_kept()
def fingerprint(
    fn: Any,
    operation: str = "quantize",
    array: ArrayKind | None = None,
    *,
    dtype: str = "float32",
    grid: Grid | tuple[int, int] | None = None,
    formula: str | None = None,
    seconds: float = 60.0,
) -> Fingerprint:
    """What ``fn`` does, found by asking it: under 200 calls of at most 4,096 elements, in this process.

    Args:
        fn: ``fn(x, scale, zero_point, *, qmin, qmax)`` for quantize and fake_quantize, ``fn(q, scale, zero_point)`` for
            dequantize, with fewer arguments where it takes fewer; or a class, an object or a ``Backend`` with that
            operation. With ``formula`` the function of that formula, called by keyword.
        operation: quantize, dequantize or fake_quantize; or cast, scale or block scale, where ``fn(x)`` gets 16 rows
            of 64 and gives what it stores or chooses. One of scales may take ``amax``, or the least and the greatest,
            of each row.
        array: ``"torch"``, the default, or ``"numpy"``.
        dtype: of the reals.
        grid: the codes; by default -128 to 127 and, where the answers are not in there, 0 to 255.
        formula: the id of a formula with choices.
        seconds: that ``fn`` may take in all; then no further call is made.

    Raises:
        TypeError: ``fn`` is no function, and has no such operation; or does not take the formula's arguments.
        ValueError: a name is not known, or the formula has nothing to choose.

    Example:
        >>> import numpy as np
        >>> def mine(x, scale, zero_point, *, qmin, qmax):
        ...     return np.clip(np.rint(x * (np.float32(1) / scale)) + zero_point, qmin, qmax)
        >>> fingerprint(mine, array="numpy").fields["division"]
        'reciprocal'
    """
    among("operation", operation, [*OPERATIONS, *KINDS])
    backend = plain(fn, operation, array) if formula is None else of_formula(fn, formula, array=array)
    return of_worker(Inside(backend), backend.name, operation, dtype=dtype, grid=grid, formula=formula, seconds=seconds)


def of_worker(
    worker: Worker,
    name: str,
    operation: str = "quantize",
    *,
    dtype: str = "float32",
    grid: Grid | tuple[int, int] | None = None,
    formula: str | None = None,
    seconds: float = 60.0,
) -> Fingerprint:
    """The same of a worker, wherever it is; arguments and errors as in ``fingerprint``."""
    among("dtype", dtype, DTYPES)
    asking = Asking(worker, seconds=seconds)
    if flushed():
        asking.note(FLUSHED)
    restore()  # what answers are held against keeps its subnormals and its rounding
    if formula is not None:
        return fingerprint_of_formula(formula, asking, name)
    if operation in KINDS:
        return fingerprint_of_kind(operation, asking, name, dtype)
    asked: Any = operation
    limits = grid if grid is None or isinstance(grid, Grid) else Grid(*grid)
    if limits is not None and limits.qmin == limits.qmax:
        msg = f"grid={limits.qmin}:{limits.qmax} is not accepted: one code tells nothing, give two or more"
        raise ValueError(msg)
    return fingerprint_of_operation(asking, name, asked, dtype, limits)
