"""gguf's blocks, element by element: codes in soft floats, bytes in integers, what is read of them in fractions."""

from collections.abc import Callable
from fractions import Fraction
from functools import partial
from math import floor, isfinite
from typing import Any

import numpy as np

from oracles.exact import FORMATS, round_to, round_value
from oracles.registry import derives
from oracles.soft import Array, Soft, largest, soft

__all__: list[str] = []

_F32, _F16 = FORMATS["float32"], FORMATS["float16"]
_SIZES = {"Q8_0": 34, "Q4_0": 18, "Q4_1": 20, "Q5_0": 22, "Q5_1": 24, "Q4_K": 144, "Q6_K": 210}


class QuantError(Exception):
    pass


def _half(v: Soft) -> list[int]:
    return list(np.array(round_value(v.value, _F16)).astype("<f2").tobytes())


def _number(stored: list[int]) -> float:
    return float(np.frombuffer(bytes(stored), "<f2")[0])


def _each(tensor: Array, size: int, made: int, refusal: type[Exception], empty: str) -> tuple[list[Any], Any]:
    """Runs of ``size`` numbers, and the shape of what is made of them."""
    *outer, last = tensor.shape
    if last % size:
        raise refusal(last)
    if (last == 0 and empty == "rows") or (0 in tensor.shape and empty == "all"):
        raise ValueError(last)
    flat = tensor.ravel().tolist()
    return [flat[i : i + size] for i in range(0, len(flat), size)], (*outer, last // size * made)


def _inverse(d: Soft) -> Soft:
    return Soft(0.0, _F32) if d.value == 0 else soft(1.0, "float32") / d


def _integer(v: Soft) -> int:
    return floor(v.value) if isfinite(v.value) else 0


def _q8_0(x: list[Soft]) -> list[int]:
    d = largest(x) / soft(127.0, "float32")
    found = _half(d)
    for v in x:
        p = v * _inverse(d)
        nearest = _integer(soft(Fraction(abs(p.value)) + Fraction(1, 2), "float64")) if isfinite(p.value) else 0
        found.append((nearest if p.value > 0 else -nearest) % 256)
    return found


def _with_offset(bits: int, x: list[Soft]) -> list[int]:
    """The first of largest magnitude is on code 0."""
    half = 2 ** (bits - 1)
    extreme = next((v for v in x if v.nan), None) or next(v for v in x if all(abs(v).value >= abs(w).value for w in x))
    d = extreme / soft(float(-half), "float32")
    up = soft(half + 0.5, "float32")
    return [*_half(d), *_nibbles(bits, [min(_integer(v * _inverse(d) + up), 2**bits - 1) for v in x])]


def _with_minimum(bits: int, x: list[Soft]) -> list[int]:
    odd = next((v for v in x if v.nan), None)
    low, high = odd or min(x, key=lambda v: v.value), odd or max(x, key=lambda v: v.value)
    d = (high - low) / soft(float(2**bits - 1), "float32")
    half = soft(0.5, "float32")
    codes = [min(_integer((v - low) * _inverse(d) + half), 2**bits - 1) for v in x]
    return [*_half(d), *_half(low), *_nibbles(bits, codes)]


def _nibbles(bits: int, codes: list[int]) -> list[int]:
    """The fifth bits, from the lowest bit of the first byte on; then code i beside code i + 16."""
    high = [sum((codes[8 * i + j] // 16) << j for j in range(8)) for i in range(4)] if bits == 5 else []
    return [*high, *(codes[i] % 16 + codes[i + 16] % 16 * 16 for i in range(16))]


def _quantize(name: str, one: Callable[[list[Soft]], list[int]], tensor: Array, *, empty: str) -> Array:
    rows, shape = _each(tensor, 32, _SIZES[name], QuantError, empty)
    found = [byte for row in rows for byte in one([soft(float(v), "float32") for v in row])]
    return np.array(found, np.uint8).reshape(shape)


def _code(name: str, stored: list[int], i: int) -> int:
    """The code of element ``i``, signed."""
    if name == "Q8_0":
        return (stored[2 + i] ^ 128) - 128
    pair = stored[-16:][i % 16]
    low = pair >> 4 if i >= 16 else pair & 15
    if name in ("Q4_0", "Q4_1"):
        return low - (8 if name == "Q4_0" else 0)
    fifth = stored[-20:][i // 8] >> i % 8 & 1
    return low + 16 * fifth - (16 if name == "Q5_0" else 0)


def _terms(name: str, stored: list[int], i: int) -> tuple[float, int, float, int]:
    """The two products, the second of which is added; without one it is minus zero, which changes nothing."""
    if name == "Q6_K":
        half, quarter, j = i // 128, i % 128 // 32, i % 32
        low = stored[64 * half + j + 32 * (quarter % 2)] >> 4 * (quarter // 2) & 15
        high = stored[128 + 32 * half + j] >> 2 * quarter & 3
        scale = (stored[192 + i // 16] ^ 128) - 128
        # One rounding of the three factors, since the product of the first two has 19 bits.
        return _number(stored[208:]) * scale, low + 16 * high - 32, -0.0, 1
    d, m = _number(stored[:2]), _number(stored[2:4])
    if name == "Q4_K":
        b, s = i // 32, stored[4:16]
        scale = s[b] & 63 if b < 4 else (s[b + 4] & 15) + (s[b - 4] >> 6) * 16
        least = s[b + 4] & 63 if b < 4 else (s[b + 4] >> 4) + (s[b] >> 6) * 16
        return d * scale, stored[16 + i // 64 * 32 + i % 32] >> 4 * (b % 2) & 15, -(m * least), 1
    return d, _code(name, stored, i), m if name.endswith("1") else -0.0, 1


def _real(d: float, q: int, m: float, one: int) -> float:
    if isfinite(d) and isfinite(m) and (total := Fraction(d) * q + Fraction(m) * one):
        return round_to(total, _F32)
    return d * q + m  # zeros, infinities and NaN: nothing to round


def _dequantize(name: str, tensor: Array, *, empty: str) -> Array:
    count = 256 if name.endswith("K") else 32
    rows, shape = _each(tensor, _SIZES[name], count, ValueError, empty)
    found = [_real(*_terms(name, row, i)) for row in rows for i in range(count)]
    return np.array(found, np.float64).astype(np.float32).reshape(shape)


_QUANTIZE: dict[str, Callable[[list[Soft]], list[int]]] = {
    "Q8_0": _q8_0,
    "Q4_0": partial(_with_offset, 4),
    "Q4_1": partial(_with_minimum, 4),
    "Q5_0": partial(_with_offset, 5),
    "Q5_1": partial(_with_minimum, 5),
}
#: What of nothing each version refuses: rows of no elements, or all that is empty.
for _version, _refused in (("", "none"), ("@0.19", "rows")):
    for _name, _one in _QUANTIZE.items():
        derives(f"gguf/{_name}.quantize{_version}")(partial(_quantize, _name, _one, empty=_refused))
    for _name in _SIZES:
        _all = "all" if _version and _name != "Q8_0" else _refused
        derives(f"gguf/{_name}.dequantize{_version}")(partial(_dequantize, _name, empty=_all))
