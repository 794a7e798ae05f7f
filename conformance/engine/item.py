"""A line of the plan."""

from dataclasses import dataclass

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.configuration import Configuration
from halfeven.conformance.engine.tier import Tier
from halfeven.conformance.report.share import UNDOCUMENTED
from halfeven.conformance.requirement import Basis, Requirement

__all__ = ["SMOKE", "UNDOCUMENTED", "Item"]

SMOKE = "smoke"
_NO_NORM = "errors"


@dataclass(frozen=True)
class Item:
    """One line of the plan: it becomes one pytest item and one result. A documented function has no configuration.

    Attributes:
        strict: whether what no document settles is judged like what one does.
        shard: the part of all scales that a check of all takes, such as ``1/64``; empty for what it takes by itself.
    """

    offer: Offer
    requirement: Requirement
    check: str
    configuration: Configuration | None
    tier: Tier
    seed: int
    strict: bool = False
    shard: str = ""

    @property
    def basis(self) -> Basis:
        """What the norm rests on. There is none for bad arguments, however strict a run is."""
        open_ = self.requirement.basis in {"silent", "measured"}
        return "documented" if self.strict and open_ and self.check != _NO_NORM else self.requirement.basis

    @property
    def id(self) -> str:
        """In words: ``profile/operation/aspect/grid/dtype/granularity``, then the check where there are several."""
        parts = [self.requirement.id, *([str(self.configuration)] if self.configuration else [])]
        return "/".join(parts if {*self.requirement.checks} <= {self.check} else [*parts, self.check])
