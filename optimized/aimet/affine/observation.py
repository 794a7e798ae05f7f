"""The context in which an affine quantizer observes its inputs, and takes their range at the end."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from torch import Tensor

from halfeven.optimized.aimet.base import observation

if TYPE_CHECKING:
    from halfeven.optimized.aimet.affine.quantizer_base import AffineQuantizerBase

__all__ = ["observing"]


@contextmanager
def observing(quantizer: "AffineQuantizerBase") -> Iterator[None]:
    """As ``base.observation.observing``; an end that is not to be overwritten stays."""
    if not quantizer.is_overwrite_allowed():
        yield
        return
    # A shift of half a code leaves as many codes on either side of zero: one step less.
    steps = quantizer.qmax - quantizer.qmin - (quantizer.zero_point_shift == 0.5)  # noqa: PLR2004

    def of_batch(low: Tensor, high: Tensor) -> AbstractContextManager[None]:
        return quantizer._encodings_of_batch(*_fitted(quantizer, low, high))  # noqa: SLF001

    def of_all(low: Tensor, high: Tensor) -> None:
        ends = dict(zip(("min", "max"), _fitted(quantizer, low, high), strict=True))
        allowed = {name: end if quantizer.is_overwrite_allowed(name) else None for name, end in ends.items()}
        quantizer.set_range(allowed["min"], allowed["max"])

    with observation.observing(quantizer, steps, quantizer.symmetric, of_batch, of_all):
        yield


def _fitted(quantizer: "AffineQuantizerBase", *ends: Tensor) -> tuple[Tensor, ...]:
    """The ends of a range in the shape, dtype and device of the quantizer's parameters."""
    like = next(quantizer.parameters())
    shape = quantizer.shape
    # Analyzers of blocks may give the shape with a dimension of 1 beside each of its own.
    shaped = (end.reshape(shape) if quantizer.block_size is not None else end.expand(shape) for end in ends)
    return tuple(end.to(dtype=like.dtype, device=like.device) for end in shaped)
