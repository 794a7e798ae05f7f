"""What comes with scales: zero points, and codes of the data."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np

from halfeven.conformance.configuration import DTYPES
from halfeven.conformance.fingerprints.kinds import same
from halfeven.conformance.fingerprints.reading import Answered
from halfeven.conformance.fingerprints.scaling import Made, quotient, scale_of
from halfeven.conformance.fingerprints.units import TOPS, Units
from halfeven.reference.blocks import Array
from halfeven.reference.minifloat import decode, encode
from halfeven.reference.rounding import ROUNDINGS

__all__ = ["Beside", "beside_scales"]

_LOWS = (0, -128, -127, -8, -7, -32768)
_GRIDS = ((-128, 127), (-127, 127), (0, 255), (-8, 7), (-7, 7), (0, 15), (-2147483648, 2147483647))
_OFFSETS = (0.0, 8.0, 128.0)
_ZERO_POINT = "the zero point"
_FLOATS = ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn")
_ADDED = "half-up, added with the offset"
_NEIGHBOURS = "two to a byte, neighbours, the first in the"
_WITHOUT = "no such choice"
_FEW = 4  # calls, by which most ways are dropped
_Found = Mapping[str, tuple[Any, ...]]


@dataclass(frozen=True)
class Beside:
    """What the arrays are that come with scales.

    Attributes:
        fields: the values of each choice that give them all.
        lost: how many numbers are in arrays that nothing gives.
        near: of the first of these that may be codes the choices that give most, if that is more than half.
        given: how many they give.
    """

    fields: Mapping[str, tuple[Any, ...]]
    lost: int
    near: Mapping[str, Any]
    given: int


def beside_scales(made: Made, seen: Sequence[Answered], which: int, dtype: str, known: Collection[int] = ()) -> Beside:
    """What the other arrays of the answers are; those that are ``known`` are scales of the tensor."""
    fields: dict[str, tuple[Any, ...]] = {}
    near: dict[str, Any] = {}
    lost = given = 0
    others = {i: [s.answer[i] for s in seen] for i in range(len(seen[0].answer)) if i != which and i not in known}
    for i, came in [*others.items()]:
        if came[0].size == made.came[0].size and (found := _zero_points(made, came, dtype)):
            fields |= found
            del others[i]
            if np.unique(np.concatenate(came)).size > 1:
                made = replace(made, zeros=tuple(came))
    for came in others.values():
        found = {}
        if came[0].size in {seen[0].x.size, seen[0].x.size // 2}:
            found = _codes(made, came, dtype)
            if not found and not near:
                near, given = _nearest_codes(made, came, dtype)
        fields |= found
        lost += 0 if found else sum(c.size for c in came)
    return Beside(fields, lost, near, given)


def _usual(u: Units, scale: Array) -> Array:
    with np.errstate(all="ignore"):
        return np.asarray(~u.nan & ~u.infinite & np.isfinite(scale) & (scale != 0))


def _zero_points(made: Made, came: Sequence[Array], dtype: str) -> _Found:
    """Zero points, or what stands for them: the values of each choice of all the ways that give them."""
    numbers = np.unique(np.concatenate(came))
    always: list[dict[str, Any]] = [{"zero_point": f"{numbers[0]:g} always"}] if numbers.size == 1 else []
    ways = (way for way in _ways_of_zero() if all(_gives(way, made, i, c, dtype) for i, c in enumerate(came)))
    return _merged([*always, *ways])


def _merged(kept: Sequence[Mapping[str, Any]]) -> _Found:
    """Of each choice the values that the ways that remain have, and that one is without it, if one is."""
    names = dict.fromkeys(name for way in kept for name in way)
    return {name: tuple(dict.fromkeys(way.get(name, _WITHOUT) for way in kept)) for name in names}


def _ways_of_zero() -> Iterator[dict[str, Any]]:
    for name in ("the least", "-least", "-least / s"):
        yield {"zero_point": name}
    least = ("the least", "the least, 0 at most")
    for low, rounding, first, ends in product(_LOWS, ROUNDINGS, least, ("limited", "not limited")):
        for name in ("round(-least / s)", "round(qmin - least / s)") if low else ("round(-least / s)",):
            fields = {"zero_point": name, "zero_point_rounding": rounding, "qmin": low, "zero_point_of": first}
            yield {**fields, "zero_point_ends": ends}


def _gives(way: Mapping[str, Any], made: Made, i: int, came: Array, dtype: str) -> bool:
    u, t, name = made.calls[i], DTYPES[dtype], way["zero_point"]
    with np.errstate(all="ignore"):
        at = _usual(u, made.came[i])
        s = made.came[i][at].astype(t)
        low = u.low[at].astype(t)
        match name:
            case "the least" | "-least":
                v = low if name == "the least" else -low
            case "-least / s":
                v = -low / s
            case _:
                low = low if way["zero_point_of"] == "the least" else np.minimum(low, t.type(0))
                qmin = t.type(way["qmin"])
                inner = -low / s if name == "round(-least / s)" else qmin - low / s
                v = ROUNDINGS[way["zero_point_rounding"]](inner) + (qmin if name == "round(-least / s)" else 0)
                if way["zero_point_ends"] == "limited":
                    v = np.clip(v, qmin, qmin + abs(made.scaling.divisor))
        return bool((v.astype(np.float64) == came[at]).all())


def _codes(made: Made, came: Sequence[Array], dtype: str) -> _Found:
    """Codes: the values of each choice of all the ways that give them."""
    kept = [
        {**way, "code_places": form}
        for form, codes in _forms(made, came)
        for way in _ways_of_codes(made)
        if all(_codes_given(made, way, i, codes[i], dtype).all() for i in _order(made))
    ]
    return _merged(kept)


def _nearest_codes(made: Made, came: Sequence[Array], dtype: str) -> tuple[dict[str, Any], int]:
    """The choices that give most codes of a few calls, and more than half of all, with how many they give."""
    few = _order(made)[:_FEW]
    best: tuple[float, dict[str, Any], list[Array]] = (0.0, {}, [])
    for form, codes in _forms(made, came):
        for way in _ways_of_codes(made):
            agreed = np.concatenate([_codes_given(made, way, i, codes[i], dtype).reshape(-1) for i in few])
            if agreed.size and agreed.mean() > best[0]:
                best = float(agreed.mean()), {**way, "code_places": form}, codes
    _, way, codes = best
    given = sum(int(_codes_given(made, way, i, c, dtype).sum()) for i, c in enumerate(codes)) if way else 0
    return (way, given) if 2 * given > sum(c.size for c in came) else ({}, 0)


def _order(made: Made) -> list[int]:
    """The calls, those that a search begins with last: after them come data of ordinary size."""
    n = len(made.calls)
    return [*range(min(_FEW, n), n), *range(min(_FEW, n))]


def _forms(made: Made, came: Sequence[Array]) -> Iterator[tuple[str, list[Array]]]:
    """How codes can be packed: as the data lie, of which a part that is a column is a row of its own."""
    rows, n = shape = made.calls[0].rows.shape
    columns = made.scaling.over == "each column"
    if columns:
        rows, n = n, rows
    if came[0].size == rows * n:
        found = {"one to an element": [c.reshape(rows, n) for c in came]}
    elif all(((c >= 0) & (c <= 255) & (c == np.floor(c))).all() for c in came):  # noqa: PLR2004 - a byte
        bytes_ = [c.astype(np.int64).reshape(rows, n // 2) for c in came]
        pairs = [(c & 15, c >> 4) for c in bytes_]
        found = {
            f"{_NEIGHBOURS} low bits": [np.stack(p, -1).reshape(rows, n) for p in pairs],
            f"{_NEIGHBOURS} high bits": [np.stack(p[::-1], -1).reshape(rows, n) for p in pairs],
            "two to a byte, the first half in the low bits": [np.concatenate(p, 1) for p in pairs],
        }
    else:
        found = {}
    for name, codes in found.items():
        yield name, [c.T if columns else c.reshape(shape) for c in codes]


def _ways_of_codes(made: Made) -> Iterator[dict[str, Any]]:
    plain = made.scaling.held in {"as computed", "float32"}
    by_scale = product(("x / s", "x * (1 / s)"), ("as it is stored",) if plain else ("as it is stored", "before it is"))
    own = [{"code_quotient": how, "code_scale": of} for how, of in by_scale]
    for way in [*own, *({"code_quotient": how} for how in _by_magnitude(made))]:
        yield from ({"codes": target, **way} for target in _FLOATS)
        offsets = (*_OFFSETS, _ZERO_POINT) if made.zeros else _OFFSETS
        for rounding, offset, limits in product((*ROUNDINGS, _ADDED), offsets, _GRIDS):
            whole = {"code_rounding": rounding, "code_offset": offset, "code_limits": limits}
            yield {"codes": "integers", **way, **whole}


def _by_magnitude(made: Made) -> dict[str, tuple[float, str]]:
    """The quotients that are made of the magnitude, not of the scale: each its words, a number and how it is divided.

    What divides so rounds otherwise than by the scale.
    """
    s = made.scaling
    if s.of != "the largest magnitude":
        return {}
    forms = (("x * ({:g} / the magnitude)", "codes-per-real"), ("x * ({:g} * (1 / the magnitude))", "times-inverse"))
    tops = TOPS if s.divisor == 1 else (s.divisor,)
    return {words.format(top): (top, division) for top in tops for words, division in forms}


def _codes_given(made: Made, way: Mapping[str, Any], i: int, came: Array, dtype: str) -> Array:
    """Of the codes of a call's parts that have a scale, which a way gives."""
    u, t = made.calls[i], DTYPES[dtype]
    with np.errstate(all="ignore"):
        stored = way.get("code_scale") != "before it is"
        scale = made.came[i] if stored else scale_of(made.scaling, u, dtype, store=False)
        at = _usual(u, scale) & _usual(u, made.came[i])
        x = u.rows[at].astype(t)
        v = _quotients(made, way, x, u.amax[at].astype(t)[:, None], scale[at].astype(t)[:, None])
        if way["codes"] != "integers":
            reals = decode(encode(v.astype(t), way["codes"], overflow="saturate"), way["codes"], "float64")
            return same(reals, came[at])
        own = way["code_offset"] == _ZERO_POINT
        offset = made.zeros[i][at].astype(t)[:, None] if own else t.type(way["code_offset"])
        if way["code_rounding"] == _ADDED:
            q = np.floor(v + (offset + t.type(0.5)))
        else:
            q = ROUNDINGS[way["code_rounding"]](v) + offset
        # Where 1/s is infinite, 0 * (1/s) is NaN, of which a conversion makes any integer.
        return np.asarray((np.clip(q, *way["code_limits"]) == came[at]) | np.isnan(q))


def _quotients(made: Made, way: Mapping[str, Any], x: Array, magnitude: Array, scale: Array) -> Array:
    t = x.dtype.type
    match way["code_quotient"]:
        case "x / s":
            return np.asarray(x / scale)
        case "x * (1 / s)":
            return np.asarray(x * (t(1) / scale))
        case words:
            top, division = _by_magnitude(made)[words]
            return np.asarray(x * quotient(magnitude, t(top), division))
