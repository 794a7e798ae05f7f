"""What may be claimed of results: whether anything that a document settles was checked, and no waiver is left over."""

from collections.abc import Mapping, Sequence

from halfeven.conformance.report.model import Result
from halfeven.conformance.requirements import requirements

__all__ = ["says_something", "unused_waivers"]


def says_something(results: Sequence[Result]) -> bool:
    """Whether a requirement that a document or a measurement settles was tried; smoke and layouts alone say little."""
    spoken = [r for p in {r.profile for r in results} for r in requirements(p)]
    settled = {r.id for r in spoken if r.basis in {"documented", "measured"} or (r.called and r.basis == "expected")}
    return any(r.requirement in settled and r.outcome not in {"not run", "implementation-defined"} for r in results)


def unused_waivers(name: str, profile: str, waivers: Mapping[str, int], results: Sequence[Result]) -> list[Result]:
    """A result that differs for each waiver that no result needed: it hides nothing now, and must go."""
    used = {r.requirement for r in results if r.backend == name and r.outcome == "budgeted"}
    return [
        Result(
            id=f"{requirement}/waiver",
            backend=name,
            profile=profile,
            operation=requirement.split("/")[1] if "/" in requirement else "",
            requirement=requirement,
            check="waiver",
            configuration={},
            outcome="differs",
            cause=f"the waiver of {steps} steps is not needed: remove it",
        )
        for requirement, steps in waivers.items()
        if requirement not in used
    ]
