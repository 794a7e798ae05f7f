"""What a backend offers, as data: all that a plan needs to know of it, without a function in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from halfeven.conformance.backends.protocol import ArrayKind, Backend, names
from halfeven.conformance.configuration import Configuration, Granularity
from halfeven.conformance.engine.call import Dtype
from halfeven.reference import Grid
from halfeven.reference.profile import Operation

__all__ = ["Offer", "keywords", "offer"]

_KEYWORDS = ("qmin", "qmax", "block_size", "dtype")


@dataclass(frozen=True)
class Offer:
    """A backend as the process sees it that plans, judges and writes.

    Attributes:
        name, profile, granularities, dtypes, grids, array, library, version, device, prelude, waivers, lacks: as
            ``Backend`` has them.
        operations: for each operation the keywords that its function names.
        functions: the ids of the formulas that it answers.
    """

    name: str
    profile: str
    operations: Mapping[Operation, tuple[str, ...]] = field(default_factory=dict)
    granularities: tuple[Granularity, ...] = ("tensor",)
    dtypes: tuple[str, ...] = ("float32",)
    grids: tuple[Grid, ...] | None = None
    array: ArrayKind = "torch"
    library: str = ""
    version: str = ""
    device: str = "cpu"
    prelude: str = ""
    waivers: Mapping[str, int] = field(default_factory=dict)
    functions: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()


def offer(backend: Backend) -> Offer:
    """What ``backend`` offers."""
    return Offer(
        name=backend.name,
        profile=backend.profile,
        operations={o: tuple(k for k in _KEYWORDS if names(f, k)) for o, f in backend.operations.items()},
        granularities=backend.granularities,
        dtypes=backend.dtypes,
        grids=backend.grids,
        array=backend.array,
        library=backend.library,
        version=backend.version,
        device=backend.device,
        prelude=backend.prelude,
        waivers=dict(backend.waivers),
        functions=tuple(backend.functions),
        lacks=tuple(backend.lacks),
    )


def keywords(of: Offer, c: Configuration) -> dict[str, Any]:
    """The keyword arguments of a call: the grid for what quantizes; the rest where the signature names it."""
    named = of.operations[c.operation]
    said: dict[str, Any] = {"qmin": c.grid.qmin, "qmax": c.grid.qmax}
    given = said if c.operation != "dequantize" else {k: v for k, v in said.items() if k in named}
    if (
        c.block_size is not None or "block_size" in named
    ):  # what only a **kwargs can take is given where it says something
        given["block_size"] = c.block_size
    if c.operation == "dequantize" and "dtype" in named:
        given["dtype"] = Dtype(c.dtype)
    return given
