"""What a quantizer is made of: its arguments by name, which encodings it can have, and what they fit."""

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine import range as ranges
from halfeven.optimized.aimet.affine.encoding import AffineEncoding
from halfeven.optimized.aimet.affine.grid import ends, integer, second_is_end

__all__ = ["blocks_of", "check_reachable", "grid_of", "named", "with_shared_blocks"]

_OPTIONS = ("encoding_analyzer", "block_size", "zero_point_shift")
_ENDS = ("qmin", "qmax", "symmetric", *_OPTIONS)
_BITS = ("bitwidth", "symmetric", *_OPTIONS)


def named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments after the shape by name: a second one that is no bool is ``qmax``.

    Raises:
        TypeError: too many, too few, an unknown one or one given twice.
    """
    names = _ENDS if second_is_end(args, kwargs) else _BITS
    positions = dict(zip(names, args, strict=False))
    given = positions | kwargs
    needed = names[: -len(_OPTIONS)]
    fits = len(args) <= len(names) and not positions.keys() & kwargs.keys() and given.keys() <= set(names)
    if not fits or any(given.get(name) is None for name in needed):
        said = ", ".join((*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())))
        lists = " or ".join(f"(shape, {', '.join(n)})" for n in (_BITS, _ENDS))
        msg = f"({said}) after the shape is not accepted: give {lists}; the last {len(_OPTIONS)} may be left out"
        raise TypeError(msg)
    return given


def grid_of(given: dict[str, Any]) -> tuple[int, int]:
    """The ends of a grid, of themselves or of ``bitwidth`` and ``symmetric``.

    Raises:
        TypeError: one is no int.
        ValueError: there is no step between the ends, or a bitwidth below 1.
    """
    if "bitwidth" in given:
        bitwidth = integer("bitwidth", given["bitwidth"])
        if bitwidth < 1:
            msg = f"bitwidth={bitwidth} is not accepted: give 1 or more"
            raise ValueError(msg)
        return ends(2**bitwidth - 1, bool(given["symmetric"]))
    qmin, qmax = integer("qmin", given["qmin"]), integer("qmax", given["qmax"])
    if qmin >= qmax:
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: give qmin below qmax"
        raise ValueError(msg)
    return qmin, qmax


def blocks_of(block_size: Any) -> tuple[int, ...] | None:
    """A tuple of ints, or None without an entry.

    Raises:
        TypeError: an entry is no int.
    """
    return None if block_size is None else tuple(integer("block_size", b) for b in block_size) or None


def check_reachable(scale: Tensor, offset: Tensor, qmin: int, qmax: int, symmetric: bool) -> None:
    """Refuse what no quantizer's scale and offset are; NaN, of a range of NaN, is accepted.

    Raises:
        ValueError: a scale below the least one, or an offset that is no integer or not the symmetric grid's.
    """
    least = torch.tensor(ranges.min_scale(qmax - qmin), dtype=torch.float32)
    if (scale < least.to(scale.device)).any():
        msg = f"scale={scale.min().item()} is not accepted on the grid {qmin} to {qmax}: give {least.item()} or more"
        raise ValueError(msg)
    middle = ranges.middle_offset(qmin, qmax)
    off = offset != middle if symmetric else offset.isfinite() & (offset != offset.round())
    if off.any():
        accepted = f"{middle}, since it is symmetric" if symmetric else "an integer"
        msg = f"offset={offset[off][0].item()} is not accepted on the grid {qmin} to {qmax}: give {accepted}"
        raise ValueError(msg)


def with_shared_blocks(encoding: AffineEncoding, shape: Sequence[int]) -> AffineEncoding:
    """``encoding`` for a tensor of ``shape``: one block along a dimension that has one parameter and several blocks."""
    blocks, scales = encoding.block_size, encoding.scale.shape
    if blocks is None or len(blocks) != len(scales) or len(scales) > len(shape):
        return encoding
    sizes = zip(shape[len(shape) - len(scales) :], scales, blocks, strict=True)
    shared = tuple(-1 if c == 1 and 0 < b < n and n % b == 0 else b for n, c, b in sizes)
    if shared == blocks:
        return encoding
    fitted = copy.copy(encoding)
    fitted.block_size = shared
    return fitted
