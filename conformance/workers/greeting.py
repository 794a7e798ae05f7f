"""An offer in JSON: what a worker says of itself when it is greeted, and what a bundle was planned for."""

from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any, get_args

from halfeven.conformance.backends.offer import Offer
from halfeven.conformance.backends.protocol import KINDS, ArrayKind
from halfeven.conformance.configuration import DTYPES, Granularity
from halfeven.reference import Grid
from halfeven.reference.catalogue import FORMULAS
from halfeven.reference.profile import OPERATIONS
from halfeven.reference.systems import PROFILES

__all__ = ["greeting", "offer_of"]

_WORDS = ("name", "library", "version", "device", "prelude")
_LISTS: dict[str, tuple[str, ...]] = {"dtypes": tuple(DTYPES), "granularities": get_args(Granularity)}


def greeting(offer: Offer) -> dict[str, Any]:
    """The offer in JSON's own types.

    >>> greeting(Offer("device", "onnx", {"quantize": ("qmin", "qmax")}))["operations"]
    {'quantize': ['qmin', 'qmax']}
    """
    found = asdict(offer)
    found["operations"] = {name: list(named) for name, named in offer.operations.items()}
    found["grids"] = None if offer.grids is None else [[g.qmin, g.qmax] for g in offer.grids]
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found.items()}


def offer_of(data: Any) -> Offer:
    """The other way; what is not said is as ``Offer`` has it.

    Raises:
        ValueError: it is no offer; the message has the field.
    """
    known = {f.name for f in fields(Offer)}
    if not isinstance(data, Mapping) or not known.issuperset(data) or not {"name", "profile"} <= data.keys():
        msg = f"an offer has a name and a profile, and of {', '.join(sorted(known))} what it likes"
        raise ValueError(msg)
    said = dict(data)
    for name in (n for n in _WORDS if n in said):
        _is(name, isinstance(said[name], str), "a text")
    _is("profile", said["profile"] in PROFILES, "a profile")
    _is("array", said.get("array", "numpy") in get_args(ArrayKind), "torch or numpy")
    for name, among in _LISTS.items():
        if name in said:
            _is(
                name,
                bool(_listed(said[name]) and said[name] and {*said[name]} <= {*among}),
                f"a list of {', '.join(among)}",
            )
            said[name] = tuple(said[name])
    operations = said.get("operations", {})
    _is("operations", isinstance(operations, Mapping) and {*operations} <= {*OPERATIONS}, "operations")
    _is("operations", all(_listed(named) for named in operations.values()), "their keywords, in lists")
    said["operations"] = {o: tuple(named) for o, named in operations.items()}
    functions = said.get("functions", [])
    named = _listed(functions) and all(f in FORMULAS or f in KINDS for f in functions)
    _is("functions", named, f"ids of formulas, or {', '.join(KINDS)}")
    said["functions"] = tuple(functions)
    lacks = said.get("lacks", [])
    _is("lacks", _listed(lacks), "ids of requirements")
    said["lacks"] = tuple(lacks)
    waivers = said.get("waivers", {})
    _is("waivers", isinstance(waivers, Mapping) and all(type(n) is int for n in waivers.values()), "steps")
    if said.get("grids") is not None:
        said["grids"] = tuple(_grid(g) for g in said["grids"])
    return Offer(**said)


def _grid(pair: Any) -> Grid:
    _is("grids", isinstance(pair, list) and len(pair) == 2 and all(type(n) is int for n in pair), "pairs of ints")  # noqa: PLR2004 - qmin, qmax
    return Grid(*pair)


def _listed(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(word, str) for word in value)


def _is(name: str, right: bool, wanted: str) -> None:
    if not right:
        msg = f"{name} of the offer is not accepted: give {wanted}"
        raise ValueError(msg)
