"""Float formats by the widths of exponent and mantissa, and casts to them.

A cast is exact: the unit of the last bit that is kept is the power of two in the number's own exponent bits.
"""

from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["BFLOAT16", "FLOAT16", "FloatFormat", "float_cast"]

_EXPONENTS, _MANTISSAS = range(2, 12), range(1, 53)  # what float64 holds
# Of float32 and float64: integers of their size, their exponent's bits, and their widths.
_BITS: dict[torch.dtype, tuple[torch.dtype, int]] = {
    torch.float32: (torch.int32, 0xFF << 23),
    torch.float64: (torch.int64, 0x7FF << 52),
}
_WIDTHS = (8, 23)


class _Special(NamedTuple):
    """What a format has that is not the IEEE one of its widths."""

    bias: int
    max: float


class FloatFormat(NamedTuple):
    """A float format: the IEEE one of its widths, or one of the finite ones that have a name.

    Attributes:
        exponent_bits: width of the exponent, 2 to 11.
        mantissa_bits: width of the mantissa, 1 to 52.
        finite: it has no infinities.
        unsigned_zero: it has no -0.0.
    """

    exponent_bits: int
    mantissa_bits: int
    finite: bool = False
    unsigned_zero: bool = False

    @classmethod
    def of(cls, dtype: torch.dtype) -> "FloatFormat":
        """The format of one of torch's dtypes of 16 bits or fewer.

        Raises:
            ValueError: it is not one of those.
        """
        found = next((f for f, (name, _) in _NAMED.items() if name and getattr(torch, name, None) == dtype), None)
        if found is None:
            names = ", ".join(f"torch.{name}" for name, _ in _NAMED.values() if name and hasattr(torch, name))
            msg = f"dtype={dtype} is not accepted: give one of {names}"
            raise ValueError(msg)
        return found

    def check(self) -> None:
        """Refuse a format that is not supported.

        Raises:
            ValueError: a width is too narrow or too wide.
            RuntimeError: it is finite or has no -0.0, and is none of the formats with a name.
        """
        e, m, finite, unsigned_zero = self
        if e not in _EXPONENTS or m not in _MANTISSAS:
            most = f"{_EXPONENTS[0]} to {_EXPONENTS[-1]} and {_MANTISSAS[0]} to {_MANTISSAS[-1]}"
            msg = f"exponent_bits={e}, mantissa_bits={m} is not accepted: give {most}"
            raise ValueError(msg)
        if (finite or unsigned_zero) and self not in _NAMED:
            msg = (
                f"finite={finite}, unsigned_zero={unsigned_zero} is not accepted for exponent_bits={e}, "
                f"mantissa_bits={m}: give False and False, or one of {', '.join(map(str, _NAMED))}"
            )
            raise RuntimeError(msg)

    @property
    def max(self) -> float:
        """The largest number."""
        _, special = _NAMED.get(self, (None, None))
        return special.max if special else (2 - 2.0**-self.mantissa_bits) * 2.0 ** (2 ** (self.exponent_bits - 1) - 1)

    @property
    def least_normal(self) -> float:
        """The smallest number whose mantissa has a leading one."""
        _, special = _NAMED.get(self, (None, None))
        return 2.0 ** (1 - (special.bias if special else 2 ** (self.exponent_bits - 1) - 1))

    @property
    def torch_dtype(self) -> torch.dtype | None:
        """The dtype that torch has for it, or None."""
        name, _ = _NAMED.get(self, (None, None))
        found: torch.dtype | None = getattr(torch, name, None) if name else None
        return found

    @property
    def name(self) -> str:
        """``float8_e4m3fn`` and the like."""
        name, _ = _NAMED.get(self, (None, None))
        e, m, finite, unsigned_zero = self
        return name or f"float{e + m + 1}_e{e}m{m}{'fn' * finite}{'uz' * unsigned_zero}"

    @property
    def holder(self) -> torch.dtype:
        """The narrower of float32 and float64 that has every number of the format."""
        narrow = self.exponent_bits <= _WIDTHS[0] and self.mantissa_bits <= _WIDTHS[1]
        return torch.float32 if narrow else torch.float64

    def nearest(self, y: Tensor) -> Tensor:
        """The nearest numbers of the format, ties to the even one, at most its largest; in the dtype of ``y``.

        NaN stays, and so does the sign of zero where the format has one. Changes ``y`` if that saves memory.
        """
        wide = torch.promote_types(y.dtype, self.holder)
        if wide == torch.float32 and self in {FLOAT16, BFLOAT16}:  # torch's casts are exact, and faster
            return y.to(wide).clamp_(-self.max, self.max).to(self.torch_dtype).to(y.dtype)
        near = _rounded(y.to(wide), self.max, self.least_normal, self.mantissa_bits)
        if self.unsigned_zero:
            near.masked_fill_(near == 0, 0.0)
        return near.to(y.dtype)


FLOAT16, BFLOAT16 = FloatFormat(5, 10), FloatFormat(8, 7)
# Their names in torch, and what is not as the widths say.
_NAMED: dict[FloatFormat, tuple[str | None, _Special | None]] = {
    FLOAT16: ("float16", None),
    BFLOAT16: ("bfloat16", None),
    FloatFormat(4, 3, finite=True): ("float8_e4m3fn", _Special(7, 448.0)),
    FloatFormat(4, 3, finite=True, unsigned_zero=True): ("float8_e4m3fnuz", _Special(8, 240.0)),
    FloatFormat(5, 2): ("float8_e5m2", None),
    FloatFormat(5, 2, finite=True, unsigned_zero=True): ("float8_e5m2fnuz", _Special(16, 57344.0)),
    FloatFormat(2, 1, finite=True): (None, _Special(1, 6.0)),
}


def float_cast(tensor: Tensor, exponent_bits: int, mantissa_bits: int) -> Tensor:
    """The documented equation to the letter: ``mantissa_bits`` after the leading bit of a number, however small it is.

    ``FloatQuantizeDequantize`` gives the numbers of the format instead, which has a smallest unit.

    Args:
        tensor: float32 or narrower, of any shape; the result has shape and dtype.
        exponent_bits: width of the exponent, 2 to 11, which sets the largest number alone.
        mantissa_bits: width of the mantissa, 1 to 52.

    Raises:
        ValueError: another width.
    """
    f = FloatFormat(exponent_bits, mantissa_bits)
    f.check()
    return _rounded(tensor.to(torch.float64, copy=True), f.max, 2.0**-1022, mantissa_bits).to(tensor.dtype)


def _rounded(y: Tensor, most: float, least_normal: float, mantissa_bits: int) -> Tensor:
    """``y``, float32 or float64 and changed in place, limited to ``most`` and rounded to the unit of its last bit."""
    integers, exponent = _BITS[y.dtype]
    y.clamp_(-most, most)
    unit = (y.view(integers) & exponent).view(y.dtype).clamp_(min=least_normal).mul_(2.0**-mantissa_bits)
    return y.div_(unit).round_().mul_(unit)
