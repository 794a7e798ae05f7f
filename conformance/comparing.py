"""``compare``: two implementations in this process, on the same calls, with no formula claimed."""

from collections.abc import Sequence
from typing import Any

from halfeven.conformance.backends.protocol import ArrayKind, Backend, adapt
from halfeven.conformance.backends.registry import resolve
from halfeven.conformance.engine import pair
from halfeven.conformance.engine.tier import TIERS, Tier
from halfeven.conformance.environment import subnormals_kept
from halfeven.conformance.nearest import among
from halfeven.conformance.report.pair import Comparison
from halfeven.conformance.workers.inside import Inside
from halfeven.reference.profile import Operation

__all__ = ["compare"]

_PLAIN = "onnx"  # whose parameters two plain functions are given


@subnormals_kept()
def compare(
    a: Any,
    b: Any,
    profile: str | None = None,
    operation: Operation = "quantize",
    tier: Tier = "quick",
    *,
    formulas: Sequence[str] = (),
    array: ArrayKind | None = None,
    seed: int = 0,
) -> Comparison:
    """Compare two implementations: functions, classes, ``Backend``s, or names such as ``"torch.observers@compiled"``.

    Each is called as ``check`` calls it. ``profile`` says which parameters and codes they take, where they do not; a
    plain function takes a scale and a zero point.

    Raises:
        TypeError: one of them is no implementation.
        ValueError: a name, the profile, the tier or a formula is not known; or a name stands for several.

    Example:
        >>> import torch
        >>> def mine(x, scale, zero_point, *, qmin, qmax):
        ...     return (torch.round(x / scale) + zero_point).clamp(qmin, qmax).to(torch.int32)
        >>> compare(mine, mine).same  # doctest: +SKIP
        True
    """
    among("tier", tier, TIERS)
    default = profile or next((p for p in (_claimed(a), _claimed(b)) if p), _PLAIN)
    made = [_backend(source, profile, default, operation, array) for source in (a, b)]
    return pair.compare(Inside(made[0]), Inside(made[1]), tier, seed, formulas)


def _claimed(source: Any) -> str:
    return "" if isinstance(source, str) else getattr(source, "profile", None) or ""


def _backend(source: Any, profile: str | None, default: str, operation: Operation, array: ArrayKind | None) -> Backend:
    if not isinstance(source, str):
        return adapt(
            source, profile=profile or (None if _claimed(source) else default), operation=operation, array=array
        )
    found = resolve(source, profile)
    if len(found) != 1:
        msg = f"{source!r} names {len(found)} backends: give one of {', '.join(b.name for b in found)}"
        raise ValueError(msg)
    return found[0]
