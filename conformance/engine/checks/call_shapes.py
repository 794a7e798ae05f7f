"""The same values however the call is made: hard values in every call shape, every code and every parameter once."""

from itertools import chain

from halfeven.conformance.engine.evidence import Evidence
from halfeven.conformance.engine.explore import beyond
from halfeven.conformance.engine.grids import grids
from halfeven.conformance.engine.operation_calls import operation_calls, subject
from halfeven.conformance.engine.practice import company_calls, practice_calls

__all__ = ["call_shapes"]

_SMALL = 70_000  # elements: in the quick tier larger calls are made on the first grid alone


def call_shapes(e: Evidence) -> None:
    """Every granularity that the backend has, crossed with the table of call shapes."""
    c, item = e.setting.configuration, e.item
    of = subject(e.setting.profile.name, c.operation, c.dtype, c.grid, item.seed)
    whole = item.tier == "standard" or c.grid == grids(item.offer, item.tier)[0]
    largest = None if whole else _SMALL
    calls = operation_calls(item.offer, of, tier=item.tier, largest=largest)
    usual = practice_calls(item.offer, of, item.offer.granularities, largest)
    peculiar = company_calls(item.offer, of, item.offer.granularities)
    e.expect_calls((asked.call, asked.expected) for asked in chain(usual, peculiar, calls))
    beyond(e)
