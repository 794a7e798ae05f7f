"""Low-power blockwise quantization: scales of blocks that are whole multiples of one scale per channel."""

from collections.abc import Callable
from typing import Any, Self

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine.affine_encoding import AffineEncoding
from halfeven.optimized.aimet.affine.functional import quantize
from halfeven.optimized.aimet.block_sizes import exact_blocks

__all__ = ["GroupedBlockEncoding"]


class GroupedBlockEncoding(AffineEncoding):
    """An ``AffineEncoding`` whose ``scale`` is ``per_block_int_scale`` times the ``per_channel_scale`` of its group.

    Attributes:
        block_grouping: blocks per group along each dimension of ``scale``, -1 for all of them.
        decompressed_bw: the width of the codes in terms of the scale of their group, in bits.
        per_channel_scale: real per code of ``decompressed_bw`` bits, one entry per group.
    """

    def __init__(
        self,
        scale: Tensor,
        offset: Tensor,
        bitwidth: int,
        signed: bool = False,
        symmetry: bool = False,
        block_size: tuple[int, ...] | None = None,
        block_grouping: tuple[int, ...] | None = None,
        decompressed_bw: int | None = None,
        per_channel_scale: Tensor | None = None,
        **kwargs: Any,
    ) -> None:
        """An encoding of groups; what follows ``per_channel_scale``, and the errors, as in ``AffineEncoding``."""
        given: dict[str, Any] = {"signed": signed, "symmetry": symmetry, "block_size": block_size}
        super().__init__(scale, offset, bitwidth=bitwidth, **given, **kwargs)
        self.block_grouping = block_grouping
        self.decompressed_bw = decompressed_bw
        self.per_channel_scale = per_channel_scale

    @property
    def per_block_int_scale(self) -> Tensor:
        """The whole numbers from 1 to 2^(decompressed_bw − bitwidth) that make the scales, floats.

        Raises:
            RuntimeError: the groups do not fit.
        """
        channels = self._channels()
        highest = 2 ** (self._decompressed() - self.bitwidth)
        return quantize(
            self.scale, channels, torch.zeros_like(channels), qmin=1, qmax=highest, block_size=self._grouping()
        )

    def to_qnn_encoding_dict(self, encoding_version: str | None = None) -> dict[str, Any] | list[dict[str, Any]]:
        """The encoding as QNN reads it; that of its blocks in 0.6.1, and where every block is a group.

        Upstream: a tensor that was multiplied by a number has integers that do not belong to its scales.

        Raises:
            ValueError: a scale that is not positive and finite.
            RuntimeError: in 2.x a zero point other than 0; or as ``AffineEncoding``'s, and so the other errors.
        """
        self._check_scales()
        found = super().to_qnn_encoding_dict(encoding_version)
        if isinstance(found, list) or all(size == 1 for size in self._grouping()):
            return found
        channels, integers = self._channels().detach(), self.per_block_int_scale.detach().to(torch.int32)
        if encoding_version == "1.0.0":
            width, scales = self._decompressed(), channels.flatten().tolist()
            found |= {"bw": width, "compressed_bw": self.bitwidth, "enc_type": "LPBQ", "scale": scales}
            found |= {"offset": [-(2 ** (width - 1))] * len(scales)}
            return found | {"per_block_int_scale": integers.flatten().tolist()}
        if "y_zero_point" in found:
            msg = f"offset={self.offset} is not accepted in {encoding_version} with groups: give 0"
            raise RuntimeError(msg)
        found["output_dtype"] = f"{'int' if self.signed else 'uint'}{self.bitwidth}"
        if encoding_version == "2.0.0":
            del found["y_scale"]
            return found | {"per_block_int_scale": integers.tolist(), "per_channel_float_scale": channels.tolist()}
        axis, _ = self._safe_get_channel_and_block_axis()
        return found | {"y_scale": {"x": integers.tolist(), "x_scale": channels.flatten().tolist(), "axis": axis}}

    def _rescaled(self, function: Callable[[Tensor], Tensor]) -> Self:
        # The scales are made anew of the integers, so that the two still belong together.
        scaled = super()._rescaled(function)
        scaled.per_channel_scale = function(self._channels())
        shared = scaled.per_channel_scale
        for axis, size in enumerate(exact_blocks(self.scale.shape, shared.shape, self._grouping(), "block_grouping")):
            shared = shared.repeat_interleave(size, axis)
        scaled.scale = self.per_block_int_scale * shared
        return scaled

    def _grouping(self) -> tuple[int, ...]:
        return self.block_grouping or (1,) * self.scale.dim()

    def _check_scales(self) -> None:
        named = {"scale": self.scale, "per_channel_scale": self._channels()}
        for name, scales in named.items():
            if not bool(((scales > 0) & scales.isfinite()).all()):
                msg = f"{name}={scales} is not accepted: give positive and finite scales"
                raise ValueError(msg)

    def _channels(self) -> Tensor:
        if self.per_channel_scale is None:
            msg = "per_channel_scale=None is not accepted: give one scale per group"
            raise TypeError(msg)
        return self.per_channel_scale

    def _decompressed(self) -> int:
        if self.decompressed_bw is None:
            msg = "decompressed_bw=None is not accepted: give the width in bits"
            raise TypeError(msg)
        return self.decompressed_bw
