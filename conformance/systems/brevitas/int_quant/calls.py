"""brevitas: quotients at ties and at the ends of the grid, for every rounding, and the gradients there."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.bits import step
from halfeven.conformance.requirement import Arguments, calls

__all__: list[str] = []


Array = npt.NDArray[Any]


F32 = np.dtype(np.float32)
_DTYPES = (F32, np.dtype(np.float64), np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16))
_MODES = ("ROUND", "FLOOR", "CEIL", "ROUND_TO_ZERO", "DPU")
_FLAGS = ((True, False), (True, True), (False, False), (False, True))  # signed, narrow_range
_INF, _NAN = np.inf, np.nan


def _scalar(value: float, dtype: Any = F32) -> Array:
    return np.asarray(value, dtype)


def _near(values: Any, scale: float, dtype: Any = F32) -> Array:
    """The reals of codes, with the neighbours on both sides."""
    centre = (np.asarray(values, np.float64) * float(np.asarray(scale, dtype))).astype(dtype)
    return np.concatenate([centre, step(centre, np.asarray(-1)), step(centre, np.asarray(1))])


def _asked(x: Array, scale: float, zero_point: float, bit_width: int = 8, **given: Any) -> Arguments:
    arguments = {"scale": _scalar(scale, x.dtype), "zero_point": _scalar(zero_point, x.dtype)}
    return {**arguments, "bit_width": bit_width, "x": x, **given}


def _ties(bits: int) -> Iterator[Arguments]:
    halves = np.arange(-9, 9) + 0.5
    for dtype in _DTYPES:
        for scale in (1.0, 0.25, 0.1, 1 / 3):
            for mode in _MODES:
                yield _asked(_near([*halves, *range(-4, 5)], scale, dtype), scale, 0.0, bits, float_to_int=mode)


@calls("brevitas/IntQuant.to_int", "rounding")
def _rounding() -> Iterator[Arguments]:
    yield from _ties(5)


@calls("brevitas/IntQuant.to_int", "zero-point")
def _zero_point() -> Iterator[Arguments]:
    halves = np.arange(-9, 9) + 0.5
    for dtype in _DTYPES:
        for zero_point in (1.0, -3.0, 2.0, 0.5, 0.25, -127.0, 100.0):
            for scale in (1.0, 0.1):
                yield _asked(_near(halves, scale, dtype), scale, zero_point)


def _ends() -> Iterator[Arguments]:
    for signed, narrow_range in _FLAGS:
        for bits in (1, 2, 4, 8, 12):
            top, full = 2 ** (bits - 1), 2**bits
            edges = [e + h for e in (-top, -top + 1, top - 1, 0, full - 1, full - 2) for h in (-0.6, -0.5, 0, 0.5, 0.6)]
            for mode in ("ROUND", "FLOOR", "CEIL"):
                flags = {"signed": signed, "narrow_range": narrow_range, "float_to_int": mode}
                yield _asked(_near(edges, 1.0), 1.0, 0.0, bits, **flags)


@calls("brevitas/IntQuant.to_int", "ends")
def _clamp() -> Iterator[Arguments]:
    yield from _ends()


@calls("brevitas/IntQuant.to_int", "specials")
def _specials() -> Iterator[Arguments]:
    x = np.array([_NAN, _INF, -_INF, 3e38, -3e38, 2.0**31, 2.0**63, -(2.0**65)])
    for dtype in (F32, np.dtype(np.float64)):
        for mode in _MODES:
            yield _asked(x.astype(dtype), 0.5, 3.0, float_to_int=mode)


@calls("brevitas/IntQuant.to_int", "zeros")
def _zeros() -> Iterator[Arguments]:
    x = np.array([0.0, -0.0, 0.3, -0.3, 0.5, -0.5, 1e-45, -1e-45], F32)
    for mode in _MODES:
        for zero_point in (0.0, -0.0):
            yield _asked(x, 1.0, zero_point, float_to_int=mode)


@calls("brevitas/IntQuant.to_int", "shapes")
def _shapes() -> Iterator[Arguments]:
    for shape in ((), (0,), (3,), (2, 3), (2, 3, 2)):
        x = np.linspace(-9, 9, int(np.prod(shape)), dtype=F32).reshape(shape)
        yield _asked(x, 0.3, 1.0)
    x, scale = np.array([[1, -2, 3], [0.5, 9, -9]], F32), np.array([[0.5], [2]], F32)
    yield {"scale": scale, "zero_point": np.array([[1], [-3]], F32), "bit_width": 8, "x": x}


@calls("brevitas/IntQuant.to_int", "refused-widths")
def _widths() -> Iterator[Arguments]:
    for bits in (0, -1, -3):
        for signed, narrow_range in _FLAGS:
            x = np.array([1, -1, 0.3, -0.9, 0, _NAN], F32)
            yield _asked(x, 0.5, 0.0, bits, signed=signed, narrow_range=narrow_range)


def _misfits() -> Iterator[Arguments]:
    for scale, zero_point in (((3,), ()), ((), (3,)), ((2, 3), ())):
        parameters = {"scale": np.ones(scale, F32), "zero_point": np.zeros(zero_point, F32)}
        yield {**parameters, "bit_width": 8, "x": np.ones(2, F32)}


@calls("brevitas/IntQuant.to_int", "refused-shapes")
def _refused_shapes() -> Iterator[Arguments]:
    yield from _misfits()


@calls("brevitas/IntQuant", "refused-shapes")
def _refused_shapes_of_reals() -> Iterator[Arguments]:
    yield from _misfits()


@calls("brevitas/IntQuant", "example")
def _example() -> Iterator[Arguments]:
    x = np.array([0.042, -0.053, 0.31, -0.44], F32)
    yield _asked(x, 0.01, 0.0, 4, signed=True, narrow_range=True)


@calls("brevitas/IntQuant", "reals")
def _reals() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        for scale in (0.1, 1 / 3, 0.0123):
            for zero_point in (0.0, 3.0, -7.0):
                yield _asked(_near(np.arange(-10, 11) * 0.7, scale, dtype), scale, zero_point, 5)
    for signed, narrow_range in _FLAGS:
        yield _asked(np.array([-99, -8, 0, 7, 14, 15, 99], F32), 1.0, 0.0, 4, signed=signed, narrow_range=narrow_range)
    yield _asked(np.array([-99, 99], F32), 1.0, 0.0, 4)


@calls("brevitas/IntQuant", "fractional-zero-point")
def _fractional() -> Iterator[Arguments]:
    for zero_point in (0.5, 0.25, -1.5, 0.1):
        yield _asked(np.array([0.4, 0.6, 1.0, -3.3, 200, -0.1], F32), 1.0, zero_point)
        yield _asked(np.array([0.4, 0.6, 1.0, -3.3, 200, -0.1], F32), 0.3, zero_point)


@calls("brevitas/IntQuant", "zero-scale")
def _zero_scale() -> Iterator[Arguments]:
    yield _asked(np.array([1, 0, -1, _NAN, _INF], F32), 0.0, 0.0)
    yield _asked(np.array([1, 0, -1, -0.0], F32), -0.0, 3.0)


# IntQuant's gradients: one parameter per element, so that nothing is summed


def _graded(x: Array, scale: float, zero_point: float, bit_width: int = 8, **given: Any) -> Arguments:
    grad = np.linspace(-1.3, 2.1, x.size).astype(x.dtype).reshape(x.shape)
    parameters = {"scale": np.full_like(x, scale), "zero_point": np.full_like(x, zero_point)}
    return {"grad": grad, **parameters, "bit_width": bit_width, "x": x, **given}


@calls("brevitas/IntQuant.backward", "inside")
def _inside() -> Iterator[Arguments]:
    for dtype in _DTYPES:
        for scale in (1.0, 0.1, 1 / 3):
            for zero_point in (0.0, 3.0, 0.5):
                yield _graded(_near(np.arange(-9, 10) * 0.5, scale, dtype), scale, zero_point)


@calls("brevitas/IntQuant.backward", "ends")
def _gradient_ends() -> Iterator[Arguments]:
    for arguments in _ends():
        if arguments["bit_width"] not in {2, 4, 8}:
            continue
        x = arguments["x"]
        given = {k: arguments[k] for k in ("signed", "narrow_range", "float_to_int")}
        yield _graded(x, 1.0, 0.0, arguments["bit_width"], **given)
        yield _graded((x * F32.type(0.1)).astype(F32), 0.1, 1.0, arguments["bit_width"], **given)
    yield _graded(np.array([-8, -99, 99], F32), 1.0, 0.0, 4)


@calls("brevitas/IntQuant.backward", "specials")
def _gradient_specials() -> Iterator[Arguments]:
    yield _graded(np.array([_NAN, _INF, -_INF, 0.0, -0.0], F32), 0.5, 1.0)
    yield _graded(np.array([1, -1, 0.0, -0.0], F32), 0.0, 0.0)
