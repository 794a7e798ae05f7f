"""The affine quantizers: to codes, to reals on the grid, from codes to reals, and with scales that share a factor."""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Self, TypeVar

import torch
from torch import Tensor

from halfeven.optimized.aimet.affine.encoding import AffineEncoding, GroupedBlockEncoding
from halfeven.optimized.aimet.affine.functional import apply
from halfeven.optimized.aimet.affine.parameters import MinMaxQuantizer, ScaleOffsetQuantizer
from halfeven.optimized.aimet.affine.quantizer_arguments import blocks_of
from halfeven.optimized.aimet.affine.quantizer_base import AffineQuantizerBase
from halfeven.optimized.aimet.arguments import plain
from halfeven.optimized.aimet.encoding_analyzer import EncodingAnalyzer
from halfeven.optimized.aimet.tensor import DequantizedTensor, QuantizedTensor, QuantizedTensorBase

__all__ = [
    "AffineQuantizerBase",
    "Dequantize",
    "GroupedBlockQuantizeDequantize",
    "MinMaxQuantizer",
    "Quantize",
    "QuantizeDequantize",
    "ScaleOffsetQuantizer",
]

T = TypeVar("T", bound=QuantizedTensorBase)


class Quantize(AffineQuantizerBase):
    """Codes of an input, clamp(half_even(x / scale) − offset, qmin, qmax), as a ``QuantizedTensor``.

    Scale and offset follow from ``min`` and ``max``, which need a value first: from ``compute_encodings``,
    ``set_range``, or by assigning new parameters. An element belongs to the block at floor(j / block_size); along a
    dimension where ``shape`` is 1 all blocks share one parameter. Arguments as of ``AffineQuantizerBase``.

    Upstream: refuses the calls of its own two examples, where a dimension of 10 has one parameter and blocks of 5.

    Raises:
        RuntimeError: a ``zero_point_shift`` other than 0.
    """

    def __init__(self, shape: Sequence[int] | int, *args: Any, **kwargs: Any) -> None:
        """A quantizer whose parameters have no value yet."""
        super().__init__(shape, *args, **kwargs)
        if self.zero_point_shift:
            msg = f"zero_point_shift={self.zero_point_shift} is not accepted by Quantize: its codes are half integers"
            raise RuntimeError(msg)

    def forward(self, input: Tensor) -> QuantizedTensor:  # noqa: A002 - the document's name
        """The codes of ``input``, in its shape and dtype.

        Raises:
            RuntimeError: the parameters have no value and ``input`` has elements; as ``affine.quantize``.
            ValueError: as there.
        """
        x = plain("input", input)
        encoding = self._encoding_for(x)
        return _carrying(encoding.quantize(x), encoding, QuantizedTensor)


class QuantizeDequantize(AffineQuantizerBase):
    """An input on the grid, (q + offset)·scale of the codes q of ``Quantize``, as a ``DequantizedTensor``.

    One rounding to the input's dtype, at the end; the values are those of ``Quantize()(x).dequantize()``. The same
    ones whether gradients are recorded or not. A ``zero_point_shift`` of 0.5 moves every real by half a scale. Else
    as ``Quantize``.

    Upstream: without gradients multiplies by the reciprocal of the scale, which moves some ties.
    """

    def forward(self, input: Tensor) -> DequantizedTensor:  # noqa: A002 - the document's name
        """The reals of ``input`` on the grid, in its shape and dtype.

        Raises:
            RuntimeError: the parameters have no value and ``input`` has elements; as ``affine.quantize_dequantize``.
            ValueError: as there.
        """
        x = plain("input", input)
        encoding = self._encoding_for(x)
        return _carrying(encoding.quantize_dequantize(x), encoding, DequantizedTensor)


class Dequantize(AffineQuantizerBase):
    """The reals (q + offset)·scale of codes q, as a ``DequantizedTensor``, computed as ``QuantizeDequantize`` does."""

    def forward(self, input: Tensor) -> DequantizedTensor:  # noqa: A002 - the document's name
        """The reals of the codes ``input``, in its shape and dtype.

        Raises:
            RuntimeError: there is a ``zero_point_shift``; the parameters have no value and ``input`` has elements;
                as ``affine.dequantize``.
            TypeError: as there.
        """
        x = plain("input", input)
        encoding = self._encoding_for(x)
        return _carrying(encoding.dequantize(x), encoding, DequantizedTensor)


class GroupedBlockQuantizeDequantize(QuantizeDequantize):
    """A symmetric ``QuantizeDequantize`` whose scales are k·c, with c shared by a group and k whole, 1 to K.

    K = 2^(decompressed_bw − bitwidth), c = max(raw) / K over the group, k = clamp(half_even(raw / c), 1, K), where
    ``raw`` is the scale that the range of a block gives.

    Upstream: inside ``compute_encodings`` quantizes with ``raw``; a state dict lacks the groups.

    Args:
        shape: of the parameters, one entry per block.
        bitwidth: width of the codes.
        symmetric: True.
        decompressed_bw: width of the codes in terms of c, ``bitwidth`` or more.
        encoding_analyzer: as in ``QuantizeDequantize``.
        block_size: elements per block.
        block_grouping: blocks per group, one entry per entry of ``shape``, which it divides; -1 for all along the
            dimension. By default 1: every block is a group, and its scale is ``raw``.

    Raises:
        RuntimeError: not symmetric; ``decompressed_bw`` below ``bitwidth``; groups that do not fit.
        TypeError, ValueError: as in ``QuantizeDequantize``.
    """

    decompressed_bw: int
    block_grouping: tuple[int, ...]

    def __init__(
        self,
        shape: Sequence[int] | int,
        bitwidth: int,
        symmetric: bool,
        decompressed_bw: int,
        encoding_analyzer: EncodingAnalyzer[Any] | None = None,
        block_size: Sequence[int] | None = None,
        block_grouping: Sequence[int] | None = None,
    ) -> None:
        """A quantizer whose parameters have no value yet."""
        super().__init__(shape, bitwidth, symmetric, encoding_analyzer, block_size)
        if not symmetric:
            msg = f"symmetric={symmetric} is not accepted: the codes of groups are symmetric, give True"
            raise RuntimeError(msg)
        self._group(decompressed_bw, block_grouping)

    def _group(self, decompressed_bw: int, block_grouping: Sequence[int] | None) -> None:
        groups = (1,) * len(self.shape) if block_grouping is None else blocks_of(block_grouping) or ()
        if len(groups) != len(self.shape) or any(
            b != -1 and (b < 1 or n % b) for n, b in zip(self.shape, groups, strict=True)
        ):
            msg = f"block_grouping={groups} is not accepted for shape={self.shape}: give sizes that divide it, or -1"
            raise RuntimeError(msg)
        if decompressed_bw < self.bitwidth:
            msg = f"decompressed_bw={decompressed_bw} is not accepted: give {self.bitwidth}, the bitwidth, or more"
            raise RuntimeError(msg)
        self.decompressed_bw, self.block_grouping = decompressed_bw, groups

    def get_scale(self, dtype: torch.dtype | None = None) -> Tensor | None:
        """Real per code of each block, k·c, computed in ``dtype`` (float32); None without a value."""
        raw = super().get_scale(dtype)
        return None if raw is None else _grouped(raw, self.block_grouping, self._highest)[0]

    def get_per_channel_scale(self, dtype: torch.dtype | None = None) -> Tensor | None:
        """The scale c of each group, computed in ``dtype`` (float32); None without a value."""
        raw = super().get_scale(dtype)
        return None if raw is None else _shared(raw, self.block_grouping, self._highest)

    def set_encodings(self, encodings: Any) -> None:
        """Take ``encodings`` with their groups; see ``AffineQuantizerBase.set_encodings``.

        Raises:
            ValueError: also if the scales are not the multiples that their groups give.
        """
        super().set_encodings(encodings)
        self._group(encodings.decompressed_bw, encodings.block_grouping)

    @classmethod
    def _made_for(cls, encodings: Any) -> Self:
        _check_kind(encodings)
        shape, options = tuple(encodings.scale.shape), (encodings.block_size, encodings.block_grouping)
        return cls(shape, encodings.bitwidth, encodings.symmetry, encodings.decompressed_bw, None, *options)

    def _check_encoding(self, encodings: Any) -> None:
        super()._check_encoding(encodings)
        _check_kind(encodings)
        wanted = tuple(t.detach().to(torch.float32) for t in (encodings.scale, encodings.per_channel_scale))
        k = 2 ** ((encodings.decompressed_bw or 0) - encodings.bitwidth)
        if not all(
            map(torch.equal, _grouped(wanted[0], encodings.block_grouping or (1,) * len(self.shape), k), wanted)
        ):
            msg = (
                f"scale={encodings.scale} with per_channel_scale={encodings.per_channel_scale} is not accepted: "
                f"give whole multiples, 1 to {k}, the largest of each group {k}"
            )
            raise ValueError(msg)

    def get_extra_state(self) -> Any:
        """As ``AffineQuantizerBase``, and the groups."""
        state = super().get_extra_state()
        if isinstance(state, dict):
            state["decompressed_bw"] = torch.tensor(self.decompressed_bw)
            state["block_grouping"] = torch.tensor(self.block_grouping)
        return state

    def set_extra_state(self, state: Any) -> None:
        """As ``AffineQuantizerBase``, and the groups where ``state`` has them."""
        super().set_extra_state(state)
        if isinstance(state, Mapping) and "block_grouping" in state:
            self._group(int(state["decompressed_bw"]), blocks_of(state["block_grouping"]) or ())

    def _encoding(self, scale: Tensor, offset: Tensor) -> GroupedBlockEncoding:
        grouped, shared = _grouped(scale, self.block_grouping, self._highest)
        return GroupedBlockEncoding(
            grouped,
            offset,
            self.bitwidth,
            self.signed,
            self.symmetric,
            self.block_size,
            self.block_grouping,
            self.decompressed_bw,
            shared,
            zero_point_shift=self.zero_point_shift,
            producer=self,
        )

    @property
    def _highest(self) -> int:
        return int(2 ** (self.decompressed_bw - self.bitwidth))


def _check_kind(encodings: Any) -> None:
    if not isinstance(encodings, GroupedBlockEncoding) or encodings.per_channel_scale is None:
        msg = f"encodings={encodings!r} is not accepted: give a GroupedBlockEncoding with a per_channel_scale"
        raise TypeError(msg)


def _grouped(raw: Tensor, grouping: Sequence[int], highest: int) -> tuple[Tensor, Tensor]:
    """The scales of blocks, and the one of each group, of what the ranges give."""
    shared = _shared(raw, grouping, highest)
    return apply(raw, shared, torch.zeros_like(shared), 1, highest, grouping), shared


def _shared(raw: Tensor, grouping: Sequence[int], highest: int) -> Tensor:
    sizes = (n if b == -1 else b for n, b in zip(raw.shape, grouping, strict=True))
    groups = tuple(chain.from_iterable((n // b if b else 0, b) for n, b in zip(raw.shape, sizes, strict=True)))
    return (raw.reshape(groups).amax(tuple(range(1, len(groups), 2))) if groups else raw) / highest


def _carrying(values: Tensor, encoding: AffineEncoding, kind: type[T]) -> T:
    """``values`` as a tensor of ``kind`` that knows its encoding."""
    tensor = values.as_subclass(kind)
    tensor.encoding = encoding
    return tensor
