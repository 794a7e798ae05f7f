"""Kernels that compute in one way here and in another there."""

import numpy as np

from wild_kernels import F32, Array, Kernel
from wild_kernels.quantizers import AWAY, BEFORE, RECIPROCAL, away, before, clip, floor_half, reciprocal, textbook

__all__ = ["REGIONAL"]


def roundf(x, s, z, lo, hi):
    return clip(away(x / s) + F32(z), lo, hi)


def tail(body, rest, k: int):
    """A vector body of k lanes, and a loop for what is left."""

    def kernel(x: Array, s, z, lo, hi) -> Array:
        n = x.size - x.size % k
        return np.concatenate([body(x[:n], s, z, lo, hi), rest(x[n:], s, z, lo, hi)])

    return kernel


def large(x, s, z, lo, hi):
    return reciprocal(x, s, z, lo, hi) if x.size >= 65536 else textbook(x, s, z, lo, hi)


def late(x, s, z, lo, hi):
    return np.concatenate([textbook(x[:65536], s, z, lo, hi), reciprocal(x[65536:], s, z, lo, hi)])


def by_dtype(x, s, z, lo, hi):
    return textbook(x, s, z, lo, hi) if lo < 0 else floor_half(x, s, z, lo, hi)


def lane(x, s, z, lo, hi):
    found = textbook(x, s, z, lo, hi)
    found[3::8] = roundf(x, s, z, lo, hi)[3::8]
    return found


def odd_zero(x, s, z, lo, hi):
    return reciprocal(x, s, z, lo, hi) if z % 2 else textbook(x, s, z, lo, hi)


def negative(x, s, z, lo, hi):
    return np.where(x < 0, reciprocal(x, s, z, lo, hi), textbook(x, s, z, lo, hi))


def by_size(x, s, z, lo, hi):
    """Vectors where they come out even, and a scalar loop else."""
    return textbook(x, s, z, lo, hi) if x.size % 4 == 0 else roundf(x, s, z, lo, hi)


def shifted(x, s, z, lo, hi):
    """A shift where the scale is a power of two."""
    found = x / s
    whole = np.floor(found) if abs(np.frexp(s)[0]) == _POWER else np.rint(found)
    return clip(whole + F32(z), lo, hi)


def symmetric(x, s, z, lo, hi):
    return textbook(x, s, z, lo, hi) if z == 0 else before(x, s, z, lo, hi)


def grid_stride(x, s, z, lo, hi):
    """The last block of 32 threads is guarded, and written by another hand."""
    return tail(reciprocal, floor_half, 32)(x, s, z, lo, hi)


def infinite(x, s, z, lo, hi):
    """The lowest code for either infinity."""
    return np.where(np.isinf(x), F32(lo), textbook(x, s, z, lo, hi))


def signed_only(x, s, z, lo, hi):
    return roundf(x, s, z, lo, hi) if lo < 0 else before(x, s, z, lo, hi)


def small(x, s, z, lo, hi):
    """A small tensor is left to Python's doubles."""
    return reciprocal(x, s, z, lo, hi) if x.size > _SMALL else textbook(x, s, z, lo, hi)


def away_far(x, s, z, lo, hi):
    """Ties away from 63.5 on."""
    return np.where(np.abs(x / s) < F32(63.5), textbook(x, s, z, lo, hi), roundf(x, s, z, lo, hi))


def near_by_reciprocal(x, s, z, lo, hi):
    return np.where(np.abs(x) < s * F32(_LITTLE), reciprocal(x, s, z, lo, hi), textbook(x, s, z, lo, hi))


_POWER, _SMALL, _LITTLE = 0.5, 100, 40


def _kernel(name, function, words, inside, does=None, **more):
    return Kernel(name, function, does or {}, where=(words, inside), **more)


REGIONAL = [
    _kernel("AVX2, roundf in the tail", tail(textbook, roundf, 8), "the last n mod 8", AWAY),
    _kernel("AVX512, divides in the tail", tail(reciprocal, textbook, 16), "the last n mod 16", {}, RECIPROCAL),
    _kernel("SSE, reciprocal in the tail", tail(roundf, reciprocal, 4), "the last n mod 4", RECIPROCAL, AWAY),
    _kernel("reciprocal in large tensors", large, "tensors of more than k elements, k from ", RECIPROCAL, large=True),
    _kernel("reciprocal from 65,536 on", late, "elements of an index above k, k from ", RECIPROCAL, large=True),
    _kernel("floor(v + .5f) in uint8", by_dtype, "unsigned grids", {"rounding": {"half-up"}, "half": {"added"}}),
    _kernel("one lane of 8", lane, "elements 3 of every 8", AWAY),
    _kernel("odd zero points", odd_zero, "odd zero points", RECIPROCAL),
    _kernel("negative x", negative, "x is negative", RECIPROCAL),
    _kernel("sizes of no multiple of 4", by_size, "tensors of n elements, n no multiple of 4", AWAY),
    _kernel("powers of two are shifted", shifted, "scales that are powers of two", {"rounding": {"floor"}}),
    _kernel("a zero point is added first", symmetric, "zero points other than 0", RECIPROCAL | BEFORE),
    _kernel(
        "a guarded block of 32",
        grid_stride,
        "the last n mod 32",
        {"rounding": {"half-up"}, "half": {"added"}},
        RECIPROCAL,
    ),
    _kernel("ties away in int8", signed_only, "unsigned grids", RECIPROCAL | BEFORE, AWAY),
    _kernel("reciprocal above 100", small, "tensors of more than k elements", RECIPROCAL),
    _kernel("roundf from 63.5 on", away_far, "|x/s| >= k, k from 62.5 to 6", AWAY),
    _kernel("divides from 40 on", near_by_reciprocal, "|x/s| >= k", {}, RECIPROCAL),
]
