"""A range does not depend on the order in which its data come."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from halfeven.conformance.properties.property import Answered, Breach, Property, breach, related, said
from halfeven.conformance.properties.role import Role

__all__ = ["BATCHES"]


def _again(role: Role, first: Answered) -> dict[str, Any] | None:
    batches = first.arguments[role.data]
    if not isinstance(batches, tuple | list) or len(batches) < 2:  # noqa: PLR2004 - one has no other order
        return None
    return {**first.arguments, role.data: type(batches)(reversed(batches))}


def _judge(first: Answered, second: Answered | None) -> Iterator[Breach]:
    assert second is not None, "there is a second call"
    for name, before in first.leaves.items():
        wanted, got = before.astype(np.float64), second.leaves[name].astype(np.float64)
        judged = np.ones(got.shape, bool)
        same = (got == wanted) | (np.isnan(got) & np.isnan(wanted))
        yield breach(name, second.leaves[name], judged, same, said(wanted, ", as in the other order"), related(name))


BATCHES = Property(
    "any-batch-order",
    "The batches of a calibration may come in any order.",
    "gives another range for the same batches in another order",
    frozenset({"choose"}),
    _judge,
    _again,
    needs="batches",
)
