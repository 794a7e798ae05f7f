"""The encodings of affine quantization: of numbers, of blocks whose scales share a factor, and of vectors."""

from collections.abc import Callable
from typing import Any, Self, overload

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine.export import AffineMap, read_affine
from halfeven.optimized.aimet.affine.functional import apply, quantize, undo
from halfeven.optimized.aimet.affine.grid import read_grid, second_is_end, shift_of
from halfeven.optimized.aimet.arguments import exact_blocks

__all__ = ["AffineEncoding", "GroupedBlockEncoding", "VectorEncoding"]

# The dtypes of codes, in the order in which they are tried.
_DTYPES = (torch.uint8, torch.int8, torch.int16, torch.int32)
# The names after (scale, offset), as positions: with the ends of the grid, and with a bitwidth.
_ENDS = ("qmin", "qmax", "symmetry", "block_size", "zero_point_shift")
_BITS = ("bitwidth", "signed", "symmetry", "block_size", "zero_point_shift")
# What an export says of vectors.
_VECTOR = ("rows_per_block", "cols_per_block", "vector_dim", "vector_stride", "index_bw")


class AffineEncoding(AffineMap):
    """x̂ = (q + offset)·scale for codes q in [qmin, qmax]; with a shift of z, x̂ = (q + offset + z)·scale.

    Scale and offset keep their dtype, and are cast to that of the arithmetic only: the first of the input's, float32
    and float64 that holds the grid with an epsilon of a quarter step or less. All three functions compute in it and
    round once, so that ``dequantize(quantize(x))`` is ``quantize_dequantize(x)``, in further round trips too.

    The codes of ``quantize_dequantize(x)`` are those of ``x``, unless ``x`` was clipped at an end of the grid that
    lies more than 2^(p−1) steps from 0 (for p significant bits), or whose real is subnormal: two codes may have one
    real there. With bfloat16 (p = 8), codes 0 to 255, offset 0 and a scale of 0.3262, 83.0 has the code 254, 83.5 the
    code 255, and both become 83.0. Where a real overflows, or the scale is 0 in the arithmetic, no code comes back.

    Upstream: scale and offset are rounded to the input's dtype first, which changes the values that float16 and
    bfloat16 tensors represent; ``min`` and ``max`` lack the shift; float bitwidths make grids of floats, and of an
    argument that is given twice the latter counts.

    Attributes:
        scale: real per code.
        offset: minus the zero point, in codes, of the shape of ``scale``.
        qmin: the lowest code.
        qmax: the highest code.
        block_size: elements per block, one entry per dimension of ``scale``, -1 for the size over the number of scales.
        producer: the quantizer that gave the encoding, or None.
    """

    @overload
    def __init__(
        self,
        scale: Tensor,
        offset: Tensor,
        qmin: int,
        qmax: int,
        symmetry: bool = False,
        block_size: tuple[int, ...] | None = None,
        zero_point_shift: float | None = None,
        *,
        producer: Any = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        scale: Tensor,
        offset: Tensor,
        bitwidth: int,
        signed: bool = False,
        symmetry: bool = False,
        block_size: tuple[int, ...] | None = None,
        zero_point_shift: float | None = None,
        *,
        producer: Any = None,
    ) -> None: ...
    def __init__(self, scale: Tensor, offset: Tensor, *args: Any, **kwargs: Any) -> None:
        """An encoding of the grid ``qmin`` to ``qmax``, or of ``bitwidth`` and ``signed``.

        Raises:
            TypeError: not exactly one of the two ways to give the grid; another argument.
            ValueError: ``qmin`` is not below ``qmax``; a ``zero_point_shift`` other than 0.0, 0.5 and None.
        """
        super().__init__()
        given = _named(args, kwargs)
        self.scale = scale
        self.offset = offset
        self.producer = given.pop("producer", None)
        block_size = given.pop("block_size", None)
        self.block_size = None if block_size is None else tuple(block_size)
        self._symmetry = bool(given.pop("symmetry", False))
        zero_point_shift = given.pop("zero_point_shift", None)
        try:
            self.qmin, self.qmax = read_grid(**given)
        except RuntimeError as error:
            raise ValueError(str(error)) from None
        if self.qmin == self.qmax:
            msg = f"qmin={self.qmin}, qmax={self.qmax} is not accepted: give qmin below qmax"
            raise ValueError(msg)
        self._zero_point_shift = shift_of(zero_point_shift)

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of integer codes: the first of uint8, int8, int16 and int32 that holds the grid.

        Upstream: int32 also where it does not hold the grid.

        Raises:
            ValueError: none holds it.
        """
        for dtype in _DTYPES:
            info = torch.iinfo(dtype)
            if info.min <= self.qmin and self.qmax <= info.max:
                return dtype
        msg = f"qmin={self.qmin}, qmax={self.qmax} is not accepted: give a grid that int32 holds"
        raise ValueError(msg)

    def quantize(self, input: Tensor) -> Tensor:  # noqa: A002 - the document's name
        """Codes of ``input``, as ``affine.quantize``; of one that ``quantize_dequantize`` returned, the same codes.

        Raises:
            RuntimeError: there is a shift, or as ``affine.quantize``.
            ValueError: as there.
        """
        self._refuse_shift("quantize")
        return apply(input, self.scale, self.offset, self.qmin, self.qmax, self.block_size, codes=True)

    def dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """Reals of the codes ``input``; of those of ``quantize(x)``, the values of ``quantize_dequantize(x)``.

        Raises:
            RuntimeError: there is a shift, or as ``affine.dequantize``.
            TypeError: as there.
        """
        self._refuse_shift("dequantize")
        offset = self.offset
        if input.dtype.itemsize < offset.dtype.itemsize:  # which holds no more of a fraction in the codes either
            offset = torch.where(offset == offset.round(), offset, offset.to(input.dtype).to(offset.dtype))
        return undo(input, self.scale, offset, self.block_size, (self.qmin, self.qmax))

    def quantize_dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """``input`` on the grid, as ``affine.quantize_dequantize``, errors too."""
        grid = (self.qmin, self.qmax)
        return apply(input, self.scale, self.offset, *grid, self.block_size, self._zero_point_shift)

    @classmethod
    def _from_qnn_encoding_dict(cls, encoding_dict: dict[str, Any], version: str | None = None) -> "AffineEncoding":
        return AffineEncoding(**read_affine(encoding_dict, version))

    def _get_additional_properties(self) -> dict[str, Any]:
        return {}

    def _scaled(self, factor: float, *, divide: bool = False) -> Self | None:
        """As the base's; a negative factor mirrors the grid, and the code q becomes qmin + qmax − q.

        A symmetric encoding of an odd qmin + qmax would not be symmetric any more: None then.
        """
        if factor < 0 and self._symmetry and (self.qmin + self.qmax) % 2:
            return None
        scaled = super()._scaled(factor, divide=divide)
        if scaled is not None and factor < 0:
            scaled.offset = -(self.qmin + self.qmax) - 2 * self._zero_point_shift - self.offset
        return scaled

    def _refuse_shift(self, name: str) -> None:
        if self._zero_point_shift:
            msg = (
                f"zero_point_shift={self._zero_point_shift} is not accepted by {name}: only quantize_dequantize has one"
            )
            raise RuntimeError(msg)


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


class VectorEncoding(AffineEncoding):
    """An ``AffineEncoding`` with the shape of its vectors, which versions 0.6.1 and 1.0.0 export.

    Upstream: a shift and a producer are dropped.

    Attributes:
        rows_per_block: rows of a block.
        cols_per_block: columns of a block.
        vector_dim: elements of a vector.
        vector_stride: distance between the elements of a vector.
        index_bw: width of an index in bits.
    """

    rows_per_block: int
    cols_per_block: int
    vector_dim: int
    vector_stride: int
    index_bw: int

    def __init__(
        self,
        scale: Tensor,
        offset: Tensor,
        bitwidth: int,
        signed: bool = False,
        symmetry: bool = False,
        block_size: tuple[int, ...] | None = None,
        **kwargs: Any,
    ) -> None:
        """An encoding of vectors; all five attributes are keywords.

        Raises:
            KeyError: one of them is missing.
        """
        for name in _VECTOR:
            setattr(self, name, kwargs.pop(name))
        given: dict[str, Any] = {"signed": signed, "symmetry": symmetry, "block_size": block_size}
        super().__init__(scale, offset, bitwidth=bitwidth, **given, **kwargs)

    def to_qnn_encoding_dict(self, encoding_version: str | None = None) -> dict[str, Any] | list[dict[str, Any]]:
        """The encoding as QNN reads it, and its vectors in 0.6.1 and 1.0.0; errors as ``AffineEncoding``'s."""
        found = super().to_qnn_encoding_dict(encoding_version)
        if isinstance(found, list):
            return [row | self._get_additional_properties() for row in found]
        if encoding_version == "1.0.0":
            found |= {**self._get_additional_properties(), "enc_type": "VECTOR"}
        return found

    def _get_additional_properties(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _VECTOR}


def _named(args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
    """The arguments after the offset by name."""
    names = _ENDS if second_is_end(args, kwargs) else _BITS
    positions = dict(zip(names, args, strict=False))
    unknown = [name for name in kwargs if name in positions or name not in {*_ENDS, *_BITS, "producer"}]
    if len(args) > len(names) or unknown:
        said = f"{len(args)} arguments after offset and the keywords {', '.join(kwargs) or 'none'}"
        msg = f"{said} are not accepted: give {', '.join(_BITS)}, or {', '.join(_ENDS)}; and producer"
        raise TypeError(msg)
    return positions | kwargs
