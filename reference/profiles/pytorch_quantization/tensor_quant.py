"""pytorch-quantization: ``tensor_quant``, ``fake_tensor_quant``. Codes per real, s = qmax / amax, no zero point."""

from collections.abc import Callable
from functools import wraps
from inspect import signature, unwrap
from typing import Any, TypeVar, cast

import ml_dtypes
import numpy as np

from halfeven.reference.blocks import BlockSize, per_element
from halfeven.reference.catalogue import AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profiles.profile import Array, Profile

__all__ = [
    "FLOATS",
    "PYTORCH_QUANTIZATION",
    "SMALLEST_AMAX",
    "fake_tensor_quant",
    "fake_tensor_quant_2_2_1",
    "fake_tensor_quant_cuda_2_2_1",
    "fake_tensor_quant_modelopt_0_47",
    "operands",
    "tensor_quant",
    "tensor_quant_2_2_1",
]

F = TypeVar("F", bound=Callable[..., Any])

MODEL = EvaluationModel(division="multiply-by-q-per-real", compute="float32", sign="none")

SMALLEST_AMAX = np.float32(2.0**-24)
"""At this amax and below every finite value has the code 0, and the scale returned is 1."""

FLOATS = tuple(np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64))
"""The dtypes that the library has been measured with; its document speaks of the first."""

_HALF = np.dtype(np.float16)
_BASIS = AsComputed(dtype="float32; codes and scale are then rounded to float16 where the input is")


@formula(
    "pytorch_quantization.tensor_quant",
    equation=r"s = q_{max} / \mathrm{amax},\quad q = \mathrm{clamp}(\lceil x * s \rfloor,\ q_{min},\ q_{max})",
    basis=_BASIS,
    source="pytorch_quantization.tensor_quant.TensorQuantFunction",
)
def quantize(x: Array, amax: Array, _zero: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """Codes of ``x``, held in ``x.dtype``; ``amax`` is the absolute maximum that the code qmax stands for.

    Arguments and errors as in ``Profile.quantize``, with amax in reals for the scale.
    """
    with np.errstate(all="ignore"):
        a = per_element(amax, x.shape, block_size).astype(np.float32)
        qmin, qmax = np.float32(grid.qmin), np.float32(grid.qmax)
        s = np.where(a <= SMALLEST_AMAX, np.float32(0), qmax / a)
        q = np.rint(x.astype(np.float32) * s)
        return np.where(q < qmin, qmin, np.where(q > qmax, qmax, q)).astype(x.dtype)


@formula(
    "pytorch_quantization.fake_tensor_quant",
    equation=r"s = q_{max} / \mathrm{amax},\quad \hat x = \mathrm{clamp}(\lceil x * s \rfloor,\ q_{min},\ q_{max}) / s",
    basis=_BASIS,
    source="pytorch_quantization.tensor_quant.FakeTensorQuantFunction",
)
def fake_quantize(x: Array, amax: Array, zero: Array, grid: Grid, block_size: BlockSize | None = None) -> Array:
    """``x`` on the grid, in ``x.dtype``: the codes over the scale, both rounded to ``x.dtype`` first.

    Arguments and errors as in ``quantize``.
    """
    q = quantize(x, amax, zero, grid, block_size)
    with np.errstate(all="ignore"):
        a = per_element(amax, x.shape, block_size).astype(np.float32)
        s = np.where(a <= SMALLEST_AMAX, np.float32(1), np.float32(grid.qmax) / a).astype(x.dtype)
        return np.asarray(q / s)


def _codes_per_real(amax: Array, grid: Grid) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(np.float32(grid.qmax) / amax.astype(np.float32))


def _grids() -> tuple[Grid, ...]:
    widths = range(2, 17)
    return tuple(Grid.from_bitwidth(b, signed=True, narrow=narrow) for narrow in (True, False) for b in widths)


PYTORCH_QUANTIZATION = Profile(
    name="pytorch-quantization",
    title="clamp(round(x * s), qmin, qmax) with s = qmax / amax; q / s",
    source="pytorch-quantization: pytorch_quantization.tensor_quant",
    model=MODEL,
    parameters=("amax",),
    dtypes=("float32", "float16"),
    codes="input",
    bits=(2, 16),
    grids=_grids(),
    numpy={
        "quantize": "np.clip(np.rint(x * (s := np.float32(qmax) / amax)), qmin, qmax)",
        "fake_quantize": "np.clip(np.rint(x * (s := np.float32(qmax) / amax)), qmin, qmax) / s",
    },
    model_scale=_codes_per_real,
    transcriptions={"quantize": quantize, "fake_quantize": fake_quantize},
)


# The documented functions; amax broadcasts to the inputs. In torch a 0-d operand does not widen one with dimensions.

_TENSOR_QUANT = (
    r"s = (2^{b-1+u} - 1) / \mathrm{amax},\quad q = \mathrm{clamp}(\lceil x * s \rfloor,\ q_{min},\ q_{max})"
)
_FAKE = _TENSOR_QUANT + r",\quad \hat x = q / s"


def _after(check: Callable[..., None]) -> Callable[[F], F]:
    """Refuse unknown arguments and what ``check`` refuses, then call; ``unwrap`` gives the function without that."""

    def decorate(function: F) -> F:
        @wraps(function)
        def checked(*args: Any, **kwargs: Any) -> Any:
            names = signature(function).parameters
            for name in kwargs.keys() - names.keys():
                msg = f"{name}={kwargs[name]!r} is not accepted: the arguments are {', '.join(names)}"
                raise TypeError(msg)
            given = signature(function).bind(*args, **kwargs)
            given.apply_defaults()
            check(*(given.arguments[name] for name in ("inputs", "amax", "num_bits", "unsigned")))
            return function(*args, **kwargs)

        return cast("F", checked)

    return decorate


def _check_array(_inputs: Array, amax: Any, _num_bits: Any, _unsigned: bool) -> None:
    if not hasattr(amax, "dtype"):
        msg = f"amax={amax!r} is not accepted: give an array"
        raise AttributeError(msg)


def _check_width(_inputs: Array, _amax: Any, num_bits: Any, _unsigned: bool) -> None:
    if not isinstance(num_bits, int):
        msg = f"num_bits={num_bits!r} is not accepted: give an integer of 1 or more"
        raise TypeError(msg)
    if num_bits < 1:
        msg = f"num_bits={num_bits} is not accepted: give an integer of 1 or more"
        raise ValueError(msg)


def _check_minima(inputs: Array, amax: Any, num_bits: Any, unsigned: bool) -> None:
    """What 2.2.1 looks at: the least of amax, and of unsigned inputs, which is NaN as soon as one is."""
    _check_array(inputs, amax, num_bits, unsigned)
    if amax.size == 0 or (unsigned and inputs.size == 0):
        msg = f"inputs of shape {inputs.shape}, amax of shape {amax.shape} is not accepted: an empty one has no minimum"
        raise RuntimeError(msg)
    if unsigned and inputs.min() < 0:
        msg = f"inputs with the value {inputs.min()} is not accepted with unsigned=True: give values of 0 or more"
        raise TypeError(msg)
    if amax.min() < 0:
        msg = f"amax={amax} is not accepted: give values of 0 or more"
        raise ValueError(msg)


def _check(inputs: Array, amax: Any, num_bits: Any, unsigned: bool) -> None:
    """Every value of every argument; an empty one is refused last."""
    _check_array(inputs, amax, num_bits, unsigned)
    _check_width(inputs, amax, num_bits, unsigned)
    if inputs.dtype not in FLOATS:
        msg = f"inputs of dtype {inputs.dtype} is not accepted: give one of {', '.join(map(str, FLOATS))}"
        raise TypeError(msg)
    if unsigned and (negative := inputs[inputs < 0]).size:
        msg = f"inputs with the value {negative[0]} is not accepted with unsigned=True: give values of 0 or more"
        raise TypeError(msg)
    if not (amax >= 0).all():
        msg = f"amax={amax} is not accepted: give values of 0 or more"
        raise ValueError(msg)
    try:
        np.broadcast_to(amax, inputs.shape)
    except ValueError:
        msg = f"amax of shape {amax.shape} is not accepted: it does not broadcast to inputs of shape {inputs.shape}"
        raise RuntimeError(msg) from None
    _check_minima(inputs, amax, num_bits, unsigned)


def operands(x: Array, s: Array) -> tuple[Array, Array, "np.dtype[Any]"]:
    """Both in the dtype that an operation of torch computes in, and the dtype to which it rounds its result."""
    try:
        np.broadcast_shapes(x.shape, s.shape)
    except ValueError:
        msg = f"amax of shape {s.shape} is not accepted: it does not broadcast with inputs of shape {x.shape}"
        raise RuntimeError(msg) from None
    fixed = {(True, False): x.dtype, (False, True): s.dtype}.get((x.ndim > 0, s.ndim > 0))
    if x.dtype not in FLOATS:
        fixed = s.dtype if s.ndim else np.dtype(np.float32)
    dtype = np.promote_types(x.dtype, s.dtype) if fixed is None else fixed
    compute = np.promote_types(dtype, np.float32)
    return x.astype(compute), s.astype(compute), dtype


@formula(
    "pytorch_quantization.tensor_quant_function",
    equation=_TENSOR_QUANT,
    basis=AsComputed(dtype="float32; the dtypes of inputs and amax promoted where they are not float32 or float16"),
    source="pytorch_quantization.tensor_quant.TensorQuantFunction.forward; dtypes other than float32: measured",
)
@_after(_check)
def tensor_quant(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> tuple[Array, Array]:
    """The codes of ``inputs`` and the scale, so that codes / scale dequantizes.

    Args:
        inputs: float32, float16, bfloat16 or float64 of any shape.
        amax: floats of 0 or more, in reals, that broadcast to ``inputs``; what the highest code stands for.
        num_bits: width of the codes, 1 or more.
        unsigned: the codes are 0 to 2**num_bits - 1.
        narrow_range: a signed grid leaves out its lowest code.

    Returns:
        Codes, floats of the shape of ``inputs`` and the dtype that it and ``amax`` promote to, float16 where ``inputs``
        is; an ``amax`` without dimensions widens nothing. And the scale, codes per real, in the dtype of ``inputs`` and
        the shape of ``amax``.

    Raises:
        AttributeError: ``amax`` is no array.
        TypeError: ``inputs`` is of no float dtype, or has a negative value and ``unsigned`` is set; ``num_bits`` is
            no integer.
        ValueError: ``num_bits`` is below 1; ``amax`` has a negative value or NaN, or is so small that float16 does not
            hold the scale.
        RuntimeError: ``amax`` does not broadcast to ``inputs``, or is empty; or ``inputs`` is, and ``unsigned`` is set.
    """
    x = inputs.astype(np.float32) if inputs.dtype == _HALF else inputs
    a = amax.astype(np.float32) if amax.dtype == _HALF else amax
    maxb = np.asarray(np.ldexp(1.0, int(num_bits) - 1 + unsigned) - 1.0, np.float32)
    minb = np.float32(0) if unsigned else -maxb if narrow_range else -maxb - 1
    with np.errstate(all="ignore"):
        u, v, dtype = operands(maxb, a)
        scale = (u.astype(dtype).astype(u.dtype) / v).astype(dtype)
        tiny = (a <= SMALLEST_AMAX) & (a.min() <= SMALLEST_AMAX)
        u, v, dtype = operands(x, np.where(tiny, scale.dtype.type(0), scale))
        q = np.rint((u * v).astype(dtype))
        lo, hi = np.asarray(minb).astype(dtype), maxb.astype(dtype)
        q = np.where(q < lo, lo, q)
        q = np.where(q > hi, hi, q)
        scale = np.where(tiny, scale.dtype.type(1), scale)
        if inputs.dtype == _HALF and scale.max() > np.finfo(_HALF).max:
            msg = f"amax={amax} is not accepted: the scale is too large for float16"
            raise ValueError(msg)
        return (q.astype(_HALF) if inputs.dtype == _HALF else q), scale.astype(inputs.dtype)


@formula(
    "pytorch_quantization.legacy_fake_tensor_quant_function",
    equation=_FAKE,
    basis=AsComputed(dtype="as tensor_quant_function; s is rounded to the inputs' dtype before it divides"),
    source="pytorch_quantization.tensor_quant.LegacyFakeTensorQuantFunction.forward: measured",
)
@formula(
    "pytorch_quantization.fake_tensor_quant_function",
    equation=_FAKE,
    basis=AsComputed(dtype="as tensor_quant_function; s is rounded to the inputs' dtype before it divides"),
    source="pytorch_quantization.tensor_quant.FakeTensorQuantFunction.forward; its CPU path: measured",
)
@_after(_check)
def fake_tensor_quant(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """``inputs`` on the grid: codes over scale.

    Arguments and errors as in ``tensor_quant``, but for the scale in float16.
    """
    reals = inputs.astype(np.float32) if inputs.dtype == _HALF else inputs
    limit = amax.astype(np.float32) if amax.dtype == _HALF else amax
    top = np.asarray(np.ldexp(1.0, int(num_bits) - 1 + unsigned) - 1.0, np.float32)
    bottom = np.float32(0) if unsigned else -top if narrow_range else -top - 1
    with np.errstate(all="ignore"):
        n, d, dtype = operands(top, limit)
        scale = (n.astype(dtype).astype(n.dtype) / d).astype(dtype)
        small = (limit <= SMALLEST_AMAX) & (limit.min() <= SMALLEST_AMAX)
        n, d, dtype = operands(reals, np.where(small, scale.dtype.type(0), scale))
        codes = np.rint((n * d).astype(dtype))
        codes = np.where(codes < bottom.astype(dtype), bottom.astype(dtype), codes)
        codes = np.where(codes > top.astype(dtype), top.astype(dtype), codes)
        codes = codes.astype(_HALF) if inputs.dtype == _HALF else codes
        scale = np.where(small, scale.dtype.type(1), scale).astype(inputs.dtype)
        n, d, dtype = operands(codes, scale)
        return np.asarray(n / d).astype(dtype)


@formula(
    "pytorch_quantization.tensor_quant_function@2.2.1",
    equation=_TENSOR_QUANT,
    basis=AsComputed(dtype="as tensor_quant_function"),
    source="pytorch-quantization 2.2.1 on a CPU: measured",
)
@_after(_check_minima)
def tensor_quant_2_2_1(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> tuple[Array, Array]:
    """``tensor_quant``, but any width, integer inputs, NaN in amax or beside a negative value, and wider amax pass."""
    codes, scale = unwrap(tensor_quant)(inputs, amax, num_bits, unsigned, narrow_range)
    return codes, scale


@formula(
    "pytorch_quantization.legacy_fake_tensor_quant_function@2.2.1",
    equation=_FAKE,
    basis=AsComputed(dtype="as fake_tensor_quant_function"),
    source="pytorch-quantization 2.2.1 on a CPU: measured",
)
@formula(
    "pytorch_quantization.fake_tensor_quant_function@2.2.1",
    equation=_FAKE,
    basis=AsComputed(dtype="as fake_tensor_quant_function"),
    source="pytorch-quantization 2.2.1 on a CPU: measured",
)
@_after(_check_minima)
def fake_tensor_quant_2_2_1(
    inputs: Array, amax: Array, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """``fake_tensor_quant``, but any width, integers, NaN in amax or beside a negative value, and wider amax pass."""
    return np.asarray(unwrap(fake_tensor_quant)(inputs, amax, num_bits, unsigned, narrow_range))


@formula(
    "pytorch_quantization.legacy_fake_tensor_quant_function@modelopt-0.47",
    equation=_FAKE,
    basis=AsComputed(dtype="float32, then rounded to the inputs' dtype"),
    source="nvidia-modelopt 0.47, _tensor_quant: measured",
)
@formula(
    "pytorch_quantization.fake_tensor_quant_function@modelopt-0.47",
    equation=_FAKE,
    basis=AsComputed(dtype="float32, then rounded to the inputs' dtype"),
    source="nvidia-modelopt 0.47, FakeTensorQuantFunction on a CPU: measured",
)
@_after(_check_array)
def fake_tensor_quant_modelopt_0_47(
    inputs: Array, amax: Any, num_bits: int = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """As 2.2.1, but all in float32 until the result is rounded: the scale is never rounded to ``inputs``' dtype."""
    f32 = np.float32
    with np.errstate(all="ignore"):
        reals = fake_tensor_quant_2_2_1(inputs.astype(f32), amax.astype(f32), num_bits, unsigned, narrow_range)
        return reals.astype(inputs.dtype)


@formula(
    "pytorch_quantization.fake_tensor_quant_function@cuda-2.2.1",
    equation=_FAKE,
    basis=AsComputed(dtype="float32, then rounded to the inputs' dtype"),
    source="pytorch-quantization 2.2.1, tensor_quant_gpu.cu: read from source, not run",
)
@_after(_check_width)
def fake_tensor_quant_cuda_2_2_1(
    inputs: Array, amax: Any, num_bits: Any = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """The grid is narrow always, an amax of 2**-24 counts, the scale stays in float32.

    The CUDA kernel, from its source. An amax of one dimension runs along axis 0. What the kernel does not take (other
    dtypes of either, amax along two axes) goes the way of the CPU; what trips its assertions is a RuntimeError, a
    negative shift a ValueError.
    """
    several = hasattr(amax, "dtype") and amax.size != 1 and amax.size not in amax.shape
    if not hasattr(amax, "dtype") or several or np.float32 != amax.dtype or inputs.dtype not in FLOATS:
        return fake_tensor_quant_2_2_1(inputs, amax, num_bits, unsigned, narrow_range)
    axis = 0 if amax.size == 1 else amax.shape.index(amax.size)
    if amax.size not in {1, inputs.shape[axis] if inputs.ndim > axis else 0}:
        msg = f"amax of shape {amax.shape} is not accepted: inputs of shape {inputs.shape} has no such axis {axis}"
        raise RuntimeError(msg)
    if not (amax >= 0).all() or (unsigned and not (inputs >= 0).all()):
        msg = f"amax={amax}, inputs={inputs} is not accepted: the kernel asserts values of 0 or more"
        raise RuntimeError(msg)
    with np.errstate(all="ignore"):
        a = amax.reshape([-1 if d == axis else 1 for d in range(inputs.ndim)])
        x = inputs.astype(np.float32)
        bound = np.float32((1 << (num_bits - 1 + unsigned)) - 1)
        scale = bound / a
        q = np.rint(x * scale)
        q = np.where(q > bound, bound, q)
        q = np.where(q < (lo := np.float32(0) if unsigned else -bound), lo, q)
        return np.where(a < SMALLEST_AMAX, np.float32(0), q / scale).astype(inputs.dtype)
