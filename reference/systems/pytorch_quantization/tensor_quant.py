"""pytorch-quantization: ``tensor_quant``, ``fake_tensor_quant``. Codes per real, s = qmax / amax, no zero point."""

from dataclasses import dataclass, replace
from typing import Any

import ml_dtypes
import numpy as np

from halfeven.reference.affine import spread
from halfeven.reference.behaviour import Behaviour, choice, roundings
from halfeven.reference.blocks import Array, BlockSize
from halfeven.reference.catalogue import AffineView, AsComputed, formula
from halfeven.reference.grid import Grid
from halfeven.reference.model import EvaluationModel
from halfeven.reference.profile import Profile
from halfeven.reference.readings import Readings
from halfeven.reference.rounding import ROUNDINGS

__all__ = [
    "FLOATS",
    "MODELOPT",
    "PYTORCH_QUANTIZATION",
    "TENSOR_QUANT",
    "TensorQuant",
    "check_width",
    "fake_tensor_quant",
    "operands",
    "tensor_quant",
]


@dataclass(frozen=True)
class TensorQuant(Behaviour):
    """The choices in giving codes and scale of an absolute maximum."""

    rounding: str = roundings("the product")
    scale: str = choice({
        "codes-per-real": "multiplies by the highest code over amax",
        "real-per-code": "divides by amax over the highest code",
    })  # fmt: skip
    tiny: str = choice({
        "at": "gives every value the code 0 for an amax of 2^-24 and below",
        "below": "gives every value the code 0 for an amax below 2^-24",
        "used": "uses an amax however small",
    })  # fmt: skip
    grid: str = choice({
        "asked": "leaves out the lowest signed code where narrow_range asks for it",
        "narrow": "leaves out the lowest signed code always",
        "full": "uses the lowest signed code always",
    })  # fmt: skip
    arithmetic: str = choice({
        "promoted": "rounds every operation to the dtype that torch promotes inputs and amax to",
        "float32": "computes in float32, and rounds the result alone to the dtype of inputs",
    })  # fmt: skip
    checks: str = choice({
        "all": "checks every value of every argument",
        "minima": "checks only the least value of amax and of unsigned inputs",
    })  # fmt: skip


TENSOR_QUANT = TensorQuant()
_2_2_1 = TensorQuant(checks="minima")
MODELOPT = replace(_2_2_1, arithmetic="float32")

MODEL = EvaluationModel(division="multiply-by-q-per-real", compute="float32", sign="none", product="narrowed")
# In float32 they are one: the scale is float32, and so is the product.
_GAP = "the document speaks of float32 alone, and leaves open in which dtype codes of other inputs become reals again"

SMALLEST_AMAX = np.float32(2.0**-24)
"""At this amax and below every finite value has the code 0, and the scale returned is 1."""

FLOATS = tuple(np.dtype(t) for t in (np.float32, np.float16, ml_dtypes.bfloat16, np.float64))
"""The dtypes that the library has been measured with; its document speaks of the first."""

_HALF = np.dtype(np.float16)


def _codes(b: TensorQuant, x: Array, amax: Array, bottom: np.float32, top: np.float32) -> tuple[Array, Array]:
    """Codes and codes per real; of a 0-d operand and one with dimensions the latter's dtype is computed in."""
    n, d, dtype = operands(np.asarray(top), amax)
    n = n.astype(dtype).astype(n.dtype)
    scale = (n / d).astype(dtype)
    small = {"at": amax <= SMALLEST_AMAX, "below": amax < SMALLEST_AMAX, "used": np.zeros(amax.shape, np.bool_)}[b.tiny]
    if b.checks == "minima" and np.isnan(amax).any():  # NaN hides the least, and so that any is small
        small = np.zeros(amax.shape, np.bool_)
    if b.scale == "real-per-code":
        v, s, dtype = operands(x, (d / n).astype(dtype))
        product = np.where(small, v.dtype.type(0), v / s)
    else:
        v, s, dtype = operands(x, np.where(small, scale.dtype.type(0), scale))
        product = v * s
    q = ROUNDINGS[b.rounding](product.astype(dtype))
    lo, hi = bottom.astype(dtype), top.astype(dtype)
    q = np.where(q < lo, lo, q)
    return np.where(q > hi, hi, q), np.where(small, scale.dtype.type(1), scale)


def _codes_per_real(amax: Array, grid: Grid) -> Array:
    with np.errstate(all="ignore"):
        scale = np.float32(grid.qmax) / amax.astype(np.float32)
        return np.where(amax <= SMALLEST_AMAX, np.float32(1), scale)


PYTORCH_QUANTIZATION = Profile(
    name="pytorch-quantization",
    title="clamp(round(x * s), qmin, qmax) with s = qmax / amax; q / s",
    source="pytorch-quantization: pytorch_quantization.tensor_quant",
    model=MODEL,
    parameters=("amax",),
    dtypes=("float32", "float16"),
    codes="input",
    operations=("quantize", "fake_quantize"),
    grids=tuple(Grid.from_bitwidth(b, signed=True, narrow=narrow) for narrow in (True, False) for b in range(2, 17)),
    model_scale=_codes_per_real,
    smallest=float(SMALLEST_AMAX),
    readings=Readings(_GAP, (replace(MODEL, product="output"),)),
)


# The documented functions; amax broadcasts to the inputs. In torch a 0-d operand does not widen one with dimensions.

_TENSOR_QUANT = (
    r"s = (2^{b-1+u} - 1) / \mathrm{amax},\quad q = \mathrm{clamp}(\lceil x * s \rfloor,\ q_{min},\ q_{max})"
)
_FAKE = _TENSOR_QUANT + r",\quad \hat x = q / s"
_MEASURED = "pytorch-quantization 2.2.1 on a CPU: measured"


def _check(b: TensorQuant, inputs: Array, amax: Any, num_bits: Any, unsigned: bool) -> None:
    if not hasattr(amax, "dtype"):
        msg = f"amax={amax!r} is not accepted: give an array"
        raise AttributeError(msg)
    if b.checks == "all":
        _check_values(inputs, amax, num_bits, unsigned)
    if amax.size == 0 or (unsigned and inputs.size == 0):
        msg = f"inputs of shape {inputs.shape}, amax of shape {amax.shape} is not accepted: an empty one has no minimum"
        raise RuntimeError(msg)
    if unsigned and inputs.min() < 0:  # NaN as soon as one is
        msg = f"inputs with the value {inputs.min()} is not accepted with unsigned=True: give values of 0 or more"
        raise TypeError(msg)
    if amax.min() < 0:
        msg = f"amax={amax} is not accepted: give values of 0 or more"
        raise ValueError(msg)


def _check_values(inputs: Array, amax: Array, num_bits: Any, unsigned: bool) -> None:
    check_width(num_bits)
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


def check_width(num_bits: Any) -> None:
    """Refuse a width of codes that is no integer of 1 or more."""
    if not isinstance(num_bits, int):
        msg = f"num_bits={num_bits!r} is not accepted: give an integer of 1 or more"
        raise TypeError(msg)
    if num_bits < 1:
        msg = f"num_bits={num_bits} is not accepted: give an integer of 1 or more"
        raise ValueError(msg)


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
    if fixed is None:  # two dtypes of 16 bits have none in common but a wider one
        fixed = x.dtype if x.dtype == s.dtype else np.promote_types(np.promote_types(x.dtype, np.float32), s.dtype)
    compute = np.promote_types(fixed, np.float32)
    return x.astype(compute), s.astype(compute), fixed


def _arguments(
    x: Array, amax: Array, _zero: Array, grid: Grid, block_size: BlockSize | None, _dtype: object = None
) -> dict[str, Any]:
    if not amax.size:
        msg = f"amax of shape {amax.shape} is not accepted: give one per block, and no empty one"
        raise ValueError(msg)
    narrow = grid.qmin == -grid.qmax
    return {"inputs": x, "amax": spread(amax, x.shape, block_size), "num_bits": grid.bits, "narrow_range": narrow}


@formula(
    "pytorch-quantization/tensor_quant",
    equation=_TENSOR_QUANT,
    basis=AsComputed(dtype="float32; the dtypes of inputs and amax promoted where they are not float32 or float16"),
    source="pytorch_quantization.tensor_quant.TensorQuantFunction.forward; dtypes other than float32: measured",
    behaviour=TENSOR_QUANT,
    versions={"2.2.1": (_2_2_1, _MEASURED)},
    affine=AffineView("pytorch-quantization", "quantize", _arguments, lambda returned: returned[0]),
)
def tensor_quant(
    b: TensorQuant,
    inputs: Array,
    amax: Array,
    num_bits: int = 8,
    unsigned: bool = False,
    narrow_range: bool = True,
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
    codes, scale = _codes_and_scale(b, inputs, amax, num_bits, unsigned, narrow_range)
    with np.errstate(all="ignore"):
        if inputs.dtype == _HALF and scale.max() > np.finfo(_HALF).max:
            msg = f"amax={amax} is not accepted: the scale is too large for float16"
            raise ValueError(msg)
        return codes if b.arithmetic == "promoted" else codes.astype(inputs.dtype), scale.astype(inputs.dtype)


@formula(
    "pytorch-quantization/legacy_fake_tensor_quant",
    equation=_FAKE,
    basis=AsComputed(dtype="as tensor_quant_function; s is rounded to the inputs' dtype before it divides"),
    source="pytorch_quantization.tensor_quant.LegacyFakeTensorQuantFunction.forward: measured",
    behaviour=TENSOR_QUANT,
    versions={
        "2.2.1": (_2_2_1, _MEASURED),
        "modelopt-0.47": (MODELOPT, "nvidia-modelopt 0.47, _tensor_quant: measured"),
    },
)
@formula(
    "pytorch-quantization/fake_tensor_quant",
    equation=_FAKE,
    basis=AsComputed(dtype="as tensor_quant_function; s is rounded to the inputs' dtype before it divides"),
    source="pytorch_quantization.tensor_quant.FakeTensorQuantFunction.forward; its CPU path: measured",
    behaviour=TENSOR_QUANT,
    versions={
        "2.2.1": (_2_2_1, _MEASURED),
        "modelopt-0.47": (MODELOPT, "nvidia-modelopt 0.47, FakeTensorQuantFunction on a CPU: measured"),
    },
    affine=AffineView("pytorch-quantization", "fake_quantize", _arguments),
)
def fake_tensor_quant(
    b: TensorQuant,
    inputs: Array,
    amax: Array,
    num_bits: int = 8,
    unsigned: bool = False,
    narrow_range: bool = True,
) -> Array:
    """``inputs`` on the grid: codes over scale.

    Arguments and errors as in ``tensor_quant``, but for the scale in float16.
    """
    codes, scale = _codes_and_scale(b, inputs, amax, num_bits, unsigned, narrow_range)
    with np.errstate(all="ignore"):
        n, d, dtype = operands(codes, scale if b.arithmetic == "float32" else scale.astype(inputs.dtype))
        reals = np.asarray(n / d).astype(dtype)
        return reals.astype(inputs.dtype) if b.arithmetic == "float32" else reals


def _codes_and_scale(
    b: TensorQuant, inputs: Array, amax: Array, num_bits: int, unsigned: bool, narrow_range: bool
) -> tuple[Array, Array]:
    """Codes, in float16 where the inputs are and the dtype is promoted, and codes per real in the dtype computed in."""
    _check(b, inputs, amax, num_bits, unsigned)
    wide = (inputs.dtype, amax.dtype) if b.arithmetic == "float32" else (_HALF,)
    x, a = (v.astype(np.float32) if v.dtype in wide else v for v in (inputs, amax))
    narrow = narrow_range if b.grid == "asked" else b.grid == "narrow"
    with np.errstate(all="ignore"):
        top = np.float32(np.ldexp(1.0, int(num_bits) - 1 + unsigned) - 1.0)
        codes, scale = _codes(b, x, a, np.float32(0) if unsigned else -top if narrow else -top - np.float32(1), top)
        half = inputs.dtype == _HALF and b.arithmetic == "promoted"
        return codes.astype(_HALF) if half else codes, scale


@formula(
    "pytorch-quantization/fake_tensor_quant@cuda-2.2.1",
    equation=_FAKE,
    basis=AsComputed(dtype="float32, then rounded to the inputs' dtype"),
    source="pytorch-quantization 2.2.1, tensor_quant_gpu.cu: read from source, not run",
)
def fake_tensor_quant_cuda_2_2_1(
    inputs: Array, amax: Any, num_bits: Any = 8, unsigned: bool = False, narrow_range: bool = True
) -> Array:
    """The grid is narrow always, an amax of 2**-24 counts, the scale stays in float32.

    The CUDA kernel, from its source. An amax of one dimension runs along axis 0. What the kernel does not take (other
    dtypes of either, amax along two axes) goes the way of the CPU; what trips its assertions is a RuntimeError, a
    negative shift a ValueError. No choice says which of two paths an amax takes, so that this is a function.
    """
    check_width(num_bits)
    several = hasattr(amax, "dtype") and amax.size != 1 and amax.size not in amax.shape
    if not hasattr(amax, "dtype") or several or np.float32 != amax.dtype or inputs.dtype not in FLOATS:
        return fake_tensor_quant(_2_2_1, inputs, amax, num_bits, unsigned, narrow_range)
    axis = 0 if amax.size == 1 else amax.shape.index(amax.size)
    if amax.size not in {1, inputs.shape[axis] if inputs.ndim > axis else 0}:
        msg = f"amax of shape {amax.shape} is not accepted: inputs of shape {inputs.shape} has no such axis {axis}"
        raise RuntimeError(msg)
    if not (amax >= 0).all() or (unsigned and not (inputs >= 0).all()):
        msg = f"amax={amax}, inputs={inputs} is not accepted: the kernel asserts values of 0 or more"
        raise RuntimeError(msg)
    a = amax.reshape([-1 if d == axis else 1 for d in range(inputs.ndim)])
    with np.errstate(all="ignore"):
        top = np.float32((1 << (num_bits - 1 + unsigned)) - 1)
        bottom = np.float32(0) if unsigned else -top
        codes, scale = _codes(replace(TENSOR_QUANT, tiny="below"), inputs.astype(np.float32), a, bottom, top)
        return np.where(a < SMALLEST_AMAX, np.float32(0), codes / scale).astype(inputs.dtype)
