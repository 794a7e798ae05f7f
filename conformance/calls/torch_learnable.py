"""Calls of torch's learnable fake quantization: ties, ends, zero points between codes; sums exact in any order."""

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.conformance.calls.registry import Arguments, calls

Array = npt.NDArray[Any]

__all__: list[str] = []

_INF, _NAN = np.inf, np.nan
_ZEROS = (0.0, 1.0, -1.0, 5.0, -7.0, 0.5, -0.5, 1.5, -1.5, 2.5, 0.49999997, -0.4, -0.6, 300.0, -129.0, 127.0, -128.0)
_SPECIALS = (_INF, -_INF, _NAN, 3e38, -3e38, 1e10, -1e10, 1e20, 0.0, -0.0, 1e-45)
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


@calls("torch.learnable.per_tensor", "values")
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


@calls("torch.learnable.per_tensor", "dtypes")
def _() -> Iterator[Arguments]:
    for x, zero, scale in _others():
        yield {"x": x, "scale": _f([scale]), "zero_point": _f([zero])} | _grid(-128, 127)


@calls("torch.learnable.per_channel", "dtypes")
def _() -> Iterator[Arguments]:
    for x, zero, scale in _others():
        more = {"scale": _f([scale]), "zero_point": _f([zero]), "axis": 0}
        yield {"x": x[None], **more} | _grid(-128, 127)


@calls("torch.learnable.per_tensor", "specials")
def _() -> Iterator[Arguments]:
    for zero in (0.0, 1.0, -1.0):
        yield {"x": _f(_SPECIALS), "scale": _f([0.5]), "zero_point": _f([zero])} | _grid(-128, 127)
    for scale in _SCALES:
        yield {"x": _f([1, 0, -3, 1e38]), "scale": _f([scale]), "zero_point": _f([1])} | _grid(-128, 127)
    for zero in (_INF, -_INF):
        yield {"x": _f([1, 1000]), "scale": _f([0.5]), "zero_point": _f([zero])} | _grid(-128, 127)


@calls("torch.learnable.per_tensor", "refusals")
def _() -> Iterator[Arguments]:
    for low, high, zero in ((5, 1, 0.0), (-8, 7, _NAN)):
        yield {"x": _f([1]), "scale": _f([0.1]), "zero_point": _f([zero])} | _grid(low, high)
    for ends in ({"quant_min": 0.5, "quant_max": 7}, {"quant_min": 0, "quant_max": 7.0}):
        yield {"x": _f([1]), "scale": _f([0.1]), "zero_point": _f([0])} | ends
    yield {"x": np.ones(1, np.int32), "scale": _f([0.1]), "zero_point": _f([0])} | _grid(0, 7)


@calls("torch.learnable.per_channel", "values")
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


@calls("torch.learnable.per_channel", "specials")
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


@calls("torch.learnable.per_channel", "refusals")
def _() -> Iterator[Arguments]:
    yield from _bad_channels()


@calls("torch.learnable.per_tensor_gradients", "one-element")
def _() -> Iterator[Arguments]:
    for zero in (0.0, 2.0, 0.25):
        for scale in (0.1, 0.3):
            for i, x in enumerate(_near(_edges(zero), scale)[::2]):
                more = {"grad": _signs(3)[i % 3 : i % 3 + 1], "grad_factor": (1.0, 0.3)[i % 2]}
                yield {"x": _f([x]), "scale": _f([scale]), "zero_point": _f([zero])} | _grid(-128, 127) | more


@calls("torch.learnable.per_tensor_gradients", "zero-points")
def _() -> Iterator[Arguments]:
    for zero in (*_ZEROS, _INF, -_INF):
        for x in (1000, -1000, 0.26):
            one = {"x": _f([x]), "scale": _f([0.5]), "zero_point": _f([zero]), "grad": _f([1])}
            yield one | _grid(-128, 127)


def _exact(shape: tuple[int, ...]) -> tuple[Array, Array]:
    """Multiples of 1/16 and small integers: with a scale that is a power of two every sum is exact."""
    n = int(np.prod(shape))
    return _f((np.arange(n) * 37 % 97 - 48) / 16).reshape(shape), _f(np.arange(n) * 5 % 7 - 3).reshape(shape)


@calls("torch.learnable.per_tensor_gradients", "sums")
def _() -> Iterator[Arguments]:
    for shape in ((7,), (5, 8), (2, 3, 4), ()):
        for low, high in ((-8, 7), (0, 15), (0, 3)):
            x, grad = _exact(shape)
            for factor in (1.0, 0.25):
                more = {"grad": grad, "grad_factor": factor} | _grid(low, high)
                yield {"x": x, "scale": _f([0.25]), "zero_point": _f([1])} | more


@calls("torch.learnable.per_tensor_gradients", "specials")
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


@calls("torch.learnable.per_tensor_gradients", "refusals")
def _() -> Iterator[Arguments]:
    for low, high, zero in ((5, 1, 0.0), (5, 7, 6.0), (-8, 7, _NAN)):
        yield {"x": _f([1]), "scale": _f([0.1]), "zero_point": _f([zero]), "grad": _f([1])} | _grid(low, high)
    for dtype in ("float16", "float64"):
        x = np.ones(1, dtype)
        yield {"x": x, "scale": _f([0.1]), "zero_point": _f([0]), "grad": x} | _grid(-8, 7)


@calls("torch.learnable.per_channel_gradients", "one-element")
def _() -> Iterator[Arguments]:
    for zero in _ZEROS:
        for scale in (0.1, 0.3):
            x = _near(_edges(zero), scale)
            n = x.size
            more = {"axis": 0, "grad": _signs(n).reshape(n, 1), "grad_factor": 0.3} | _grid(-128, 127)
            yield {"x": x.reshape(n, 1), "scale": _f([scale] * n), "zero_point": _f([zero] * n)} | more


@calls("torch.learnable.per_channel_gradients", "sums")
def _() -> Iterator[Arguments]:
    for shape in ((5, 8), (2, 3, 4), (1, 1)):
        for axis in range(len(shape)):
            x, grad = _exact(shape)
            n = shape[axis]
            s, z = _f([(0.25, 0.5)[i % 2] for i in range(n)]), _f(np.arange(n) % 4)
            yield {"x": x, "scale": s, "zero_point": z, "axis": axis, "grad": grad} | _grid(-8, 7)


@calls("torch.learnable.per_channel_gradients", "specials")
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


@calls("torch.learnable.per_channel_gradients", "refusals")
def _() -> Iterator[Arguments]:
    for change in _bad_channels():
        yield {**change, "grad": np.ones((2, 3), np.float32)}
    ones = np.ones((2, 3), np.float32)
    yield {"x": ones, "scale": _f([1, 1]), "zero_point": _f([0, 0]), "axis": 0, "grad": ones} | _grid(5, 7)
    x = _f([1, 2])
    yield {"x": x, "scale": x, "zero_point": x, "axis": 0, "grad": x} | _grid(-8, 7)


@calls("torch.learnable.fixed_per_tensor_gradient", "edges")
def _() -> Iterator[Arguments]:
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        for low, high, zero in ((-128, 127, 0), (-128, 127, 5), (0, 255, 128), (-8, 7, -7), (0, 1, 0), (0, 0, 0)):
            for scale in (0.1, 0.3):
                x = _near(_edges(zero, low, high), scale).astype(dtype)
                more = {"grad": _signs(x.size).astype(dtype)} | _grid(low, high)
                yield {"x": x, "scale": float(np.float32(scale)), "zero_point": zero} | more


@calls("torch.learnable.fixed_per_tensor_gradient", "specials")
def _() -> Iterator[Arguments]:
    x = _f(_SPECIALS)
    for scale in (0.5, 0.0, _INF, 1e-45):
        yield {"x": x, "scale": scale, "zero_point": 1, "grad": _signs(x.size)} | _grid(-128, 127)
    yield {"x": _f([1, 1, 100, 100]), "scale": 0.5, "zero_point": 0, "grad": _f([_INF, _NAN, _INF, 1])} | _grid(-8, 7)
    yield {"x": _f([]), "scale": 0.5, "zero_point": 0, "grad": _f([])} | _grid(-8, 7)


@calls("torch.learnable.fixed_per_tensor_gradient", "refusals")
def _() -> Iterator[Arguments]:
    for zero in (8, -9, 300):
        yield {"x": _f([1]), "scale": 0.5, "zero_point": zero, "grad": _f([1])} | _grid(-8, 7)


@calls("torch.learnable.fixed_per_channel_gradient", "edges")
def _() -> Iterator[Arguments]:
    zeros = (0, 5, -7, 127, -128)
    for dtype in (np.float32, np.float16, ml_dtypes.bfloat16):
        for scale in (0.1, 0.3):
            x = np.stack([_near(_edges(z), scale) for z in zeros]).astype(dtype)
            grad = _signs(x.size).reshape(x.shape).astype(dtype)
            more = {"scale": _f([scale] * len(zeros)), "zero_point": np.array(zeros, np.int32)} | _grid(-128, 127)
            yield {"x": x, "axis": 0, "grad": grad} | more
            yield {"x": x.T.copy(), "axis": 1, "grad": grad.T.copy()} | more


@calls("torch.learnable.fixed_per_channel_gradient", "specials")
def _() -> Iterator[Arguments]:
    x = np.tile(_f(_SPECIALS), (3, 1))
    grad = _signs(x.size).reshape(x.shape)
    z = np.array([0, 1, -1], np.int32)
    yield {"x": x, "scale": _f([0.5, 0, _INF]), "zero_point": z, "axis": 0, "grad": grad} | _grid(-128, 127)


@calls("torch.learnable.fixed_per_channel_gradient", "refusals")
def _() -> Iterator[Arguments]:
    x = np.ones((2, 3), np.float32)
    good = {"x": x, "scale": _f([1, 1]), "zero_point": np.zeros(2, np.int32), "axis": 0, "grad": x} | _grid(-8, 7)
    changes: list[dict[str, Any]] = [{"axis": axis} for axis in (1, -1, -3)]
    changes += [{"zero_point": np.array([0, 8], np.int32)}]
    for change in changes:
        yield good | change
