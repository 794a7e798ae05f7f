"""Affine encodings as QNN reads them: versions 0.6.1, 1.0.0, 2.0.0 and 2.1.0.

Offsets and zero points are computed in integers, and what is exported dequantizes to what the encoding does.

Upstream: 0.6.1 lacks the shift in its ``min`` and ``max``; a symmetric grid with an odd sum of its ends gets another
zero point in 2.x than it has, and a zero point of 2^31 or more another sign; the output dtype has as many bits as the
grid has steps, though that dtype may not hold the grid; offsets beyond 2^24 are added in float32.
"""

from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine.grid import Grid, dtype_bits, ends
from halfeven.optimized.aimet.base.encoding import EncodingBase

__all__ = ["AffineMap", "read_affine"]

_VERSIONS = ("0.6.1", "1.0.0", "2.0.0", "2.1.0")
Found = dict[str, Any]


class AffineMap(Grid, EncodingBase):
    """What there is to export: x̂ = (q + offset + shift)·scale for codes q of a grid."""

    offset: Tensor
    _symmetry: bool
    _zero_point_shift: float

    @property
    def mapping(self) -> str:
        """The kind of map."""
        return "affine"

    @property
    def min(self) -> Tensor:
        """The least real on the grid, (offset + qmin + zero_point_shift)·scale, of the shape of ``scale``."""
        return self._real(self.qmin)

    @property
    def max(self) -> Tensor:
        """The greatest real on the grid, (offset + qmax + zero_point_shift)·scale, of the shape of ``scale``."""
        return self._real(self.qmax)

    @property
    def symmetry(self) -> bool:
        """Whether the encoding was made symmetric."""
        return self._symmetry

    @property
    def zero_point_shift(self) -> float:
        """What moves every real of the grid, in codes: 0.0 or 0.5."""
        return self._zero_point_shift

    def to_qnn_encoding_dict(self, encoding_version: str | None = None) -> dict[str, Any] | list[dict[str, Any]]:
        """The encoding as numbers, words and lists; version 0.6.1 is a list with a dict for each scale.

        Raises:
            AssertionError: another version; in 1.0.0 scales along several axes without blocks, or a shift in an
                encoding that is not symmetric.
            NotImplementedError: in 1.0.0 a block size of -1, or blocks along no axis.
            RuntimeError: a grid without bitwidth (0.6.1 and 1.0.0); axes that are not unique, or no shape to find
                them in.
        """
        match encoding_version:
            case "0.6.1":
                return _version_0_6_1(self)
            case "1.0.0":
                return _version_1_0_0(self)
            case "2.0.0" | "2.1.0":
                return _version_2(self)
        msg = f"encoding_version={encoding_version!r} is not accepted: give one of {', '.join(_VERSIONS)}"
        raise AssertionError(msg)

    def _real(self, code: int) -> Tensor:
        real = self.offset + code
        if self._zero_point_shift:
            real = real + self._zero_point_shift
        return real * self.scale


def _version_0_6_1(encoding: AffineMap) -> list[Found]:
    columns = (encoding.min, encoding.max, encoding.scale, _integers(encoding.offset) + encoding.qmin)
    common = {"bitwidth": encoding.bitwidth, "dtype": "int", "is_symmetric": str(encoding.symmetry)}
    if encoding.zero_point_shift:
        common["zero_point_shift"] = encoding.zero_point_shift
    rows = zip(*(column.flatten().tolist() for column in columns), strict=True)
    return [dict(zip(("min", "max", "scale", "offset"), row, strict=True)) | common for row in rows]


def _version_1_0_0(encoding: AffineMap) -> Found:
    bits = encoding.bitwidth
    # A signed grid is moved to one that starts at zero, where the offset is that of its lowest code.
    offset = _integers(encoding.offset) - (2 ** (bits - 1) if encoding.signed else 0)
    found: Found = {
        "dtype": "INT",
        "bw": bits,
        "is_sym": encoding.symmetry,
        "scale": encoding.scale.flatten().tolist(),
        "offset": offset.flatten().tolist(),
    }
    if encoding.zero_point_shift:
        if not encoding.symmetry:
            msg = f"zero_point_shift={encoding.zero_point_shift} is not accepted in 1.0.0 without symmetry"
            raise AssertionError(msg)
        found["zero_point_shift"] = [encoding.zero_point_shift] * len(found["offset"])
    match encoding.granularity:
        case "pertensor":
            return found | {"enc_type": "PER_TENSOR"}
        case "perchannel":
            return found | {"enc_type": "PER_CHANNEL"}
        case "blockwise":
            return found | {"enc_type": "PER_BLOCK", "block_size": _block_size_1_0_0(encoding)}
    msg = f"scale of shape {tuple(encoding.scale.shape)} is not accepted in 1.0.0: give one channel axis"
    raise AssertionError(msg)


def _block_size_1_0_0(encoding: AffineMap) -> int:
    _, axis = encoding._safe_get_channel_and_block_axis()  # noqa: SLF001
    size = -1 if axis is None or encoding.block_size is None else encoding.block_size[axis]
    if size == -1:
        msg = f"block_size={encoding.block_size} is not accepted in 1.0.0: give a size along one axis of blocks"
        raise NotImplementedError(msg)
    return size


def _version_2(encoding: AffineMap) -> Found:
    scale, zero_point = encoding.scale, -_integers(encoding.offset)
    if encoding.zero_point_shift:
        zero_point = zero_point.to(torch.float64) - encoding.zero_point_shift
    per_tensor = encoding.granularity == "pertensor"
    channels, blocks = (None, None) if per_tensor else encoding._safe_get_channel_and_block_axis()  # noqa: SLF001
    axis = channels if blocks is None else blocks
    if axis is None:
        scale, zero_point = scale.squeeze(), zero_point.squeeze()
    elif blocks is None:
        scale, zero_point = scale.flatten(), zero_point.flatten()
    kind = "int" if encoding.qmin < 0 else "uint"
    found: Found = {"output_dtype": f"{kind}{dtype_bits(encoding.qmin, encoding.qmax)}", "y_scale": scale.tolist()}
    if bool(zero_point.any()):
        found["y_zero_point"] = zero_point.tolist()
    if axis is not None:
        found["axis"] = axis
    if blocks is not None and encoding.block_size is not None:
        found["block_size"] = encoding.block_size[blocks]
    return found


def _integers(offset: Tensor) -> Tensor:
    return offset.detach().to(torch.int64)


def read_affine(found: Found, version: str | None = None) -> Found:
    """The arguments of an ``AffineEncoding`` of one scale that 2.0.0 or 2.1.0 describes; None finds that by its keys.

    Raises:
        NotImplementedError: another version; an axis or blocks.
    """
    if version is None:
        version = "2.0.0" if {"y_scale", "per_block_int_scale"} & found.keys() else None
    if version not in {"2.0.0", "2.1.0"}:
        msg = f"version={version!r} is not accepted: give 2.0.0 or 2.1.0"
        raise NotImplementedError(msg)
    if {"per_block_int_scale", "axis"} & found.keys():
        msg = f"an encoding with {sorted(found)} is not accepted: give one of a single scale"
        raise NotImplementedError(msg)
    unsigned, bits = found["output_dtype"].split("int")
    qmin, qmax = ends(2 ** int(bits) - 1, signed=not unsigned)
    offset = -found.get("y_zero_point", 0)
    shift = offset % 1
    offset -= shift
    return {
        "scale": torch.tensor(found["y_scale"], dtype=torch.float32),
        "offset": torch.tensor(offset, dtype=torch.float32),
        "qmin": qmin,
        "qmax": qmax,
        "symmetry": not unsigned and offset == 0,
        "zero_point_shift": shift,
    }
