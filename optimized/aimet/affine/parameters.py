"""The range of an affine quantizer: as parameters min and max, or as scale and offset."""

from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn

from halfeven.optimized.aimet.affine import range as ranges
from halfeven.optimized.aimet.affine.grid import Grid
from halfeven.optimized.aimet.base.quantizer import QuantizerBase

__all__ = ["MinMaxQuantizer", "RangeParameters", "ScaleOffsetQuantizer"]


@runtime_checkable
class MinMaxQuantizer(Protocol):
    """An affine quantizer with parameters ``min`` and ``max``, in reals."""

    _is_min_max: Any

    shape: tuple[int, ...]
    qmin: int
    qmax: int
    symmetric: bool


@runtime_checkable
class ScaleOffsetQuantizer(Protocol):
    """An affine quantizer with parameters ``scale``, real per code, and ``offset``, in codes; None if symmetric."""

    _is_scale_offset: Any

    shape: tuple[int, ...]
    qmin: int
    qmax: int
    symmetric: bool


class RangeParameters(Grid, QuantizerBase):
    """A quantizer's grid, and the parameters from which its scale and offset follow.

    To change the kind of parameters keeps scale and offset, to the bit, where the other kind has such values.

    Upstream: scale and offset go through the minimum and the maximum, which changes some in the last place, and an
    offset that the grid's limits stopped is not stopped any more.

    Attributes:
        shape: of the parameters, and of scale and offset.
        zero_point_shift: what moves every real of the grid, in codes: 0.0 or 0.5.
    """

    shape: tuple[int, ...]
    zero_point_shift: float
    _symmetric: bool

    def _is_min_max_quantizer(self) -> bool:
        return "min" in self._parameters and "max" in self._parameters

    def _is_scale_offset_quantizer(self) -> bool:
        return "scale" in self._parameters and "offset" in self._parameters

    def __getattr__(self, name: str) -> Any:
        """As of a module; asked for a parameter of the other kind, says what to ask for."""
        try:
            return super().__getattr__(name)
        except AttributeError as error:
            other = {"min": "scale", "max": "scale", "scale": "min", "offset": "min"}.get(name)
            if other is None or other not in self.__dict__.get("_parameters", {}):
                raise
            msg = (
                f"{type(self).__qualname__} has no {name}: its parameters are {' and '.join(self._parameters)}; "
                f"read it by get_{name}(), set a range by set_range()"
            )
            raise AttributeError(msg) from error

    @property
    def symmetric(self) -> bool:
        """Whether the offset is minus the middle of the grid, whatever the range."""
        return self._symmetric if self._is_min_max_quantizer() else self.offset is None

    @symmetric.setter
    def symmetric(self, symmetric: bool) -> None:
        """Parameters ``scale`` and ``offset`` gain or lose the latter."""
        symmetric = bool(symmetric)
        if self._is_scale_offset_quantizer() and symmetric != self.symmetric:
            offset = None if symmetric else nn.Parameter(self._middle(), requires_grad=self.scale.requires_grad)
            self.offset = offset
        self._symmetric = symmetric

    def get_min(self, dtype: torch.dtype | None = None) -> Tensor | None:
        """The least real on the grid, scale·(offset + qmin + shift), in ``dtype`` (float32); None without a value.

        It differs from the parameter ``min`` where that is not on the grid.
        """
        return self._real(self.qmin, dtype)

    def get_max(self, dtype: torch.dtype | None = None) -> Tensor | None:
        """The greatest real on the grid, scale·(offset + qmax + shift); else as ``get_min``."""
        return self._real(self.qmax, dtype)

    def get_scale(self, dtype: torch.dtype | None = None) -> Tensor | None:
        """Real per code, computed in ``dtype`` (float32); None without a value."""
        return self._scale(dtype or torch.float32) if self.is_initialized() else None

    def get_offset(self, dtype: torch.dtype | None = None) -> Tensor | None:
        """Minus the zero point, in codes, by a scale of ``dtype`` (float32); None without a value."""
        if not self.is_initialized():
            return None
        dtype = dtype or torch.float32
        return self._offset(self._scale(dtype), dtype)

    @torch.no_grad()
    def set_range(self, min: Any, max: Any) -> None:  # noqa: A002 - the document's names
        """Set the range, in reals: numbers, lists or tensors that broadcast to ``shape``; None keeps an end.

        Raises:
            RuntimeError: an end does not broadcast.
            ValueError: one end alone, where the parameters are scale and offset without a value.
        """
        ends = {name: end for name, end in (("min", min), ("max", max)) if end is not None}
        ends = {name: end if isinstance(end, Tensor) else torch.tensor(end) for name, end in ends.items()}
        if not ends:
            return
        if self._is_min_max_quantizer():
            ends = {name: end.expand(getattr(self, name).shape) for name, end in ends.items()}
            for name, end in ends.items():
                getattr(self, name).copy_(end)
            self._has_value(*ends)
            return
        if len(ends) == 1 and not self.is_initialized():
            msg = f"{', '.join(ends)} alone is not accepted while scale and offset have no value: give both"
            raise ValueError(msg)
        scale = self._scale(torch.float32) if len(ends) == 1 else self.scale
        low, high = (
            ends[name].to(scale) if name in ends else scale * (self._offset(scale, torch.float32) + code)
            for name, code in (("min", self.qmin), ("max", self.qmax))
        )
        self._set_scale_and_offset(*self._derived(low.expand(self.shape), high.expand(self.shape)))

    def _derived(self, low: Tensor, high: Tensor) -> tuple[Tensor, Tensor]:
        """Scale and offset that a range gives; those of parameters scale and offset may leave zero outside."""
        if self.symmetric or self._is_min_max_quantizer():
            return ranges.derived(low, high, self.qmin, self.qmax, self.symmetric)
        scale = ranges.range_scale(low, high, self.num_steps)
        return scale, torch.round(low / scale) - self.qmin

    def _scale(self, dtype: torch.dtype) -> Tensor:
        if self._is_min_max_quantizer():
            return ranges.range_scale(self.min, self.max, self.num_steps, dtype)
        scale: Tensor = self.scale.abs().clamp_min(ranges.min_scale(self.num_steps)).to(dtype)
        return scale

    def _offset(self, scale: Tensor, dtype: torch.dtype) -> Tensor:
        if self.symmetric:
            return self._middle(dtype)
        if self._is_min_max_quantizer():
            return ranges.range_offset(self.min, scale, self.qmin, self.qmax).to(dtype)
        offset: Any = self.offset
        return ranges.nearest_integer(offset).to(dtype)

    def _real(self, code: int, dtype: torch.dtype | None) -> Tensor | None:
        scale, offset = self.get_scale(dtype), self.get_offset(dtype)
        return None if scale is None or offset is None else scale * (offset + code + self.zero_point_shift)

    def _middle(self, dtype: torch.dtype = torch.float32) -> Tensor:
        value = ranges.middle_offset(self.qmin, self.qmax)
        return torch.full(self.shape, value, dtype=dtype, device=self._device())

    def _device(self) -> torch.device:
        return next(p.device for p in self.parameters())

    @torch.no_grad()
    def _set_scale_and_offset(self, scale: Tensor, offset: Tensor) -> None:
        self.scale.copy_(scale)
        if self.offset is not None:
            self.offset.copy_(offset)
        self._has_value("scale", "offset")

    def _reparametrize_to_scale_offset(self) -> None:
        """Make scale and offset the parameters, float32, with the values that they have now."""
        if self._is_scale_offset_quantizer():
            return
        found = (self.get_scale(), self.get_offset())
        symmetric, grad = self.symmetric, self.min.requires_grad or self.max.requires_grad
        middle = self._middle()
        for name in ("min", "max"):
            self._forget(name)
        scale = torch.ones(self.shape, device=middle.device)
        self.register_quantization_parameter("scale", nn.Parameter(scale, grad))
        self.register_quantization_parameter("offset", None if symmetric else nn.Parameter(middle, grad))
        if found[0] is not None and found[1] is not None:
            self._set_scale_and_offset(found[0], found[1])
        self.__dict__.pop("_is_min_max", None)
        self._is_scale_offset = True

    def _reparametrize_to_min_max(self) -> None:
        """Make minimum and maximum the parameters; scale and offset keep their values where a range has them."""
        if self._is_min_max_quantizer():
            return
        kind: dict[str, Any] = {}
        ends, grad, value = None, True, self._is_scale_offset_quantizer() and self.is_initialized()
        if self._is_scale_offset_quantizer():
            kind, grad, self._symmetric = {"device": self.scale.device}, self.scale.requires_grad, self.symmetric
            with torch.no_grad():
                scale = self._scale(torch.float32)
                offset = self._offset(scale, torch.float32)
                near = (scale * (offset + self.qmin), scale * (offset + self.qmax))
                ends = ranges.exact_range(scale, offset, self.qmin, self.qmax, self._symmetric) or near
        for name in ("scale", "offset"):
            self._forget(name)
        for name, number in (("min", -1.0), ("max", 1.0)):
            placeholder = torch.full(self.shape, number, dtype=torch.float32, **kind)
            self.register_quantization_parameter(name, nn.Parameter(placeholder, grad))
        if value and ends is not None:
            self.set_range(*ends)
        self.__dict__.pop("_is_scale_offset", None)
        self._is_min_max = True

    def _forget(self, name: str) -> None:
        self._parameters.pop(name, None)
        self._has_value(name)
