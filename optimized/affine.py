"""Integer affine quantization of torch tensors: q = clamp(half_even(x / s) + z, qmin, qmax), x̂ = (q − z)·s.

Scales are real per code. The codes are those of the correctly rounded quotient x / s, ties go to the even integer, the
zero point is added after the rounding, and the clamp is last: the formulas of AIMET's ``affine`` functions, bit for
bit, with ``offset = -zero_point``. The arithmetic runs in ``x.dtype`` where that dtype holds the grid with a quarter of
a step to spare, else in float32, else in float64; scale and zero point are cast to that dtype.

Common to the three functions:

- ``x`` is float32, float64, float16 or bfloat16, of any shape and strides, on any device.
- ``scale`` is a float tensor; a number of Python or NumPy is taken as a 0-d float32 tensor. Its values are not checked.
- ``zero_point`` is an integer or float tensor, or an int of Python or NumPy. It is not rounded: a fraction stays in
  float codes.
- ``block_size`` None: scale and zero point broadcast to ``x`` (0-d per tensor, one entry per index along an axis
  with the other dimensions kept per channel). Else it has one entry B_d per dimension of ``x``, element j belongs
  to block i_d = ⌊j_d / B_d⌋, and scale and zero point have shape ⌈n_d / B_d⌉, so the last block may be short;
  a number serves all, a 0-d tensor where there is one block.
- ``out`` is written in place, whatever its strides, and returned. It has the result's shape, dtype and device,
  may be ``x`` itself, and otherwise shares no memory with the arguments. Where ``out`` is given and ``dtype`` is
  not, the result's dtype is that of ``out``, as if ``dtype`` had named it. Without ``out`` the result has the memory
  format that ``torch.empty_like(x)`` gives; above some 32 MiB the first touch of such a fresh result costs several
  times the arithmetic.
- Gradients flow to ``x`` (or ``q``), ``scale`` and ``zero_point``, straight through the rounding: where the rounded
  code lies in [qmin, qmax], its derivative by ``x`` is 1 / scale. Integer codes have none, and ``out`` records none.

Each raises TypeError for an argument of a type or dtype that is not accepted, ValueError for a value, RuntimeError for
shapes, devices and memory that do not fit together, or ``out`` where a gradient is wanted, and NotImplementedError for
a tangent of torch's forward mode, which is not looked for with ``out``.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from halfeven.optimized import arguments, operators
from halfeven.optimized.arguments import dtypes, memory

__all__ = ["dequantize", "quantize", "quantize_dequantize"]

# What the operators raise, and torch for what they do not take: then the arguments are gone through for an error of the
# documented type. In advance only what torch would take for something else is refused, such as a bool for an int.
_REFUSED = (RuntimeError, TypeError, ValueError, OverflowError, AttributeError)


def quantize(
    x: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int,
    *,
    qmin: int,
    qmax: int,
    block_size: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Codes of ``x``, clamp(half_even(x / scale) + zero_point, qmin, qmax), of ``x``'s shape.

    Args:
        x: the reals.
        scale: real per code.
        zero_point: the code of real 0.
        qmin: the lowest code.
        qmax: the highest code.
        block_size: elements per block along each dimension.
        dtype: ``x.dtype`` for float codes, or int8, uint8, int16, uint16, int32; None for the dtype of ``out``, or for
            ``x.dtype`` without it. It must hold the grid.
        out: where to write, in one of these dtypes.

    Float codes: NaN stays NaN, and a code of -0.0 stays so where the zero point is the integer 0 (or -0.0: a float
    +0.0 is an offset of -0.0, and -0.0 − -0.0 = +0.0). Integer codes: the code of NaN is the zero point limited to
    the grid, a choice of this function, since no document states one; a fraction that the zero point leaves in a
    code is dropped toward zero. Infinities become the ends of the grid.

    Raises:
        TypeError: ``x``, ``scale`` or ``zero_point`` is not a tensor of an accepted dtype; ``qmin`` or ``qmax`` is
            no int; ``dtype``, or that of ``out`` alone, is not accepted; ``out`` has another than ``dtype``.
        ValueError: ``qmin`` is above ``qmax``; the dtype of the codes does not hold the grid; ``block_size`` has
            another length than ``x`` has dimensions, or an entry below 1.
        RuntimeError: a shape or device does not fit, or ``out`` overlaps itself or an argument.
    """
    if not type(qmin) is type(qmax) is int:
        arguments.check_grid(qmin, qmax)
    s, z, blocks = arguments.as_tensors("x", x, scale, zero_point, block_size)
    if dtype is not None and type(dtype) is not torch.dtype:
        dtypes.codes_dtype(x.dtype, dtype, qmin, qmax)
    codes = x.dtype if dtype is None else dtype
    if out is not None and (not isinstance(out, Tensor) or out.dtype != codes):
        arguments.check_reals("x", x)
        codes = _dtype_of_out(out, dtype, codes, dtypes.CODES, {"x": x})
    try:
        return operators.quantize(x, s, z, qmin, qmax, block_size=blocks, dtype=dtype, out=out)
    except _REFUSED:
        arguments.check_reals("x", x)
        arguments.check_grid(qmin, qmax)
        dtypes.codes_dtype(x.dtype, codes, qmin, qmax)
        dtypes.compute_dtype(x.dtype, qmin, qmax)
        arguments.check_parameters(("x", x), s, z, blocks, out, codes)
        raise


def dequantize(
    q: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int,
    *,
    block_size: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Reals of the codes ``q``, (q − zero_point)·scale, of ``q``'s shape.

    Codes, zero point and scale are each rounded to the result's dtype, and so are the difference and the product.

    Args:
        q: the codes, in a float dtype or in int8, uint8, int16, uint16, int32 or int64. They are not limited.
        scale: real per code.
        zero_point: the code of real 0.
        block_size: elements per block along each dimension.
        dtype: float32, float64, float16 or bfloat16; None for the dtype of ``out``, or without it for that of ``q``
            where it is one of these, else of ``scale`` (float32 for a Python number).
        out: where to write, in one of these dtypes.

    Raises:
        TypeError: ``q``, ``scale`` or ``zero_point`` is not a tensor of an accepted dtype; ``dtype``, or that of
            ``out`` alone, is not accepted; ``out`` has another than ``dtype``.
        ValueError: ``block_size`` has another length than ``q`` has dimensions, or an entry below 1.
        RuntimeError: a shape or device does not fit, or ``out`` overlaps itself or an argument.
    """
    s, z, blocks = arguments.as_tensors("q", q, scale, zero_point, block_size)
    reals = dtypes.reals_dtype(q.dtype, s.dtype, dtype)
    if out is not None and (not isinstance(out, Tensor) or out.dtype != reals):
        arguments.check_codes(q)
        reals = _dtype_of_out(out, dtype, reals, dtypes.REALS, {"q": q})
    try:
        return operators.dequantize(q, s, z, block_size=blocks, dtype=reals, out=out)
    except _REFUSED:
        arguments.check_codes(q)
        arguments.check_parameters(("q", q), s, z, blocks, out, reals)
        raise


def quantize_dequantize(
    x: Tensor,
    scale: Tensor | float,
    zero_point: Tensor | int,
    *,
    qmin: int,
    qmax: int,
    block_size: Sequence[int] | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """``x`` on the grid, (clamp(half_even(x / scale) + zero_point, qmin, qmax) − zero_point)·scale, in ``x.dtype``.

    The whole computation runs in the dtype of the arithmetic and is rounded to ``x.dtype`` once, at the end; so it
    may differ from ``dequantize(quantize(x))``, which rounds to ``x.dtype`` between the two. NaN stays NaN.

    Args:
        x: the reals.
        scale: real per code.
        zero_point: the code of real 0.
        qmin: the lowest code.
        qmax: the highest code.
        block_size: elements per block along each dimension.
        out: where to write.

    Raises:
        TypeError: ``x``, ``scale`` or ``zero_point`` is not a tensor of an accepted dtype; ``qmin`` or ``qmax`` is
            no int; ``out`` has another dtype.
        ValueError: ``qmin`` is above ``qmax``; float64 does not hold the grid; ``block_size`` has another length
            than ``x`` has dimensions, or an entry below 1.
        RuntimeError: a shape or device does not fit, or ``out`` overlaps itself or an argument.
    """
    if not type(qmin) is type(qmax) is int:
        arguments.check_grid(qmin, qmax)
    s, z, blocks = arguments.as_tensors("x", x, scale, zero_point, block_size)
    try:
        return operators.quantize_dequantize(x, s, z, qmin, qmax, block_size=blocks, out=out)
    except _REFUSED:
        arguments.check_reals("x", x)
        arguments.check_grid(qmin, qmax)
        dtypes.compute_dtype(x.dtype, qmin, qmax)
        arguments.check_parameters(("x", x), s, z, blocks, out, x.dtype)
        raise


def _dtype_of_out(
    out: Tensor,
    dtype: torch.dtype | None,
    result: torch.dtype,
    accepted: tuple[torch.dtype, ...],
    inputs: Mapping[str, Tensor],
) -> torch.dtype:
    """The result's dtype for an ``out`` that is not of dtype ``result``, which it would be without ``out``.

    It is ``out``'s where no ``dtype`` is given and ``out`` is of one of the ``accepted``.

    Raises:
        TypeError: ``out`` is no tensor, or of a dtype that is not accepted.
    """
    if dtype is not None or not isinstance(out, Tensor):
        memory.check_out(out, result, inputs)
    elif out.dtype not in accepted:
        others = dtypes.names([d for d in accepted if d != result])
        msg = f"out of dtype {out.dtype} is not accepted: give one of {dtypes.names((result,))}, {others}"
        raise TypeError(msg)
    return out.dtype
