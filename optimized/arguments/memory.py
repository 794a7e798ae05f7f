"""Whether an ``out`` tensor may be written while the arguments are read."""

from collections.abc import Mapping

import torch
from torch import Tensor

__all__ = ["check_out", "extent"]


def check_out(out: Tensor, dtype: torch.dtype, inputs: Mapping[str, Tensor]) -> None:
    """Refuse an ``out`` of another kind than the result, or one that shares memory with itself or an input.

    The first of ``inputs`` gives the result's shape and device, and ``out`` may be that very tensor.

    Raises:
        TypeError: ``out`` is no strided tensor of ``dtype``.
        RuntimeError: its shape, its device or its memory does not fit.
    """
    if not isinstance(out, Tensor) or out.layout != torch.strided:
        msg = f"out={out!r} is not accepted: give None or a strided torch.Tensor"
        raise TypeError(msg)
    if out.dtype != dtype:
        msg = f"out of dtype {out.dtype} is not accepted: the result is of dtype {dtype}"
        raise TypeError(msg)
    name, x = next(iter(inputs.items()))
    if out.shape != x.shape or out.device != x.device:
        msg = (
            f"out of shape {tuple(out.shape)} on {out.device} is not accepted: "
            f"the result has the shape {tuple(x.shape)} and device {x.device} of {name}"
        )
        raise RuntimeError(msg)
    if not _places_apart(out):
        where = f"shape {tuple(out.shape)} and strides {out.stride()}"
        msg = f"out of {where} is not accepted: its elements share memory; give each memory of its own"
        raise RuntimeError(msg)
    for other, value in inputs.items():
        if value is x and _same_places(out, x):
            continue
        if _overlap(out, value):
            but = f", and is not {other} itself" if value is x else ""
            msg = f"out is not accepted: it overlaps {other}{but}; give memory of its own"
            raise RuntimeError(msg)


def extent(t: Tensor) -> int:
    """The bytes from the first element to the end of the last, of a tensor that has elements."""
    return (sum(stride * (n - 1) for stride, n in zip(t.stride(), t.shape, strict=True)) + 1) * t.element_size()


def _places_apart(t: Tensor) -> bool:
    """Whether each stride steps over all that the smaller ones reach, so that no two elements coincide."""
    reach = 0
    for stride, size in sorted((stride, size) for stride, size in zip(t.stride(), t.shape, strict=True) if size != 1):
        if stride <= reach:
            return t.numel() == 0
        reach += stride * (size - 1)
    return True


def _same_places(a: Tensor, b: Tensor) -> bool:
    if (a.data_ptr(), a.dtype, a.shape) != (b.data_ptr(), b.dtype, b.shape):
        return False
    # The stride of a dimension with one index leads nowhere.
    return all(n == 1 or of_a == of_b for n, of_a, of_b in zip(a.shape, a.stride(), b.stride(), strict=True))


def _overlap(a: Tensor, b: Tensor) -> bool:
    """Whether two tensors have a byte in common; views that interleave, such as odd and even columns, have none."""
    if a.numel() == 0 or b.numel() == 0 or a.device != b.device:
        return False
    start, stop = zip(_span(a), _span(b), strict=True)
    if min(stop) <= max(start):
        return False
    touched = torch.zeros(max(stop) - min(start), dtype=torch.bool)
    _bytes(a, touched, min(start)).fill_(True)
    return bool(_bytes(b, touched, min(start)).any())


def _span(t: Tensor) -> tuple[int, int]:
    """The addresses of the first byte and of the byte after the last."""
    return t.data_ptr(), t.data_ptr() + extent(t)


def _bytes(t: Tensor, memory: Tensor, start: int) -> Tensor:
    """The bytes of ``t``, as a view of ``memory``, whose first byte stands for address ``start``."""
    width = t.element_size()
    return memory.as_strided((*t.shape, width), (*(stride * width for stride in t.stride()), 1), t.data_ptr() - start)
