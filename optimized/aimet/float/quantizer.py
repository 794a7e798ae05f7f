"""The float quantizer: a cast to a narrow float format and back, with scales that follow from the largest magnitude."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import torch
from torch import Tensor

from halfeven.optimized.aimet.base.quantizer import QuantizerBase
from halfeven.optimized.aimet.encoding_analyzer import EncodingAnalyzer, MinMaxEncodingAnalyzer
from halfeven.optimized.aimet.float import cast
from halfeven.optimized.aimet.float.encoding import FloatEncoding
from halfeven.optimized.aimet.float.formats import BFLOAT16, FLOAT16, FloatFormat
from halfeven.optimized.aimet.tensor import DequantizedTensor

__all__ = ["FloatQuantizeDequantize", "QuantizeDequantize"]

_CALIBRATED_BELOW = 16  # bits


class FloatQuantizeDequantize(QuantizerBase):
    """An input as numbers of a float format times a scale, as a ``DequantizedTensor`` of the input's dtype.

    cast(x / scale)·scale: the nearest number of the format, ties to even, at most its largest; NaN stays. The scale is
    ``maxval`` / largest number, rounded once. Formats of two widths are IEEE's, with subnormal numbers. Quotient, cast
    and product are rounded to the input's dtype. The gradient goes straight through the cast: it is one within the
    range, and zero beyond it and at NaN.

    Args:
        exponent_bits: width of the exponent, 2 to 11; with ``mantissa_bits``, or ``dtype``.
        mantissa_bits: width of the mantissa, 1 to 52.
        finite: the format has no infinities; False if left out.
        unsigned_zero: the format has no -0.0; False if left out.
        dtype: one of torch's float8 dtypes, float16 or bfloat16, and the flags are then not read.
        shape: of the scales; () if left out, or the analyzer's. An entry of 1 shares a scale along its dimension.
        block_size: elements per block, one entry per entry of ``shape``; -1 for as many as share evenly.
        encoding_analyzer: what finds the range; by default least and greatest value for formats of fewer than 16
            bits, and none for others, whose scale is 1.

    Attributes:
        maxval: the largest real, of ``shape``; at first the format's largest number, which is a scale of 1.

    Raises:
        ValueError: both or neither way to give the format; a width or dtype that is not accepted.
        RuntimeError: flags with widths that have no name, other than (4, 3, True, False), (4, 3, True, True),
            (5, 2, True, True) and (2, 1, True, False); an analyzer whose shape does not expand to ``shape``.

    Upstream: the scale goes through logarithms of float32, and is seldom exact; formats that torch lacks have a unit
    below IEEE's smallest; float64 is rounded twice; other scales than 0-d ones make the result float32; shapes and
    blocks are not checked; the gradient is rounded to the format, or zero; flags with ``dtype`` are refused, though
    documented to be ignored; setting widths leaves ``maxval`` at the old format's largest number. Its text says that
    ``finite`` formats have infinities and that ``unsigned_zero`` is True if left out: its code does as here.
    """

    block_size: tuple[int, ...] | None
    maxval: Tensor

    def __init__(
        self,
        exponent_bits: int | None = None,
        mantissa_bits: int | None = None,
        finite: bool | None = None,
        unsigned_zero: bool | None = None,
        dtype: torch.dtype | None = None,
        shape: Sequence[int] | int | None = None,
        block_size: Sequence[int] | None = None,
        encoding_analyzer: EncodingAnalyzer[Any] | None = None,
    ) -> None:
        """A quantizer whose scale is 1."""
        super().__init__()
        self._finfo = _format(exponent_bits, mantissa_bits, finite, unsigned_zero, dtype)
        self._finfo.check()
        self._scaled_for = self._finfo  # whose largest number stands for a scale of 1
        if shape is None:
            shape = encoding_analyzer.observer.shape if encoding_analyzer else ()
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        self.block_size = tuple(int(b) for b in block_size or ()) or None
        if encoding_analyzer is None and self.bitwidth < _CALIBRATED_BELOW:
            encoding_analyzer = MinMaxEncodingAnalyzer(self.shape, self.block_size)
        self.encoding_analyzer = encoding_analyzer
        if encoding_analyzer is not None:
            self._check_analyzer()
        self._batch: Tensor | None = None
        self.register_buffer("maxval", torch.full(self.shape, self._finfo.max, dtype=self._finfo.holder))
        self._is_overwrite_allowed["maxval"] = True

    @property
    def exponent_bits(self) -> int:
        """The width of the exponent."""
        return self._finfo.exponent_bits

    @exponent_bits.setter
    def exponent_bits(self, exponent_bits: int) -> None:
        """Keep scales of 1, and ``maxval`` where it was given a value."""
        self._set_format(self._finfo._replace(exponent_bits=exponent_bits))

    @property
    def mantissa_bits(self) -> int:
        """The width of the mantissa."""
        return self._finfo.mantissa_bits

    @mantissa_bits.setter
    def mantissa_bits(self, mantissa_bits: int) -> None:
        """Keep scales of 1, and ``maxval`` where it was given a value."""
        self._set_format(self._finfo._replace(mantissa_bits=mantissa_bits))

    @property
    def bitwidth(self) -> int:
        """The width of a number in bits, that of its sign included."""
        return self.exponent_bits + self.mantissa_bits + 1

    def is_float16(self) -> bool:
        """Whether the format is float16."""
        return self._finfo == FLOAT16

    def is_bfloat16(self) -> bool:
        """Whether the format is bfloat16."""
        return self._finfo == BFLOAT16

    def get_extra_state(self) -> Any:
        """The format and the blocks, tensors by name."""
        state = super().get_extra_state()
        if isinstance(state, dict):
            own = self._finfo._asdict() | {"block_size": self.block_size or ()}
            state |= {name: torch.tensor(value) for name, value in own.items()}
        return state

    def set_extra_state(self, state: Any) -> None:
        """Take what ``get_extra_state`` gave, without changing it."""
        super().set_extra_state(state)
        given = state if isinstance(state, Mapping) else {}
        e, m, finite, unsigned_zero = (given.get(name, value) for name, value in self._finfo._asdict().items())
        self._finfo = self._scaled_for = FloatFormat(int(e), int(m), bool(finite), bool(unsigned_zero))
        self.block_size = tuple(int(b) for b in given.get("block_size", self.block_size or ())) or None

    def get_scale(self) -> Tensor:
        """|maxval| / largest number, float32, rounded once; 1 where ``maxval`` is that number in its own dtype."""
        return cast.scale(self.maxval if self._batch is None else self._batch, self._finfo)

    def get_encodings(self) -> FloatEncoding:
        """The map that ``forward`` applies."""
        e, m, finite, unsigned_zero = self._finfo
        return FloatEncoding(m, e, finite, unsigned_zero, self.get_scale(), self.block_size, producer=self)

    def get_legacy_encodings(self) -> list[dict[str, Any]]:
        """One dictionary, of the width alone."""
        return [{"bitwidth": self.bitwidth, "dtype": "float"}]

    def set_legacy_encodings(self, encodings: list[dict[str, Any]]) -> None:
        """Become float16 with a scale of 1.

        Upstream: keeps the flags of the format and ``maxval``.

        Raises:
            RuntimeError: another width than 16.
        """
        if encodings[0]["bitwidth"] != 16:  # noqa: PLR2004
            msg = f"bitwidth={encodings[0]['bitwidth']} is not accepted: give 16, for float16"
            raise RuntimeError(msg)
        self._set_format(FLOAT16)
        with torch.no_grad():
            self.maxval.copy_(cast.held(FLOAT16.max, self.maxval))

    @classmethod
    def from_encodings(cls, encodings: Any) -> Self:
        """A quantizer with the format, the scale to the bit, and the blocks of ``encodings``.

        ``maxval`` is float64 where no float32 one gives the scale.

        Raises:
            TypeError: another kind of encoding.
        """
        if not isinstance(encodings, FloatEncoding):
            msg = f"encodings={encodings!r} is not accepted: give a FloatEncoding"
            raise TypeError(msg)
        scale = encodings.scale.detach().float()
        made = cls(*encodings._finfo, shape=tuple(scale.shape), block_size=encodings.block_size)  # noqa: SLF001
        made.maxval = scale.double() * made._finfo.max
        exact, narrow = made.maxval, made.maxval.to(made._finfo.holder)
        made.maxval = narrow
        if not torch.equal(made.get_scale(), scale):
            made.maxval = exact
        return made

    @contextmanager
    def compute_encodings(self) -> Iterator[None]:
        """A context that observes the inputs, quantizes each batch by its own range, and at its end takes that of all.

        After an error, without an element, or without an analyzer, the quantizer is what it was.
        """
        if self.encoding_analyzer is None or not self.is_overwrite_allowed():
            yield
            return
        steps = 2**self.bitwidth - 1
        with self._observing(steps, False, self._of_batch, self._of_all, integers=False):
            yield

    @contextmanager
    def _of_batch(self, low: Tensor, high: Tensor) -> Iterator[None]:
        """Apply the scale of a range instead of the quantizer's own."""
        self._batch = self._magnitude(low, high)
        try:
            yield
        finally:
            self._batch = None

    @torch.no_grad()
    def _of_all(self, low: Tensor, high: Tensor) -> None:
        self.maxval.copy_(self._magnitude(low, high))

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002 - the document's name
        """``input`` on the numbers of the format times the scale; integers come back as they are.

        Raises:
            RuntimeError: the scale does not broadcast to ``input``, or the blocks do not make it up.
            ValueError: another float dtype than float32, float64, float16 and bfloat16.
        """
        if not input.is_floating_point():
            return input
        encoding = self.get_encodings()
        tensor = encoding.quantize_dequantize(input).as_subclass(DequantizedTensor)
        tensor.encoding = encoding
        return tensor

    def extra_repr(self) -> str:
        """The arguments that the quantizer was made of."""
        dtype = self._finfo.torch_dtype
        own = {"dtype": dtype} if dtype else self._finfo._asdict()
        said = own | {"shape": self.shape or None, "block_size": self.block_size}
        return ", ".join(f"{name}={value}" for name, value in said.items() if value is not None)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """Take the shape of ``maxval``, too; where there is none, the scale is 1."""
        name, missing = f"{prefix}maxval", rest[2]
        value = state_dict.get(name)
        if value is not None and (value.shape != self.maxval.shape or value.dtype == torch.float64):
            wide = torch.promote_types(self.maxval.dtype, value.dtype) if value.dtype == torch.float64 else None
            self.maxval = self.maxval.new_empty(value.shape, dtype=wide)
        super()._load_from_state_dict(state_dict, prefix, *rest)
        if value is None:
            missing[:] = [key for key in missing if key != name]
            self.maxval = cast.held(self._finfo.max, self.maxval).expand_as(self.maxval).clone()
        self.shape = tuple(self.maxval.shape)

    def _set_format(self, format_: FloatFormat) -> None:
        self._finfo = format_
        try:
            format_.check()
        except (RuntimeError, ValueError):
            return  # on the way to one: forward refuses it
        old, new = (cast.held(f.max, self.maxval) for f in (self._scaled_for, format_))
        with torch.no_grad():
            self.maxval = torch.where(self.maxval == old, new, self.maxval)
        self._scaled_for = format_

    def _magnitude(self, low: Tensor, high: Tensor) -> Tensor:
        """The greater magnitude of a range, as ``maxval`` holds it."""
        most = torch.maximum(low.abs(), high.abs())
        return most.to(dtype=self.maxval.dtype, device=self.maxval.device).expand_as(self.maxval)


class QuantizeDequantize(FloatQuantizeDequantize):
    """``FloatQuantizeDequantize``, by the name that the affine quantizer has."""


def _format(
    exponent_bits: int | None,
    mantissa_bits: int | None,
    finite: bool | None,
    unsigned_zero: bool | None,
    dtype: torch.dtype | None,
) -> FloatFormat:
    bits = f"exponent_bits={exponent_bits}, mantissa_bits={mantissa_bits}"
    if dtype is not None and exponent_bits is None and mantissa_bits is None:
        return FloatFormat.of(dtype)
    if dtype is None and exponent_bits is not None and mantissa_bits is not None:
        return FloatFormat(exponent_bits, mantissa_bits, bool(finite), bool(unsigned_zero))
    msg = f"dtype={dtype}, {bits} is not accepted: give dtype, or else both widths"
    raise ValueError(msg)
