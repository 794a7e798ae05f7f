"""AIMET: encodings as QNN reads them, versions 0.6.1, 1.0.0, 2.0.0 and 2.1.0 of ``to_qnn_encoding_dict``.

No document states them; all is measured, aimet-torch 2.42. What dequantizes to other values than the encoding does is
in the version 2.42 alone.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from halfeven.reference.behaviour import Behaviour, choice
from halfeven.reference.blocks import Array, BlockSize, Shape
from halfeven.reference.catalogue import AsComputed, Real, formula

__all__ = ["lpbq_encoding_dict", "to_qnn_encoding_dict"]


@dataclass(frozen=True)
class Export(Behaviour):
    """The choices in writing an encoding down."""

    shift: str = choice({
        "moves": "moves min and max of 0.6.1 by zero_point_shift",
        "ignored": "ignores zero_point_shift in min and max of 0.6.1",
    })  # fmt: skip
    sum: str = choice({
        "exact": "adds to an offset exactly in 0.6.1 and 1.0.0",
        "float32": "adds to an offset in float32 in 0.6.1 and 1.0.0",
    })  # fmt: skip
    zero_point: str = choice(
        {"whole": "gives a zero point as it is in 2.x", "int32": "wraps a zero point to int32 in 2.x"}
    )
    symmetric: str = choice({
        "offset": "takes the zero point of a symmetric encoding from its offset in 2.x",
        "centre": "takes the centre of the grid, rounded up, for the zero point of a symmetric encoding in 2.x",
    })  # fmt: skip
    output_dtype: str = choice({
        "ends": "names a dtype that holds both ends of the grid in 2.x",
        "steps": "names a dtype of as many bits as the grid has steps in 2.x, wherever it lies",
    })  # fmt: skip


@dataclass(frozen=True)
class GroupedExport(Behaviour):
    """The choices in writing the encoding of a grouped quantizer down."""

    alone: str = choice({
        "blocks": "writes blocks that are their own groups as plain blocks",
        "grouped": "writes blocks that are their own groups as grouped ones",
    })  # fmt: skip
    scales: str = choice({
        "checked": "refuses scales that are not positive and finite, and multiples below 1",
        "any": "writes scales and multiples of every kind",
    })  # fmt: skip


_SOURCE = "aimet-torch 2.42: to_qnn_encoding_dict, measured"


@formula(
    "aimet/to_qnn_encoding_dict",
    equation=(
        r"offset_{0.6.1} = o + q_{min},\quad offset_{1.0.0} = o - 2^{bw - 1} [signed],"
        r"\quad y\_zero\_point = -o - z,\quad (min, max) = (o + z + (q_{min}, q_{max})) * s"
    ),
    basis=AsComputed(dtype="float32"),
    source=_SOURCE,
    behaviour=Export(),
    versions={"2.42": (Export("ignored", "float32", "int32", "centre", "steps"), _SOURCE)},
)
def to_qnn_encoding_dict(
    b: Export,
    encoding_version: str,
    scale: Array,
    offset: Array,
    qmin: int,
    qmax: int,
    symmetry: bool = False,
    block_size: BlockSize | None = None,
    zero_point_shift: float = 0.0,
    input_shape: Shape | None = None,
) -> dict[str, Any] | list[dict[str, Any]]:
    """The encoding as lists, numbers and words; 0.6.1 is a list with a dict for each scale.

    Args:
        encoding_version: 0.6.1, 1.0.0, 2.0.0 or 2.1.0.
        scale: real per code, float32.
        offset: in codes, float32 of the same shape.
        qmin: the lowest code.
        qmax: the highest code.
        symmetry: what the encoding says of itself.
        block_size: elements per block, one entry per dimension of ``scale``, -1 for the size over the number of scales.
        zero_point_shift: in codes; moves every real.
        input_shape: of the tensor; needed where an axis has to be named.

    Raises:
        AssertionError: another version; in 1.0.0 scales along two axes without blocks, or a shift without symmetry.
        NotImplementedError: a block size of -1 in 1.0.0.
        RuntimeError: a grid without bitwidth (0.6.1, 1.0.0), axes that are not unique, no ``input_shape``.
    """
    shape = (scale.shape, block_size, input_shape)
    match encoding_version:
        case "0.6.1":
            shift = np.float32(zero_point_shift if b.shift == "moves" else 0)
            low, high = ((offset + np.float32(q) + shift) * scale for q in (qmin, qmax))
            return _version_0_6_1(low, high, scale, _plus(b, offset, qmin), qmin, qmax, symmetry, zero_point_shift)
        case "1.0.0":
            offsets = _plus(b, offset, -_half(qmin, qmax))
            return _version_1_0_0(scale, offsets, qmin, qmax, symmetry, zero_point_shift, *shape)
        case "2.0.0" | "2.1.0":
            zero_point = -offset.astype(np.int64)
            if b.symmetric == "centre" and symmetry:
                zero_point = np.full(scale.shape, -((-qmin - qmax) // 2))
            if b.zero_point == "int32":
                zero_point = zero_point.astype(np.int32)
            return _version_2_0_0(_output_dtype(b, qmin, qmax), scale, zero_point, zero_point_shift, *shape)
    msg = f"encoding_version={encoding_version!r} is not accepted: give 0.6.1, 1.0.0, 2.0.0 or 2.1.0"
    raise AssertionError(msg)


def _plus(b: Export, offset: Array, codes: int) -> list[int]:
    """Offsets that begin elsewhere, their fractions cut off."""
    if b.sum == "float32":
        return [int(o + np.float32(codes)) for o in offset.ravel()]
    return [int(o) + codes for o in offset.ravel()]


def _output_dtype(b: Export, qmin: int, qmax: int) -> str:
    if b.output_dtype == "steps":
        return f"{'int' if qmin < 0 <= qmax else 'uint'}{(qmax - qmin).bit_length()}"
    bits = max((v if v >= 0 else ~v).bit_length() for v in (qmin, qmax))
    return f"int{bits + 1}" if qmin < 0 else f"uint{bits}"


@formula(
    "aimet/lpbq_encoding_dict",
    equation=r"scale_{block} = per\_block\_int\_scale * per\_channel\_scale",
    basis=Real(),
    source="aimet-torch 2.42: GroupedBlockEncoding.to_qnn_encoding_dict, measured",
    behaviour=GroupedExport(),
)
def lpbq_encoding_dict(
    b: GroupedExport,
    encoding_version: str,
    per_channel_scale: Array,
    per_block_int_scale: Array,
    bitwidth: int,
    decompressed_bw: int,
    block_size: BlockSize,
    block_grouping: BlockSize,
    input_shape: Shape | None = None,
) -> dict[str, Any] | list[dict[str, Any]]:
    """The encoding of a grouped quantizer, signed and symmetric; errors as in ``to_qnn_encoding_dict``.

    In 0.6.1, and where every block is its own group, it is that of the blocks' own scales.

    Args:
        encoding_version: as in ``to_qnn_encoding_dict``.
        per_channel_scale: real per code, float32, one entry per group.
        per_block_int_scale: whole numbers, float32, one entry per block.
        bitwidth: width of the codes.
        decompressed_bw: width of the codes in terms of the scale of their group.
        block_size: as in ``to_qnn_encoding_dict``.
        block_grouping: blocks per group along each dimension; read only for whether all are 1.
        input_shape: as in ``to_qnn_encoding_dict``.

    Raises:
        ValueError: a scale that is not positive and finite, or an integer below 1 or not finite.
    """
    checked = b.scales == "checked"
    if checked and not ((per_channel_scale > 0) & np.isfinite(per_channel_scale)).all():
        msg = f"per_channel_scale={per_channel_scale} is not accepted: give positive and finite scales"
        raise ValueError(msg)
    if checked and not ((per_block_int_scale >= 1) & np.isfinite(per_block_int_scale)).all():
        msg = f"per_block_int_scale={per_block_int_scale} is not accepted: give whole numbers of 1 or more"
        raise ValueError(msg)
    scale = per_channel_scale
    for axis, (blocks, groups) in enumerate(zip(per_block_int_scale.shape, per_channel_scale.shape, strict=True)):
        scale = np.repeat(scale, blocks // groups, axis)
    scale = per_block_int_scale * scale
    half = 2 ** (bitwidth - 1)
    shape = (scale.shape, block_size, input_shape)
    found = to_qnn_encoding_dict(
        Export(), encoding_version, scale, 0 * scale, -half, half - 1, True, block_size, 0.0, input_shape
    )
    if isinstance(found, list) or (b.alone == "blocks" and all(n == 1 for n in block_grouping)):
        return found
    integers = per_block_int_scale.astype(int)
    match encoding_version:
        case "1.0.0":
            channels = per_channel_scale.ravel().tolist()
            found |= {"bw": decompressed_bw, "compressed_bw": bitwidth, "enc_type": "LPBQ", "scale": channels}
            found |= {"offset": [-(2 ** (decompressed_bw - 1))] * len(channels)}
            return found | {"per_block_int_scale": integers.ravel().tolist()}
        case "2.0.0":
            del found["y_scale"]
            channels = per_channel_scale.tolist()
            return found | {"per_block_int_scale": integers.tolist(), "per_channel_float_scale": channels}
    x_scale = {"x": integers.tolist(), "x_scale": per_channel_scale.ravel().tolist(), "axis": _axes(*shape)[0]}
    return found | {"y_scale": x_scale}


def _version_0_6_1(
    low: Array, high: Array, scale: Array, offsets: list[int], qmin: int, qmax: int, symmetry: bool, shift: float
) -> list[dict[str, Any]]:
    more = {"bitwidth": _bitwidth(qmin, qmax), "dtype": "int", "is_symmetric": str(symmetry)}
    more |= {"zero_point_shift": shift} if shift else {}
    return [
        {"min": float(a), "max": float(b), "scale": float(s), "offset": o, **more}
        for a, b, s, o in zip(low.ravel(), high.ravel(), scale.ravel(), offsets, strict=True)
    ]


def _version_1_0_0(
    scale: Array,
    offsets: list[int],
    qmin: int,
    qmax: int,
    symmetry: bool,
    shift: float,
    scales: Shape,
    block_size: BlockSize | None,
    input_shape: Shape | None,
) -> dict[str, Any]:
    found: dict[str, Any] = {"dtype": "INT", "bw": _bitwidth(qmin, qmax), "is_sym": symmetry}
    found |= {"scale": scale.ravel().tolist(), "offset": offsets}
    if shift:
        if not symmetry:
            msg = f"zero_point_shift={shift} is not accepted with symmetry=False: give 0 in version 1.0.0"
            raise AssertionError(msg)
        found["zero_point_shift"] = [shift] * len(offsets)
    if not scales:
        return found | {"enc_type": "PER_TENSOR"}
    if block_size is None:
        if sum(n > 1 for n in scales) > 1:
            msg = f"scale of shape {scales} is not accepted: give one channel axis in version 1.0.0"
            raise AssertionError(msg)
        return found | {"enc_type": "PER_CHANNEL"}
    _, block_axis = _axes(scales, block_size, input_shape)
    if block_axis is None or block_size[block_axis] == -1:
        msg = f"block_size={block_size} is not accepted: give a size other than -1 along a block axis in version 1.0.0"
        raise NotImplementedError(msg)
    return found | {"enc_type": "PER_BLOCK", "block_size": block_size[block_axis]}


def _version_2_0_0(
    dtype: str,
    scale: Array,
    zero_point: Array,
    shift: float,
    scales: Shape,
    block_size: BlockSize | None,
    input_shape: Shape | None,
) -> dict[str, Any]:
    zero = zero_point - shift if shift else zero_point
    channel_axis, block_axis = _axes(scales, block_size, input_shape) if scales else (None, None)
    axis = channel_axis if block_axis is None else block_axis
    if axis is None:
        scale, zero = scale.squeeze(), zero.squeeze()
    elif block_axis is None:
        scale, zero = scale.ravel(), zero.ravel()
    found: dict[str, Any] = {"output_dtype": dtype, "y_scale": scale.tolist()}
    found |= {"y_zero_point": zero.tolist()} if zero.any() else {}
    found |= {"axis": axis} if axis is not None else {}
    return found | ({"block_size": block_size[block_axis]} if block_size and block_axis is not None else {})


def _bitwidth(qmin: int, qmax: int) -> int:
    """The b of the grids [0, 2^b - 1] and [-2^(b-1), 2^(b-1) - 1]."""
    n = qmax - qmin
    if (qmin != 0 and qmin + qmax != -1) or n & (n + 1):
        msg = f"qmin={qmin}, qmax={qmax} is not accepted: give 0 and 2^b - 1, or -2^(b-1) and 2^(b-1) - 1"
        raise RuntimeError(msg)
    return n.bit_length()


def _half(qmin: int, qmax: int) -> int:
    """What version 1.0.0 takes from the offset of a signed grid."""
    return 2 ** (_bitwidth(qmin, qmax) - 1) if qmin < 0 else 0


def _axes(scales: Shape, block_size: BlockSize | None, input_shape: Shape | None) -> tuple[int | None, int | None]:
    """The axes, negative, along which there are several scales: of one element each (channels), of more (blocks)."""
    if input_shape is None:
        msg = "input_shape=None is not accepted: give the tensor's, which the axis follows from"
        raise RuntimeError(msg)
    own = input_shape[-len(scales) :]
    given = block_size or (1,) * len(scales)
    sizes = [n // c if b == -1 else b for n, c, b in zip(own, scales, given, strict=True)]
    axes = range(-len(scales), 0)
    channels = [d for d, c, b in zip(axes, scales, sizes, strict=True) if c > 1 and b == 1]
    blocks = [d for d, c, b in zip(axes, scales, sizes, strict=True) if c > 1 and b > 1]
    if len(channels) > 1 or len(blocks) > 1 or (blocks and not channels):
        msg = f"scale of shape {scales} in blocks of {block_size} is not accepted: give one channel axis, one of blocks"
        raise RuntimeError(msg)
    return next(iter(channels), None), next(iter(blocks), None)
