"""The format of a float quantizer and its largest real: how they change, and how they are stored."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from halfeven.optimized.aimet.base.quantizer import QuantizerBase
from halfeven.optimized.aimet.float import cast
from halfeven.optimized.aimet.float.formats import BFLOAT16, FLOAT16, FloatFormat

__all__ = ["FormatParameters"]


class FormatParameters(QuantizerBase):
    """A quantizer's float format, and the largest real from which its scale follows.

    Attributes:
        shape: of the scales.
        block_size: elements per block, one entry per entry of ``shape``; None without blocks.
        maxval: the largest real, of ``shape``.
    """

    shape: tuple[int, ...]
    block_size: tuple[int, ...] | None
    maxval: Tensor
    _finfo: FloatFormat
    _scaled_for: FloatFormat

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
