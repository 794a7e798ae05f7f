"""pytorch-quantization's integer quantizers, scalar by scalar: fractions, and a rounding for each that torch makes."""

from collections.abc import Callable, Iterator
from fractions import Fraction
from math import copysign, isfinite, isnan
from operator import mul, truediv

import numpy as np

from oracles import exact
from oracles.registry import derives
from oracles.soft import DTYPES, Array, Soft, array, soft

__all__ = [
    "HALVES",
    "elements",
    "fake",
    "fake_modelopt",
    "fake_tensor_quant",
    "held",
    "meet",
    "operate",
    "pack",
    "tensor",
    "tensor_quant",
]

HALVES = ("float16", "bfloat16")
TINY = Fraction(1, 2**24)
LARGEST_HALF = 65504


def meet(a: str, a_rank: int, b: str, b_rank: int) -> str:
    """The dtype of torch's result: the one that has dimensions where the other has none, else the wider of both."""
    if not a.startswith(("float", "bfloat")):
        return b if b_rank else "float32"
    if bool(a_rank) != bool(b_rank):
        return a if a_rank else b
    if a == b:
        return a
    return "float64" if "float64" in {a, b} else "float32"


def operate(operation: Callable[[Soft, Soft], Soft], a: float, b: float, dtype: str) -> float:
    """Both brought to the dtype, or to float32 where that is wider; computed there; rounded to the dtype."""
    wide = "float32" if dtype in HALVES else dtype
    return soft(operation(soft(a, wide), soft(b, wide)).value, dtype).value


def elements(a: Array, shape: tuple[int, ...]) -> Iterator[float]:
    """The numbers of an array repeated to a shape, in order, as Python floats that hold them.

    Raises:
        RuntimeError: it does not repeat to the shape.
    """
    lead = len(shape) - a.ndim
    if lead < 0 or any(n not in {1, m} for n, m in zip(a.shape, shape[lead:], strict=True)):
        msg = f"shape={a.shape} is not accepted: it does not repeat to {shape}"
        raise RuntimeError(msg)
    for index in np.ndindex(*shape):
        yield float(a[tuple(0 if n == 1 else i for n, i in zip(a.shape, index[lead:], strict=True))])


def held(a: Array) -> list[float]:
    """The numbers of an array, in order."""
    return [float(v) for v in a.ravel()]


def _joint(x: tuple[int, ...], a: tuple[int, ...]) -> tuple[int, ...]:
    rank = max(len(x), len(a))
    pairs = zip((1,) * (rank - len(x)) + x, (1,) * (rank - len(a)) + a, strict=True)
    return tuple(m if n == 1 else n for n, m in pairs)


def _bounds(num_bits: float, unsigned: bool, narrow: bool) -> tuple[float, float]:
    top = soft(Fraction(2) ** (int(num_bits) - 1 + bool(unsigned)) - 1, "float32")
    bottom = soft(0.0, "float32") if unsigned else -top if narrow else -top - soft(1.0, "float32")
    return bottom.value, top.value


def _code(product: float, bottom: float, top: float) -> float:
    """The nearest integer, ties to even, then the upper bound over the lower one; a zero keeps the product's sign."""
    if isnan(product):
        return product
    if not isfinite(product):
        return min(max(product, bottom), top)
    nearest = exact.round_integer(Fraction(product), "half-even")
    if nearest < Fraction(bottom):
        return min(bottom, top)
    return top if nearest > Fraction(top) else copysign(float(nearest), product)


def _checked(inputs: Array, amax: Array, num_bits: int, unsigned: bool) -> None:
    if not hasattr(amax, "dtype"):
        msg = f"amax={amax!r}"
        raise AttributeError(msg)
    if type(num_bits) not in {int, bool} or inputs.dtype.name not in {"float32", "float64", *HALVES}:
        msg = f"num_bits={num_bits!r}, inputs of dtype {inputs.dtype}"
        raise TypeError(msg)
    if num_bits <= 0:
        msg = f"num_bits={num_bits}"
        raise ValueError(msg)
    if unsigned and any(v < 0 for v in held(inputs)):
        msg = "inputs: a negative value"
        raise TypeError(msg)
    if any(isnan(v) or v < 0 for v in held(amax)):
        msg = f"amax={amax}"
        raise ValueError(msg)
    list(elements(amax, inputs.shape))


def _least(numbers: list[float]) -> float:
    """The minimum; NaN as soon as one is."""
    if not numbers:
        msg = "no minimum of nothing"
        raise RuntimeError(msg)
    return next((v for v in numbers if isnan(v)), min(numbers))


def tensor(
    inputs: Array, amax: Array, num_bits: float, unsigned: bool, narrow_range: bool
) -> tuple[list[float], list[float], tuple[int, ...], str]:
    """The codes and the scale as torch computes them on a CPU, the codes' shape and dtype, without dtype changes."""
    if not hasattr(amax, "dtype"):
        msg = f"amax={amax!r}"
        raise AttributeError(msg)
    shape = _joint(inputs.shape, amax.shape)
    if unsigned and _least(held(inputs)) < 0:
        msg = "inputs: a negative value"
        raise TypeError(msg)
    if (least := _least(held(amax))) < 0:
        msg = f"amax={amax}"
        raise ValueError(msg)
    x_dtype, a_dtype = ("float32" if a.dtype.name == "float16" else a.dtype.name for a in (inputs, amax))
    bottom, top = _bounds(num_bits, unsigned, narrow_range)
    s_dtype = meet("float32", 0, a_dtype, amax.ndim)
    q_dtype = meet(x_dtype, inputs.ndim, s_dtype, amax.ndim)
    low, high = soft(bottom, q_dtype).value, soft(top, q_dtype).value
    factors, scales = [], []
    for a in held(amax):
        scale = operate(truediv, soft(top, s_dtype).value, a, s_dtype)
        tiny = least <= TINY and a <= TINY  # a NaN among amax puts the guard out of action
        factors.append(0.0 if tiny else scale)
        scales.append(1.0 if tiny else scale)
    spread = elements(np.array(factors, np.float64).reshape(amax.shape), shape)
    pairs = zip(elements(inputs, shape), spread, strict=True)
    return [_code(operate(mul, x, s, q_dtype), low, high) for x, s in pairs], scales, shape, q_dtype


@derives("pytorch-quantization/tensor_quant@2.2.1")
def tensor_quant_2_2_1(
    inputs: Array, amax: Array, num_bits: float = 8, unsigned: bool = False, narrow_range: bool = True
) -> tuple[Array, Array]:
    """Codes in the inputs' dtype where that is float16, and the scale in it always."""
    codes, scales, shape, dtype = tensor(inputs, amax, num_bits, unsigned, narrow_range)
    kind = inputs.dtype.name
    if kind == "float16" and (not any(map(isnan, scales))) and max(scales) > LARGEST_HALF:
        msg = f"amax={amax}"
        raise ValueError(msg)
    if kind.startswith("int"):
        return pack(codes, shape, dtype), np.array([int(s) for s in scales]).reshape(amax.shape)
    held_in = kind if kind == "float16" else dtype
    return pack(codes, shape, held_in), pack(scales, amax.shape, kind)


@derives("pytorch-quantization/tensor_quant")
def tensor_quant(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> tuple[Array, Array]:
    """The same after every argument has been looked at."""
    _checked(inputs, amax, num_bits, unsigned)
    return tensor_quant_2_2_1(inputs, amax, num_bits, unsigned, narrow_range)


def fake(inputs: Array, amax: Array, num_bits: float = 8, unsigned: bool = False, narrow_range: bool = True) -> Array:
    """Each code over its scale, both rounded to the inputs' dtype first, as torch does it on a CPU."""
    codes, scales, shape, dtype = tensor(inputs, amax, num_bits, unsigned, narrow_range)
    kind = inputs.dtype.name
    whole = kind.startswith("int")
    if kind == "float16":
        codes, dtype = [soft(q, kind).value for q in codes], kind
    rounded = [float(int(s)) if whole else soft(s, kind).value for s in scales]
    found = meet(dtype, len(shape), "float32" if whole else kind, amax.ndim)
    spread = elements(np.array(rounded, np.float64).reshape(amax.shape), shape)
    return pack([operate(truediv, q, s, found) for q, s in zip(codes, spread, strict=True)], shape, found)


derives("pytorch-quantization/fake_tensor_quant@2.2.1")(fake)
derives("pytorch-quantization/legacy_fake_tensor_quant@2.2.1")(fake)


@derives(
    "pytorch-quantization/fake_tensor_quant",
    "pytorch-quantization/legacy_fake_tensor_quant",
)
def fake_tensor_quant(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """The same after every argument has been looked at."""
    _checked(inputs, amax, num_bits, unsigned)
    return fake(inputs, amax, num_bits, unsigned, narrow_range)


@derives(
    "pytorch-quantization/fake_tensor_quant@modelopt-0.47",
    "pytorch-quantization/legacy_fake_tensor_quant@modelopt-0.47",
)
def fake_modelopt(
    inputs: Array, amax: Array, num_bits: float = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """All in float32; the dtype of the inputs comes last, an integer by cutting off."""
    if not hasattr(amax, "dtype"):
        msg = f"amax={amax!r}"
        raise AttributeError(msg)
    x, a = (pack(held(v), v.shape, "float32") for v in (inputs, amax))
    reals = fake(x, a, num_bits, unsigned, narrow_range)
    if inputs.dtype.kind == "i":
        return np.array([int(v) for v in held(reals)]).reshape(reals.shape)
    return pack(held(reals), reals.shape, inputs.dtype.name)


@derives("pytorch-quantization/fake_tensor_quant@cuda-2.2.1")
def fake_cuda(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """A thread per element: its amax by the one axis, its code in the narrow range, code over scale."""
    if type(num_bits) is not int:
        msg = f"num_bits={num_bits!r}"
        raise TypeError(msg)
    if num_bits < 1:
        msg = f"num_bits={num_bits}"
        raise ValueError(msg)
    floats = inputs.dtype.name in {"float32", "float64", *HALVES}
    if not hasattr(amax, "dtype") or amax.dtype.name != "float32" or not floats:
        return fake(inputs, amax, num_bits, unsigned, narrow_range)
    entries = held(amax)
    along = [d for d, n in enumerate(amax.shape) if n == len(entries)]
    if len(entries) != 1 and not along:
        return fake(inputs, amax, num_bits, unsigned, narrow_range)
    axis = along[0] if len(entries) != 1 else None
    if axis is not None and (inputs.ndim <= axis or inputs.shape[axis] != len(entries)):
        msg = f"amax of shape {amax.shape}"
        raise RuntimeError(msg)
    if any(isnan(a) or a < 0 for a in entries) or (unsigned and any(isnan(v) or v < 0 for v in held(inputs))):
        msg = f"amax={amax}"
        raise RuntimeError(msg)
    bottom, top = _bounds(num_bits, unsigned, narrow=True)
    reals = []
    for index in np.ndindex(*inputs.shape):
        a = entries[0 if axis is None else index[axis]]
        scale = operate(truediv, top, a, "float32")
        code = _code(operate(mul, float(inputs[index]), scale, "float32"), bottom, top)
        reals.append(0.0 if a < TINY else operate(truediv, code, scale, "float32"))
    return pack(reals, inputs.shape, inputs.dtype.name)


def pack(numbers: list[float], shape: tuple[int, ...], dtype: str) -> Array:
    """Numbers rounded once to the dtype; beyond it an infinity."""
    return array([soft(v, dtype) for v in numbers], shape, DTYPES[dtype])
