"""Calls of torch's learnable fake quantization: ties, ends, zero points between codes; sums exact in any order."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.requirement import Arguments, calls

__all__: list[str] = []


Array = npt.NDArray[Any]


_INF, _NAN = np.inf, np.nan
_ZEROS = (0.0, 1.0, -1.0, 5.0, -7.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.4, -0.6, 300.0, -129.0, 127.0, -128.0)
_SPECIALS = (_INF, -_INF, _NAN, 3e38, -3e38, 1e10, -1e10, 1e20, 0.0, -0.0, 1e-45)
# x / s lies 2^-37 above, 2^-41 below a half: beside a zero point of 2^23 a second rounding makes a tie of it.
_BY_ONE_ROUNDING = ((1 + 2.0**-12, 2 + 2.0**-11, 2.0**23), (1 + 2.0**-20, 2 + 2.0**-19, 2.0**23 + 1))
_SCALES = (0.0, -0.5, _NAN, _INF, 1e-45, 1e38)


def _f(values: Any) -> Array:
    return np.asarray(values, np.float32)


def _near(codes: Any, scale: float) -> Array:
    middle = (np.asarray(codes) * np.float64(np.float32(scale))).astype(np.float32)
    return np.concatenate([middle, np.nextafter(middle, _f(_INF)), np.nextafter(middle, _f(-_INF))])


def _edges(zero: float, low: int = -128, high: int = 127) -> Array:
    z = np.rint(np.clip(zero, low, high))
    return np.concatenate([np.arange(-3, 3) + 0.5, low - z + np.arange(-2, 2) + 0.5, high - z + np.arange(-2, 2) + 0.5])


def _grid(low: int, high: int) -> dict[str, int]:
    return {"quant_min": low, "quant_max": high}


def _signs(n: int) -> Array:
    """Gradients that are no powers of two."""
    return _f([(0.3, -1.7, 1.1)[i % 3] for i in range(n)])


@calls("torch/_fake_quantize_learnable_per_tensor_affine", "values")
def _() -> Iterator[Arguments]:
    for zero in _ZEROS:
        for scale in (0.1, 0.3, 0.5):
            x = _near(_edges(zero), scale)
            yield {"x": x, "scale": _f([scale]), "zero_point": _f([zero])} | _grid(-128, 127)
    for low, high in ((0, 255), (-8, 7), (0, 1), (-1, 0), (0, 15)):
        yield {"x": _near(_edges(1, low, high), 0.3), "scale": _f([0.3]), "zero_point": _f([1])} | _grid(low, high)
    yield {"x": _f(0.7), "scale": _f([0.1]), "zero_point": _f([0])} | _grid(-8, 7)
    for low, high, zero in ((5, 7, 6.0), (-7, -5, -6.0), (3, 3, 0.0)):  # grids without zero, and of one code
        yield {"x": _f([1]), "scale": _f([0.1]), "zero_point": _f([zero])} | _grid(low, high)


def _others() -> Iterator[tuple[Array, float, float]]:
    """Ties of the quotient, and of float64 what float32 would round to one."""
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float64):
        for zero, scale in ((0.0, 0.1), (1.0, 0.3), (-7.0, 0.5)):
            codes = _edges(zero) * np.float64(np.float32(scale))
            yield np.append(codes * (1 + 2.0**-40), [*codes, 1e5, -1e5, _INF, _NAN]).astype(dtype), zero, scale


@calls("torch/_fake_quantize_learnable_per_tensor_affine", "dtypes")
def _() -> Iterator[Arguments]:
    for x, zero, scale in _others():
        yield {"x": x, "scale": _f([scale]), "zero_point": _f([zero])} | _grid(-128, 127)


@calls("torch/_fake_quantize_learnable_per_channel_affine", "dtypes")
def _() -> Iterator[Arguments]:
    for x, zero, scale in _others():
        more = {"scale": _f([scale]), "zero_point": _f([zero]), "axis": 0}
        yield {"x": x[None], **more} | _grid(-128, 127)


@calls("torch/_fake_quantize_learnable_per_tensor_affine", "specials")
def _() -> Iterator[Arguments]:
    for zero in (0.0, 1.0, -1.0):
        yield {"x": _f(_SPECIALS), "scale": _f([0.5]), "zero_point": _f([zero])} | _grid(-128, 127)
    for scale in _SCALES:
        yield {"x": _f([1, 0, -3, 1e38]), "scale": _f([scale]), "zero_point": _f([1])} | _grid(-128, 127)
    for zero in (_INF, -_INF):
        yield {"x": _f([1, 1000]), "scale": _f([0.5]), "zero_point": _f([zero])} | _grid(-128, 127)


@calls("torch/_fake_quantize_learnable_per_tensor_affine", "refusals")
def _() -> Iterator[Arguments]:
    for low, high, zero in ((5, 1, 0.0), (-8, 7, _NAN)):
        yield {"x": _f([1]), "scale": _f([0.1]), "zero_point": _f([zero])} | _grid(low, high)
    for ends in ({"quant_min": 0.5, "quant_max": 7}, {"quant_min": 0, "quant_max": 7.0}):
        yield {"x": _f([1]), "scale": _f([0.1]), "zero_point": _f([0])} | ends
    yield {"x": np.ones(1, np.int32), "scale": _f([0.1]), "zero_point": _f([0])} | _grid(0, 7)


@calls("torch/_fake_quantize_learnable_per_channel_affine", "values")
def _() -> Iterator[Arguments]:
    for scale in (0.1, 0.3, 0.5):
        x = np.stack([_near(_edges(zero), scale) for zero in _ZEROS])
        more = {"scale": _f([scale] * len(_ZEROS)), "zero_point": _f(_ZEROS)} | _grid(-128, 127)
        yield {"x": x, "axis": 0} | more
        yield {"x": x.T.copy(), "axis": 1} | more
    x = _f(np.arange(24).reshape(2, 3, 4) * 0.3 - 3)
    for axis in (0, 1, 2):
        n = x.shape[axis]
        s, z = _f(np.arange(1, n + 1) * 0.1), _f(np.arange(n))
        yield {"x": x, "scale": s, "zero_point": z, "axis": axis} | _grid(-8, 7)
    yield {"x": _f([1, 2]), "scale": _f([0.5, 0.3]), "zero_point": _f([0, 1]), "axis": 0} | _grid(0, 3)
    for low, high in ((5, 7), (0, 0), (3, 3)):  # the last two of one code
        yield {"x": _f([1, 2]), "scale": _f([0.5, 0.3]), "zero_point": _f([0, 1]), "axis": 0} | _grid(low, high)


@calls("torch/_fake_quantize_learnable_per_channel_affine", "specials")
def _() -> Iterator[Arguments]:
    x = np.tile(_f(_SPECIALS), (3, 1))
    yield {"x": x, "scale": _f([0.5] * 3), "zero_point": _f([0, 1, -1]), "axis": 0} | _grid(-128, 127)
    n = len(_SCALES)
    x = np.tile(_f([1, 0, -3, 1e38]), (n, 1))
    yield {"x": x, "scale": _f(_SCALES), "zero_point": _f([1] * n), "axis": 0} | _grid(-128, 127)


def _bad_channels() -> Iterator[Arguments]:
    x, one, two, three = np.ones((2, 3), np.float32), _f([1]), _f([1, 1]), _f([1, 1, 1])
    good = {"x": x, "scale": two, "zero_point": two * 0, "axis": 0} | _grid(-8, 7)
    changes: list[dict[str, Any]] = [{"axis": 2}, {"axis": 1}, {"axis": -2}, {"axis": -3}, {"scale": one}]
    changes += [_grid(5, 1), {"zero_point": three}, {"zero_point": _f([0, _NAN])}]
    changes += [{"quant_min": 0.5}, {"quant_max": 7.0}]
    for change in changes:
        yield good | change


@calls("torch/_fake_quantize_learnable_per_channel_affine", "refusals")
def _() -> Iterator[Arguments]:
    yield from _bad_channels()


@calls("torch/_fake_quantize_learnable_per_tensor_affine.backward", "one-element")
def _() -> Iterator[Arguments]:
    for zero in (0.0, 2.0, 0.25):
        for scale in (0.1, 0.3):
            for i, x in enumerate(_near(_edges(zero), scale)[::2]):
                more = {"grad": _signs(3)[i % 3 : i % 3 + 1], "grad_factor": (1.0, 0.3)[i % 2]}
                yield {"x": _f([x]), "scale": _f([scale]), "zero_point": _f([zero])} | _grid(-128, 127) | more
    for x, scale, zero in _BY_ONE_ROUNDING:
        one = {"x": _f([x]), "scale": _f([scale]), "zero_point": _f([zero]), "grad": _f([1])}
        yield one | _grid(0, 2**24 - 1)


@calls("torch/_fake_quantize_learnable_per_tensor_affine.backward", "zero-points")
def _() -> Iterator[Arguments]:
    for zero in (*_ZEROS, _INF, -_INF):
        for x in (1000, -1000, 0.26):
            one = {"x": _f([x]), "scale": _f([0.5]), "zero_point": _f([zero]), "grad": _f([1])}
            yield one | _grid(-128, 127)
    for low, high in ((-8, 0), (0, 7)):
        yield {"x": _f([0.6]), "scale": _f([0.5]), "zero_point": _f([0]), "grad": _f([1])} | _grid(low, high)


def _exact(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Multiples of 1/16 and small integers: with a scale that is a power of two every sum is exact."""
    n = int(np.prod(shape))
    return _f((np.arange(n) * 37 % 97 - 48) / 16).reshape(shape), _f(np.arange(n) * 5 % 7 - 3).reshape(shape)


@calls("torch/_fake_quantize_learnable_per_tensor_affine.backward", "sums")
def _() -> Iterator[Arguments]:
    for shape in ((7,), (5, 8), (2, 3, 4), ()):
        for low, high in ((-8, 7), (0, 15), (0, 3)):
            x, grad = _exact(shape)
            for factor in (1.0, 0.25):
                more = {"grad": grad, "grad_factor": factor} | _grid(low, high)
                yield {"x": x, "scale": _f([0.25]), "zero_point": _f([1])} | more
    x, grad = _exact((7,))
    yield {"x": x, "scale": _f([0.25]), "zero_point": _f([0]), "grad": grad} | _grid(-8, 0)


@calls("torch/_fake_quantize_learnable_per_tensor_affine.backward", "specials")
def _() -> Iterator[Arguments]:
    for x in _SPECIALS:
        one = {"x": _f([x]), "scale": _f([0.5]), "zero_point": _f([1]), "grad": _f([2])}
        yield one | _grid(-128, 127)
    for scale in _SCALES:
        for x in (1, 0):
            one = {"x": _f([x]), "scale": _f([scale]), "zero_point": _f([1]), "grad": _f([2])}
            yield one | _grid(-128, 127)
    for grad in (_INF, _NAN, -0.0):
        for x in (1, 1000):
            one = {"x": _f([x]), "scale": _f([0.5]), "zero_point": _f([1]), "grad": _f([grad])}
            yield one | _grid(-128, 127)
    yield {"x": _f([]), "scale": _f([0.5]), "zero_point": _f([1]), "grad": _f([])} | _grid(-8, 7)


@calls("torch/_fake_quantize_learnable_per_tensor_affine.backward", "refusals")
def _() -> Iterator[Arguments]:
    for low, high, zero in ((5, 1, 0.0), (5, 7, 6.0), (1, 7, 1.0), (-8, -1, -1.0), (-8, 7, _NAN)):
        yield {"x": _f([1]), "scale": _f([0.1]), "zero_point": _f([zero]), "grad": _f([1])} | _grid(low, high)
    for dtype in ("float16", "float64"):
        x = np.ones(1, dtype)
        yield {"x": x, "scale": _f([0.1]), "zero_point": _f([0]), "grad": x} | _grid(-8, 7)


@calls("torch/_fake_quantize_learnable_per_channel_affine.backward", "one-element")
def _() -> Iterator[Arguments]:
    for zero in _ZEROS:
        for scale in (0.1, 0.3):
            x = _near(_edges(zero), scale)
            n = x.size
            more = {"axis": 0, "grad": _signs(n).reshape(n, 1), "grad_factor": 0.3} | _grid(-128, 127)
            yield {"x": x.reshape(n, 1), "scale": _f([scale] * n), "zero_point": _f([zero] * n)} | more
    xs, scales, zeros = (_f(column) for column in zip(*_BY_ONE_ROUNDING, strict=True))
    ones: dict[str, Any] = {"axis": 0, "grad": np.ones((len(xs), 1), np.float32)} | _grid(0, 2**24 - 1)
    yield {"x": xs.reshape(-1, 1), "scale": scales, "zero_point": zeros} | ones


@calls("torch/_fake_quantize_learnable_per_channel_affine.backward", "sums")
def _() -> Iterator[Arguments]:
    for shape in ((5, 8), (2, 3, 4), (1, 1)):
        for axis in range(len(shape)):
            x, grad = _exact(shape)
            n = shape[axis]
            s, z = _f([(0.25, 0.5)[i % 2] for i in range(n)]), _f(np.arange(n) % 4)
            yield {"x": x, "scale": s, "zero_point": z, "axis": axis, "grad": grad} | _grid(-8, 7)


@calls("torch/_fake_quantize_learnable_per_channel_affine.backward", "specials")
def _() -> Iterator[Arguments]:
    n, m = len(_SPECIALS), len(_SCALES)
    x = _f(_SPECIALS).reshape(n, 1)
    ones = {"axis": 0} | _grid(-128, 127)
    yield {"x": x, "scale": _f([0.5] * n), "zero_point": _f([1] * n), "grad": np.ones_like(x)} | ones
    for v in (1, 0):
        x = np.full((m, 1), v, np.float32)
        yield {"x": x, "scale": _f(_SCALES), "zero_point": _f([1] * m), "grad": _f([[2]] * m)} | ones
    grad = _f([[_INF], [_NAN], [-0.0]])
    for v in (1, 1000):
        x = np.full((3, 1), v, np.float32)
        yield {"x": x, "scale": _f([0.5] * 3), "zero_point": _f([1] * 3), "grad": grad} | ones
    x = np.zeros((2, 0), np.float32)
    yield {"x": x, "scale": _f([0.5, 3]), "zero_point": _f([1, 0]), "grad": x} | ones


@calls("torch/_fake_quantize_learnable_per_channel_affine.backward", "refusals")
def _() -> Iterator[Arguments]:
    for change in _bad_channels():
        yield {**change, "grad": np.ones((2, 3), np.float32)}
    ones = np.ones((2, 3), np.float32)
    yield {"x": ones, "scale": _f([1, 1]), "zero_point": _f([0, 0]), "axis": 0, "grad": ones} | _grid(5, 7)
    x = _f([1, 2])
    yield {"x": x, "scale": x, "zero_point": x, "axis": 0, "grad": x} | _grid(-8, 7)
