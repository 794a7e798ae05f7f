"""What any user expects of every formula, whatever its document says of single values: the properties.

A property is a predicate on the answers to a formula's calls, its own or a second one made from the first. The roles
say, formula by formula, what of its arguments and its result is what; ``WITHOUT`` says why a formula has none. Where a
document says otherwise than a property, the document wins, and the property's ``exceptions`` say so.
"""

from halfeven.conformance.properties.affine import AFFINE
from halfeven.conformance.properties.batches import BATCHES
from halfeven.conformance.properties.blocks import BLOCKS
from halfeven.conformance.properties.casts import CASTS
from halfeven.conformance.properties.chosen import CHOSEN
from halfeven.conformance.properties.finite import FINITE
from halfeven.conformance.properties.gradient import GRADIENT
from halfeven.conformance.properties.gradients import GRADIENTS
from halfeven.conformance.properties.graphs import GRAPHS
from halfeven.conformance.properties.idempotence import IDEMPOTENCE
from halfeven.conformance.properties.monotone import MONOTONE
from halfeven.conformance.properties.odd import ODD
from halfeven.conformance.properties.on_grid import ON_GRID
from halfeven.conformance.properties.order import ORDER
from halfeven.conformance.properties.powers_of_two import POWERS_OF_TWO
from halfeven.conformance.properties.property import Property
from halfeven.conformance.properties.scale import COVERS, POSITIVE_SCALE
from halfeven.conformance.properties.stored import STORED
from halfeven.conformance.properties.without import WITHOUT
from halfeven.conformance.properties.zero import ZERO

__all__ = ["CHECK", "PROPERTIES", "ROLES", "WITHOUT", "fits", "of"]

#: How the names of the checks of properties begin.
CHECK = "property-"
ROLES = AFFINE | CASTS | GRAPHS | STORED | CHOSEN | BLOCKS | GRADIENTS
PROPERTIES = {
    p.name: p
    for p in (
        ON_GRID,
        FINITE,
        ZERO,
        MONOTONE,
        IDEMPOTENCE,
        POWERS_OF_TWO,
        ODD,
        ORDER,
        BATCHES,
        POSITIVE_SCALE,
        COVERS,
        GRADIENT,
    )
}


def fits(found: Property, formula: str) -> bool:
    """Whether a property is a requirement of a formula."""
    role = ROLES.get(formula)
    fitting = role is not None and role.kind in found.kinds and (not found.needs or found.needs in role.traits)
    return fitting and formula not in found.exceptions


def of(formula: str) -> tuple[Property, ...]:
    """The properties that a formula is held to."""
    return tuple(p for p in PROPERTIES.values() if fits(p, formula))
