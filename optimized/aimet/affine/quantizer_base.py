"""The base of affine quantizers: how they are made, calibrated, stored, and given an encoding."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self, overload

import torch
from torch import Tensor, nn

from halfeven.optimized.aimet.affine import range as ranges
from halfeven.optimized.aimet.affine.encoding import AffineEncoding
from halfeven.optimized.aimet.affine.grid import shift_of
from halfeven.optimized.aimet.affine.parameters import RangeParameters
from halfeven.optimized.aimet.affine.quantizer_arguments import (
    blocks_of,
    check_reachable,
    grid_of,
    named,
    with_shared_blocks,
)
from halfeven.optimized.aimet.encoding_analyzer import EncodingAnalyzer, MinMaxEncodingAnalyzer

__all__ = ["AffineQuantizerBase"]


class AffineQuantizerBase(RangeParameters):
    """A quantizer x̂ = (q + offset)·scale of codes in [qmin, qmax], whose scale and offset follow from a range.

    Made of ``shape, bitwidth, symmetric`` or ``shape, qmin, qmax, symmetric``, and the options that follow. The codes
    of a bitwidth are signed where it is symmetric, else they start at 0.

    Args:
        shape: of the parameters; an entry of 1 shares one along its dimension.
        bitwidth: width of the codes.
        qmin: the lowest code.
        qmax: the highest code, above ``qmin``.
        symmetric: the offset is minus the middle of the grid; else it follows from the range, which has zero in it.
        encoding_analyzer: what finds a range from inputs; by default their least and greatest value.
        block_size: elements per block, one entry per entry of ``shape``; -1 for as many as share evenly.
        zero_point_shift: 0.0 or 0.5 codes, which move every real of the grid.

    Upstream: float bitwidths and ends make grids of floats; of an argument that is given twice the latter counts, of
    ``bitwidth`` and ends together the ends, and arguments beyond the last are dropped.

    Raises:
        TypeError: arguments of neither kind; no int where one is needed.
        ValueError: ``qmin`` is not below ``qmax``; a bitwidth below 1; another ``zero_point_shift``.
        RuntimeError: the shape of the analyzer does not expand to ``shape``.
    """

    block_size: tuple[int, ...] | None

    @overload
    def __init__(
        self,
        shape: Sequence[int] | int,
        qmin: int,
        qmax: int,
        symmetric: bool,
        encoding_analyzer: EncodingAnalyzer[Any] | None = None,
        block_size: Sequence[int] | None = None,
        zero_point_shift: float | None = None,
    ) -> None: ...
    @overload
    def __init__(
        self,
        shape: Sequence[int] | int,
        bitwidth: int,
        symmetric: bool,
        encoding_analyzer: EncodingAnalyzer[Any] | None = None,
        block_size: Sequence[int] | None = None,
        zero_point_shift: float | None = None,
    ) -> None: ...
    def __init__(self, shape: Sequence[int] | int, *args: Any, **kwargs: Any) -> None:
        """A quantizer whose parameters have no value yet."""
        super().__init__()
        self.shape = (shape,) if isinstance(shape, int) else tuple(int(n) for n in shape)
        given = named(args, kwargs)
        self.qmin, self.qmax = grid_of(given)
        self._symmetric = bool(given["symmetric"])
        self.block_size = blocks_of(given.get("block_size"))
        self.zero_point_shift = shift_of(given.get("zero_point_shift"))
        self.encoding_analyzer = given.get("encoding_analyzer") or MinMaxEncodingAnalyzer(self.shape, self._shared())
        self._batch: AffineEncoding | None = None
        self._check_analyzer()
        self._reparametrize_to_min_max()
        self._is_overwrite_allowed.update(min=True, max=True)

    def get_encodings(self) -> AffineEncoding | None:
        """The map that ``forward`` applies, scale and offset float32 and in the graph; None without a value."""
        if self._batch is not None:
            return self._batch
        if not self.is_initialized():
            return None
        scale = self._scale(torch.float32)
        return self._encoding(scale, self._offset(scale, torch.float32))

    def set_encodings(self, encodings: Any) -> None:
        """Take scale, offset, grid, blocks and shift of ``encodings``, to the bit.

        Where no float32 minimum and maximum give them, ``scale`` and ``offset`` become the parameters.

        Upstream: raises NotImplementedError.

        Raises:
            TypeError: another kind of encoding.
            RuntimeError: the scale does not have the shape of the parameters.
            ValueError: no quantizer has such an encoding: a scale that is below the least one, an offset that is no
                integer, or is not minus the middle of a symmetric grid.
        """
        self._check_encoding(encodings)
        like = next(self.parameters())
        scale, offset = (t.detach().to(like.device, torch.float32) for t in (encodings.scale, encodings.offset))
        offset = offset.expand(scale.shape)
        symmetric = encodings.symmetry
        check_reachable(scale, offset, encodings.qmin, encodings.qmax, symmetric)
        self.qmin, self.qmax, self.block_size = encodings.qmin, encodings.qmax, blocks_of(encodings.block_size)
        self.zero_point_shift, self.symmetric = encodings.zero_point_shift, symmetric
        with torch.no_grad():
            found = ranges.exact_range(scale, offset, self.qmin, self.qmax, symmetric)
        # Parameters of 16 bits do not hold the ends.
        if found is None or not self._is_min_max_quantizer() or torch.finfo(like.dtype).bits < 32:  # noqa: PLR2004
            self._reparametrize_to_scale_offset()
            self._set_scale_and_offset(scale, offset)
        else:
            self.set_range(*found)

    @classmethod
    def from_encodings(cls, encodings: Any) -> Self:
        """A quantizer with scale, offset, grid, blocks and shift of ``encodings``, to the bit; see ``set_encodings``.

        Upstream: goes through the minimum and the maximum, which changes some scales in the last place, and drops
        the shift.
        """
        if not isinstance(encodings, AffineEncoding):
            msg = f"encodings={encodings!r} is not accepted: give an AffineEncoding"
            raise TypeError(msg)
        quantizer = cls._made_for(encodings)
        quantizer.to(encodings.scale.device).set_encodings(encodings)
        return quantizer

    @classmethod
    def _made_for(cls, encodings: Any) -> Self:
        shape, grid = tuple(encodings.scale.shape), (encodings.qmin, encodings.qmax)
        return cls(shape, *grid, encodings.symmetry, None, encodings.block_size, encodings.zero_point_shift)

    @torch.no_grad()
    def get_legacy_encodings(self) -> list[dict[str, Any]] | None:
        """One dictionary per scale, with the keys of encodings of version 0.6.1; None without a value."""
        encoding = self.get_encodings()
        legacy = None if encoding is None else encoding.to_qnn_encoding_dict("0.6.1")
        return legacy if isinstance(legacy, list) else None

    @torch.no_grad()
    def set_legacy_encodings(self, encodings: list[dict[str, Any]]) -> None:
        """Take min and max of one dictionary per scale; the grid is that of ``bitwidth`` and ``is_symmetric``.

        So an asymmetric grid becomes unsigned, with the same reals, and a scale may change in the last place.

        Raises:
            ValueError: ``is_symmetric`` is neither "True" nor "False".
            RuntimeError: not as many dictionaries as ``shape`` has scales.
        """
        first = encodings[0]
        flag = str(first["is_symmetric"]).lower()
        if flag not in {"true", "false"}:
            msg = f"is_symmetric={first['is_symmetric']!r} is not accepted: give 'True' or 'False'"
            raise ValueError(msg)
        low, high = (torch.tensor([e[name] for e in encodings]).view(self.shape) for name in ("min", "max"))
        self.qmin, self.qmax = grid_of({"bitwidth": first["bitwidth"], "symmetric": flag == "true"})
        self.symmetric = flag == "true"
        self.zero_point_shift = shift_of(first.get("zero_point_shift"))
        self.set_range(low, high)

    @contextmanager
    def compute_encodings(self) -> Iterator[None]:
        """A context that observes the inputs, quantizes each batch by its own range, and at its end takes that of all.

        Scale and offset of a batch are derived as those of the quantizer are, so that one batch alone is quantized
        inside the context as after it. After an error, or without an element, the quantizer is what it was.

        Upstream: inside, the least scale and the limits of the offset are those of the analyzer alone: one that gives
        less, or a range without zero, quantizes the batch otherwise than after it.
        """
        if not self.is_overwrite_allowed():
            yield
            return
        # A shift of half a code leaves as many codes on either side of zero: one step less.
        steps = self.num_steps - (self.zero_point_shift == 0.5)  # noqa: PLR2004
        with self._observing(steps, self.symmetric, self._of_batch, self._of_all):
            yield

    def extra_repr(self) -> str:
        """The arguments that the quantizer was made of."""
        names = ("shape", "block_size", "qmin", "qmax", "symmetric", "zero_point_shift")
        unset = {"block_size": None, "zero_point_shift": 0.0}
        said = ((name, getattr(self, name)) for name in names)
        return ", ".join(f"{name}={value}" for name, value in said if name not in unset or value != unset[name])

    def get_extra_state(self) -> Any:
        """Which parameters have a value, and what else the quantizer was made of, tensors by name."""
        state = super().get_extra_state()
        if isinstance(state, dict):
            own: dict[str, Any] = {"qmin": self.qmin, "qmax": self.qmax, "symmetric": self.symmetric}
            own |= {"block_size": self.block_size or (), "zero_point_shift": self.zero_point_shift}
            state |= {name: torch.tensor(value) for name, value in own.items()}
        return state

    def set_extra_state(self, state: Any) -> None:
        """Take what ``get_extra_state`` gave, without changing it.

        Upstream: takes the entries out of ``state``, so that a second quantizer keeps its own grid; ``block_size``
        becomes a tuple of tensors.
        """
        super().set_extra_state(state)
        given = state if isinstance(state, Mapping) else {}
        self.qmin, self.qmax = (int(given.get(name, getattr(self, name))) for name in ("qmin", "qmax"))
        if "symmetric" in given:
            self.symmetric = bool(given["symmetric"])
        if "block_size" in given:
            self.block_size = blocks_of(given["block_size"])
        if "zero_point_shift" in given:
            self.zero_point_shift = float(given["zero_point_shift"])
        self.shape = tuple(next(p for p in self._parameters.values() if p is not None).shape)

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False) -> Any:
        """As ``torch.nn.Module.load_state_dict``; where it is not strict, with the shapes of ``state_dict``."""
        for name, param in self._parameters.items():
            value = state_dict.get(name)
            if not strict and value is not None and param is not None and value.shape != param.shape:
                self._parameters[name] = nn.Parameter(param.new_empty(value.shape), param.requires_grad)
        return super().load_state_dict(state_dict, strict, assign)

    def _load_from_state_dict(self, state_dict: Mapping[str, Any], prefix: str, *rest: Any) -> None:
        """Take the kind of parameters that ``state_dict`` has."""
        kinds = {"min": ("min", "max"), "scale": ("scale", "offset")}
        given = {name: state_dict.get(prefix + name) for pair in kinds.values() for name in pair}
        if given["scale"] is not None and given["min"] is None:
            self._reparametrize_to_scale_offset()
            self.symmetric = given["offset"] is None
        elif given["min"] is not None and given["scale"] is None:
            self._reparametrize_to_min_max()
        super()._load_from_state_dict(state_dict, prefix, *rest)

    @contextmanager
    def _of_batch(self, low: Tensor, high: Tensor) -> Iterator[None]:
        """Apply the encoding of a range instead of the quantizer's own."""
        self._batch = self._encoding(*self._derived(*self._fitted(low, high)))
        try:
            yield
        finally:
            self._batch = None

    def _of_all(self, low: Tensor, high: Tensor) -> None:
        """Set the range; an end that is not to be overwritten stays."""
        ends = dict(zip(("min", "max"), self._fitted(low, high), strict=True))
        allowed = {name: end if self.is_overwrite_allowed(name) else None for name, end in ends.items()}
        self.set_range(allowed["min"], allowed["max"])

    def _fitted(self, *ends: Tensor) -> tuple[Tensor, ...]:
        """The ends of a range in the shape, dtype and device of the parameters."""
        like = next(self.parameters())
        # Analyzers of blocks may give the shape with a dimension of 1 next to each of its own.
        shaped = (end.reshape(self.shape) if self.block_size is not None else end.expand(self.shape) for end in ends)
        return tuple(end.to(dtype=like.dtype, device=like.device) for end in shaped)

    def _encoding(self, scale: Tensor, offset: Tensor) -> AffineEncoding:
        return AffineEncoding(
            scale,
            offset,
            self.qmin,
            self.qmax,
            self.symmetric,
            self.block_size,
            self.zero_point_shift,
            producer=self,
        )

    def _encoding_for(self, x: Tensor) -> AffineEncoding:
        """What ``forward`` applies to ``x``: any map to an empty tensor, where the quantizer has no value.

        Raises:
            RuntimeError: there is none.
        """
        encoding = self.get_encodings()
        if encoding is not None:
            return with_shared_blocks(encoding, x.shape)
        if x.numel():
            msg = (
                f"{type(self).__qualname__} cannot run: {' and '.join(self._without_value())} have no value; run "
                f"compute_encodings(), or set_range()"
            )
            raise RuntimeError(msg)
        one = torch.ones((), device=self._device())
        return AffineEncoding(
            one, one - 1, self.qmin, self.qmax, self.symmetric, None, self.zero_point_shift, producer=self
        )

    def _shared(self) -> tuple[int, ...] | None:
        """The block sizes for the default analyzer: one parameter along a dimension serves all of its blocks."""
        if self.block_size is None or len(self.block_size) != len(self.shape):
            return self.block_size
        return tuple(-1 if n == 1 else b for n, b in zip(self.shape, self.block_size, strict=True))

    def _check_encoding(self, encodings: Any) -> None:
        if not isinstance(encodings, AffineEncoding):
            msg = f"encodings={encodings!r} is not accepted: give an AffineEncoding"
            raise TypeError(msg)
        if tuple(encodings.scale.shape) != self.shape:
            msg = f"encodings with a scale of shape {tuple(encodings.scale.shape)} are not accepted: give {self.shape}"
            raise RuntimeError(msg)
