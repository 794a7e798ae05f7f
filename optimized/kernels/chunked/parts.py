"""What the torch path is made of: parameters next to elements, reductions per block, and a cast that rounds once."""

from collections.abc import Callable, Iterator

import torch
from torch import Tensor

from halfeven.optimized.arguments import Blocks

__all__ = ["expand", "held", "narrow", "pieces", "reduce", "room_for", "side_by_side", "sum_to"]

Tensors = tuple[Tensor, ...]


def narrow(x: Tensor, dtype: torch.dtype) -> Tensor:
    """``x`` in another float dtype, rounded once.

    Torch goes from float64 to 16 bits by way of float32. There the odd one of the two neighbours is taken: it is on no
    tie of a narrower dtype, and on the side of it that ``x`` is on.
    """
    if x.dtype != torch.float64 or dtype not in (torch.float16, torch.bfloat16):
        return x.to(dtype)
    near = x.float()
    even = (near.view(torch.int32) & 1) == 0
    neighbour = torch.nextafter(near, torch.where(near < x, torch.inf, -torch.inf).float())
    return torch.where(x.isfinite() & (near != x) & even, neighbour, near).to(dtype)


def held(number: float, dtype: torch.dtype) -> float:
    """``number`` as ``dtype`` has it: on CUDA torch takes a number beside 16-bit tensors as float32."""
    return float(torch.tensor(number, dtype=dtype).item()) if number else number


def expand(parameter: Tensor, shape: torch.Size, block_size: Blocks) -> Tensor:
    """``parameter``, with one entry per block (or 0-d), such that it broadcasts to ``shape``."""
    if block_size is None or parameter.ndim == 0:
        return parameter
    for d, (n, b) in enumerate(zip(shape, block_size, strict=True)):
        if b > 1 and parameter.shape[d] > 1:
            parameter = parameter.repeat_interleave(b, d).narrow(d, 0, n)
    return parameter


def pieces(elements: Tensors, parameters: Tensors, most: int) -> Iterator[Tensors]:
    """``elements``, all of one shape, in pieces of at most ``most``, each with the parameters that broadcast to it."""
    first = elements[0]
    if first.numel() <= most:
        yield (*elements, *parameters)
        return
    d = next(d for d, n in enumerate(first.shape) if n > 1)
    n = first.shape[d]
    step = max(most // (first.numel() // n), 1)
    for start in range(0, n, step):
        length = min(step, n - start)
        own = tuple(
            p.narrow(e, start, length) if (e := d - first.ndim + p.ndim) >= 0 and p.shape[e] != 1 else p
            for p in parameters
        )
        yield from pieces(tuple(t.narrow(d, start, length) for t in elements), own, most)


def room_for(x: Tensor, dtype: torch.dtype, known: Tensor | None) -> Tensor:
    """Memory for numbers like ``x``: what is ``known``, where it fits, since the first touch of more costs the most."""
    return known if known is not None and known.shape == x.shape else torch.empty_like(x, dtype=dtype)


def side_by_side(elements: Tensors, parameters: Tensors, block_size: Blocks) -> tuple[Tensors, Tensors]:
    """Views of ``elements``, all of one shape, that ``parameters`` broadcast to, and these.

    Splitting a dimension in (blocks, elements) never copies. Only where the last block is short are the
    parameters repeated, along that dimension.
    """
    if block_size is None:
        return elements, parameters
    for d, (n, b) in reversed(list(enumerate(zip(elements[0].shape, block_size, strict=True)))):
        if b == 1 or n <= b:
            continue
        if n % b:
            parameters = tuple(p.repeat_interleave(b, d).narrow(d, 0, n) if p.ndim else p for p in parameters)
        else:
            elements = tuple(torch.unflatten(t, d, (n // b, b)) for t in elements)
            parameters = tuple(p.unsqueeze(d + 1) if p.ndim else p for p in parameters)
    return elements, parameters


def reduce(x: Tensor, block_size: Blocks, function: Callable[..., Tensor]) -> Tensor:
    """``function(tensor, dims)`` over each block, the last of which may be short: 0-d for None."""
    if block_size is None:
        return function(x, tuple(range(x.ndim))) if x.ndim else x
    for d, b in enumerate(block_size):
        whole = x.shape[d] // b * b
        if b == 1:
            continue
        shape = (*x.shape[:d], whole // b, b, *x.shape[d + 1 :])
        parts = [function(x.narrow(d, 0, whole).reshape(shape), (d + 1,))] if whole else []
        if whole < x.shape[d]:
            parts.append(function(x.narrow(d, whole, x.shape[d] - whole), (d,)).unsqueeze(d))
        x = torch.cat(parts, d) if parts else x
    return x


def sum_to(each: Tensor, parameter: Tensor, block_size: Blocks) -> Tensor:
    """The sum of ``each`` over the elements that share an entry of ``parameter``: in float64, then in its dtype."""
    wide = each.to(torch.float64, copy=True)  # never the memory of ``each``
    if parameter.shape == each.shape:
        total = wide  # sums of one term: -0.0 stays
    elif block_size is None or parameter.ndim == 0:
        total = wide.sum_to_size(parameter.shape)
    else:
        total = reduce(wide, block_size, torch.sum)
    return narrow(narrow(total, each.dtype), parameter.dtype)
