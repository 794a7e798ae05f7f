"""torchao's dtypes by name: the codes each of them holds, where they are stored, and how floats become integers."""

from typing import Any

import ml_dtypes
import numpy as np
import numpy.typing as npt

from halfeven.reference.blocks import Array

__all__ = [
    "check_codes",
    "check_reals",
    "code_range",
    "dtype_of",
    "is_float8",
    "is_signed_below_8",
    "limits",
    "machine_integers",
]

_COMPUTE = ("float32", "float16", "bfloat16")

_WHOLE = {"uint8": (0, 255), "int8": (-128, 127), "int16": (-(2**15), 2**15 - 1), "int32": (-(2**31), 2**31 - 1)}
_UNSIGNED = {f"uint{b}": (0, 2**b - 1) for b in range(1, 8)}
_SIGNED = {f"int{b}": (-(2 ** (b - 1)), 2 ** (b - 1) - 1) for b in range(1, 8)}
_INTEGER = _WHOLE | _UNSIGNED | _SIGNED
_FLOAT8 = {"float8_e4m3fn": 448.0, "float8_e4m3fnuz": 240.0, "float8_e5m2": 57344.0, "float8_e5m2fnuz": 57344.0}
_OTHER = ("bfloat16", *_FLOAT8)
_HALF_MAX = 65504


def code_range(dtype: npt.DTypeLike, quant_min: float | None, quant_max: float | None) -> tuple[float, float]:
    """The ends of the grid: those given, else the whole range of ``dtype`` (int1 to int8, uint1 to uint8, int16, ...).

    Raises:
        ValueError: torchao has no codes of this dtype.
        AssertionError: an end lies outside the range of ``dtype``.
    """
    name = _name(dtype)
    if name not in _INTEGER and name not in _FLOAT8:
        msg = f"dtype={name!r} is not accepted: give one of {', '.join((*_INTEGER, *_FLOAT8))}"
        raise ValueError(msg)
    low, high = _INTEGER[name] if name in _INTEGER else (-_FLOAT8[name], _FLOAT8[name])
    qmin, qmax = low if quant_min is None else quant_min, high if quant_max is None else quant_max
    if qmin < low or qmax > high:
        msg = f"quant_min={qmin}, quant_max={qmax} is not accepted: {name} holds {low} to {high}"
        raise AssertionError(msg)
    return qmin, qmax


def check_reals(input: Array) -> None:  # noqa: A002 - the document's own word
    """Refuse an input that is not float32, float16 or bfloat16 with an AssertionError."""
    if input.dtype.name not in _COMPUTE:
        msg = f"input of {input.dtype} is not accepted: give {', '.join(_COMPUTE)}"
        raise AssertionError(msg)


def check_codes(input: Array, input_dtype: npt.DTypeLike, output_dtype: npt.DTypeLike) -> None:  # noqa: A002 - as above
    """Refuse codes that are not of ``input_dtype``, and reals of another ``output_dtype``, with an AssertionError."""
    name = _name(input_dtype)
    if name not in _UNSIGNED and input.dtype.name != name:
        msg = f"input of {input.dtype} is not accepted: give {name}"
        raise AssertionError(msg)
    if _name(output_dtype) not in _COMPUTE:
        msg = f"output_dtype={_name(output_dtype)!r} is not accepted: give {', '.join(_COMPUTE)}"
        raise AssertionError(msg)


def dtype_of(name: npt.DTypeLike) -> "np.dtype[Any]":
    """The NumPy dtype of a name; codes of fewer than 8 bits lie in 8."""
    name = _name(name)
    if name in _UNSIGNED or name in _SIGNED:
        return np.dtype("uint8" if name in _UNSIGNED else "int8")
    return np.dtype(getattr(ml_dtypes, name) if name in _OTHER else name)


def is_float8(dtype: npt.DTypeLike) -> bool:
    """Whether codes of this dtype are float8 numbers."""
    return _name(dtype) in _FLOAT8


def is_signed_below_8(dtype: npt.DTypeLike) -> bool:
    """Whether codes of this dtype are signed and of fewer than 8 bits."""
    return _name(dtype) in _SIGNED


def limits(qmin: float, qmax: float, dtype: "np.dtype[Any]") -> tuple[Array, Array]:
    """The ends of the grid as numbers of the arithmetic's ``dtype``.

    Raises:
        RuntimeError: one of them is beyond float16 (measured).
    """
    if dtype == np.float16 and max(abs(qmin), abs(qmax)) > _HALF_MAX:
        msg = f"quant_min={qmin}, quant_max={qmax} is not accepted in float16, which ends at {_HALF_MAX}"
        raise RuntimeError(msg)
    return np.asarray(qmin, dtype), np.asarray(qmax, dtype)


def machine_integers(values: Array, dtype: npt.DTypeLike) -> Array:
    """Floats as an x86 processor converts them: toward zero, in 32 bits (64 for int64), whose lowest bits are kept.

    What these bits do not hold, NaN among it, becomes their least integer.
    """
    to = dtype_of(dtype)
    least = -float(2 ** (63 if to.itemsize == 8 else 31))  # noqa: PLR2004 - bytes
    wide = values.astype(np.float64)
    return np.where((wide >= least) & (wide < -least), wide, least).astype(np.int64).astype(to)


def _name(dtype: npt.DTypeLike) -> str:
    return dtype if isinstance(dtype, str) else np.dtype(dtype).name
