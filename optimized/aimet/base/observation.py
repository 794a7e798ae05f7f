"""The context in which a quantizer of any kind observes its inputs, and takes their range at the end."""

import functools
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from torch import Tensor

from halfeven.optimized.aimet.base.quantizer import QuantizerBase
from halfeven.optimized.aimet.encoding_analyzer import StatisticsNotFoundError, flag_extreme_min_max
from halfeven.optimized.aimet.inputs import plain

__all__ = ["check_expands", "observing"]


@contextmanager
def observing(
    quantizer: QuantizerBase,
    steps: int,
    symmetric: bool,
    of_batch: Callable[[Tensor, Tensor], AbstractContextManager[None]],
    of_all: Callable[[Tensor, Tensor], None],
    *,
    integers: bool = True,
) -> Iterator[None]:
    """Observe what ``quantizer`` is called with, quantize each batch by its own range, and set that of all at the end.

    Nothing is set after an error, nor where no element was seen.

    Args:
        quantizer: whose ``forward`` is replaced meanwhile, and whose analyzer forgets what it observed before.
        steps: codes less one, for the analyzer; and so is ``symmetric``.
        symmetric: the range is that of a grid around zero.
        of_batch: the context in which ``forward`` uses the range (minimum, maximum) that it is given.
        of_all: sets the range.
        integers: whether tensors of integers are observed, which analyzers refuse.
    """
    original, replaced = quantizer.forward, quantizer.__dict__.get("forward")
    analyzer = quantizer.encoding_analyzer

    @functools.wraps(original)
    def forward(input: Tensor) -> Any:  # noqa: A002 - the document's name
        x = plain("input", input)
        if not x.numel() or not (integers or x.is_floating_point()):
            return original(x)
        stats = analyzer.update_stats(x)
        with of_batch(*analyzer.compute_encodings_from_stats(stats, steps, symmetric)):
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
        low, high = analyzer.compute_encodings(steps, symmetric)
    except StatisticsNotFoundError:
        return
    flag_extreme_min_max(low, high)
    of_all(low, high)


def check_expands(own: tuple[int, ...], shape: tuple[int, ...]) -> None:
    """Refuse an analyzer of shape ``own`` for a quantizer of ``shape``.

    Raises:
        RuntimeError: ``own`` does not expand to ``shape``.
    """
    pairs = zip(reversed(own), reversed(shape), strict=False)
    if len(own) > len(shape) or any(n not in {1, m} for n, m in pairs):
        msg = f"encoding_analyzer of shape {own} is not accepted: it does not expand to shape={shape}"
        raise RuntimeError(msg)
