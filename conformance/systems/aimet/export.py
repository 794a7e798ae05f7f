"""AIMET's export to QNN: what is required, the calls that decide it, and the library's answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from halfeven.conformance.backends.protocol import Unsupported
from halfeven.conformance.requirement import Arguments, Calls, expected, measured
from halfeven.conformance.systems.aimet.affine import F32, scalar

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["ANSWERS"]

VERSIONS = ("0.6.1", "1.0.0", "2.0.0", "2.1.0")
FORMULA = "aimet/to_qnn_encoding_dict"


def _in(versions: tuple[str, ...], given: dict[str, Any]) -> Iterator[Arguments]:
    yield from ({"encoding_version": v, **given} for v in versions)


def _scales(shape: tuple[int, ...], offsets: tuple[float, ...] = (0, -1, 3)) -> dict[str, Any]:
    n = int(np.prod(shape))
    scale = (np.arange(1, n + 1) / 10).astype(F32).reshape(shape)
    return {"scale": scale, "offset": np.resize(np.array(offsets, F32), n).reshape(shape)}


@measured(FORMULA, "aimet-torch 2.42: AffineEncoding.to_qnn_encoding_dict")
def per_tensor() -> Calls:
    """The exported offset is offset + qmin in 0.6.1 and offset less half the codes of a signed grid in 1.0.0; 2.x has a
    zero point of minus the offset, left out where it is zero."""
    # Signed and unsigned grids of 1 to 32 bits, offsets of both signs.
    for bits in (1, 2, 4, 8, 16, 32):
        half = 2 ** (bits - 1)
        far = half - 1 if bits < 24 else 256  # noqa: PLR2004 - float32 holds the sum with half
        for qmin, offset in ((0, 0), (0, -1), (0, -far), (-half, 0), (-half, far)):
            given = {"scale": scalar(0.1), "offset": scalar(offset), "qmin": qmin, "qmax": qmin + 2 * half - 1}
            yield from _in(VERSIONS, given)


@measured(FORMULA, "aimet-torch 2.42: AffineEncoding.to_qnn_encoding_dict")
def symmetric() -> Calls:
    """Symmetry is a word in 0.6.1, a flag in 1.0.0 and not in 2.x; a symmetric unsigned grid has its zero point."""
    for qmin, qmax, offset in ((-8, 7, 0), (0, 255, -128), (0, 1, -1)):
        given = {"scale": scalar(0.1), "offset": scalar(offset), "qmin": qmin, "qmax": qmax, "symmetry": True}
        yield from _in(VERSIONS, given)
    strict = {"scale": scalar(0.1), "offset": scalar(0), "qmin": -127, "qmax": 127, "symmetry": True}
    yield from _in(VERSIONS[2:], strict)


@measured(FORMULA, "aimet-torch 2.42: AffineEncoding.to_qnn_encoding_dict")
def layouts() -> Calls:
    """2.x names the axis of the blocks, else of the channels, counted from the last, with the scales nested by block or
    flat by channel; 1.0.0 names the kind; a scale of one element is per tensor in 2.x and per channel in 1.0.0."""
    grid = {"qmin": -8, "qmax": 7}
    for scales, shape in (((1,), (3, 4)), ((3,), (2, 3)), ((3, 1), (3, 4)), ((1, 3, 1, 1), (2, 3, 4, 4))):
        yield from _in(VERSIONS, {**_scales(scales), **grid, "input_shape": shape})
    for own, whole, block in (((2, 3), (2, 6), (1, 2)), ((3, 2), (6, 2), (2, 1)), ((2, 3, 1), (2, 6, 4), (1, 2, 4))):
        yield from _in(VERSIONS, {**_scales(own), **grid, "input_shape": whole, "block_size": block})
    minus = {**_scales((2, 3)), **grid, "input_shape": (2, 6), "block_size": (1, -1)}
    yield from _in(VERSIONS[::2], minus)
    # No axis of blocks, though there is a size; one block for each element.
    yield from _in(VERSIONS[2:], {**_scales((2, 1)), **grid, "input_shape": (2, 6), "block_size": (1, 6)})
    yield from _in(VERSIONS[2:], {**_scales((3, 1)), **grid, "input_shape": (3, 4), "block_size": (-1, -1)})
    yield from _in(VERSIONS[2:], {**_scales((3,)), **grid, "input_shape": (2, 6)})
    yield from _in(VERSIONS, {**_scales((2,), (0,)), **grid, "symmetry": True, "input_shape": (3, 2)})


@expected(FORMULA, "aimet-torch 2.42: AffineEncoding.to_qnn_encoding_dict, 2.x")
def output_dtype() -> Calls:
    """The output dtype holds every code of the grid."""
    # Grids away from zero, whose codes need more bits than their number.
    for qmin, qmax in ((2, 9), (-4, -1), (-100, 155), (1, 4), (-1, 4)):
        given = {"scale": scalar(0.1), "offset": scalar(-1), "qmin": qmin, "qmax": qmax}
        yield from _in(VERSIONS[2:], given)


@expected(FORMULA, "aimet-torch 2.42: AffineEncoding.dequantize")
def zero_point() -> Calls:
    """Zero points of symmetric grids, and offsets and zero points of 32-bit ones, are those of the encoding, exact, so
    that the export dequantizes as the encoding does."""
    # Symmetric grids with an odd number of codes above their centre, and offsets of 32 bits.
    for qmin, qmax, offset in ((0, 5, -2), (-4, 1, 2), (-1, 4, -2)):
        given = {"scale": scalar(0.1), "offset": scalar(offset), "qmin": qmin, "qmax": qmax, "symmetry": True}
        yield from _in(VERSIONS[2:], given)
    given = {"scale": scalar(0.1), "offset": scalar(-(2**31)), "qmin": 0, "qmax": 2**32 - 1}
    yield from _in(VERSIONS, given)
    signed = {"scale": scalar(0.1), "offset": scalar(2**20 - 1), "qmin": -(2**31), "qmax": 2**31 - 1}
    yield from _in(VERSIONS, signed)


@expected(FORMULA, "aimet-torch 2.42: AffineQuantizerBase.get_min, get_max")
def zero_point_shift() -> Calls:
    """A zero point shift is a field in 0.6.1 and 1.0.0 and taken from the zero point in 2.x; min and max of 0.6.1 are
    the ends of the shifted grid."""
    # A shift of half a code, per tensor and per channel.
    given = {"qmin": -2, "qmax": 1, "symmetry": True, "zero_point_shift": 0.5}
    yield from _in(VERSIONS, {**given, **_scales((), (0,))})
    yield from _in(VERSIONS, {**given, **_scales((3, 1), (0,)), "input_shape": (3, 4)})


@measured(FORMULA, "aimet-torch 2.42: AffineEncoding.to_qnn_encoding_dict")
def refusals() -> Calls:
    """Refused are unknown versions, grids without bitwidth in 0.6.1 and 1.0.0, several channel or block axes, axes
    without a shape to tell them by, and blocks of -1 in 1.0.0."""
    plain = {"scale": scalar(0.1), "offset": scalar(0), "qmin": -8, "qmax": 7}
    yield from _in(("", "0.6", "2.2.0"), plain)
    yield from _in(VERSIONS[:2], {**plain, "qmin": -127, "qmax": 127})
    yield from _in(VERSIONS[:2], {**plain, "qmin": 3, "qmax": 6})
    yield from _in(VERSIONS[:2], {**plain, "qmin": 0, "qmax": 5})
    yield from _in(VERSIONS[1:], {**plain, **_scales((2, 2, 2)), "input_shape": (2, 4, 4), "block_size": (1, 2, 2)})
    yield from _in(VERSIONS[1:], {**plain, **_scales((2, 2)), "input_shape": (2, 2)})
    yield from _in(VERSIONS[1:], {**plain, **_scales((2, 2)), "input_shape": (4, 4), "block_size": (2, 2)})
    yield from _in(VERSIONS[1:], {**plain, **_scales((1, 2)), "input_shape": (2, 4), "block_size": (-1, 2)})
    yield from _in(VERSIONS[2:], {**plain, **_scales((2, 1))})
    yield from _in(VERSIONS[1:2], {**plain, **_scales((2, 3)), "input_shape": (2, 6), "block_size": (1, -1)})
    yield from _in(VERSIONS[1:2], {**plain, "zero_point_shift": 0.5})


@measured("aimet/lpbq_encoding_dict", "aimet-torch 2.42: GroupedBlockEncoding.to_qnn_encoding_dict", aspect="versions")
def lpbq() -> Calls:
    """A grouped encoding has the integers of its blocks and the scales of its groups in place of their products, in the
    fields of each version; where every block is its own group it is a plain one."""
    # Two groupings of (2, 4) blocks, channels first and last, and none.
    k = np.array([[16, 3, 1, 8], [5, 16, 9, 16]], F32)
    channel = np.array([[0.01], [0.3]], F32)
    given = {"bitwidth": 4, "decompressed_bw": 8}
    row = {"per_block_int_scale": k, "block_size": (1, 3), "input_shape": (2, 12), **given}
    yield from _in(VERSIONS, {**row, "per_channel_scale": channel, "block_grouping": (1, -1)})
    pairs = np.array([[0.01, 0.2], [0.3, 4]], F32)
    yield from _in(VERSIONS, {**row, "per_channel_scale": pairs, "block_grouping": (1, 2)})
    column = {"per_block_int_scale": k.T, "block_size": (3, 1), "input_shape": (12, 2), **given}
    yield from _in(VERSIONS, {**column, "per_channel_scale": channel.T, "block_grouping": (4, 1)})
    own = {**row, "per_block_int_scale": np.full((2, 4), 16, F32), "block_grouping": (1, 1)}
    yield from _in(VERSIONS, {**own, "per_channel_scale": k / F32.type(16)})
    widths = {"bitwidth": 2, "decompressed_bw": 6}
    yield from _in(VERSIONS, {**row, **widths, "per_channel_scale": channel, "block_grouping": (1, -1)})


@expected(
    "aimet/lpbq_encoding_dict",
    "GroupedBlockQuantizeDequantize gives no others; aimet-torch 2.42 exports them as they come out",
    aspect="refusals",
)
def lpbq_refusals() -> Calls:
    """Channel scales that are not positive and finite, and block integers below 1 or not finite, are refused."""
    # Scales and integers that no grouped quantizer has.
    given = {
        "bitwidth": 4,
        "decompressed_bw": 8,
        "block_size": (1, 3),
        "block_grouping": (1, -1),
        "input_shape": (1, 6),
    }
    whole = np.array([[16, 3]], F32)
    for scale in (0, -1, np.inf, np.nan):
        channel = np.array([[scale]], F32)
        yield from _in(VERSIONS, {**given, "per_channel_scale": channel, "per_block_int_scale": whole})
        two = np.array([[1.0], [scale]], F32)
        blocks = {**given, "input_shape": (2, 6), "per_block_int_scale": np.tile(whole, (2, 1))}
        yield from _in(VERSIONS, {**blocks, "per_channel_scale": two})
    for k in (0, np.nan):
        integers = np.array([[16, k]], F32)
        yield from _in(VERSIONS, {**given, "per_channel_scale": np.ones((1, 1), F32), "per_block_int_scale": integers})


def to_qnn_encoding_dict(
    encoding_version: str,
    scale: Tensor,
    offset: Tensor,
    qmin: int,
    qmax: int,
    input_shape: tuple[int, ...] | None = None,
    **given: Any,
) -> dict[str, Any] | list[dict[str, Any]]:
    """``AffineEncoding.to_qnn_encoding_dict``, once the input's shape is hinted."""
    from aimet_torch.quantization import affine

    encoding = affine.AffineEncoding(scale, offset, qmin=qmin, qmax=qmax, **given)
    hinted = encoding._hint_input_shape(input_shape)  # noqa: SLF001
    found: dict[str, Any] | list[dict[str, Any]] = hinted.to_qnn_encoding_dict(encoding_version)
    return found


def lpbq_encoding_dict(
    encoding_version: str,
    per_channel_scale: Tensor,
    per_block_int_scale: Tensor,
    input_shape: tuple[int, ...] | None = None,
    **given: Any,
) -> dict[str, Any] | list[dict[str, Any]]:
    """``GroupedBlockEncoding.to_qnn_encoding_dict``, once the input's shape is hinted."""
    import torch
    from aimet_torch.quantization import affine

    if not ((per_channel_scale > 0).all() and per_channel_scale.isfinite().all() and (per_block_int_scale >= 1).all()):
        msg = "the library finds the integers anew, by quotients that such scales do not have"
        raise Unsupported(msg)
    scale = per_channel_scale
    for axis, (blocks, groups) in enumerate(zip(per_block_int_scale.shape, per_channel_scale.shape, strict=True)):
        scale = scale.repeat_interleave(blocks // groups, axis)
    scale = per_block_int_scale * scale
    encoding = affine.GroupedBlockEncoding(
        scale, torch.zeros_like(scale), signed=True, symmetry=True, per_channel_scale=per_channel_scale, **given
    )
    hinted = encoding._hint_input_shape(input_shape)  # noqa: SLF001
    found: dict[str, Any] | list[dict[str, Any]] = hinted.to_qnn_encoding_dict(encoding_version)
    return found


ANSWERS: dict[str, dict[str, Callable[..., Any]]] = {
    "aimet.functional": {
        "aimet/to_qnn_encoding_dict": to_qnn_encoding_dict,
        "aimet/lpbq_encoding_dict": lpbq_encoding_dict,
    },
}
