"""The numbers of a float format as a list of fractions, in code order, and the nearest of them."""

from bisect import bisect_left
from collections.abc import Sequence
from fractions import Fraction
from functools import cache

__all__ = ["nearest", "values"]


def nearest(value: Fraction, values: Sequence[Fraction]) -> int:
    """The index of the number nearest to ``value``, of two equally near the even index.

    Args:
        value: not negative.
        values: ascending, without a repeat, not empty. To see an overflow, hand over one number more than there are.
    """
    above = bisect_left(values, value)
    if above == len(values):
        return above - 1
    if above == 0 or values[above] == value:
        return above
    low, high = value - values[above - 1], values[above] - value
    if low == high:
        return above - above % 2
    return above if high < low else above - 1


@cache
def values(exponent_bits: int, mantissa_bits: int, bias: int, count: int) -> list[Fraction]:
    """The first ``count`` numbers of a format that are not negative: 0, the subnormals, the normals.

    The list goes on past ``exponent_bits`` where ``count`` asks for more, as if the exponent had no end.

    Raises:
        ValueError: ``exponent_bits`` or ``mantissa_bits`` is out of range.
    """
    if exponent_bits < 1 or mantissa_bits < 0:
        msg = f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits} is not accepted: at least 1 and 0"
        raise ValueError(msg)
    step = Fraction(2) ** (1 - bias - mantissa_bits)
    found = [Fraction(0)]
    while len(found) < count:
        # The gap doubles after each full set of mantissas, but for the first: subnormals and first normals share one.
        last = len(found) - 1
        if last >= 2 * 2**mantissa_bits and last % 2**mantissa_bits == 0:
            step *= 2
        found.append(found[-1] + step)
    return found[:count]
