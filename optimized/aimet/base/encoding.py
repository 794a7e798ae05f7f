"""What a quantized tensor knows of how its values and its codes belong together."""

import abc
import copy
import math
from collections.abc import Callable
from typing import Any, Self

from torch import Tensor
from torch._C._nn import _parse_to

from halfeven.optimized.aimet.arguments import concretize

__all__ = ["EncodingBase"]


class EncodingBase(abc.ABC):
    """A map between reals and codes, and the tensors it is made of.

    Every tensor among the attributes is a part of the encoding: copies, casts and detached encodings treat all of them.

    Attributes:
        scale: real per code.
        block_size: elements per block, one entry per dimension of ``scale``; None without blocks.
        producer: the quantizer that gave the encoding, or None.
    """

    scale: Tensor
    block_size: tuple[int, ...] | None
    producer: Any
    _input_shape_hint: tuple[int, ...] | None

    def __init__(self) -> None:
        """No shape of an input is known yet."""
        self._input_shape_hint = None

    @property
    @abc.abstractmethod
    def bitwidth(self) -> int:
        """The width of a code in bits."""

    @property
    @abc.abstractmethod
    def mapping(self) -> str:
        """The kind of map, a word."""

    @abc.abstractmethod
    def quantize(self, input: Tensor) -> Tensor:  # noqa: A002 - the document's name
        """Codes of the reals ``input``, in its shape and dtype."""

    @abc.abstractmethod
    def dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """Reals of the codes ``input``, in its shape and dtype."""

    @abc.abstractmethod
    def quantize_dequantize(self, input: Tensor) -> Tensor:  # noqa: A002
        """The reals ``input`` on the grid, in its shape and dtype."""

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """This encoding with its tensors cast or moved, arguments as in ``torch.Tensor.to``; itself if all stays.

        Upstream: a new object in any case, without the hinted shape of the input.

        Raises:
            RuntimeError: a dtype that is no float.
        """
        device, dtype, non_blocking, _ = _parse_to(*args, **kwargs)
        if dtype is not None and not dtype.is_floating_point:
            msg = f"dtype={dtype} is not accepted for an encoding: give a floating point dtype"
            raise RuntimeError(msg)
        tensors = [value for value in vars(self).values() if isinstance(value, Tensor)]
        if all(dtype in {None, t.dtype} and device in {None, t.device} for t in tensors):
            return self
        return self._mapped(lambda t: t.to(device=device, dtype=dtype, non_blocking=non_blocking))

    def _mapped(self, function: Callable[[Tensor], Tensor]) -> Self:
        """A shallow copy, with ``function`` of each tensor instead of the tensor."""
        copied = copy.copy(self)
        for name, value in vars(self).items():
            if isinstance(value, Tensor):
                setattr(copied, name, function(value))
        return copied

    def _detach(self) -> Self:
        """A copy whose tensors are detached from the graph; they share memory with this one's."""
        return self._mapped(Tensor.detach)

    def _clone(self) -> Self:
        """A copy whose tensors are clones of this one's."""
        return self._mapped(Tensor.clone)

    def _scaled(self, factor: float, *, divide: bool = False) -> Self | None:
        """The encoding of the reals of this one multiplied (or divided) by ``factor``; None if there is none.

        There is none for 0 and for what is not finite: it leaves no scale to divide by.
        """
        if factor == 0 or not math.isfinite(factor):
            return None
        size = abs(factor)
        return self._rescaled(lambda scale: scale / size if divide else scale * size)

    def _rescaled(self, function: Callable[[Tensor], Tensor]) -> Self:
        """A copy whose scales are ``function`` of this one's, and whose other tensors are clones."""
        scaled = self._clone()
        scaled.scale = function(self.scale)
        return scaled

    def to_qnn_encoding_dict(self, encoding_version: str | None = None) -> dict[str, Any] | list[dict[str, Any]]:
        """The encoding as lists, numbers and words.

        Raises:
            NotImplementedError: this kind of encoding is not exported.
        """
        msg = f"{type(self).__qualname__} is not exported (encoding_version={encoding_version!r})"
        raise NotImplementedError(msg)

    @classmethod
    def _from_qnn_encoding_dict(cls, encoding_dict: dict[str, Any], version: str | None = None) -> "EncodingBase":
        msg = f"{cls.__qualname__} is not read from {sorted(encoding_dict)} (version={version!r})"
        raise NotImplementedError(msg)

    @property
    def granularity(self) -> str:
        """What shares a scale: "pertensor", "perchannel", "blockwise" or "unknown"."""
        if self.scale.dim() == 0:
            return "pertensor"
        if self.block_size is not None:
            return "blockwise"
        return "perchannel" if sum(n > 1 for n in self.scale.shape) <= 1 else "unknown"

    def _hint_input_shape(self, input_shape: tuple[int, ...]) -> Self:
        """Keep the shape of the tensor to be quantized, which the axes of an export follow from."""
        self._input_shape_hint = input_shape
        return self

    def _safe_get_channel_and_block_axis(self) -> tuple[int | None, int | None]:
        """The axes, negative, along which there are several scales: of one element each, and of more.

        Raises:
            RuntimeError: no shape was hinted, or the axes are not unique.
        """
        if self._input_shape_hint is None:
            msg = "input_shape=None is not accepted: call _hint_input_shape first, the axes follow from that shape"
            raise RuntimeError(msg)
        scales = self.scale.shape
        sizes = concretize(self._input_shape_hint, scales, self.block_size or ())
        several = [(axis - len(scales), size) for axis, size in enumerate(sizes) if scales[axis] > 1]
        channels = [axis for axis, size in several if size <= 1]
        blocks = [axis for axis, size in several if size > 1]
        if len(channels) > 1 or len(blocks) > 1 or (blocks and not channels):
            msg = (
                f"scale of shape {tuple(scales)} in blocks of {self.block_size} is not accepted: "
                f"give one channel axis and at most one axis of blocks, not {channels} and {blocks}"
            )
            raise RuntimeError(msg)
        return next(iter(channels), None), next(iter(blocks), None)
