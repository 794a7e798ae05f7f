"""Zero stays zero."""

from collections.abc import Callable, Iterator

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Place, Property, Shown, breach, said
from halfeven.conformance.properties.role import Seen
from halfeven.reference.blocks import Array

__all__ = ["ZERO"]


def _judge(first: Answered, _: Answered | None) -> Iterator[Breach]:
    seen = first.seen
    if "codes" in first.leaves:
        values, zero = first.leaves["codes"], _zeros(seen)
        # Codes of a narrow float dtype hold no zero point that is far away.
        judged = (seen.x == 0) & _exact(seen) & (zero.astype(values.dtype).astype(np.float64) == zero)
        yield breach(
            "codes",
            values,
            judged,
            values.astype(np.float64) == zero,
            said(zero, ", the zero point"),
            _shown("codes", zero),
        )
    elif first.kind == "dequantize":
        values = first.leaves["reals"]
        judged = (seen.x == _zeros(seen)) & seen.plain
        yield breach("reals", values, judged, values == 0, lambda _: "0", _shown("reals"))
    elif "reals" in first.leaves:
        values, judged = first.leaves["reals"], (seen.x == 0) & seen.has_zero
        if seen.block is not None:
            judged &= ~np.isin(seen.block, np.unique(seen.block[~np.isfinite(seen.x)]))
        holds = values.astype(np.float64) == 0
        yield breach("reals", values, judged & _exact(seen), holds, lambda _: "0", _shown("reals"))


def _shown(leaf: str, zero: Array | None = None) -> Callable[[int], Shown]:
    def shown(i: int) -> Shown:
        wanted = 0.0 if zero is None else float(zero.flat[i])
        return Shown({"actual": Place(leaf, i)}, f"actual == {wanted!r}", repr(wanted))

    return shown


def _zeros(seen: Seen) -> Array:
    return np.zeros(seen.x.shape) if seen.zero is None else np.broadcast_to(seen.zero, seen.x.shape)


def _exact(seen: Seen) -> Array:
    """Where the grid has a code for zero."""
    zero = _zeros(seen)
    inside = np.ones(zero.shape, bool)
    if seen.low is not None and seen.high is not None:
        inside = (zero >= seen.low) & (zero <= seen.high)
    exact: Array = seen.plain & inside & (np.rint(zero) == zero)
    return exact


ZERO = Property(
    "zero",
    "Zero stays zero: it gets the zero point's code where the grid has it, and that code means zero.",
    "does not keep zero",
    frozenset({"quantize", "fake_quantize", "dequantize", "cast", "blocks"}),
    _judge,
    exceptions={
        "brevitas/RescalingIntQuant": "none of its calls holds a zero; IntQuant, which it calls, is judged",
        "gguf/Q4_1.quantize": "the format stores a least value and steps from it: none of its codes need mean zero",
        "gguf/Q5_1.quantize": "the format stores a least value and steps from it: none of its codes need mean zero",
        "torchao/choose_qparams_and_quantize_affine_hqq": "its zero point is a real that is rounded by itself: none of "
        "its codes need mean zero",
    },
)
