"""Inputs that nobody has written down: a formula's own calls with other numbers in them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from halfeven.conformance.requirement import Arguments

__all__ = ["variants"]

_KINDS = 5
_TOPS = (127.0, 127.5, 7.0, 8.0, 15.0, 255.0)  # codes of the largest element


def variants(calls: Sequence[Arguments], count: int, seed: int = 0) -> Iterator[Arguments]:
    """So many calls like the given ones, in turn, whose floats are drawn anew; whole numbers and words stay.

    Args:
        calls: arguments by keyword; arrays keep their shape and dtype.
        count: how many.
        seed: of what is drawn.
    """
    generator = np.random.default_rng(seed)
    for turn in range(count if calls else 0):
        kind = int(generator.integers(_KINDS))
        yield {name: _drawn(value, generator, kind) for name, value in calls[turn * 37 % len(calls)].items()}


def _drawn(value: Any, generator: np.random.Generator, kind: int) -> Any:  # noqa: PLR0911 - one line for each
    match value:
        case np.ndarray() if _real(value.dtype):
            return _like(value, generator, kind)
        case np.generic() if _real(value.dtype):
            return _like(np.asarray(value), generator, kind)[()]
        case bool() | int() | str():
            return value
        case float():
            return float(_like(np.asarray(value), generator, kind))
        case tuple() | list():
            return type(value)(_drawn(v, generator, kind) for v in value)
        case Mapping():
            return {key: _drawn(v, generator, kind) for key, v in value.items()}
    return value


def _like(a: Any, generator: np.random.Generator, kind: int) -> Any:
    """Numbers of the same size, shape and dtype; what is no number, and zero, stay."""
    wide = np.asarray(a).astype(np.float64)
    with np.errstate(all="ignore"):
        match kind:
            case 0:  # near the number: a few parts in 2^20
                new = wide * (1 + generator.integers(-8, 9, wide.shape) * 2.0**-20)
            case 1:  # of the same exponent
                new = np.copysign(np.exp2(np.floor(np.log2(np.abs(wide)))) * generator.uniform(1, 2, wide.shape), wide)
            case 2:  # halves, where ties are
                new = np.copysign(generator.integers(1, 257, wide.shape) / 2, wide)
            case 3:  # ties of the scale that the largest element gives, which few bits hold
                top, s = generator.choice(_TOPS), generator.integers(1024, 2048) * 2.0 ** generator.integers(-24, -8)
                new = np.copysign((generator.integers(0, int(2 * top), wide.shape) // 2 + 0.5) * s, wide)
                if new.size:
                    new.reshape(-1)[np.argmax(np.abs(wide))] = top * s
            case _:  # of another size
                new = wide * np.exp2(generator.uniform(-6, 6, wide.shape))
        kept = ~np.isfinite(wide) | (wide == 0) | ~np.isfinite(new)
        return np.where(kept, wide, new).astype(np.asarray(a).dtype)


def _real(dtype: "np.dtype[Any]") -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"
