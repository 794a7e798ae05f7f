"""One file per documented system: the transcriptions of its formulas, and its profile."""

from halfeven.reference.profiles.aimet import AIMET
from halfeven.reference.profiles.profile import OPERATIONS, Operation, Profile

PROFILES: dict[str, Profile] = {p.name: p for p in (AIMET,)}

__all__ = ["OPERATIONS", "PROFILES", "Operation", "Profile"]
