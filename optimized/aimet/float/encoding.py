"""The encoding of a float format with scales."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.aimet.arguments import plain
from halfeven.optimized.aimet.base.encoding import EncodingBase
from halfeven.optimized.aimet.float import cast
from halfeven.optimized.aimet.float.formats import BFLOAT16, FLOAT16, FloatFormat

__all__ = ["FloatEncoding"]

_VERSIONS = ("0.6.1", "1.0.0", "2.0.0", "2.1.0")
_EXPORTED = {
    FloatFormat(4, 3, finite=True): "float8e4m3fn",
    FloatFormat(4, 3, finite=True, unsigned_zero=True): "float8e4m3fnuz",
    FloatFormat(5, 2): "float8e5m2",
    FloatFormat(5, 2, finite=True, unsigned_zero=True): "float8e5m2fnuz",
    FloatFormat(2, 1, finite=True): "float4e2m1",
}


class FloatEncoding(EncodingBase):
    """Reals as numbers of a float format times a scale.

    Args:
        mantissa_bits: width of the mantissa, 1 to 52.
        exponent_bits: width of the exponent, 2 to 11.
        finite: the format has no infinities.
        unsigned_zero: the format has no -0.0.
        scale: real per number of the format; broadcasts to what is quantized, or has one entry per block.
        block_size: elements per block, one entry per dimension of ``scale``, -1 for as many as share evenly; or None.
        producer: the quantizer that gave the encoding.

    Raises:
        ValueError: ``scale`` is None; a width is too narrow or too wide.
        RuntimeError: a finite or unsigned-zero format that has no name; see ``FloatQuantizeDequantize``.

    Upstream: formats that torch lacks have a unit below the smallest of IEEE, half of it; shapes and blocks are not
    checked; the result has the dtype that input and scale promote to.
    """

    def __init__(
        self,
        mantissa_bits: int,
        exponent_bits: int,
        finite: bool,
        unsigned_zero: bool,
        scale: Tensor | None,
        block_size: Sequence[int] | None = None,
        *,
        producer: Any = None,
    ) -> None:
        """An encoding that holds ``scale`` itself."""
        super().__init__()
        if scale is None:
            msg = "scale=None is not accepted: give a tensor"
            raise ValueError(msg)
        self._finfo = FloatFormat(exponent_bits, mantissa_bits, finite, unsigned_zero)
        self._finfo.check()
        self.scale = scale
        self.block_size = tuple(int(b) for b in block_size) or None if block_size is not None else None
        self.producer = producer

    @property
    def mapping(self) -> str:
        """The word float."""
        return "float"

    @property
    def mantissa_bits(self) -> int:
        """The width of the mantissa."""
        return self._finfo.mantissa_bits

    @property
    def exponent_bits(self) -> int:
        """The width of the exponent."""
        return self._finfo.exponent_bits

    @property
    def finite(self) -> bool:
        """Whether the format has no infinities.

        Upstream: documents the opposite; the formats with a name, and what it computes, are as here.
        """
        return self._finfo.finite

    @property
    def unsigned_zero(self) -> bool:
        """Whether the format has no -0.0."""
        return self._finfo.unsigned_zero

    @property
    def maxval(self) -> Tensor:
        """The largest real, one per scale."""
        return self.scale * self._finfo.max

    @property
    def bitwidth(self) -> int:
        """The width of a number in bits, that of its sign included."""
        return self.mantissa_bits + self.exponent_bits + 1

    def quantize(self, input: Tensor) -> Tensor:  # noqa: A002 - the document's name
        """The numbers of the format nearest to ``input`` / scale, ties to even, at most its largest; NaN stays.

        Raises:
            ValueError: ``input`` is not float32, float64, float16 or bfloat16.
            RuntimeError: the scale does not broadcast to ``input``, or the blocks do not make it up.
            IndexError: with blocks, the scale has more dimensions.
        """
        return cast.quantize(plain("input", input), self._finfo, self.scale, self.block_size)

    def dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """``input`` times scale, rounded to the dtype of ``input``."""
        return cast.blockwise(_product, plain("input", input), self.scale, self.block_size)

    def quantize_dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """``quantize`` times scale, in the shape and dtype of ``input``; errors as there."""
        return cast.quantize_dequantize(plain("input", input), self._finfo, self.scale, self.block_size)

    def to_qnn_encoding_dict(self, encoding_version: str | None = None) -> dict[str, Any] | list[dict[str, Any]]:
        """The encoding as numbers, words and lists.

        Plain float16 and bfloat16 are no quantization: a width in versions 0.6.1 and 1.0.0, nothing in 2.x, which has
        float8 and e2m1 formats instead.

        Upstream: 2.x drops the scale of a scaled float16 or bfloat16.

        Raises:
            RuntimeError: the version does not have the format, or not with a scale.
            AssertionError: another version.
        """
        format_, newer = self._finfo, encoding_version in {"2.0.0", "2.1.0"}
        unscaled = format_ in {FLOAT16, BFLOAT16} and bool((self.scale == 1).all())
        if newer and format_ in _EXPORTED:
            return self._as_float8()
        if not unscaled:
            most = "float16, bfloat16 with a scale of 1"
            most = f"{most}, {', '.join(_EXPORTED.values())}" if newer else most
            msg = f"{format_.name} of this scale is not exported in encoding_version={encoding_version!r}: give {most}"
            raise RuntimeError(msg)
        if encoding_version not in _VERSIONS:
            msg = f"encoding_version={encoding_version!r} is not accepted: give one of {', '.join(_VERSIONS)}"
            raise AssertionError(msg)
        if encoding_version == "0.6.1":
            return [{"bitwidth": self.bitwidth, "dtype": "float"}]
        return {} if newer else {"dtype": "FLOAT", "bw": self.bitwidth, "enc_type": "PER_TENSOR"}

    def _as_float8(self) -> dict[str, Any]:
        per_tensor = self.granularity == "pertensor"
        channels, blocks = (None, None) if per_tensor else self._safe_get_channel_and_block_axis()
        axis = channels if blocks is None else blocks
        scale = self.scale.detach()
        if blocks is None:
            scale = scale.squeeze() if axis is None else scale.flatten()
        found: dict[str, Any] = {"output_dtype": _EXPORTED[self._finfo], "y_scale": scale.tolist()}
        if axis is not None:
            found["axis"] = axis
        if blocks is not None and self.block_size is not None:
            found["block_size"] = self.block_size[blocks]
        return found


def _product(x: Tensor, scale: Tensor) -> Tensor:
    wide = torch.promote_types(torch.promote_types(x.dtype, scale.dtype), torch.float32)
    return (x.to(wide) * scale.to(wide)).to(x.dtype)
