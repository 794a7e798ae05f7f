"""How fast the kernels are meant to be, and whether they are."""

from typing import Any

__all__ = ["fastest_peer", "kernel", "standing", "target"]

_BROADCAST = ("tensor", "axis 0", "axis -1")
# Operation, layouts, size: the time at most, in copies of the same bytes.
_TARGETS = (
    ("quantize", _BROADCAST, "cache", 1.6),
    ("quantize", _BROADCAST, "memory", 1.1),
    ("quantize", ("blocks of 32",), "memory", 1.3),
    ("fake quantize", _BROADCAST, "cache", 1.3),
    ("fake quantize", _BROADCAST, "memory", 0.75),
    ("fake quantize", ("blocks of 32",), "memory", 1.3),
    ("dequantize", _BROADCAST, "cache", 1.3),
    ("dequantize", _BROADCAST, "memory", 1.0),
    ("backward", (*_BROADCAST, "blocks of 32", "blocks of 128"), "cache", 1.5),
    ("backward", (*_BROADCAST, "blocks of 32", "blocks of 128"), "memory", 1.5),
)
#: Microseconds above a copy of as many elements, for any operation.
_CALL = 5.0


def target(found: dict[str, Any]) -> float | None:
    """The target of a group: microseconds for a call, else a ratio; None if there is none."""
    if found["column"]["size"] == "call":
        return _CALL
    operation = found["table"]["operation"].partition(",")[0]
    for of, layouts, size, most in _TARGETS:
        if (of, size) == (operation, found["column"]["size"]) and found["table"]["layout"] in layouts:
            return most
    return None


def kernel(found: dict[str, Any]) -> dict[str, Any] | None:
    """The row of the kernels, that with ``out=`` where there is one."""
    return next((row for row in found["rows"] if row["role"] == "kernels"), None)


def fastest_peer(found: dict[str, Any]) -> dict[str, Any] | None:
    """The peer of the least median ratio, exact or not."""
    peers = [row for row in found["rows"] if row["role"] == "peer"]
    return min(peers, key=lambda row: row["ratio"][1], default=None)


def standing(ours: dict[str, Any], peer: dict[str, Any]) -> str:
    """Ahead, behind, or level: where the middle halves of the ratios overlap."""
    if ours["ratio"][2] < peer["ratio"][0]:
        return "ahead"
    return "behind" if ours["ratio"][0] > peer["ratio"][2] else "level"
