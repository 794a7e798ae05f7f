"""The affine quantizers: to codes, to reals on the grid, and from codes to reals."""

from collections.abc import Sequence
from typing import Any, TypeVar

from torch import Tensor

from halfeven.optimized.aimet.affine.encoding import AffineEncoding
from halfeven.optimized.aimet.affine.quantizer_base import AffineQuantizerBase
from halfeven.optimized.aimet.inputs import plain
from halfeven.optimized.aimet.tensor import DequantizedTensor, QuantizedTensor, QuantizedTensorBase

__all__ = ["Dequantize", "Quantize", "QuantizeDequantize"]

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


def _carrying(values: Tensor, encoding: AffineEncoding, kind: type[T]) -> T:
    """``values`` as a tensor of ``kind`` that knows its encoding."""
    tensor = values.as_subclass(kind)
    tensor.encoding = encoding
    return tensor
