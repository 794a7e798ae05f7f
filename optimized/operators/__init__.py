"""Typed functions over the operators ``torch.ops.halfeven.*``, which ``schemas`` defines.

``affine`` and ``aimet`` are made of these. An operator checks its arguments itself: any implementation may be handed
anything. ``kernels`` has the implementations, in C++ for the CPU where they were built, else in torch operations.

Common to all:

- ``x`` is float32, float64, float16 or bfloat16, of any shape and strides; so is ``scale``, real per code.
- ``zero_point`` is of an integer or float dtype, or None for 0. It is z of x̂ = (q − z)·s, or, with ``offset``, o of
  x̂ = (q + o)·s. An integer zero point of 0 is an offset of +0.0, a float one of +0.0 an offset of -0.0.
- ``block_size`` None: scale and zero point broadcast to ``x``. Else one entry per dimension, element j belongs to block
  ⌊j / B⌋, and the parameters have one entry per block, the last of which may be short.
- Gradients go straight through the rounding: an element is inside where its rounded code lies in [qmin, qmax]. Those
  of parameters are sums, accumulated in float64.
- ``out`` has the result's shape and device. Where it is given its dtype is the result's, whatever ``dtype`` says, and
  no gradient is recorded. It may be ``x`` itself, and otherwise shares no memory with the arguments.

What is not accepted raises an exception that names the argument, its value and what is: a RuntimeError by a compiled
kernel, else a TypeError, a ValueError or a RuntimeError. It is a RuntimeError for ``out`` where a gradient is wanted,
and a NotImplementedError for a tangent of torch's forward mode, which is not looked for with ``out``.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, is_grad_enabled
from torch._C import _increment_version
from torch.compiler import is_compiling

from halfeven.optimized.arguments.dtypes import reals_dtype
from halfeven.optimized.operators.gradients import Eager, Transformed
from halfeven.optimized.operators.registration import transforms_active
from halfeven.optimized.operators.schemas import OPS

__all__ = ["amax", "aminmax", "dequantize", "quantize", "quantize_dequantize"]

# Bound once: each look-up below a namespace of operators costs as much as a check of an argument.
_QUANTIZE_OUT = OPS.quantize_out.default
_DEQUANTIZE_OUT = OPS.dequantize_out.default
_QUANTIZE_DEQUANTIZE_OUT = OPS.quantize_dequantize_out.default
_FORWARD_AD: Any = torch.autograd.forward_ad  # its functions have no types


def quantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    *,
    block_size: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    offset: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Codes clamp(half_even(x / s) − o, qmin, qmax), of ``x``'s shape.

    In ``dtype``: int8, uint8, int16, uint16 or int32, or ``x``'s, as for None. It holds the grid; ``out``, of one of
    the same, overrides it. Errors as above.
    """
    if out is not None:
        return _written(_QUANTIZE_OUT, (x, scale, zero_point, qmin, qmax, block_size, offset, out))
    if _traced(x, scale, zero_point):
        return _differentiable("quantize", x, scale, zero_point, qmin, qmax, block_size, dtype, offset)
    out = torch.empty_like(x, dtype=dtype)
    _QUANTIZE_OUT(x, scale, zero_point, qmin, qmax, block_size, offset, out)
    return out


def dequantize(
    q: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    *,
    block_size: Sequence[int] | None = None,
    dtype: torch.dtype | None = None,
    compute: torch.dtype | None = None,
    offset: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Reals (q + o)·s of ``q``'s shape, computed in ``compute`` (None: the result's dtype), rounded once, at the end.

    ``q`` is of a dtype of ``x``, or int8, uint8, int16, uint16, int32 or int64. The result is in ``dtype``, one of
    those of ``x``, for None in ``q``'s where it is a float, else in ``scale``'s; ``out`` overrides it. Errors as above.
    """
    if out is not None:
        return _written(_DEQUANTIZE_OUT, (q, scale, zero_point, block_size, compute, offset, out))
    if _traced(q, scale, zero_point):
        return _differentiable("dequantize", q, scale, zero_point, block_size, dtype, compute, offset)
    if dtype is None:
        dtype = reals_dtype(q.dtype, scale.dtype, None)
    out = torch.empty_like(q, dtype=dtype)
    _DEQUANTIZE_OUT(q, scale, zero_point, block_size, compute, offset, out)
    return out


def quantize_dequantize(
    x: Tensor,
    scale: Tensor,
    zero_point: Tensor | None,
    qmin: int,
    qmax: int,
    *,
    block_size: Sequence[int] | None = None,
    shift: float = 0.0,
    offset: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """(clamp(half_even(x / s − shift) − o, qmin, qmax) + o + shift)·s, rounded once, at the end.

    In ``x``'s shape and dtype, and so is ``out``; ``shift`` is in codes. Errors as above.
    """
    if out is not None:
        return _written(_QUANTIZE_DEQUANTIZE_OUT, (x, scale, zero_point, qmin, qmax, block_size, shift, offset, out))
    if _traced(x, scale, zero_point):
        return _differentiable("quantize_dequantize", x, scale, zero_point, qmin, qmax, block_size, shift, offset)
    out = torch.empty_like(x)
    _QUANTIZE_DEQUANTIZE_OUT(x, scale, zero_point, qmin, qmax, block_size, shift, offset, out)
    return out


def aminmax(x: Tensor, block_size: Sequence[int] | None = None) -> tuple[Tensor, Tensor]:
    """Least and greatest element, NaN where there is one; -0.0 is below +0.0.

    In ``x``'s dtype: of shape ⌈n / B⌉, or 0-d without blocks, where an ``x`` of no element is an error as above.
    """
    low, high = OPS.aminmax.default(x, block_size)
    return low, high


def amax(x: Tensor, block_size: Sequence[int] | None = None) -> Tensor:
    """Greatest magnitude, NaN where there is one; shape, dtype and errors as ``aminmax``."""
    result: Tensor = OPS.amax.default(x, block_size)
    return result


def _wanted(x: Tensor, scale: Tensor, zero_point: Tensor | None) -> bool:
    """Whether a gradient is wanted."""
    return is_grad_enabled() and (
        x.requires_grad or scale.requires_grad or (zero_point is not None and zero_point.requires_grad)
    )


def _written(operator: Any, given: tuple[Any, ...]) -> Tensor:
    """``out``, the last argument, written by ``operator``.

    Not where a gradient is wanted, nor where it shows other signs than its memory holds. A compiler sees by itself that
    it is written; else autograd, and whoever remembers what it held, has to be told.
    """
    out: Tensor = given[-1]
    if _wanted(given[0], given[1], given[2]) or (out.requires_grad and is_grad_enabled()):
        msg = "out is not accepted where a gradient is wanted: give None, or call under torch.no_grad()"
        raise RuntimeError(msg)
    if is_compiling():
        operator(*given)
        return out
    if out.is_neg():
        msg = "out with the negative bit is not accepted: give out.resolve_neg()"
        raise RuntimeError(msg)
    operator(*given)
    _increment_version((out,))
    return out


def _traced(x: Tensor, scale: Tensor, zero_point: Tensor | None) -> bool:
    """Whether a gradient is wanted, or the call is compiled or transformed.

    Else the operator that writes into a result serves: the Python side of autograd costs more than a small tensor does.
    """
    return (
        _wanted(x, scale, zero_point) or is_compiling() or transforms_active() or _FORWARD_AD._current_level >= 0  # noqa: SLF001
    )


def _differentiable(name: str, x: Tensor, scale: Tensor, zero_point: Tensor | None, *settings: Any) -> Tensor:
    if not is_compiling():
        for argument, value in (("x", x), ("scale", scale), ("zero_point", zero_point)):
            # Registered gradients are silent about forward mode: its result would be without a tangent, or with zeros.
            if value is not None and _FORWARD_AD.unpack_dual(value).tangent is not None:
                msg = f"{argument} with a tangent is not accepted: there is no forward mode, only reverse"
                raise NotImplementedError(msg)
        function: Any = Transformed if transforms_active() else Eager
        recorded: Tensor = function.apply(x, scale, zero_point, name, *settings)
        return recorded
    result: Tensor = getattr(OPS, name).default(x, scale, zero_point, *settings)
    return result
