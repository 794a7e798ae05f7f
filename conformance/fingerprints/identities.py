"""Models that are one function by what is known of their arithmetic, where codes that wrap leave no runs to look at.

Each model is written as another one that gives the same codes, by rules that follow. Where all that remains is written
alike, it is one function, for any scale.

- What no step reads is left out, and a dtype that is meant by two names has one.
- A quotient of two float32 that is made in float64, divided or multiplied by the inverse in float64, and then rounded
  to float32 is the quotient in float32: a quotient of two numbers of 24 bits is 2^-49 of itself away from the middle of
  two float32 at least, and float64 is wrong by 2^-52. Below the normal numbers it may be another one, which ``floor``
  and ``ceil`` see.
- Of a float32 quotient that is widened to float64 an added half makes the integer that an exact one makes; a conversion
  to an integer is the same, and so is one of the sum, where that is one of float64 in any case. Not so where 1/2 is
  added and truncated.
- (r - v) + v is r, but of -0, whose code is 0, and of the infinities.
- A conversion to 32 bits and one to fewer agree in the bits that codes keep which wrap modulo a power of two. So do one
  to 64 bits and none at all, of a float32: from 2^31 on, where 32 bits end, it is a multiple of 2^8.

The infinities and NaN are left to whoever asks: what is written alike here may differ there.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from halfeven.conformance.fingerprints.cubes import Cube, points, size
from halfeven.conformance.fingerprints.models import Asked
from halfeven.reference import Grid
from halfeven.reference.model import EvaluationModel, compute_dtype
from halfeven.reference.steps import HALVES

__all__ = ["one_function"]

_MOST = 1 << 14  # models that are written otherwise
_INVERTED = frozenset({"reciprocal", "low-reciprocal"})
_MULTIPLIED = frozenset({"reciprocal", "multiply-by-q-per-real"})
_HALVED = frozenset({"half-even", "half-away", "half-to-zero", "half-up", "half-down", "half-truncated"})
_SUMMED = frozenset({"with-zero-point", "fused"})
_LOW = {
    **dict.fromkeys(("int16", "int8", "int32-exact"), "int32"),
    **dict.fromkeys(("int16-sum", "int8-sum"), "int32-sum"),
}
_SINGLE = {"int64-int32": "int32", "int64-sum": "int32-sum", "none": "int32-sum"}
_SUMS = frozenset(name for name in (*_LOW, *_LOW.values()) if name.endswith("-sum"))
# What adds in the quotient's dtype: all else adds integers, or floats in float64.
_ADDING = tuple(map(str, EvaluationModel.choices()["integer"]))
_IN_ITS_DTYPE = frozenset(n for n in _ADDING if n == "none" or n.endswith("-sum"))
_OWN = {"int8-sum": "int32-sum", "int8-exact": "int8-exact"}  # what gives codes of int8 as they are
_BYTE, _CODES = Grid(-128, 127), 256


def one_function(cubes: Sequence[Cube], asked: Asked) -> bool:
    """Whether all models of some cubes give the same codes for every finite quotient; False says nothing."""
    if asked.operation != "quantize" or size(cubes) > _MOST:
        return False
    found = {_written(m, asked) for m in points(cubes, EvaluationModel) if isinstance(m, EvaluationModel)}
    return len(found) == 1


def _written(model: EvaluationModel, asked: Asked) -> EvaluationModel:
    """The same function by the fewest of the choices."""
    m = _halved(replace(_named(model, asked), nan="propagate"))
    if m.clamp != "after":
        return m
    m = _narrowed(m, asked)
    if _wraps_by_a_byte(m, asked):
        whole = (m.rounding, m.half) != ("half-even", "added")  # else from 2^22 on there may be halves
        integer = (_LOW | (_SINGLE if m.quotient == "float32" and whole else {})).get(m.integer, m.integer)
        late = m.zero_point == "after-rounding"
        return replace(m, integer=integer if late else integer.removesuffix("-sum"))
    if m.overflow == "saturate" and asked.grid == _BYTE and m.integer in _OWN:
        return _written(replace(m, overflow="wrap", integer=_OWN[m.integer]), asked)
    return m


def _halved(m: EvaluationModel) -> EvaluationModel:
    """With the half in the fewest words; one that is fused takes the zero point with it."""
    if m.half == "fused" and m.zero_point == "before-rounding" and m.division in _MULTIPLIED:
        m = replace(m, zero_point="fused")
    if m.rounding not in _HALVED or (m.half == "difference" and m.clamp == "after"):  # limits may be infinite
        return replace(m, half="exact")
    return replace(m, half="added") if m.half in _SUMMED and m.rounding not in HALVES else m


def _narrowed(m: EvaluationModel, asked: Asked) -> EvaluationModel:
    """With the quotient in float32, where widening it changes no code."""
    widened = (m.compute, m.quotient, m.zero_point) == ("float32", "float64", "after-rounding")
    if not widened or m.rounding == "half-truncated":  # below -2^24 that adds 1, which float32 does not hold
        return m
    if m.half == "added":
        m = replace(m, half="exact")
    if _wraps_by_a_byte(m, asked) and m.integer in _SUMS:
        m = replace(m, integer="int8-exact")
    return replace(m, quotient="float32") if m.half == "exact" and m.integer not in _IN_ITS_DTYPE else m


def _wraps_by_a_byte(m: EvaluationModel, asked: Asked) -> bool:
    """Whether nothing but the low 8 bits of a code counts."""
    return m.overflow == "wrap" and _CODES % (asked.grid.num_steps + 1) == 0


def _named(model: EvaluationModel, asked: Asked) -> EvaluationModel:
    """With one name for each dtype, and the quotient as it is."""
    t = compute_dtype(model, asked.dtype, asked.scale_dtype, asked.grid)
    held = "given" if model.held == asked.scale_dtype.name else model.held
    quotient = t.name if model.quotient == "compute" else model.quotient
    known = {"scale": asked.scale_dtype.name, "compute": t.name}
    inverse = known.get(model.inverse, model.inverse) if model.division in _INVERTED else "scale"
    single = {asked.dtype.name, asked.scale_dtype.name, quotient} == {"float32"} and t == np.float64
    late = model.zero_point == "after-rounding" and model.half not in _SUMMED
    exact = model.division == "divide" or (model.division == "reciprocal" and inverse == "float64")
    if single and late and exact and model.rounding not in {"floor", "ceil"}:
        t, inverse, model = np.dtype(np.float32), "scale", replace(model, division="divide")
    inverse = {"float64": "compute"}.get(inverse, inverse)  # it has no name of its own
    return replace(model, held=held, compute=t.name, inverse=inverse, quotient=quotient)
