"""Integer affine quantization of torch tensors: q = clamp(half_even(x / s) + z, qmin, qmax), x̂ = (q − z)·s.

Scales are real per code. The division is a true one, ties go to the even integer, the zero point is added after
the rounding, and the clamp is last: the formulas of AIMET's ``affine`` functions, bit for bit, with
``offset = -zero_point``. The arithmetic runs in ``x.dtype`` where that dtype holds the grid with a quarter of a
step to spare, else in float32, else in float64; scale and zero point are cast to that dtype.

Common to the three functions:

- ``x`` is float32, float64, float16 or bfloat16, of any shape and strides, on any device.
- ``scale`` is a float tensor; a Python number is taken as a 0-d float32 tensor. Its values are not checked.
- ``zero_point`` is an integer or float tensor, or a Python int. It is not rounded: a fraction stays in float codes.
- ``block_size`` None: scale and zero point broadcast to ``x`` (0-d per tensor, one entry per index along an axis
  with the other dimensions kept per channel). Else it has one entry B_d per dimension of ``x``, element j belongs
  to block i_d = ⌊j_d / B_d⌋, and scale and zero point have shape ⌈n_d / B_d⌉, so the last block may be short;
  a Python number, or a 0-d tensor where there is one block, serves all.
- ``out`` is written in place, whatever its strides, and returned. It has the result's shape, dtype and device,
  may be ``x`` itself, and otherwise shares no memory with the arguments. Without it the result has the memory
  format that ``torch.empty_like(x)`` gives.
- No gradient is recorded: the result does not require one, even where ``x`` does.

Each raises TypeError for an argument of a type or dtype that is not accepted, ValueError for a value, and
RuntimeError for shapes, devices and memory that do not fit together.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from halfeven.optimized import arguments, eager

__all__ = ["dequantize", "quantize", "quantize_dequantize"]


@torch.no_grad()
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
        dtype: None for float codes in ``x.dtype``, or int8, uint8, int16, uint16, int32. It must hold the grid.
        out: where to write.

    Float codes: NaN stays NaN, and a code of -0.0 stays so where the zero point is the integer 0 (or -0.0: a float
    +0.0 is an offset of -0.0, and -0.0 − -0.0 = +0.0). Integer codes: the code of NaN is the zero point limited to
    the grid, a choice of this function, since no document states one; a fraction that the zero point leaves in a
    code is dropped toward zero. Infinities become the ends of the grid.

    Raises:
        TypeError: ``x``, ``scale`` or ``zero_point`` is not a tensor of an accepted dtype; ``qmin`` or ``qmax`` is
            no int; ``dtype`` is not accepted; ``out`` has another dtype.
        ValueError: ``qmin`` is above ``qmax``; the dtype of the codes does not hold the grid; ``block_size`` has
            another length than ``x`` has dimensions, or an entry below 1.
        RuntimeError: a shape or device does not fit, or ``out`` overlaps itself or an argument.
    """
    arguments.check_reals("x", x)
    arguments.check_grid(qmin, qmax)
    codes = arguments.codes_dtype(x.dtype, dtype, qmin, qmax)
    compute = arguments.compute_dtype(x.dtype, qmin, qmax)
    call = arguments.prepare(("x", x), scale, zero_point, block_size, out, codes, compute)
    eager.quantize(call.x, call.scale, call.offset, qmin, qmax, call.view)
    return call.out


@torch.no_grad()
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
        dtype: float32, float64, float16 or bfloat16; None for the dtype of ``q`` where that is one of these, else
            of ``scale`` (float32 for a Python number).
        out: where to write.

    Raises:
        TypeError: ``q``, ``scale`` or ``zero_point`` is not a tensor of an accepted dtype; ``dtype`` is not
            accepted; ``out`` has another dtype.
        ValueError: ``block_size`` has another length than ``q`` has dimensions, or an entry below 1.
        RuntimeError: a shape or device does not fit, or ``out`` overlaps itself or an argument.
    """
    arguments.check_codes(q)
    reals = arguments.reals_dtype(q.dtype, scale, dtype)
    call = arguments.prepare(("q", q), scale, zero_point, block_size, out, reals, reals)
    eager.dequantize(call.x, call.scale, call.offset, call.view)
    return call.out


@torch.no_grad()
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
    arguments.check_reals("x", x)
    arguments.check_grid(qmin, qmax)
    compute = arguments.compute_dtype(x.dtype, qmin, qmax)
    call = arguments.prepare(("x", x), scale, zero_point, block_size, out, x.dtype, compute)
    eager.quantize_dequantize(call.x, call.scale, call.offset, qmin, qmax, call.view)
    return call.out
