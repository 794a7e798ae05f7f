"""The context in which a quantizer observes its inputs, and takes their range at the end."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor

from halfeven.optimized.aimet.affine.functional import plain
from halfeven.optimized.aimet.encoding_analyzer import StatisticsNotFoundError, flag_extreme_min_max

if TYPE_CHECKING:
    from halfeven.optimized.aimet.affine.quantizer_base import AffineQuantizerBase

__all__ = ["observing"]


@contextmanager
def observing(quantizer: "AffineQuantizerBase") -> Iterator[None]:
    """Observe what ``quantizer`` is called with, quantize each batch by its own range, and set that of all at the end.

    Nothing is set after an error, nor where no element was seen, nor an end that is not to be overwritten.
    """
    if not quantizer.is_overwrite_allowed():
        yield
        return
    original = quantizer.forward
    replaced = quantizer.__dict__.get("forward")
    analyzer = quantizer.encoding_analyzer
    # A shift of half a code leaves as many codes on either side of zero: one step less.
    steps = quantizer.qmax - quantizer.qmin - (quantizer.zero_point_shift == 0.5)  # noqa: PLR2004

    @functools.wraps(original)
    def forward(input: Tensor) -> Any:  # noqa: A002 - the document's name
        x = plain("input", input)
        if not x.numel():
            return original(x)
        stats = analyzer.update_stats(x)
        low, high = analyzer.compute_encodings_from_stats(stats, steps, quantizer.symmetric)
        with quantizer._encodings_of_batch(*_fitted(quantizer, low, high)):  # noqa: SLF001
            return original(x)

    analyzer.reset_stats()
    quantizer.__dict__["forward"] = forward
    try:
        yield
    finally:
        if replaced is None:
            del quantizer.__dict__["forward"]
        else:
            quantizer.__dict__["forward"] = replaced
    try:
        low, high = analyzer.compute_encodings(steps, quantizer.symmetric)
    except StatisticsNotFoundError:
        return
    flag_extreme_min_max(low, high)
    ends = dict(zip(("min", "max"), _fitted(quantizer, low, high), strict=True))
    allowed = {name: end if quantizer.is_overwrite_allowed(name) else None for name, end in ends.items()}
    quantizer.set_range(allowed["min"], allowed["max"])


def _fitted(quantizer: "AffineQuantizerBase", *ends: Tensor) -> tuple[Tensor, ...]:
    """The ends of a range in the shape, dtype and device of the quantizer's parameters."""
    like = next(quantizer.parameters())
    shape = quantizer.shape
    # Analyzers of blocks may give the shape with a dimension of 1 beside each of its own.
    shaped = (end.reshape(shape) if quantizer.block_size is not None else end.expand(shape) for end in ends)
    return tuple(end.to(dtype=like.dtype, device=like.device) for end in shaped)
