"""A line of the plan."""

from dataclasses import dataclass

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.report.share import UNDOCUMENTED
from halfeven.conformance.requirement import Requirement

__all__ = ["SMOKE", "UNDOCUMENTED", "Item"]

SMOKE = "smoke"


@dataclass(frozen=True)
class Item:
    """One line of the plan: it becomes one pytest item and one result. A documented function has no configuration."""

    offer: Offer
    requirement: Requirement
    check: str
    configuration: Configuration | None
    tier: Tier
    seed: int

    @property
    def id(self) -> str:
        """In words: ``profile/operation/aspect/grid/dtype/granularity``, then the check where there are several."""
        parts = [self.requirement.id, *([str(self.configuration)] if self.configuration else [])]
        return "/".join(parts if len(self.requirement.checks) <= 1 else [*parts, self.check])
